"""What a process names outright: called processes, decisions, handlers. What an expression names is known when it runs."""

from __future__ import annotations

from collections.abc import Container, Iterator

from engine.bpmn.definition import PART, CallConfig, DecisionConfig, Node, Problem, ProcessDefinition, ServiceTaskConfig


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


def decisions_of(definition: ProcessDefinition) -> Iterator[tuple[Node, str]]:
    """The tasks of a process that call a decision whose key is text, with that key."""
    for node in definition.nodes.values():
        if isinstance(node.config, DecisionConfig) and node.config.decision.is_constant:
            yield node, str(node.config.decision.evaluate({}))


def decided_in_vain(definition: ProcessDefinition, deployed: Container[str], file: str | None = None) -> tuple[Problem, ...]:
    """The same warning for a decision that is not deployed."""
    what, why = "{} calls the decision {!r}, which is not deployed", "that decision, or an incident of every case that comes there"
    return tuple(
        Problem(node.id, node.line, what.format(node.name or node.id, key), why, file)
        for node, key in decisions_of(definition)
        if key not in deployed
    )


def bound_in_vain(definition: ProcessDefinition, known: Container[str], file: str | None = None) -> tuple[Problem, ...]:
    """A warning for each handler that no worker knows now: its jobs wait, and say so, until one does."""
    what, why = "{} is bound to the handler {!r}, which no worker knows", "a worker that does; the job waits for it"
    return tuple(
        Problem(node.id.partition(PART)[0], node.line, what.format(node.name or node.id.partition(PART)[0], node.config.topic), why, file)
        for node in definition.nodes.values()
        if isinstance(node.config, ServiceTaskConfig) and node.config.work == "handler" and node.config.topic not in known
    )
