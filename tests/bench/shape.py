"""Print size and shape of the code base: files, lines, circles, open types, words of docs; and walks of five jobs.

python -m tests.bench.shape [another checkout]     # the walks are of this one
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.imports import APPS, ROOT, circles, imports, sources
from tests.style import faults_of_code

COUNTED = {
    "Any": re.compile(r"\bAny\b"),
    "type: ignore": re.compile(r"# type: ignore"),
    "strings of SQL": re.compile(r'"""?\s*(?:SELECT|UPDATE|INSERT|DELETE|WITH)\b'),
}


def main(root: Path) -> None:
    graph = imports(root)
    for app in APPS:
        paths = [path for path in sources(root) if path.relative_to(root).parts[0] == app]
        knots = circles(_packages(graph, app))
        print(f"{app}: {len(paths)} files, {_lines(paths)} lines, circles of packages: {len(knots)}")
    print(f"all: {len(sources(root))} files, {_lines(sources(root))} lines")
    tests = [path for path in (root / "tests").rglob("*.py") if "node_modules" not in path.parts]
    print(f"tests: {len(tests)} files, {_lines(tests)} lines")
    text = "\n".join(path.read_text() for path in sources(root))
    print(", ".join(f"{name}: {len(pattern.findall(text))}" for name, pattern in COUNTED.items()))
    pages = [root / "README.md", root / "CONTRIBUTING.md", *(root / "docs").rglob("*.md")]
    words = {path: len(re.findall(r"\S*\w\S*", path.read_text())) for path in pages}
    aside = words[root / "docs/access.md"] + words[root / "docs/figures.md"]
    print(f"docs: {sum(words.values()) - aside} words, and {aside} in the table of access and the figures")
    if root == ROOT:
        print(f"private words: {sum(1 for path in sources(root) for _ in faults_of_code(path))}", flush=True)
        subprocess.run(
            [sys.executable, "-m", "pytest", "-n", "0", "-qs", "tests/bench/walks.py"], cwd=ROOT, check=False
        )


def _lines(paths: Iterable[Path]) -> int:
    return sum(len(path.read_text().splitlines()) for path in paths)


def _packages(graph: dict[str, set[str]], app: str) -> dict[str, set[str]]:
    """Return the imports between the packages of an app, each named by its first two parts."""
    packages: dict[str, set[str]] = {}
    for module, names in graph.items():
        if module.startswith(f"{app}."):
            own = ".".join(module.split(".")[:2])
            others = {".".join(name.split(".")[:2]) for name in names if name.startswith(f"{app}.")}
            packages[own] = packages.get(own, set()) | others - {own}
    return packages


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT)
