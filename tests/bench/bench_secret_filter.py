"""Measure the secret filter: cost per byte on hostile text against plain text, whether it grows with the length, and
false alarms over a file.

    python tests/bench/bench_secret_filter.py                  # cost only, against made-up prose
    python tests/bench/bench_secret_filter.py turns.jsonl      # also against the file's own texts, and its false alarms

FILE is JSON lines; every string under a key "text" or "content", however deep, counts as one message.

Plain text is made-up sentences of ordinary words (seeded, no word of the rules, ASCII alone, which needs no folding:
the cheapest there is), or the texts of FILE one after another, as people wrote them. Each cost is the median of some
rounds of processor time; in each round every text is measured next to the plain one, of which a quarter of the length
is enough.
"""

import argparse
import json
import random
import re
import statistics
import string
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memories.judging.secret_filter import Finding, find_personal, find_secret
from memories.judging.secret_filter.shapes import RULES

_ORDINARY = """
    the a we they she and but to of in on with for was were had said went took made about after again old new small
    green garden river bread house friend summer winter morning letter market window children music walk train coffee
    story mother painting village dinner weekend mountain library bicycle holiday neighbour kitchen really always never
    quite together yesterday tomorrow because although while support group camping running lovely
"""
_DRAWN = {
    "w": string.ascii_lowercase,
    "W": string.ascii_letters,
    "x": string.ascii_letters + string.digits,
    "h": "0123456789abcdef",
    "d": string.digits,
    "b": string.ascii_letters + string.digits + "+/",
}

