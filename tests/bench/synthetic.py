"""Made-up memories in any number, for measuring growth: sentences of parts, and vectors that match them.

A vector is the sum of its parts' own vectors by the configured embedder with a little noise, so that questions embedded
by the same model find their sentences, and neighbours in meaning are neighbours in space, as with real text.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product

import numpy as np
from django.db import connection, transaction
from numpy.typing import NDArray

from memories.indexing import MEMORIES, SEARCH
from memories.judging.secret_filter import RULES
from memoryhub.llm.base import Embedder, Vectors
from workspaces.index.embedding import copy_vectors
from workspaces.index.hybrid_search import index_words


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.replace("\n", " ").split(",")]


NAMES = _parts("""
    Ada, Bruno, Chiara, Dmitri, Elena, Farid, Greta, Hugo, Ines, Jonas, Kavya, Lena, Marco, Nadia,
    Oscar, Priya, Quinn, Rosa, Sven, Tara, Umar, Vera, Wim, Xenia, Yusuf, Zoe, Anton, Bella, Carlos,
    Dora, Emil, Fatima, Georg, Hana, Igor, Julia, Karim, Linus, Mona, Nils, Olga, Pavel, Rita, Sami,
    Theo, Ursula, Viktor, Wanda, Yara, Zeno
""")
VERBS = _parts("""
    prefers, is allergic to, works on, moved because of, has ordered, wants to learn about,
    complained about, sold, is responsible for, repaired, was late because of, collects, decided
    against, recommends, is writing about, cancelled, booked, lost, photographed, is afraid of,
    planned, tested, inherited, studies, postponed, volunteers for, argued about, invested in,
    dreams of, cooked for the party with, approved, rejected, reviewed, documented
""")
ADJECTIVES = _parts("""
    red, wooden, quarterly, vegan, spare, noisy, antique, digital, leaking, Norwegian, cheap, solar,
    handmade, frozen, legal, electric, second, broken, weekly, tiny, medieval, organic, borrowed,
    encrypted, seasonal, rusty, purple, annual, foreign, portable, municipal, obsolete, fragile,
    double, silent
""")
NOUNS = _parts("""
    bicycle, invoice, server, garden, violin, passport, printer, kitchen, database, kayak, contract,
    camera, roof, budget, recipe, telescope, boat, keyboard, lease, greenhouse, website, engine,
    novel, tent, bakery, museum, insurance, heater, podcast, vaccine, staircase, playlist, tractor,
    aquarium, sculpture, warehouse, newsletter, microscope, orchard, piano, helmet, firewall,
    calendar, scholarship, bridge, lantern, carpet, drone, parrot, blender, glacier, census,
    orchestra, compass, monastery, spreadsheet, harvest, tunnel, quilt, ferry
""")
TIMES = _parts("""
    since the move to Lisbon, for the meeting on Monday, because the old one failed, with the
    neighbours, last spring, for grandmother's birthday, before the audit, after the storm, at the
    office in Graz, on the way to Oslo, as the doctor advised, during the holidays, together with
    the new team, without telling anyone, twice a year, until the end of the project, in the house
    by the lake, for the school, despite the price, as a hobby
""")
QUESTIONS = ("What does {name} think about the {thing}?", "Who {verb} the {thing} {time}?", "{thing} {time}")
NOISE = 0.35  # length of the noise beside parts of length 1


@dataclass(frozen=True)
class Parts:
    """The vectors of every part, one row each."""

    names: Vectors
    verbs: Vectors
    things: Vectors
    times: Vectors


THINGS = tuple(f"{adjective} {noun}" for adjective, noun in product(ADJECTIVES, NOUNS))


def embed_parts(embedder: Embedder) -> Parts:
    """Embed about 2,200 short texts, in a few seconds."""
    return Parts(
        *(
            np.concatenate([embedder.embed(list(texts[at : at + 64])) for at in range(0, len(texts), 64)])
            for texts in (NAMES, VERBS, THINGS, TIMES)
        )
    )


def choose(count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Choose a name, verb, thing and time for each sentence; things are distributed as words are (Zipf)."""
    zipf = 1 / np.arange(1, len(THINGS) + 1) ** 0.7
    things = random.choice(len(THINGS), size=count, p=zipf / zipf.sum())
    others = [random.integers(0, len(texts), size=count) for texts in (NAMES, VERBS, TIMES)]
    return np.stack([others[0], others[1], things, others[2]], axis=1)


