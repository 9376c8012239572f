"""Readers of mails, mailboxes, saved web pages and calendars, with their attachments."""

import base64
import email
import email.header
import email.policy
import re
from collections.abc import Iterator
from email.message import Message
from typing import Any

from workspaces.documents.reading import pictures
from workspaces.documents.reading.kinds import MSG, Block, Blocks, Unreadable, left_out
from workspaces.documents.reading.office import extracted
from workspaces.documents.reading.plain import decoded, read_html

MOST_DEEP = 5  # mails in mails
NEW_WORDS = 0.3  # share of new words from which an alternative part is read completely too
_HEADERS = ("From", "To", "Cc", "Date", "Subject")
_SAID = {
    "SUMMARY": "", "DTSTART": "Begins", "DTEND": "Ends", "DUE": "Due", "LOCATION": "Place", "DESCRIPTION": "",
    "ORGANIZER": "Organiser", "ATTENDEE": "Invited", "RRULE": "Repeats", "DURATION": "Lasts", "EXDATE": "Not on",
    "METHOD": "Kind of message", "STATUS": "Status", "COMMENT": "", "URL": "",
}  # fmt: skip
_SILENT = {
    "application/pgp-signature",
    "application/pkcs7-signature",
    "application/x-pkcs7-signature",
    "text/css",
}


def read_mail(data: bytes) -> Blocks:
    data = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    yield from _mail(email.message_from_bytes(data, policy=email.policy.compat32), 0, 0)


def read_box(data: bytes) -> Blocks:
    starts = [match.start() for match in re.finditer(rb"(?m)^From \S+ .*\d\d:\d\d.*$", data)]
    if not starts:  # one mail
        yield from read_mail(data)
        return
    for number, (low, high) in enumerate(zip(starts, [*starts[1:], len(data)], strict=True), 1):
        one = data[low:high].partition(b"\n")[2]
        one = re.sub(rb"(?m)^>(>*From )", rb"\1", one)
        yield from _mail(email.message_from_bytes(one, policy=email.policy.compat32), number, 0)


def read_msg(data: bytes) -> Blocks:
    """Read a mail saved by Outlook: headers, text and attachments."""
    result = extracted(data, MSG)
    told = dict(result.metadata)
    yield Block(result.content, 0, " ".join((told.get("subject") or "").split())[:300])
    read = {str(child["path"]): child["result"].content.strip() for child in result.children or ()}
    for name in dict.fromkeys([*(told.get("attachments") or ()), *read]):
        if not read.get(name):
            left_out["files"] += 1
        yield Block(read.get(name) or f"Attached, not read: {name}", 0, name)


def _mail(mail: Any, page: int, depth: int) -> Blocks:
    if depth > MOST_DEEP:
        raise Unreadable("too_long")
    headers = {name: _header(mail.get(name)) for name in _HEADERS if mail.get(name)}
    subject = " ".join(headers.get("Subject", "").split())
    yield Block("\n".join(f"{name}: {value}" for name, value in headers.items()), page, subject)
    seen: set[str] = set()
    for part, is_alternative in _leaves(mail):
        kind = part.get_content_type()
        name = _header(part.get_filename() or "")
        if kind == "message/rfc822":
            for inner in _inner(part):
                yield from _mail(inner, page, depth + 1)
        elif kind in _SILENT:
            continue
        elif kind == "text/calendar" or name.lower().endswith(".ics"):
            yield from (each._replace(page=page) for each in read_calendar(_text(part).encode()))
        elif kind in ("text/plain", "text/html", "text/enriched") and not name and not _is_attached(part):
            is_html = kind == "text/html"
            forms = list(read_html(_bytes(part), _charset(part))) if is_html else [Block(_text(part))]
            words = _words(" ".join(each.text for each in forms))
            # Of two alternative parts, the second is read too if it has other content, as when the first is a stub.
            if is_alternative and len(words - seen) <= len(words) * NEW_WORDS:
                new = [line for each in forms for line in each.text.splitlines() if _words(line) - seen]
                forms = [Block("\n".join(new))]
            if encoded := re.findall(r"(?m)^begin [0-7]{3} \S", "\n".join(each.text for each in forms)):
                left_out["files"] += len(encoded)  # uuencoded files in the text, from before MIME
            seen |= words
            yield from (Block(each.text, page, each.heading or subject) for each in forms)
        else:
            blocks = pictures.read(name or kind, _bytes(part), kind, depth)
            yield from (each._replace(page=page) for each in blocks)


