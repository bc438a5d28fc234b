"""Everything under `/engine-rest`: importing this module adds its routes. Whoever adds a file adds it here."""

from webapp.engine_rest import version
from webapp.engine_rest.blueprint import blueprint

__all__ = ["blueprint", "version"]
