"""Extraction without a language model: users' statements about themselves, people they know, projects and wishes.

Candidates are the user's own words, trimmed. Small networks choose the clauses, up to eight per message. Those that the
same message retracts or corrects are dropped.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from memories.judging.corrections import find_replaced
from memories.judging.duplicates import normalise
from memories.judging.encoder_interface import Encoder, ReadOnce, chances, weights
from memories.judging.extraction.with_language_model import MAX_TEXT, MAX_WORDS, Candidate, keep_best
from memories.judging.secret_filter import find_sensitive
from memories.judging.sentences import (
    JOINED,
    EncodedMessage,
    Span,
    own_part,
    read,
    sentences,
    spans,
    tagged,
    texts_read,
    topic_before,
)
from memoryhub.llm.base import Vectors

# Each clause is judged in the context of the whole message, such as role play or a text to translate, and a short reply
# together with the question before it. The networks were fitted by tests/bench/fit_keeping.py. They read the states of
# a middle layer, because those of the last one say more about the subject than about whether something is stated.

KINDS = ("fact", "preference", "instruction", "decision", "event")
NETS = ("inner", "inner_bias", "outer", "outer_bias")
MOST_CLAUSES = 160  # clauses judged per message
BESIDE = 0.17  # how much lower the threshold is for a clause whose sentence has another one above it
LACKING = 0.35  # probability from which a clause counts as not naming its topic
ALONE = slice(6 * 384, 7 * 384)  # the part of a row that is the mean state of the clause encoded alone
_ASKS = ("?", "\uff1f")
_COLON = re.compile("[:\uff1a]")


@dataclass(frozen=True)
class Clause:
    start: int
    end: int
    sentence: Span
    flags: tuple[float, ...]  # 0 or 1: quoted, followed by a question mark, …; and its length


@dataclass(frozen=True)
class Judged:
    """A clause with its probability of being worth remembering."""

    start: int
    end: int
    sentence: Span
    chance: float
    kind: str
    takes_back: float  # the probability that its sentence takes back an earlier one
    topic: Span | None = None  # the span before the clause that names its topic, if the clause does not
    lacks_topic: bool = False  # neither the clause nor the text before it names a topic


def clauses_of(passage: EncodedMessage, tags: dict[str, Vectors]) -> list[Clause]:
    text, clauses = passage.text, []
    standing = list(sentences(text))
    asks = any(mark in text for mark in _ASKS)
    for number, (start, end, quotes) in enumerate(standing):
        for (a, b), first, last in spans(passage, tags, start, end):
            after = text[b : b + 2].strip()[:1]
            flags = (
                quotes,
                after in _ASKS and after != "",
                text[end - 1] in _ASKS,
                number == 0,
                len(standing) == 1,
                any(map(str.isdigit, text[a:b])),
                min(b - a, 200) / 100,
                first,
                last,
                asks,
                after != "" and after in ":\uff1a",
                bool(_COLON.search(text[:a])),
                bool(_COLON.search(text[a:b])),
                b - a >= len(text.strip()) - 2,
                after != "" and after in "!\uff01",
            )
            clauses.append(Clause(a, b, (start, end), tuple(map(float, flags))))
    return clauses[:MOST_CLAUSES]


def scaled(vectors: Vectors, fitted: dict[str, Vectors]) -> Vectors:
    return ((vectors - fitted["centre"]) / fitted["spread"]).astype(np.float32)


def clause_features(
    passage: EncodedMessage,
    own: Vectors,
    clauses: Sequence[Clause],
    encoder: Encoder,
    fitted: dict[str, Vectors],
) -> Vectors:
    """Return the feature vectors of the clauses, one row each.

    ``own``: the scaled states of the passage. A row contains: (1) the mean of the clause's states in the passage; (2)
    its first and last state, and the states before and after it; (3) the mean of the passage's other states; (4) the
    mean of the states of the clause encoded alone; (5) ``Clause.flags``.
    """
    alone = encoder.states([passage.text[each.start : each.end] for each in clauses])
    edge = np.zeros((1, own.shape[1]), np.float32)
    padded = np.vstack([edge, own, edge])
    sums = np.vstack([edge, np.cumsum(own, axis=0)])
    middles = np.array([(a + b) / 2 for a, b in passage.places])
    rows = []
    for each, states in zip(clauses, alone, strict=True):
        first = int(np.searchsorted(middles, each.start))
        after = max(int(np.searchsorted(middles, each.end)), min(first + 1, len(own)))
        inside = sums[after] - sums[first]
        rest = (sums[-1] - inside) / max(len(own) - (after - first), 1)
        edges = (padded[first + 1], padded[after], padded[first], padded[after + 1])
        by_itself = scaled(np.asarray(states.middle, np.float32), fitted)
        mean = by_itself.mean(axis=0) if len(by_itself) else edge[0]
        rows.append(np.concatenate([inside / max(after - first, 1), *edges, rest, mean, each.flags]))
    return np.array(rows, np.float32)


def judge(texts: Sequence[str], encoder: ReadOnce) -> list[list[Judged]]:
    """Return every clause of each message with its probability of being worth remembering. Calls the encoder twice."""
    encoder.states([part for text in texts for part in texts_read(text)])
    cut = [_Cut(read(text, encoder)) for text in texts]
    encoder.states([each.passage.text[a.start : a.end] for each in cut for a in each.found])
    return [each.judged(encoder) for each in cut]


class _Cut:
    """An encoded message with its possible clauses."""

    def __init__(self, passage: EncodedMessage) -> None:
        self.passage = passage
        self.own = scaled(passage.vectors, head())
        self.tags = tagged(self.own, head())
        self.found = clauses_of(passage, self.tags)

    def judged(self, encoder: Encoder) -> list[Judged]:
        if not self.found:
            return []
        fitted = head()
        rows = clause_features(self.passage, self.own, self.found, encoder, fitted)
        alone = rows[:, ALONE]
        useful = chances(rows, {name: fitted[name] for name in NETS})
        lacking = chances(rows, {name: fitted[f"lacks_{name}"] for name in NETS})
        kinds = (alone @ fitted["kinds"] + fitted["kinds_bias"]).argmax(axis=1)
        back = 1 / (1 + np.exp(-(alone @ fitted["back"] + fitted["back_bias"])))
        judged = []
        columns = zip(self.found, useful, lacking, kinds, back, strict=True)
        for each, chance, lacks, kind, back_chance in columns:
            needs = bool(lacks >= LACKING)
            topic = topic_before(self.passage, self.tags, each.start) if needs else None
            judged.append(
                Judged(
                    each.start, each.end, each.sentence, float(chance), KINDS[kind], float(back_chance),
                    topic, lacks_topic=needs and topic is None,
                )
            )  # fmt: skip
        return judged


def chosen(judged: Sequence[Judged], least: float, *, beside: float = BESIDE) -> list[Judged]:
    """Return the most probable clauses that do not overlap, so that two facts joined by "and" stay two.

    Once a sentence has a clause with the probability ``least``, ``least - beside`` is enough for its others.
    """
    sure = {each.sentence for each in judged if each.chance >= least}
    least -= beside
    likely = sorted(
        (each for each in judged if each.chance >= least and each.sentence in sure), key=lambda each: each.end
    )
    best: list[tuple[float, list[Judged]]] = [(0.0, [])]
    for number, each in enumerate(likely):
        before = max(at for at in range(number + 1) if at == 0 or likely[at - 1].end <= each.start)
        value, clauses = best[before]
        gain = value + each.chance - least + 0.1
        best.append(max(best[-1], (gain, [*clauses, each]), key=lambda pair: pair[0]))
    return best[-1][1]


def head() -> dict[str, Vectors]:
    return weights(Path(__file__).with_name("head.npz"))


LEAST_REPLY = 0.6
LONGEST = 120  # maximum characters of a question and of a reply
_ASKS_FOR_REPLY = ("?", "\uff1f", "\u061f")


def question_of(before: str) -> str:
    """Return the question at the end of the assistant's message, or "" if the message does not end with one."""
    sentence_spans = list(sentences(before))
    if not sentence_spans:
        return ""
    start, end, quotes = sentence_spans[-1]
    question = before[start:end].strip()
    is_last = not before[end:].strip() and not quotes
    return question if is_last and question.endswith(_ASKS_FOR_REPLY) and len(question) <= LONGEST else ""


