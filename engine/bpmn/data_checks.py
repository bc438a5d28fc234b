"""Data (10.4): items that fit together, sets that list what they use, associations between data."""

from __future__ import annotations

from collections.abc import Iterator

from engine.bpmn import names
from engine.bpmn.names import BPMN, Element
from engine.bpmn.whole_file import Rule, Whole, same_item, structure

COUNTED = ("dataInput", "dataOutput", "dataObject", "inputDataItem", "outputDataItem")
ITEM_AWARE = frozenset({*COUNTED, "dataObjectReference", "dataStoreReference", "dataStore", "property"})
ASSOCIATIONS = ("dataInputAssociation", "dataOutputAssociation")
THROWN_OR_CAUGHT = {  # event definition -> the attribute that names what it is about
    "messageEventDefinition": "messageRef",
    "signalEventDefinition": "signalRef",
    "escalationEventDefinition": "escalationRef",
    "errorEventDefinition": "errorRef",
}


def _collections(whole: Whole) -> None:
    """10.4.1: data is a collection if its item definition says so."""
    for data in _everywhere(whole, *COUNTED):
        item = whole.item(data)
        if item is None or names.local(item) != "itemDefinition":
            continue
        said, meant = (names.flag(each.get("isCollection"), default=False) for each in (data, item))
        if said != meant:
            one, other = ("a collection", "none") if said else ("no collection", "one")
            whole.problem(data, f"is {one}, and its item definition {item.get('id')!r} is {other}", "the same in both (isCollection)")


def _everywhere(whole: Whole, *tags: str) -> Iterator[Element]:
    """In the executable processes, and in global tasks."""
    yield from whole.within(*tags)
    for task in _global_tasks(whole):
        for tag in tags:
            yield from task.iter(f"{{{BPMN}}}{tag}")


def _global_tasks(whole: Whole) -> Iterator[Element]:
    return (child for child in names.elements(whole.root) if names.local(child).startswith("global") and "Task" in names.local(child))


def _sets(whole: Whole) -> None:
    """10.4.2: what is optional or used while executing is listed in its set; input and output sets name each other."""
    naming: dict[tuple[str, str], set[str]] = {}  # (id of a set, what it names) -> ids
    for side, other in (("input", "output"), ("output", "input")):
        for one in _everywhere(whole, f"{side}Set"):
            naming[one.get("id") or "", other] = set(whole.texts(one, f"{other}SetRefs"))
    for side, other in (("input", "output"), ("output", "input")):
        title = side.capitalize()
        for one in _everywhere(whole, f"{side}Set"):
            listed = set(whole.texts(one, f"data{title}Refs"))
            for word, tag in (("optional", f"optional{title}Refs"), ("used while executing", f"whileExecuting{title}Refs")):
                for key in whole.texts(one, tag):
                    data = whole.by_id.get(key)
                    if key not in listed and data is not None:
                        whole.problem(data, f"is {word} in a set that does not list it", f"data{title}Refs with it in the same {side}Set")
            for key in whole.texts(one, f"{other}SetRefs"):
                if one.get("id") not in naming.get((key, side), ()):
                    whole.problem(one, f"names the {other}Set {key!r}, which does not name it", f"both to name each other ({side}SetRefs)")


def _associations(whole: Whole) -> None:
    """10.4.2: from data to data of the same item, unless a transformation or assignments say how."""
    for association in _everywhere(whole, *ASSOCIATIONS):
        ends = {}
        for tag in ("sourceRef", "targetRef"):
            for key in whole.texts(association, tag):
                found = ends[tag] = whole.by_id.get(key)
                if found is None or names.local(found) not in ITEM_AWARE:
                    is_what = "does not exist" if found is None else f"is a {names.local(found)}"
                    whole.problem(association, f"has the {tag} {key!r}, which {is_what}", "data: an object, input, output, property")
        transformation = next(names.bpmn(association, "transformation"), None)
        if transformation is not None and not names.text(transformation).strip():
            whole.problem(association, "has an empty transformation", "an expression")
        if len(whole.texts(association, "sourceRef")) > 1 and transformation is None:
            whole.problem(association, "has several sources and no transformation", "one source, or a transformation")
        copied = transformation is None and next(names.bpmn(association, "assignment"), None) is None
        source, target = (whole.item(ends.get(tag)) for tag in ("sourceRef", "targetRef"))
        if copied and source is not None and target is not None and not same_item(source, target):
            what = f"copies {source.get('id')!r} into {target.get('id')!r}, which is another item"
            whole.problem(association, what, "the same item definition, a transformation, or assignments")


def _events(whole: Whole) -> None:
    """10.4.2 and 10.5.1: an event with data has one for each of its event definitions that is about an item."""
    for event in whole.within("startEvent", "intermediateCatchEvent", "boundaryEvent", "intermediateThrowEvent", "endEvent"):
        given = list(names.bpmn(event, "dataInput", "dataOutput"))
        about = [
            item
            for tag, attribute in THROWN_OR_CAUGHT.items()
            for definition in names.bpmn(event, tag)
            if (item := whole.item(whole.to(definition.get(attribute)))) is not None
        ]
        structures = {structure(item) for each in given if (item := whole.item(each)) is not None}
        if given and about and (len(given) != len(about) or not all(structure(item) in structures for item in about)):
            whole.problem(event, "has data that does not fit its event definitions", "for each of them one, of its item")


def _states(whole: Whole) -> None:
    """10.4.1: a reference to a data object in a state is called after both: `name [state]`."""
    for reference in whole.within("dataObjectReference"):
        state, data = next(names.bpmn(reference, "dataState"), None), whole.to(reference.get("dataObjectRef"))
        if state is None or data is None or not reference.get("name"):
            continue
        wanted = f"{data.get('name') or ''} [{state.get('name') or ''}]"
        if reference.get("name") != wanted:
            whole.problem(reference, f"refers to {data.get('name')!r} in the state {state.get('name')!r}", f"the name {wanted!r}")


def _loop_data(whole: Whole) -> None:
    """10.3.8.2: what an instance takes from or adds to a collection is of the collection's structure."""
    for loop in whole.within("multiInstanceLoopCharacteristics"):
        for reference, item_tag in (("loopDataInputRef", "inputDataItem"), ("loopDataOutputRef", "outputDataItem")):
            data = next(iter(whole.texts(loop, reference)), None)
            item = next(names.bpmn(loop, item_tag), None)
            collected, single = whole.item(whole.by_id.get(data or "")), whole.item(item)
            if item is None or collected is None or single is None or collected is single:
                continue
            if collected.get("structureRef") != single.get("structureRef"):
                whole.problem(item, f"has another structure than {data!r}", f"the structure {collected.get('structureRef')!r}")


STRICT: tuple[Rule, ...] = (_states,)
RULES: tuple[Rule, ...] = (_collections, _sets, _associations, _events, _loop_data)
