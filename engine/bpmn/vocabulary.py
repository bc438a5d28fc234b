"""The attributes that the standard's XML gives each element, and what of all that is for people and tools alone.

Only names, so that `unread.py` can report what is not read. What they mean is the business of the parsers.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.bpmn.names import BPMNDI, DC, DI


def _table(text: str) -> Mapping[str, frozenset[str]]:
    """Lines `element element: attribute attribute`."""
    found: dict[str, frozenset[str]] = {}
    for line in text.strip().splitlines():
        elements, _, attributes = line.partition(":")
        for element in elements.split():
            found[element] = found.get(element, frozenset()) | frozenset(attributes.split())
    return found


_ACTIVITY = "name isForCompensation startQuantity completionQuantity default"
_CATCH = "name parallelMultiple"
_GATEWAY = "name gatewayDirection"
_CHOREOGRAPHY = "name initiatingParticipantRef loopType"

# Every element of BPMN may have an id (8.3.1); elements that are not here have nothing else.
STANDARD = _table(f"""
definitions: name targetNamespace expressionLanguage typeLanguage exporter exporterVersion
import: namespace location importType
extension: definition mustUnderstand
documentation: textFormat
process: name isExecutable isClosed processType definitionalCollaborationRef
collaboration choreography globalConversation: name isClosed
globalChoreographyTask: name isClosed initiatingParticipantRef
participant: name processRef
participantMultiplicity: minimum maximum
messageFlow: name sourceRef targetRef messageRef
conversation callConversation subConversation: name calledCollaborationRef
conversationLink: name sourceRef targetRef
choreographyTask subChoreography callChoreography: {_CHOREOGRAPHY} calledChoreographyRef
correlationKey: name
correlationProperty: name type
correlationPropertyRetrievalExpression: messageRef
correlationSubscription: correlationKeyRef
correlationPropertyBinding: correlationPropertyRef
message: name itemRef
error: name errorCode structureRef
escalation: name escalationCode structureRef
signal: name structureRef
itemDefinition: structureRef isCollection itemKind
interface operation: name implementationRef
resource endPoint partnerEntity partnerRole category: name
categoryValue: value
dataStore: name capacity isUnlimited itemSubjectRef
relationship: type direction
ioBinding: operationRef inputDataRef outputDataRef
globalTask globalManualTask: name
globalUserTask globalBusinessRuleTask: name implementation
globalScriptTask: name scriptLanguage scriptFormat
task manualTask: {_ACTIVITY}
userTask businessRuleTask: {_ACTIVITY} implementation
serviceTask: {_ACTIVITY} implementation operationRef
sendTask: {_ACTIVITY} implementation operationRef messageRef
receiveTask: {_ACTIVITY} implementation operationRef messageRef instantiate
scriptTask: {_ACTIVITY} scriptFormat
callActivity: {_ACTIVITY} calledElement
subProcess: {_ACTIVITY} triggeredByEvent
transaction: {_ACTIVITY} triggeredByEvent method
adHocSubProcess: {_ACTIVITY} triggeredByEvent ordering cancelRemainingInstances
startEvent: {_CATCH} isInterrupting
intermediateCatchEvent: {_CATCH}
boundaryEvent: {_CATCH} attachedToRef cancelActivity
intermediateThrowEvent endEvent implicitThrowEvent event: name
exclusiveGateway inclusiveGateway complexGateway: {_GATEWAY} default
parallelGateway: {_GATEWAY}
eventBasedGateway: {_GATEWAY} instantiate eventGatewayType
sequenceFlow: name sourceRef targetRef isImmediate
messageEventDefinition: messageRef
signalEventDefinition: signalRef
errorEventDefinition: errorRef
escalationEventDefinition: escalationRef
linkEventDefinition: name
compensateEventDefinition: activityRef waitForCompletion
conditionExpression condition formalExpression: language evaluatesToTypeRef
activationCondition completionCondition loopCondition loopCardinality: language evaluatesToTypeRef
timeDate timeDuration timeCycle transformation from to: language evaluatesToTypeRef
dataPath messagePath: language evaluatesToTypeRef
standardLoopCharacteristics: testBefore loopMaximum
multiInstanceLoopCharacteristics: isSequential behavior oneBehaviorEventRef noneBehaviorEventRef
dataObject property inputDataItem outputDataItem: name itemSubjectRef isCollection
dataInput dataOutput: name itemSubjectRef isCollection
dataObjectReference: name itemSubjectRef dataObjectRef
dataStoreReference: name itemSubjectRef dataStoreRef
dataState inputSet outputSet laneSet childLaneSet rendering: name
lane: name partitionElementRef
performer humanPerformer potentialOwner resourceRole: name
resourceParameter: name type isRequired
resourceParameterBinding: parameterRef
association: sourceRef targetRef associationDirection
textAnnotation: textFormat
group: categoryValueRef
""")

# Elements that are drawn or describe: with all that the standard puts into them, they say nothing to the run.
FOR_PEOPLE = frozenset(
    {
        "documentation",
        "textAnnotation",
        "association",
        "group",
        "category",
        "laneSet",
        "childLaneSet",
        "lane",
        "dataStore",
        "dataStoreReference",
        "dataState",
        "ioSpecification",
        "inputSet",
        "outputSet",
        "itemDefinition",
        "collaboration",
        "choreography",
        "globalChoreographyTask",
        "conversation",
        "globalConversation",
        "import",
        "relationship",
    }
)

# Attributes that do the same. Ids and names are of everything: what a parser does not ask for is there to be read.
IDS = frozenset({"id"})
NAMES = IDS | {"name"}
DESCRIPTIVE = _table("""
definitions: targetNamespace exporter exporterVersion typeLanguage
process: isClosed processType definitionalCollaborationRef
property dataInput dataOutput inputDataItem outputDataItem dataObject dataObjectReference: itemSubjectRef isCollection
dataObjectReference: dataObjectRef
message: itemRef
receiveTask messageEventDefinition: operationRef
interface operation: implementationRef
error escalation signal: structureRef
""")

# What they hold is read, whatever is wrong with themselves.
CONTAINERS = frozenset({"definitions", "process", "subProcess", "transaction", "adHocSubProcess"})

_DRAWN = "id bpmnElement"
DIAGRAM: Mapping[str, Mapping[str, frozenset[str]]] = {
    BPMNDI: _table(f"""
