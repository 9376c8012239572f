"""docs/access.md: the table of every route and who may use it. ``make docs`` writes it from ``tests/routes.py``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.routes import Row

PATH = Path(__file__).parent.parent / "docs" / "access.md"
PEOPLE = ("owner", "editor", "viewer", "stranger", "nobody")
INTRODUCTION = """# Who may do what

Every route and the HTTP status that each kind of caller gets. `tests/test_access_matrix.py` requests all of them in
every run of the test suite and fails for a route without a row. `make docs` writes this page.

The first column is the workspace's **owner / editor / viewer**, a **stranger** (an account that is no member), and
**nobody** (not signed in). The second is the owner's API keys: **read / write / of another workspace**; expired and
revoked keys get 401 everywhere. A chat, memory or answer in a route is one that the owner made and shares; a
private one is 404 for everybody else.

- 2xx and 302: allowed. 403: visible, but not allowed. 404: not there for them. 401 and `login`: sign in.
- † with the password typed once more in the last fifteen minutes; without that it is 403 for everybody.
"""


def written() -> str:
    """Return the whole page."""
    from tests.routes import API_ROWS, PAGE_ROWS

    v1 = [row for row in API_ROWS if row.route.startswith("api/")]
    programs = [row for row in API_ROWS if row.route.startswith(("v1/", "mcp"))]
    chat = [row for row in API_ROWS if row not in v1 and row not in programs]
    assert {row.keys[3:] for row in API_ROWS} == {(401, 401)}, (
        "expired and revoked keys, as the introduction says"
    )
    return "\n".join(
        [
            INTRODUCTION,
            "## `/chat/api/`\n",
            *_table(chat, keys=True),
            "\n## `/api/`\n",
            *_table(v1, keys=True),
            "\n## `/v1/` and `/mcp`\n",
            *_table(programs, keys=True),
            "\n## Pages\n",
            *_table(PAGE_ROWS, keys=False),
            "",
        ]
    )


def _table(rows: Iterable[Row], *, keys: bool) -> Iterable[str]:
    """Yield one line for each group of routes with the same answers, in order of first appearance."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        statuses = "/".join(map(str, row.statuses)) + (" †" if row.fresh else "")
        cells = (statuses, "/".join(map(str, row.keys[:3]))) if keys else (statuses,)
        address = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", row.route)
        alike.setdefault(cells, []).append(f"`{row.method} /{address}`")
    columns = ["people", *(["keys"] if keys else []), "routes"]
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for cells, routes in alike.items():
        yield f"| {' | '.join(cells)} | {', '.join(routes)} |"


if __name__ == "__main__":
    import os

    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
    django.setup()
    PATH.write_text(written())