def statement(question: str, answer: str) -> str:
    return f"{question} {answer}"


def reply_features(question: str, answer: str, encoder: Encoder, fitted: dict[str, Vectors]) -> Vectors:
    """Return the feature vector of a question with its reply: the mean states of each, and the reply's outer states."""
    passage = read(statement(question, answer), encoder)
    own = scaled(passage.vectors, fitted)
    question_tokens = sum(a < len(question) for a, _b in passage.places)
    reply_states = own[question_tokens:] if question_tokens < len(own) else own[-1:]
    row: Vectors = np.concatenate(
        [own[:question_tokens].mean(axis=0), reply_states.mean(axis=0), reply_states[0], reply_states[-1]]
    )
    return row


LEAST = 0.53  # minimum probability of a clause that becomes a candidate; docs/figures.md compares thresholds
MORE_IN_SHORT = 0.1  # added to the threshold in short messages, which give little context
SHORT = 30  # maximum characters of a short message
FAINT = 0.08  # how much the threshold is lowered for a clause that may replace a memory
LEAST_FAINT = 0.2  # minimum probability of such a clause if its sentence also takes something back
TAKEN_BACK = 0.5
AT_ONCE = 32  # messages encoded together, about 10 MB of states
IMPORTANCE = {"fact": 0.6, "preference": 0.6, "instruction": 0.8, "decision": 0.75, "event": 0.7}
_BLANKS = re.compile(r"\s+")
_VALUE = re.compile(r"\d+(?:[:.,]\d+)*")


