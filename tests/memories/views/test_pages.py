"""The memory panel, its cards and the receipt: contents, permissions, and query counts."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories.api.serializers import ReceiptJson
from memories.models import Memory, ReceiptItem
from memories.recalling.ranked_search import Recalled
from memories.recalling.recall import Recall, receipt_for, store_receipt
from memories.recalling.relevance import Relevance
from memories.views.panel_context import PAGE_SIZE
from tests.conftest import Cast
from tests.factories import make_chat, make_memory, make_message
from workspaces.models import User

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


def signed_in(user: User) -> Client:
    client = Client(headers=HTMX)
    client.force_login(user)
    return client


def url(name: str, *args: object) -> str:
    return reverse(f"memories:{name}", args=args)


def of(name: str, memory: Memory, place: str = "") -> str:
    return url(name, memory.workspace.public_id, memory.public_id) + (f"?as={place}" if place else "")


def panel(client: Client, cast: Cast, **query: str) -> str:
    return client.get(url("panel", cast.workspace.public_id), query).content.decode()


def test_a_card_says_what_where_from_when_and_who(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace, title="Where it was said")
    message = make_message(chat, "x")
    make_memory(
        "Tea, <never> coffee",
        cast.editor,
        cast.workspace,
        category="preference",
        source_chat_id=chat.public_id,
        source_message_id=message.public_id,
    )
    html = panel(signed_in(cast.owner), cast)
    assert "Tea, &lt;never&gt; coffee" in html
    assert "preference" in html and "Saved by a person" in html and "eddie" in html
    assert f"{reverse('chat:chat', args=[chat.public_id])}?at={message.public_id}#{message.public_id}" in html
    assert "<time datetime=" in html


def test_search_and_filters(cast: Cast) -> None:
    make_memory("Green tea in the morning", cast.owner, cast.workspace, tags=["drinks"])
    make_memory("The plan is 100% funded", cast.owner, cast.workspace, category="fact")
    make_memory("Nina leads the team", cast.owner, cast.workspace, source_type="auto_chat", pinned=True)
    make_memory("Somebody else's tea", cast.stranger)
    for query, found in (
        ({"q": "tea morn"}, {"Green tea in the morning"}),
        ({"q": "DRINKS"}, {"Green tea in the morning"}),
        ({"q": "100%"}, {"The plan is 100% funded"}),
        ({"q": "hot drink at dawn"}, {"Green tea in the morning"}),
        ({"q": "hot drink at dawn", "category": "fact"}, set()),
        ({"q": "zebra crossing"}, set()),
        ({"category": "fact"}, {"The plan is 100% funded"}),
        ({"source": "auto_chat"}, {"Nina leads the team"}),
        ({"pinned": "on"}, {"Nina leads the team"}),
        ({"review": "on"}, set()),
        ({}, {"Green tea in the morning", "The plan is 100% funded", "Nina leads the team"}),
    ):
        html = panel(signed_in(cast.owner), cast, part="list", **query)
        texts = [
            "Green tea in the morning",
            "The plan is 100% funded",
            "Nina leads the team",
            "Somebody else's tea",
        ]
        assert {text for text in texts if text in html} == found
        if not found:
            assert "Nothing matches" in html


def test_what_is_found_by_meaning_comes_before_what_only_has_the_word(cast: Cast) -> None:
    for number in range(PAGE_SIZE + 2):
        make_memory(f"The dietary supplement company number {number} pays late", cast.owner, cast.workspace)
    make_memory("I am vegetarian", cast.owner, cast.workspace, now=timezone.now() - timedelta(days=900))
    html = panel(signed_in(cast.owner), cast, part="list", q="diet")
    assert "I am vegetarian" in html
    assert html.count('class="memory"') + html.count('class="memory memory--new"') >= PAGE_SIZE
    assert len(set(re.findall(r'<article id="(mem_\w+)"', html))) == html.count("<article id=")


def test_personal_memories_are_listed_and_counted_in_every_workspace_for_their_person_alone(
    cast: Cast,
) -> None:
    own = make_memory("My shoes are size 44", cast.viewer, scope="user")
    assert own.workspace != cast.workspace
    make_memory("The ferry leaves at nine", cast.owner, cast.workspace)
    client = signed_in(cast.viewer)
    html = panel(client, cast)
    card = html[html.index(own.public_id) :].split("</article>")[0]
    assert "Only you" in card and of("card", own) in card and "Forget" in card, (
        "their own, wherever they look"
    )
    assert html.count('class="memory__actions"') == 2 and html.count("delete/") == 1
    count = url("count", cast.workspace.public_id)
    assert "2<span" in client.get(count).content.decode()
    for person in (cast.owner, cast.editor):
        assert "My shoes" not in panel(signed_in(person), cast)
        assert "1<span" in signed_in(person).get(count).content.decode()
    assert "My shoes" in panel(client, cast, part="list", q="footwear")
    assert "Forgotten." in client.post(of("delete", own)).content.decode()
    assert "1<span" in client.get(count).content.decode()


def test_pages_go_on_through_what_is_here_and_what_is_ones_own(cast: Cast) -> None:
    now = timezone.now()
    for number in range(PAGE_SIZE + 2):
        place = {"scope": "user"} if number % 2 else {"workspace": cast.workspace}
        make_memory(f"Fact number {number}.", cast.owner, now=now - timedelta(days=number), **place)
    client, seen, before = signed_in(cast.owner), list[str](), {}
    for _page in range(3):
        html = panel(client, cast, part="list", **before)
        seen += re.findall(r"Fact number (\d+)\.</p>", html)
        after = re.search(r"before=(\w+)", html)
        if after is None:
            break
        before = {"before": after[1]}
    assert [int(each) for each in seen] == list(range(PAGE_SIZE + 2))


def test_a_memory_without_its_vector_says_so(cast: Cast) -> None:
    memory = make_memory("Found by words only", cast.owner, cast.workspace)
    client = signed_in(cast.owner)
    memory.embeddings.all().delete()
    assert "not searchable by meaning yet" in panel(client, cast)


def test_adding_confirms_and_counts(cast: Cast) -> None:
    client = signed_in(cast.editor)
    added = url("create", cast.workspace.public_id)
    response = client.post(added, {"new-content": "The studio closes at six", "new-category": ""})
    html = response.content.decode()
    assert (
        "Remembered" in html and 'id="memory-count"' in html and response["HX-Trigger"] == "memories:changed"
    )
    memory = Memory.objects.get()
    assert (memory.author, memory.category, memory.source_type) == (cast.editor, None, "user")
    again = client.post(added, {"new-content": "The studio closes at six"}).content.decode()
    assert "Already remembered" in again


def test_what_may_not_be_stored_comes_back_in_the_form_with_the_reason(cast: Cast) -> None:
    for text in ("", "x" * 2001, "password = hunter2hunter2"):
        response = signed_in(cast.owner).post(url("create", cast.workspace.public_id), {"new-content": text})
        html = response.content.decode()
        assert response.status_code == 422 and response["HX-Retarget"] == "this"
        assert "field__error" in html and 'aria-invalid="true"' in html
        assert not Memory.objects.exists()


def test_editing_in_place(cast: Cast) -> None:
    memory = make_memory("Old text", cast.owner, cast.workspace)
    client = signed_in(cast.editor)
    assert "Old text" in client.get(of("edit", memory)).content.decode()
    data = {f"{memory.public_id}-content": "New text", f"{memory.public_id}-category": "fact"}
    response = client.post(of("edit", memory), data)
    assert "New text" in response.content.decode() and response["HX-Trigger"] == "memories:changed"
    memory.refresh_from_db()
    assert (memory.content, memory.category) == ("New text", "fact")
    refused = client.post(of("edit", memory), data | {f"{memory.public_id}-content": " "})
    assert refused.status_code == 422
    history = client.get(of("history", memory)).content.decode()
    assert "Edited" in history and "Old text" in history and "eddie" in history


def test_days_of_validity_are_edited_in_place(cast: Cast) -> None:
    since = datetime(2025, 3, 1, 15, 30, tzinfo=UTC)
    memory = make_memory("The vault is at Ava", cast.owner, cast.workspace, valid_from=since)
    client, at = signed_in(cast.editor), f"{memory.public_id}-"
    assert 'value="2025-03-01"' in client.get(of("edit", memory)).content.decode()
    data = {f"{at}content": memory.content, f"{at}valid_from": "2025-03-01", f"{at}valid_to": "2025-06-30"}
    shown = client.post(of("edit", memory), data).content.decode()
    assert "from March 1, 2025 until June 2025" in shown
    assert "until June 2025" in client.get(url("all", cast.workspace.public_id)).content.decode()
    memory.refresh_from_db()
    assert (memory.valid_from, memory.valid_to) == (since, datetime(2025, 6, 30, 23, 59, 59, 999999, UTC))
    for name, day in (("valid_to", "2025-02-28"), ("valid_from", "2025-02-30"), ("valid_to", "soon")):
        refused = client.post(of("edit", memory), data | {at + name: day})
        assert (refused.status_code, [*refused.context["form"].errors]) == (422, [name])
    without = {name: text for name, text in data.items() if "valid" not in name}
    client.post(of("edit", memory), without)
    memory.refresh_from_db()
    assert memory.valid_to is not None
    seen = client.get(of("edit", memory)).context["form"]["version"].value()
    client.post(of("edit", memory), data | {f"{at}valid_to": ""})
    late = client.post(of("edit", memory), data | {f"{at}version": seen})
    assert late.status_code == 409 and "from March 1, 2025" in late.content.decode()
    memory.refresh_from_db()
    assert memory.valid_to is None


def test_forgetting_can_be_undone_where_it_was_done(cast: Cast) -> None:
    memory = make_memory("Keep me", cast.owner, cast.workspace)
    client = signed_in(cast.owner)
    response = client.post(of("delete", memory))
    html = response.content.decode()
    assert "Forgotten." in html and of("restore", memory, "panel") in html and "0<span" in html
    assert "Keep me" not in panel(client, cast)
    restored = client.post(of("restore", memory, "panel")).content.decode()
    assert "Keep me" in restored and "1<span" in restored


def test_pinning(cast: Cast) -> None:
    memory = make_memory("Pin me", cast.owner, cast.workspace)
    client = signed_in(cast.owner)
    assert "Pinned" in client.post(of("pin", memory), {"pinned": "on"}).content.decode()
    assert "Pinned" not in client.post(of("pin", memory), {"pinned": "off"}).content.decode()


def test_what_may_replace_an_older_one_shows_both_and_lets_a_person_decide(cast: Cast) -> None:
    older = make_memory("Print is on March 15", cast.owner, cast.workspace)
    newer = make_memory("Print is on March 22", cast.owner, cast.workspace)
    Memory.objects.filter(pk=newer.pk).update(may_replace=older)
    client = signed_in(cast.owner)
    html = panel(client, cast, review="on", part="list")
    assert "Older memory" in html and "March 15" in html and "March 22" in html
    assert "Keep both" not in panel(signed_in(cast.viewer), cast)
    response = client.post(of("replace", newer)).content.decode()
    assert "Older memory" not in response and "Replaced" in response
    older.refresh_from_db()
    assert (older.replaced_by, older.deleted_at) == (newer, None)


def receipt(cast: Cast, relevance: Relevance | None = None) -> str:
    used = make_memory("It is on Monday", cast.owner, cast.workspace)
    left = make_memory("The cat is grey", cast.owner, cast.workspace)
    message = make_message(make_chat(cast.owner, cast.workspace), "When?", role="assistant")
    store_receipt(
        message.public_id,
        Recall(
            [
                Recalled(used, 0.81, {"meaning": 0.6, "words": 0.2}, relevance),
                Recalled(left, 0.1, {"meaning": 0.1}),
            ],
            degraded="the embedder did not answer",
        ),
        [(True, ""), (False, "below the threshold")],
        workspace=cast.workspace,
        user=cast.owner,
        threshold=0.3,
    )
    return message.public_id


def test_a_receipt_says_what_was_used_why_and_what_was_left_out(cast: Cast) -> None:
    html = signed_in(cast.owner).get(url("receipt", receipt(cast))).content.decode()
    assert "It is on Monday" in html and "meaning 60 + words 20" in html
    assert "close in meaning to what you wrote, the same words, here or where it was said" in html
    assert "1 left out" in html and "The cat is grey" in html and "not relevant enough" in html
    assert "Memory search was limited" in html and "the embedder did not answer" in html
    assert html.index("It is on Monday") < html.index("left out") < html.index("The cat is grey")


@pytest.mark.parametrize(
    ("value", "kept", "shown"), [(0.9, "strong", "Strong"), (0.6, "related", "Related"), (None, "", None)]
)
def test_a_receipt_says_how_relevant_it_was(
    cast: Cast, value: float | None, kept: str, shown: str | None
) -> None:
    """An older receipt, or one by an embedder without relevance, omits it."""
    message = receipt(cast, None if value is None else Relevance(value, value, value))
    told = ReceiptJson(receipt_for(message, cast.viewer)).data["items"]
    assert [item["strength"] for item in told] == [kept, ""]
    assert told[0]["reasons"] == [
        "close in meaning to what you wrote",
        "the same words, here or where it was said",
    ]
    html = signed_in(cast.viewer).get(url("receipt", message)).content.decode()
    assert [word for word in ("Strong", "Related") if word in html] == ([shown] if shown else [])


def test_a_memory_corrected_in_a_receipt_says_so_and_can_be_changed_back(cast: Cast) -> None:
    receipt(cast)
    item = ReceiptItem.objects.get(used=True)
    client, address = signed_in(cast.owner), f"{of('edit', item.memory)}?as=receipt&item={item.pk}"
    response = client.post(address, {f"{item.memory.public_id}-content": "It is on Tuesday"})
    html = response.content.decode()
    assert response["HX-Retarget"] == f"#receipt-item-{item.pk}"
    assert (
        "More about “It is on Tuesday”" in html and "When it was used it read:" in html and "Saved." in html
    )
    undo = re.search(r'hx-post="([^"]*undo=[^"]*)"', html)
    assert undo is not None
    html = client.post(unescape(undo[1])).content.decode()
    assert "More about “It is on Monday”" in html and "Changed back." in html
    assert client.post(unescape(undo[1])).status_code == 409


def test_a_viewer_sees_a_receipt_without_its_buttons(cast: Cast) -> None:
    html = signed_in(cast.viewer).get(url("receipt", receipt(cast))).content.decode()
    assert "It is on Monday" in html
    assert "Forget" not in html and "Not relevant" not in html


def test_not_relevant_is_noted_and_can_be_taken_back(cast: Cast) -> None:
    receipt(cast)
    item = ReceiptItem.objects.get(used=True)
    client = signed_in(cast.owner)
    assert "Marked as not relevant" in client.post(url("not_relevant", item.pk)).content.decode()
    assert "Noted" not in client.post(url("not_relevant", item.pk), {"value": "off"}).content.decode()
    assert signed_in(cast.editor).post(url("not_relevant", item.pk)).status_code == 404
