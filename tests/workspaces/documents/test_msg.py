"""Mails saved by Outlook, read by the library: header, text and attachments."""

from types import SimpleNamespace
from typing import Any

import pytest

from workspaces.documents.reading import mail
from workspaces.documents.reading.kinds import Unreadable, left_out


def read(monkeypatch: pytest.MonkeyPatch, **result: Any) -> list[tuple[str, str]]:
    given = {"content": "", "metadata": {}, "children": None} | result
    monkeypatch.setattr(mail, "extracted", lambda data, kind: SimpleNamespace(**given))
    left_out.clear()
    return [(block.heading, block.text) for block in mail.read_msg(b"")]


def test_head_text_and_attached_files_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = {"path": "quote.txt", "result": SimpleNamespace(content="48,300 euros\n")}
    found = read(
        monkeypatch,
        content="Subject: Offer\nFrom: Ada\n\nSee the file.",
        metadata={"subject": "Offer", "attachments": ["quote.txt", "plan.dwg"]},
        children=[inner],
    )
    assert found == [
        ("Offer", "Subject: Offer\nFrom: Ada\n\nSee the file."),
        ("quote.txt", "48,300 euros"),
        ("plan.dwg", "Attached, not read: plan.dwg"),
    ]
    assert left_out["files"] == 1


def test_a_mail_without_subject_and_files_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch, content="Hello", metadata={"subject": None}) == [("", "Hello")]
    assert not left_out["files"]


def test_what_is_no_mail_is_refused() -> None:
    with pytest.raises(Unreadable):
        list(mail.read_msg(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600))
