"""Rendering of answers: once each, and at bounded CPU cost, compared with ordinary text in the same run."""

import re
from html import unescape
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import unquote

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import OrmQ

from chat.models import Chat, Message, MessageRole, MessageStatus
from chat.rendering import markdown, stored_html
from chat.rendering.highlighting import LANGUAGES, coloured
from chat.rendering.markdown import RENDERER, Budget, TooHeavy, render_markdown
from chat.rendering.stored_html import MESSAGE_STEPS, PAGE_STEPS, store_html
from chat.tasks import render_answers
from chat.turns.services import begin_turn, retry_answer
from chat.turns.turn import wait_until_idle
from chat.views import shown_messages
from chat.views.shown_messages import load_transcript
from tests.bench.bench_markdown import CODE, cost, filled, hostile_markdown, hostile_texts
from tests.bench.bench_markdown import rendered as length_rendered
from tests.conftest import Cast
from tests.factories import make_chat, make_message, make_user
from tests.fakes.openai_server import Answer, ScriptedOpenAI
from tests.signing_in import signed_in
from workspaces.models import User

PROSE = Path(__file__).parents[2].joinpath("docs/operations.md").read_text()
SIZE = 20_000
HOSTILE = (
    "[" * SIZE,
    "- a\n" * 8_000,
    "*a_ " * 8_000,
    "> - " * 8_000,
    "[](" * 10_000,
    "<a@b>" * 8_000,
    "http://a " * 3_500,
)
LATE = "Shown without formatting for now"
HEAVY = "this answer is too complex"
WIDE = "|" + "a|" * 5_000 + "\n|" + "-|" * 5_000 + "\n" + "a\n" * 1_000


def least(work: Any, times: int = 3) -> float:
    return min(cost(work) for _ in range(times))


def answers(chat: Chat, *contents: str, **fields: Any) -> list[Message]:
    return [make_message(chat, each, role=MessageRole.ASSISTANT, **fields) for each in contents]


def page(user: User, chat: Chat) -> str:
    return signed_in(user).get(f"/chats/{chat.public_id}/").content.decode()


# Cost of rendering


