"""Split what a user wrote into statements, leaving out what is not theirs: code, quotations, pasted material."""

import re
from collections.abc import Iterator

MAX_READ = 12_000  # characters of one message that are read at all
LONG = 2_000  # a message longer than this is mostly pasted; what the user says themselves stands at its start
OWN_PART = 600

_CODE_BLOCK = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_INLINE_QUOTE = re.compile(r"[\"“«]([^\"”»\n]{0,600})[\"”»]")
_NOT_PROSE = re.compile(
    r"\s*(?:>|\||[#$%]\s|>>>|\d{2}:\d{2}|\[\d|\w+@\w+:|(?:Traceback|File \"|at \w+\.|import |from \w+ "
    r"import|def |class |"
    r"const |let |var |SELECT |INSERT |GET |POST |curl |npm |pip |git ))|.*(?:[{};]\s*$|=>|\w\(\)|</?\w+>|::)"
)
_BULLET = re.compile(r"^\s*(?:[-*•\u2013]|\d{1,2}[.)])\s+")
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|e\.g|i\.e|approx|No|Inc|Ltd|Co|Corp|Jan|Feb|Mar|Apr|Jun|"
    r"Jul|Aug|Sept?|"
    r"Oct|Nov|Dec|Mon|Tue|Wed|Thu|Fri|a\.m|p\.m|U\.S|U\.K|Ph\.D|Mt|Ave|Blvd|min|max|ca|cf|resp|incl|est)|"
    r"\b[A-Z])\.$"
)
_END = re.compile(r"[.!?]+[\"')\]”]*(?=\s|$)|[;]\s")
# The user hands over text to be worked on: what follows is not about them.
_TASK = re.compile(
    r"\b(?:translate|rewrite|rephrase|paraphrase|proofread|correct|fix|edit|improve|summari[sz]e|shorten|"
    r"check|review|"
    r"analy[sz]e|classify|explain|convert|continue|complete|write|draft|compose|polish|reply to|respond "
    r"to|role-?play|act as|"
    r"pretend|imagine|debug|following|here(?:'s| is) (?:the|a|an|my) (?:text|email|e-mail|letter|essay|"
    r"story|draft|code|"
    r"message|poem|article|sentence|paragraph|cv|resume|bio|lyrics?))\b[^.!?\n]{0,120}:(?=\s|$)",
    re.IGNORECASE,
)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a message in order, with their closing mark."""
    text = text[:MAX_READ].replace("\u2019", "'")
    text = _CODE_BLOCK.sub("\n", text)
    if len(text) > LONG:
        text = (
            text[:OWN_PART].rsplit("\n", 1)[0]
            if "\n" in text[:OWN_PART]
            else text[:OWN_PART].rsplit(". ", 1)[0]
        )
    if task := _TASK.search(text):
        text = text[: task.start()]
    text = _INLINE_QUOTE.sub(_drop_long_quote, text)
    for line in text.splitlines():
        if line.strip() and not _NOT_PROSE.match(line):
            yield from _split_line(_BULLET.sub("", line).strip())


def _drop_long_quote(match: re.Match[str]) -> str:
    """A quoted name stays ("call it "Falcon""), a quoted sentence is somebody's words."""
    return match[1] if len(match[1].split()) <= 3 else " QUOTED "


def _split_line(line: str) -> Iterator[str]:
    start = 0
    for match in _END.finditer(line):
        end = match.end()
        if match[0].startswith(".") and _ABBREVIATION.search(line[max(start, end - 8) : match.start() + 1]):
            rest = line[end:].lstrip()
            if rest and not re.match(r"(?:I|My|We|Our)\b", rest):
                continue
        if sentence := line[start:end].strip():
            yield sentence
        start = end
    if rest := line[start:].strip():
        yield rest