def extract_with_rules(
    messages: Sequence[tuple[str, str]],
    encoder: Encoder | None,
    *,
    before: Sequence[tuple[str, str]] = (),
    least: float = LEAST,
    faint: bool = False,
) -> list[Candidate]:
    """Return up to eight candidates from the user's messages among the (role, text) ``messages``, in order.

    If there are none and the last message of ``before`` ends with a question of the assistant, a short reply is
    returned together with it. ``least``: the minimum probability. ``faint`` adds up to eight less probable candidates,
    which have "faint" in their details and are stored only if they replace a memory.

    Returns none without an encoder. Raises EmbedderError if the encoder fails.
    """
    texts = [text for role, text in messages if role == "user"]
    candidates = [each for of_message in _from_messages(texts, encoder, least) for each in of_message]
    sure = keep_best([each for each in candidates if not each.details.get("faint")])
    if not sure and encoder is not None and before and before[-1][0] == "assistant" and texts:
        sure = _from_reply(before[-1][1], texts[0], encoder)
    return sure + keep_best([each for each in candidates if each.details.get("faint")]) if faint else sure


def extract_from_each(texts: Sequence[str], encoder: Encoder | None) -> list[list[Candidate]]:
    """Return up to eight candidates for each of several unrelated messages. Calls the encoder twice per 32 messages."""
    parts = (texts[at : at + AT_ONCE] for at in range(0, len(texts), AT_ONCE))
    lists = (candidates for part in parts for candidates in _from_messages(part, encoder, LEAST))
    return [keep_best([each for each in candidates if not each.details.get("faint")]) for candidates in lists]


def _from_reply(before: str, answer: str, encoder: Encoder) -> list[Candidate]:
    """Return the reply with its question as a candidate, if together they state something worth remembering."""
    question, answer = question_of(before), _BLANKS.sub(" ", answer).strip()
    if not question or not answer or len(answer) > LONGEST:
        return []
    fitted = head()
    row = reply_features(question, answer, encoder, fitted)
    [chance] = chances(row[None], {name: fitted[f"reply_{name}"] for name in NETS}).tolist()
    text = statement(question, answer)
    if chance < LEAST_REPLY or len(text.split()) > MAX_WORDS:
        return []
    details = {"rule": "reply", "chance": round(chance, 2)}
    return [Candidate(text, "fact", IMPORTANCE["fact"], details)]


def _from_messages(texts: Sequence[str], encoder: Encoder | None, least: float) -> list[list[Candidate]]:
    """Return the candidates of each message. Encodes all clauses together, then all sentences that may correct one."""
    if encoder is None:
        return [[] for _ in texts]
    texts = [unicodedata.normalize("NFC", own_part(text)) for text in texts]
    read = ReadOnce(encoder)
    judged = [_Message(text, clauses, least) for text, clauses in zip(texts, judge(texts, read), strict=True)]
    read.states([sentence for each in judged for sentence in each.later_sentences()])
    return [each.candidates(read) for each in judged]


