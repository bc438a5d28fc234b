"""Which forms the elements of a process refer to, and what an author should know of them at deployment."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

from engine.bpmn.definition import Node, Problem, ProcessDefinition, StartConfig, UserTaskConfig
from engine.bpmn.parts import FormReference
from engine.forms.definition import Form
from engine.forms.reader import ReadForms, read_forms


@dataclass(frozen=True, slots=True)
class FormsThere:
    """The keys of the forms that are deployed, and the names of their files."""

    keys: Container[str] = ()
    files: Container[str] = ()


def reference_of(node: Node) -> FormReference | None:
    """The form that an element refers to."""
    return node.config.form if isinstance(node.config, StartConfig | UserTaskConfig) else None


def references_of(definition: ProcessDefinition) -> Iterator[tuple[Node, FormReference]]:
    """The elements of a process that refer to a form."""
    for node in definition.nodes.values():
        if (reference := reference_of(node)) is not None:
            yield node, reference


def named_by(definition: ProcessDefinition) -> Iterator[tuple[Node, str]]:
    """The elements that name a form outright, each with its key or its file."""
    for node, reference in references_of(definition):
        if reference.file:
            yield node, reference.file
        elif reference.key is not None and reference.key.is_constant:
            yield node, str(reference.key.evaluate({}))


def keys_and_files(definition: ProcessDefinition) -> tuple[set[str], set[str]]:
    """The forms that a process names outright, by key and by file; what an expression names is known when it runs."""
    keys = {str(each.key.evaluate({})) for _, each in references_of(definition) if each.key is not None and each.key.is_constant}
    return keys, {each.file for _, each in references_of(definition) if each.file}


def embedded_form(reference: FormReference) -> ReadForms:
    """The form that stands in the model itself."""
    return read_forms([(reference.name, (reference.embedded or "").encode())])


def form_in(reference: FormReference) -> Form | None:
    """The same, if all of it can be shown."""
    read = embedded_form(reference)
    return None if read.problems else read.files[0].form


def formed_in_vain(definition: ProcessDefinition, there: FormsThere, file: str | None = None) -> tuple[Problem, ...]:
    """A warning for each form that is not deployed, and for what an embedded one has that is not shown."""
    missing = [problem for node, reference in references_of(definition) for problem in _missing(node, reference, there, file)]
    return (*missing, *embedded_in_vain(definition, file))


def embedded_in_vain(definition: ProcessDefinition, file: str | None = None) -> tuple[Problem, ...]:
    """The part of it for which nothing need be deployed."""
    embedded = [(node, reference) for node, reference in references_of(definition) if reference.embedded is not None]
    return tuple(problem for node, reference in embedded for problem in _embedded(node, reference, file))


def _missing(node: Node, reference: FormReference, there: FormsThere, file: str | None) -> list[Problem]:
    key = str(reference.key.evaluate({})) if reference.key is not None and reference.key.is_constant else None
    what = ""
    if key is not None and key not in there.keys:
        what = f"refers to the form {key!r}, which is not deployed"
    if reference.file and reference.file not in there.files:
        what = f"refers to the form in {reference.file!r}, which is not deployed"
    why = "that form: until it is there, the page says that it is missing"
    return [Problem(node.id, node.line, f"{node.name or node.id} {what}", why, file)] if what else []


def _embedded(node: Node, reference: FormReference, file: str | None) -> list[Problem]:
    read = embedded_form(reference)
    found = [Problem(node.id, node.line, f"the form of {node.name or node.id}: {each.what}", each.why, file) for each in read.warnings]
    if read.problems:
        first = read.problems[0]
        what = f"the form {reference.name!r} of {node.name or node.id} is not shown: {first.what}"
        found.append(Problem(node.id, node.line, what, first.why, file))
    return found
