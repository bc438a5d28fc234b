"""Call activities (BPMN 2.0.2, 10.3.6): which process is called, and what is mapped, as Camunda 7, Camunda 8 and Flowable write it."""

from __future__ import annotations

from engine.bpmn import data, mappings, names
from engine.bpmn.context import MAX_NAME, Context, named
from engine.bpmn.definition import CallConfig
from engine.bpmn.names import CAMUNDA_LIKE, ZEEBE, Element
from engine.bpmn.parts import BINDINGS
from engine.bpmn.support import Supported, register
from engine.expressions import Expression, constant
from engine.expressions.parse import Compiled

ELSEWHERE = ("caseRef", "variableMappingClass", "variableMappingDelegateExpression")  # what is not here, and what Java maps
MAPPED = 'source or sourceExpression with target, or variables="all"'


def register_all() -> None:
    register("callActivity", Supported("call_activity", "activity", parse, conditional=True))


def parse(element: Element, context: Context) -> CallConfig | None:
    zeebe = context.extension(element, "calledElement", ZEEBE)
    process = _zeebe_process(element, zeebe, context) if zeebe is not None else _process(element, context)
    binding = _zeebe_binding(element, zeebe, context) if zeebe is not None else _binding(element, context)
    version, tag = _version(element, binding, context), _tag(element, zeebe, binding, context)
    inputs, passes, business_key = _inputs(element, context)
    results, returns_all = _results(element, context)
    local, outputs = mappings.inputs(element, context), mappings.outputs(element, context)
    if passes == "none" and next(names.bpmn(element, "dataInputAssociation"), None) is not None:
        passes = "local"  # 10.4.1: its data inputs are those of what it calls
    returned = [source for output in data.outputs(element, "call_activity", context) for source in output.sources]
    results += tuple((name, name) for name in dict.fromkeys(returned) if name not in dict(results))
    if zeebe is not None:
        passes = "all" if names.flag(zeebe.get("propagateAllParentVariables"), default=True) else "local" if local else passes
        returns_all = returns_all or (not outputs and names.flag(zeebe.get("propagateAllChildVariables"), default=True))
    if process is None:
        return None
    return CallConfig(process, binding, version, tag, local, inputs, passes, business_key, results, returns_all, outputs)


# ---- which process


def _process(element: Element, context: Context) -> Expression | None:
    """`calledElement`: the id of a process, written as a QName or not, or an expression."""
    text = (element.get("calledElement") or "").strip()
    elsewhere = [name for name in ELSEWHERE if context.attribute(element, name) is not None]
    for name in elsewhere:
        context.problem(element, f"{named(element)} has the attribute {name}", "calledElement, with camunda:in and camunda:out")
    if not text:
        return None if elsewhere else _of_its_id(element, context)
    prefix, _, name = text.partition(":")
    text = name if name and prefix in element.nsmap and "{" not in text else text
    return _short(element, context.expression(element, text, _where(element), instead=element.get("id")), context)


def _zeebe_process(element: Element, zeebe: Element, context: Context) -> Expression | None:
    found = context.zeebe(zeebe, zeebe.get("processId"), _where(element))
    if not (zeebe.get("processId") or "").strip():
        return _of_its_id(element, context)
    return _short(element, found, context)


def _of_its_id(element: Element, context: Context) -> Expression:
    key = str(element.get("id"))
    context.warn(element, f"{named(element)} says nowhere what it calls", f"a process of the id {key!r}, which is called instead")
    return constant(key)


def _short(element: Element, found: Compiled | None, context: Context) -> Compiled | None:
    if found is not None and found.is_constant and len(str(found.evaluate({}))) > MAX_NAME:
        context.problem(element, f"{named(element)} calls something whose id is too long", f"an id of at most {MAX_NAME} characters")
        return None
    return found


def _where(element: Element) -> str:
    return f"what {named(element)} calls"


def _binding(element: Element, context: Context) -> str:
    written = context.attribute(element, "calledElementBinding", *CAMUNDA_LIKE)
    same = context.attribute(element, "sameDeployment", *CAMUNDA_LIKE)
    if written is None:
        return "deployment" if names.flag(same, default=False) else "latest"
    return _known(element, written, context)


