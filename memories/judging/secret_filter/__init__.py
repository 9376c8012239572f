"""The filter that finds credentials, which are never stored, and personal numbers, stored only with consent.

It takes linear time. Every quantifier of its expressions is bounded, or can start only where the previous attempt
ended. Judging candidates may read at most as many characters as the text has. A finding has a kind and a position, and
never contains the credential or number.

In this package, a folded text is the result of `terms.fold`.
"""

import base64
import binascii
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

from memories.judging.secret_filter import personal_numbers, terms, values
from memories.judging.secret_filter.layouts import find_command_secret, find_placed, find_seed_words
from memories.judging.secret_filter.shapes import find_shape
from memories.judging.secret_filter.terms import Finding, fold, original_span, same_length

# Values that the words before them call a secret: "password = …", "API key: …", "Authorization: Bearer …". After "=",
# as in code, nearly any value counts. After ":", as in "reset password: done", a plain word counts only if it ends the
# statement. After "is", as in speech, the value must not look like a word.

_QUOTE = r"(?:\\{0,3}[\"'`]{1,3}|%22|&quot;|&#39;)"
_ABOUT = (
    rf"(?:(?P<about> (?:{terms.OF})(?: [\w'./@-]{{1,24}}+){{1,4}}?)"
    r"| \((?!str|bool|int|text|optional|required|default)[^()\n]{1,32}\)"
    r"|(?(password)(?P<noun> (?!manager)[\w'.-]{2,16}+(?: [\w'.-]{2,16}+)??)"
    rf"(?=:| (?:{terms.EQUALS})[ :])|(?!)))?"
)
_MARKUP = r"</?[a-z][a-z0-9]{0,9}(?: [^<>\n]{0,60})?/?>"
# password: str = …, password: &'static str = …, password string = …
_TYPE = (
    r":\s?&?(?:'[a-z_]{1,12} )?[a-z][a-z0-9\[\]<>|.?]{0,24}\s?="
    r"|(?<=[a-z0-9_]) (?:string|str|text|\[\]byte|\[\]rune|any)\s?="
)
# A literal wrapped in a type: String::from("…"), []byte("…"), @"…", b'…', or f'…' without placeholders.
_WRAPPED = (
    r"(?:(?:(?:secret)?string::(?:from|new)|secret::new|\[\](?:byte|rune)|bytes|str|string)\(|@|[bru]{1,2}"
    r"|r?f(?=.[^\"'{\n]{3,80}[\"']))(?=[\"'])"
)
_ADVERB = r"(?: (?:set to|changed to|now|still|currently|called|simply|just|literally)){0,2}"
_SIGN = (
    rf"(?P<equals>\s{{0,3}}+(?:={{1,3}}>?|:=|\?=|%3d|{_TYPE})(?!=)\s{{0,10}}+(?:{_WRAPPED})?)"
    r"|(?P<tag>(?<![\"'=-])>(?![=<])|\"\s{1,3}(?:value|content)\s?=\s?"
    r"|(?:,\s{0,12}+|[ \t]{0,3}+\n[ \t]{0,24}+)[\"']?value[\"']?\s?:\s{0,3})"
    rf"|(?P<cell>(?:{_MARKUP}){{1,3}}\s{{0,3}}<(?:td|dd|span)(?: [^<>\n]{{0,60}})?>\s{{0,10}})"
    r"|(?P<colon>\s{0,3}+(?::{1,2}|\||%3a)\s{0,20}+(?:[|>]-?\s{1,20})?)"
    r"|(?P<dash>\s{1,3}+(?:-{1,2}>?|[\u2192\u21d2\u279c\u27f6])\s{1,3}+)"
    r"|(?P<call>(?<=[\"']), ?|\()(?=[\"'])"
    r"|(?P<verb>,?\s{1,3}+(?:is|was|are|will be|equals?|(?:set |changed |reset |updated )?to|as|has been)"
    rf"{_ADVERB}:?\s{{1,10}}+)"
    rf"|(?P<foreign>(?:,? {{1,3}}+(?:{terms.EQUALS}) ?:?\s{{1,10}}+|\s?(?:{terms.ATTACHED}):?\s?))"
)
_ASSIGNMENT = (
    r"(?=[^\W\d_])"  # quickly skips everything that is no letter
    rf"(?:(?P<password>{terms.PASSWORD})|(?P<token>{terms.TOKEN})|(?P<issuer>{terms.ISSUER})"
    r"|(?P<pass>(?<![a-z])pass(?![a-z]))|(?P<some_key>(?<=[a-z0-9][_-])key(?![a-z])))"
    rf"(?P<suffix>[a-z0-9_.-]{{0,24}}+(?=_{{0,3}}[\s=:?|><(,%&\"'`\\\])*]|{terms.ATTACHED})"  # else no sign follows
    r"(?: (?:key|token|secret|id|value|code)(?![a-z])|(?: string)(?! ?=)){0,2})"
    rf"(?P<close>[\])*_]{{0,3}}(?:(?!\"\s{{1,3}}(?:value|content)\s?=){_QUOTE})?[\])*_]{{0,3}}(?:</[a-z][a-z0-9]{{0,9}}>(?=\s?[:=])){{0,2}})"
    rf"(?:{_ABOUT}(?:{_SIGN})|(?P<space>\s{{1,5}}+))(?:[*_]{{1,3}}\s{{0,10}}+(?:\|\s{{0,5}}+)?|(?:{_MARKUP}\s{{0,10}}+){{1,4}})?"
    rf"(?P<quote>{_QUOTE})?(?P<scheme>(?:bearer|basic|token|apikey|api-key|digest|bot|key)\s{{1,3}}{_QUOTE}?)?"
    r"(?=(?P<value>[^\s\"'`<>]{3,200}))"
)
_WEAK = frozenset(terms.WEAK)
_BEFORE, _AFTER = 24, 40  # characters around a statement that are used to judge it
# The limit of the cost of judging, in characters: the length of the text plus this allowance. A judged statement
# costs the length of its value plus 40, a skipped one 32. A text above the limit is refused.
_SEARCH_ALLOWANCE = 32_768
_JUDGED, _PASSED_OVER = 40, 32
_GROUP = re.compile(
    rf" (?:{terms.any_of('gruppe mannschaft truppe klasse partei verein team group crew movement gruppo')}"
    r"|squadra|grupo|equipo|groupe|equipe)(?![^\W_])"
)
_SAME_NAME = re.compile(terms.SAME_NAME)
_NAMES_A_SECRET = re.compile(r"secret|token|key\Z|passw|pwd")


