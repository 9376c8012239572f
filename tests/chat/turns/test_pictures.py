"""Pictures with a message: which models get them, the text for the others, and access to other documents."""

import base64
import io
import struct
import zlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx2
import openai
import pytest
from django.test import Client
from django.utils import timezone
from PIL import Image

from chat.models import Chat, Message, MessageStatus
from chat.prompting.context import (
    MOST,
    PICTURES_SHARE,
    Conversation,
    Line,
    build_prompt,
    conversation_of,
    tokens_of,
)
from chat.turns.services import begin_turn
from chat.turns.turn import wait_until_idle
from memoryhub.errors import Invalid
from memoryhub.llm.base import Capabilities, Picture
from memoryhub.llm.openai_requests import UNSEEN, says_it_is_blind
from tests.factories import (
    HERE,
    add_member,
    make_chat,
    make_document,
    make_message,
    make_user,
    make_workspace,
    shown_to,
)
from tests.fakes.openai_server import Answer, Failure, ScriptedOpenAI
from workspaces.documents import documents, reading_jobs
from workspaces.models import Connection, Document, DocumentPicture, DocumentStatus, User, Workspace

pytestmark = pytest.mark.django_db(transaction=True)


def drawn(kind: str = "JPEG", size: tuple[int, int] = (64, 48), mode: str = "RGB", **more: Any) -> bytes:
    out = io.BytesIO()
    Image.new(mode, size, 200 if len(mode) == 1 else "orange").save(out, kind, **more)
    return out.getvalue()


def brought(by: User, content: bytes, workspace: Workspace, name: str = "cat.jpg") -> Document:
    made = documents.add_document(workspace, name=name, content=[content], by=by, now=timezone.now()).document
    reading_jobs.read(made.pk, now=timezone.now())
    made.refresh_from_db()
    return made


@pytest.fixture
def chat(scripted_model: ScriptedOpenAI) -> Chat:
    return make_chat(make_user("olive"))


def connected(chat: Chat, server: ScriptedOpenAI, **given: Any) -> Connection:
    made = Connection(name="House", base_url=server.base_url, model=server.model, is_local=True, **given)
    made.set_key(server.api_key)
    made.save()
    chat.connection = made
    chat.save()
    return made


def ask(chat: Chat, text: str, *shown: Document) -> Message:
    ids = [each.public_id for each in shown] or None
    turn = begin_turn(chat, content=text, by=chat.created_by, now=timezone.now(), documents=ids)
    assert wait_until_idle(10)
    turn.answer.refresh_from_db()
    assert turn.answer.status == MessageStatus.DONE, turn.answer.error
    return turn.answer


def sent(server: ScriptedOpenAI) -> list[Any]:
    """Return the contents of the user messages in the last request."""
    return [each["content"] for each in server.chat_requests[-1].messages if each["role"] == "user"]


def pictures_in(contents: list[Any]) -> list[bytes]:
    addresses = [
        part["image_url"]["url"]
        for content in contents
        if isinstance(content, list)
        for part in content
        if part["type"] == "image_url"
    ]
    return [base64.b64decode(address.removeprefix("data:image/jpeg;base64,")) for address in addresses]


