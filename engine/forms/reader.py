"""form-js JSON -> forms of ours, or every reason why not, by component. The components that take a value are read by `fields.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.bpmn.context import MAX_NAME
from engine.bpmn.definition import FormField, Problem
from engine.forms.component import Component, Reading
from engine.forms.definition import Drawn, Form
from engine.forms.fields import TYPES, read_field
from engine.forms.text import Unreadable, content_hash, parse_json

ENDINGS = (".form", ".json")
MAX_COMPONENTS = 1_000
OF_TOOLS = frozenset({"exporter", "executionPlatform", "executionPlatformVersion", "generated", "$schema"})
NOT_SHOWN = frozenset({"html", "image", "iframe", "documentPreview"})  # drawn alone: nothing is lost with them but the sight
SHAPES = frozenset({"spacer", "separator", "button"})  # a page of ours has its own buttons


def is_form_file(name: str) -> bool:
    """Whether a file holds a form, by its name."""
    return name.lower().endswith(ENDINGS)


@dataclass(frozen=True, slots=True)
class FormFile:
    """A form as its file has it."""

    name: str
    content: bytes
    form: Form
    content_hash: bytes


@dataclass(frozen=True, slots=True)
class ReadForms:
    """A form for each file that could be read. Right only if `problems` is empty."""

    files: tuple[FormFile, ...]
    problems: tuple[Problem, ...]

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(warning for file in self.files for warning in file.form.warnings)


def read_forms(files: Sequence[tuple[str, bytes]]) -> ReadForms:
    """Read the forms of one deployment. Never raises for what they contain."""
    found: list[FormFile] = []
    problems: list[Problem] = []
    for name, content in files:
        reading = Reading(name, content)
        try:
            document = parse_json(content)
        except Unreadable as unreadable:
            problems.append(Problem(None, unreadable.line, unreadable.what, unreadable.why, name))
            continue
        form = _form(document, reading)
        problems += reading.problems
        if form is not None:
            found.append(FormFile(name, content, form, content_hash(document)))
    return ReadForms(tuple(found), (*problems, *_keys_used_twice(found)))


def _keys_used_twice(files: Sequence[FormFile]) -> list[Problem]:
    used = Counter(file.form.key for file in files)
    what, why = "{} forms have the id {!r}", "an id of its own for each form"
    twice = [(file.form.key, file.name) for file in files if used[file.form.key] > 1]
    return [Problem(key, None, what.format(used[key], key), why, name) for key, name in twice]


def _form(document: dict[str, Any], reading: Reading) -> Form | None:
    top = Component({**document, "type": "the form", "label": None}, reading)
    key = top.text("id")
    if not key or len(key) > MAX_NAME:
        reading.problem(None, "the form has no id", f"an id of 1 to {MAX_NAME} characters: processes refer to it")
        return None
    if document.get("type", "default") != "default":
        reading.problem(key, f"the form has the type {str(document['type'])[:80]!r}", "default")
    _schema_version(document, key, reading)
    components = document.get("components", [])
    parts = _parts(components, reading, key)
    tag = top.text("versionTag")[:MAX_NAME] or None
    read = OF_TOOLS | {"id", "type", "schemaVersion", "components", "versionTag"}
    for name in sorted(document.keys() - read):
        reading.warn(key, f"the form has the property {name[:80]!r}, which is not read", "the properties that docs/forms.md lists")
    return Form(key, tuple(parts), tag, tuple(reading.warnings))


def _schema_version(document: dict[str, Any], key: str, reading: Reading) -> None:
    version = document.get("schemaVersion", 1)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        reading.problem(key, f"the form has the schemaVersion {str(version)[:80]!r}", "a whole number, 1 or more")


def _parts(components: Any, reading: Reading, around: str) -> list[FormField | Drawn]:
    """Groups are their members behind a heading. The depth is that of the JSON, which is limited."""
    if not isinstance(components, list):
        reading.problem(around, "the components are no list", "a list of components")
        return []
    if len(components) > MAX_COMPONENTS:
        reading.problem(around, f"there are {len(components):,} components", f"at most {MAX_COMPONENTS:,}")
        return []
    found: list[FormField | Drawn] = []
    for each in components:
        if not isinstance(each, dict):
            reading.problem(around, f"the component {str(each)[:80]!r} is no object", "an object with a type")
            continue
        found += _component(Component(each, reading))
    return found


def _component(component: Component) -> list[FormField | Drawn]:
    _conditional(component)
    found: list[FormField | Drawn] = []
    match component.kind:
        case kind if kind in TYPES:
            field = read_field(component)
            found = [] if field is None else [_adorned(component, field)]
        case "group":
            found = _group(component)
        case "text":
            found = _text(component)
        case "separator":
            found = [Drawn("line")]
        case kind if kind in NOT_SHOWN:
            component.warn("is not shown: what it draws is none of ours", "text")
            return []
        case kind if kind in SHAPES:
            return []
        case _:
            component.problem("is a component that is not read", f"one of {', '.join(TYPES)}, group, text, separator, spacer, button")
            return []
    if component.get("properties"):
        component.warn("has properties of its own, which are not read", "what docs/forms.md lists")
    component.report()
    return found


def _conditional(component: Component) -> None:
    condition = component.get("conditional")
    if condition and not (isinstance(condition, dict) and not any(condition.values())):
        component.problem("is shown under a condition (conditional)", "a component that is shown always")


def _adorned(component: Component, field: FormField) -> FormField:
    """What stands before and behind the input (a currency, say) goes to its description."""
    appearance = component.part("appearance")
    around = [text for name in ("prefixAdorner", "suffixAdorner") if (text := appearance.text(name))]
    appearance.report()
    return field if not around else replace(field, description=" · ".join([*([field.description] if field.description else []), *around]))


def _group(component: Component) -> list[FormField | Drawn]:
    if path := component.text("path"):
        component.problem(f"puts its fields into {path!r} (path)", "no path: each field is a variable")
    component.get("showOutline"), component.get("verticalAlignment")
    heading = component.text("label")
    members = _parts(component.get("components") or [], component.reading, component.id or "")
    return [*([Drawn("heading", heading)] if heading else []), *members]


def _text(component: Component) -> list[FormField | Drawn]:
    """Shown as it is written: the marks of Markdown are none of ours."""
    text = component.get("text")
    if isinstance(text, str) and (text.lstrip().startswith("=") or "{{" in text):
        component.warn("has an expression as its text, so it is not shown", "plain text")
        return []
    return [Drawn("text", text.strip())] if isinstance(text, str) and text.strip() else []
