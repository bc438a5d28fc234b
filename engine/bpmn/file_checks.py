"""Rules over a whole file: what flows leave out, data, services, participants. They look at the XML, whatever else is refused.

What the standard asks of executable processes and the vendors' engines do not (decision 0050) is asked of files that speak
the standard alone: those that declare no namespace of a vendor whose attributes we read, nor ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.bpmn import data_checks, flow_checks, names, participant_checks, service_checks
from engine.bpmn.context import Context, named
from engine.bpmn.names import BPMN, XSI, Element
from engine.bpmn.whole_file import Rule, Whole

STRICT = (*data_checks.STRICT, *service_checks.STRICT, *participant_checks.STRICT)


def check_file(root: Element, processes: Sequence[Element], context: Context) -> None:
    """Every rule over the file."""
    whole = Whole.of(root, processes, context)
    strict = () if context.by_a_vendor else (_process_types, _formal_expressions, _script_formats, *flow_checks.RULES, *STRICT)
    for rule in (*RULES, *strict, *data_checks.RULES, *service_checks.RULES, *participant_checks.RULES):
        rule(whole)


# ---- processes and expressions

_MIME_SIGNS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.+-_*")
_EXPRESSIONS = (
    "conditionExpression",
    "condition",
    "timeDate",
    "timeDuration",
    "timeCycle",
    "loopCondition",
    "loopCardinality",
    "completionCondition",
    "from",
    "to",
)


def _process_types(whole: Whole) -> None:
    """10.2: a public process shows what others see of it; it is not executed."""
    for process in whole.processes:
        if process.get("processType") == "Public" and names.flag(process.get("isExecutable"), default=False):
            whole.problem(process, "is executable and has the processType Public", "Private, None, or no processType")


def _formal_expressions(whole: Whole) -> None:
    """8.3.6: an expression that does not say FormalExpression is natural language, which nobody can evaluate."""
    for process in whole.processes:
        if not names.flag(process.get("isExecutable"), default=False):
            continue
        for tag in _EXPRESSIONS:
            for expression in process.iter(f"{{{BPMN}}}{tag}"):
                if "FormalExpression" not in (expression.get(f"{{{XSI}}}type") or ""):
                    what = f"{tag} of {named(_owner(expression))} is natural language"
                    whole.context.problem(expression, what, 'xsi:type="tFormalExpression": the process is executable')


_LANGUAGES = frozenset(("feel", "groovy", "java", "javascript", "js", "juel", "kotlin", "mvel", "python", "ruby", "uel", "xpath"))


def _script_formats(whole: Whole) -> None:
    """10.3.3.6: a script says in which language it is, by a MIME type. What tools write instead is known by its name."""
    for task in whole.within("scriptTask"):
        given = task.get("scriptFormat")
        if given is None and next(names.bpmn(task, "script"), None) is not None:
            whole.problem(task, "has a script and no scriptFormat", "a MIME type such as text/x-feel, or the name of a language")
        elif given is not None and given.strip().lower() not in _LANGUAGES and not _is_mime(given):
            whole.problem(task, f"has the scriptFormat {given!r}", "a MIME type such as text/x-feel, or the name of a language")


def _owner(element: Element) -> Element:
    """The nearest element around it with an id."""
    around = element.getparent()
    while around is not None and around.get("id") is None:
        around = around.getparent()
    return element if around is None else around


def _text_formats(whole: Whole) -> None:
    """8.3.1 and 8.3.2: the format of a documentation or an annotation is a MIME type."""
    for tag in ("documentation", "textAnnotation"):
        for element in whole.root.iter(f"{{{BPMN}}}{tag}"):
            text = element.get("textFormat")
            if text is not None and not _is_mime(text):
                whole.problem(element, f"has the textFormat {text!r}", "a MIME type such as text/plain")


def _is_mime(text: str) -> bool:
    kind, slash, rest = text.strip().lower().partition("/")
    subtype = rest.partition(";")[0].strip()
    return bool(slash and kind and subtype) and set(kind + subtype) <= _MIME_SIGNS


RULES: tuple[Rule, ...] = (_text_formats,)