def test_a_model_that_sees_is_shown_it_with_the_message_and_that_is_remembered(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    connection = connected(chat, scripted_model)
    cat = brought(chat.created_by, drawn(size=(3000, 1000)), chat.workspace, "cat <b>.jpg")
    ask(chat, "What is this?", cat)
    [content] = sent(scripted_model)
    assert [part.get("text") for part in content] == ["What is this?", "Picture: cat &lt;b&gt;.jpg", None]
    [jpeg] = pictures_in([content])
    assert Image.open(io.BytesIO(jpeg)).size == (1280, 427)
    connection.refresh_from_db()
    assert connection.sees is True
    ask(chat, "And its colour?")
    first, second = sent(scripted_model)
    assert pictures_in([first]) == [jpeg] and second == "And its colour?"
    documents.forget_document(cat, by=chat.created_by)
    assert not DocumentPicture.objects.exists()
    ask(chat, "Once more?")
    assert sent(scripted_model)[0] == "What is this?"


REFUSALS = {
    "OpenAI": (400, "Invalid content type. image_url is only supported by certain models."),
    "vLLM": (400, "At most 0 image(s) may be provided in one prompt."),
    "vLLM, old": (400, "scripted-model is not a multimodal model"),
    "llama.cpp": (500, "image input is not supported - hint: you may need to provide the mmproj"),
    "Ollama": (400, "this model is missing data required for image input"),
    "LM Studio": (400, "Model does not support images. Please use a model that does."),
    "DeepSeek": (
        400,
        "Failed to deserialize the JSON body: messages[0]: unknown variant `image_url`, expected `text`",
    ),
    "Groq": (400, "'messages.0' : for 'role:user' the following must be satisfied[content must be a string]"),
    "OpenRouter": (404, "No endpoints found that support image input"),
    "Mistral": (400, "Image input is not enabled for this model"),
}


def test_model_that_refuses_images_is_asked_once_without_and_remembered(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    cat = brought(chat.created_by, drawn(), chat.workspace)
    told = f"What is this?\n\nPicture: cat.jpg {UNSEEN}"
    for server in ("OpenAI", "llama.cpp"):  # a bad request, and one that looks as if the server were away
        chat = make_chat(chat.created_by)
        connection = connected(chat, scripted_model)
        scripted_model.script(Failure(*REFUSALS[server]), Answer("I cannot see it."))
        assert ask(chat, "What is this?", cat).content == "I cannot see it.", server
        assert sent(scripted_model) == [told], server
        connection.refresh_from_db()
        assert connection.sees is False, server
        requests = len(scripted_model.chat_requests)
        ask(chat, "And now?")
        assert sent(scripted_model) == [told, "And now?"], server
        assert len(scripted_model.chat_requests) == requests + 1, server


def test_refusal_of_images_is_recognized_for_each_server_and_told_from_other_failures() -> None:
    for server, (status, said) in REFUSALS.items():
        assert says_it_is_blind(refusal(status, said)), server
    assert not says_it_is_blind(refusal(400, "The image is too large: at most 5 MB are supported."))


def refusal(status: int, said: str) -> openai.APIStatusError:
    request = httpx2.Request("POST", "http://127.0.0.1/v1/chat/completions")
    response = httpx2.Response(status, request=request)
    return openai.APIStatusError(said, response=response, body={"message": said})


def test_the_question_comes_before_the_past_and_all_of_it_fits(chat: Chat) -> None:
    old = Line("user", "Old", 1, tuple(Picture("a", b"x", 640, 480) for _ in range(9)))
    new = Line("user", "New", 3, tuple(Picture("b", b"x", 1280, 1280) for _ in range(9)))
    conversation = Conversation(new, [Line("assistant", "Yes", 2), old])
    room = 12_000
    capabilities = Capabilities(
        has_tools=False,
        can_extract=False,
        context_tokens=room,
        local=True,
        answer_tokens=1000,
        history_tokens=room,
    )
    built = build_prompt(conversation, [], capabilities, now=timezone.now())
    shown = [sum(bool(each.jpeg) for each in message.pictures) for message in built.messages[1:]]
    assert tokens_of(built.messages) <= room - 1000
    assert shown[-1] == int(room * PICTURES_SHARE) // 2200 and 1 <= shown[0] < 9 and shown[1] == 0
    tiny = build_prompt(conversation, [], Capabilities(False, False, 2048, True, 512), now=timezone.now())
    assert not any(each.jpeg for message in tiny.messages for each in message.pictures)


def with_picture(by: User, workspace: Workspace, text: str) -> Document:
    document = make_document(by, workspace, text, embedded=False)
    DocumentPicture.objects.create(document=document, jpeg=drawn(), width=64, height=48)
    return document


def test_only_the_newest_are_sent_and_nothing_of_another_workspace(chat: Chat) -> None:
    olive = chat.created_by
    shown = [with_picture(olive, chat.workspace, f"Cat {number}").public_id for number in range(MOST + 2)]
    other = make_user("eddie")
    theirs = with_picture(other, make_workspace(owner=other), "A dog")
    with pytest.raises(Invalid, match="documents of this workspace"):
        begin_turn(chat, content="Hm?", by=olive, now=timezone.now(), documents=[theirs.public_id])
    make_message(chat, "Old", only_documents=[*shown[:3], theirs.public_id])  # as a forged import names it
    question = make_message(chat, "New", only_documents=shown[3:])
    found = conversation_of(question, None, shown=shown_to(question.chat.created_by), policy=HERE)
    assert [bool(each.jpeg) for each in found.question.pictures] == [True] * (MOST - 1)
    assert [bool(each.jpeg) for each in found.earlier[0].pictures] == [True, False, False]
    named = conversation_of(
        question, None, shown=shown_to(question.chat.created_by), policy=HERE, shows_pictures=False
    )
    assert not any(each.jpeg for line in (named.question, *named.earlier) for each in line.pictures)


def test_members_see_it_and_strangers_do_not(chat: Chat, client: Client) -> None:
    olive, viewer, stranger = chat.created_by, make_user("vera"), make_user("sam")
    add_member(chat.workspace, user=viewer, role="viewer", by=olive)
    cat = brought(olive, drawn(), chat.workspace, 'cat" onerror="x.jpg')
    make_message(chat, "What is this?", author=olive, only_documents=[cat.public_id])
    address = f"/workspaces/{chat.workspace.public_id}/documents/{cat.public_id}/picture/"
    for who in (olive, viewer):
        client.force_login(who)
        page = client.get(f"/chats/{chat.public_id}/transcript/").content.decode()
        assert address in page and 'alt="cat&quot; onerror=&quot;x.jpg"' in page
        shown = client.get(address)
        assert (shown["Content-Type"], shown["X-Content-Type-Options"]) == ("image/jpeg", "nosniff")
        assert "sandbox" in shown["Content-Security-Policy"] and shown.content[:2] == b"\xff\xd8"
    client.force_login(stranger)
    assert client.get(address).status_code == 404
    documents.delete(cat, by=olive, now=timezone.now())
    client.force_login(olive)
    assert client.get(address).status_code == 404
    assert address not in client.get(f"/chats/{chat.public_id}/transcript/").content.decode()


def _with_gps() -> bytes:
    exif = Image.Exif()
    exif.get_ifd(0x8825)[2] = (52.0, 31.0, 12.0)
    exif[0x010E] = "GPSSECRET"
    return drawn(exif=exif.tobytes(), comment=b"GPSSECRET")


def _png_bomb() -> bytes:
    """Return a picture of 60,000 by 60,000 pixels in a few bytes."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    )


HOSTILE: dict[str, tuple[Callable[[], bytes], bool]] = {
    "where it was taken": (_with_gps, True),
    "a script behind it": (lambda: drawn() + b"<script>GPSSECRET()</script>", True),
    "a GIF that is a script": (lambda: drawn("GIF", comment=b"*/GPSSECRET()//"), True),
    "an archive behind it": (lambda: drawn("PNG") + b"PK\x03\x04GPSSECRET", True),
    "a profile of colours": (lambda: drawn("PNG", icc_profile=b"GPSSECRET" * 50), True),
    "transparent": (lambda: drawn("PNG", mode="RGBA"), True),
    "16 bits": (lambda: drawn("PNG", mode="I;16"), True),
    "a line": (lambda: drawn("PNG", size=(5000, 1)), True),
    "a bomb": (_png_bomb, False),
    "cut off": (lambda: drawn("PNG", size=(400, 400))[:120], False),
    "SVG": (lambda: b'<svg xmlns="http://www.w3.org/2000/svg"><script>GPSSECRET()</script></svg>', False),
    "SVG, named as a picture": (lambda: b"<?xml version='1.0'?><svg onload='GPSSECRET()'/>", False),
    "a PDF that begins as a picture": (lambda: b"\xff\xd8\xff%PDF-1.4 GPSSECRET", False),
}


def test_only_the_pixels_of_a_hostile_picture_are_shown() -> None:
    olive = make_user("olive")
    workspace = make_chat(olive).workspace
    for name, (make, is_shown) in HOSTILE.items():
        document = brought(olive, make(), workspace)
        shown = DocumentPicture.objects.filter(document=document).first()
        assert (shown is not None) is is_shown, (name, document.error)
        if shown is not None:
            jpeg = bytes(shown.jpeg)
            assert document.status == DocumentStatus.READY and b"GPSSECRET" not in jpeg, name
            assert not Image.open(io.BytesIO(jpeg)).getexif(), name


def test_a_newer_file_is_shown_in_its_place(chat: Chat) -> None:
    from workspaces.documents import documents

    cat = brought(chat.created_by, drawn(), chat.workspace)
    now = timezone.now() + timedelta(seconds=1)
    documents.replace(cat, name="n.png", content=[drawn("PNG", (10, 30))], by=chat.created_by, now=now)
    reading_jobs.read(cat.pk, now=now)
    shown = DocumentPicture.objects.get(document=cat)
    assert (shown.width, shown.height) == (10, 30)
    documents.replace(cat, name="n.txt", content=[b"Words now."], by=chat.created_by, now=now)
    reading_jobs.read(cat.pk, now=now + timedelta(seconds=1))
    assert not DocumentPicture.objects.exists()
