"""The imports of the four apps as a graph of files. ``python -m tests.bench.shape`` counts them."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
APPS = ("memoryhub", "workspaces", "memories", "chat")  # from the lowest layer up
Graph = dict[str, set[str]]


def sources(root: Path = ROOT) -> list[Path]:
    return [path for app in APPS for path in (root / app).rglob("*.py") if "migrations" not in path.parts]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imports(root: Path = ROOT) -> Graph:
    """Return the imports of each file of the four apps, at the top and inside functions, without type-only ones."""
    files = {_module(path, root): path for path in sources(root)}
    return {
        module: {name for name in _named(module, path, files) if name in files and name != module}
        for module, path in files.items()
    }


def circles(graph: Graph) -> list[set[str]]:
    """Return the groups of files that import each other in a circle."""
    try:
        TopologicalSorter(graph).prepare()
        return []
    except CycleError:  # finding its members takes longer
        pass
    reached = {module: _reached(module, graph) for module in graph}
    tied = {module: {other for other in reached[module] if module in reached[other]} for module in graph}
    return [set(knot) for knot in {frozenset(knot) for knot in tied.values()} if len(knot) > 1]


def _reached(module: str, graph: Graph) -> set[str]:
    found: set[str] = set()
    waiting = [module]
    while waiting:
        for name in graph[waiting.pop()] - found:
            found.add(name)
            waiting.append(name)
    return found


def _named(module: str, path: Path, files: dict[str, Path]) -> Iterator[str]:
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in _statements(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            room = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                yield f"{room}.{alias.name}" if f"{room}.{alias.name}" in files else room


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements outside ``if TYPE_CHECKING``; expressions, most of a tree, import nothing."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            yield node
            yield from _statements(node)


def _module(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
