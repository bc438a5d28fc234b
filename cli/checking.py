"""`baton check`: everything that the reader and the rules of advice say to models, without a database."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from cli.corpus import ENDINGS as PROCESSES
from cli.corpus import files_below
from cli.database import as_json
from cli.needed import BROUGHT, Need, needs
from engine.bpmn.calls import bound_in_vain
from engine.bpmn.definition import Problem, ProcessDefinition
from engine.bpmn.lint import RULES, advise
from engine.bpmn.reader import ReadResult, read_files
from engine.dmn.reader import ENDINGS as DECISIONS
from engine.dmn.reader import is_decision_file, read_decisions
from engine.forms.reader import FormFile, is_form_file, read_forms
from engine.forms.references import embedded_in_vain

STDIN = "-"
ALL = (*PROCESSES, *DECISIONS, ".form")
NOT_DEPLOYED, NOT_UNDERSTOOD = "deployment", "reader"  # rules of findings that no rule of advice made


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the answer. `severity`: error (it is not deployed) or warning. `rule`: who found it."""

    severity: str
    rule: str
    file: str | None
    line: int | None
    element_id: str | None
    what: str
    why: str

    def __str__(self) -> str:
        where = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        element = f" {self.element_id}:" if self.element_id else ""
        return f"{where}: {self.severity}:{element} {self.what}; expected {self.why} [{self.rule}]"


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="FILE…", type=click.Path(exists=True, allow_dash=True, path_type=Path))
@click.option("--strict", is_flag=True, help="Warnings count: exit code 1 for them, too.")
@click.option("--apart", is_flag=True, help="Each file is a deployment of its own. Else all of them are one.")
@click.option("--handler", "handlers", multiple=True, metavar="NAME", help="A handler that workers have: others are warned about.")
@click.option("--without", multiple=True, metavar="RULE", type=click.Choice(sorted(RULES)), help="Leave out a rule of advice.")
@click.option(
    "--needs", "shows_needs", is_flag=True, help="What else is needed instead: handlers, topics, called processes, decisions, forms."
)
@as_json
def check(
    paths: tuple[Path, ...],
    strict: bool,
    apart: bool,
    handlers: tuple[str, ...],
    without: tuple[str, ...],
    shows_needs: bool,
    as_json: bool,
) -> None:
    """Say what would keep models from being deployed, and what may surprise those who run them.

    FILE is a model, a folder (every model below it), or - for standard input. Exit code 0: they may be deployed, 1: not, 2: wrong usage.
    """
    files = _files(paths)
    deployments = [[each] for each in files] if apart else [files]
    findings: list[Finding] = []
    good: list[str] = []
    processes: list[ProcessDefinition] = []
    decisions: list[str] = []
    forms: list[str] = []
    for deployment in deployments:
        result, tables, formed = _deployed_together(deployment, handlers)
        findings += _findings(result, deployment, without)
        keys = (*(definition.key for _, definition in result.definitions), *tables, *(file.form.key for file in formed))
        good += () if result.problems else keys
        processes, decisions = [*processes, *(definition for _, definition in result.definitions)], [*decisions, *tables]
        forms += [name for file in formed for name in (file.form.key, Path(file.name).name)]
    errors = [each for each in findings if each.severity == "error"]
    warnings = [each for each in findings if each.severity == "warning"]
    needed = needs(processes, decisions, handlers, forms)
    if as_json:
        told: dict[str, Sequence[Finding | Need]] = {"problems": errors, "warnings": warnings, "needs": needed}
        click.echo(json.dumps({name: [asdict(each) for each in several] for name, several in told.items()}, indent=2))
    elif shows_needs:
        _tell([*errors, *needed], ())
    else:
        _tell(findings, good)
    click.get_current_context().exit(1 if errors or (strict and warnings) else 0)


def _deployed_together(
    deployment: Sequence[tuple[str, bytes]], handlers: Sequence[str]
) -> tuple[ReadResult, list[str], Sequence[FormFile]]:
    """What the readers say of processes, decisions and forms, as one; the keys of the decisions, and the forms."""
    tables, forms = ([file for file in deployment if kind(file[0])] for kind in (is_decision_file, is_form_file))
    models = [file for file in deployment if not is_decision_file(file[0]) and not is_form_file(file[0])]
    read, decided, formed = read_files(models), read_decisions(tables), read_forms(forms)
    problems = () if deployment and not models else read.problems  # decisions and forms may be deployed alone
    embedded = (warning for file, each in read.definitions for warning in embedded_in_vain(each, file))
    unknown = (warning for file, each in read.definitions if handlers for warning in bound_in_vain(each, {*BROUGHT, *handlers}, file))
    warnings = (*read.warnings, *embedded, *unknown, *decided.warnings, *formed.warnings)
    together = ReadResult(read.definitions, (*problems, *decided.problems, *formed.problems), warnings)
    return together, [key for _, graph in decided.graphs for key in graph.decisions], formed.files


def _files(paths: Sequence[Path]) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for path in paths:
        try:
            found += _read(path)
        except OSError as problem:
            raise click.UsageError(f"{path}: {problem.strerror}") from problem
    return found


def _read(path: Path) -> list[tuple[str, bytes]]:
    if str(path) == STDIN:
        return [(STDIN, sys.stdin.buffer.read())]
    if not path.is_dir():
        return [(str(path), path.read_bytes())]
    return [(str(each), each.read_bytes()) for each in models_below(path)]


def models_below(folder: Path) -> list[Path]:
    """Every model, decision and form below a folder, by name. Raises UsageError where there is none."""
    models = files_below(folder, ALL)
    if not models:
        raise click.UsageError(f"{folder}: expected files that end in {', '.join(ALL)}, found none")
    return models


def _findings(result: ReadResult, deployment: Sequence[tuple[str, bytes]], without: Sequence[str]) -> list[Finding]:
    """Advice is given on files that may be deployed: where a flow is missing, every other rule would say so, too."""
    found = [_finding("error", NOT_DEPLOYED, problem) for problem in result.problems]
    found += [_finding("warning", NOT_UNDERSTOOD, warning) for warning in result.warnings]
    refused, contents = {problem.file for problem in result.problems}, dict(deployment)
    for file, definition in result.definitions:
        if file not in refused:
            found += [
                Finding("warning", each.rule, file, each.line, each.element_id, each.what, each.why)
                for each in advise(definition, contents[file], without=without)
            ]
    order = {file: number for number, (file, _) in enumerate(deployment)}
    return sorted(found, key=lambda each: (order.get(each.file or "", -1), each.line or 0, each.severity, each.element_id or ""))


def _finding(severity: str, rule: str, problem: Problem) -> Finding:
    return Finding(severity, rule, problem.file, problem.line, problem.element_id, problem.what, problem.why)


def _tell(findings: Sequence[Finding | Need], good: Sequence[str]) -> None:
    for finding in findings:
        click.echo(str(finding), err=isinstance(finding, Finding) and finding.severity == "warning")
    for key in good:
        click.echo(f"{key}: may be deployed")
