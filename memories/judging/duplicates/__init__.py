"""Tests of whether two similar statements mean the same, so that they may be stored as one.

Cosine similarity does not show this: "the launch is on March 15" and "the launch is on March 16" are more similar than
most rewordings. When in doubt `may_merge` returns False, so that both statements stay.
"""

import json
import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import combinations, pairwise, product
from pathlib import Path

from memories.judging.duplicates import alignment
from memories.judging.encoder_interface import Encoder, logits

# Embeddings of "Anna admires Ben's work" and "Ben admires Anna's work" are almost equal. These rules compare the order
# in which the people are named, reversed if one statement is passive. Their words are in roles.json.

# Maximum number of words that only one text has, at which a change of voice or person is a change of roles.
_FEW = 3
_SHORT = 3  # letters; two words up to this length may be forms of one word if one letter is equal
_REPLACED = 2  # maximum number of words that only one text has, if two others have changed places
# Words of a statement in which exchanged parties are searched, because the search is quadratic.
_MOST_WORDS = 60
_KOREAN_PARTICLES = (
    (re.compile(r"(?<=[가-힣])(?:은|는)(?![가-힣])"), "는"),
    (re.compile(r"(?<=[가-힣])(?:이|가)(?![가-힣])"), "가"),
)


def with_parties_in_order(a: str, b: str) -> str:
    """Return `a` with its two parties in the order of `b`, if the order does not matter: "X and Y", "X met Y"."""
    if max(len(a), len(b)) > 400:
        return a
    plain_a, plain_b = _plain(a), _plain(b)
    if any(sides == other[::-1] for sides in _sides(plain_a) for other in _sides(plain_b)):
        return b
    links = _patterns()["symmetric"]
    for link, other in product(links.finditer(plain_a), links.finditer(plain_b)):
        left, right = plain_a[: link.start()], plain_a[link.end() :]
        other_left, other_right = plain_b[: other.start()], plain_b[other.end() :]
        for start in range(_shared(left, other_left) + 1):
            first, second = left[start:], other_left[start:]
            if not first or not second or first == second or not _begins_word(left, start):
                continue
            if _starts_with(right, second) and _starts_with(other_right, first):
                return left[:start] + second + other[0] + first + right[len(second) :]
    return a


def _sides(text: str) -> Iterator[list[str]]:
    """Yield, for each "is" in the text, a list of the normalized texts before and after it."""
    for link in _patterns()["is"].finditer(text):
        yield [side.strip(" .!\u3002").casefold() for side in (text[: link.start()], text[link.end() :])]


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFC", text)
    for pattern, particle in _KOREAN_PARTICLES:
        text = pattern.sub(particle, text)
    return text


def _begins_word(text: str, at: int) -> bool:
    return at == 0 or _is_unspaced(text[at]) or not (text[at - 1].isalnum() and text[at].isalnum())


def _starts_with(text: str, start: str) -> bool:
    if not text.startswith(start):
        return False
    after = text[len(start) : len(start) + 1]
    return not (after.isalnum() or after in ("'", "\u2019")) or _is_joined(after)


def _is_unspaced(sign: str) -> bool:
    """Return whether the character is Han or kana, which are written without spaces."""
    return "\u3040" <= sign <= "\u9fff"


def states_differ(a: str, b: str) -> bool:
    """Return whether only one text says that something is over, or one has "left" and the other "right", or so."""
    a, b = _folded(a), _folded(b)
    patterns = _patterns()
    if bool(patterns["over"].search(a)) != bool(patterns["over"].search(b)):
        return True
    for one, other in (("left", "right"), ("before", "after")):
        in_a = [bool(patterns[side].search(a)) for side in (one, other)]
        in_b = [bool(patterns[side].search(b)) for side in (one, other)]
        if sorted((in_a, in_b)) == [[False, True], [True, False]]:
            return True
    return False


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).replace("\u2019", "'").replace("İ", "i").casefold()


def roles_differ(a: alignment.Words, b: alignment.Words) -> bool:
    """Return whether the texts differ in who acts and who is acted upon: "my boss trusts me" and "I trust my boss"."""
    if _parties_exchanged(a, b):
        return True
    left, right, forms = set(a.words), set(b.words), _forms()
    acting, acted, by = (
        bool(forms[role] & left) != bool(forms[role] & right) for role in ("acting", "acted_upon", "by")
    )
    persons = forms["acting"] | forms["acted_upon"]
    others = _without_kin(left - right, right - left)
    is_turned = alignment.count_turned(a.words, b.words) > 0 and not alignment.is_moved(a.words, b.words)
    if not others - persons:
        return (is_turned and not _is_fronted(a.words, b.words)) or acting or bool(others)
    return len(others - persons - forms["by"]) <= _FEW and (acted or (by and not is_turned))


