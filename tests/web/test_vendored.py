"""Vendored files are the ones that were published, each with its licence."""

from __future__ import annotations

from hashlib import sha256

from engine.paths import shipped


def test_every_vendored_file_has_its_checksum_and_every_folder_its_licence() -> None:
    vendor = shipped("static") / "vendor"
    listed = dict(reversed(line.split()) for line in (vendor / "SHA256SUMS").read_text(encoding="utf-8").splitlines())
    found = {str(path.relative_to(vendor)): sha256(path.read_bytes()).hexdigest() for path in vendor.glob("*/*")}
    assert found == listed
    assert all((folder / "LICENSE").is_file() for folder in vendor.iterdir() if folder.is_dir())
