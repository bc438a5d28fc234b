"""A name and a password in every request (RFC 7617), for programs that know no other way: only under /engine-rest.

The same slow-down on guessing as at the sign-in form. A program asks many times a minute and argon2 is slow by intent, so a
password that was right is recognised for a while: by a keyed hash in this process's memory, under the stored hash that it
matched. Another password, or a person who is disabled, ends that at once.

A program's first questions come side by side. One of them is checked and the others wait for it: each check counts as a
wrong try until it was right, and ten of them at once would shut their own program out.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
import threading
import time
from collections import OrderedDict

from flask import request

from engine.commands.api_keys import PREFIX
from webapp.auth import guessing, passwords, store
from webapp.auth.identity import Identity
from webapp.db import reader

REMEMBERED_SECONDS = 600.0
REMEMBERED = 1_000  # names with their passwords, in one process


class TooManyTries(Exception):
    """Refused without a look at the password."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"too many wrong tries, wait {seconds} s")
        self.seconds = seconds


class Remembered:
    """Passwords that were right lately, none of them readable: keyed hash -> (stored hash that it matched, until when)."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._checks = [threading.Lock() for _ in range(64)]
        self._found: OrderedDict[bytes, tuple[str, float]] = OrderedDict()

    def knows(self, username: str, password: str, stored: str) -> bool:
        with self._lock:
            matched, until = self._found.get(self._hash(username, password), ("", 0.0))
        return time.monotonic() < until and hmac.compare_digest(matched, stored)

    def keep(self, username: str, password: str, stored: str) -> None:
        name = self._hash(username, password)
        with self._lock:
            self._found[name] = (stored, time.monotonic() + REMEMBERED_SECONDS)
            self._found.move_to_end(name)
            while len(self._found) > REMEMBERED:
                self._found.popitem(last=False)

    def check_of(self, username: str, password: str) -> threading.Lock:
        """Held while a password is checked: the same one for the same name and password."""
        return self._checks[self._hash(username, password)[0] % len(self._checks)]

    def _hash(self, username: str, password: str) -> bytes:
        text = f"{len(username)} {username} {password}"
        return hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), "sha256")


_remembered = Remembered()


def identify(credentials: str) -> Identity | None:
    """Who sent this `Authorization: Basic …`; None for nobody. Raises TooManyTries."""
    username, password = _parts(credentials)
    if not username or not password or len(password) > passwords.MAX_LENGTH or "\0" in username:
        return None
    if password.startswith(PREFIX) and (who := store.load_api_key(reader(), password, address=request.remote_addr or "")) is not None:
        return who if who.actor.username == username else None  # programs that know no bearer send the key as the password
    known = store.find_person(reader(), username)
    stored = known.password_hash if known else None
    if known is not None and stored is not None and _remembered.knows(username, password, stored):
        return known.by_key()
    with _remembered.check_of(username, password):
        if known is not None and stored is not None and _remembered.knows(username, password, stored):
            return known.by_key()  # by whoever was checked while we waited
        return _checked(username, password, known)


def _checked(username: str, password: str, known: store.KnownPerson | None) -> Identity | None:
    """A try that is counted. Raises TooManyTries."""
    stored = known.password_hash if known else None
    attempt = guessing.begin_try(reader(), username)
    if attempt.wait_seconds:
        raise TooManyTries(attempt.wait_seconds)
    if not passwords.matches(stored, password) or known is None or stored is None:
        return None
    guessing.try_was_right(reader(), attempt)
    if passwords.outdated(stored):
        store.replace_hash(reader(), known.identity.person_id, before=stored, after=passwords.rehash(password))
    else:
        _remembered.keep(username, password, stored)
    return known.by_key()


def _parts(credentials: str) -> tuple[str, str]:
    try:
        text = base64.b64decode(credentials.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return "", ""
    username, _, password = text.partition(":")
    return username.strip(), password
