"""Sends one delivery: an HTTP request or a mail. At least once, under the delivery's id at every attempt (R7)."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from typing import Any

import httpx
import orjson

from engine.config import Settings
from worker.calling import Failed
from worker.outward import AnswerTooLarge, TargetRefused, fetch, rules_of

WORTH_ANOTHER_TRY = frozenset({408, 425, 429})
SHOWN_BODY = 2_000
SHOWN_HEADERS = ("content-type", "date", "location", "retry-after", "server")


@dataclass(frozen=True, slots=True)
class Delivered:
    response: Mapping[str, Any]


def send(kind: str, delivery_id: str, request: Mapping[str, Any], settings: Settings) -> Delivered | Failed:
    """Send it and say how that went. Never raises for anything that the request or the other side does."""
    try:
        match kind:
            case "http":
                return _send_http(delivery_id, request, settings)
            case "mail":
                return _send_mail(delivery_id, request, settings)
        return Failed(f"delivery kind: expected http or mail, found {kind!r}", final=True)
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        return Failed(f"the request cannot be sent: {type(problem).__name__}: {problem}", final=True)


# ---- http


def _send_http(delivery_id: str, request: Mapping[str, Any], settings: Settings) -> Delivered | Failed:
    given = request.get("headers") or {}
    headers = {str(name): str(value) for name, value in given.items() if str(name).lower() != "baton-delivery-id"}
    body = _body(request.get("body"), headers)
    headers["Baton-Delivery-Id"] = delivery_id
    try:
        answer = fetch(
            str(request.get("method") or "POST").upper(),
            str(request["url"]),
            headers=headers,
            body=body,
            rules=rules_of(settings),
            key=delivery_id,
        )
    except (TargetRefused, AnswerTooLarge) as refusal:
        return Failed(str(refusal))
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


def _body(body: Any, headers: dict[str, str]) -> bytes | None:
    if body is None:
        return None
    if isinstance(body, str):
        return body.encode()
    if not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = "application/json"
    return orjson.dumps(body)


# ---- mail


def _send_mail(delivery_id: str, request: Mapping[str, Any], settings: Settings) -> Delivered | Failed:
    if settings.mail_server is None:
        return Failed("no mail server: BATON_MAIL_SERVER is not set")
    message = _message(delivery_id, request, settings)
    try:
        not_taken = _hand_over(message, settings)
    except smtplib.SMTPRecipientsRefused as problem:
        codes = {code for code, _ in problem.recipients.values()}
        return Failed(f"no recipient was accepted: {_reasons(problem.recipients)}", final=all(code >= 500 for code in codes))
    except smtplib.SMTPResponseException as problem:
        return Failed(f"the mail server answered {problem.smtp_code} {_text(problem.smtp_error)}", final=500 <= problem.smtp_code < 600)
    except (smtplib.SMTPException, OSError) as problem:
        return Failed(f"the mail server at {settings.mail_server}: {type(problem).__name__}: {problem}")
    response: dict[str, Any] = {"message_id": message["Message-ID"]}
    if not_taken:
        response["refused"] = _reasons(not_taken)
    return Delivered(response)


def _message(delivery_id: str, request: Mapping[str, Any], settings: Settings) -> EmailMessage:
    to = request["to"]
    message = EmailMessage()  # its policy refuses line ends in headers
    message["From"] = settings.mail_from
    message["To"] = to if isinstance(to, str) else ", ".join(map(str, to))
    message["Subject"] = str(request.get("subject") or "")
    message["Date"] = formatdate()
    # The same at every attempt: a mailbox that knows the id shows one mail.
    message["Message-ID"] = f"<{delivery_id}@{settings.mail_from.rsplit('@', 1)[1]}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(str(request.get("text") or ""))
    return message


def _hand_over(message: EmailMessage, settings: Settings) -> Mapping[str, tuple[int, bytes]]:
    assert settings.mail_server is not None
    host, port, seconds = settings.mail_server.host, settings.mail_server.port, settings.http_seconds
    context = ssl.create_default_context()
    server = (
        smtplib.SMTP_SSL(host, port, timeout=seconds, context=context)
        if settings.mail_tls == "tls"
        else smtplib.SMTP(host, port, timeout=seconds)
    )
    with server:
        if settings.mail_tls == "starttls":
            server.starttls(context=context)
        if settings.mail_username is not None:
            server.login(settings.mail_username, settings.mail_password or "")
        return server.send_message(message)


def _reasons(recipients: Mapping[str, tuple[int, bytes]]) -> str:
    return "; ".join(f"{name}: {code} {_text(reason)}" for name, (code, reason) in recipients.items())


def _text(reason: bytes | str) -> str:
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
