"""Events in words: what an event of a model waits for or throws, by the names that its author gave (10.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.bpmn.definition import CallConfig, DecisionConfig, MessageConfig, Node, ProcessDefinition, ThrowConfig, events_in


def kind_with_event(model: ProcessDefinition, node: Node) -> str | None:
    """What the element is, with its event or what it calls; None for one that has neither."""
    config = node.config
    if isinstance(config, CallConfig):
        return f"Calls {config.process.text}"
    if isinstance(config, DecisionConfig):
        return f"Decides by {config.decision.text}"
    if node.kind == "send_task" and isinstance(config, MessageConfig):
        return f"Sends message {config.name.text}"
    told = event_words(model, node)
    if not told:
        return "Passed without waiting" if isinstance(config, ThrowConfig) else None
    match node.kind:
        case "start_event":
            return f"Start on {told}"
        case "end_event":
            return f"End with {told}"
        case "intermediate_catch_event" if config.link is not None:
            return f"Goes on from {told}"
        case "intermediate_catch_event" | "receive_task":
            return f"Waits for {told}"
        case "intermediate_throw_event" if config.link is not None:
            return f"Goes to {told}"
        case "intermediate_throw_event":
            return f"Throws {told}"
        case _:
            return None


def event_words(model: ProcessDefinition, node: Node) -> str:
    """ "message ORDER or timer PT1H"; nothing for an element without an event."""
    parts = events_in(node.config)
    together = getattr(node.config, "parallel", False) or node.kind in ("end_event", "intermediate_throw_event")
    return (" and " if together else " or ").join(words for part in parts if (words := _one(model, part)))


def _one(model: ProcessDefinition, config: Any) -> str:
    found = {name: value for name in WORDS if (value := getattr(config, name, None)) is not None and value is not False}
    return next((WORDS[name](model, value) for name, value in found.items()), "")


def _compensation(model: ProcessDefinition, value: Any) -> str:
    activity = model.nodes.get(getattr(value, "activity", None) or "")
    return f"compensation of {activity.name or activity.id}" if activity else "compensation"


def _coded(word: str, value: Any) -> str:
    """Errors and escalations: their code is text where they are thrown; a catch without one catches all."""
    code = value if isinstance(value, str) else value.code
    return f"{word} {code}" if code else f"an {word}" if isinstance(value, str) else f"any {word}"


WORDS: dict[str, Callable[[ProcessDefinition, Any], str]] = {
    "message": lambda _, value: f"message {value.name.text}",
    "signal": lambda _, value: f"signal {value.name.text}",
    "timer": lambda _, value: f"timer {value.expression.text}",
    "condition": lambda _, value: f"condition {value.expression.text}",
    "link": lambda _, value: f"link {value}",
    "error": lambda _, value: _coded("error", value),
    "escalation": lambda _, value: _coded("escalation", value),
    "compensate": _compensation,
    "cancel": lambda _, __: "cancellation of the transaction",
    "terminate": lambda _, __: "the end of everything around it",
}