@cache
def _assignment() -> re.Pattern[str]:
    """Return the pattern of an assignment, compiled on first use, because this takes a while."""
    return re.compile(_ASSIGNMENT)


class _Sign(Enum):
    """The sign or word between a name and its value, from the most to the least formal."""

    EQUALS = 1
    COLON = 2
    VERB = 3
    FOREIGN = 4  # a verb of a language other than English, where nouns may be capitalized
    SPACE = 5
    DASH = 6  # or an arrow, which may also continue a sentence or separate menu items


@dataclass(frozen=True, slots=True)
class _Statement:
    """A name, a sign and a value found in the text, with what is needed to judge them."""

    name: str  # as written, with its suffix
    same_name: bool  # with its suffix it is still a name for a secret
    sign: _Sign
    tight: bool  # no blank between sign and value
    quoted: bool
    json: bool  # name and value are both quoted
    noun: bool  # a word without a preposition follows the name: "password wifi is", but also "password length is"
    motto: bool  # the password of a group, so a quoted word may be its motto
    value: str
    rest: str  # the text after the value


def find_assignment(text: str) -> Finding | None:
    """Return the first assigned value in `text` (folded) that is a credential, judging by its name and form."""
    lower = same_length(text, str.lower)
    harmless: set[tuple[str, int]] = set()  # repeated statements are judged once
    spent = 0
    for match in _assignment().finditer(lower):
        start, end = match.span("value")
        begun = max(match.start() - _BEFORE, 0)
        around = (text[begun : end + _AFTER], match.start() - begun)
        passed_over = around in harmless or _is_plain_speech(match, text) or _is_stand_in(match, text)
        spent += _PASSED_OVER if passed_over else _JUDGED + end - start
        if spent > _SEARCH_ALLOWANCE + end:
            return Finding("too_many_statements", start, end)
        if passed_over:
            continue
        value = values.trim(text[start:end], quoted=bool(match["quote"]))
        if len(value) >= 3 and (kind := _judge(match, text, value)):
            return Finding(kind, start, start + len(value))
        harmless.add(around)
    return None


def find_layout(text: str) -> Finding | None:
    """Return the first value in `text` (folded) that is a credential, judging by its position."""
    lower = same_length(text, str.lower)
    return find_command_secret(lower) or find_placed(text, lower) or find_seed_words(lower)


