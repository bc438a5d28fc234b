"""Migrations form one chain, each named by its number: two of one number are two heads, and nothing migrates any more."""

import re
from pathlib import Path

VERSIONS = Path(__file__).parents[2] / "migrations" / "versions"


def test_migrations_are_numbered_from_one_and_each_follows_the_one_before() -> None:
    found = sorted(path.name for path in VERSIONS.glob("0*.py"))
    chain = [(match["revision"], match["down"]) for match in map(_told, found)]
    numbers = [name[:4] for name in found]
    assert numbers == [f"{n:04}" for n in range(1, len(found) + 1)]
    assert chain == list(zip(numbers, [None, *numbers[:-1]], strict=True))


def _told(name: str) -> re.Match[str]:
    text = (VERSIONS / name).read_text(encoding="utf-8")
    match = re.search(r'^revision = "(?P<revision>\w+)"\ndown_revision = (?:None|"(?P<down>\w+)")$', text, re.MULTILINE)
    assert match is not None, f"{name}: expected revision and down_revision, found neither"
    return match