def sentence(chosen: NDArray[np.int64]) -> str:
    name, verb, thing, time = chosen
    return f"{NAMES[name]} {VERBS[verb]} the {THINGS[thing]} {TIMES[time]}."


def question(chosen: NDArray[np.int64], number: int) -> str:
    name, verb, thing, time = chosen
    return QUESTIONS[number % len(QUESTIONS)].format(
        name=NAMES[name], verb=VERBS[verb], thing=THINGS[thing], time=TIMES[time]
    )


def vectors(chosen: NDArray[np.int64], parts: Parts, random: np.random.Generator) -> Vectors:
    total = (
        0.6 * parts.names[chosen[:, 0]]
        + 0.6 * parts.verbs[chosen[:, 1]]
        + parts.things[chosen[:, 2]]
        + 0.5 * parts.times[chosen[:, 3]]
    )
    dimension = total.shape[1]
    total = total + random.standard_normal(total.shape, dtype=np.float32) * np.float32(NOISE / dimension**0.5)
    made: Vectors = (total / np.linalg.norm(total, axis=1, keepdims=True)).astype(np.float32)
    return made


def long_tail(memories: int, workspaces: int, fixed: list[int]) -> list[int]:
    """Return sizes of workspaces that sum up to ``memories``: the fixed ones first, the others a long tail (Zipf)."""
    rest = max(0, memories - sum(fixed))
    others = max(1, workspaces - len(fixed))
    weights = 1 / np.arange(10, others + 10) ** 0.8
    sizes = np.maximum(1, np.floor(rest * weights / weights.sum())).astype(int)
    sizes[0] += max(0, rest - int(sizes.sum()))
    return [*fixed, *sizes.tolist()]


def fill(
    places: NDArray[np.int64],
    author_id: int,
    model: str,
    parts: Parts,
    now: datetime,
    random: np.random.Generator,
    batch: int = 20_000,
) -> Iterator[int]:
    """Store one memory for each entry of ``places`` (workspaces' keys), in this order; yield how many there are.

    Bypasses the write rules for speed; words are indexed by the same SQL as in the product.
    """
    for start in range(0, len(places), batch):
        part = places[start : start + batch]
        chosen = choose(len(part), random)
        with transaction.atomic():
            ids = _store_texts(part, chosen, author_id, now, random)
            copy_vectors(1, ids.tolist(), part.tolist(), model, vectors(chosen, parts, random))
            index_words(MEMORIES, ids.tolist())
        yield start + len(part)


_STAGE = (
    "CREATE TEMP TABLE stage (place bigint, content text, at timestamptz, importance float8) ON COMMIT DROP"
)
_FROM_STAGE = f"""
WITH made AS (
    INSERT INTO memories_memory (public_id, workspace_id, scope, content, tags, importance, pinned, author_id,
        source_type, source_chat_id, source_message_id, source_excerpt, source_details, content_hash, search,
        review, secret_rules, created_at, updated_at)
    SELECT 'mem_' || substr(md5(content || gen_random_uuid()), 1, 24), workspace_id, 'workspace', content, tags,
        importance, false, %s, 'import', '', '', '', '{{}}', md5(content), {SEARCH}, '', {RULES}, at, at
    FROM (SELECT content, at, importance, place AS workspace_id, null::bigint AS owner_id, null::bigint AS agent_id,
                 null::text AS key, null::text AS summary, null::text AS category, ARRAY[]::varchar[] AS tags
          FROM stage) staged
    RETURNING id)
SELECT array_agg(id ORDER BY id) FROM made
"""


def _store_texts(
    places: NDArray[np.int64],
    chosen: NDArray[np.int64],
    author_id: int,
    now: datetime,
    random: np.random.Generator,
) -> NDArray[np.int64]:
    """Store the texts with dates within about two years. Return their keys, in order."""
    ages, importances = random.exponential(120, len(places)), random.random(len(places))
    with connection.cursor() as cursor:
        cursor.execute(_STAGE)
        with cursor.copy("COPY stage FROM STDIN") as copy:
            for place, parts, age, importance in zip(places, chosen, ages, importances, strict=True):
                at = now - timedelta(days=min(730.0, float(age)))
                copy.write_row((int(place), sentence(parts), at, float(importance)))
        cursor.execute(_FROM_STAGE, [author_id])
        return np.array(cursor.fetchone()[0], dtype=np.int64)
