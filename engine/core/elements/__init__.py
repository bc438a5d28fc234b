"""Behaviour per kind of node, a file each. Importing the package imports every file, and each registers itself."""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
