"""Which language an expression of a file is written in: `${…}` (juel), FEEL, or one that is not read.

The element says so (`language`, `scriptFormat`), or the text shows it: Zeebe begins FEEL with `=`, Camunda encloses in `${…}`. Where
neither does, `expressionLanguage` of the file decides (8.3.6), as far as it is FEEL.
"""

from __future__ import annotations

import re

from engine.bpmn.names import Element

JUEL, FEEL = "juel", "feel"

# DMN 1.1 to 1.5 each have a URI for FEEL, which ends like this. JUEL has none of its own: Java's for JSP stands for it.
_FEEL = re.compile(r"(?:.*[/:#])?(?:x-)?feel(?:/\d*)?/?", re.IGNORECASE)
_JUEL = re.compile(r"(?:.*[/:#])?(?:x-)?(?:j?u?el|jsp|unified[ -]?expression[ -]?language)/?", re.IGNORECASE)
_UNDECIDED = re.compile(r".*/(?:XPath|xpath20)/?", re.IGNORECASE)  # what BPMN itself writes where nobody chose


def named_language(given: str) -> str | None:
    """The language of a name or a URI; None for one that is not read."""
    if _FEEL.fullmatch(given.strip()):
        return FEEL
    return JUEL if _JUEL.fullmatch(given.strip()) else None


def language_of(element: Element, text: str, *, file_is_feel: bool = False) -> str:
    """juel, feel, or what the element says that is neither."""
    given = (element.get("language") or "").strip()
    if given:
        return FEEL if text.strip().startswith("=") else named_language(given) or given
    if text.strip().startswith("="):
        return FEEL
    return FEEL if file_is_feel and "${" not in text and "#{" not in text else JUEL


def is_known(given: str) -> bool:
    """Whether nothing is to be said about a file that declares this language."""
    return named_language(given) is not None or _UNDECIDED.fullmatch(given.strip()) is not None