# Texts that keep the rules busy without containing a credential: a unit, repeated. <w4> stands for four random
# lower-case letters; see _DRAWN.
_UNITS = {
    # repetitions of one character
    "one letter": "a", "one capital": "Q", "one digit": "7", "spaces": " ", "newlines": "\n", "dots": ". ",
    "dashes": "-", "colons": ":", "equals": "=", "quotes": "\"'", "backslashes": "\\", "percent": "%22",
    "underscores": "_", "slashes": "/", "ats": "@", "pluses": "+", "letter dash": "b-", "letter lines": "a-b\n",
    "letters apart": "a ", "capital sign": "_A", "s equals": "s=", "word walls": "lorem<w6> ",
    # walls of encodings
    "base64 wall": "<W4000>\n", "hex wall": "<h4000>", "hex lines": "<h32>\n", "digits dash": "<h32>-",
    "uuids": "<h8>-<h4>-<h4>-<h4>-<h12>\n", "percent wall": "%3A%2F%2Fa%3Ab",
    "data url": "data:image/png;base64,<W900>\n",
    "json nesting": '{"a":[{"b":', "json numbers": '{"id": <d6>, "n": [1, 2, <d3>]},', "closing": "]}]})",
    "numbers": "<d4> ", "phone numbers": "+49 <d3> <d7>, ",
    # nearly a credential
    "openai almost": "sk-abc ", "sk dashes": "sk-", "github almost": "ghp_aaaaaaaaaaaaaaa<d4> ", "github bare": "ghp_",
    "gitlab almost": "glpat-aaaaaaaaa<d4> ", "slack almost": "xoxb-1234567 ", "jwt almost": "-eyJ",
    "jwt dots": "eyJ<x6>.", "jwt parts": "eyJ.eyJ.",
    "pem almost": "-----BEGIN ", "pem longer": "-----BEGIN RSA PUBLIC THING OF THE KEY",
    "url almost": "://a:bb", "url users": "://<w99>", "url near": "https://<w5>:<w5>/<w8>@<w4>.org ",
    "azure almost": "<w90>+AMC- ", "tableau almost": "aaaaaaaaaaaaaaaaaaaaaa= ", "telegram almost": "<d9>:aaaa ",
    "label almost": "acme_live_aaaaaaaaaaaaaaaa1 ", "label letters": "acme_" + "a" * 290 + " ", "labels": "ab_cd_ef_1_",
    "labels apart": "ab_cd_ef_gh_1 ", "label digits": "ab-" + "a1" * 140 + "! ", "label ids": "cus_N<d3>NeU<d2>V2Hib ",
    "label words": "live_aaaaaaaaaaaa<d4> ", "label hex": "sk- salt-<h32>\npassexox\n", "azure ad": "aaa1Q~aaaa ",
    # statements without a value
    "password": "password", "password dash": "passwd-", "password colon": "password: ",
    "password done": "password: done ",
    "password is": "password is on ", "password for": "password for the a of the b of ", "token eq": "token= ",
    "token names": "token token_type ", "secret colon": "secret: love ", "api key": "api key api_key api-key ",
    "authorization": "authorization: bearer ", "json null": '{"password": null} ', "some key": "my_key = a ",
    "issuer": "twilio aws heroku: x ", "basic": "basic <w12> ", "kind secret": "kind: secret data: ",
    "seed words": "seed phrase: apple banana cherry ", "pins": "pin=", "sids": "sid_", "salts": "salt\n",
    "pats": "=pat-<w4>",
    "key names": "bedrock-api-key-secret is  is ", "masked": "pwd=**** user=<w4>\n",
    # different statements each time, so that no cached result of the last one helps
    "secret words": "secret: <w4> ", "password words": "password is <w4> on ", "token calls": "token = os.<w6>(<w3>)\n",
    "long values": "=pat-<w4>/<w15>/<w15>/<w15>/<w15>/<w15> ",
    "apart": "the password of <w6> was changed in week <d2>, so I said\n",
    "at the limit": "<w9> secret_ <w4>redis-clivc_ab <w9> ", "keys": "1_EAAA=<x16>-key sk-=on is ",
    # commands
    "flags": "curl -u abc ", "flags with colon": "curl -u ab:<d4> ", "mysql": "mysql -p - ", "no command": "\n-p<w4> ",
    "drivers": "secret@tcp(", "words of a driver": "<w95>@tcp(",
    # pairs, columns, encodings
    "accounts": "admin / <w5>1 ", "pairs": "login: a pass: done ", "short pairs": "u: a p: b ",
    "pgpass": "a:5432:b:c:d ",
    "columns": "a,password,b\n", "columns with rows": "a,password,b\n1,<w6>,2\n", "arguments": "pdo(a, b, ",
    "terraform": 'variable "password" {', "stored": "secret --body x ", "set-up keys": "key abcd abcd abc2 abc ",
    "base64 statements": "YWFhPWJiYmJiYmJiYmJi ", "base64 tokens": "<x24> ", "entities": "&#61;", "entity": "&amp;",
    "listed words": "abandon ability able about above ", "words of two lists": "abandon abdomen ",
    # nearly a personal number
    "pins almost": "pin <d3> ", "pins said": "my pin is on <d4> ", "cards": "4<d15> ",
    "ibans": "DE<d2> <d4> <d4> <d4> <d4> <d2> ",
    "iban beginnings": "AB<d2> ", "ssn almost": "9<d2>-<d2>-<d4> ", "pesel": "pesel <d11> ", "ric": "<d6>19<d10> ",
    "card words": "card card ", "recovery": "recovery code <w4>-<w4> ", "hex keys": "<h64> ",
    "wallet hash": "wallet <h64> hash ",
    # beyond ASCII
    "full width": "\uff50\uff41\uff53\uff53 ", "zero width": "p\u200b", "combining": "a\u0301\u0323",
    "marks only": "\u0301\u0323", "ligature": "\ufdfa", "emoji": "😀 ", "chinese": "密码", "cyrillic": "пароль ",
    "look-alikes": "\u0440\u0430ss ", "bidi": "\u202ea\u202c",
    "mixed": "password: done ghp_ eyJ. -----BEGIN x://a:b/ <h8>= {\"k\": 'v'} \\n acme_1_",
}  # fmt: skip


def _filled(unit: str, size: int) -> str:
    """Return `size` characters of the unit, with different random parts each time."""
    drawn, length = random.Random(1), 0
    pieces: list[str] = []
    parts = re.split(r"<([a-zA-Z])(\d+)>", unit)
    while length < size:
        for at, part in enumerate(parts):
            if at % 3 == 0:
                pieces.append(part)
            elif at % 3 == 1:
                pieces.append("".join(drawn.choices(_DRAWN[part], k=int(parts[at + 1]))))
            else:
                continue
            length += len(pieces[-1])
    return "".join(pieces)[:size]


def hostile_texts() -> dict[str, Callable[[int], str]]:
    """Return functions that make a text of a given size, by name."""
    starts = sorted({start[0] for _, rule in RULES if (start := re.match(r"[\w-]{3,}(?![\w?*+{-])", rule))})
    starts = [start for start in starts if find_secret(f"{start} {start}aaaaa ") is None]
    walls = {
        "every beginning": " ".join(starts),
        "every almost": " ".join(start + "aaa<w2>" for start in starts),
    }
    texts: dict[str, Callable[[int], str]] = {
        name: partial(_filled, unit) for name, unit in {**_UNITS, **walls}.items()
    }
    texts["jwt long"] = lambda size: "eyJ" + "A" * (size - 3)
    texts["pem without end"] = lambda size: "-----BEGIN RSA " + _filled("<w64>\n", size - 15)
    return texts


