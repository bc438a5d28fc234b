"""Checking passwords with argon2. A name that does not exist costs the same as one that does (S71)."""

from __future__ import annotations

from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

HASHER = PasswordHasher()
MAX_LENGTH = 1024  # longer ones are refused before they cost anything


@cache
def _nobody() -> str:
    """A hash that no password matches knowingly, made once a process."""
    return HASHER.hash("nobody has this password; it only costs the same time")


def matches(stored: str | None, password: str) -> bool:
    """Whether `password` is the stored one. Always spends one verification, whoever asks."""
    try:
        right = HASHER.verify(stored or _nobody(), password)
    except (VerificationError, InvalidHashError):
        return False
    return right and stored is not None


def outdated(stored: str) -> bool:
    return HASHER.check_needs_rehash(stored)


def rehash(password: str) -> str:
    return HASHER.hash(password)
