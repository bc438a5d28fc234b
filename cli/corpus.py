"""`make corpus DIR=…`, `baton corpus`: what the reader says to every model of a folder, and the reasons that keep most of them out."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from engine.bpmn.names import BPMN
from engine.bpmn.reader import read_files
from engine.bpmn.xml import Unreadable, parse_xml

ENDINGS = (".bpmn", ".bpmn20.xml", ".bpmn2")
SLOW = 5.0  # seconds that no file may take
SHOWN = 20  # reasons
VERDICTS = ("accepted", "accepted with warnings", "refused", "crashed")

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|\b\d[\d,.]*")
_BROKEN = re.compile(r"invalid|broken|malformed|incorrect|wrong", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Read:
    """One file. `reasons` are the problems with ids and numbers left out, each once."""

    file: str
    verdict: str
    seconds: float
    counts: bool  # executable and well-formed: see `_counts`
    reasons: tuple[str, ...]
    problems: tuple[dict[str, Any], ...] = ()
    warnings: tuple[dict[str, Any], ...] = ()


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--json", "report", type=click.Path(dir_okay=False, path_type=Path), help="Write what was said to every file there.")
def corpus(folder: Path, report: Path | None) -> int:
    """Read every model below FOLDER. Exit code 1 if the reader crashed, or took more than five seconds."""
    found = [_read(path, folder) for path in files_below(folder)]
    if not found:
        raise click.ClickException(f"{folder}: expected files that end in {', '.join(ENDINGS)}, found none")
    summary = _summary(found)
    for line in _told(summary):
        click.echo(line)
    if report is not None:
        told = {"folder": str(folder), **summary, "files": [asdict(each) for each in found]}
        report.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return 1 if summary["verdicts"]["crashed"] or summary["slow"] else 0


def files_below(folder: Path, endings: tuple[str, ...] = ENDINGS) -> list[Path]:
    """Every file below a folder whose name ends so, by name."""
    return [path for path in sorted(folder.rglob("*")) if path.name.lower().endswith(endings) and path.is_file()]


def _read(path: Path, folder: Path) -> Read:
    content, name = path.read_bytes(), str(path.relative_to(folder))
    begun = time.perf_counter()
    try:
        result = read_files([(name, content)])
    except Exception as crash:  # to be counted and named is what this command is for
        said = f"{type(crash).__name__}: {crash}"
        return Read(
            name, "crashed", time.perf_counter() - begun, _counts(path, content), (f"crash: {type(crash).__name__}",), ({"what": said},)
        )
    seconds = time.perf_counter() - begun
    verdict = "refused" if result.problems else "accepted with warnings" if result.warnings else "accepted"
    reasons = tuple(dict.fromkeys(_reason(problem.what) for problem in result.problems))
    problems, warnings = (tuple(asdict(each) for each in several) for several in (result.problems, result.warnings))
    return Read(name, verdict, seconds, _counts(path, content), reasons, problems, warnings)


def _counts(path: Path, content: bytes) -> bool:
    """Executable, well-formed: XML that may be read, with a process that says isExecutable="true", in a file whose name does not say
    that it was broken on purpose. What was only drawn says false, or nothing.
    """
    if _BROKEN.search(path.name):
        return False
    try:
        root = parse_xml(content)
    except Unreadable:
        return False
    return any((process.get("isExecutable") or "").strip() in ("true", "1") for process in root.iter(f"{{{BPMN}}}process"))


def _reason(what: str) -> str:
    return _QUOTED.sub("…", what)[:120]


def _summary(found: list[Read]) -> dict[str, Any]:
    counted = [each for each in found if each.counts]
    taken = sum(each.verdict.startswith("accepted") for each in counted)
    seconds = sum(each.seconds for each in found)
    verdicts = Counter(each.verdict for each in found)
    slowest = max(found, key=lambda each: each.seconds)
    return {
        "read": len(found),
        "verdicts": {verdict: verdicts[verdict] for verdict in VERDICTS},
        "executable": len(counted),
        "executable_accepted": taken,
        "executable_share": round(taken / len(counted), 4) if counted else None,
        "files_a_minute": round(60 * len(found) / seconds) if seconds else None,
        "slowest": {"file": slowest.file, "seconds": round(slowest.seconds, 3)},
        "slow": [each.file for each in found if each.seconds > SLOW],
        "reasons": dict(Counter(reason for each in found for reason in each.reasons).most_common()),
        "executable_reasons": dict(Counter(reason for each in counted for reason in each.reasons).most_common()),
    }


def _told(summary: dict[str, Any]) -> Iterator[str]:
    yield f"{summary['read']} files: " + ", ".join(f"{number} {verdict}" for verdict, number in summary["verdicts"].items())
    if summary["executable"]:
        share = f"{100 * summary['executable_share']:.1f} %"
        yield f"executable and well-formed: {summary['executable']}, accepted {summary['executable_accepted']} ({share})"
    yield f"{summary['files_a_minute']} files a minute, slowest {summary['slowest']['file']} in {summary['slowest']['seconds']} s"
    yield from (f"over {SLOW:.0f} s: {file}" for file in summary["slow"])
    for reason, number in list(summary["reasons"].items())[:SHOWN]:
        yield f"{number:5} ({summary['executable_reasons'].get(reason, 0)} executable)  {reason}"