BPMNDiagram: id name documentation resolution
BPMNPlane: {_DRAWN}
BPMNShape: {_DRAWN} isHorizontal isExpanded isMarkerVisible isMessageVisible participantBandKind choreographyActivityShape
BPMNEdge: {_DRAWN} sourceElement targetElement messageVisibleKind
BPMNLabel: id labelStyle
BPMNLabelStyle: id
"""),
    DC: _table("""
Bounds: x y width height
Font: name size isBold isItalic isUnderline isStrikeThrough
Point: x y
"""),
    DI: _table("""
waypoint: x y
"""),
}

# Extension elements with which editors remember how something is drawn, and their attributes.
BY_EDITORS: Mapping[str, frozenset[str]] = {
    "{http://www.signavio.com}signavioMetaData": frozenset({"metaKey", "metaValue"}),
    "{http://www.signavio.com}signavioLabel": frozenset({"ref", "align", "valign", "x", "y", "top", "bottom", "left", "right"}),
    "{http://flowable.org/design}stencilid": frozenset(),
    "{http://flowable.org/design}stencilsuperid": frozenset(),
}

# Attributes in these namespaces say how something is drawn, or with what: no process depends on them.
OF_TOOLS = frozenset(
    {
        "http://camunda.org/schema/modeler/1.0",
        "http://bpmn.io/schema/bpmn/biocolor/1.0",
        "http://www.omg.org/spec/BPMN/non-normative/color",
        "http://www.omg.org/spec/BPMN/non-normative/color/1.0",
        "http://www.w3.org/XML/1998/namespace",
        "http://www.w3.org/2001/XMLSchema-instance",
    }
)
