"""The working state of one advance: tokens and scopes as they move, and what the expressions read from them.

Mutable and private to the core; it begins as the snapshot says and ends as rows of `Effects`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from engine.bpmn.definition import Node, ProcessDefinition
from engine.core.values import Variable, native
from engine.expressions.clock import CLOCK


class Instance:
    """A process instance, and the definition that it runs by. Each scope belongs to one.

    `scope`: its process scope, owned by the token that called it, if it was called. `ended`: how it ended in this advance.
    """

    __slots__ = ("_engine_names", "business_key", "definition", "definition_id", "ended", "id", "scope", "started_by", "stored")

    def __init__(
        self,
        id: UUID,
        definition_id: UUID,
        definition: ProcessDefinition,
        business_key: str | None,
        started_by: str | None,
        *,
        stored: bool,
    ) -> None:
        self.id = id
        self.definition_id = definition_id
        self.definition = definition
        self.business_key = business_key
        self.started_by = started_by
        self.stored = stored
        self.scope: Scope | None = None
        self.ended: str | None = None  # completed | cancelled
        self._engine_names: dict[str, Any] | None = None

    @property
    def caller(self) -> Token | None:
        """The token of the call activity; None for the root of the case."""
        return self.scope.owner if self.scope is not None else None

    @property
    def depth(self) -> int:
        """How many instances call each other down to this one; 1 for the root."""
        depth, caller = 1, self.caller
        while caller is not None:
            depth, caller = depth + 1, caller.scope.instance.caller
        return depth

    def engine_names(self, now: datetime) -> dict[str, Any]:
        """The names that the engine itself knows, hidden by variables of the same name."""
        if self._engine_names is None:
            self._engine_names = {CLOCK: now, "now": now, "businessKey": self.business_key, "initiator": self.started_by}
        return self._engine_names


class Scope:
    """An active scope. `tokens` are those seen; `unseen` says that the database has more (a narrow snapshot)."""

    __slots__ = (
        "alive",
        "children",
        "counted",
        "counters",
        "definition",
        "element_id",
        "executions",
        "id",
        "instance",
        "own_copy",
        "owner",
        "owner_row",
        "parent",
        "stored",
        "tokens",
        "unseen",
        "variables",
    )

    def __init__(self, id: UUID, instance: Instance, parent: Scope | None, owner: Token | None, element_id: str | None) -> None:
        self.id = id
        self.instance = instance
        self.definition = instance.definition  # an element id means something in its definition alone
        self.parent = parent
        self.owner = owner
        self.owner_row: UUID | None = None  # the owner's id as stored: its row takes this scope along when it goes
        self.element_id = element_id
        self.variables: Mapping[str, Variable] = {}
        self.own_copy = False
        self.tokens: dict[Token, None] = {}
        self.unseen = False
        self.stored = False
        self.alive = True
        self.counters: Mapping[str, Any] = {}  # {total, begun, completed} of a loop's body, {loop} of an iteration, {todo, enough} ad hoc
        self.counted = False
        self.children: list[Scope] = []  # iterations: scopes that no token owns
        self.executions: list[Execution] = []  # completed ones that can be compensated, as far as they were loaded

    @property
    def is_iteration(self) -> bool:
        """Whether it is one run of a looped activity."""
        return "loop" in self.counters

    @property
    def is_compensating(self) -> bool:
        """Whether what was completed in it is being undone, one after the other, and nothing else happens in it."""
        return "compensating" in self.counters

    def count(self, **counters: Any) -> None:
        """Set the counters of a loop, or the state of compensation."""
        self.counters = counters
        self.counted = True

    def begin_no_more(self) -> None:
        """What was still to begin here never will."""
        if "todo" in self.counters:
            self.count(**{**self.counters, "todo": []})

    def set(self, name: str, variable: Variable) -> None:
        """Set a variable in this very scope."""
        if not self.own_copy:
            self.variables = dict(self.variables)
            self.own_copy = True
        self.variables[name] = variable  # type: ignore[index]  # a dict of ours since own_copy

    def visible(self) -> dict[str, Variable]:
        """Every variable that is seen from here; the inner one hides the outer one."""
        seen: dict[str, Variable] = {}
        scope: Scope | None = self
        while scope is not None:
            seen = {**scope.variables, **seen}
            scope = scope.parent
        return seen

    def holder_of(self, name: str) -> Scope:
        """The nearest scope up the chain that has the name, else the process scope. What a handler was given it only reads."""
        scope = self
        while scope.parent is not None and (name not in scope.variables or "undoes" in scope.counters):
            scope = scope.parent
        return scope

    def path(self) -> tuple[UUID, ...]:
        """The ids from the root's process scope to this one, through the tokens that called."""
        ids = []
        scope: Scope | None = self
        while scope is not None:
            ids.append(scope.id)
            scope = scope.parent or (scope.owner.scope if scope.owner is not None else None)
        return tuple(reversed(ids))


