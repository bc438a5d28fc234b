"""What a process calls by a key that its file says outright; what an expression names is known when it runs."""

from __future__ import annotations

from collections.abc import Container, Iterator

from engine.bpmn.definition import CallConfig, Node, Problem, ProcessDefinition


def calls_of(definition: ProcessDefinition) -> Iterator[tuple[Node, str]]:
    """The call activities of a process whose called key is text, with that key."""
    for node in definition.nodes.values():
        if isinstance(node.config, CallConfig) and node.config.process.is_constant:
            yield node, str(node.config.process.evaluate({}))


def called_in_vain(definition: ProcessDefinition, deployed: Container[str], file: str | None = None) -> tuple[Problem, ...]:
    """A warning for each call of a process that is not deployed: an instance that comes there has an incident until it is."""
    what, why = "{} calls the process {!r}, which is not deployed", "that process, or an incident of every case that comes there"
    return tuple(
        Problem(node.id, node.line, what.format(node.name or node.id, key), why, file)
        for node, key in calls_of(definition)
        if key not in deployed
    )
