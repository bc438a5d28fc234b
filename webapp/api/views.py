"""Every route of the API, on its one blueprint."""

from webapp.api import attempts, definitions, external_tasks, instances, keys, messages, openapi, resting, tasks, work
from webapp.api.blueprint import blueprint

PARTS = (attempts, definitions, external_tasks, instances, keys, messages, openapi, resting, tasks, work)
"""Importing them registered their routes."""

__all__ = ["PARTS", "blueprint"]