def _is_fronted(a: list[str], b: list[str]) -> bool:
    """Return whether exchanging two adjacent parts of `a` gives `b`. At least one part must have several words."""
    if len(a) != len(b) or len(a) < 3:
        return False
    start = next((at for at, (x, y) in enumerate(zip(a, b, strict=True)) if x != y), len(a))
    end = next((at for at, (x, y) in enumerate(zip(a[::-1], b[::-1], strict=True)) if x != y), 0)
    inner_a, inner_b = a[start : len(a) - end], b[start : len(b) - end]
    cuts = [at for at in range(1, len(inner_a)) if inner_a[at:] + inner_a[:at] == inner_b]
    return len(inner_a) > 2 and bool(cuts)


def without_speaker(words: list[str]) -> list[str]:
    """Return the words without pronouns for "I", which languages such as Spanish, Russian and Arabic may omit."""
    return [word for word in words if word not in _forms()["self"]]


def _parties_exchanged(a: alignment.Words, b: alignment.Words) -> bool:
    """Return whether two words or names have exchanged their places.

    False if only one text is in the passive and other words differ too, which explains the exchange.
    """
    if max(len(a.words), len(b.words)) > _MOST_WORDS:
        return False
    matched = _matched(a.words, b.words)
    by = _forms()["by"]
    matched_a, matched_b = {x for x, _ in matched}, {y for _, y in matched}
    left = [word for at, word in enumerate(a.words) if word not in b.words and at not in matched_a]
    left += [word for at, word in enumerate(b.words) if word not in a.words and at not in matched_b]
    voiced = sum(word in by for word in a.words) != sum(word in by for word in b.words)
    if voiced and any(word not in by for word in left):
        return False
    if not left and _parts_exchanged([at for _, at in matched]):
        return True
    names = _names(a) | _names(b)
    for one, other in combinations(matched, 2):
        if one[1] < other[1] or (a.words[one[0]] == b.words[one[1]]) != (
            a.words[other[0]] == b.words[other[1]]
        ):
            continue  # in order, or one word has another form, perhaps the grammatical case that shows who acts
        if all(
            {a.words[x], b.words[y]} & names and a.words[x] in a.capitals and b.words[y] in b.capitals
            for x, y in (one, other)
        ):
            return True
        apart = other[0] - one[0] > 1 and one[1] - other[1] > 1
        changed = a.words[one[0]] != b.words[one[1]]
        if (
            len(left) <= _REPLACED
            and (apart or changed or _is_caseless(a.words[one[0]]))
            and _restores(matched, one, other)
        ):
            return True
    return False


def _is_caseless(word: str) -> bool:
    """Return whether the word's script has no capitals, so that names cannot be recognized by them ("Amit Neha ko")."""
    return not word.isdecimal() and word.upper() == word.lower()


def _parts_exchanged(order: list[int]) -> bool:
    """Return whether the parts before and after a middle part have exchanged their places. One must have several words.

    ``order``: for each word of one text that the other text has too, its index in the other text.
    """
    ranks = sorted(order)
    moved = [(at, ranks.index(place)) for at, place in enumerate(order) if ranks[at] != place]
    if not moved:
        return False
    inner = [ranks.index(place) for place in order[moved[0][0] : moved[-1][0] + 1]]
    cuts = [0, *(at for at, (x, y) in enumerate(pairwise(inner), start=1) if y != x + 1), len(inner)]
    sizes = [end - start for start, end in pairwise(cuts)]
    return len(sizes) == 3 and inner[0] > inner[cuts[1]] > inner[-1] and max(sizes[0], sizes[2]) > 1


