"""Where the sentences of a message stand, leaving out what is not prose of its author: code, logs, quoted lines."""

# ruff: noqa: RUF001  marks and letters of other scripts are meant
import re
from collections.abc import Iterator, Sequence

MAX_READ = 12_000  # characters of one message that are read at all
LONG = 2_000  # a message longer than this is mostly pasted; what the user says themselves stands at its start
OWN_PART = 600

_CODE_BLOCK = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_QUOTES = '""', "\u201c\u201d", "\u00ab\u00bb", "\u201e\u201c", "\u300c\u300d", "\u300e\u300f"
_QUOTE = re.compile(
    "|".join(f"{opens}[^{closes}\n]{{0,600}}{closes}" for opens, closes in map(tuple, _QUOTES))
)
_NOT_PROSE = re.compile(
    r"\s*(?:>|\||[#$%]\s|>>>|//|\{|\d{2}:\d{2}|\[\w|\d{4}-\d\d-\d\d[ T]\d|\d+\.\d+\.\d+\.\d+|\w+@\w+:|"
    r"(?:Traceback|File \"|at \w+\.|import |from \w+ import|def |class |const |let |var |my \$|SELECT |INSERT |GET |"
    r"POST |curl |npm |pip |git |export )|"
    r"(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\s+(?:\[|[\w-]+\.\w))|.*(?:[{};]\s*$|=>|\w\(\)|</?\w+>|::)"
)
_END = re.compile(r"[.!?…]+[\"')\]”»]*(?=\s|$)|[。！？]+[」』”]*|[;；]\s*|\n+")
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|e\.g|i\.e|approx|No|Inc|Ltd|Co|Nr|bzw|z\.B|ca|Hr|Fr|Sra?|Dra?|Ud|Mme|av|"
    r"им|ул|г|т\.е|a\.m|p\.m|U\.S|U\.K)|\b[A-Z])\.$|\s\d{1,2}\.$"
)
_GOES_ON = re.compile(r"\s*(?:[a-zа-яà-ÿ,]|Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)")
_SHORT = 25  # characters of a sentence that says how to take the next: "No, wait."
_FEW = 3  # words: a quoted name is the author's, a quoted sentence somebody else's


def sentences(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield where each sentence stands, with its closing mark, and whether it quotes somebody."""
    code = [match.span() for match in _CODE_BLOCK.finditer(text)]
    quoted = [match.span() for match in _QUOTE.finditer(text) if _is_long(match[0])]
    for start, end in _cut(text, quoted):
        while start < end and text[start].isspace():
            start += 1
        while end > start and text[end - 1].isspace():
            end -= 1
        if start < end and not _meets(code, start, end) and not _NOT_PROSE.match(_line(text, start)):
            yield start, end, _meets(quoted, start, end)


def own_part(text: str) -> str:
    """What of a message is read: of one that is mostly pasted its beginning."""
    text = text[:MAX_READ].replace("\u2019", "'")
    if len(text) <= LONG:
        return text
    start = text[:OWN_PART]
    return start.rsplit("\n", 1)[0] if "\n" in start else start.rsplit(". ", 1)[0]


def sentence_with(statement: str, texts: Sequence[str]) -> str:
    """The sentence of these texts that shares most with the statement, and a short one before it; empty for none."""
    wanted, best, most = _threes(statement), "", 0
    for text in map(own_part, texts):
        short = ""
        for start, end, quotes in sentences(text):
            own = text[start:end]
            shared = 0 if quotes else len(_threes(own) & wanted)
            if shared > most:
                best, most = f"{short} {own}".strip(), shared
            short = own if len(own) <= _SHORT else ""
    return best


def _threes(text: str) -> set[str]:
    plain = text.casefold()
    return {plain[at : at + 3] for at in range(max(len(plain) - 2, 1))}


def _is_long(quote: str) -> bool:
    return len(quote.split()) > _FEW or (not quote.isascii() and len(quote) > 3 * _FEW)


def _cut(text: str, quoted: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _END.finditer(text):
        if any(a <= match.start() < b - 1 for a, b in quoted):
            continue
        short = _ABBREVIATION.search(text[max(start, match.end() - 8) : match.start() + 1])
        if match[0].startswith(".") and short and match.end() < len(text):
            is_day = short[0].strip()[0].isdigit()
            if not is_day or _GOES_ON.match(text[match.end() :]):
                continue
        yield start, match.end()
        start = match.end()
    yield start, len(text)


def _meets(spans: list[tuple[int, int]], start: int, end: int) -> bool:
    return any(a < end and b > start for a, b in spans)


def _line(text: str, at: int) -> str:
    end = text.find("\n", at)
    return text[text.rfind("\n", 0, at) + 1 : end if end >= 0 else len(text)]
