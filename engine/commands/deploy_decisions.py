"""The decisions of a deployment: what their files say, and which versions they become. `deploy.py` writes them.

The decisions of one file go together: when one of them is new, all are new versions. So each finds what it requires beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from engine.bpmn.definition import Problem
from engine.bpmn.fingerprint import fingerprint
from engine.commands.outcome import DeployedDecision
from engine.dmn.definition import Decision, DecisionGraph
from engine.ids import new_id
from engine.text import sort_key

# Members of the deployment's statement.
DECIDED = """, decided AS (
  INSERT INTO decision_definition (id, tenant_id, key, version, version_tag, name, sort_key, deployment_id, resource_name, content_hash,
    xml, documentation, created_at)
  SELECT u.id, d.tenant_id, u.key, u.version, u.tag, u.name, u.sort_key, d.id, u.file, u.hash, u.xml, u.documentation, d.deployed_at
  FROM deployed d, unnest(%(decision_ids)s::uuid[], %(decision_keys)s::text[], %(decision_versions)s::int[], %(decision_tags)s::text[],
    %(decision_names)s::text[], %(decision_sort_keys)s::text[], %(decision_files)s::text[], %(decision_hashes)s::bytea[],
    %(decision_xmls)s::bytea[], %(decision_documentations)s::text[])
    AS u (id, key, version, tag, name, sort_key, file, hash, xml, documentation)
  RETURNING id, tenant_id, key, version, created_at
), told_decision AS (
  INSERT INTO history (at, tenant_id, kind, actor, item_id, data)
  SELECT created_at, tenant_id, 'decision_deployed', %(actor)s, id,
    jsonb_build_object('key', key, 'version', version, 'deployment_id', %(deployment_id)s::uuid)
  FROM decided
)"""


@dataclass(frozen=True, slots=True)
class DecisionFile:
    """One file of decisions."""

    name: str
    xml: bytes
    graph: DecisionGraph
    content_hash: bytes


@dataclass(frozen=True, slots=True)
class DecisionVersion:
    """What one decision becomes: a new version, or the newest one that is the same."""

    file: DecisionFile
    decision: Decision
    id: UUID
    number: int
    unchanged: bool


def files_of(graphs: Sequence[tuple[str, DecisionGraph]], contents: Mapping[str, bytes]) -> list[DecisionFile]:
    """The files that were read, with what tells them apart."""
    return [DecisionFile(name, contents[name], graph, fingerprint(contents[name])) for name, graph in graphs]


def versions_of(files: Sequence[DecisionFile], newest: Sequence[Mapping[str, Any]]) -> list[DecisionVersion]:
    """A version for each decision; `newest` as `baton_lock_decisions` has them."""
    before = {found["key"]: found for found in newest}
    versions = []
    for file in files:
        same = all(key in before and bytes.fromhex(before[key]["content_hash"]) == file.content_hash for key in file.graph.decisions)
        for key, decision in file.graph.decisions.items():
            found = before.get(key)
            if same and found is not None:
                versions.append(DecisionVersion(file, decision, UUID(found["id"]), found["version"], unchanged=True))
            else:
                number = 1 if found is None else found["version"] + 1
                versions.append(DecisionVersion(file, decision, new_id(), number, unchanged=False))
    return versions


def deployed_decisions(versions: Sequence[DecisionVersion]) -> tuple[DeployedDecision, ...]:
    """As the outcome of the command has them; the warnings of a file stand with its first decision."""
    told: set[str] = set()
    found = []
    for version in versions:
        warnings: tuple[Problem, ...] = () if version.file.name in told else version.file.graph.warnings
        told.add(version.file.name)
        decision = version.decision
        found.append(
            DeployedDecision(version.id, decision.key, version.number, decision.name, version.file.name, version.unchanged, warnings)
        )
    return tuple(found)


def parameters_of(new: Sequence[DecisionVersion]) -> dict[str, Any]:
    """Those of `DECIDED`."""
    return {
        "decision_ids": [v.id for v in new],
        "decision_keys": [v.decision.key for v in new],
        "decision_versions": [v.number for v in new],
        "decision_tags": [v.decision.version_tag for v in new],
        "decision_names": [v.decision.name for v in new],
        "decision_sort_keys": [sort_key(v.decision.name or v.decision.key) for v in new],
        "decision_files": [v.file.name for v in new],
        "decision_hashes": [v.file.content_hash for v in new],
        "decision_xmls": [v.file.xml for v in new],
        "decision_documentations": [v.decision.documentation or v.decision.question for v in new],
    }
