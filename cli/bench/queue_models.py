"""Models of `baton bench queue`: service tasks one after another; a timer."""

from __future__ import annotations

from itertools import pairwise

HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:baton="urn:baton:bpmn"'
    ' targetNamespace="urn:baton:bench">\n<process id="{key}" isExecutable="true">\n'
)
TAIL = "</process></definitions>\n"


def chain(key: str, topic: str, length: int) -> bytes:
    """A start event, so many service tasks with this handler, an end event."""
    nodes = [f'<serviceTask id="task{n}" baton:handler="{topic}"/>' for n in range(1, length + 1)]
    return _process(key, nodes, [f"task{n}" for n in range(1, length + 1)])


def timed(key: str, seconds: float) -> bytes:
    """A start event, a timer, an end event."""
    timer = (
        '<intermediateCatchEvent id="wait"><timerEventDefinition>'
        f"<timeDuration>PT{seconds:g}S</timeDuration></timerEventDefinition></intermediateCatchEvent>"
    )
    return _process(key, [timer], ["wait"])


def _process(key: str, nodes: list[str], between: list[str]) -> bytes:
    path = ["start", *between, "end"]
    flows = [f'<sequenceFlow id="f{n}" sourceRef="{a}" targetRef="{b}"/>' for n, (a, b) in enumerate(pairwise(path), 1)]
    body = ['<startEvent id="start"/>', *nodes, '<endEvent id="end"/>', *flows]
    return (HEAD.format(key=key) + "\n".join(body) + "\n" + TAIL).encode()
