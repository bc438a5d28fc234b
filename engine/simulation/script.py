"""Scripts of `baton simulate`: one step a line. docs/testing-processes.md has the language; this file reads it, and plays nothing.

A word is bare, or a JSON string in double quotes. `name=value`: the value is JSON, or else bare text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

MAX_LINES = 10_000

VERBS: Mapping[str, str] = {
    "clock": "clock 2026-01-05T09:00:00Z",
    "handler": "handler NAME returns [name=value …], or handler NAME throws CODE [TEXT] [name=value …]",
    "start": "start [PROCESS] [as KEY] [name=value …]",
    "complete": "complete TASK [#2] [name=value …]",
    "job": "job NAME [#2] returns [name=value …], or throws CODE [TEXT] [name=value …], or fails [TEXT]",
    "message": "message NAME [key KEY] [kept PT1H] [name=value …]",
    "signal": "signal NAME [name=value …]",
    "advance": "advance PT1H, or advance 2026-12-24T18:00:00Z",
    "retry": "retry ELEMENT [#2]",
    "cancel": "cancel [REASON]",
    "case": "case NUMBER",
    "expect": "expect completed, expect tasks a b, expect variables x=1 …",
}

_NO_WORKERS = "a simulation has no workers: say what a job ends in, with job NAME returns, throws or fails"
_NO_PEOPLE = "a simulation has no people who compete: complete TASK completes it, whoever holds it"
_ONE_HAND = "a simulation does one thing after the other: what happens at once is tested on PostgreSQL"
_ONE_VERSION = "a simulation has no operators, and one version of each process"
_NO_SENDING = "a simulation sends nothing: expect sent DESTINATION says what would be sent"
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("acquire", "lease", "renew", "release", "recover", "kill", "worker", "attempt", "timeout", "crash"), _NO_WORKERS),
    **dict.fromkeys(("claim", "unclaim", "assign", "delegate", "login", "user"), _NO_PEOPLE),
    **dict.fromkeys(("race", "parallel", "concurrently", "together", "lock", "meanwhile"), _ONE_HAND),
    **dict.fromkeys(("deliver", "send", "http", "mail"), _NO_SENDING),
    **dict.fromkeys(("sleep", "wait", "pause"), "the clock of a simulation stands still: advance moves it"),
    **dict.fromkeys(("suspend", "resume", "migrate", "modify", "deploy", "delete"), _ONE_VERSION),
}

_WORD = re.compile(r"[^\s=\"]+")
_NAME = re.compile(r"([^\s=\"]+|`[^`]*`)=")
_BARE = re.compile(r"\S*")
_NUMBER = re.compile(r"#([1-9]\d{0,5})")
_JSON = json.JSONDecoder()


class ScriptError(Exception):
    """A line that is no step: where, what was expected, what was found."""

    def __init__(self, name: str, line: int, told: str) -> None:
        super().__init__(f"{name}:{line}: {told}")


@dataclass(frozen=True, slots=True)
class Step:
    """One line. `number`: the n of `#n`, 1 without."""

    line: int
    text: str
    verb: str
    words: tuple[str, ...]
    values: Mapping[str, Any] = field(default_factory=dict)
    number: int = 1


@dataclass(frozen=True, slots=True)
class Script:
    name: str
    steps: tuple[Step, ...]


def parse_script(text: str, name: str = "script") -> Script:
    """Raises ScriptError."""
    lines = text.splitlines()
    if len(lines) > MAX_LINES:
        raise ScriptError(name, MAX_LINES, f"expected at most {MAX_LINES:,} lines, found {len(lines):,}")
    steps = [
        _step(line.strip(), number, name) for number, line in enumerate(lines, start=1) if line.strip() and not line.strip().startswith("#")
    ]
    return Script(name, tuple(steps))


def _step(text: str, line: int, name: str) -> Step:
    try:
        words, values, number = _split(text)
    except ValueError as error:
        raise ScriptError(name, line, str(error)) from error
    verb = words[0] if words else text
    if verb in REFUSED:
        raise ScriptError(name, line, f"{verb} cannot be simulated: {REFUSED[verb]}")
    if verb not in VERBS:
        near = get_close_matches(verb, VERBS, 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ScriptError(name, line, f"expected one of {', '.join(VERBS)}, found {verb!r}{hint}")
    return Step(line, text, verb, tuple(words[1:]), values, number)


def _split(text: str) -> tuple[list[str], dict[str, Any], int]:
    words: list[str] = []
    values: dict[str, Any] = {}
    number, at = 1, 0
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif named := _NAME.match(text, at):
            name = named[1].strip("`")
            if name in values:
                raise ValueError(f"expected each name once, found {name!r} twice")
            values[name], at = _value(text, named.end())
        elif text[at] == '"':
            word, at = _decoded(text, at)
            words.append(str(word))
        elif (numbered := _NUMBER.match(text, at)) and words:
            number, at = int(numbered[1]), numbered.end()
        elif bare := _WORD.match(text, at):
            words.append(bare[0])
            at = bare.end()
        else:
            raise ValueError(f"expected a word or name=value, found {text[at:][:40]!r}")
    return words, values, number


def _value(text: str, at: int) -> tuple[Any, int]:
    if at < len(text) and text[at] in '"[{':
        return _decoded(text, at)
    bare = _BARE.match(text, at)
    found = bare[0] if bare else ""
    try:
        return json.loads(found), at + len(found)
    except ValueError:  # a word; nothing nested begins here
        return found, at + len(found)


def _decoded(text: str, at: int) -> tuple[Any, int]:
    try:
        return _JSON.raw_decode(text, at)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected JSON, found {text[at:][:40]!r}: {error}") from error
