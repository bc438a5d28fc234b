"""The handlers that Baton brings: `http.call`."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import httpx
import orjson

from worker.handlers import BpmnError, Context, GiveUp, RetryLater, handler
from worker.outward import Answer, AnswerTooLarge, TargetRefused, fetch, rules_of, without_secrets

WORTH_ANOTHER_TRY = frozenset({408, 425, 429})


@handler("http.call")
def http_call(context: Context) -> Mapping[str, Any]:
    """Call `url` and wait for the answer. Inputs: url, method (GET), headers, body (anything but text goes as JSON).

    Returns {"response": {"status", "headers", "body"}}, JSON answers parsed. An answer of 408, 425, 429 or 5xx is a
    failure, tried again no earlier than its Retry-After says; any other outside 2xx is the BPMN error `HTTP_<status>`.
    Every attempt carries the same Idempotency-Key, the job's id.
    """
    inputs = context.inputs
    headers = {str(name): str(value) for name, value in (inputs.get("headers") or {}).items()}
    body = _body(inputs.get("body"), headers)
    try:
        url, method = str(inputs["url"]), str(inputs.get("method") or "GET").upper()
    except KeyError:
        raise GiveUp("http.call: expected an input `url`, found none") from None
    what = f"{method} {without_secrets(url)}"
    context.check()
    try:
        answer = fetch(method, url, headers=headers, body=body, rules=rules_of(context.settings), key=context.idempotency_key)
    except (TargetRefused, AnswerTooLarge, ValueError) as refusal:
        raise GiveUp(f"http.call: {refusal}") from refusal
    except httpx.HTTPError as problem:
        raise RuntimeError(f"{what}: {type(problem).__name__}: {problem}") from problem
    if 200 <= answer.status < 300:
        return {"response": {"status": answer.status, "headers": dict(answer.headers), "body": _value(answer)}}
    if answer.status >= 500 or answer.status in WORTH_ANOTHER_TRY:
        if answer.retry_after is not None:
            raise RetryLater(answer.retry_after, f"{what} answered {answer.status}")
        raise RuntimeError(f"{what} answered {answer.status}")
    raise BpmnError(f"HTTP_{answer.status}", f"{what} answered {answer.status}")


def _body(body: Any, headers: dict[str, str]) -> bytes | None:
    if body is None:
        return None
    if isinstance(body, str):
        return body.encode()
    if not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = "application/json"
    return orjson.dumps(body, default=_number)


def _number(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(f"expected JSON, found {type(value).__name__}")


def _value(answer: Answer) -> Any:
    if "json" in answer.headers.get("content-type", ""):
        try:
            return orjson.loads(answer.body)
        except orjson.JSONDecodeError:
            return answer.text  # it said JSON and was none: the text tells more than an error
    return answer.text
