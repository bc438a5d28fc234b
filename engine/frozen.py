"""`dataclass` for values that are made by the thousand: frozen for who checks the types, and made five times as fast.

A frozen dataclass writes each field through `object.__setattr__`; a value of eight fields takes five times as long to make. Its
hash and its equality are the same here. That nobody assigns to a field is for mypy to see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses

    def dataclass(*, frozen, slots):
        """A dataclass with slots, hashed by its fields."""
        assert frozen and slots, "others come from the standard library"
        return dataclasses.dataclass(slots=True, unsafe_hash=True)
