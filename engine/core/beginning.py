"""How an instance begins: with one token at a start event (13.2), whoever started it."""

from __future__ import annotations

from collections.abc import Mapping

from engine.bpmn.definition import event_of
from engine.core.data import outward
from engine.core.event_subprocesses import listen
from engine.core.run import Run
from engine.core.state import Scope
from engine.core.values import Variable, typed


def begin_instance(run: Run, process: Scope, element_id: str, variables: Mapping[str, Variable], what: str) -> None:
    """The instance of a process scope that was just opened begins at its start event. `what` started it: none, timer, ..., call."""
    instance = process.instance
    node = instance.definition.nodes[element_id]
    event = event_of(instance.definition, node)
    run.record(process, "instance_started", event.id, {"what": what, "business_key": instance.business_key})
    values = dict(variables)
    if getattr(node.config, "initiator", None):
        values[node.config.initiator] = typed(instance.started_by)
    run.assign_here(process, outward(run, process, event, values), event.id)
    listen(run, process)
    run.begin_at(process, node.id)
