"""Values made by the thousand are what frozen dataclasses are, made faster."""

from __future__ import annotations

import dataclasses
from uuid import UUID, uuid4

from engine.core.values import Variable
from engine.frozen import dataclass
from engine.ids import id_of, new_id


@dataclass(frozen=True, slots=True)
class Value:
    name: str
    number: int = 0


def test_a_value_is_compared_hashed_replaced_and_kept_in_slots_as_a_frozen_one_is() -> None:
    assert Value("a", 1) == Value("a", 1) != Value("a", 2)
    assert {Value("a"), Value("a", 0), Value("b")} == {Value("a"), Value("b")}
    assert dataclasses.replace(Value("a"), number=3) == Value("a", 3)
    assert [field.name for field in dataclasses.fields(Value)] == ["name", "number"]
    assert not hasattr(Value("a"), "__dict__")
    assert hash(Variable("integer", 1)) == hash(Variable("integer", 1))


def test_a_key_out_of_a_document_is_the_key_itself() -> None:
    for key in (*(new_id() for _ in range(50)), uuid4(), UUID(int=0), UUID(int=2**128 - 1)):
        found = id_of(str(key))
        assert (found, hash(found), str(found), type(found), found.is_safe) == (key, hash(key), str(key), UUID, key.is_safe)
