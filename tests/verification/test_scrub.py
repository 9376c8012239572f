"""Permanent deletion and scrubbing remove a text from every byte of the data folder: a real server and real files."""

import random
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command

from memoryhub.local.postgres import connection_settings
from memoryhub.management.commands.scrub import scrub
from tests.stack import PASSWORD, signed_up
from tests.verification.conftest import Hub

PIECE = 8  # consecutive letters of a word: compressed files contain no longer runs


def strange_words(count: int) -> list[str]:
    """Return random words without a repeated letter, which compression cannot shorten."""
    dice = random.Random()
    return ["".join(dice.sample("bcdfghjklmnprstvwz", 12)) for _ in range(count)]


def files_with(folder: Path, words: list[str]) -> dict[str, int]:
    """Return every file below the folder with a part of one of the words, and the number of parts."""
    pieces = [word[at : at + PIECE].encode() for word in words for at in range(len(word) - PIECE + 1)]
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes().lower()
            if number := sum(piece in data for piece in pieces):
                found[str(path.relative_to(folder))] = number
    return found


def test_what_is_forgotten_is_in_no_byte_of_the_data_folder_after_a_scrub(
    hub: Hub,
) -> None:
    folder = hub.stack.folder
    words, kept = strange_words(3), strange_words(2)
    text = f"The {words[0]} of {words[1]} is {words[2]}"
    person = signed_up(hub.web(), "forgetful")
    workspace = person.get("/chat/api/workspaces").json()["items"][0]["id"]
    memories = f"/chat/api/workspaces/{workspace}/memories"
    made = person.post(memories, json={"content": text, "tags": [words[0]]}).json()["id"]
    person.post(memories, json={"content": f"This {kept[0]} stays"})
    person.post(f"/chat/api/workspaces/{workspace}/recall", json={"query": text})
    with psycopg.connect(**connection_settings(folder), autocommit=True) as connection:  # type: ignore[arg-type]
        connection.execute("ANALYZE")
    person.patch(f"{memories}/{made}", json={"content": f"{text}, still"})
    person.delete(f"{memories}/{made}")
    person.post("/accounts/reauthenticate/", data={"password": PASSWORD})
    report = person.post(f"{memories}/{made}/forget", json={})
    assert report.status_code == 200, report.text
    with psycopg.connect(**connection_settings(folder), autocommit=True) as connection:  # type: ignore[arg-type]
        connection.execute("CHECKPOINT")

    before = files_with(folder, words)
    assert any("/pg_wal/" in name for name in before), before
    assert any("/base/" in name for name in before), before

    said = hub.stack.manage("scrub")

    assert "table 1 of" in said
    assert "in no file of the database any more" in said
    assert files_with(folder, words) == {}
    assert files_with(folder, kept), "what is not forgotten is found by the same search"
    assert person.get(memories).json()["items"][0]["content"] == f"This {kept[0]} stays"
    assert person.post(memories, json={"content": f"And {kept[1]} too"}).status_code == 201
    wal_recycle = "SELECT current_setting('wal_recycle')"
    with psycopg.connect(**connection_settings(folder)) as connection:  # type: ignore[arg-type]
        assert connection.execute(wal_recycle).fetchone() == ("on",)
        _nobody_may_still_see_it(folder, connection)


def _nobody_may_still_see_it(folder: Path, open_one: psycopg.Connection[Any]) -> None:
    """A transaction that began before might still see it; the command reports it."""
    patience = pytest.MonkeyPatch()
    patience.setattr("memoryhub.management.commands.scrub.PATIENCE", 1.0)
    try:
        with pytest.raises(CommandError, match="have been in a transaction"):
            scrub(connection_settings(folder), print)
    finally:
        patience.undo()
    open_one.rollback()


def test_of_a_database_elsewhere_it_says_what_its_operator_has_to_do(settings: Any) -> None:
    settings.EMBEDDED_DATABASE = False
    with pytest.raises(CommandError, match="Nothing was done"):
        call_command("scrub")
