"""What may be changed in a case's file before it is deployed: ids, what script tasks do, how expressions are spelled.

Ids of processes and elements become random ones, with every reference to them, so that nothing here can depend on what
they are. Names stay: messages, signals and variables go by their names.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from lxml import etree

from engine.bpmn.names import BATON, BPMN, BPMNDI, XSI, Element, local, namespace
from engine.expressions import ExpressionError, parse
from tests.conformance.cases import CONSTRAINTS, Case

HANDLERS = {True: "conformance.work", False: "conformance.script"}  # by whether it takes time on the engine's clock
TAKES_TIME = frozenset({"WAIT_TEN_SECONDS", "CREATE_TIMESTAMP_LOG_1", "CREATE_TIMESTAMP_LOG_2"})
REFERENCES = frozenset({"default", "calledElement"})  # and whatever ends in Ref or Refs
REFERRING = frozenset({"incoming", "outgoing", "source", "target"})  # elements whose text is an id
NUMBERS = frozenset({"loopCardinality"})


@dataclass(frozen=True, slots=True)
class Rewritten:
    xml: bytes
    new_ids: Mapping[str, str]  # old -> new
    scripts: Mapping[str, str]  # new id of a script task -> its token
    problems: tuple[str, ...]

    def old_id(self, new: str | None) -> str | None:
        return next((old for old, given in self.new_ids.items() if given == new), new)

    def in_old_words(self, text: str) -> str:
        """A message with the ids of the case's own file."""
        old_ids = {new: old for old, new in self.new_ids.items()}
        return re.sub(r"[a-z]\d{12}", lambda found: old_ids.get(found.group(), found.group()), text)


def rewrite(case: Case, chance: random.Random) -> Rewritten:
    """The case's file with new ids, scripts bound to our handlers, expressions in our spelling."""
    root = etree.fromstring(case.xml, etree.XMLParser(resolve_entities=False, remove_blank_text=False))
    # A file that must be refused keeps its scripts: what is wrong may be one of them, and none will run.
    scripts = {} if case.group == CONSTRAINTS else _bind_scripts(root)
    _spell_expressions(root, case)
    new_ids = _rename(root, chance)
    unknown = sorted({token for token in scripts.values() if token not in case.tokens})
    return Rewritten(
        etree.tostring(root, xml_declaration=True, encoding="UTF-8"),
        new_ids,
        {new_ids.get(key, key): token for key, token in scripts.items()},
        tuple(f"the script {token!r} is not in the case's table of tokens" for token in unknown),
    )


# ---- scripts


def _bind_scripts(root: Element) -> dict[str, str]:
    """Every script task does what its token says by a handler of ours: element id -> token."""
    found = {}
    tasks = [each for each in _elements(root) if local(each) in ("scriptTask", "globalScriptTask")]
    for task in tasks:
        for script in [child for child in task if isinstance(child.tag, str) and local(child) == "script"]:
            token = "".join(script.itertext()).strip()
            found[task.get("id") or ""] = token
            task.set(f"{{{BATON}}}handler", HANDLERS[token in TAKES_TIME])
            task.remove(script)
    return found


# ---- expressions


def _spell_expressions(root: Element, case: Case) -> None:
    listed = {(tag, text.strip()) for tag, text in case.expressions}
    for element in _elements(root):
        text = (element.text or "").strip()
        if text and (local(element), text) in listed:
            element.text = spelled(local(element), text, formal="FormalExpression" in (element.get(f"{{{XSI}}}type") or ""))


def spelled(tag: str, text: str, *, formal: bool) -> str:
    """An expression of the suite in ours. What is no expression in any language stays as it is, unless it claims to be one."""
    if tag.startswith("time") or text.startswith(("${", "#{")):
        return text
    if tag in NUMBERS:
        return text if text.isdigit() or not formal else "1"
    for candidate in (text, text.rstrip(">")):
        if not candidate.isdigit() and _is_expression(candidate):
            return f"${{{candidate}}}"
    return "${true}" if formal else text


def _is_expression(text: str) -> bool:
    try:
        return not parse(f"${{{text}}}", language="juel").is_template
    except ExpressionError:
        return False


# ---- ids


def _rename(root: Element, chance: random.Random) -> dict[str, str]:
    new_ids: dict[str, str] = {}
    for element in _elements(root):
        old = element.get("id")
        if old and element is not root:
            new_ids.setdefault(old, f"{chance.choice('abcdefgh')}{chance.randrange(10**12):012d}")
            element.set("id", new_ids[old])
    for element in root.iter():
        if not isinstance(element.tag, str) or namespace(element) not in (BPMN, BPMNDI):
            continue
        for name, value in element.attrib.items():
            key = str(name)
            if key in REFERENCES or key.endswith(("Ref", "Refs")) or key == "bpmnElement":
                element.set(key, _renamed(str(value), new_ids))
        tag = local(element)
        if element.text and (tag in REFERRING or tag.endswith(("Ref", "Refs"))):
            element.text = _renamed(element.text, new_ids)
    return new_ids


def _renamed(text: str, new_ids: Mapping[str, str]) -> str:
    """An id, or a qualified name with one, replaced; references to nothing stay so."""
    prefix, colon, name = text.strip().rpartition(":")
    if text.strip() in new_ids:
        return new_ids[text.strip()]
    return f"{prefix}{colon}{new_ids[name]}" if name in new_ids else text


def _elements(root: Element) -> Iterator[Element]:
    return (cast("Element", each) for each in root.iter() if isinstance(each.tag, str) and namespace(each) == BPMN)
