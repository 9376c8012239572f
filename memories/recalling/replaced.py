"""Of two linked statements, one of which may replace the other, the newer is never missing where the older is used."""

from __future__ import annotations

from dataclasses import replace

from memories.recalling.ranked_search import Recalled
from memories.recalling.recall import Recall


def with_newer(found: Recall) -> Recall:
    """What was found, each older statement behind the newer one that is linked to it, which ranks as high as it does.

    It lies in the same place, so whoever may see the one may see the other. One query where there is a link, else none.
    """
    keys = {item.memory.newer: item.memory.pk for item in found.items if item.memory.newer}  # type: ignore[attr-defined]
    if not keys or found.search is None:
        return found
    newer = {keys[each.memory.pk]: each.memory for each in found.search.load([(pk, {}) for pk in keys])}
    there = {item.memory.pk: item for item in found.items}
    items: dict[int, Recalled] = {}
    for item in found.items:
        memory = newer.get(item.memory.pk)
        if memory is not None and memory.pk not in items and memory.place == item.memory.place:
            own = there.get(memory.pk, replace(item, memory=memory))
            known = [each for each in (own.relevance, item.relevance) if each is not None]
            items[memory.pk] = replace(
                own, score=max(own.score, item.score), relevance=max(known, default=None)
            )
        items.setdefault(item.memory.pk, item)
    return replace(found, items=list(items.values()))
