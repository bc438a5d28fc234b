"""What a deployed process is, once read: frozen, validated, compiled. The reader makes it, the core runs it.

Nothing here knows XML. A `Node` has a `kind` (the key under which the core finds its behaviour) and a `config`
whose type that kind fixes; the types below are those of the built-in kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.bpmn.parts import AdHocConfig as AdHocConfig
from engine.bpmn.parts import CallConfig as CallConfig
from engine.bpmn.parts import ContinuationConfig as ContinuationConfig
from engine.bpmn.parts import DataOutput as DataOutput
from engine.bpmn.parts import DecisionConfig as DecisionConfig
from engine.bpmn.parts import FormField as FormField
from engine.bpmn.parts import FormReference as FormReference
from engine.bpmn.parts import LoopEvent as LoopEvent
from engine.bpmn.parts import MultiInstance as MultiInstance
from engine.bpmn.parts import Sent as Sent
from engine.bpmn.parts import StandardLoop as StandardLoop
from engine.bpmn.parts import SubprocessConfig as SubprocessConfig
from engine.expressions import Expression


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason why a model cannot be deployed (or, as a warning, one thing that its author should know)."""

    element_id: str | None
    line: int | None
    what: str  # what was found, in one sentence
    why: str  # what was expected instead
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Flow:
    """A sequence flow (BPMN 2.0.2, 8.3.13)."""

    id: str
    source: str
    target: str
    condition: Expression | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """A flow node. `parent` is the id of the enclosing subprocess, None at the top of the process."""

    id: str
    kind: str
    name: str = ""
    parent: str | None = None
    incoming: tuple[str, ...] = ()  # flow ids, in document order
    outgoing: tuple[str, ...] = ()
    default: str | None = None  # flow id
    attached: tuple[str, ...] = ()  # ids of the boundary events on this activity
    documentation: str = ""
    line: int | None = None
    config: Any = None
    loop: StandardLoop | MultiInstance | None = None  # activities
    start_quantity: int = 1  # activities: tokens that begin it together
    completion_quantity: int = 1  # activities: tokens that leave it over each flow
    for_compensation: bool = False  # activities: it runs only as the handler of a compensation boundary event
    data_outputs: tuple[DataOutput, ...] = ()  # where parts of its result go
    locals: tuple[str, ...] = ()  # subprocesses: variables that they have for themselves


@dataclass(frozen=True, slots=True)
class ProcessDefinition:
    """One executable process. `starts` lists the start events of each scope (None: the process itself)."""

    key: str
    name: str
    nodes: Mapping[str, Node]
    flows: Mapping[str, Flow]
    starts: Mapping[str | None, tuple[str, ...]]
    documentation: str = ""
    line: int | None = None
    warnings: tuple[Problem, ...] = ()
    event_subprocesses: Mapping[str | None, tuple[str, ...]] = field(default_factory=dict)  # those of each scope that has any
    links: Mapping[str, str] = field(default_factory=dict)  # link throw event -> its link catch event
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # multiple event -> its parts, nodes of the kind event_part
    compensable: Mapping[str, Undo] = field(default_factory=dict)  # activities of which completed executions are kept
    called_only: bool = False  # a global task: no person starts it
    version_tag: str | None = None  # what its author calls this version
    extra: Mapping[str, Any] = field(default_factory=dict)
    derived: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)  # what the core works out of it, once


PART = "#"  # between the id of a multiple event and the number of a part; no id in a file has it


def event_of(definition: ProcessDefinition, node: Node) -> Node:
    """The event that a part belongs to; any other node is itself."""
    return definition.nodes[node.id.partition(PART)[0]] if node.kind == "event_part" else node


def none_start(definition: ProcessDefinition) -> str | None:
    """The id of the process's first none start event (10.5.2): nothing triggers it but who starts or calls the process."""
    if "none start" not in definition.derived:
        starts = definition.starts.get(None, ())
        definition.derived["none start"] = next((key for key in starts if not occurs(definition.nodes[key].config)), None)
    found: str | None = definition.derived["none start"]
    return found


# ---- configurations by kind


@dataclass(frozen=True, slots=True)
class StartConfig:
    """kind `start_event`. At most one of timer, message, signal, condition, error, escalation, compensate.

    The last four only in event subprocesses.
    """

    timer: TimerConfig | None = None
    message: MessageConfig | None = None
    signal: SignalConfig | None = None
    condition: ConditionConfig | None = None
    error: ErrorConfig | None = None
    escalation: EscalationConfig | None = None
    parts: tuple[StartConfig, ...] = ()  # of a multiple event: none of the above, and one of them in each part
    parallel: bool = False  # all parts must occur, not any
    compensate: bool = False
    interrupting: bool = True  # of an event subprocess: whether it cancels the rest of the scope around it
    fields: tuple[FormField, ...] = ()
    form: FormReference | None = None  # instead of `fields`, which are shown while it is missing
    initiator: str | None = None  # variable that takes the name of whoever started the instance


