"""Which commands of the engine a page, a route of the API or a word of the command line ends in: by the syntax trees, from name to name.

A door is a function that Flask or click is told of. From each one the names in its body are followed: to functions, classes and
constants of the same package, and through imports to the functions of `engine.commands`, where the way ends.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache

from tests.architecture.sources import ROOT

METHODS = frozenset({"get", "post", "put", "patch", "delete", "route"})
WORDS = frozenset({"command"})
COMMANDS, QUERIES = "engine.commands", "engine.queries"
Name = tuple[str, str]  # (module, what is defined there)


@dataclass(frozen=True)
class Module:
    """`defined`: what it defines at its top, by name. `imported`: name -> (module, name there or "" for the module itself)."""

    defined: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imported: dict[str, Name] = field(default_factory=dict)


@dataclass(frozen=True)
class Command:
    """A public command. `asks`: it takes an Actor, so it is somebody's wish; else it is the engine's own work."""

    name: str
    module: str
    asks: bool


def commands() -> dict[str, Command]:
    """Every public function of engine/commands that is decorated as a command, by name."""
    found = {}
    for path in sorted((ROOT / "engine" / "commands").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and any(ast.unparse(each) == "command" for each in node.decorator_list):
                kinds = {each.arg: each.annotation for each in (*node.args.args, *node.args.kwonlyargs)}
                actor = kinds.get("actor")
                assert node.name not in found, f"two commands are called {node.name}"
                found[node.name] = Command(node.name, f"{COMMANDS}.{path.stem}", actor is not None and ast.unparse(actor) == "Actor")
    return found


def reached(doors: Iterable[Name]) -> set[str]:
    """The names of the commands that these doors end in."""
    return {what for _, what in _ends(doors, COMMANDS)}


def read(doors: Iterable[Name]) -> set[str]:
    """The functions of `engine.queries` that these doors end in, as `crew.workers`."""
    ends = {(module, what) for module, what in _ends(doors, QUERIES) if _is_function(module, what)}
    return {f"{module.removeprefix(f'{QUERIES}.')}.{what}" for module, what in ends}


def _ends(doors: Iterable[Name], where: str) -> set[Name]:
    """What is defined below the package `where`, as far as the doors lead there."""
    found, seen, waiting = set(), set(), list(doors)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        module, what = name
        if not module.startswith(where):
            waiting += _named(module, what)
        elif not _exists(f"{module}.{what}"):  # a module's own name is none of its contents
            found.add(name)
    return found


def _is_function(module: str, what: str) -> bool:
    return any(isinstance(node, ast.FunctionDef) for node in _read(module).defined.get(what, ()))


def doors(*packages: str, without: tuple[str, ...] = (), attributes: frozenset[str] = METHODS) -> list[Name]:
    """What Flask (or click, by its own `attributes`) is told of in these packages."""
    return [
        (module, what)
        for module in _modules(packages, without)
        for what, nodes in _read(module).defined.items()
        if any(_is_door(node, attributes) for node in nodes)
    ]


def everything(*packages: str) -> list[Name]:
    """All that these packages define: for programs that begin at their main function."""
    return [(module, what) for module in _modules(packages, ()) for what in _read(module).defined]


def _modules(packages: tuple[str, ...], without: tuple[str, ...]) -> Iterator[str]:
    for package in packages:
        for path in sorted((ROOT / package.replace(".", "/")).rglob("*.py")):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            if not module.startswith(without):
                yield module


def _is_door(node: ast.stmt, attributes: frozenset[str]) -> bool:
    if not isinstance(node, ast.FunctionDef):
        return False
    told = (each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)
    return any(isinstance(each, ast.Attribute) and each.attr in attributes for each in told)


def _named(module: str, what: str) -> Iterator[Name]:
    """What the body of one name speaks of, as far as it is ours."""
    read = _read(module)
    if what not in read.defined:
        if what in read.imported:  # a module hands on what it imported
            yield read.imported[what]
        return
    local = dict(read.imported)
    for node in read.defined[what]:
        local |= _imports(node)
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id in read.defined:
                yield (module, part.id)
            elif isinstance(part, ast.Name) and local.get(part.id, ("", ""))[1]:
                yield local[part.id]
            elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                whose, name = local.get(part.value.id, ("", ""))
                inner = f"{whose}.{name}" if name else whose
                if whose and _exists(inner):
                    yield (inner, part.attr)


@cache
def _read(module: str) -> Module:
    if not _exists(module):
        return Module()
    base = ROOT / module.replace(".", "/")
    path = base.with_suffix(".py") if base.with_suffix(".py").exists() else base / "__init__.py"
    found = Module()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                found.defined.setdefault(node.name, []).append(node)
            case ast.Assign() | ast.AnnAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    for part in ast.walk(target):
                        if isinstance(part, ast.Name):
                            found.defined.setdefault(part.id, []).append(node)
            case _:
                found.imported.update(_imports(node))
    return found


def _imports(node: ast.AST) -> dict[str, Name]:
    found: dict[str, Name] = {}
    for part in ast.walk(node):
        if isinstance(part, ast.ImportFrom) and part.module and part.level == 0:
            found |= {each.asname or each.name: (part.module, each.name) for each in part.names}
        elif isinstance(part, ast.Import):
            found |= {each.asname or each.name: (each.name, "") for each in part.names}
    return found


@cache
def _exists(module: str) -> bool:
    base = ROOT / module.replace(".", "/")
    return base.with_suffix(".py").exists() or (base / "__init__.py").exists()
