"""Checking passwords with argon2. A name that does not exist costs the same as one that does (S71)."""

from __future__ import annotations

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

HASHER = PasswordHasher()
SHORTEST = 8  # of a new one
MAX_LENGTH = 1024  # longer ones are refused before they cost anything


# A hash that no password matches knowingly. Made at import: made at the first use, it would have told, once a process,
# a name that does not exist by twice the time.
NOBODY = HASHER.hash("nobody has this password; it only costs the same time")


def matches(stored: str | None, password: str) -> bool:
    """Whether `password` is the stored one. Always spends one verification, whoever asks."""
    try:
        right = HASHER.verify(stored or NOBODY, password)
    except (VerificationError, InvalidHashError):
        return False
    return right and stored is not None


def outdated(stored: str) -> bool:
    return HASHER.check_needs_rehash(stored)


def rehash(password: str) -> str:
    return HASHER.hash(password)