@dataclass(frozen=True, slots=True)
class UserTaskConfig:
    """kind `user_task`. What `inputs` give it the task alone sees; `outputs` see that and what completed it.

    `keeps`: what completed it is set besides the outputs, but for names that are inputs.
    """

    assignee: Expression | None = None
    candidate_users: tuple[Expression, ...] = ()
    candidate_groups: tuple[Expression, ...] = ()
    due: Expression | None = None
    follow_up: Expression | None = None
    zone: str = "UTC"  # IANA zone of dates without one, and of durations in days (baton:timeZone)
    priority: Expression | None = None
    name: Expression | None = None  # set where the element's name is a template, such as "Check ${order.number}"
    about: Expression | None = None  # one line that tells this task from its neighbours (baton:about)
    fields: tuple[FormField, ...] = ()
    form: FormReference | None = None  # instead of `fields`, which are shown while it is missing
    inputs: tuple[tuple[str, Expression], ...] = ()
    outputs: tuple[tuple[str, Expression], ...] = ()
    keeps: bool = True


@dataclass(frozen=True, slots=True)
class ServiceTaskConfig:
    """kinds `service_task`, `business_rule_task`, and bound ones of `send_task` and `script_task`.

    `work`: "handler" (a job), "external" (an external task), "deliver" (an outbox entry).
    """

    work: str
    topic: str  # name of the handler, topic, or "http.deliver" / "mail.send"
    inputs: tuple[tuple[str, Expression], ...] = ()  # evaluated at activation; what the handler sees besides variables
    outputs: tuple[tuple[str, Expression], ...] = ()  # (variable, expression over the result); empty: result as is
    returned: tuple[tuple[str, Expression], ...] = ()  # made of the result first, and seen by the outputs alone (connectors)
    retry: str | Expression | None = None  # "R3/PT5M" or "PT1M,PT5M,PT30M" (engine.bpmn.retries), or what gives one
    max_attempts: int = 3
    priority: Expression | None = None
    lease_seconds: int | None = None
    headers: tuple[tuple[str, str], ...] = ()  # texts of the model that whoever does the work is given
    exclusive: bool = False  # one at a time in a case (decision 0097)
    destination_name: str | None = None  # of a delivery: the registered destination that it goes to
    ordering_key: Expression | None = None  # of a delivery: those of one key go out one after the other


@dataclass(frozen=True, slots=True)
class TimerConfig:
    """A timer event definition (10.5.5). `type`: "date", "duration" or "cycle". engine.bpmn.times reads its value."""

    type: str
    expression: Expression
    zone: str = "UTC"  # IANA zone of cron cycles and of texts without a zone (baton:timeZone)
    retry: str | Expression | None = None  # of the job that fires it, as a service task's
    max_attempts: int = 3


