"""Global tasks (BPMN 2.0.2, 10.3.7): tasks beside the processes, which call activities call. Each is read as a process of that task alone.

Its key is the task's id. Nobody starts it but a call: people who start processes do not see it.
"""

from __future__ import annotations

from copy import deepcopy

from lxml import etree

from engine.bpmn import names
from engine.bpmn.context import Context, named
from engine.bpmn.names import BPMN, Element

TASKS = {
    "globalTask": "task",
    "globalManualTask": "manualTask",
    "globalUserTask": "userTask",
    "globalScriptTask": "scriptTask",
    "globalBusinessRuleTask": "businessRuleTask",
}
OF_CALLABLES = frozenset({"supportedInterfaceRef", "ioBinding"})  # of services around the engine


def processes_of(root: Element, context: Context) -> list[Element]:
    """A process for each global task of a file: a start, the task, an end."""
    return [_process(task, context) for task in names.bpmn(root, *TASKS) if _has_id(task, context)]


def _has_id(task: Element, context: Context) -> bool:
    if (task.get("id") or "").strip():
        return True
    context.problem(task, f"{named(task)} has no id", "an id: call activities call it by that")
    return False


def _process(task: Element, context: Context) -> Element:
    key = str(task.get("id")).strip()
    process = _element("process", task, id=key, name=task.get("name") or key)
    inner = deepcopy(task)
    context.stands_for(inner, task)
    language = inner.get("scriptLanguage")
    if language is not None and inner.get("scriptFormat") is None:  # 10.3.7 has another name for it than 10.3.3.6
        inner.set("scriptFormat", language)
    inner.tag = f"{{{BPMN}}}{TASKS[names.local(task)]}"
    for child in list(names.elements(inner)):
        if names.namespace(child) == BPMN and names.local(child) in OF_CALLABLES:
            inner.remove(child)
    start, end = f"{key}.start", f"{key}.end"
    process.extend(
        (
            _element("startEvent", task, id=start),
            _element("sequenceFlow", task, id=f"{key}.in", sourceRef=start, targetRef=key),
            inner,
            _element("sequenceFlow", task, id=f"{key}.out", sourceRef=key, targetRef=end),
            _element("endEvent", task, id=end),
        )
    )
    return process


def _element(tag: str, task: Element, **attributes: str) -> Element:
    made = etree.Element(f"{{{BPMN}}}{tag}", attributes, nsmap=dict(task.nsmap))  # type: ignore[arg-type]  # lxml takes the None of a default namespace
    made.sourceline = task.sourceline
    return made
