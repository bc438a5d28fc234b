"""The end of an advance: what moved becomes rows, each named at most once."""

from __future__ import annotations

from uuid import UUID

from engine.core.effects import Effects, EndedInstance, Home, InvariantBroken, MovedToken, NewInstance, NewScope, NewToken
from engine.core.executions import scope_of, settle_executions
from engine.core.run import Run
from engine.core.state import Instance, Scope
from engine.core.values import Variable


def settle(run: Run) -> Effects:
    """The effects of a run in which nothing moves any more."""
    effects = run.effects
    if len(run.instances) > 1:
        _instances(run)
    if run.root.ended is not None:
        return _ended(run)
    for token in run.tokens.values():
        if not token.alive:
            continue
        if token.status == "moving":
            raise InvariantBroken(f"token {token.id}: still between two elements, from {token.element_id}")
        if not token.stored:
            effects.new_tokens.append(NewToken(token.id, token.scope.id, token.element_id, token.flow_id, token.status, token.memory))
        elif not token.settled:
            effects.moved_tokens.append(MovedToken(token.id, token.element_id, token.flow_id, token.status, token.memory))
            if token.id in run.resolved and token.status != "failed":
                effects.resolved_incidents_of.append(token.id)
        elif token.remembers:
            effects.memories[token.id] = token.memory or {}
        for rows, row in token.leaves:
            rows.append(row)
    if len(run.scopes) > 1 or not run.scopes[0].stored:
        _scopes(run)
    for subscription, token_id in run.received.items():
        rests = run.tokens.get(token_id)
        if rests is not None and rests.alive:  # else it goes by cascade
            effects.gone_subscriptions.append(subscription)
    if run.gone:
        effects.gone_tokens.extend(token_id for token_id, scope in run.gone if scope.alive)
    if any(instance.definition.compensable for instance in run.instances.values()):
        settle_executions(run)
    if effects.jobs or effects.external_tasks:
        _lock_first(run)
    return effects


def _ended(run: Run) -> Effects:
    """Deleting the process scope takes every token and leaf along; the variables are kept in the instance's row."""
    effects = run.effects
    root, process = run.root, run.root.scope
    assert process is not None  # every instance that is seen has one
    effects.ended = root.ended
    effects.final_variables = _kept(process)
    effects.variables.clear()
    if process.stored:
        effects.gone_scopes.append(process.id)
        effects.forgets = any(instance.definition.compensable for instance in run.instances.values())
    if root.ended == "completed":
        run.record(process, "instance_completed")
    return effects


def _instances(run: Run) -> None:
    """Called instances that began or ended, and which rows are not of the snapshot's instance."""
    effects, root = run.effects, run.root
    for instance in run.instances.values():
        process, caller = instance.scope, instance.caller
        assert process is not None  # every instance that is seen has one
        if instance is root:
            pass
        elif not instance.stored:
            assert caller is not None  # only the root has none
            status = instance.ended or "running"
            final = _kept(process) if instance.ended else None
            parent, by = caller.scope.instance.id, instance.started_by or ""
            new = NewInstance(instance.id, instance.definition_id, parent, caller.id, instance.business_key, by, status, final)
            effects.new_instances.append(new)
        elif instance.ended is not None:
            effects.ended_instances.append(EndedInstance(instance.id, instance.ended, _kept(process)))
    for event in effects.history:
        if event.instance_id is not None and event.instance_id not in effects.homes:
            effects.homes[event.instance_id] = _home(run.instances[event.instance_id])
    for scope in run.scopes:
        if scope.alive and scope.instance is not run.instance:
            _settle_elsewhere(effects, scope)
    for execution in run.executions.known:
        place = scope_of(execution)
        if place is not None and place.instance is not run.instance and not execution.stored:
            effects.homes[execution.id] = _home(place.instance)


def _settle_elsewhere(effects: Effects, scope: Scope) -> None:
    """Where the new rows of a scope belong that is not of the snapshot's instance."""
    new = [token.id for token in scope.tokens if token.leaves or not token.stored]
    if not scope.stored:
        new.append(scope.id)
    if new:
        home = _home(scope.instance)
        effects.homes.update((key, home) for key in new)


def _kept(process: Scope) -> dict[str, Variable]:
    """The variables of an instance that has ended, every one of which must have been read."""
    return {name: Variable(each.type, each.value) for name, each in process.variables.items()}


def _home(instance: Instance) -> Home:
    return Home(instance.id, instance.definition_id, instance.definition.name, instance.business_key)


def _scopes(run: Run) -> None:
    """New and gone scopes. A scope that ended took its inner ones along, so `alive` is right at every depth."""
    effects = run.effects
    gone = {token_id for token_id, _ in run.gone}
    for scope in run.scopes:
        parent, owner = scope.parent, scope.owner
        if scope.alive and not scope.stored:
            parent_id = parent.id if parent is not None else None
            owner_id = owner.id if owner else None
            effects.new_scopes.append(NewScope(scope.id, parent_id, owner_id, scope.element_id, scope.path(), scope.counters))
        elif not scope.alive and scope.stored:
            by_cascade = scope.owner_row in gone or (parent is not None and not parent.alive)
            if not by_cascade:
                effects.gone_scopes.append(scope.id)
        elif scope.alive and scope.counted:
            effects.counters[scope.id] = scope.counters
    dead = {scope.id for scope in run.scopes if not scope.alive}
    dead |= {UUID(scope.counters["results"]) for scope in run.scopes if not scope.alive and "results" in scope.counters}
    if dead:
        for key in [key for key in effects.variables if key[0] in dead]:
            del effects.variables[key]


def _lock_first(run: Run) -> None:
    """Work of a token that has siblings takes the root's lock first: its optimistic write would lose too often."""
    moving = 0
    for token in run.tokens.values():
        if token.alive and token.inner is None and (token.status != "listening" or token.leaves):
            moving += 1
    if moving > 1 or any(scope.unseen for scope in run.scopes):
        for job in run.effects.jobs:
            job.lock_first = True
        for task in run.effects.external_tasks:
            task.lock_first = True
