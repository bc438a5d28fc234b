"""python -m tests.accounting FOLDER [--json FILE] [--unknown] [--effect] [--import]"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from playwright.sync_api import sync_playwright

from cli.corpus import ENDINGS, files_below
from engine.bpmn.reader import read_files
from engine.drawings.drawing import Drawing, draw
from engine.drawings.layout import has_drawing
from tests.accounting.count import Counted, count
from tests.accounting.imports import import_all, text_of
from tests.accounting.probe import read_and_without_effect, unknown_that_goes_unnoticed
from tests.browser.conftest import chromium_path

SHOWN = 20


def main(arguments: list[str]) -> int:
    """0: everything is accounted for; 1: something is not; 2: the folder is not usable."""
    asked = _asked(arguments)
    files = {str(path.relative_to(asked.folder)): path.read_bytes() for path in files_below(asked.folder)}
    if not files:
        print(f"{asked.folder}: expected files that end in {', '.join(ENDINGS)}, found none", file=sys.stderr)
        return 2
    counted = [count(file, content) for file, content in files.items()]
    left = [f"{each.file}: {what}" for each in counted for what in each.left]
    print(_told("all", counted), _told("accepted", [each for each in counted if each.accepted]), sep="\n")
    _list("unaccounted", left)
    accepted = [each.file for each in counted if each.accepted]
    if asked.unknown:
        missed = [f"{file}: {what}" for file in accepted for what in unknown_that_goes_unnoticed(files[file])]
        _list(
            f"unknown attributes and extension elements, added to each element of {len(accepted)} accepted files, and not reported", missed
        )
        left += missed
    if asked.effect:
        without = read_and_without_effect([files[file] for file in accepted])
        _list("read, and another value changes nothing", [f"{what} ({tried} tried)" for what, tried in sorted(without.items())])
    if asked.imported:
        left += _imported({file: files[file] for file in accepted})
    if asked.json is not None:
        asked.json.write_text(json.dumps({"left": left, "files": [asdict(each) for each in counted]}, indent=1) + "\n", encoding="utf-8")
    return 1 if left else 0


def _imported(files: dict[str, bytes]) -> list[str]:
    """What bpmn-js cannot show of what pages give it: each process with its own drawing, or with one that was laid out."""
    pictures = {name: picture for file, content in files.items() for name, picture in _pictures(file, content)}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
        said = import_all(browser, {name: text_of(xml) for name, (xml, _) in pictures.items() if xml is not None})
        browser.close()
    wrong = [f"{name}: {each.error}" for name, each in said.items() if each.error is not None]
    wrong += [f"{name}: {note}" for name, (xml, note) in pictures.items() if xml is None]
    laid_out = sum(xml is not None and bool(note) for xml, note in pictures.values())
    print(f"bpmn-js: {len(said) - len(wrong)} processes of {len(files)} files imported, {laid_out} of them laid out")
    _list("bpmn-js cannot import", wrong)
    return wrong


def _pictures(file: str, content: bytes) -> Iterator[tuple[str, tuple[bytes | None, str]]]:
    """The XML of each process, and what is said of a drawing that was laid out, or of none."""
    for _, definition in read_files([(file, content)]).definitions:
        if definition.called_only:
            continue  # a global task has one step, and no picture
        drawn = Drawing(content, "") if has_drawing(content, definition.key) else draw(content, definition.key)
        yield f"{file}, {definition.key}", (drawn.xml, drawn.note)


def _asked(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make corpus ACCOUNT=1", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, help="write every count there")
    parser.add_argument("--unknown", action="store_true", help="add what nobody knows to each accepted file: each must be reported")
    parser.add_argument("--import", dest="imported", action="store_true", help="let bpmn-js import each accepted file, in Chromium")
    parser.add_argument("--effect", action="store_true", help="change what was read: what has no effect is listed, to be looked at")
    return parser.parse_args(arguments)


def _told(which: str, counted: list[Counted]) -> str:
    used, drawn, reported, left = (
        sum(numbers) for numbers in zip(*((c.used, c.drawn, c.reported, len(c.left)) for c in counted), strict=True)
    )
    return f"{which}: {len(counted)} files: {used} used, {drawn} drawing, {reported} reported, {left} unaccounted"


def _list(title: str, what: list[str]) -> None:
    print(f"{title}: {len(what)}")
    for each in what[:SHOWN]:
        print(f"  {each}")
    if len(what) > SHOWN:
        print(f"  and {len(what) - SHOWN} more")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
