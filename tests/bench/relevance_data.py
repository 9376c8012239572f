"""Workspaces and messages on which the relevance of memories is fitted and measured.

`data/relevance/NAME.txt` is a workspace: its language, then a memory a line, ``letter|text``, then a message a line,
``kind|text|letters of the memories that a model should be given``. `everyday.tsv` has messages of everyday life that
no memory answers, `past.tsv` questions about what was before, `requests.tsv` messages that look something up without
a question, `statements.tsv` rules and statements that are over, `labels.tsv` which memories of the workspaces are such.
`workspaces.jsonl` has more workspaces, one a line, in the form that ``score_workspaces`` takes, with the ids of their
rules and of what is over. The messages of `data/use` are used as well.

The files named on the command line are outside data, a workspace a line, as ``score_workspaces`` takes them.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from memories.recalling.shared_words import content_keys
from tests.bench.judging_data import KINDS, bucket
from tests.bench.judging_data import messages as kept_messages

DATA = Path(__file__).with_name("data") / "relevance"
USE = Path(__file__).with_name("data") / "use"
TALK = ("talk", "talk_more", "talk_held", "talk_held2")
ANSWERED = 3  # XQuAD's and LoCoMo's questions with at most this many relevant memories are used
FEW = 10
KEPT = 250  # statements of each kind from the data for keeping


class Message(NamedTuple):
    kind: str
    text: str
    relevant: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Case:
    """A workspace, or a part or a union of some, with messages. ``origin`` decides its fold: variants share it."""

    group: str  # "own", or the name of the file
    origin: str
    size: str  # whole, few (a whole workspace with at most FEW memories), part or mixed
    memories: dict[str, str]
    messages: list[Message]


def fold(text: str, folds: int = 5) -> int:
    return bucket(text) % folds


def own_workspaces() -> Iterator[Case]:
    for path in sorted(DATA.glob("*.txt")):
        _language, *lines = path.read_text(encoding="utf-8").splitlines()
        fields = [line.split("|") for line in lines]
        memories = {each[0]: each[1] for each in fields if len(each) == 2}
        messages = [Message(each[0], each[1], frozenset(each[2])) for each in fields if len(each) == 3]
        yield _named("own", path.stem, memories, messages)
    for each in _more():
        memories = {memory["id"]: memory["text"] for memory in each["memories"]}
        messages = [
            Message(query["kind"], query["text"], frozenset(query["relevant"])) for query in each["queries"]
        ]
        yield _named("own", each["name"], memories, messages)


def _more() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / "workspaces.jsonl").read_text(encoding="utf-8").splitlines()]


def outside_workspaces(path: Path) -> Iterator[Case]:
    """Yield one case a line; the file name up to its first underscore is the group."""
    group = path.stem.split("_")[0]
    usual = {"prefeval": "advice", "locomo": "question", "xquad": "question"}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        data = json.loads(line)
        messages = [
            Message(usual.get(group) or each["kind"], each["text"], frozenset(each["relevant"]))
            for each in data["queries"]
        ]
        memories = {each["id"]: each["text"] for each in data["memories"]}
        yield _named(group, f"{path.stem} {number}", memories, messages)


def _named(group: str, origin: str, memories: dict[str, str], messages: list[Message]) -> Case:
    """Return a case with unique ids, and with unanswerable questions as a kind of their own."""
    named = [
        each._replace(
            kind="lacking" if not each.relevant and each.kind not in {"general", "small_talk"} else each.kind,
            relevant=frozenset(f"{origin}/{known_as}" for known_as in each.relevant),
        )
        for each in messages
        if each.kind != "overview"
    ]
    size = "few" if group == "own" and len(memories) <= FEW else "whole"
    return Case(group, origin, size, {f"{origin}/{key}": text for key, text in memories.items()}, named)


def cases(files: list[Path]) -> list[Case]:
    """Return everything that is fitted on, the same in every run."""
    chance = random.Random(7)
    made: list[Case] = []
    for workspaces in ([*own_workspaces()], *([*outside_workspaces(path)] for path in files)):
        group = workspaces[0].group
        if group == "prefeval":
            chosen = workspaces[::2]
            made += [_part(each, 24, chance) for each in chosen] + chosen[::3]
        elif group == "locomo":
            made += [_part(_few(each), 40, chance, most=40) for each in workspaces for _ in range(2)]
        elif group == "xquad":
            made += [_stretch(workspaces[0], chance) for _ in range(2)]
        else:
            made += workspaces
            workspaces = [each for each in workspaces if each.size == "whole"]
            made += [_part(each, chance.choice([8, 10, 14]), chance) for each in workspaces[::2]]
            made += [_mixed(each, chance.choice(workspaces)) for each in workspaces[1::2]]
    return [*_with_everyday(made, chance), *_pairs(chance)]


def _few(case: Case) -> Case:
    return replace(case, messages=[each for each in case.messages if len(each.relevant) <= ANSWERED])


def _part(case: Case, size: int, chance: random.Random, *, most: int = 1000) -> Case:
    """Return ``size`` memories with all that some of the messages need; the other questions become unanswerable."""
    answered = [each for each in case.messages if each.relevant]
    kept = frozenset[str]().union(
        *(each.relevant for each in chance.sample(answered, min(len(answered), max(3, size // 3))))
    )
    rest = sorted(case.memories.keys() - kept)
    kept |= set(chance.sample(rest, max(0, min(len(rest), size - len(kept)))))
    messages = []
    for each in case.messages:
        if each.relevant <= kept and (each.relevant or case.group != "locomo"):
            messages.append(each)
        elif (
            not each.relevant & kept and each.kind in {"question", "typo", "past"} and case.group != "locomo"
        ):
            messages.append(each._replace(kind="lacking", relevant=frozenset()))
    memories = {key: text for key, text in case.memories.items() if key in kept}
    return replace(case, size="part", memories=memories, messages=messages[:most])


def _stretch(case: Case, chance: random.Random, size: int = 40, most: int = 25) -> Case:
    """Return neighbouring sentences, with questions that they answer."""
    keys = list(case.memories)
    start = chance.randrange(len(keys) - size)
    kept = set(keys[start : start + size])
    messages = [each for each in case.messages if each.relevant and each.relevant <= kept][:most]
    memories = {key: text for key, text in case.memories.items() if key in kept}
    return replace(case, size="part", memories=memories, messages=messages)


def _mixed(case: Case, other: Case) -> Case:
    """Return the memories of two workspaces in one, with the messages of the first."""
    messages = [each for each in case.messages if each.kind not in {"general", "small_talk"}]
    return replace(case, size="mixed", memories=case.memories | other.memories, messages=messages)


def _with_everyday(made: list[Case], chance: random.Random) -> list[Case]:
    """Add each everyday message to two workspaces, one of which shares a word with it, and each unanswered question to
    two.
    """
    hosts = [at for at, case in enumerate(made) if case.group != "xquad" and case.size != "mixed"]
    keys = {at: frozenset[str]().union(*map(content_keys, made[at].memories.values())) for at in hosts}
    more: dict[int, list[Message]] = {at: [] for at in hosts}
    for text in everyday():
        sharing = [at for at in hosts if made[at].size == "part" and content_keys(text) & keys[at]]
        for at in {chance.choice(hosts), chance.choice(sharing or hosts)}:
            more[at].append(Message("everyday", text))
    for text in _lines(USE / "lacking.txt"):
        for at in chance.sample(hosts, 2):
            more[at].append(Message("lacking", text))
    return [replace(case, messages=case.messages + more.get(at, [])) for at, case in enumerate(made)]


def everyday() -> list[str]:
    texts = [text for name in TALK for text in _lines(USE / f"{name}.txt")]
    return list(dict.fromkeys([*texts, *_lines(DATA / "everyday.tsv")]))


def _pairs(chance: random.Random, size: int = 12) -> Iterator[Case]:
    """Yield the pairs of `data/use`, a statement and a question each, some together."""
    pairs: list[list[str]] = [
        [kind, *line.split("|")]
        for name, kind in (("advice", "advice"), ("facts", "question"))
        for line in _lines(USE / f"{name}.txt")
    ]
    chance.shuffle(pairs)
    for start in range(0, len(pairs), size):
        some = pairs[start : start + size]
        memories = {str(number): statement for number, (_, statement, _) in enumerate(some)}
        messages = [Message(kind, text, frozenset([str(at)])) for at, (kind, _, text) in enumerate(some)]
        yield _named("pairs", f"pairs {start}", memories, messages)


def past_questions() -> list[str]:
    return [*_lines(DATA / "past.tsv")]


def requests_for_facts() -> list[str]:
    """Return messages that look something up without a question, such as "Remind me where the key is"."""
    return [*_lines(DATA / "requests.tsv")]


def labelled_statements() -> list[tuple[str, str]]:
    """Return (kind, text) of statements outside the workspaces: rule, over, or another."""
    found = [tuple(line.split("|")) for line in (DATA / "statements.tsv").read_text().splitlines()]
    written = [("rule" if kind == "standing" else kind, text) for kind, _language, text in found]
    kept = [(fact.kind, each.text[fact.start : fact.end]) for each in kept_messages() for fact in each.facts]
    random.Random(1).shuffle(kept)
    some = [pair for kind in KINDS.values() for pair in [pair for pair in kept if pair[0] == kind][:KEPT]]
    rules = {"preference", "instruction"}
    return written + [("kept rule" if kind in rules else "kept", text) for kind, text in some]


def labels() -> dict[str, tuple[set[str], set[str]]]:
    """Return for each workspace of this project the ids of its rules, and of statements that are over."""
    rows = [line.split("|") for line in (DATA / "labels.tsv").read_text().splitlines()]
    named = {name: (set(rules), set(over)) for name, rules, over in rows}
    return named | {each["name"]: (set(each["rules"]), set(each["over"])) for each in _more()}


def _lines(path: Path) -> Iterator[str]:
    """Yield the texts of a file whose lines begin with a language."""
    for line in path.read_text(encoding="utf-8").splitlines():
        yield line.split("|", 1)[1]
