"""The elements and attributes of DMN 1.1 to 1.3 that a file may hold, and what becomes of them.

Only names, so that what is not here can be told. What they mean is the business of the parsers.
"""

from __future__ import annotations

from collections.abc import Mapping


def _table(text: str) -> Mapping[str, frozenset[str]]:
    """Lines `element element: attribute attribute`. Every element may have an id, and a label."""
    found: dict[str, frozenset[str]] = {}
    for line in text.strip().splitlines():
        elements, _, attributes = line.partition(":")
        for element in elements.split():
            found[element] = frozenset({"id", "label", *attributes.split()})
    return found


# Read, or without a meaning for the run; each with its attributes.
ATTRIBUTES = _table("""
definitions: name namespace expressionLanguage typeLanguage exporter exporterVersion
decision businessKnowledgeModel inputData: name
variable formalParameter parameter informationItem column: name typeRef
informationRequirement knowledgeRequirement authorityRequirement:
requiredDecision requiredInput requiredKnowledge requiredAuthority: href
decisionTable: typeRef hitPolicy aggregation preferredOrientation outputLabel
input:
output: name typeRef
inputExpression literalExpression outputEntry defaultOutputEntry: typeRef expressionLanguage
inputValues outputValues inputEntry allowedValues: expressionLanguage typeRef
annotation: name
rule annotationEntry row:
context list relation invocation: typeRef
encapsulatedLogic functionDefinition: typeRef kind
contextEntry binding:
itemDefinition itemComponent: name typeLanguage isCollection
typeRef text description question allowedAnswers extensionElements:
textAnnotation: textFormat
association: associationDirection
sourceRef targetRef: href
group elementCollection: name
drgElement: href
performanceIndicator: name URI
impactingDecision: href
organizationUnit: name URI
decisionMade decisionOwned: href
knowledgeSource: name locationURI
type owner: href
supportedObjective impactedPerformanceIndicator decisionMaker decisionOwner usingProcess usingTask: href
decisionService: name
outputDecision encapsulatedDecision inputDecision: href
""")

# Of these nothing is read: they describe, and no result depends on them. What lies in them is not looked at either.
DESCRIBED = frozenset(
    {
        "knowledgeSource",
        "authorityRequirement",
        "textAnnotation",
        "association",
        "group",
        "elementCollection",
        "performanceIndicator",
        "organizationUnit",
        "supportedObjective",
        "impactedPerformanceIndicator",
        "decisionMaker",
        "decisionOwner",
        "usingProcess",
        "usingTask",
        "question",
        "allowedAnswers",
        "description",
    }
)

# Known and refused, with what to do instead.
REFUSED: Mapping[str, str] = {
    "import": "all that a decision requires in one file",
    "importedValues": "the values themselves",
    "functionItem": "a type without functions",
    "typeConstraint": "allowedValues",
    "conditional": "a literal expression with if",
    "for": "a literal expression with for",
    "some": "a literal expression with some",
    "every": "a literal expression with every",
    "filter": "a literal expression with a filter",
}