def _is_plain_speech(match: re.Match[str], text: str) -> bool:
    """Return whether the match is ordinary speech, which `_judge` would reject too, at ten times the cost."""
    spoken = match["verb"] or match["foreign"] or match["space"] or match["dash"]
    if spoken and (match["some_key"] or (match["pass"] and not match["quote"])):
        return True
    if match["quote"] or not (spoken or (match["colon"] and match["token"])):
        return False
    value = text[match.start("value") : match.end("value")]
    announced = match["token"] or ""
    header = announced == "authorization"
    if not (match["colon"] or match["password"] or header or values.may_be_random(value)):
        return True
    word = value.rstrip(".,;:!?")
    if not (len(word) < 20 and word.isalpha() and word.islower()):
        return False
    if not match["colon"]:
        return True
    start = match.start()
    name = text[start : match.end("suffix")].replace(" ", "")
    return name.isalpha() and name[1:].islower() and (not start or text[start - 1].isspace())


def _is_stand_in(match: re.Match[str], text: str) -> bool:
    """Return whether the value is masked ("****") or a variable, as is frequent in logs and templates."""
    start, end = match.span("value")
    if text[start] not in "*$[{(":
        return False
    value = values.trim(text[start:end], quoted=bool(match["quote"]))
    return len(value) < 3 or values.is_placeholder(value)


def _judge(match: re.Match[str], text: str, value: str) -> str | None:
    """Return the kind of credential that a matched statement contains, or None."""
    if values.is_placeholder(value):
        return None
    end = match.start("value") + len(value)
    before = text[max(match.start() - _BEFORE, 0) : match.start()]
    prefix = before.rsplit(maxsplit=1)[-1] if before and not before[-1].isspace() else ""
    statement = _Statement(
        name=prefix + text[match.start() : match.end("suffix")],
        same_name=bool(match["issuer"] or _SAME_NAME.fullmatch(match["suffix"])),
        sign=_sign(match),
        tight=not text[match.start("value") - 1].isspace(),
        quoted=bool(match["quote"]),
        json=bool(match["quote"] and match["close"]),
        noun=bool(match["noun"]),
        motto=bool(match["about"] and _GROUP.search(match["about"])),
        value=value,
        rest=text[end : end + _AFTER],
    )
    if match["some_key"] and values.names_no_secret(statement.name):
        return None
    if match["some_key"] or (match["issuer"] and not _NAMES_A_SECRET.search(match["suffix"])):
        formal = statement.sign in (_Sign.EQUALS, _Sign.COLON)
        return "named_key" if formal and values.is_random(value, at_least=16) else None
    if match["password"] in _WEAK and not values.is_mixed(value, at_least=5):
        return None
    if match["password"] or match["pass"]:
        if match["pass"] and not (statement.sign is _Sign.EQUALS or statement.json):
            return None
        return "password" if _is_password(statement) else None
    word = match["token"]
    if match["scheme"] or word in ("authorization", "bearer"):
        is_header = word == "authorization" and len(value) >= 6 and not values.is_word(value)
        return "authorization" if is_header or values.is_random(value, at_least=10) else None
    return "secret" if _is_secret(statement) else None


def _sign(match: re.Match[str]) -> _Sign:
    if match["equals"] or match["tag"] or match["call"] is not None:
        return _Sign.EQUALS
    if match["colon"] or match["cell"]:
        return _Sign.COLON
    if match["foreign"]:
        return _Sign.FOREIGN
    if match["dash"]:
        return _Sign.DASH
    return _Sign.VERB if match["verb"] else _Sign.SPACE


def _is_password(statement: _Statement) -> bool:
    """Return whether the value looks like a password. The more formal the statement, the less is required of it."""
    value, rest = statement.value, statement.rest
    if not statement.same_name:
        return not values.is_code(value, rest) and values.is_random(value, at_least=12)
    if statement.sign is _Sign.EQUALS:
        return statement.quoted or not values.is_code(value, rest)
    mixed = values.is_mixed(value, at_least=5)
    if statement.noun or statement.sign is _Sign.DASH:
        alone = values.ends_statement(rest)
        number = not statement.noun and value.isdigit() and len(value) >= 4
        return alone and (number or (mixed and not values.is_technical(value)))
    if statement.sign is _Sign.COLON:
        if statement.quoted:
            return not values.is_status(value) and len(value) >= 4
        alone = values.ends_statement(rest) and len(value) >= 4
        return not values.is_code(value, rest) and (mixed or (alone and not values.is_status(value)))
    if statement.sign in (_Sign.VERB, _Sign.FOREIGN):
        alone = values.ends_statement(rest)
        number = alone and value.isdigit() and len(value) >= 4
        proper = statement.sign is _Sign.VERB and alone and value.isalpha() and value[0].isupper()
        proper = proper and len(value) >= 5
        quoted = statement.quoted and rest[:1] in "\"'`" and len(value) >= 4
        return mixed or number or proper or (quoted and not (statement.motto and value.isalpha()))
    command = statement.name.startswith("--") or statement.name.isupper()
    alone = values.ends_statement(rest) and not values.is_technical(value)
    return values.is_random(value, at_least=8) or (mixed and len(value) >= 6 and (command or alone))


