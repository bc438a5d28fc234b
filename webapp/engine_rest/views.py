"""Everything under `/engine-rest`: importing this module adds its routes. Whoever adds a file adds it here."""

from webapp.engine_rest import external_tasks, fetching, version
from webapp.engine_rest.blueprint import blueprint

__all__ = ["blueprint", "external_tasks", "fetching", "version"]