def prose(size: int) -> str:
    """Return made-up sentences of ordinary words."""
    drawn, length = random.Random(2), 0
    words = _ORDINARY.split()
    pieces: list[str] = []
    while length < size:
        sentence = " ".join(drawn.choices(words, k=drawn.randint(5, 16))).capitalize() + drawn.choice(
            [". ", ". ", "! ", ".\n"]
        )
        pieces.append(sentence)
        length += len(sentence)
    return "".join(pieces)[:size]


def _find(text: str) -> Finding | None:
    """Run both searches of the gate, which run to the end on text that holds nothing."""
    return find_secret(text) or find_personal(text)


def _nanoseconds_per_byte(text: str) -> float:
    started = time.process_time_ns()
    _find(text)
    return (time.process_time_ns() - started) / len(text.encode())


def _ratio(text: str, plain: str, rounds: int) -> tuple[float, float]:
    """Return the median cost of the text, and the median ratio to the plain text measured beside it."""
    costs, ratios = [], []
    for _ in range(rounds):
        base = _nanoseconds_per_byte(plain)
        costs.append(_nanoseconds_per_byte(text))
        ratios.append(costs[-1] / base)
    return statistics.median(costs), statistics.median(ratios)


def measure_cost(name: str, plain: str, size: int, rounds: int) -> str:
    """Print each hostile text's cost beside the plain one's. Return the name of the worst."""
    base = statistics.median(_nanoseconds_per_byte(plain) for _ in range(rounds))
    print(f"{size:,} characters each, median of {rounds} rounds; {name}: {base:.0f} ns/byte")
    ratios: dict[str, float] = {}
    for text_name, make in hostile_texts().items():
        text = make(size)
        finding = _find(text)
        cost, ratios[text_name] = _ratio(text, plain, rounds)
        print(
            f"  {text_name:18}{cost:7.0f} ns/byte {ratios[text_name]:6.2f}x {finding.kind if finding else ''}",
            flush=True,
        )
    worst = max(ratios, key=lambda text_name: ratios[text_name])
    above = [f"{text_name} {ratio:.2f}" for text_name, ratio in ratios.items() if ratio > 1]
    print(
        f"worst of {len(ratios)}: {worst}, {ratios[worst]:.2f} times {name}; above 1: {', '.join(above) or 'none'}\n"
    )
    return worst


def measure_growth(names: list[str], size: int, rounds: int) -> None:
    """Print the cost of a byte of a text that is four times as long."""
    texts: dict[str, Callable[[int], str]] = {"made-up prose": prose, **hostile_texts()}
    for name in names:
        _, ratio = _ratio(texts[name](4 * size), texts[name](size), rounds)
        print(f"{name}: a byte of {4 * size:,} characters costs {ratio:.2f} times a byte of {size:,}")


def texts_of(value: object) -> Iterator[str]:
    """Yield every string under a key "text" or "content" in a JSON value."""
    if isinstance(value, dict):
        for key, child in value.items():
            if key in ("text", "content") and isinstance(child, str):
                yield child
            else:
                yield from texts_of(child)
    elif isinstance(value, list):
        for child in value:
            yield from texts_of(child)


def texts_in(file: Path) -> list[str]:
    """Return the messages of a file of JSON lines."""
    with file.open(encoding="utf-8") as lines:
        return [text for line in lines for text in texts_of(json.loads(line))]


def measure_alarms(texts: list[str]) -> None:
    """Print which of the messages are refused."""
    alarms = 0
    for number, text in enumerate(texts, start=1):
        if finding := _find(text):
            alarms += 1
            print(f"alarm: {finding.kind} at {finding.start} of message {number}")
    print(f"{alarms} of {len(texts)} messages refused\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    plain = {"made-up prose": prose(options.size // 4)}
    if options.file:
        texts = texts_in(options.file)
        measure_alarms(texts)
        joined = "\n".join(texts)
        plain["the file's texts"] = (joined * (options.size // 4 // len(joined) + 1))[: options.size // 4]
    worst = [measure_cost(name, text, options.size, options.rounds) for name, text in plain.items()]
    measure_growth(
        ["made-up prose", *dict.fromkeys([*worst, "base64 wall", "apart"])], options.size, options.rounds
    )


if __name__ == "__main__":
    main()
