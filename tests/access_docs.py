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
KEYS = ("read key", "write key", "key of another workspace", "expired key", "revoked key")
INTRODUCTION = """# Who may do what

Every route of the product against everybody who may ask, as HTTP status codes. `tests/test_access_matrix.py` asks each
of these questions at every run of the test suite, and fails when a route has no row here. Written by `make docs`.

The workspace belongs to **owner**; **editor** and **viewer** are its members, **stranger** has an account and is none,
**nobody** is not signed in. The keys are the owner's. Where a chat, a memory or an answer is asked for it is one that
the owner made and shares with the workspace; a private one is 404 for everybody else (`tests/test_isolation.py`).

- 2xx and 302: they may. 403: they see it and may not do this. 404: for them it is not there. 401 and `login`: sign in.
- A key is 401 wherever only a session will do.
- † with the password typed once more in the last five minutes; without that it is 403 for everybody.
"""


def written() -> str:
    """The whole page."""
    from tests.routes import API_ROWS, PAGE_ROWS

    v1 = [row for row in API_ROWS if row.route.startswith("api/")]
    programs = [row for row in API_ROWS if row.route.startswith(("v1/", "mcp"))]
    chat = [row for row in API_ROWS if row not in v1 and row not in programs]
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
    columns = ["route", *PEOPLE, *(KEYS if keys else ())]
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        address = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", row.route)
        cells = [
            f"`{row.method} /{address}`{' †' if row.fresh else ''}",
            *row.statuses,
            *(row.keys if keys else ()),
        ]
        yield f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    import os

    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
    django.setup()
    PATH.write_text(written())
