"""Forms that elements refer to: formRef and its binding, formKey, Zeebe's formDefinition. What is no form of ours is reported as unread.

A form key is that of a deployed form, `camunda-forms:deployment:FILE`, or `camunda-forms:bpmn:ID` of a userTaskForm of the process.
Pages of other products (`embedded:app:…`, `app:….jsf`) have no counterpart here.
"""

from __future__ import annotations

import re

from engine.bpmn import names
from engine.bpmn.context import MAX_NAME, Context, named
from engine.bpmn.definition import FormReference
from engine.bpmn.names import BPMN, ZEEBE, Element
from engine.bpmn.noted import note
from engine.bpmn.parts import BINDINGS
from engine.expressions import constant

OF_A_FILE, EMBEDDED = "camunda-forms:deployment:", "camunda-forms:bpmn:"
_KEY = re.compile(r"[\w-][\w. -]*")


def read(element: Element, context: Context) -> FormReference | None:
    """What the element refers to; a reference comes before a key, Camunda's before Zeebe's."""
    return _ref(element, context) or _key(element, context) or _zeebe(element, context)


def _ref(element: Element, context: Context) -> FormReference | None:
    key = context.expression(element, context.attribute(element, "formRef"), f"formRef of {named(element)}")
    if key is None:
        return None
    binding = _binding(element, context.attribute(element, "formRefBinding"), context, but="versionTag")
    version = context.expression(element, context.attribute(element, "formRefVersion"), f"formRefVersion of {named(element)}")
    if binding != "version":
        return FormReference(key, binding)
    if version is None or (version.is_constant and not re.fullmatch(r"\d{1,9}", str(version.evaluate({})), re.ASCII)):
        context.problem(element, f"{named(element)} binds its form by version, and names none", "formRefVersion: a whole number")
        return None
    return FormReference(key, binding, version=version)


def _key(element: Element, context: Context) -> FormReference | None:
    found = _of_key(names.vendor(element, "formKey"), element)
    if found is not None:
        context.attribute(element, "formKey")  # read, and noted so
    return found


def _zeebe(element: Element, context: Context) -> FormReference | None:
    given = context.extension(element, "formDefinition", ZEEBE)
    if given is None:
        return None
    key = context.zeebe(element, given.get("formId"), f"formId of {named(element)}")
    if key is None:
        found = _of_key(given.attrib.get("formKey"), element)
        if found is not None:
            given.get("formKey")
        return found
    binding = _binding(element, given.get("bindingType"), context, but="version")
    tag = context.zeebe(element, given.get("versionTag"), f"versionTag of {named(element)}") if binding == "tag" else None
    if binding == "tag" and tag is None:
        context.problem(element, f"{named(element)} binds its form by version tag, and names none", "versionTag")
        return None
    return FormReference(key, binding, tag=tag)


def _binding(element: Element, text: str | None, context: Context, *, but: str) -> str:
    """`but`: what the dialect does not have."""
    word = (text or "latest").strip()
    if word not in BINDINGS or word == but:
        wanted = ", ".join(each for each in BINDINGS if each != but)
        context.problem(element, f"{named(element)} binds its form by {word[:80]!r}", f"one of {wanted}")
    return BINDINGS.get(word, "latest")


def _of_key(text: str | None, element: Element) -> FormReference | None:
    """What a form key says; None: it is none that is understood."""
    key = (text or "").strip()
    if key.startswith(OF_A_FILE) and len(key) > len(OF_A_FILE):
        return FormReference(file=key.removeprefix(OF_A_FILE), binding="deployment")
    if key.startswith(EMBEDDED):
        return _embedded(key.removeprefix(EMBEDDED), element)
    if not _KEY.fullmatch(key) or len(key) > MAX_NAME or key.endswith((".html", ".jsf", ".xhtml")):
        return None
    return FormReference(constant(key))


def _embedded(name: str, element: Element) -> FormReference | None:
    tag = f"{{{ZEEBE}}}userTaskForm"
    for process in element.iterancestors(f"{{{BPMN}}}process"):
        for child in names.extensions(process):
            if child.tag == tag and child.attrib.get("id") == name:
                note(child)
                child.get("id")
                return FormReference(embedded=names.text(child).strip(), binding="deployment", name=name)
    return None
