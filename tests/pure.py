"""``pytest --pure``: tests without a database, a process or much embedding, for ``make quick``."""

import re
from pathlib import Path

import pytest

OF_A_DATABASE = re.compile(r"^pytestmark = .*\b(?:django_db|browser)\b", re.MULTILINE)
NEEDS = {"db", "transactional_db", "django_db_setup", "live_server", "embedded_server", "browser"}
ELSEWHERE = (
    "tests/functional/",
    "tests/verification/",
    "tests/memoryhub/local/",
    "tests/memoryhub/management/",
)
# They embed hundreds of texts with the bundled weights: half a minute of two cores.
EMBEDDING = (
    "tests/memories/judging/test_duplicates.py",
    "tests/memories/judging/test_extraction_rules.py",
    "tests/memoryhub/llm/test_e5.py",
    "tests/memoryhub/llm/test_onnx_embedder.py",
    "tests/memoryhub/llm/test_bundled_embedder.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--pure", action="store_true", help="only tests without a database, a process or a browser"
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files without a pure test before they are imported."""
    if not config.getoption("--pure"):
        return None
    name = collection_path.relative_to(config.rootpath).as_posix()
    if collection_path.is_dir():
        return f"{name}/" in ELSEWHERE or None
    if collection_path.suffix != ".py":
        return None
    return (
        name.startswith(ELSEWHERE + EMBEDDING)
        or bool(OF_A_DATABASE.search(collection_path.read_text()))
        or None
    )


def is_pure(item: pytest.Item) -> bool:
    fixtures = set(getattr(item, "fixturenames", ()))
    if item.nodeid.startswith(ELSEWHERE + EMBEDDING) or fixtures & NEEDS:
        return False
    return not any(item.get_closest_marker(name) for name in ("django_db", "local_model", "browser"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--pure"):
        config.hook.pytest_deselected(items=[item for item in items if not is_pure(item)])
        items[:] = [item for item in items if is_pure(item)]
