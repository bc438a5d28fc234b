"""The forms of a deployment: which versions they become. `deploy.py` writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from engine.commands.outcome import DeployedForm
from engine.forms.reader import FormFile
from engine.ids import new_id

# Members of the deployment's statement.
FORMED = """, formed AS (
  INSERT INTO form_definition (id, tenant_id, key, version, version_tag, deployment_id, resource_name, content_hash, content, created_at)
  SELECT u.id, d.tenant_id, u.key, u.version, u.tag, d.id, u.file, u.hash, u.content, d.deployed_at
  FROM deployed d, unnest(%(form_ids)s::uuid[], %(form_keys)s::text[], %(form_versions)s::int[], %(form_tags)s::text[],
    %(form_files)s::text[], %(form_hashes)s::bytea[], %(form_contents)s::bytea[]) AS u (id, key, version, tag, file, hash, content)
  RETURNING id, tenant_id, key, version, created_at
), told_form AS (
  INSERT INTO history (at, tenant_id, kind, actor, item_id, data)
  SELECT created_at, tenant_id, 'form_deployed', %(actor)s, id,
    jsonb_build_object('key', key, 'version', version, 'deployment_id', %(deployment_id)s::uuid)
  FROM formed
)"""


@dataclass(frozen=True, slots=True)
class FormVersion:
    """What one form becomes: a new version, or the newest one that is the same."""

    file: FormFile
    id: UUID
    number: int
    unchanged: bool


def form_versions(files: Sequence[FormFile], newest: Sequence[Mapping[str, Any]]) -> list[FormVersion]:
    """A version for each form; `newest` as `baton_lock_forms` has them."""
    before = {found["key"]: found for found in newest}
    return [_version(file, before.get(file.form.key)) for file in files]


def _version(file: FormFile, before: Mapping[str, Any] | None) -> FormVersion:
    if before is None:
        return FormVersion(file, new_id(), 1, unchanged=False)
    if bytes.fromhex(before["content_hash"]) == file.content_hash:
        return FormVersion(file, UUID(before["id"]), before["version"], unchanged=True)
    return FormVersion(file, new_id(), before["version"] + 1, unchanged=False)


def deployed_forms(versions: Sequence[FormVersion]) -> tuple[DeployedForm, ...]:
    """As the outcome of the command has them."""
    return tuple(
        DeployedForm(each.id, each.file.form.key, each.number, each.file.form.key, each.file.name, each.unchanged, each.file.form.warnings)
        for each in versions
    )


def parameters_of_forms(new: Sequence[FormVersion]) -> dict[str, Any]:
    """Those of `FORMED`."""
    return {
        "form_ids": [v.id for v in new],
        "form_keys": [v.file.form.key for v in new],
        "form_versions": [v.number for v in new],
        "form_tags": [v.file.form.version_tag for v in new],
        "form_files": [v.file.name for v in new],
        "form_hashes": [v.file.content_hash for v in new],
        "form_contents": [v.file.content for v in new],
    }