def _restores(matched: list[tuple[int, int]], one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return whether exchanging two matched pairs gives all matched words the same order in both texts."""
    back = {one: other[1], other: one[1]}
    order = [back.get(pair, pair[1]) for pair in matched]
    return order == sorted(order)


def _names(words: alignment.Words) -> set[str]:
    """Return the capitalized words that are not pronouns, months, days of the week or German nouns after an article."""
    forms = _forms()
    after = {word for before, word in pairwise(words.words) if before in forms["determiners"]}
    common = forms["acting"] | forms["acted_upon"] | forms["determiners"] | after
    names = words.capitals.intersection(words.names) - common
    return {word for word in names if not alignment.is_date(word)}


def _matched(a: list[str], b: list[str]) -> list[tuple[int, int]]:
    """Return pairs (index in `a`, index in `b`) of words that occur once in each text or seem forms of one word."""
    pairs = [(at, b.index(word)) for at, word in enumerate(a) if a.count(word) == b.count(word) == 1]
    free_b = [at for at, word in enumerate(b) if word not in a]
    for at, word in enumerate(a):
        if word in b:
            continue
        kin = [other for other in free_b if _are_kin(word, b[other])]
        if len(kin) == 1:
            pairs.append((at, kin[0]))
            free_b.remove(kin[0])
    return sorted(pairs)


def _are_kin(x: str, y: str) -> bool:
    """Return whether two words may be forms of one word ("admires" and "admired"), judging by their common prefix."""
    same = _shared(x, y)
    if max(len(x), len(y)) <= _SHORT:
        return same > 0
    return same >= 2 and 2 * same >= max(len(x), len(y))


def _shared(x: str, y: str) -> int:
    """Return the length of the common prefix of two texts."""
    pairs = enumerate(zip(x, y, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(x), len(y)))


def _without_kin(left: set[str], right: set[str]) -> set[str]:
    """Return the words of both sets without pairs that seem to be forms of one word, such as "looks" and "look"."""
    kin = {(x, y) for x in left for y in right if x[:4] == y[:4] and min(len(x), len(y)) >= 4}
    return (left | right) - {word for pair in kin for word in pair}


@cache
def _data() -> dict[str, str]:
    stored: dict[str, str] = json.loads(Path(__file__).with_name("roles.json").read_text(encoding="utf-8"))
    return stored


@cache
def _forms() -> dict[str, frozenset[str]]:
    """Return words in many languages, by role: person acting, person acted upon, "I", "by", determiners."""
    roles = ("acting", "acted_upon", "self", "by", "determiners")
    return {role: frozenset(_data()[role].split()) for role in roles}


def determiners() -> frozenset[str]:
    """Return the German articles and possessives, after which every noun is capitalized."""
    return _forms()["determiners"]


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """Return a regular expression for each list of phrases. In scripts with spaces it matches only whole words."""
    patterns = {}
    for name in ("over", "left", "right", "before", "after"):
        spaced = [phrase for phrase in _data()[name].split("|") if not _is_joined(phrase)]
        joined = [phrase for phrase in _data()[name].split("|") if _is_joined(phrase)]
        patterns[name] = re.compile("|".join([rf"(?<![^\W_])(?:{'|'.join(spaced)})(?![^\W_])", *joined]))
    spaced = [phrase for phrase in _data()["symmetric"].split("|") if not _is_joined(phrase)]
    patterns["symmetric"] = re.compile(rf" (?:{'|'.join(spaced)}) | و|[와과] |하고 |[和与跟與と]")
    patterns["is"] = re.compile(rf" (?:{_data()['is']}) |是")
    return patterns


def _is_joined(phrase: str) -> bool:
    return any(map(_is_unspaced, phrase)) or "가" <= phrase[0] <= "힣"


_BLANKS = re.compile(r"\s+")
_TRAILING = ".!;,:… \u3002"
_USER = re.compile(  # the subject that extraction adds in the language of the message, but a tool may leave out
    r"(?:(?:the )?user(?:['\u2019]s)?|(?:der|die) (?:be)?nutzer(?:in)?|el usuario|la usuaria|l['\u2019]utente"
    r"|l['\u2019]utilisat(?:eur|rice)|[oa] usuári[oa]|o utilizador|de gebruiker|пользователь(?:ница)?|المستخدم) "
    r"|(?:用户|使用者|ユーザー[はが]?)\s*|사용자[는가]? ",
    re.IGNORECASE,
)


def normalise(text: str) -> str:
    """Return the text as it is compared and hashed: NFKC, case-folded, without closing punctuation but "?"."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return _BLANKS.sub(" ", folded).strip().rstrip(_TRAILING)


def may_merge(a: str, b: str, encoder: Encoder | None, *, least: float = 0.0, likely: bool = False) -> bool:
    """Return whether `a` and `b`, which have similar vectors, mean the same and may be stored as one statement.

    They may not if they differ in a number, a date, a day, who acts on whom, or whether something is over. Otherwise a
    small network judges how their words align. Without an encoder, only texts with the same words merge.

    `least` is the minimum cosine of the two texts by this encoder. `likely` lowers the network's threshold, for
    suggestions that a person decides about. Encodes two texts. Raises EmbedderError if the encoder fails.
    """
    if bool(_USER.match(a)) != bool(_USER.match(b)):
        a, b = _USER.sub("", a, count=1), _USER.sub("", b, count=1)
    if normalise(a) == normalise(b):
        return True
    if encoder is None:
        return False
    a = with_parties_in_order(a, b)
    if normalise(a) == normalise(b):
        return True
    differ = states_differ(a, b) or alignment.values_differ(alignment.values_of(a), alignment.values_of(b))
    if differ or ("?" in a) != ("?" in b):
        return False
    read_a, read_b = map(alignment.words_of, encoder.states([a, b]))
    if not read_a.words or not read_b.words:
        return False
    if without_speaker(read_a.words) == without_speaker(read_b.words):
        return True
    if roles_differ(read_a, read_b):
        return False
    if alignment.same_words(read_a, read_b):
        return True
    if alignment.cosine(read_a.whole, read_b.whole) < least:
        return False
    fitted = alignment.head()
    measured = (alignment.measure(read_a, read_b) - fitted["mean"]) / fitted["scale"]
    return bool(logits(measured[None], fitted).mean() > (0.0 if likely else fitted["floor"]))
