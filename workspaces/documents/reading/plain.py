"""Readers of text files: encodings, Markdown, CSV, JSON and HTML."""

import codecs
import csv
import io
import itertools
import json
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

from workspaces.documents.reading.kinds import Block, Blocks, utf_16

ROWS_AT_ONCE = 20  # table rows in one block; each block repeats the header row
LOOKED_AT = 100_000  # bytes from which the code page is guessed
LOOKED_CLOSELY = 1_000  # bytes or characters that are scored one by one
_SHORT = (
    "cp1251", "cp1252", "mac_roman", "cp932", "euc_jp", "gb18030", "cp949", "big5", "koi8_r", "cp866", "mac_cyrillic",
    "cp850", "cp1250", "cp1253", "cp1254", "cp1255", "cp1256", "cp874",
)  # fmt: skip
_USUAL = "“”‘’„–—…«»€£°§·•©®№、。，：；！？（）「」ー々"  # noqa: RUF001
_LIKELY = ("cp1252", "mac_roman", "cp1250")  # Latin code pages that often fit equally well, most used first
_WIDER = {"iso8859-1": "cp1252", "iso8859-9": "cp1254", "gb2312": "gb18030", "gbk": "gb18030",
          "shift_jis": "cp932", "euc_kr": "cp949", "big5": "big5hkscs", "tis-620": "cp874"}  # fmt: skip
_LATIN = re.compile(r"cp(125[0247]|437|775|85\d|86\d)|mac_|iso8859_|latin|hp_roman8")


def decoded(data: bytes, named: str = "") -> str:
    """Decode a text by its declared encoding ``named``, or by the most likely one if that is unknown or fails."""
    if data.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return data.decode("utf-32", "replace")
    order = utf_16(data)
    escaped = "iso2022_jp_2" if b"\x1b$" in data else ""
    for code in (order, escaped, _usual_encoding(named), named, "utf-8-sig"):
        try:
            if code:
                return data.decode(code)
        except (LookupError, ValueError):
            continue
    text = data.decode("utf-8-sig", "replace")
    broken = text.count("\ufffd")
    if broken and broken * 4 < sum(sign > "\x7f" for sign in text) - broken:
        return text  # UTF-8 that was cut off, or contains some bytes of another encoding
    return data.decode(order or guessed(data) or "cp1252", "replace")


def _usual_encoding(named: str) -> str:
    """Return the larger encoding that texts labelled as ``named`` usually have, such as cp1252 for latin-1, or "" if
    none.
    """
    try:
        return _WIDER.get(codecs.lookup(named).name, "")
    except (LookupError, ValueError):
        return ""


def guessed(data: bytes) -> str | None:
    """Return the encoding that fits best, or None if none fits."""
    from charset_normalizer import from_bytes

    sample = data[:LOOKED_AT]
    if len(data) > LOOKED_AT:
        sample = sample[: sample.rfind(b"\n") + 1 or LOOKED_AT]
    matches = from_bytes(sample)
    best = matches.best()
    if best is not None and len(re.findall("[\uff61-\uff9f]", str(best))) > len(str(best)) / 4:
        # Half-width katakana: the letters of a Cyrillic code page.
        matches = from_bytes(sample, cp_isolation=["koi8_r", "cp1251", "iso8859_5", "cp866", "mac_cyrillic"])
        best = matches.best() or best
    if best is None:
        return _most_natural(sample)
    code = best.encoding
    if _LATIN.match(code):
        fitting = {name for match in matches for name in match.could_be_from_charset}
        code = next((likely for likely in _LIKELY if likely in fitting), code)
    odd = _oddness(sample[:LOOKED_CLOSELY].decode(code, "ignore"))
    return (_most_natural(sample, below=odd / 2) if odd else None) or code


def _most_natural(sample: bytes, below: float = 1) -> str | None:
    """Return the encoding that gives the text with the lowest ``_oddness``, or None if that is not less than ``below``.

    It is for short texts, which charset_normalizer often gets wrong.
    """
    oddness: dict[str, int] = {}
    for code in _SHORT:
        try:
            text = codecs.getincrementaldecoder(code)().decode(sample[:LOOKED_CLOSELY])
        except ValueError:
            continue
        oddness[code] = _oddness(text)
    best = min(oddness, key=lambda code: oddness[code], default=None)
    return best if best and oddness[best] < below else None


def _oddness(text: str) -> int:
    """Return a score that is higher the less likely the text was decoded with the right encoding.

    It counts words in two scripts, capitals inside words, and rare characters.
    """
    odd = 0
    for word in re.findall(r"\w*[^\x00-\x7f]\w*", text):
        odd += 3 * (len({_script(sign) for sign in word if sign.isalpha()} or {""}) - 1)
        odd += 2 * sum(a.islower() and b.isupper() for a, b in itertools.pairwise(word))
    for sign in text:
        kind = unicodedata.category(sign)
        if sign > "\x7f" and sign not in _USUAL and _script(sign) != "THAI":
            odd += 3 if kind in ("Cc", "Cn", "Co", "Cf", "So", "Sm", "Sk", "Mn") else kind[0] in "PS"
    return odd + 3 * len(re.findall("[\u3130-\u318f\uff61-\uff9f]", text))


