"""Keys: UUID version 7 (RFC 9562, section 5.7), made in Python so that one statement can write parents and children."""

from uuid_utils.compat import uuid7

new_id = uuid7