@dataclass(frozen=True, slots=True)
class ConditionConfig:
    """A conditional event definition (10.5.5): it occurs when the expression has become true."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class MessageConfig:
    """A message event definition (10.5.5). `key` None: the business key. `destination`: an outbox target, throws only.

    A throw without a destination is for our own processes: `sends` are the variables that go along.
    """

    name: Expression
    key: Expression | None = None
    destination: Expression | None = None
    method: str = "POST"
    body: Expression | None = None  # None: to a destination, all variables of the scope
    sends: Sent | None = None
    time_to_live: float = 3600.0  # seconds that it is kept if nobody waits; 0: not at all
    retry: str | Expression | None = None  # of its delivery, as a service task's
    max_attempts: int = 8
    destination_name: str | None = None  # of its delivery, as a service task's; then `destination` may be a path below it
    ordering_key: Expression | None = None


@dataclass(frozen=True, slots=True)
class SignalConfig:
    """A signal event definition (10.5.5). `sends`: of a throw."""

    name: Expression
    sends: Sent | None = None


@dataclass(frozen=True, slots=True)
class ErrorConfig:
    """An error event definition. `code` None catches every error."""

    code: str | None = None
    code_variable: str | None = None
    message_variable: str | None = None


@dataclass(frozen=True, slots=True)
class EscalationConfig:
    """An escalation event definition that catches. `code` None catches every escalation."""

    code: str | None = None
    code_variable: str | None = None


@dataclass(frozen=True, slots=True)
class CompensateConfig:
    """A compensation event definition that throws (10.5.5). `activity` None: all that is visible from the event."""

    activity: str | None = None
    waits: bool = True


@dataclass(frozen=True, slots=True)
class Undo:
    """How an activity is compensated (13.5.5).

    By the `handler` that its `boundary` event leads to; or by its compensation event subprocess, which is the `handler`
    without a boundary event; or, with neither, by compensating what was completed inside it.
    """

    boundary: str | None = None
    handler: str | None = None


@dataclass(frozen=True, slots=True)
class BoundaryConfig:
    """kind `boundary_event` (13.5.3). Exactly one of timer, message, signal, condition, error, escalation, compensate, cancel."""

    attached_to: str
    interrupting: bool = True
    timer: TimerConfig | None = None
    message: MessageConfig | None = None
    signal: SignalConfig | None = None
    condition: ConditionConfig | None = None
    error: ErrorConfig | None = None
    escalation: EscalationConfig | None = None
    parts: tuple[BoundaryConfig, ...] = ()  # as those of a start event
    parallel: bool = False
    compensate: bool = False  # 13.5.5: what it leads to is in the definition's `compensable`
    cancel: bool = False  # of a transaction


@dataclass(frozen=True, slots=True)
class CatchConfig:
    """kind `intermediate_catch_event`. Exactly one of timer, message, signal, condition, link (its name)."""

    timer: TimerConfig | None = None
    message: MessageConfig | None = None
    signal: SignalConfig | None = None
    condition: ConditionConfig | None = None
    link: str | None = None
    parts: tuple[CatchConfig, ...] = ()  # as those of a start event
    parallel: bool = False


@dataclass(frozen=True, slots=True)
class ThrowConfig:
    """kind `intermediate_throw_event`. At most one of message, signal, link (its name), escalation (its code), compensate."""

    message: MessageConfig | None = None
    signal: SignalConfig | None = None
    link: str | None = None
    escalation: str | None = None
    compensate: CompensateConfig | None = None
    parts: tuple[ThrowConfig, ...] = ()  # of a multiple event, which throws them all: one of the above in each


@dataclass(frozen=True, slots=True)
class ScriptConfig:
    """kinds `script_task` and `service_task` that are not bound to a handler: one expression, whose value goes into a variable."""

    expression: Expression
    result_variable: str  # empty: the value is kept nowhere (service tasks only)
    inputs: tuple[tuple[str, Expression], ...] = ()  # names that the expression sees besides the variables
    outputs: tuple[tuple[str, Expression], ...] = ()  # variables that are set besides, in order; they see the inputs and the value


@dataclass(frozen=True, slots=True)
class ReceiveTaskConfig:
    """kind `receive_task` (10.3.3.3). `instantiate`: the message starts an instance, as that of a start event does."""

    message: MessageConfig | None
    instantiate: bool = False
    timer: None = None  # what starts an instance is asked for its timer; a receive task has none


@dataclass(frozen=True, slots=True)
class EventGatewayConfig:
    """kind `event_based_gateway` (10.6.6). `begins`: the first of its events starts an instance (instantiate)."""

    begins: bool = False
    parallel: bool = False  # one that begins waits for all the others, too


@dataclass(frozen=True, slots=True)
class ComplexGatewayConfig:
    """kind `complex_gateway` (13.4.5). `activation` None: the first token activates it."""

    activation: Expression | None = None


@dataclass(frozen=True, slots=True)
class EndConfig:
    """kind `end_event`. At most one of them."""

    terminate: bool = False
    message: MessageConfig | None = None
    signal: SignalConfig | None = None
    error: str | None = None  # the code of the error that is thrown
    escalation: str | None = None  # the code of the escalation that is thrown
    compensate: CompensateConfig | None = None
    cancel: bool = False  # the transaction around it
    parts: tuple[EndConfig, ...] = ()  # as those of a throw


def occurs(config: Any) -> bool:
    """Whether an event waits for something to occur; errors and escalations are thrown to it, and none is none."""
    return waits_in_a_row(config) or has_condition(config)


def has_condition(config: Any) -> bool:
    """Whether a condition is what an event waits for, or part of it."""
    return any(getattr(each, "condition", None) is not None for each in events_in(config))


def waits_in_a_row(config: Any) -> bool:
    """Whether an event waits for something that has a row: a timer job or a subscription."""
    return any(getattr(each, what, None) is not None for each in events_in(config) for what in ("timer", "message", "signal"))


def events_in(config: Any) -> tuple[Any, ...]:
    """The parts of a multiple event; any other event by itself."""
    return getattr(config, "parts", ()) or (config,)


# Other kinds: event_part (the config of a part), exclusive_gateway, inclusive_gateway, parallel_gateway, task, manual_task (config None;
# a subprocess without inputs may have none too). A send_task has a ServiceTaskConfig, or the MessageConfig of what it sends.
