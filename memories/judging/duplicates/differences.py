"""The rules that keep two near statements apart. Each looks at one thing that edits change and rewordings
keep.
"""

from collections import Counter
from difflib import SequenceMatcher

from memories.judging.duplicates import words
from memories.judging.duplicates.lists import word_list, word_set
from memories.judging.duplicates.reading import LIGHT, OPPOSITES, Reading
from memories.judging.duplicates.stems import same_family

# Prepositions that begin a phrase which may stand first or last without a change of meaning.
_MOVABLE = word_set("in on at since during for when while because if as with every within around")


def differs(a: Reading, b: Reading) -> bool:
    """True when the two statements say different things."""
    return (
        _numbers_differ(a, b)
        or a.times != b.times
        or a.codes != b.codes
        or _polarity_differs(a, b)
        or _subjects_differ(a, b)
        or _has_opposites(a, b)
        or _content_differs(a, b)
        or _order_differs(a, b)
    )


def _numbers_differ(a: Reading, b: Reading) -> bool:
    """Numbers, what they count and in which unit. A lone "one" is an article as often as a number."""
    numbers_a, numbers_b = a.numbers, b.numbers
    if any(":" in number for number in numbers_a) != any(":" in number for number in numbers_b):
        numbers_a, numbers_b = _hours(numbers_a), _hours(numbers_b)  # "at 9" and "at 9 am"
    ones_a, ones_b = numbers_a.count("1"), numbers_b.count("1")
    if Counter(n for n in numbers_a if n != "1") != Counter(n for n in numbers_b if n != "1"):
        return True
    if ones_a != ones_b and ones_a and ones_b:
        return True
    if a.units and b.units and a.units != b.units:
        return True
    for number in set(a.counted) & set(b.counted):
        only_a, only_b = a.counted[number] - b.counted[number], b.counted[number] - a.counted[number]
        swapped = any(only_a & counted for other, counted in b.counted.items() if other != number)
        if only_a and only_b and swapped:
            return True
    return False


def _hours(found: list[str]) -> list[str]:
    """Full hours on the clock as plain numbers of twelve."""
    return [str((int(n[:2]) - 1) % 12 + 1) if n.endswith(":00") else n for n in found]


# "All my kids" and "my kids", "I usually work" and "I work": the same for a memory.
_SOFT_QUANTITIES = word_set("all both many frequently")


def _polarity_differs(a: Reading, b: Reading) -> bool:
    """Negations, words that turn a statement over, how many and how often."""
    if (a.negations > 0) != (b.negations > 0):
        return True
    if bool(a.turning - set(b.content)) != bool(b.turning - set(a.content)):
        return True
    if (a.quantities ^ b.quantities) - _SOFT_QUANTITIES:
        return True
    then_a, then_b = a.was and not a.now, b.was and not b.now
    return (then_a and b.now and not b.was) or (then_b and a.now and not a.was)


def _subjects_differ(a: Reading, b: Reading) -> bool:
    """Names, and the persons that pronouns stand for."""
    words_a, words_b = set(a.content), set(b.content)
    if a.names - words_b or b.names - words_a:
        return True
    return bool(a.persons - b.persons) and bool(b.persons - a.persons)


def _has_opposites(a: Reading, b: Reading) -> bool:
    """A word of one statement alone whose opposite, or whose negated form, stands in the other alone."""
    only_a = set(a.frame) - set(b.frame)
    only_b = set(b.frame) - set(a.frame)
    return any(OPPOSITES.get(word, frozenset()) & only_b for word in only_a) or (
        _negated(only_a, only_b) or _negated(only_b, only_a)
    )


_NEGATING = word_list("un in im il ir dis non non- de mis anti anti- counter")


def _negated(plain: set[str], other: set[str]) -> bool:
    """True when a word of `plain` stands in `other` with a negating prefix, or with -less for -ful."""
    return any(
        (len(word) >= 4 and any(prefix + word in other for prefix in _NEGATING))
        or (word.endswith("ful") and word.removesuffix("ful") + "less" in other)
        for word in plain
    )


def _content_differs(a: Reading, b: Reading) -> bool:
    """One replaced slot of one or two words is an edit; several, with near vectors, are a rewording."""
    left, right = _unmatched(a.content, b.content), _unmatched(b.content, a.content)
    left, right = _without_family(left, right)
    heavy_left = [word for word in left if word not in LIGHT]
    heavy_right = [word for word in right if word not in LIGHT]
    if not heavy_left and not heavy_right:
        return False
    if not heavy_left or not heavy_right:
        return True  # something is said in one of them only
    if _slots(a.content, b.content, set(heavy_left), set(heavy_right)) <= 1:
        return True
    return _frame(a, set(left)) == _frame(b, set(right))  # several values in the same sentence