def _is_secret(statement: _Statement) -> bool:
    """Return whether the value looks like a token or key, which are also ordinary words and names in code."""
    value, rest = statement.value, statement.rest
    if not statement.same_name or value.isdigit():
        if values.is_code(value, rest):
            return False
        number = value.isdigit() and len(value) >= 12 and statement.same_name
        return values.is_random(value, at_least=16) or number
    if statement.sign is _Sign.SPACE:
        return values.is_random(value, at_least=12)
    if statement.sign is _Sign.EQUALS:
        if values.is_code(value, rest) and not statement.quoted:
            return values.is_random(value, at_least=8)
        if statement.tight or statement.quoted:
            return len(value) >= 4
        return values.is_mixed(value, at_least=6) or (len(value) >= 6 and values.ends_statement(rest))
    if statement.sign is _Sign.COLON:
        if statement.json or (values.ends_statement(rest) and values.is_identifier(statement.name)):
            return len(value) >= 6 and not values.is_status(value) and not values.is_code(value, rest)
        return values.is_random(value, at_least=8)
    return values.is_random(value, at_least=8) or (statement.quoted and values.is_mixed(value, at_least=6))


# Assignments encoded once in base64: ``REJfUEFTU1dPUkQ9…`` is ``DB_PASSWORD=…``.

_TOKEN = re.compile(r"(?<![A-Za-z0-9+/=_.-])[A-Za-z0-9+/]{16,2000}+={0,2}(?![A-Za-z0-9+/=_-])")
_ASSIGNS = re.compile(rb"[a-zA-Z_][\"']?\s?[:=]")
_PRINTABLE = re.compile(rb"[\t\n\r -~]+")
_ALLOWANCE = 4_096  # decoded characters that are judged; a text with more encoded assignments is refused


def find_encoded(text: str) -> Finding | None:
    """Return the first base64 token in `text` (folded) whose decoded text contains a credential."""
    spent = 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        try:
            plain = base64.b64decode(token + "=" * (-len(token) % 4))
        except (binascii.Error, ValueError):
            continue
        if not (_PRINTABLE.fullmatch(plain) and _ASSIGNS.search(plain)):
            continue
        spent += len(plain)
        if spent > _ALLOWANCE:
            return Finding("too_many_statements", *match.span())
        text = plain.decode()
        if finding := find_shape(text) or find_assignment(text) or find_layout(text):
            return Finding(finding.kind, *match.span())
    return None


_Rule = Callable[[str], Finding | None]
_SECRETS: tuple[_Rule, ...] = (find_shape, find_assignment, find_layout, find_encoded)


def find_secret(text: str) -> Finding | None:
    """Return the first credential found in `text`, or None. Its position refers to `text` itself."""
    return find_secrets([text])[0]


def find_secrets(texts: Sequence[str]) -> list[Finding | None]:
    return _found(texts, *_SECRETS)


def find_personal(text: str) -> Finding | None:
    """Return the first number of a card, account or identity document, PIN, recovery code or wallet key, or None."""
    return _found([text], personal_numbers.find_personal)[0]


def find_sensitive(texts: Sequence[str]) -> list[Finding | None]:
    """Return the first credential of each text, or its first personal number if it has no credential."""
    return _found(texts, *_SECRETS, personal_numbers.find_personal)


def _found(texts: Sequence[str], *rules: _Rule) -> list[Finding | None]:
    """Return the finding of each text, by the first of ``rules`` that has one."""
    folded = [fold(text) for text in texts]
    findings: list[Finding | None] = [None] * len(folded)
    for rule in rules:
        findings = [each or rule(text) for each, text in zip(findings, folded, strict=True)]
    return [_placed(*each) for each in zip(findings, texts, folded, strict=True)]


def _placed(finding: Finding | None, text: str, folded: str) -> Finding | None:
    """Return the finding with its position converted from the folded text to the original."""
    if finding is None or folded == text:
        return finding
    start, end = original_span(text, finding.start, finding.end)
    return Finding(finding.kind, start, end)


def _checksum(folder: Path) -> int:
    """Return a 31-bit checksum of the source code of all rules. As their version it cannot be forgotten on a change."""
    checksum = 0
    for source in sorted(folder.glob("*.py")):
        checksum = zlib.crc32(source.read_bytes(), checksum)
    return checksum & 0x7FFFFFFF or 1


RULES = _checksum(Path(__file__).parent)
