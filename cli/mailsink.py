"""A mail sink: takes what is sent by SMTP (RFC 5321, its required part) and delivers nothing."""

from __future__ import annotations

import itertools
import os
import re
import socketserver
import threading
import time
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

KEPT = 300
MAX_MAIL = 2_000_000
MAX_LINE = 4096
NAME = re.compile(r"[0-9]{13}-[0-9]+")


@dataclass(frozen=True)
class Mail:
    id: str
    at: float  # seconds since 1970
    message: EmailMessage

    def summary(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "at": self.at,
            "to": str(self.message.get("To", "")),
            "from": str(self.message.get("From", "")),
            "subject": str(self.message.get("Subject", "")),
            "message_id": str(self.message.get("Message-ID", "")),
        }

    def whole(self) -> dict[str, Any]:
        body = self.message.get_body(("plain", "html"))
        return {**self.summary(), "text": "" if body is None else body.get_content().replace("\r\n", "\n")}


class MailBox:
    """The newest mails, a file each, so that they are still there after a restart."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._numbers = itertools.count(os.getpid())
        self._lock = threading.Lock()

    def keep(self, content: bytes) -> None:
        with self._lock:
            name = f"{time.time_ns() // 1_000_000:013d}-{next(self._numbers):010d}"
            scratch = self.folder / f"{name}.part"
            scratch.write_bytes(content)
            scratch.rename(self.folder / f"{name}.eml")
            for old in self._names()[KEPT:]:
                (self.folder / f"{old}.eml").unlink()

    def newest(self) -> list[Mail]:
        return [mail for name in self._names() if (mail := self.find(name)) is not None]

    def find(self, name: str) -> Mail | None:
        if not NAME.fullmatch(name):
            return None
        try:
            content = (self.folder / f"{name}.eml").read_bytes()
        except FileNotFoundError:
            return None
        message = message_from_bytes(content, policy=policy.default)
        return Mail(name, int(name.partition("-")[0]) / 1000, message)

    def _names(self) -> list[str]:
        return sorted((path.stem for path in self.folder.glob("*.eml")), reverse=True)


class _Conversation(socketserver.StreamRequestHandler):
    server: MailSink
    timeout = 60

    def handle(self) -> None:
        self._say("220 mail sink of baton up")
        sender, recipients = False, 0
        while (line := self._line()) is not None:
            verb = line[:4].upper()
            match verb:
                case "EHLO":
                    self._say(f"250-sink\r\n250-8BITMIME\r\n250 SIZE {MAX_MAIL}")
                case "HELO" | "NOOP" | "RSET":
                    sender, recipients = (sender, recipients) if verb == "NOOP" else (False, 0)
                    self._say("250 ok")
                case "MAIL":
                    sender, recipients = True, 0
                    self._say("250 ok")
                case "RCPT" if sender:
                    recipients += 1
                    self._say("250 ok")
                case "DATA" if recipients:
                    self._say("354 go on, end with a line that is a dot")
                    self._take()
                    sender, recipients = False, 0
                case "RCPT" | "DATA":
                    self._say("503 expected MAIL, then RCPT, then DATA")
                case "QUIT":
                    self._say("221 bye")
                    return
                case _:
                    self._say(f"502 {verb} is not known here")

    def _take(self) -> None:
        """Read a mail up to the line with a dot; a dot doubled by the sender loses one (RFC 5321, 4.5.2)."""
        content = bytearray()
        while (raw := self.rfile.readline(MAX_MAIL + 3)) not in (b".\r\n", b".\n"):
            if not raw:
                return  # the sender went away in the middle: nothing was promised
            if len(content) <= MAX_MAIL:
                content += raw[1:] if raw.startswith(b".") else raw
        if len(content) > MAX_MAIL:
            self._say(f"552 expected at most {MAX_MAIL} bytes")
            return
        self.server.mails.keep(bytes(content))
        self._say("250 kept")

    def _line(self) -> str | None:
        raw = self.rfile.readline(MAX_LINE)
        return raw.decode("ascii", "replace").strip() if raw else None

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode("ascii"))


class MailSink(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, address: tuple[str, int], mails: MailBox) -> None:
        super().__init__(address, _Conversation)
        self.mails = mails