def _zeebe_binding(element: Element, zeebe: Element, context: Context) -> str:
    return _known(element, zeebe.get("bindingType") or "latest", context, but=("version",))


def _known(element: Element, written: str, context: Context, *, but: tuple[str, ...] = ()) -> str:
    allowed = [binding for binding in BINDINGS if binding not in but]
    if written.strip() in allowed:
        return BINDINGS[written.strip()]
    context.problem(element, f"{named(element)} has the binding {written!r}", " or ".join(allowed))
    return "latest"


def _version(element: Element, binding: str, context: Context) -> Expression | None:
    text = context.attribute(element, "calledElementVersion", *CAMUNDA_LIKE)
    if binding != "version":
        return None
    found = context.expression(element, text, f"the calledElementVersion of {named(element)}")
    if not (text or "").strip():
        context.problem(element, f"{named(element)} is bound to a version and does not say which", "a calledElementVersion")
    elif found is not None and found.is_constant and not _is_version(str(found.evaluate({}))):
        context.problem(element, f"{named(element)} calls the version {text!r}", "the number of a version, from 1, or an expression")
    return found


def _tag(element: Element, zeebe: Element | None, binding: str, context: Context) -> Expression | None:
    where = f"the version tag that {named(element)} calls"
    given = context.attribute(element, "calledElementVersionTag", *CAMUNDA_LIKE) if zeebe is None else zeebe.get("versionTag")
    if binding != "tag":
        return None
    if not (given or "").strip():
        context.problem(element, f"{named(element)} is bound to a version tag and names none", "the version tag")
    return context.expression(element, given, where) if zeebe is None else context.zeebe(element, given, where)


def _is_version(text: str) -> bool:
    return text.strip().isascii() and text.strip().isdecimal() and len(text.strip()) < 10 and int(text) > 0


# ---- what is mapped


def _inputs(element: Element, context: Context) -> tuple[tuple[tuple[str, Expression | str], ...], str, Expression | None]:
    """camunda:in: the mapped variables, what is passed besides, and the business key."""
    found: dict[str, Expression | str] = {}
    inherits = names.flag(context.attribute(element, "inheritVariables", *CAMUNDA_LIKE), default=False)
    passes, business_key = "all" if inherits else "none", None
    for child in context.extensions(element, "in"):
        if child.get("businessKey") is not None:
            business_key = context.expression(child, child.get("businessKey"), f"the business key of {named(element)}")
        elif child.get("variables") is not None:
            local = names.flag(child.get("local"), default=False)
            passes = _all(child, element, context) and ("local" if local else "all")
        else:
            _map(child, element, found, context)
    return tuple(found.items()), passes or "none", business_key


def _results(element: Element, context: Context) -> tuple[tuple[tuple[str, Expression | str], ...], bool]:
    """camunda:out: the mapped variables, and whether all come back."""
    found: dict[str, Expression | str] = {}
    every = False
    for child in context.extensions(element, "out"):
        if names.flag(child.get("local"), default=False):
            what = f"{named(element)} keeps a result local, where nothing is left that could see it"
            context.warn(child, what, "camunda:out without local; it is not kept")
        elif child.get("variables") is not None:
            every = bool(_all(child, element, context)) or every
        else:
            _map(child, element, found, context)
    return tuple(found.items()), every


def _all(child: Element, element: Element, context: Context) -> str:
    if child.get("variables") == "all":
        return "all"
    context.problem(child, f"a mapping of {named(element)} has variables={child.get('variables')!r}", MAPPED)
    return ""


def _map(child: Element, element: Element, found: dict[str, Expression | str], context: Context) -> None:
    target, source = (child.get("target") or "").strip(), (child.get("source") or "").strip()
    expression = (child.get("sourceExpression") or "").strip()
    if not target or len(target) > MAX_NAME or bool(source) == bool(expression):
        context.problem(child, f"a mapping of {named(element)} is not complete", MAPPED)
    elif target in found:
        context.problem(child, f"two mappings of {named(element)} have the target {target!r}", "each target once")
    elif source:
        found[target] = source
    elif (value := context.expression(child, expression, f"the mapping to {target!r} of {named(element)}")) is not None:
        found[target] = value
