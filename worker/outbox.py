"""Sends one delivery: an HTTP request or a mail. At least once, under the delivery's id at every attempt (R7).

What goes to a registered destination is signed as Standard Webhooks has it, and keeps to the destination's limits. A test of a
destination is a delivery like any other and comes through here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import floor
from typing import Any

import httpx
import orjson
from standardwebhooks import Webhook

from engine.config import Settings
from engine.db.outbox import Destination
from engine.destinations import address_of_url, covers, resolved
from engine.webhooks import signing_secret
from worker.calling import Delivered, Failed
from worker.mail import send_mail
from worker.outward import AnswerTooLarge, Rules, TargetRefused, TooManyRedirects, fetch, rules_of, without_secrets

WORTH_ANOTHER_TRY = frozenset({408, 425, 429})
SAID_BY_US = frozenset({"baton-delivery-id", "webhook-id", "webhook-timestamp", "webhook-signature"})
SHOWN_BODY = 2_000
SHOWN_HEADERS = ("content-type", "date", "location", "retry-after", "server")


def send(kind: str, delivery_id: str, request: Mapping[str, Any], settings: Settings, to: Destination | None = None) -> Delivered | Failed:
    """Send it and say how that went. Never raises for anything that the request or the other side does."""
    if to is None and "destination" in request:
        return Failed(f"no destination is registered as {request['destination']!r}", final=True)
    try:
        match kind:
            case "http":
                return _send_http(delivery_id, request, settings, to)
            case "mail":
                return send_mail(delivery_id, request, settings, to)
        return Failed(f"delivery kind: expected http or mail, found {kind!r}", final=True)
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        return Failed(f"the request cannot be sent: {type(problem).__name__}: {problem}", final=True)


# ---- http


def _send_http(delivery_id: str, request: Mapping[str, Any], settings: Settings, to: Destination | None) -> Delivered | Failed:
    given = request.get("headers") or {}
    headers = {str(name): str(value) for name, value in given.items() if str(name).lower() not in SAID_BY_US}
    body = _body(request.get("body"), headers)
    headers["Baton-Delivery-Id"] = delivery_id
    url = str(request.get("url") or "") if to else str(request["url"])
    if to is not None:
        url = resolved(to.address, url)
        if not covers(to.address, address_of_url(url)):
            return Failed(f"the destination {to.name} is {to.address}, which does not cover {without_secrets(url)}", final=True)
        if settings.secret_key is None:
            return Failed("cannot be signed: BATON_SECRET_KEY is not set here")
        headers |= _signed(delivery_id, body, [signing_secret(settings.secret_key, salt) for salt in to.salts])
    try:
        answer = fetch(
            str(request.get("method") or "POST").upper(),
            url,
            headers=headers,
            body=body,
            rules=_rules(settings, to),
            key=delivery_id,
        )
    except (TargetRefused, AnswerTooLarge) as refusal:
        return Failed(str(refusal))
    except TooManyRedirects as refusal:
        return Failed(str(refusal), final=True)
    except httpx.HTTPError as problem:
        return Failed(f"{type(problem).__name__}: {problem}")
    if 200 <= answer.status < 300:
        shown = {name: answer.headers[name] for name in SHOWN_HEADERS if name in answer.headers}
        return Delivered({"status": answer.status, "headers": shown, "body": answer.text[:SHOWN_BODY]})
    return refused(answer.status, answer.retry_after)


def refused(status: int, retry_after: float | None) -> Failed:
    """What an answer outside 2xx means: nothing of its body is shown, it may be an inner server's."""
    if 300 <= status < 400:
        return Failed(f"answered {status}: redirects are not followed", final=True)
    if status >= 500 or status in WORTH_ANOTHER_TRY:
        return Failed(f"answered {status}", retry_in=retry_after)
    return Failed(f"answered {status}", final=True)


def _rules(settings: Settings, to: Destination | None) -> Rules:
    rules = rules_of(settings)
    if to is None:
        return rules
    return replace(rules, seconds=to.seconds or rules.seconds, max_bytes=to.max_bytes or rules.max_bytes, redirects=to.redirects)


def _signed(delivery_id: str, body: bytes | None, secrets: Sequence[str]) -> dict[str, str]:
    """Standard Webhooks: the id is the same at every attempt, the time that of this one; a signature for each secret that is valid now."""
    at, data = datetime.now(UTC), (body or b"").decode()
    signatures = [Webhook(secret).sign(delivery_id, at, data) for secret in secrets]
    return {"webhook-id": delivery_id, "webhook-timestamp": str(floor(at.timestamp())), "webhook-signature": " ".join(signatures)}


def _body(body: Any, headers: dict[str, str]) -> bytes | None:
    if body is None:
        return None
    if isinstance(body, str):
        return body.encode()
    if not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = "application/json"
    return orjson.dumps(body)