def _script(sign: str) -> str:
    first = unicodedata.name(sign, "").partition(" ")[0]
    return "CJK" if first in ("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "FULLWIDTH") else first


def read_text(data: bytes) -> Blocks:
    yield Block(decoded(data))


def read_json(data: bytes) -> Blocks:
    text = decoded(data)
    try:
        yield Block(json.dumps(json.loads(text), ensure_ascii=False, indent=1))
    except (ValueError, RecursionError):
        yield Block(text)  # JSON lines or invalid JSON: read as text


def read_markdown(data: bytes) -> Blocks:
    headings: list[tuple[int, str]] = []
    lines: list[str] = []
    in_code = False
    for line in decoded(data).splitlines():
        in_code ^= line.lstrip().startswith(("```", "~~~"))
        match = None if in_code else re.match(r"(#{1,6})\s+(.+?)\s*#*$", line)
        if match:
            yield Block("\n".join(lines), 0, path(headings))
            enter(headings, len(match[1]), match[2])
            lines = []
        lines.append(line)
    yield Block("\n".join(lines), 0, path(headings))


def read_csv(data: bytes) -> Blocks:
    text = decoded(data)
    separator = ""
    if match := re.match(r"\"?sep=(.)\"?(\r\n?|\n)", text, re.IGNORECASE):
        separator, text = match[1], text[match.end() :]
    csv.field_size_limit(len(text) + 1)
    separator = separator or _separator(text)
    if separator:
        yield from table(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    else:
        yield Block(text)


def _separator(text: str) -> str:
    """Return the separator that splits the first rows most consistently into the same number of cells, or ""."""
    sample = text[:20_000]
    if len(text) > len(sample):
        sample = sample[: sample.rfind("\n") + 1] or sample
    candidates = {}
    for sign in ";\t|,":
        widths = [len(row) for row in csv.reader(io.StringIO(sample, newline=""), delimiter=sign) if row]
        widths = widths[:50]
        usual = max(set(widths), key=widths.count, default=1)
        if usual > 1 and (len(widths) > 1 or usual < 50):
            candidates[sign] = (widths.count(usual) / len(widths), usual)
    one_line_of_prose = len(text.strip().splitlines()) == 1 and bool(re.search(r"\w[,;] \w", text))
    if not candidates or one_line_of_prose:
        return ""
    return max(candidates, key=lambda sign: candidates[sign])


def table(rows: Iterable[Any], page: int = 0, heading: str = "") -> Blocks:
    """Yield blocks of a few rows each. The header row is part of each block's heading, to explain the values."""
    head, waiting = "", []
    for row in rows:
        line = " | ".join(" ".join(str(cell).split()) for cell in row)
        if not line.strip(" |"):
            continue
        if not head:
            head = line
        waiting.append(line)
        if len(waiting) == ROWS_AT_ONCE:
            yield Block("\n".join(waiting), page, " — ".join(filter(None, (heading, head)))[:300])
            waiting = []
    if waiting:
        yield Block("\n".join(waiting), page, " — ".join(filter(None, (heading, head)))[:300])


def read_html(data: bytes, charset: str = "") -> Blocks:
    """Yield a page's text by headings, without invisible parts. ``charset`` overrides the page's own declaration."""
    from lxml import etree

    named = re.search(
        rb"(?i)<meta[^>]+charset\s*=\s*[\"']?\s*([\w-]+)|<\?xml[^>]+encoding=[\"']([\w-]+)", data[:4096]
    )
    text = decoded(data, charset or ((named[1] or named[2]).decode() if named else ""))
    parser = etree.HTMLParser(no_network=True, remove_comments=True, encoding="utf-8")
    # As bytes, because lxml refuses a str with an XML declaration.
    tree = etree.fromstring(text.encode(errors="replace"), parser)
    if tree is None:
        return
    headings: list[tuple[int, str]] = []
    lines: list[str] = [""]
    for event, element in etree.iterwalk(tree, events=("start", "end")):
        tag = element.tag if isinstance(element.tag, str) else ""
        if tag in _UNSEEN:
            if event == "start":
                element.text = None
                for child in list(element):
                    element.remove(child)
            content = ""
        else:
            content = (element.text if event == "start" else "") or ""
        if event == "start" and re.fullmatch("h[1-6]", tag):
            yield Block("\n".join(lines), 0, path(headings))
            enter(headings, int(tag[1]), " ".join("".join(element.itertext()).split()))
            lines = [""]
        if tag in _LINES and lines[-1]:
            lines += ["", ""] if tag == "p" else [""]
        if event == "start" and tag == "img":
            content = element.get("alt") or ""
        if event == "end":
            content = element.tail or ""
        lines[-1] += re.sub(r"\s+", " ", content)
        if tag in ("td", "th") and event == "end":
            lines[-1] += " | "
    yield Block("\n".join(lines), 0, path(headings))


_UNSEEN = {"script", "style", "template", "noscript", "svg", "head"}
_LINES = {"p", "div", "li", "tr", "br", "table", "ul", "ol", "pre", "section", "article", "blockquote", "dt", "dd",
          "h1", "h2", "h3", "h4", "h5", "h6", "header", "footer", "nav", "main"}  # fmt: skip


def read_web_page(data: bytes) -> Blocks:
    """Yield the main text of a web page, without menus, notices and comments. If there is none, yield all text."""
    from trafilatura import extract

    text = extract(data, output_format="txt", include_comments=False)
    yield from [Block(text)] if text else read_html(data)


def enter(headings: list[tuple[int, str]], level: int, text: str) -> None:
    while headings and headings[-1][0] >= level:
        headings.pop()
    headings.append((level, " ".join(text.split())))


def path(headings: list[tuple[int, str]]) -> str:
    return " > ".join(text for _, text in headings)[-300:]