def _leaves(part: Message, is_alternative: bool = False) -> Iterator[tuple[Message, bool]]:
    """Yield the parts of a mail that have no parts of their own, such as texts and attached files or mails.

    The second value is True if the part is another form of the previous part, such as HTML after plain text.
    """
    if part.get_content_maintype() != "multipart" or not part.is_multipart():
        yield part, is_alternative
        return
    for number, each in enumerate(part.get_payload()):
        if isinstance(each, Message):
            other_form = part.get_content_subtype() == "alternative" and number > 0
            yield from _leaves(each, is_alternative or other_form)


def _inner(part: Message) -> list[Message]:
    """Return the mails in a part. Some programs encode them, although the standard forbids it."""
    payload = part.get_payload()
    if not isinstance(payload, list):
        data = _bytes(part)
    else:
        inner = [each for each in payload if isinstance(each, Message)]
        if part.get("Content-Transfer-Encoding", "").lower() != "base64":
            return inner
        data = base64.b64decode("".join(each.as_string() for each in inner))
    return [email.message_from_bytes(data, policy=email.policy.compat32)]


def _is_attached(part: Message) -> bool:
    return part.get_content_disposition() == "attachment"


def _text(part: Message) -> str:
    return decoded(_bytes(part), _charset(part))


def _charset(part: Message) -> str:
    named = part.get_content_charset() or ""
    return "" if named in ("us-ascii", "ascii") else named


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def _bytes(part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _header(value: Any) -> str:
    """Return a decoded header. Raw bytes in it are decoded by their most likely encoding."""
    out = ""
    for text, code in email.header.decode_header(value):
        if isinstance(text, bytes):
            out += decoded(text, code if code and code != "unknown-8bit" else "")
        elif any("\udc80" <= sign <= "\udcff" for sign in text):
            out += decoded(text.encode("utf-8", "surrogateescape"))
        else:
            out += text
    return out.strip()


def read_calendar(data: bytes) -> Blocks:
    """Read each event of a calendar: title, time, place and people."""
    lines: list[str] = []
    title = ""
    text = re.sub(r"\r?\n[ \t]", "", decoded(data))
    for line in re.sub(r"(?ms)^BEGIN:VTIMEZONE.*?^END:VTIMEZONE", "", text).splitlines():
        named, _, value = re.sub(r'"[^"]*"', lambda quoted: quoted[0].replace(":", " "), line).partition(":")
        name, *parameters = named.split(";")
        value = re.sub(r"\\([,;\\])", r"\1", value.replace("\\n", "\n").replace("\\N", "\n"))
        if name.upper() in ("BEGIN", "END") and value in ("VEVENT", "VTODO", "VJOURNAL"):
            yield Block("\n".join(lines), 0, title)
            lines, title = [], ""
        if name.upper() not in _SAID or not value.strip():
            continue
        title = value if name.upper() == "SUMMARY" else title
        zone = next((each[5:] for each in parameters if each.upper().startswith("TZID=")), "")
        person = next((each[3:].strip('"') for each in parameters if each.upper().startswith("CN=")), "")
        detail = " ".join(filter(None, (person, _moment(value.removeprefix("mailto:")), zone)))
        word = _SAID[name.upper()]
        lines.append(f"{word}: {detail}" if word else detail)
    yield Block("\n".join(lines), 0, title)


def _moment(value: str) -> str:
    match = re.fullmatch(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d(Z?))?", value)
    if match is None:
        return value
    clock = f" {match[4]}:{match[5]}{' UTC' if match[6] else ''}" if match[4] else ""
    return f"{match[1]}-{match[2]}-{match[3]}{clock}"