class _Message:
    """A message with the clauses that probably become memories, and less probable ones."""

    def __init__(self, text: str, judged: list[Judged], least: float) -> None:
        sentences = {each.sentence for each in judged}
        findings = find_sensitive([text[slice(*span)] for span in sentences])  # a clause might hide it
        secret = {span for span, each in zip(sentences, findings, strict=True) if each}
        judged = [each for each in judged if each.sentence not in secret]
        self.text, self.judged = text, judged
        least += MORE_IN_SHORT if len(text.strip()) <= SHORT else 0
        useful = [each for each in _without_taking_back(judged) if not each.lacks_topic]
        self.kept = chosen(useful, least)
        sure = {each.sentence for each in self.kept}
        backs = {each.sentence for each in judged if each.takes_back >= TAKEN_BACK}
        faintly = [each for each in useful if each.chance >= least - FAINT or each.sentence in backs]
        self.unsure = [each for each in chosen(faintly, LEAST_FAINT, beside=0) if each.sentence not in sure]

    def later_sentences(self) -> list[str]:
        """Return the sentences that may correct an earlier one."""
        likely = sorted({each.sentence for each in (*self.kept, *self.unsure)})
        return [self.text[start:end] for start, end in likely[1:]]

    def candidates(self, encoder: Encoder) -> list[Candidate]:
        clauses, faint = _corrected(self.text, self.kept, self.unsure, encoder)
        clauses = _not_taken_back(clauses, self.judged)
        results = [_candidate(self.text, each) for each in clauses]
        results += [_candidate(self.text, each, faint=True) for each in faint]
        return [candidate for candidate in results if candidate]


def _without_taking_back(judged: list[Judged]) -> list[Judged]:
    """Drop the retraction of a sentence with other clauses: of "Scratch that, deploy on Friday" the second stays."""
    backs = [each for each in judged if each.takes_back >= TAKEN_BACK and each.start == each.sentence[0]]
    holding = [each for each in judged if any(_holds(each, back) for back in backs)]
    rest = [each for each in judged if each not in holding]
    left = [each for each in holding if not any(other.sentence == each.sentence for other in rest)]
    for each in rest:
        both = [other.chance for other in holding if _holds(other, each)]
        left.append(replace(each, chance=max([each.chance, *both])))
    return left


def _holds(outer: Judged, inner: Judged) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _not_taken_back(clauses: list[Judged], judged: list[Judged]) -> list[Judged]:
    """Drop the clause right before a sentence that takes it back."""
    backs = [each.start for each in judged if each.takes_back >= TAKEN_BACK]
    before = {max((each.end for each in clauses if each.end <= at), default=-1) for at in backs}
    return [each for each in clauses if each.end not in before]


def _corrected(
    text: str, clauses: list[Judged], unsure: list[Judged], encoder: Encoder
) -> tuple[list[Judged], list[Judged]]:
    """Return the clauses to keep and the uncertain ones, without those that a later sentence replaces.

    An uncertain clause that replaces an earlier one becomes one to keep: "Deploy on Monday. Actually no, on Friday."
    """
    left: list[Judged] = []
    faint: list[Judged] = []
    for each in sorted([*clauses, *unsure], key=lambda each: each.start):
        earlier = [other for other in left if other.sentence != each.sentence]
        olds = [text[other.start : other.end] for other in earlier]
        at = find_replaced(olds, text[slice(*each.sentence)], encoder) if olds else None
        if at is not None:
            left.remove(earlier[at])
        (left if at is not None or each in clauses else faint).append(each)
    return left, faint


def _candidate(text: str, judged: Judged, *, faint: bool = False) -> Candidate | None:
    """Return a clause as a candidate, after the topic that it does not name, or None if it is too long or short."""
    fact_text = _BLANKS.sub(" ", text[judged.start : judged.end]).strip()
    if judged.topic is not None:
        topic = text[slice(*judged.topic)]
        colon = "\uff1a" if JOINED.match(topic[-1]) else ": "
        fact_text = f"{topic}{colon}{fact_text}"
    if len(fact_text.split()) > MAX_WORDS or len(fact_text) > MAX_TEXT or len(normalise(fact_text)) < 2:
        return None
    details = {"rule": "head", "chance": round(judged.chance, 2)} | ({"faint": True} if faint else {})
    return Candidate(fact_text[0].upper() + fact_text[1:], judged.kind, IMPORTANCE[judged.kind], details)