def _unmatched(content: list[str], other: list[str]) -> list[str]:
    known = set(other)
    return [word for word in content if word not in known]


def _without_family(left: list[str], right: list[str]) -> tuple[list[str], list[str]]:
    """Take out words that have one of their family on the other side: allergy and allergic."""
    return [x for x in left if not _kin(x, right)], [y for y in right if not _kin(y, left)]


def _kin(word: str, others: list[str]) -> bool:
    return any(same_family(word, other) for other in others if other[:4] == word[:4])


def _slots(a: list[str], b: list[str], only_a: set[str], only_b: set[str]) -> int:
    """How many separate places hold words that the other statement does not have."""
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    slots = 0
    for tag, a_from, a_to, b_from, b_to in matcher.get_opcodes():
        if tag != "equal" and (set(a[a_from:a_to]) & only_a or set(b[b_from:b_to]) & only_b):
            slots += 1
    return slots


def _order_differs(a: Reading, b: Reading) -> bool:
    """The same words in other places: who does what to whom, from where to where, rather what than what."""
    for preposition in set(a.objects) & set(b.objects):
        object_a, object_b = a.objects[preposition], b.objects[preposition]
        if object_a == object_b or object_a not in b.sequence or object_b not in a.sequence:
            continue
        if not (_joined(a, object_a, object_b) and _joined(b, object_a, object_b)):
            return True
    common = set(a.sequence) & set(b.sequence)
    order_a, order_b = _ordered(a, common), _ordered(b, common)
    if order_a == order_b:
        return a.passive != b.passive and len(order_a) > 1 and _acts(a) and _acts(b)
    if Counter(order_a) != Counter(order_b):
        return False
    if a.passive != b.passive:
        return False
    if _moved_phrase(a, b) or _moved_phrase(b, a) or _turned_around(a, b):
        return False
    moved = {x for x, y in zip(order_a, order_b, strict=True) if x != y}
    return _frame(a, moved) == _frame(b, moved) or _actors_swapped(a, b, order_a, order_b)


def _ordered(reading: Reading, common: set[str]) -> list[str]:
    """The common words in the order of the text, those joined by "and" or "or" in alphabetical order."""
    lists: list[list[str]] = []
    for place, word in enumerate(reading.sequence):
        if place in reading.together:
            lists[-1].append(word)
        else:
            lists.append([word])
    return [word for words_together in lists for word in sorted(words_together) if word in common]


def _joined(reading: Reading, x: str, y: str) -> bool:
    """True when "x and y" stands in the text."""
    places = [reading.sequence.index(x), reading.sequence.index(y)]
    return max(places) - min(places) == 1 and max(places) in reading.together


def _acts(reading: Reading) -> bool:
    return len(reading.sequence) >= 3


_BE = word_set("is are am was were")
_AUXILIARY = word_set("a an the is are am was were be been do does did has have had")


def _frame(reading: Reading, moved: set[str]) -> list[str]:
    """The words around those that moved; the same frame means that they have changed places."""
    return ["_" if word in moved else word for word in reading.frame if word not in _AUXILIARY]


def _moved_phrase(a: Reading, b: Reading) -> bool:
    """True when b is a with its last phrase, begun by a preposition of place or time, put first."""
    starts = (at for at in range(1, len(a.frame)) if a.frame[at] in _MOVABLE)
    return any(a.frame[at:] + a.frame[:at] == b.frame for at in starts)


def _turned_around(a: Reading, b: Reading) -> bool:
    """True for "Tom is my brother" and "my brother is Tom"."""
    pivots = (at for at, word in enumerate(a.frame) if word in _BE)
    return any([*a.frame[at + 1 :], a.frame[at], *a.frame[:at]] == b.frame for at in pivots)


def _actors_swapped(a: Reading, b: Reading, order_a: list[str], order_b: list[str]) -> bool:
    """True when two names or persons stand in another order."""
    actors = (a.names | b.names | a.persons | b.persons | words.ROLES) & set(order_a)
    return [word for word in order_a if word in actors] != [word for word in order_b if word in actors]