class Token:
    """A token on its way. `settled`: it still rests where the snapshot had it, with the rows that hang off it there."""

    __slots__ = (
        "alive",
        "element_id",
        "ended",
        "flow_id",
        "id",
        "inner",
        "leaves",
        "memory",
        "remembers",
        "results",
        "scope",
        "settled",
        "status",
        "stored",
    )

    def __init__(self, id: UUID, scope: Scope, element_id: str, flow_id: str | None, status: str, *, stored: bool) -> None:
        self.id = id
        self.scope = scope
        self.element_id = element_id
        self.flow_id = flow_id
        self.status = status  # lifecycle.TOKEN, or `moving` while it is between two elements
        self.stored = stored
        self.settled = stored
        self.alive = True
        self.inner: Scope | None = None
        self.memory: Mapping[str, Any] | None = None  # of what it waits for and has no row, see engine.core.conditions
        self.remembers = False  # something else than what is stored
        self.ended: Scope | None = None  # its inner scope, when that has ended in this step
        self.results: Mapping[str, Variable] = {}  # of the work that ended in this step, where it can be compensated
        self.leaves: list[tuple[list[Any], Any]] = []  # (list of the effects, new row), kept only if the token still rests here

    @property
    def node(self) -> Node:
        """The element that it is at, in the definition of its scope."""
        return self.scope.definition.nodes[self.element_id]

    def watches(self, event_id: str) -> bool:
        """Whether it waits for a condition here, which is true."""
        return self.memory is not None and self.memory.get("conditions", {}).get(event_id) is True

    def remember(self, memory: Mapping[str, Any]) -> None:
        """Keep this for as long as the token waits here."""
        self.memory, self.remembers = memory, True

    def wait_for(self, rows: list[Any], row: Any) -> None:
        """Hang a new row (task, job, external task, subscription, incident) off this token."""
        self.leaves.append((rows, row))


class Execution:
    """A completed execution of an activity that can be compensated, in the scope or in the execution around it (`place`)."""

    __slots__ = ("alive", "element_id", "executions", "home", "id", "number", "place", "stored", "variables")

    def __init__(self, id: UUID, place: Scope | Execution | None, element_id: str, number: int, variables: Mapping[str, Variable]) -> None:
        self.id = id
        self.place = place
        self.home: Scope | Execution | None = None  # the place in the database
        self.element_id = element_id
        self.number = number  # in the order of completion
        self.variables = variables
        self.executions: list[Execution] = []  # those within it
        self.stored = False
        self.alive = True


class Names(Mapping[str, Any]):
    """What an expression may name in a scope: `local` values first, the variables of the chain, then what the engine knows.

    The engine's own names, hidden by variables of the same name: `now`, `businessKey`, `initiator`.
    """

    __slots__ = ("engine", "local", "scope")

    def __init__(self, scope: Scope, engine: Mapping[str, Any], local: Mapping[str, Any] | None = None) -> None:
        self.scope = scope
        self.engine = engine
        self.local = local

    @property
    def about(self) -> Mapping[str, Any]:
        """What expressions such as `execution.id` tell of the case, whatever the variables are called."""
        instance = self.scope.instance
        return {
            "businessKey": instance.business_key,
            "processInstanceId": str(instance.id),
            "processDefinitionKey": instance.definition.key,
        }

    def __getitem__(self, name: str) -> Any:
        if self.local is not None and name in self.local:
            return self.local[name]
        scope: Scope | None = self.scope
        while scope is not None:
            variable = scope.variables.get(name)
            if variable is not None:
                return native(variable)
            scope = scope.parent
        return self.engine[name]

    def __iter__(self) -> Iterator[str]:
        seen = dict.fromkeys(self.local or ())
        scope: Scope | None = self.scope
        while scope is not None:
            seen.update(dict.fromkeys(scope.variables))
            scope = scope.parent
        seen.update(dict.fromkeys(self.engine))
        return iter(seen)

    def __len__(self) -> int:
        return sum(1 for _ in self)
