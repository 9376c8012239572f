"""Large exports of other programs: messages searched in batches, a sampled preview, progress and estimates."""

from collections.abc import Sequence
from typing import Any

import pytest
from django.utils import timezone

from chat.import_export import import_jobs, other_programs, upload_formats, upload_reader
from chat.import_export.import_jobs import with_texts
from chat.models import Message
from chat.models.imports import ImportStatus
from memories.forgetting.for_good import forget_memories
from memories.judging.encoder_interface import Encoder, Read
from memories.models import Memory
from memoryhub.llm.registry import get_reader
from tests.api import Api
from tests.chat.import_export.test_exchange import imported_whole, uploaded
from tests.chat.import_export.test_exchange_foreign import as_json, gpt_node
from tests.chat.import_export.test_exchange_pages import text_of
from tests.conftest import Cast
from tests.factories import make_memory
from tests.signing_in import signed_in

pytestmark = pytest.mark.django_db
TOWNS = ("Oslo", "Porto", "Lyon", "Graz", "Bergen", "Ghent", "Turin", "Cork")
CLUBS = ("rowing", "chess", "archery", "fencing", "sailing", "judo", "rugby", "hockey")
SAID = [f"I live in {town} and my sister runs a {club} club in {town}." for town in TOWNS for club in CLUBS]


class Counting:
    """An encoder that counts its calls and the texts of each."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.calls: list[int] = []

    def states(self, texts: Sequence[str]) -> Sequence[Read]:
        self.calls.append(len(texts))
        return self.encoder.states(texts)


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> Counting:
    reader = get_reader()
    assert reader is not None
    counting = Counting(reader)
    monkeypatch.setattr(other_programs, "get_reader", lambda: counting)
    return counting


def conversation(number: int, said: Sequence[str]) -> dict[str, Any]:
    mapping: dict[str, Any] = {"root": {"message": None, "parent": None}}
    parent = "root"
    for at, text in enumerate(said):
        for role, content in (("user", text), ("assistant", "Noted.")):
            name = f"{role}-{at}"
            mapping[name] = gpt_node(name, parent, role, content)
            parent = name
    return {"conversation_id": f"c-{number}", "title": "Clubs", "mapping": mapping, "current_node": parent}


def export(chats: int, said: Sequence[str]) -> bytes:
    share = len(said) // chats
    return as_json([conversation(n, said[n * share : (n + 1) * share]) for n in range(chats)])


@pytest.fixture
def _is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the limits so that only some of the 64 messages are searched, in small chunks."""
    monkeypatch.setattr(upload_formats, "SAMPLE", 600)
    monkeypatch.setattr(upload_formats, "SAMPLE_BEGIN", 100)
    monkeypatch.setattr(upload_formats, "ROWS", 20)
    monkeypatch.setattr(upload_reader, "BUFFER", 512)


def test_messages_are_read_in_batches(cast: Cast, encoder: Counting) -> None:
    imported = uploaded(cast.editor, export(10, SAID[:40]), cast.workspace, "conversations.json")
    assert imported.foreseen["message"]["new"] == 80 and imported.foreseen["memory"]["new"] > 10
    assert imported.sample is None and imported.searched["searched"] == 40
    assert len(encoder.calls) <= 4, "two for every 32 messages"
    assert max(encoder.calls) > 32


@pytest.mark.usefixtures("_is_large")
def test_large_export_is_previewed_by_a_sample_and_stored_whole(
    cast: Cast, encoder: Counting, django_capture_on_commit_callbacks: Any
) -> None:
    imported = uploaded(cast.editor, export(16, SAID), cast.workspace, "conversations.json")
    sample = imported.sample
    assert sample and (sample.messages, imported.foreseen["message"]["new"]) == (64, 128)
    assert 2 <= sample.searched <= 12 and sample.found == imported.foreseen["memory"]["new"]
    shown = imported.rows.filter(kind="memory").values_list("number", flat=True)
    assert max(shown) > 128, "also of the last chats"
    path = f"imports/{imported.public_id}"
    told = Api(cast.editor).get(path).json()
    assert told["sample"] == {
        "messages": 64, "searched": sample.searched, "memories_expected": sample.expected,
    }  # fmt: skip
    page = text_of(signed_in(cast.editor), f"/imports/{imported.public_id}/")
    assert f"{sample.searched} of your 64 messages were searched for memories" in page
    assert f"All of them may hold about {sample.expected}." in page

    assert upload_formats.upload_of(imported.public_id).exists()
    import_jobs.start(imported, now=timezone.now())
    assert not imported.rows.exists()
    progress = []
    with django_capture_on_commit_callbacks(execute=True):
        while import_jobs.advance(imported.pk, seconds=0) == import_jobs.JobResult.UNFINISHED:
            imported.refresh_from_db()
            progress.append(imported.progress)
    assert progress == sorted(progress) and len(set(progress)) > 3
    imported.refresh_from_db()
    assert (imported.status, imported.outcomes["message"]["new"]) == (ImportStatus.DONE, 128)
    assert sum(imported.outcomes["memory"].values()) > 2 * sample.found
    assert Message.objects.count() == 128
    assert (
        Memory.objects.filter(source_details__extractor="rules").count() == imported.outcomes["memory"]["new"]
    )
    assert not upload_formats.folder_of(imported.public_id).exists()


@pytest.mark.usefixtures("_is_large")
def test_killed_worker_goes_on_in_the_middle_of_a_chat(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is killed once while it checks the lines, and once while it stores them."""
    whole = imported_whole(cast.owner, export(1, SAID[:32]), name="conversations.json")
    data = export(1, SAID[:32])
    imported = import_jobs.begin(cast.editor, workspace=None, filename="", pieces=[data], now=timezone.now())
    for ends in (import_jobs.JobResult.CHECKED, import_jobs.JobResult.DONE):
        real, calls = import_jobs.store_rows, []

        def dies(*args: Any, calls: list[int] = calls, real: Any = real, **how: Any) -> None:
            calls.append(1)
            if len(calls) == 3:
                raise KeyboardInterrupt
            real(*args, **how)

        with monkeypatch.context() as patched:
            patched.setattr(import_jobs, "store_rows", dies)
            with pytest.raises(KeyboardInterrupt):
                import_jobs.advance(imported.pk, seconds=60)
        imported.refresh_from_db()
        assert (imported.read_count, imported.read_lines) == (0, 40), "two chunks of one chat"
        assert import_jobs.advance(imported.pk, seconds=60) == ends
        imported.refresh_from_db()
        if ends == import_jobs.JobResult.CHECKED:
            import_jobs.start(imported, now=timezone.now())
    assert (imported.foreseen, imported.outcomes) == (whole.foreseen, whole.outcomes)
    assert Message.objects.filter(chat__created_by=cast.editor).count() == 64


@pytest.mark.usefixtures("_is_large")
def test_what_is_forgotten_before_it_is_stored_does_not_come_in(cast: Cast) -> None:
    imported = uploaded(cast.editor, export(8, SAID[:32]), cast.workspace, "conversations.json")
    assert imported.sample
    wanted = with_texts(imported, imported.rows.filter(kind="memory", outcome="new")[:1])[0].text
    forget_memories([make_memory(wanted, cast.editor)], by=cast.editor, now=timezone.now())
    imported.refresh_from_db()
    import_jobs.start(imported, now=timezone.now())
    assert import_jobs.advance(imported.pk, seconds=60) == import_jobs.JobResult.DONE
    imported.refresh_from_db()
    assert imported.outcomes["memory"]["refused"] >= 1 and imported.outcomes["memory"]["new"] > 1
    assert not Memory.objects.filter(content=wanted).exists()
