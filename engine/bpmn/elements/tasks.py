"""Tasks other than user and service tasks: abstract, manual, send, receive, script, business rule (BPMN 2.0.2, 10.3.3)."""

from __future__ import annotations

from engine.bpmn import message_flows, names, stand_ins
from engine.bpmn.context import MAX_NAME, Context, named
from engine.bpmn.definition import DecisionConfig, MessageConfig, ReceiveTaskConfig, ScriptConfig, ServiceTaskConfig
from engine.bpmn.elements import business_rule, events, service_task, throwing
from engine.bpmn.languages import FEEL, JUEL, named_language
from engine.bpmn.mappings import inputs, outputs
from engine.bpmn.names import CAMUNDA_LIKE, JBPM, ZEEBE, Element
from engine.bpmn.support import Supported, register
from engine.expressions import Expression


def register_all() -> None:
    register("task", Supported("task", "activity", parse_task, conditional=True))
    register("manualTask", Supported("manual_task", "activity", parse_nothing, conditional=True))
    register("sendTask", Supported("send_task", "activity", parse_send, conditional=True))
    register("receiveTask", Supported("receive_task", "activity", parse_receive, conditional=True))
    register("scriptTask", Supported("script_task", "activity", parse_script, conditional=True, children=frozenset({"script"})))
    register("businessRuleTask", Supported("business_rule_task", "activity", parse_rule, conditional=True))


def parse_nothing(element: Element, context: Context) -> None:
    """Abstract and manual tasks do nothing that an engine could see (10.3.3.5): they have no configuration."""


def parse_task(element: Element, context: Context) -> ServiceTaskConfig | None:
    """A task of no type is abstract; with a `drools:taskName` it is a work item of jBPM, which a handler of that name does."""
    name = " ".join((context.attribute(element, "taskName", JBPM) or "").split())
    if not name:
        return None
    stand_ins.handler(element, f"{named(element)} is the work item {name!r}, which is not run", name, context)
    return service_task.configured(element, ("handler", name), context)


def parse_send(element: Element, context: Context) -> ServiceTaskConfig | ScriptConfig | MessageConfig | None:
    """Bound as a service task is, or else its message goes to the message's destination, or to our own processes (10.3.3.2)."""
    names_one = names.reference(element.attrib.get("messageRef")) is not None or message_flows.lead_from(element, context)
    if names_one and not service_task.is_bound(element, context):
        return throwing.sent_message(element, context)
    return service_task.parse(element, context)


def parse_receive(element: Element, context: Context) -> ReceiveTaskConfig:
    """10.3.3.3."""
    found = events.message_of(element, element, context)
    return ReceiveTaskConfig(found, instantiate=names.flag(element.get("instantiate"), default=False))


def parse_rule(element: Element, context: Context) -> DecisionConfig | ServiceTaskConfig | ScriptConfig | None:
    """It calls a decision, or is bound as a service task is (10.3.3.4)."""
    if business_rule.calls_decision(element, context) and not service_task.is_bound(element, context):
        return business_rule.parse(element, context)
    return service_task.parse(element, context)


# ---- script tasks


def parse_script(element: Element, context: Context) -> ServiceTaskConfig | ScriptConfig | None:
    """Bound as a service task is, or else one expression (10.3.3.6). Other languages are not run: they need a handler."""
    if service_task.is_bound(element, context):
        return service_task.parse(element, context)
    if (zeebe := context.extension(element, "script", ZEEBE)) is not None:
        expression = _expression(element, zeebe.get("expression"), FEEL, context)
        return _evaluated(element, expression, zeebe.get("resultVariable"), context)
    script = next(names.bpmn(element, "script"), None)
    text = names.text(script).strip() if script is not None else ""
    if (elsewhere := _elsewhere(element, text, context)) is not None:
        return service_task.stood_in(element, f"{named(element)} {elsewhere}", context)
    expression = _expression(element, text, _language(element, text), context)
    variable = context.attribute(element, "resultVariable", names.BATON, *CAMUNDA_LIKE)
    return _evaluated(element, expression, variable, context)


def _elsewhere(element: Element, text: str, context: Context) -> str | None:
    """Why the script is not one of ours, as the end of a sentence: another language, a file, or no language named and no expression."""
    language = _language(element, text)
    if (resource := context.attribute(element, "resource", *CAMUNDA_LIKE)) is not None and not text:
        return f"has its script in {resource[:80]}, which is not read"
    if not text:
        return "says nowhere what it does"
    if language not in (FEEL, JUEL):
        return f"has a script in {language[:80]}, which is not run"
    if not element.get("scriptFormat") and language == JUEL and "${" not in text and "#{" not in text:
        return f"has the script {text[:80]!r} in no language, which is not run"
    return None


def _evaluated(element: Element, expression: Expression | None, variable: str | None, context: Context) -> ScriptConfig | None:
    """An expression of ours, and where its value goes."""
    if expression is None:
        return None  # named already
    variable = (variable or "").strip()
    if len(variable) > MAX_NAME:
        context.problem(element, f"{named(element)} has too long a resultVariable", f"a name of at most {MAX_NAME} characters")
    if not variable:
        context.warn(element, f"{named(element)} has no resultVariable: its value is kept nowhere", "the name of a variable, or no script")
    return ScriptConfig(expression, variable, inputs=inputs(element, context), outputs=outputs(element, context))


def _language(element: Element, text: str) -> str:
    """What scriptFormat says, or the text shows: juel, feel, or a language that is not run."""
    given = (element.get("scriptFormat") or "").strip()
    if not given:
        return FEEL if text.strip().startswith("=") else JUEL
    return named_language(given) or given


def _expression(element: Element, text: str | None, language: str, context: Context) -> Expression | None:
    source = (text or "").strip()
    expression = context.expression(element, source, f"the script of {named(element)}", language=language)
    if expression is not None and expression.is_constant and language == JUEL:
        context.warn(element, f"the script of {named(element)} is the text {source[:80]!r}", "an expression such as ${amount * 2}")
    return expression
