"""The check of an answer: what it is compared with, and how the model's verdict is parsed."""

import json
from typing import Any

import pytest

from chat.modes.deep_think import LONGEST_CORRECTION, MOST_FINDINGS, _portions, build_check, read_verdict
from memories.models import Memory
from memoryhub.llm.base import Capabilities
from tests.conftest import Cast
from tests.factories import make_memory

ANSWER = "The **deadline** is May 1,\nand Anna comes <along>. It costs 5 > 4 euros."


@pytest.fixture
def memories(cast: Cast) -> list[Memory]:
    contents = ["The deadline is March 15", "Anna comes along"]
    return [make_memory(content, cast.owner, cast.workspace) for content in contents]


def said(*statements: Any, **more: Any) -> str:
    return json.dumps({"statements": list(statements), "correction": "", **more})


def entry(quote: Any = "The deadline is May 1", memory: Any = 1, agrees: Any = False) -> dict[str, Any]:
    return {"quote": quote, "memory": memory, "agrees": agrees}


def test_quote_is_found_in_answer_despite_markdown(memories: list[Memory]) -> None:
    for quote in (
        "The deadline is May 1",
        "the DEADLINE is May 1, and Anna comes",
        "The **deadline** is May 1,",
        "“Anna comes <along>.”",
        "Anna comes &lt;along&gt;",
        "It costs 5 &gt; 4 euros",
    ):
        verdict = read_verdict(said(entry(quote)), ANSWER, memories)
        assert verdict is not None and verdict.findings[0]["quote"], quote


def test_words_that_the_answer_does_not_contain_are_not_quoted(memories: list[Memory]) -> None:
    unquoted = [{"quote": "", "memory_id": memories[0].public_id, "agrees": False}]
    for quote in ("The deadline is June 1", "", "  ", "**", None, 5, ["The deadline"]):
        verdict = read_verdict(said(entry(quote)), ANSWER, memories)
        assert verdict is not None and verdict.findings == unquoted, quote


def test_malformed_statement_is_dropped(memories: list[Memory]) -> None:
    for statement in (
        entry(memory=0), entry(memory=3), entry(memory=-1), entry(memory="1"), entry(memory=None),
        entry(memory=1.5), entry(agrees="no"), entry(agrees=None), "text", None, [], 7,
        {"quote": "The deadline is May 1"},
    ):  # fmt: skip
        verdict = read_verdict(said(statement, correction="Correction: so."), ANSWER, memories)
        assert verdict is not None, statement
        assert (verdict.findings, verdict.correction, verdict.differs) == ([], "", False), statement


def test_reply_without_the_requested_json_is_no_verdict(memories: list[Memory]) -> None:
    for reply in (
        "", "Fine.", "[]", "null", "{}", '{"statements": null}', '{"statements": {}}', '{"statements": [',
        '{"statements": [], "correction": 5}', "{" * 5000, '{"a": ' * 3000, '{"other": []}',
    ):  # fmt: skip
        assert read_verdict(reply, ANSWER, memories) is None, reply[:40]


def test_json_with_small_errors_or_text_around_it_is_read(memories: list[Memory]) -> None:
    reply = said(entry())
    for variant in (
        f"```json\n{reply}\n```",
        f"Here it is:\n{reply}",
        f"{{not json}} {reply}",
        f'{{"thoughts": "…"}}\n{reply}',
        reply.replace("}]", "},]"),
        reply.replace("}]", ",}]").replace("false", "False"),
        f"Sure:\n```json\n{reply[:-1]},}}\n```",
        reply.replace('"', "'"),
    ):
        verdict = read_verdict(variant, ANSWER, memories)
        assert verdict is not None and verdict.differs, variant
        assert verdict.findings == [
            {"quote": "The deadline is May 1", "memory_id": memories[0].public_id, "agrees": False}
        ], variant


def test_what_differs_comes_first_and_there_is_an_end_to_it(memories: list[Memory]) -> None:
    found = [entry("Anna comes", 2, True)] * 20 + [entry()]
    verdict = read_verdict(said(*found, correction="\x00No: " + "March " * 900), ANSWER, memories)
    assert verdict is not None
    assert (len(verdict.findings), verdict.findings[0]["agrees"]) == (MOST_FINDINGS, False)
    assert verdict.correction.startswith("No: March")
    assert len(verdict.correction) <= LONGEST_CORRECTION


def test_the_question_and_memories_give_way_to_the_answer(memories: list[Memory], settings: Any) -> None:
    settings.LLM_MAX_TOKENS = 512
    capabilities = Capabilities(has_tools=False, can_extract=True, context_tokens=1600, local=True)
    many = memories * 40
    messages, count = build_check("Why? " * 2000, ANSWER, many, capabilities)
    assert 0 < count < len(many)
    text = messages[1].content
    assert f"\n{count}. (memory, " in text
    assert f"\n{count + 1}. (memory, " not in text
    assert "Anna comes &lt;along&gt;" in text
    assert build_check("Why?", ANSWER * 60, many, capabilities)[1] == 0


def test_answer_is_searched_for_in_a_few_portions() -> None:
    for text, count in (
        ("", 0),
        ("\n \n", 0),
        ("One line.", 1),
        ("a\nb\nc", 1),
        ("word " * 2000, 1),
        ("line of words\n" * 500, 6),
    ):
        portions = _portions(text)
        assert len(portions) == count, text[:20]
        assert "".join("".join(portions).split()) == "".join(text.split()), text[:20]
