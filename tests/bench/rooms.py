"""The house as it is: its circles, its imports upwards, and the rooms of each app with the rooms that they import.

python -m tests.bench.rooms [another checkout]
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from pathlib import Path

from tests.imports import APPS, ROOT, circles, imports, upward


def main(root: Path) -> None:
    graph = imports(root)
    lies_in = {module: room_of(module) for module in graph}
    knots = circles(graph)
    print(f"{len(graph)} files, {sum(map(len, graph.values()))} imports between them")
    print(f"{len(knots)} circles, of {sum(map(len, knots))} files; {len(upward(graph))} imports upwards")
    arrows: dict[str, Counter[str]] = defaultdict(Counter)
    for module, names in graph.items():
        for name in names:
            if lies_in[name] != lies_in[module]:
                arrows[lies_in[module]][lies_in[name]] += 1
    for app in APPS:
        rooms = sorted({room for room in lies_in.values() if room.split(".")[0] == app})
        within = sum(each.startswith(f"{app}.") for room in rooms for each in arrows[room])
        print(f"\n{app}: {len(rooms)} rooms, {within} arrows between them")
        for room in rooms:
            own = [each.removeprefix(f"{app}.") for each in arrows[room] if each.startswith(f"{app}.")]
            print(f"  {room.removeprefix(f'{app}.')} -> {', '.join(sorted(own)) or 'none of its own app'}")


def room_of(module: str) -> str:
    """The wing that a file lies in, or the file itself where it lies in the hall."""
    return ".".join(module.split(".")[:2])


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
