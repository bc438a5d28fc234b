"""camunda:inputOutput, zeebe:ioMapping and data input associations: what an activity is given, and what becomes of its result."""

from __future__ import annotations

from engine.bpmn import data, names, stand_ins
from engine.bpmn.context import MAX_NAME, Context, named
from engine.bpmn.languages import named_language
from engine.bpmn.names import CAMUNDA_LIKE, ZEEBE, Element
from engine.bpmn.noted import note
from engine.expressions import Expression, ExpressionError, compose_list, compose_object, constant
from engine.expressions.parse import Compiled

MAX_DEPTH = 20  # lists and maps within each other

Mappings = tuple[tuple[str, Expression], ...]


def inputs(element: Element, context: Context, *, with_data: bool = True) -> Mappings:
    """The input parameters of an activity, in order, and its data inputs."""
    given = _mappings(element, "inputParameter", "input", context)
    if not with_data:
        return given
    names_given = {name for name, _ in given}
    for name, expression in data.inputs(element, context):
        if name in names_given:
            context.problem(element, f"{named(element)} has two inputs named {name!r}", "each name once")
        names_given.add(name)
        given += ((name, expression),)
    return given


def outputs(element: Element, context: Context) -> Mappings:
    """The output parameters of an activity, in order."""
    return _mappings(element, "outputParameter", "output", context)


def _mappings(element: Element, parameter: str, zeebe: str, context: Context) -> Mappings:
    found = dict(parameters(context.extension(element, "inputOutput"), parameter, element, context))
    mapping = context.extension(element, "ioMapping", ZEEBE)
    for child in names.children(mapping, {f"{{{ZEEBE}}}{zeebe}"}) if mapping is not None else ():
        name = str(child.get("target") or "")
        if _name_is_good(child, name, found, zeebe, element, context):
            source = context.zeebe(child, child.get("source"), f"the source of {name!r} of {named(element)}")
            found[name] = source if source is not None else constant(None)
    return tuple(found.items())


def parameters(holder: Element | None, parameter: str, element: Element, context: Context) -> Mappings:
    """The inputParameters or outputParameters of an inputOutput.

    One that another engine alone can evaluate is a variable: an output that of its own name, which the handler returns;
    an input that of the element's id and its name.
    """
    found: dict[str, Expression] = {}
    tags = {f"{{{space}}}{parameter}" for space in (names.BATON, *CAMUNDA_LIKE)}
    for child in names.children(holder, tags) if holder is not None else ():
        name = str(child.get("name") or "")
        if _name_is_good(child, name, found, parameter, element, context):
            instead = name if parameter == "outputParameter" else stand_ins.name_of(element, name)
            value = _value(child, f"the {parameter} {name!r} of {named(element)}", instead, context, 1)
            if value is not None:
                found[name] = value
    return tuple(found.items())


def _name_is_good(child: Element, name: str, found: dict[str, Expression], what: str, element: Element, context: Context) -> bool:
    if not name.strip() or len(name) > MAX_NAME:
        context.problem(child, f"{named(element)} has an {what} without a name", f"a name of 1 to {MAX_NAME} characters")
        return False
    if name in found:
        context.problem(child, f"{named(element)} has two {what}s named {name!r}", "each name once")
        return False
    return True


def _value(child: Element, where: str, instead: str, context: Context, depth: int) -> Compiled | None:
    """Text, or one camunda:list, camunda:map or camunda:script; nothing at all is null."""
    note(child)
    nested = list(names.elements(child))
    if not nested:
        text = names.text(child)
        return context.expression(child, text, where, instead=instead) if text.strip() else constant(None)
    if len(nested) > 1:
        _refuse(nested[1], where, context)
        return None
    return _composite(nested[0], where, instead, context, depth)


def _composite(element: Element, where: str, instead: str, context: Context, depth: int) -> Compiled | None:
    note(element)
    kind = names.local(element)
    if kind == "script":
        return _script(element, where, instead, context)
    if kind not in ("list", "map") or depth > MAX_DEPTH:
        _refuse(element, where, context)
        return None
    try:
        if kind == "list":
            items = [_item(item, where, instead, context, depth + 1) for item in names.elements(element)]
            return compose_list([item for item in items if item is not None])
        entries = {str(entry.get("key")): _value(entry, where, instead, context, depth + 1) for entry in names.elements(element)}
        return compose_object({key: value for key, value in entries.items() if value is not None})
    except ExpressionError as error:
        context.problem(element, f"{where} is too large: {error}", "a smaller one")
        return None


def _item(item: Element, where: str, instead: str, context: Context, depth: int) -> Compiled | None:
    """<value>text</value>, or a list, map or script directly within the list."""
    note(item)
    if names.local(item) == "value":
        return _value(item, where, instead, context, depth)
    return _composite(item, where, instead, context, depth)


def _script(script: Element, where: str, instead: str, context: Context) -> Compiled | None:
    """In our language it is evaluated; no other one is run."""
    given, resource = (script.get("scriptFormat") or "").strip(), script.get("resource")
    text = names.text(script).strip()
    if text and (language := named_language(given)) is not None:
        return context.expression(script, text, where, language=language, instead=instead)
    said = f"is a script in {given or 'no language'}" + (f", {resource[:80]}" if resource else "")
    return stand_ins.variable(script, where, f"{said}, which is not run", instead, context)


def _refuse(element: Element, where: str, context: Context) -> None:
    context.problem(element, f"{where} holds a {names.shown(str(element.tag))}", "text with expressions, or one list or map of them")
