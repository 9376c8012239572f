"""A reasoning model's thoughts are separated from its answer, however the stream is cut."""

import json
import random

import pytest

from memoryhub.llm import errors
from memoryhub.llm.base import Message
from memoryhub.llm.openai_compatible import OpenAIChatModel
from memoryhub.llm.output_parsing import ThoughtSplitter, without_thoughts
from tests.fakes.openai_server import Answer, Raw, ScriptedOpenAI

ASKED = [Message("user", "When is the deadline?")]
CASES = [
    ("<think>hm\n a</think>\n\nHello <b>", "hm\n a", "Hello <b>"),
    ("\n<THINK>\nx < y </thin </think>A", "x < y </thin", "A"),
    ("<thinking>a</thinking>b</think>c", "a", "b</think>c"),
    ("I reason\n</think>\n\nYes", "I reason", "Yes"),
    ("a\n</think> b\n</think>\nc", "a\n</think> b", "c"),
    ("</think>\nA", "", "A"),
    ("x\n</think>", "x", ""),
    ("<think></think>A", "", "A"),
    ("<think>it never ends", "it never ends", ""),
    ("Use `</think>` to close", "", "Use `</think>` to close"),
    ("The <think> tag\n</think>\nends", "", "The <think> tag\n</think>\nends"),
    ("<b>bold</b>", "", "<b>bold</b>"),
    ("<thin air", "", "<thin air"),
    ("  hi", "", "  hi"),
    ("", "", ""),
]


def split(pieces: list[str]) -> tuple[str, str]:
    splitter = ThoughtSplitter()
    thought = answer = ""
    for piece in [*map(splitter.feed, pieces), splitter.end()]:
        if piece.retracts:
            thought, answer = "", ""
        thought, answer = thought + piece.thought, answer + piece.text
    return thought.strip(), answer


def test_a_reply_is_split_wherever_the_stream_cuts_it() -> None:
    for reply, thought, answer in CASES:
        cut = random.Random(7)
        assert split([reply]) == split(list(reply)) == (thought, answer)
        for _ in range(30):
            places = sorted(cut.choices(range(len(reply) + 1), k=4))
            pieces = [reply[at:to] for at, to in zip([0, *places], [*places, len(reply)], strict=True)]
            assert split(pieces) == (thought, answer), pieces
        assert without_thoughts(reply) == answer


def test_a_long_answer_costs_no_more_for_being_looked_at() -> None:
    splitter = ThoughtSplitter()
    assert "".join(splitter.feed("word ").text for _ in range(20_000)) == "word " * 20_000


async def test_thoughts_are_told_apart_whoever_marks_them(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    def chunk(**delta: str) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}
        return f"data: {json.dumps({'choices': [choice]})}\n\n"

    for field in ("reasoning_content", "reasoning"):
        stream = chunk(**{field: "Let me "}) + chunk(**{field: "see."}) + chunk(content="Friday.") + chunk()
        scripted_openai.script(Raw(stream.encode() + b"data: [DONE]\n\n"))
    scripted_openai.script(Answer("<thi", "nk>Let me see.</th", "ink>", "\n\nFri", "day."))
    for _ in range(3):
        deltas = [delta async for delta in model.stream(ASKED)]
        assert "".join(delta.thought for delta in deltas) == "Let me see."
        assert "".join(delta.text for delta in deltas) == "Friday."


def test_a_whole_answer_comes_without_its_thoughts(
    model: OpenAIChatModel, scripted_openai: ScriptedOpenAI
) -> None:
    scripted_openai.script(Answer("<think>[1]</think>\n[2]"), Answer("<think>without end"))
    assert model.complete(ASKED) == "[2]"
    with pytest.raises(errors.ModelBadReply):
        model.complete(ASKED)
