"""What every operation may be refused with, and the headers that go with requests and answers, for the description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired, TypedDict

from werkzeug.routing import Rule

from engine.commands.outcome import STATUS, Refusal
from webapp.api.describing import Operation
from webapp.api.schemas import Also, Moment
from webapp.api.shapes import FieldProblemShape, ModelProblemShape


class ProblemShape(TypedDict):
    """A problem (RFC 9457). `reason` is for programs, `detail` for people. `by`, `by_name`, `at`: who was first, and when."""

    type: str
    status: int
    reason: str
    detail: str
    by: NotRequired[str]
    by_name: NotRequired[str]
    at: NotRequired[Moment]
    problems: NotRequired[list[FieldProblemShape | ModelProblemShape]]
    scope: NotRequired[Annotated[str | None, Also({"description": "What the key lacks."})]]
    reference: NotRequired[Annotated[str, Also({"description": "Names the lines of the log that tell more."})]]


SAYS: Mapping[int, str] = {
    400: "The request is not one, or its CSRF token is not this session's.",
    401: "Nobody asks: neither a key nor a session.",
    403: "You may not do this, or the key lacks the scope of it.",
    404: "It is not there, or not yours to see; the two are never told apart.",
    409: "The world moved on; nothing was changed.",
    412: "It is no longer as `If-Match` says; nothing was changed.",
    413: "Too large.",
    415: "Not of the kind of body that is expected.",
    422: "What was sent is wrong; `problems` names each field.",
    429: "Too many requests this minute.",
    500: "A bug. Nothing was half done.",
    503: "The database cannot be reached at the moment; repeating is safe with an Idempotency-Key.",
}

PARAMETERS: dict[str, Any] = {
    "IfNoneMatch": {
        "name": "If-None-Match",
        "in": "header",
        "required": False,
        "description": "The ETag that you have: 304 without a body if it is still so.",
        "schema": {"type": "string"},
    },
    "IfMatch": {
        "name": "If-Match",
        "in": "header",
        "required": False,
        "description": "The ETag of what you saw: 412 if it has changed since.",
        "schema": {"type": "string"},
    },
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "description": "Printable. The same key, path and body get the first answer, for a day.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255},
    },
}
HEADERS: dict[str, Any] = {
    "ETag": {"description": "Names this state of it.", "schema": {"type": "string"}},
    "RateLimit": {"description": "How many requests are left in this window, and the seconds until it ends.", "schema": {"type": "string"}},
    "RateLimitPolicy": {"description": "How many requests a window has, and its seconds.", "schema": {"type": "string"}},
    "Location": {"description": "Where the new one is.", "schema": {"type": "string"}},
    "RetryAfter": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 0}},
    "WWWAuthenticate": {"description": "How to sign in; which scope is missing.", "schema": {"type": "string"}},
}


def parameters_of(method: str, declared: Operation) -> list[dict[str, Any]]:
    """The headers that an operation reads."""
    if method == "GET":
        return [{"$ref": "#/components/parameters/IfNoneMatch"}]
    names = [*(["IdempotencyKey"] if declared.once else []), *(["IfMatch"] if declared.of else [])]
    return [{"$ref": f"#/components/parameters/{name}"} for name in names]


def headers_of(status: int, *, tagged: bool = False) -> dict[str, Any]:
    """The headers of an answer. `tagged`: of a state that has a name."""
    names = {"RateLimit": "RateLimit", "RateLimit-Policy": "RateLimitPolicy"}
    match status:
        case 401 | 403:
            names["WWW-Authenticate"] = "WWWAuthenticate"
        case 429 | 503:
            names["Retry-After"] = "RetryAfter"
    if tagged:
        names["ETag"] = "ETag"
    return {name: {"$ref": f"#/components/headers/{component}"} for name, component in names.items()}


def refusals_of(rule: Rule, method: str, declared: Operation) -> dict[str, Any]:
    """status -> its answer, with the reasons that it may give."""
    reasons: dict[int, list[str]] = {400: ["bad_request", "csrf"], 401: ["not_signed_in"], 403: ["not_allowed", "missing_scope"]}
    reasons |= {422: ["invalid"], 429: ["too_many_requests"], 500: ["internal_error"], 503: ["unavailable"]}
    if declared.of is not None:
        reasons[412] = ["precondition_failed"]
    if rule.arguments:
        reasons[404] = ["not_found"]
    if method != "GET":
        reasons |= {413: ["too_large"], 415: ["unsupported_media_type"], 422: ["invalid", "unsupported"]}
    for refusal in declared.refusals:
        status = STATUS.get(Refusal(refusal), 409)
        if refusal.value not in reasons.setdefault(status, []):
            reasons[status].append(refusal.value)
    return {str(status): _problem(status, found) for status, found in reasons.items()}


def _problem(status: int, reasons: list[str]) -> dict[str, Any]:
    narrowed = {"properties": {"status": {"const": status}, "reason": {"enum": reasons}}}
    schema = {"allOf": [{"$ref": "#/components/schemas/Problem"}, narrowed]}
    example = {"type": "about:blank", "status": status, "reason": reasons[0], "detail": SAYS[status]}
    content = {"application/problem+json": {"schema": schema, "example": example}}
    return {"description": SAYS[status], "headers": headers_of(status, tagged=status == 412), "content": content}
