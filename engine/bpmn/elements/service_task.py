"""Service task (BPMN 2.0.2, 10.3.3.1): bound to a handler, to a topic of external workers, or to a delivery."""

from __future__ import annotations

from engine.bpmn import connectors, destinations, exclusive, java, names, operations, stand_ins
from engine.bpmn.context import MAX_NAME, Context, named
from engine.bpmn.definition import DecisionConfig, ScriptConfig, ServiceTaskConfig
from engine.bpmn.elements import business_rule
from engine.bpmn.fields import fields
from engine.bpmn.headers import headers
from engine.bpmn.mappings import Mappings, inputs, outputs
from engine.bpmn.names import CAMUNDA_LIKE, ZEEBE, Element
from engine.bpmn.retries import policy_of
from engine.bpmn.support import Supported, register
from engine.bpmn.times import DurationTimer, TimerError, parse_timer

DELIVERIES = {"http.deliver": ("url", "destination"), "mail.send": ("to",)}  # topic: inputs of which one must be given
DEFAULT_ATTEMPTS = {"handler": 3, "external": 3, "deliver": 8}
EXTERNAL = ("external", "external-worker")


def register_all() -> None:
    register("serviceTask", Supported("service_task", "activity", parse_service, conditional=True))


def parse_service(element: Element, context: Context) -> ServiceTaskConfig | ScriptConfig | DecisionConfig | None:
    """As `parse`, or a call of a decision as Flowable writes it."""
    return business_rule.parse_flowable(element, context) if business_rule.is_flowable(element) else parse(element, context)


def parse(element: Element, context: Context) -> ServiceTaskConfig | ScriptConfig | None:
    """Bound to whoever does its work, or else an expression (`camunda:expression`) that is evaluated at once."""
    evaluated = None if _is_bound_here(element, context) else java.evaluated(element, context)
    if evaluated is not None:
        return evaluated
    return configured(element, _binding(element, context), context)


def stood_in(element: Element, what: str, context: Context) -> ServiceTaskConfig | None:
    """A task whose work the model leaves to another engine, or does not name: a handler of its id does it."""
    name = stand_ins.handler(element, what, str(element.get("id")), context)
    return configured(element, _named("handler", name, "id", element, context), context)


def configured(element: Element, binding: tuple[str, str] | None, context: Context) -> ServiceTaskConfig | None:
    """A task that is bound to (work, topic)."""
    given, produced = (*fields(element, context), *inputs(element, context)), outputs(element, context)
    returned: Mappings = ()
    if (called := connectors.of(element, context)) is not None:
        given += connectors.inputs(called, element, context)
        returned = connectors.outputs(called, element, context)
    given = tuple(dict(given).items())  # a later one of a name goes before an earlier one
    given_retries = _retry(element, context)
    lease = _lease_seconds(element, context)
    if binding is None:
        return None
    work, topic = binding
    retry, attempts = policy_of(element, given_retries, named(element), DEFAULT_ATTEMPTS[work], context)
    priority = context.expression(element, _priority(element, work, context), f"the priority of {named(element)}")
    name, key = destinations.of_task(element, work, context)
    wanted = DELIVERIES.get(topic, ()) if work == "deliver" and not (name and topic == "http.deliver") else ()
    if wanted and not {name for name, _ in given} & set(wanted):
        context.problem(
            element, f"{named(element)} is bound to {topic} and has no input {wanted[0]!r}", f"an inputParameter {' or '.join(wanted)}"
        )
    return ServiceTaskConfig(
        work=work,
        topic=topic,
        inputs=given,
        outputs=produced or returned,
        returned=returned if produced else (),
        retry=retry,
        max_attempts=attempts,
        priority=priority,
        lease_seconds=lease,
        headers=headers(element, context),
        exclusive=exclusive.of(element, work, context),
        destination_name=name,
        ordering_key=key,
    )


def is_bound(element: Element, context: Context) -> bool:
    """Whether the task says who does its work, rightly or not."""
    return _is_bound_here(element, context) or java.is_bound(element)


