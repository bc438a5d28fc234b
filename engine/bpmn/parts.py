"""Parts of activities that kinds have in common: loops, parts of results, fields of forms, calls of decisions, steps around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.expressions import Expression

if TYPE_CHECKING:
    from engine.bpmn.definition import SignalConfig


@dataclass(frozen=True, slots=True)
class StandardLoop:
    """Do it again while the condition holds (10.3.8.1, 13.3.6). Without a condition it is done `maximum` times."""

    condition: Expression | None = None
    test_before: bool = False
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class MultiInstance:
    """Do it for each of several (10.3.8.2, 13.3.7). Exactly one of cardinality and collection."""

    sequential: bool = False
    cardinality: Expression | None = None
    collection: Expression | None = None
    element: str | None = None  # the variable that takes the item of the collection
    index: str = "loopCounter"  # the variable that counts, from 0
    until: Expression | None = None  # completionCondition
    throws: tuple[LoopEvent, ...] = ()  # what an instance throws as it completes (behavior)
    output: str | None = None  # the variable that takes the results of all instances, a list
    result: Expression | None = None  # of one instance


@dataclass(frozen=True, slots=True)
class LoopEvent:
    """What an instance throws to the border of its activity as it completes (10.3.8.2). Either a signal or an escalation.

    `first`: only the first to complete throws it (behavior One). `condition`: whoever finds it true (Complex); else each (None).
    """

    signal: SignalConfig | None = None
    escalation: str | None = None
    first: bool = False
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class DataOutput:
    """A data output association (10.4.2): `expression`, over a result that has all `sources`, becomes the variable `target`."""

    target: str
    sources: tuple[str, ...]
    expression: Expression


@dataclass(frozen=True, slots=True)
class ContinuationConfig:
    """kind `continuation`: a job goes on (engine.bpmn.around). `retry` as that of a service task."""

    retry: str | Expression | None = None
    max_attempts: int = 3
    priority: Expression | None = None


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of a form, in the model or deployed. `type`: string, long, double, boolean, date, enum."""

    id: str
    label: str
    type: str
    default: Expression | None = None
    values: tuple[tuple[str, str], ...] = ()  # enum: (id, label)
    required: bool = False
    readonly: bool = False
    minimum: str | None = None
    maximum: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    date_pattern: str | None = None
    description: str = ""
    lines: bool = False  # string: written over several lines
    pattern: str | None = None  # string: a regular expression of RE2 that finds something in it
    decimals: int | None = None  # double: at most so many
    ticked: bool = False  # boolean: it must be true


# What models write: the `binding` of a form, a decision or a call. Decided when an element begins, but for that of the deployment.
BINDINGS = {"latest": "latest", "deployment": "deployment", "version": "version", "versionTag": "tag"}


@dataclass(frozen=True, slots=True)
class FormReference:
    """A form that is kept elsewhere: the deployed one of a key, that of a file, or the JSON that stands in the model.

    `binding`: latest | deployment | version | tag; a file is that of the deployment.
    """

    key: Expression | None = None
    binding: str = "latest"
    version: Expression | None = None
    tag: Expression | None = None
    file: str = ""
    embedded: str | None = None
    name: str = ""  # of the embedded one


@dataclass(frozen=True, slots=True)
class DecisionConfig:
    """kinds `business_rule_task` and `service_task` that call a decision (10.3.3.4).

    `mapper`: what becomes of its outcome (engine.core.decisions). `outputs` see it, too; `keeps`: whether anybody else does.
    """

    decision: Expression  # its value is the key of the decision
    binding: str = "latest"  # latest | deployment | version | tag
    version: Expression | None = None
    tag: Expression | None = None
    mapper: str = "resultList"
    result_variable: str = ""  # empty: the outcome is in the history alone
    inputs: tuple[tuple[str, Expression], ...] = ()  # names that it sees besides the variables
    outputs: tuple[tuple[str, Expression], ...] = ()
    keeps: bool = True


@dataclass(frozen=True, slots=True)
class Sent:
    """The variables that go along with what is thrown: those named, each with its value, or all that are visible."""

    variables: tuple[tuple[str, Expression], ...] = ()
    everything: bool = False


@dataclass(frozen=True, slots=True)
class SubprocessConfig:
    """kinds `subprocess`, `transaction` (13.3.4) and `event_subprocess` (13.5.4).

    `inputs` are set in its own scope when it is entered, and go with it. `outputs` see that scope, and are set around it.
    """

    inputs: tuple[tuple[str, Expression], ...] = ()
    outputs: tuple[tuple[str, Expression], ...] = ()


@dataclass(frozen=True, slots=True)
class AdHocConfig:
    """kind `ad_hoc_subprocess` (13.3.5). `activities`: ids of those to run; None: every activity without incoming flows."""

    sequential: bool = False
    until: Expression | None = None  # completionCondition
    cancel_remaining: bool = True
    activities: Expression | None = None
    inputs: tuple[tuple[str, Expression], ...] = ()
    outputs: tuple[tuple[str, Expression], ...] = ()


@dataclass(frozen=True, slots=True)
class CallConfig:
    """kind `call_activity` (10.3.6, 13.3.5). What is mapped is an expression, or the name of a variable, copied as it is.

    `locals` are set first and seen by `inputs`; `passes` says what the called process is given besides the inputs: none,
    local (the locals) or all (every variable that is visible). `outputs` see the variables of the called process and of
    `results`.
    """

    process: Expression  # its value is the key of the called process
    binding: str = "latest"  # latest | deployment | version | tag
    version: Expression | None = None
    tag: Expression | None = None
    locals: tuple[tuple[str, Expression], ...] = ()
    inputs: tuple[tuple[str, Expression | str], ...] = ()
    passes: str = "none"
    business_key: Expression | None = None  # None: that of the caller
    results: tuple[tuple[str, Expression | str], ...] = ()
    returns_all: bool = False
    outputs: tuple[tuple[str, Expression], ...] = ()
