"""One process of a file: its scopes, nodes and flows, in one pass, and what links them.

Elements are read by the parsers in `elements/` and `loops.py`; rules of structure are in `checks.py`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from engine.bpmn import checks, compensation, data, implicit, loops, multiple, names, operations, support, unconditional
from engine.bpmn.around import put_between
from engine.bpmn.conditions import condition
from engine.bpmn.context import Context, in_order, named
from engine.bpmn.definition import BoundaryConfig, CatchConfig, EventGatewayConfig, Flow, Node, Problem, ProcessDefinition, ThrowConfig
from engine.bpmn.flags import check_flags
from engine.bpmn.kinds import kind_of
from engine.bpmn.names import BPMN, Element
from engine.bpmn.noted import note
from engine.bpmn.references import Places
from engine.bpmn.structure import Structure
from engine.bpmn.support import TABLE, Supported
from engine.bpmn.version_tags import version_tag
from engine.expressions import Expression

MAX_QUANTITY = 100  # tokens at once


def read_process(element: Element, places: Places, context: Context) -> ProcessDefinition | None:
    """The definition; None for a process without an id. It is complete and right only if the context has no problems."""
    return _Process(element, places, context).read()


@dataclass(slots=True)
class _Process:
    element: Element
    places: Places
    context: Context
    nodes: dict[str, Node] = field(default_factory=dict)
    flows: dict[str, Flow] = field(default_factory=dict)
    sources: dict[str, Element] = field(default_factory=dict)  # the XML of nodes and flows by id
    table: dict[str, Supported] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)
    drawn: Counter[str] = field(default_factory=Counter)

    def read(self) -> ProcessDefinition | None:
        key = (self.element.get("id") or "").strip()
        warned = len(self.context.warnings)
        if not key:
            self.context.problem(self.element, "a process has no id", "an id: it is the key under which versions are counted")
        self._read_scope(self.element, None)
        self._link()
        starts, links, tag = self._starts(), self._links(), version_tag(self.element, self.context)
        structure = Structure(
            self.element, self.nodes, self.flows, self.sources, self.table, starts, links, self.drawn, self.places.tags, self.context
        )
        checks.check(structure)
        put_between(structure, self.nodes, self.flows)
        for element in (self.element, *self.sources.values()):
            self.context.report_unread(element)
        if not key:
            return None
        parts = {each: found for each, node in self.nodes.items() if (found := multiple.parts_of(node))}
        self.nodes |= {part.id: part for each in parts.values() for part in each}
        return ProcessDefinition(
            key=key,
            name=self.element.get("name") or key,
            nodes=MappingProxyType(self.nodes),
            flows=MappingProxyType(self.flows),
            starts=MappingProxyType(starts),
            event_subprocesses=MappingProxyType(self._event_subprocesses()),
            links=MappingProxyType(links),
            parts=MappingProxyType({each: tuple(part.id for part in found) for each, found in parts.items()}),
            compensable=MappingProxyType(compensation.compensable(self.nodes, starts, compensation.associations(self.element))),
            documentation=_documentation(self.element),
            line=names.line(self.element),
            warnings=tuple(in_order(self.context.warnings[warned:])),
            version_tag=tag,
        )

    def _read_scope(self, container: Element, scope: str | None) -> None:
        """The flow nodes and flows of a process or subprocess, in document order."""
        for child in names.elements(container):
            space, tag = names.split(str(child.tag))
            own = (
                scope is not None and tag in support.LOOPS | support.COMMON_CHILDREN | self.table[scope].children
            )  # of the subprocess, seen by _check_common
            if space == BPMN and (own or tag in support.IGNORED):
                continue
            if space == BPMN and tag in support.DATA:
                continue  # variables: engine.bpmn.data
            if space == BPMN and tag == "sequenceFlow":
                self._read_flow(child, scope)
            else:
                self._read_node(child, scope)

    # ---- nodes

    def _read_node(self, element: Element, scope: str | None) -> None:
        supported = self._row(element)
        if supported is None:
            return
        key = element.get("id")
        if not key:
            self._without_id(element, "an id: flows and tokens refer to it")
            return
        if key in self.nodes:
            return  # named by check_ids
        note(element)
        operations.note_technology(element)
        self._check_common(element, supported)
        config = supported.parse(element, self.context)
        loop = loops.parse(element, self.context) if supported.activity else None
        if supported.role in ("throw", "end"):
            data.warn_of_unread(element, self.context)
        self.sources[key] = element
        self.table[key] = supported
        self.nodes[key] = Node(
            id=key,
            kind=kind_of(element, supported, config),
            name=(element.get("name") or "").strip(),
            parent=scope,
            documentation=_documentation(element),
            line=names.line(element),
            config=config,
            loop=loop,
            start_quantity=self._quantity(element, "startQuantity", supported),
            completion_quantity=self._quantity(element, "completionQuantity", supported),
            for_compensation=supported.activity and names.flag(element.get("isForCompensation"), default=False),
            data_outputs=data.outputs(element, kind_of(element, supported, config), self.context),
            locals=data.locals_of(element, self.context) if supported.container else (),
        )
        if default := names.reference(element.get("default")):
            self.defaults[key] = default
        if supported.container:
            self._read_scope(element, key)

    def _quantity(self, element: Element, name: str, supported: Supported) -> int:
        """10.3.2: how many tokens begin an activity together, or leave it over each flow."""
        text = (element.get(name) or "1").strip()
        quantity = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
        largest = MAX_QUANTITY if supported.activity else 1
        if not 1 <= quantity <= largest:
            why = f"a whole number from 1 to {largest}" if supported.activity else "1: it is no activity"
            self.context.problem(element, f"{named(element)} has the {name} {text!r}", why)
            return 1
        return quantity

    def _row(self, element: Element) -> Supported | None:
        """The row of the table for this element and its event definition; otherwise a problem that names it."""
        space, tag = names.split(str(element.tag))
        tag = tag if space == BPMN else str(element.tag)
        events = [child for child in names.elements(element) if names.local(child).endswith("EventDefinition")]
        rows = [event for known, event in TABLE if known == tag]
        if not rows:
            why = support.INSTEAD.get(tag, "an element of the list in docs/bpmn.md")
            self.context.problem(element, f"{named(element)} is not supported", why)
            return None
        if next(names.bpmn(element, "eventDefinitionRef"), None) is not None:
            return None  # to nothing, which is named already
        if len(events) > 1:
            return multiple.row_of(element, events, self.context)
        event = names.local(events[0]) if events else None
        if (found := TABLE.get((tag, event))) is not None:
            return found
        known = (each or "none" for each in rows if each not in (multiple.ANY, multiple.ALL))
        possible = " or ".join(sorted(known, key=lambda each: each.replace("none", "")))
        what = (
            f"{named(element)} with {'an' if event and event[0] in 'aeiou' else 'a'} {event}"
            if event
            else f"{named(element)} without event definition"
        )
        self.context.problem(element, f"{what} is not supported", f"as event definition {possible}")
        return None

    def _check_common(self, element: Element, supported: Supported) -> None:
        """What holds for every node: only children that are read, no attributes that change the meaning unread."""
        for child in names.elements(element):
            space, tag = names.split(str(child.tag))
            if space != BPMN or tag.endswith("EventDefinition") or tag in support.COMMON_CHILDREN | support.IGNORED | supported.children:
                continue
            if tag in support.DATA:
                continue
            if tag in support.LOOPS and supported.activity:
                continue  # read with the activity
            if not supported.container or tag in support.LOOPS:
                why = support.INSTEAD.get(tag, f"a {names.local(element)} without it")
                self.context.problem(child, f"{tag} of {named(element)} is not supported", why)
        if names.flag(element.get("isForCompensation"), default=False) and not supported.activity:
            self.context.problem(element, f"{named(element)} is for compensation", "isForCompensation false: it is no activity")
        check_flags(element, self.context)

    def _without_id(self, element: Element, why: str) -> None:
        """Its line is all that names it; the id of the process around it would name something else."""
        self.context.add(
            Problem(None, names.line(element), f"a {names.local(element)}{_called(element)} has no id", why, self.context.file)
        )

    # ---- flows

    def _read_flow(self, element: Element, scope: str | None) -> None:
        key = element.get("id") or ""  # every flow has one by now
        if key in self.flows:
            return  # named by check_ids
        check_flags(element, self.context)
        if not names.flag(element.get("isImmediate"), default=True) and names.flag(self.element.get("isExecutable"), default=False):
            what = f"{named(element)} lets other activities come between (isImmediate false)"
            self.context.problem(element, what, "isImmediate true, or nothing: the process is executable (8.3.13)")
        ends = [self._end(element, name) for name in ("sourceRef", "targetRef")]
        condition = self._condition(element)
        source, target = ends
        if source is not None:
            self.drawn[source] += 1
        if source is None or target is None:
            return
        (from_process, from_scope), (to_process, to_scope) = self.places.scope[source], self.places.scope[target]
        if from_process != to_process:
            self.context.problem(element, f"{named(element)} leads from one process into another", "a message between processes")
            return
        if from_scope != to_scope:
            what = f"{named(element)} crosses the border of a subprocess, from {source!r} to {target!r}"
            self.context.problem(element, what, "a flow within one scope")
            return
        self.sources[key] = element
        self.flows[key] = Flow(key, source, target, condition, (element.get("name") or "").strip())

    def _end(self, element: Element, name: str) -> str | None:
        wanted = names.reference(element.get(name))
        if wanted is None:
            self.context.problem(element, f"{named(element)} has no {name}", "the id of an element of this process")
            return None
        if wanted in self.places.scope:
            return wanted
        other = self.places.tags.get(wanted)
        what = f"which is a {names.local(other)}" if other is not None else "which does not exist"
        self.context.problem(element, f"{named(element)} has the {name} {wanted!r}, {what}", "the id of an element of this process")
        return None

    def _condition(self, element: Element) -> Expression | None:
        given = next(names.bpmn(element, "conditionExpression"), None)
        return None if given is None else condition(element, given, self.context)

    # ---- links

    def _link(self) -> None:
        """Give every node its flows, default and boundary events. Flows beside refused nodes go: those are named already."""
        self.flows = {key: flow for key, flow in self.flows.items() if flow.source in self.nodes and flow.target in self.nodes}
        incoming: dict[str, list[str]] = {key: [] for key in self.nodes}
        outgoing: dict[str, list[str]] = {key: [] for key in self.nodes}
        for flow in self.flows.values():
            outgoing[flow.source].append(flow.id)
            incoming[flow.target].append(flow.id)
        attached: dict[str, list[str]] = {}
        for key, node in self.nodes.items():
            if isinstance(node.config, BoundaryConfig):
                attached.setdefault(node.config.attached_to, []).append(key)
        for key, node in self.nodes.items():
            self.nodes[key] = replace(
                node,
                incoming=tuple(incoming[key]),
                outgoing=tuple(outgoing[key]),
                default=self._default(key, outgoing[key]),
                attached=tuple(attached.get(key, ())),
            )
        unconditional.settle(self.nodes, self.flows, self.sources, self.context)

    def _default(self, key: str, outgoing: list[str]) -> str | None:
        default = self.defaults.get(key)
        if default is None or default in outgoing:
            return default
        element = self.sources[key]
        other = self.places.tags.get(default)
        if other is not None and names.reference(other.get("sourceRef")) == key:
            return None  # its own flow, which has a problem that is named already
        what = f"{named(element)} has the default flow {default!r}, which {'does not leave it' if other is not None else 'does not exist'}"
        self.context.problem(element, what, "the id of a flow that leaves it")
        return None

    def _starts(self) -> dict[str | None, tuple[str, ...]]:
        starts: dict[str | None, list[str]] = {None: []}
        for key, node in self.nodes.items():
            if self.table[key].container:
                starts.setdefault(key, [])
            if self.table[key].role == "start" or getattr(node.config, "instantiate", False):
                starts.setdefault(node.parent, []).append(key)
            elif isinstance(node.config, EventGatewayConfig) and node.config.begins and node.parent is None:
                starts[None] += [self.flows[flow].target for flow in node.outgoing]  # each of its events starts an instance
        implicit.add(starts, self.nodes)
        return {scope: tuple(found) for scope, found in starts.items()}

    def _event_subprocesses(self) -> dict[str | None, tuple[str, ...]]:
        """The event subprocesses of each scope, in document order."""
        found: dict[str | None, list[str]] = {}
        for key, node in self.nodes.items():
            if node.kind == "event_subprocess":
                found.setdefault(node.parent, []).append(key)
        return {scope: tuple(keys) for scope, keys in found.items()}

    def _links(self) -> dict[str, str]:
        """Each link throw event with the first link catch event of its name in its scope; the checks name all others."""
        catches: dict[tuple[str | None, str], str] = {}
        for key, node in self.nodes.items():
            if isinstance(node.config, CatchConfig) and node.config.link is not None:
                catches.setdefault((node.parent, node.config.link), key)
        throws = {
            key: catches.get((node.parent, node.config.link))
            for key, node in self.nodes.items()
            if isinstance(node.config, ThrowConfig) and node.config.link is not None
        }
        return {key: catch for key, catch in throws.items() if catch is not None}


def _documentation(element: Element) -> str:
    return "\n\n".join(text for part in names.bpmn(element, "documentation") if (text := names.text(part).strip()))


def _called(element: Element) -> str:
    name = " ".join((element.get("name") or "").split())
    return f" named {name[:80]!r}" if name else ""
