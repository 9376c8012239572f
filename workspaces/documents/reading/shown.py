"""A spreadsheet's value as the spreadsheet shows it: by the number format of its cell."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from typing import Any

_DATE_PARTS = re.compile(r'"([^"]*)"|\\(.)|\[[^\]]*\]|(y+|m+|d+|h+|s+(?:\.0+)?|am/pm|a/p)|(.)', re.IGNORECASE)
_LITERALS = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]|\[[^\]]*\]|_.|\*.')
_EPOCH = datetime(1899, 12, 30)  # of spreadsheets


def shown(value: Any, code: str) -> str:
    """``code``: the number format. What it does not say, or says in a way that is not known here, is left plain."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        try:
            value = float(value) if code not in ("", "General", "@") else value
        except ValueError:
            return value
        if isinstance(value, str):
            return value
    sections = re.findall(r'(?:"[^"]*"|\\.|[^;"])+', code) or [""]
    if isinstance(value, (int, float)) and len(sections) > 1 and (value < 0 or (value == 0 and sections[2:])):
        return _number(abs(value), sections[1 if value < 0 else 2])
    code = sections[0]
    if isinstance(value, (int, float)) and re.search(r"(?i)y|d|h:", re.sub(_LITERALS, "", code)):
        value = _EPOCH + timedelta(days=value)
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}" + (f":{seconds:02}" if "s" in code.lower() else "")
    if isinstance(value, (datetime, date, time)):
        return _moment(value, code)
    return _number(value, code)


def _moment(value: datetime | date | time, code: str) -> str:
    at_midnight = isinstance(value, datetime) and value.time() == time()
    if code in ("General", "", "mm-dd-yy", "@") or code.startswith(
        "[$-F"
    ):  # as its reader's country shows it
        return (
            (value.date() if isinstance(value, datetime) and at_midnight else value)
            .isoformat()
            .replace("T", " ")
        )
    out, hour_before, half_days = "", False, "am/pm" in code.lower()
    moment = value if isinstance(value, datetime) else None
    day = value if isinstance(value, date) else date(1900, 1, 1)
    clock = moment.time() if moment else value if isinstance(value, time) else time()
    parts = list(_DATE_PARTS.finditer(code))
    for at, part in enumerate(parts):
        sign = (part[3] or "").lower()
        after = next((later[3].lower() for later in parts[at + 1 :] if later[3]), "")
        if sign.startswith("m") and (hour_before or after.startswith("s")):
            out += f"{clock.minute:0{min(len(sign), 2)}}"
        elif sign.startswith("m"):
            out += {1: str(day.month), 2: f"{day.month:02}", 3: f"{day:%b}"}.get(len(sign), f"{day:%B}")
        elif sign.startswith("y"):
            out += f"{day.year % 100:02}" if len(sign) < 3 else str(day.year)
        elif sign.startswith("d"):
            out += {1: str(day.day), 2: f"{day.day:02}", 3: f"{day:%a}"}.get(len(sign), f"{day:%A}")
        elif sign.startswith("h"):
            out += f"{(clock.hour % 12 or 12) if half_days else clock.hour:0{min(len(sign), 2)}}"
        elif sign.startswith("s"):
            out += f"{clock.second:0{min(len(sign.split('.')[0]), 2)}}"
        elif sign.startswith("a"):
            out += "PM" if clock.hour >= 12 else "AM"
        else:
            out += part[1] or part[2] or part[4] or ""
        hour_before = sign.startswith("h") if sign else hour_before
    return out.strip()


def _number(value: float, code: str) -> str:
    literals: list[str] = []

    def mark(match: re.Match[str]) -> str:
        literals.append(match[1] or match[2] or match[3] or "")
        return "\0"

    marked = _LITERALS.sub(mark, code)
    digits = re.search(r"[#0?][#0?,]*(\.[#0?]*)?(,*)", marked)
    if digits is None and not re.search("(?i)general", marked) and (code.strip() and "@" not in code):
        return "".join(literals)
    if (
        digits is None
        or re.search("[#0?]", marked[digits.end() :])
        or re.search(r"(?i)e[+-]|general|/|@", marked)
    ):
        return f"{value:.15g}"
    whole, _, decimals = digits[0].removesuffix(digits[2]).partition(".")
    scale = 100 ** marked.count("%") / 1000 ** (len(digits[2]) + len(whole) - len(whole.rstrip(",")))
    text = f"{abs(value) * scale:{',' if ',' in whole.rstrip(',') else ''}.{len(decimals)}f}"
    for _ in range(len(decimals) - len(decimals.rstrip("#"))):  # of "#" only what is not zero
        text = text[:-1] if text.endswith("0") else text
    text = text.rstrip(".").zfill(whole.count("0"))
    around = marked[: digits.start()] + ("-" if value < 0 else "") + text + marked[digits.end() :]
    for literal in literals:
        around = around.replace("\0", literal, 1)
    return around.strip()
