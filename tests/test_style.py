"""Comments, docstrings, docs and commit messages use the standard words (``tests.style``)."""

from pathlib import Path

import pytest

from tests.style import ROOT, faults_of_code, faults_of_message, main, private_words, vague_variables
from tests.test_docs import PAGES


@pytest.mark.parametrize("package", ["memoryhub", "workspaces", "memories", "chat", "tests", "client"])
def test_comments_and_docstrings_use_standard_words(package: str) -> None:
    paths = [path for path in sorted((ROOT / package).rglob("*.py")) if "migrations" not in path.parts]
    assert [fault for path in paths for fault in faults_of_code(path)] == []


@pytest.mark.parametrize("package", ["memoryhub", "workspaces", "memories", "chat"])
def test_variables_say_what_they_hold(package: str) -> None:
    paths = [path for path in sorted((ROOT / package).rglob("*.py")) if "migrations" not in path.parts]
    assert [fault for path in paths for fault in vague_variables(path)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_docs_use_standard_words(page: Path) -> None:
    assert list(private_words(page.read_text(), code=False)) == []


def test_templates_use_standard_words() -> None:
    faults = [
        f"{path.name}: {fault}"
        for path in (ROOT / "templates").rglob("*.*")
        for fault in private_words(path.read_text(), code=False)
    ]
    assert faults == []


def test_commit_messages_are_checked(tmp_path: Path) -> None:
    good = "Fix leaked setting in backup tests\n\nThe fixture set it for the whole run.\n# whatever a comment says\n"
    assert list(faults_of_message(good)) == []
    for bad in ("Fixed it", "fix it", "Fix it.", "Fix it\nat once", "F" * 73, "Open the door"):
        assert list(faults_of_message(bad)), bad
    message = tmp_path / "message"
    message.write_text(good)
    assert main(str(message)) == 0
