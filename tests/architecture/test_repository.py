"""What the repository may hold: no addresses of registries or machines, licences for what is not ours, documents that are true."""

from __future__ import annotations

import re
from hashlib import sha256

from cli.main import COMMANDS
from engine.config import markdown_table
from tests.architecture.sources import ROOT, every_file, name

REGISTRIES = re.compile(r"pypi\.(org|io)|pythonhosted|npmjs|(?:index|find)-(?:url|links)\s*=|artifactory|//registry\.", re.IGNORECASE)
MACHINES = re.compile("/(?:" + "work|root" + r")/\w|/home/\w|/Users/\w")
VENDOR = ROOT / "static" / "vendor"
HERE = "tests/architecture/test_repository.py"


def _readable(path) -> str:
    return path.read_bytes().decode("utf-8", errors="ignore")


def test_no_file_names_a_registry_or_a_machines_folder():
    found = {}
    for path in every_file():
        if VENDOR in path.parents or name(path) == HERE:
            continue
        text = _readable(path)
        if match := REGISTRIES.search(text) or MACHINES.search(text):
            found[name(path)] = match.group()
    assert not found


def test_every_pin_carries_a_hash_and_no_address():
    for file in ("runtime.txt", "dev.txt"):
        text = (ROOT / "requirements" / file).read_text()
        pins = re.findall(r"^[a-z0-9._-]+==\S+.*$", text, re.MULTILINE | re.IGNORECASE)
        assert len(pins) > 30
        assert all(pin.endswith("\\") for pin in pins), "a pin without a hash"
        assert "://" not in text
        assert not re.search(r"^\s*-(?!-hash)", text, re.MULTILINE)


def test_both_locks_pin_the_same_versions():
    pinned = [
        dict(re.findall(r"^([a-z0-9._-]+)==([^\s;]+)", (ROOT / "requirements" / file).read_text(), re.MULTILINE))
        for file in ("runtime.txt", "dev.txt")
    ]
    runtime, dev = pinned
    assert {package: dev.get(package) for package in runtime} == runtime


def test_every_vendored_file_is_listed_with_its_checksum_and_every_folder_has_its_licence():
    listed = dict(reversed(line.split("  ", 1)) for line in (VENDOR / "SHA256SUMS").read_text().splitlines())
    present = {
        path.relative_to(VENDOR).as_posix()
        for folder in VENDOR.iterdir()
        if folder.is_dir()
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert set(listed) == present
    assert {file: sha256((VENDOR / file).read_bytes()).hexdigest() for file in present} == listed
    for folder in VENDOR.iterdir():
        assert not folder.is_dir() or (folder / "LICENSE").exists(), f"{folder.name} has no LICENSE"


def test_templates_hold_no_inline_style_and_no_inline_script():
    wrong = re.compile(
        r"""\sstyle\s*=|<style\b|<script(?![^>]*\ssrc=)[^>]*>|\son[a-z]+\s*=\s*["']|javascript:|\shx-on|\|\s*safe\b""", re.IGNORECASE
    )
    templates = sorted((ROOT / "templates").rglob("*.html"))
    assert templates
    found = {name(path): match.group() for path in templates if (match := wrong.search(path.read_text(encoding="utf-8")))}
    assert not found


def test_the_configuration_is_documented_as_it_is():
    document = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert markdown_table() in document, "run: .venv/bin/python -m cli.main config --document > docs/configuration.md"


def test_the_units_and_the_image_call_commands_that_exist():
    called = set()
    for path in (ROOT / "deploy").iterdir():
        called |= set(re.findall(r"bin/baton ([a-z]+)", path.read_text())) | set(re.findall(r'"baton", "([a-z]+)"', path.read_text()))
    assert {"web", "worker", "migrate", "user"} <= called <= set(COMMANDS)


def test_the_example_environment_names_variables_that_exist():
    named = set(re.findall(r"^([A-Z_]+)=", (ROOT / "deploy" / "environment.example").read_text(), re.MULTILINE))
    assert named
    assert all(f"`{each}`" in markdown_table() for each in named)
