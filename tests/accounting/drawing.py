"""What is there for people and tools. Written from the standard, not from the reader: two lists that agree by luck would be one too few.

Clauses of BPMN 2.0.2 stand beside what they describe.
"""

from __future__ import annotations

from lxml import etree

BPMN = "http://www.omg.org/spec/BPMN/20100524/MODEL"
DIAGRAMS = (  # chapter 12: diagram interchange
    "http://www.omg.org/spec/BPMN/20100524/DI",
    "http://www.omg.org/spec/DD/20100524/DC",
    "http://www.omg.org/spec/DD/20100524/DI",
)
TOOLS = (  # colours, the name of the modeler, and what XML itself says
    "http://camunda.org/schema/modeler/1.0",
    "http://bpmn.io/schema/bpmn/biocolor/1.0",
    "http://www.omg.org/spec/BPMN/non-normative/color",
    "http://www.omg.org/spec/BPMN/non-normative/color/1.0",
    "http://www.w3.org/XML/1998/namespace",
    "http://www.w3.org/2001/XMLSchema-instance",
)

WHOLE = frozenset(  # elements with all that the standard puts into them
    (
        # 8.3.1, 8.4.1: artifacts and documentation
        *("documentation", "textAnnotation", "association", "group", "category"),
        # 10.7: lanes, which have no semantics of execution
        *("laneSet", "childLaneSet", "lane"),
        # 10.4.1: stores outlive the process; states, items and sets describe data
        *("dataStore", "dataStoreReference", "dataState", "ioSpecification", "inputSet", "outputSet", "itemDefinition"),
        # 9, 11: what is between participants
        *("collaboration", "choreography", "globalChoreographyTask", "conversation", "globalConversation"),
        # 8.2.3, 8.4.10
        *("import", "relationship"),
    )
)
EVERYWHERE = frozenset({"id", "name"})
DESCRIBING = frozenset(
    (
        # 8.2.1
        *(("definitions", name) for name in ("targetNamespace", "exporter", "exporterVersion", "typeLanguage")),
        # 10.2
        *(("process", name) for name in ("isClosed", "processType", "definitionalCollaborationRef")),
        # 8.4.3, 10.4.1: types; variables have the type of their value
        *((tag, "itemRef") for tag in ("message",)),
        *((tag, "structureRef") for tag in ("error", "escalation", "signal")),
        *(
            (tag, name)
            for tag in (
                *("property", "dataInput", "dataOutput", "inputDataItem", "outputDataItem"),
                *("dataObject", "dataObjectReference"),
            )
            for name in ("itemSubjectRef", "isCollection")
        ),
        ("dataObjectReference", "dataObjectRef"),
        # 8.4.3: how a service is called, which the engine never does
        *((tag, "implementationRef") for tag in ("interface", "operation")),
        *((tag, "operationRef") for tag in ("receiveTask", "messageEventDefinition")),
    )
)
EDITORS = {  # of Signavio: colours, labels, its own keys; of Flowable: the symbol on the palette
    "{http://www.signavio.com}signavioMetaData": ("metaKey", "metaValue"),
    "{http://www.signavio.com}signavioLabel": ("ref", "align", "valign", "x", "y", "top", "bottom", "left", "right"),
    "{http://flowable.org/design}stencilid": (),
    "{http://flowable.org/design}stencilsuperid": (),
}
OF_DIAGRAMS = frozenset(
    """id name documentation resolution bpmnElement isHorizontal isExpanded isMarkerVisible isMessageVisible participantBandKind
    choreographyActivityShape sourceElement targetElement messageVisibleKind labelStyle x y width height size isBold isItalic
    isUnderline isStrikeThrough""".split()  # noqa: SIM905  # a list of words reads better than one of quotes
)


def is_whole(element: etree._Element, data: frozenset[str]) -> bool:
    """Whether an element is there for people, with everything of the standard in it. `data`: ids of what is data."""
    tag = etree.QName(element)
    if tag.namespace in DIAGRAMS or element.tag in EDITORS:
        return True
    if tag.namespace != BPMN:
        return False
    if tag.localname == "process":
        return (element.get("isExecutable") or "true").strip() in ("false", "0")
    if tag.localname in ("dataInputAssociation", "dataOutputAssociation"):
        return not _leads_from_data_to_data(element, data)
    return tag.localname in WHOLE


def _leads_from_data_to_data(association: etree._Element, data: frozenset[str]) -> bool:
    """Modelers draw associations to an activity with a placeholder in place of data."""
    ends = (
        [(end.text or "").strip().rpartition(":")[2] for end in association.iterchildren(f"{{{BPMN}}}{tag}")]
        for tag in ("sourceRef", "targetRef")
    )
    return all(any(key in data for key in keys) for keys in ends)


def is_drawn(element: etree._Element, attribute: str, *, within: bool) -> bool:
    """Whether an attribute says nothing to the run. `within`: the element is there for people."""
    tag, name = etree.QName(element), etree.QName(attribute)
    if name.namespace is not None:
        return name.namespace in TOOLS
    if tag.namespace in DIAGRAMS:
        return name.localname in OF_DIAGRAMS
    if tag.namespace != BPMN:
        return name.localname in EDITORS.get(str(element.tag), ("id",))
    return within or name.localname in EVERYWHERE or (tag.localname, name.localname) in DESCRIBING