def _is_bound_here(element: Element, context: Context) -> bool:
    """By a name that is meant for workers. It goes before Java, so that one model can serve two engines."""
    given = context.attribute(element, "handler", names.BATON), context.attribute(element, "type", *CAMUNDA_LIKE)
    extension = context.extension(element, "taskDefinition", ZEEBE)
    return extension is not None or any(value is not None for value in given)


def _binding(element: Element, context: Context) -> tuple[str, str] | None:
    """(work, topic) of the one way in which the task is bound."""
    handler = context.attribute(element, "handler", names.BATON)
    zeebe = context.extension(element, "taskDefinition", ZEEBE)
    kind, topic = context.attribute(element, "type", *CAMUNDA_LIKE), context.attribute(element, "topic", *CAMUNDA_LIKE)
    if handler is not None:
        return _named("handler", handler, "baton:handler", element, context)
    if kind in EXTERNAL:
        return _named("external", topic, "camunda:topic", element, context)
    if zeebe is not None:
        return _named("handler", zeebe.get("type"), "the type of zeebe:taskDefinition", element, context)
    if java.is_bound(element):
        if kind is not None:
            context.warn(
                element, f"the type {kind!r} of {named(element)} is not read", "nothing of it: the process runs as if it were not there"
            )
        name = java.handler(element, context)
        return None if name is None else _named("handler", name, "binding to Java", element, context)
    if kind is not None and kind.strip():
        name = stand_ins.handler(element, f"{named(element)} has the type {kind!r}, which is not run", kind.strip(), context)
        return _named("handler", name, "type", element, context)
    if (called := connectors.of(element, context)) is not None:
        name = stand_ins.handler(element, f"{named(element)} has the connector {called.name!r}, which is not run", called.name, context)
        return _named("handler", name, "connectorId", element, context)
    if (name := operations.handler(element, context)) is not None:
        return _named("handler", name, "operation", element, context)
    name = stand_ins.handler(element, f"{named(element)} says nowhere what it does", str(element.get("id")), context)
    return _named("handler", name, "id", element, context)


def _named(work: str, name: str | None, where: str, element: Element, context: Context) -> tuple[str, str] | None:
    topic = (name or "").strip()
    if not topic or len(topic) > MAX_NAME:
        context.problem(
            element, f"{named(element)} has {'an empty' if not topic else 'too long a'} {where}", f"a name of 1 to {MAX_NAME} characters"
        )
        return None
    if topic.startswith("=") or "${" in topic or "#{" in topic:
        context.problem(element, f"{named(element)} has the expression {topic!r} as {where}", "a plain name: workers ask for it")
        return None
    return ("deliver", topic) if work == "handler" and topic in DELIVERIES else (work, topic)


def _retry(element: Element, context: Context) -> str | None:
    """baton:retry, else failedJobRetryTimeCycle, else the retries of zeebe:taskDefinition."""
    cycle = context.extension(element, "failedJobRetryTimeCycle")
    text = context.attribute(element, "retry", names.BATON)
    if text is None and cycle is not None:
        text = names.text(cycle)
    zeebe = context.extension(element, "taskDefinition", ZEEBE)
    if text is None and zeebe is not None:
        text = zeebe.get("retries")
    return text


def _priority(element: Element, work: str, context: Context) -> str | None:
    """Of the task, else of its process: that of external tasks, or of jobs."""
    given = context.attribute(element, "taskPriority") or context.attribute(element, "jobPriority")
    return given if given is not None else context.of_process(element, "taskPriority" if work == "external" else "jobPriority")


def _lease_seconds(element: Element, context: Context) -> int | None:
    text = context.attribute(element, "lease", names.BATON)
    if text is None:
        return None
    try:
        timer = parse_timer("duration", text)
        seconds = timer.seconds if isinstance(timer, DurationTimer) else None
    except TimerError as error:
        context.problem(element, f"baton:lease of {named(element)} cannot be read: {error}", "a duration such as PT2M")
        return None
    if seconds is None or not 1 <= seconds <= 86_400:
        context.problem(
            element, f"baton:lease of {named(element)} is {text.strip()}", "a duration from one second to one day, such as PT2M"
        )
        return None
    return int(seconds)
