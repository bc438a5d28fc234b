"""BPMN files -> frozen process definitions, or every reason why not. The one reader for every path.

It owns files and what lies in them beside the processes. Each process is read by `process.py`; what elements of a file refer to is in
`references.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.bpmn import elements, global_tasks, multiple, names, root_elements, support, unread
from engine.bpmn.context import Context, in_order, named
from engine.bpmn.definition import Problem, ProcessDefinition
from engine.bpmn.file_checks import check_file
from engine.bpmn.names import BPMN, Element
from engine.bpmn.noted import asked, note
from engine.bpmn.process import read_process
from engine.bpmn.references import Places, check_ids, name_flows, resolve_event_definitions
from engine.bpmn.xml import Unreadable, parse_xml

elements.load()
multiple.register_all()

MAX_ELEMENTS = 20_000  # nodes, flows, and what they directly hold, of all executable processes of a file


@dataclass(frozen=True, slots=True)
class ReadResult:
    """`definitions` are complete and right only if `problems` is empty; they come in the order of the files."""

    definitions: tuple[tuple[str, ProcessDefinition], ...]
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


def read_files(files: Sequence[tuple[str, bytes]], *, stored: bool = False) -> ReadResult:
    """Read the files of one deployment. Never raises for what they contain. `stored`: they were deployed before."""
    return _read([(Context(file, stored=stored), content) for file, content in files])


def read_noting(file: str, content: bytes) -> tuple[ReadResult, tuple[frozenset[str], ...]]:
    """One file, and what was asked of each of its elements, in document order (`noted.py`). Nothing of a file that is no XML."""
    context = Context(file)
    result = _read([(context, content)])
    return result, tuple(frozenset(asked(element)) for element in context.elements)


def _read(files: Sequence[tuple[Context, bytes]]) -> ReadResult:
    definitions: list[tuple[str, ProcessDefinition]] = []
    problems: list[Problem] = []
    warnings: list[Problem] = []
    for context, content in files:
        file = context.file or ""
        definitions += [(file, definition) for definition in _read_file(file, content, context)]
        problems += in_order(context.problems) + context.left_out("problems")
        warnings += in_order(context.warnings) + context.left_out("warnings")
    if not files:
        problems.append(Problem(None, None, "there is no file", "at least one BPMN file"))
    problems += _keys_used_twice(definitions)
    return ReadResult(tuple(definitions), tuple(problems), tuple(warnings))


def _keys_used_twice(definitions: list[tuple[str, ProcessDefinition]]) -> list[Problem]:
    used = Counter(definition.key for _, definition in definitions)
    return [
        Problem(
            definition.key,
            definition.line,
            f"{used[definition.key]} processes have the id {definition.key!r}",
            "an id of its own for each process",
            file,
        )
        for file, definition in definitions
        if used[definition.key] > 1
    ]


def _read_file(file: str, content: bytes, context: Context) -> list[ProcessDefinition]:
    try:
        root = parse_xml(content, file=file)
    except Unreadable as unreadable:
        context.problems.append(unreadable.problem)
        return []
    context.elements = list(root.iter())
    if root.tag != f"{{{BPMN}}}definitions":
        context.problem(root, f"the root element is {names.shown(str(root.tag))}", f"definitions, in the namespace {BPMN}")
        return []
    note(root)
    processes = _processes(root, context)
    for child in names.elements(root):
        if names.namespace(child) == BPMN and names.local(child) not in support.ROOT_ELEMENTS:
            context.problem(child, f"{named(child)} is not an element that definitions may hold", "a process, or what processes refer to")
    root_elements.index(root, context)
    resolve_event_definitions(root, processes, context)
    name_flows(root, processes)
    tasks = global_tasks.processes_of(root, context)
    places = Places.of([*processes, *tasks])
    if places.count > MAX_ELEMENTS:
        context.problem(root, f"the processes have {places.count:,} elements", f"at most {MAX_ELEMENTS:,}")
        return []
    check_ids(root, processes, context)
    check_file(root, processes, context)
    found = [read_process(process, places, context) for process in processes]
    called = [read_process(process, places, context) for process in tasks]
    alone = [replace(definition, called_only=True) for definition in called if definition is not None]
    definitions = [*(definition for definition in found if definition is not None), *alone]
    context.count_copies()
    unread.report(root, context)
    return _with_warnings_of_the_file(definitions, context)


def _with_warnings_of_the_file(definitions: list[ProcessDefinition], context: Context) -> list[ProcessDefinition]:
    """What lies beside the processes is told with the first of them: deployments show the warnings of definitions."""
    told = {warning for definition in definitions for warning in definition.warnings}
    rest = [warning for warning in context.warnings if warning not in told]
    return [replace(first, warnings=tuple(in_order([*first.warnings, *rest]))) for first in definitions[:1]] + definitions[1:]


def _processes(root: Element, context: Context) -> list[Element]:
    """The executable processes. One that does not say so counts as executable."""
    every = list(names.bpmn(root, "process"))
    executable = []
    for process in every:
        text = process.get("isExecutable")
        if text is not None and text.strip() not in ("true", "false", "1", "0"):
            context.problem(process, f"{named(process)} has isExecutable {text!r}", "true or false")
        if names.flag(text, default=True):
            executable.append(process)
    if not every:
        context.problem(root, "the file has no process", "at least one executable process")
        for other in names.bpmn(root, *support.DRAWN):
            context.problem(other, f"{named(other)} is drawn, and nothing runs it", "a process beside it")
    elif not executable:
        context.problem(every[0], "the file has no executable process", 'at least one process with isExecutable="true"')
    return executable
