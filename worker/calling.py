"""Calls one handler and turns whatever it does into one of three outcomes; outcomes as JSON between processes.

The child sends JSON rather than pickles: what a handler returns must not run code in the worker that reads it.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Mapping
from dataclasses import field, fields
from operator import attrgetter
from typing import Any

import orjson

from engine.core.values import Variable, typed
from engine.frozen import dataclass
from worker.handlers import BpmnError, Context, GiveUp, Handler, LeaseLost, LeaseView, RetryLater
from worker.reports import Reporter, Tell

LONGEST_ERROR, LONGEST_TRACE, FRAMES = 2_000, 8_000, 12
LARGEST_RESULT = 4_000_000  # bytes of JSON


@dataclass(frozen=True, slots=True)
class Completed:
    variables: Mapping[str, Variable] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Threw:
    """A BPMN error."""

    code: str
    message: str = ""
    variables: Mapping[str, Variable] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failed:
    """A technical failure. `error` is one sentence, `detail` a trace. `retry_in` None: by the job's own policy."""

    error: str
    retry_in: float | None = None
    final: bool = False
    detail: str = ""


Outcome = Completed | Threw | Failed


@dataclass(frozen=True, slots=True)
class Delivered:
    """A delivery was taken. `response`: what is kept of the answer."""

    response: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """One service job as it travels to a handler. Values have their Python types."""

    topic: str
    idempotency_key: str
    attempt: int
    max_attempts: int
    business_key: str | None
    element_id: str
    instance_id: str
    variables: Mapping[str, Any]
    inputs: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


def to_pickle(work: Call) -> bytes:
    """As the worker sends it to its own child: values keep their Python types. A tuple, which is pickled five times as fast."""
    return pickle.dumps(_PARTS(work))


def from_pickle(text: bytes) -> Call:
    """What `to_pickle` made. Only for what the worker sent."""
    return Call(*pickle.loads(text))  # noqa: S301 - see above


_PARTS = attrgetter(*(each.name for each in fields(Call)))


def call(handler: Handler, work: Call, lease: LeaseView, settings: Any, tell: Tell) -> Outcome:
    """Run the handler here and now. Never raises, whatever the handler does short of killing its process."""
    reporter = Reporter(tell)
    try:
        context = Context(
            variables=work.variables,
            inputs=work.inputs,
            headers=work.headers,
            idempotency_key=work.idempotency_key,
            attempt=work.attempt,
            max_attempts=work.max_attempts,
            business_key=work.business_key,
            element_id=work.element_id,
            instance_id=work.instance_id,
            lease=lease,
            settings=settings,
            reporter=reporter,
        )
        return Completed(_variables(handler.function(context), handler.name))
    except BpmnError as error:
        return _threw(error, handler.name)
    except RetryLater as later:
        return Failed(str(later), retry_in=later.seconds)
    except LeaseLost as lost:
        return Failed(str(lost), retry_in=0.0)
    except GiveUp as reason:
        return Failed(str(reason), final=True)
    except BaseException as problem:  # SystemExit too: a handler that exits has failed, its process goes on
        return failed(problem)
    finally:
        reporter.end()


def _threw(error: BpmnError, name: str) -> Outcome:
    try:
        return Threw(error.code, error.message, _variables(error.variables, name))
    except Exception as problem:
        return failed(problem)


def _variables(result: object, name: str) -> dict[str, Variable]:
    if result is None:
        return {}
    if not isinstance(result, Mapping):
        raise TypeError(f"handler {name}: expected a dict of variables or None, found {type(result).__name__}")
    return {str(key): typed(value) for key, value in result.items()}


def failed(problem: BaseException) -> Failed:
    """The exception as a failure, with its innermost frames; ours, above the handler, are left out."""
    frames = problem.__traceback__.tb_next if problem.__traceback__ else None
    trace = "".join(traceback.format_exception(type(problem), problem, frames, limit=-FRAMES)).strip()
    headline = "".join(traceback.format_exception_only(problem)).strip()
    return Failed(headline[:LONGEST_ERROR], detail=trace[-LONGEST_TRACE:])


def to_json(outcome: Outcome) -> bytes:
    """As the child sends it. What is too large, or no JSON after all, travels as a failure."""
    try:
        match outcome:
            case Completed(variables):
                text = orjson.dumps({"completed": _plain(variables)})
            case Threw(code, message, variables):
                text = orjson.dumps({"threw": code, "message": message, "variables": _plain(variables)})
            case Failed(error, retry_in, final, detail):
                text = orjson.dumps({"failed": error, "retry_in": retry_in, "final": final, "detail": detail})
    except (TypeError, ValueError) as problem:
        return to_json(Failed(f"expected a result that JSON can carry, found {problem}"))
    if len(text) > LARGEST_RESULT:
        return to_json(Failed(f"expected at most {LARGEST_RESULT} bytes of variables, found {len(text)}", final=True))
    return text


def said_as_json(said: Mapping[str, Any]) -> bytes:
    """What a handler says before its outcome, as the child sends it."""
    return orjson.dumps({"said": said})


def from_json(text: bytes) -> Outcome | Mapping[str, Any]:
    """What `to_json` made, or, as a mapping, what a handler said before that."""
    document = orjson.loads(text)
    if "said" in document:
        return dict(document["said"])
    if "completed" in document:
        return Completed(_typed(document["completed"]))
    if "threw" in document:
        return Threw(document["threw"], document["message"], _typed(document["variables"]))
    return Failed(document["failed"], document["retry_in"], document["final"], document["detail"])


def _plain(variables: Mapping[str, Variable]) -> dict[str, Any]:
    return {name: {"type": variable.type, "value": variable.value} for name, variable in variables.items()}


def _typed(document: Mapping[str, Any]) -> dict[str, Variable]:
    return {name: Variable(each["type"], each["value"]) for name, each in document.items()}
