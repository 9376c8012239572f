"""Measure the secret filter: cost per byte on hostile text against plain prose, and false alarms over a file.

    python tests/bench/bench_secret_filter.py                  # cost only
    python tests/bench/bench_secret_filter.py turns.jsonl      # and false alarms over every text of the file

FILE is JSON lines; every string under a key "text" or "content", however deep, counts as one message.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memories.secret_filter import find_secret

_WORDS = (
    "the team met on Monday to plan our trip and I said that my sister likes tea more than coffee, so we "
    "bought both; later she told me about her password manager, a token of thanks (it was kind!) and the "
    "secret of good bread: time. "
)


def _word(number: int) -> str:
    """Another word for each number, so that no statement stands twice."""
    return "".join(chr(97 + number // 26**place % 26) for place in range(4))


def hostile_texts(size: int) -> dict[str, str]:
    """Texts of `size` characters made to keep the rules busy without ever giving them a credential."""

    def fill(unit: str) -> str:
        return (unit * (size // len(unit) + 1))[:size]

    return {
        "one letter": fill("a"),
        "one capital": fill("Q"),
        "spaces": fill(" "),
        "newlines": fill("\n"),
        "dots": fill(". "),
        "dashes": fill("-"),
        "letter dash": fill("b-"),
        "digits dash": fill("0123456789abcdef0123456789abcdef-"),
        "colons": fill(":"),
        "equals": fill("="),
        "quotes": fill("\"'"),
        "backslashes": fill("\\"),
        "openai prefix": fill("sk-abc "),
        "github almost": fill("ghp_aaaaaaaaaaaaaaaaaaa "),
        "gitlab almost": fill("glpat-aaaaaaaaaaaaaaa "),
        "slack almost": fill("xoxb-12345678 "),
        "jwt almost": fill("-eyJ"),
        "jwt long": "eyJ" + fill("A")[3:],
        "pem almost": fill("-----BEGIN "),
        "pem longer": fill("-----BEGIN RSA PUBLIC THING OF THE KEY"),
        "url almost": fill("://a:bb"),
        "url users": fill("://" + "b" * 99),
        "encoded url": fill("%3A%2F%2Fa%3Ab"),
        "password": fill("password"),
        "password colon": fill("password: "),
        "password done": fill("password: done "),
        "password is": fill("password is on "),
        "password for": fill("password for the a of the b of "),
        "token eq": fill("token= "),
        "token names": fill("token token_type "),
        "secret colon": fill("secret: love "),
        "api key": fill("api key api_key api-key "),
        "authorization": fill("authorization: bearer "),
        "json": fill('{"password": null} '),
        "flags": fill("curl -u abc "),
        "mysql": fill("mysql -p - "),
        "seed words": fill("seed phrase: apple banana cherry "),
        "issuer": fill("twilio aws heroku: x "),
        "basic": fill("basic abcdefghijkl "),
        "percent": fill("%22"),
        "label almost": fill("acme_live_aaaaaaaaaaaaaaaa1 "),
        "label letters": fill("acme_" + "a" * 290 + " "),
        "labels": fill("ab_cd_ef_1_"),
        "labels apart": fill("ab_cd_ef_gh_1 "),
        "label digits": fill("ab-" + "a1" * 140 + "! "),
        "kind secret": fill("kind: secret data: "),
        "azure almost": fill("a" * 90 + " "),
        "tableau almost": fill("aaaaaaaaaaaaaaaaaaaaaa= "),
        "some key": fill("my_key = a "),
        "full width": fill("\uff50\uff41\uff53\uff53 "),
        "zero width": fill("p\u200b"),
        "combining": fill("a\u0301\u0323"),
        "marks only": fill("\u0301\u0323"),
        "ligature": fill("\ufdfa"),
        "emoji": fill("😀 "),
        "chinese": fill("密码"),
        "secret words": " ".join("secret: " + _word(number) for number in range(size // 13)),
        "password words": " ".join(f"password is {_word(number)} on" for number in range(size // 20)),
        "random bytes": "".join(random.Random(1).choices([chr(c) for c in range(32, 127)], k=size)),
    }


def nanoseconds_per_byte(text: str, rounds: int) -> float:
    """The best of some rounds, since the machine's other work can only add."""
    best = float("inf")
    for _ in range(rounds):
        started = time.perf_counter()
        find_secret(text)
        best = min(best, time.perf_counter() - started)
    return best / len(text.encode()) * 1e9


def texts_of(value: object) -> Iterator[str]:
    """Every string under a key "text" or "content" in a JSON value."""
    if isinstance(value, dict):
        for key, child in value.items():
            if key in ("text", "content") and isinstance(child, str):
                yield child
            else:
                yield from texts_of(child)
    elif isinstance(value, list):
        for child in value:
            yield from texts_of(child)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()

    if options.file:
        count = alarms = 0
        with options.file.open(encoding="utf-8") as lines:
            for line in lines:
                for text in texts_of(json.loads(line)):
                    count += 1
                    if finding := find_secret(text):
                        alarms += 1
                        print(f"alarm: {finding.kind} at {finding.start} of message {count}")
        print(f"{alarms} of {count} messages refused\n")

    plain = (_WORDS * (options.size // len(_WORDS) + 1))[: options.size]
    base = nanoseconds_per_byte(plain, options.rounds)
    print(f"{'plain prose':16}{base:8.1f} ns/byte")
    ratios = {}
    for name, text in hostile_texts(options.size).items():
        cost = nanoseconds_per_byte(text, options.rounds)
        ratios[name] = cost / base
        print(f"{name:16}{cost:8.1f} ns/byte {ratios[name]:6.2f}x {'found' if find_secret(text) else ''}")
    worst = max(ratios, key=lambda name: ratios[name])
    print(f"\nworst: {worst}, {ratios[worst]:.2f} times plain prose")


if __name__ == "__main__":
    main()
