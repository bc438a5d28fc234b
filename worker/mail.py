"""Hands one mail to the mail server, within the time and size that HTTP deliveries have as well."""

from __future__ import annotations

import smtplib
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from email.message import EmailMessage
from email.utils import formatdate
from threading import Timer
from typing import Any

from engine.config import Settings
from engine.db.outbox import Destination
from worker.calling import Delivered, Failed

MOST_SAID = 100_000  # bytes, of a mail server in one conversation


def send_mail(delivery_id: str, request: Mapping[str, Any], settings: Settings, to: Destination | None = None) -> Delivered | Failed:
    """Never raises for anything that the mail server does."""
    if settings.mail_server is None:
        return Failed("no mail server: BATON_MAIL_SERVER is not set")
    message = _message(delivery_id, request, settings)
    seconds, most = to.seconds if to else None, to.max_bytes if to else None
    if most is not None and (size := len(message.as_bytes())) > most:
        return Failed(f"expected a mail of at most {most} bytes, found {size}", final=True)
    try:
        not_taken = _hand_over(message, settings, seconds or settings.http_seconds)
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


def _hand_over(message: EmailMessage, settings: Settings, seconds: float) -> Mapping[str, tuple[int, bytes]]:
    assert settings.mail_server is not None
    host, port = settings.mail_server.host, settings.mail_server.port
    context = ssl.create_default_context()
    tls = settings.mail_tls == "tls"
    with SmtpOverTls(host, port, timeout=seconds, context=context) if tls else Smtp(host, port, timeout=seconds) as server:
        if settings.mail_tls == "starttls":
            server.starttls(context=context)
        if settings.mail_username is not None:
            server.login(settings.mail_username, settings.mail_password or "")
        return server.send_message(message)


class _Short:
    """What the server says, as far as anybody reads it: smtplib keeps every line of an answer, however many there are."""

    def __init__(self, file: Any) -> None:
        self._file, self._left = file, MOST_SAID

    def readline(self, size: int = -1) -> bytes:
        line: bytes = self._file.readline(size)
        self._left -= len(line)
        if self._left < 0:
            raise smtplib.SMTPServerDisconnected(f"it said more than {MOST_SAID} bytes")
        return line

    def close(self) -> None:
        self._file.close()


class Smtp(smtplib.SMTP):
    """A mail server that is given up when its time is over, or when it says too much.

    To bound each answer is not enough: a server that says one line a second would hold a slot for ever.
    """

    def __init__(self, host: str, port: int, *, timeout: float, **more: Any) -> None:
        self._watch = Timer(timeout, self._hang_up)
        self._watch.daemon = True
        self._watch.start()
        try:
            super().__init__(host, port, timeout=timeout, **more)
        except BaseException:
            self._watch.cancel()
            raise

    def getreply(self) -> tuple[int, bytes]:
        if self.file is None and self.sock is not None:
            self.file = _Short(self.sock.makefile("rb"))
        return super().getreply()

    def close(self) -> None:
        self._watch.cancel()
        super().close()

    def _hang_up(self) -> None:
        """By another thread: whoever reads or writes here is told that the other side has gone."""
        if self.sock is not None:
            with suppress(OSError):  # it has gone by itself
                self.sock.shutdown(socket.SHUT_RDWR)


class SmtpOverTls(Smtp, smtplib.SMTP_SSL):
    """The same, from the first byte under TLS."""


def _reasons(recipients: Mapping[str, tuple[int, bytes]]) -> str:
    return "; ".join(f"{name}: {code} {_text(reason)}" for name, (code, reason) in recipients.items())


def _text(reason: bytes | str) -> str:
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