def test_no_markdown_costs_much_more_than_ordinary_text() -> None:
    """Without the guard, brackets cost a hundred times as much at this length, and more the longer they are."""
    usual = least(lambda: length_rendered(filled(PROSE, SIZE // 2)))
    for name, text in hostile_markdown(SIZE // 2, seed=20, texts=2):
        spent = cost(lambda text=text: length_rendered(text))  # type: ignore[misc]
        if spent > 40 * usual:  # again: the machine may be busy
            spent = least(lambda text=text: length_rendered(text))  # type: ignore[misc]
        assert spent < 40 * usual, f"{name}: {spent / usual:.0f} times"


def test_no_code_costs_much_more_than_ordinary_code() -> None:
    source = filled(Path(__file__).read_text(), SIZE // 2)
    usual = least(lambda: coloured(source, "python"))
    for language, (name, text) in product(LANGUAGES, hostile_texts(CODE, SIZE // 2, seed=21, texts=1)):
        spent = cost(lambda text=text, language=language: coloured(text, language))  # type: ignore[misc]
        if spent > 40 * usual:
            spent = least(lambda text=text, language=language: coloured(text, language))  # type: ignore[misc]
        assert spent < 40 * usual, f"{language}, {name}: {spent / usual:.0f} times"


def test_parsing_stops_at_the_budget_however_long_the_text() -> None:
    """Counted in the library's own calls, which the budget limits."""
    looked = 0
    skip = markdown.ParserInline.skipToken

    def counted(self: Any, state: Any) -> None:
        nonlocal looked
        looked += 1
        skip(self, state)

    for text in (*HOSTILE, WIDE):
        for times in (1, 8):
            looked, budget = 0, Budget(MESSAGE_STEPS)
            with patch.object(markdown.ParserInline, "skipToken", counted), pytest.raises(TooHeavy):
                render_markdown("[" * SIZE + "\n\n" + text * times, budget)
            assert looked <= MESSAGE_STEPS, text[:8]


def test_a_wide_table_is_given_up_before_its_cells_are_made() -> None:
    made = 0

    class Counted(markdown.Token):
        def __post_init__(self) -> None:
            nonlocal made
            made += 1

    with patch("markdown_it.rules_block.state_block.Token", Counted), pytest.raises(TooHeavy):
        render_markdown(WIDE, Budget(MESSAGE_STEPS))
    assert 0 < made < 2 * MESSAGE_STEPS + 40_000  # 196,000 without the guard


def test_a_long_link_named_often_is_given_up_before_it_is_written_out() -> None:
    text = f"[a]: /{'x' * 15_000}\n\n" + "[a] " * 2_000
    with patch.object(markdown.nh3, "clean") as clean, pytest.raises(TooHeavy):
        render_markdown(text, Budget(MESSAGE_STEPS))
    clean.assert_not_called()


def test_of_much_code_a_part_is_coloured() -> None:
    block = "```python\n" + "x = 'y'\n" * 1_000 + "```\n\n"
    html = render_markdown(block * 5, Budget(MESSAGE_STEPS))
    assert html.count("language-python") == 2 and html.count("language-text") == 3
    assert html.count('class="code-block"') == 5


def test_ordinary_long_answers_are_far_from_the_budget() -> None:
    for path in Path(__file__).parents[2].joinpath("docs").glob("*.md"):
        budget = Budget(MESSAGE_STEPS)
        assert render_markdown(filled(path.read_text(), 40_000), budget), path
        assert budget.left > MESSAGE_STEPS / 4, path


def test_code_is_highlighted_by_language() -> None:
    for language, code, found in (
        ("python", "def f(x):  # why\n    return 'a'", ["k:def", "nf:f", "c:# why", "k:return", "s:'a'"]),
        ("py", '"""Doc\nmore"""\n@wraps', ['s:"""Doc\nmore"""', "nd:@wraps"]),
        ("js", "const a = `x${1}`; // b", ["k:const", "s:`x${1}`", "c:// b"]),
        ("TS", "interface A { n: 12 }", ["k:interface", "m:12"]),
        ("json", '{"a": [1, true]}', ['na:"a"', "m:1", "k:true"]),
        ("html", '<p class="a"><!-- b --></p>', ["nt:<p", "na:class", 's:"a"', "c:<!-- b -->", "nt:</p"]),
        ("css", "a { color: #fff } /* b */", ["na:color", "m:#fff", "c:/* b */"]),
        ("sql", "SELECT 'a' -- b", ["k:SELECT", "s:'a'", "c:-- b"]),
        ("bash", "echo $HOME # b", ["k:echo", "nv:$HOME", "c:# b"]),
        ("yaml", "key: yes # b", ["na:key", "k:yes", "c:# b"]),
        ("go", "func f() int { return 0x1 }", ["k:func", "nf:f", "k:int", "k:return", "m:0x1"]),
        ("rust", "fn f<'a>(c: char) { 'x' }", ["k:fn", "k:char", "s:'x'"]),
        ("c", "#include <a.h>\nint x; /* b", ["k:#include", "k:int", "c:/* b"]),
        ("diff", "+a\n-b\n c", ["gi:+a", "gd:-b"]),
        ("cobol", "MOVE A TO B", []),
        ("", "a < b", []),
    ):
        html = coloured(code, language)
        spans = re.findall(r'<span class="(\w+)">(.*?)</span>', html, re.DOTALL)
        assert [f"{kind}:{unescape(text)}" for kind, text in spans] == found, language
        assert unescape(re.sub(r"</?span[^>]*>", "", html)) == code, language


# Rendering only once


@pytest.mark.django_db(transaction=True)
def test_an_answer_is_rendered_when_it_is_stored(scripted_model: ScriptedOpenAI) -> None:
    chat = make_chat(make_user("olive"))
    scripted_model.script(Answer("It is **blue**."), Answer("", "[" * 30_000))
    first, second = (ask(chat, "Which?"), ask(chat, "And now?"))
    assert (first.html, second.html) == ("<p>It is <strong>blue</strong>.</p>\n", "")
    with patch.object(stored_html, "render_markdown", side_effect=AssertionError("rendered in a page view")):
        html = page(chat.created_by, chat)
    assert first.html in html and html.count(HEAVY) == 1 and LATE not in html and "[" * 30_000 in html
    assert late_jobs() == []


@pytest.mark.django_db(transaction=True)
def test_an_answer_that_the_renderer_fails_at_is_stored_all_the_same(scripted_model: ScriptedOpenAI) -> None:
    chat = make_chat(make_user("olive"))
    scripted_model.script(Answer("It is **blue**."))
    with patch.object(markdown.nh3, "clean", side_effect=RecursionError):
        answer = ask(chat, "Which?")
    assert (answer.content, answer.html, answer.status) == ("It is **blue**.", "", MessageStatus.DONE)
    assert "It is **blue**." in page(chat.created_by, chat)


def ask(chat: Chat, content: str) -> Message:
    turn = begin_turn(chat, content=content, by=chat.created_by, now=timezone.now())
    assert wait_until_idle(20)
    turn.answer.refresh_from_db()
    return turn.answer


def late_jobs() -> list[list[int]]:
    return [
        job.task["kwargs"]["message_ids"]
        for job in OrmQ.objects.order_by("pk")
        if job.task["func"] == "chat.tasks.render_answers"
    ]


@pytest.mark.django_db
def test_page_queues_the_rendering_of_answers_without_html_and_stores_none(cast: Cast) -> None:
    for reader in (cast.owner, cast.viewer):
        chat = make_chat(cast.owner, cast.workspace)
        late, blank = answers(chat, "**bold**", "")
        earlier = len(late_jobs())
        html = page(reader, chat)
        assert "<strong>bold</strong>" in html and LATE not in html, reader
        late.refresh_from_db()
        assert (late.html, late.html_of, late_jobs()[earlier:]) == ("", "", [[late.pk]]), reader
        assert render_answers(message_ids=late_jobs()[earlier]) == "1 answers rendered", reader
        late.refresh_from_db()
        assert late.html == "<p><strong>bold</strong></p>\n", reader
        assert render_answers(message_ids=[late.pk, blank.pk + 99]) == "0 answers rendered", reader
        with patch.object(stored_html, "render_markdown", side_effect=AssertionError("rendered again")):
            assert "<strong>bold</strong>" in page(reader, chat), reader
        assert len(late_jobs()) == earlier + 1, reader


@pytest.mark.django_db
def test_a_page_of_hostile_answers_spends_one_budget(cast: Cast) -> None:
    """Answers at the limit of what is rendered: the page costs less than one of them."""
    chat = make_chat(cast.owner, cast.workspace)
    edge = "- a\n" * 1_500
    answers(chat, *[edge] * 18, "[" * SIZE, "It is **blue**.")
    spent = 0
    spend = Budget.spend

    def counted(self: Budget, steps: int) -> None:
        nonlocal spent
        spend(self, steps)
        spent += steps

    with patch.object(Budget, "spend", counted):
        html = page(cast.owner, chat)
    assert spent <= PAGE_STEPS
    assert "<strong>blue</strong>" in html  # the newest is rendered first
    assert html.count(LATE) >= 18 and HEAVY not in html
    store_html(late_jobs()[0])
    html = page(cast.owner, chat)
    assert (html.count(LATE), html.count(HEAVY)) == (0, 1)


@pytest.mark.django_db
def test_very_long_messages_are_shown_a_few_at_a_time(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    long = answers(chat, *["'" * 900_000] * 5, "x" * 3_000_000)
    keys = [message.public_id for message in long]

    def shown(**where: str) -> list[str]:
        found = load_transcript(chat, cast.owner, now=timezone.now(), **where)
        return [entry.message.public_id for entry in found.entries]

    assert shown() == keys[5:]
    assert shown(before=keys[5]) == keys[3:5] and shown(before=keys[2]) == keys[:2]
    assert shown(around=keys[2]) == keys[:4]


@pytest.mark.django_db
def test_a_place_in_a_long_chat_is_shown_without_all_that_followed(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown_messages, "MOST_AFTER", 10)
    chat = make_chat(cast.owner, cast.workspace)
    keys = [message.public_id for message in answers(chat, *["Noted."] * 20)]
    found = load_transcript(chat, cast.owner, now=timezone.now(), around=keys[5])
    assert [entry.message.public_id for entry in found.entries] == keys[:15]
    assert found.later and not found.earlier and not found.entries[-1].is_last
    html = signed_in(cast.viewer).get(f"/chats/{chat.public_id}/?at={keys[5]}").content.decode()
    assert "Go to the latest messages" in html
    whole = load_transcript(chat, cast.owner, now=timezone.now(), around=keys[10])
    assert not whole.later and whole.entries[-1].is_last


@pytest.mark.django_db
def test_another_renderer_and_another_text_make_what_was_kept_void(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    (kept,) = answers(chat, "**old**")
    store_html([kept.pk])
    Message.objects.filter(pk=kept.pk).update(content="*new*")
    html = page(cast.owner, chat)
    assert "<em>new</em>" in html and "<strong>old" not in html
    store_html([kept.pk])
    monkeypatch.setattr(stored_html, "RENDERER", RENDERER + 1)
    assert store_html([kept.pk]) == 1
    assert store_html([kept.pk]) == 0


@pytest.mark.django_db
def test_a_failed_answer_that_is_written_anew_loses_its_html(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chat.turns.turn.start", lambda *args: None)
    chat = make_chat(cast.owner, cast.workspace)
    question = make_message(chat, "Which?")
    (failed,) = answers(chat, "Half of", status=MessageStatus.FAILED, reply_to=question)
    store_html([failed.pk])
    retry_answer(Message.objects.get(pk=failed.pk), by=cast.owner, now=timezone.now())
    failed.refresh_from_db()
    assert (failed.content, failed.html, failed.html_of) == ("", "", "")


@pytest.mark.django_db
def test_a_growing_answer_is_shown_as_it_stands_and_not_kept(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    (growing,) = answers(chat, "**so far**", status=MessageStatus.STREAMING, beat_at=timezone.now())
    with patch.object(stored_html, "set_html", side_effect=AssertionError("kept while it grows")):
        assert "<strong>so far</strong>" in page(cast.owner, chat)
    assert (late_jobs(), store_html([growing.pk])) == ([], 0)


@pytest.mark.django_db
def test_earlier_versions_are_kept_too(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    question = make_message(chat, "Which?")
    (now,) = answers(chat, "**blue**", reply_to=question)
    aside = {"superseded_by": now, "superseded_at": timezone.now(), "reply_to": question}
    (earlier,) = answers(chat, "**red**", **aside)
    store_html([now.pk, earlier.pk])
    with patch.object(stored_html, "render_markdown", side_effect=AssertionError("rendered in a page view")):
        path = f"/chats/{chat.public_id}/messages/{now.public_id}/versions/"
        assert "<strong>red</strong>" in signed_in(cast.viewer).get(path).content.decode()


@pytest.mark.django_db
def test_late_answers_cost_a_page_the_same_queries_as_kept_ones_and_the_job(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    few = answers(chat, *["**a**"] * 3)
    page(cast.owner, chat)

    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            page(cast.owner, chat)
        return len(seen)

    late = queries()
    answers(chat, *["**b**"] * 20)
    assert queries() == late
    store_html(Message.objects.values_list("pk", flat=True))
    assert queries() < late and few


def test_bare_address_becomes_a_link() -> None:
    for text, links in (
        (
            "See https://a.org/x_y_z?q=1&r=(2), or http://127.0.0.1:8000.",
            ["https://a.org/x_y_z?q=1&r=(2)", "http://127.0.0.1:8000"],
        ),
        ("(https://a.org/Foo_(bar)). **https://b.org/**", ["https://a.org/Foo_(bar)", "https://b.org/"]),
        ("请看https://a.org/x获取。 https://b.org/ملف", ["https://a.org/x", "https://b.org/"]),
        ("https://a.org[1] https://a.org/\u202egpj.exe", ["https://a.org", "https://a.org/"]),
        ('https://a.org/"onmouseover=x https://good.org@bad.org/', ["https://a.org/", "https://good.org"]),
        ("`https://a.org` [b](https://b.org) ahttps://c.org https:// javascript://d.org", []),
        ("```\nhttps://a.org\n```\nhttps://\u0430pple.com", []),
    ):
        html = render_markdown(text, Budget(2_000))
        found = [
            (unquote(unescape(to)), unescape(said))
            for to, said in re.findall(r'<a href="(.*?)"[^>]*>(.*?)</a>', html)
        ]
        assert [said for to, said in found if to == said] == links, text
        assert html.count("<a ") == html.count('rel="noopener noreferrer nofollow"'), text


def test_tables_are_aligned_tasks_have_boxes_and_images_are_links() -> None:
    for text, expected in (
        (
            "| a | b | c |\n|:--|:-:|--:|\n| 1 | 2 | 3 |",
            ['<th class="align-left">a', '<td class="align-center">2', '<td class="align-right">3'],
        ),
        (
            "- [x] done\n- [ ] not **yet**\n- [y] no task",
            ['<li class="task"><span class="task__box">☑</span>done', "☐</span>not <strong>", "<li>[y] no"],
        ),
        (
            '![A map](https://example.org/map.png "Map") and [![logo](https://example.org/l.png)](https://example.org)',
            ['href="https://example.org/map.png"', "▣ A map</a>", ">▣ logo</a>"],
        ),
        ("![x](javascript:alert(1)) ![](data:text/html,hi)", ["![x](javascript:alert(1))"]),
    ):
        html = render_markdown(text, Budget(2_000))
        assert [part for part in expected if part not in html] == [], text
        assert "<img" not in html, text
        assert "style=" not in html, text
        assert 'href="javascript' not in html, text
        assert 'href="data' not in html, text
