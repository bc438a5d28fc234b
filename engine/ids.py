"""Keys: UUID version 7 (RFC 9562, section 5.7), made in Python so that one statement can write parents and children."""

from functools import lru_cache
from uuid import UUID, SafeUUID

from uuid_utils.compat import uuid7

new_id = uuid7

_put, _UNKNOWN = object.__setattr__, SafeUUID.unknown


@lru_cache(maxsize=1000)
def id_of(text: str) -> UUID:
    """A key as the database writes it, read in half the time: it needs none of the checks. The same key comes several times in a case."""
    key = UUID.__new__(UUID)
    _put(key, "int", int(text.replace("-", ""), 16))
    _put(key, "is_safe", _UNKNOWN)
    return key
