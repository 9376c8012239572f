"""Comments, docstrings, docs and commit messages use the standard words (``tests.style``)."""

from pathlib import Path

from tests.imports import sources
from tests.style import ROOT, faults_of_code, faults_of_message, main, private_words, vague_variables
from tests.test_docs import PAGES

SOURCES = sources()


def test_comments_and_docstrings_use_standard_words() -> None:
    paths = [
        *SOURCES,
        *(path for folder in ("tests", "client") for path in sorted((ROOT / folder).rglob("*.py"))),
    ]
    assert [fault for path in paths for fault in faults_of_code(path)] == []


def test_variables_say_what_they_hold() -> None:
    assert [fault for path in SOURCES for fault in vague_variables(path)] == []


def test_docs_use_standard_words() -> None:
    faults = {page.name: list(private_words(page.read_text(), code=False)) for page in PAGES}
    assert {name: words for name, words in faults.items() if words} == {}


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
