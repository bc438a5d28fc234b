"""Text as people sort it, and as much of it as fits."""

from __future__ import annotations

import pytest

from engine.text import shortened, sort_key


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Prüfung", "prufung"),
        ("ÉCLAIR", "eclair"),
        ("  Zwei   Worte ", "zwei worte"),
        ("Straße", "strasse"),
        ("審批", "審批"),
        ("Оплата", "оплата"),
        ("", ""),
    ],
)
def test_case_accents_and_blanks_do_not_count(text: str, key: str) -> None:
    assert sort_key(text) == key


def test_S38_both_normalisation_forms_of_one_name_have_one_key() -> None:
    assert sort_key("Pr\u00fcfung") == sort_key("Pru\u0308fung")


def test_a_long_name_makes_a_bounded_key() -> None:
    assert len(sort_key("x" * 1_000)) == 200


def test_what_is_cut_shows_that_it_was() -> None:
    assert shortened("abc", 3) == "abc"
    assert shortened("abcd", 3) == "ab…"
    assert shortened("a\x00b", 9) == "a\N{SYMBOL FOR NULL}b"
