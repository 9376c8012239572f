"""Install a requirements file into this interpreter's environment, saying how far it is.

    python requirements/install.py requirements/base.txt [pip's arguments]

What is installed has the hash that the file names, and is a wheel: installing runs nothing of a package's own. A
failure is one sentence that says what to do; pip's own words go to `install.log` beside the environment.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--require-hashes"]
PIP += ["--only-binary", ":all:", "--progress-bar", "off", "--retries", "2"]
STEP = re.compile(r"^(?:Collecting|Processing|Requirement already satisfied:)")
# What pip says, and what a person is told.
SENTENCES = (
    (
        r"Temporary failure in name resolution|NewConnectionError|No matching distribution|Read timed out|Max retries",
        "The packages could not be downloaded. The first start needs a network (about 320 MB); later ones do not.",
    ),
    (
        r"Read-only file system|Permission denied|Errno 13|Errno 30",
        "{prefix} cannot be written by this user.",
    ),
    (r"No space left on device", "The disk is full. The environment takes about 1 GB."),
    (r"DO NOT MATCH THE HASHES", "A downloaded package is not the one that MemoryHub was released with."),
)


def install(requirements: Path, arguments: list[str]) -> int:
    """Run pip, counting packages on the terminal. Returns its exit status."""
    total = len(
        re.findall(r"^[\w.-]+(?:\[[\w,-]+\])?==", requirements.read_text(encoding="utf-8"), re.MULTILINE)
    )
    words: list[str] = []
    done = 0
    with subprocess.Popen(  # noqa: S603  (pip of this environment)
        [*PIP, "-r", str(requirements), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as pip:
        for line in pip.stdout or ():
            words.append(line)
            if STEP.match(line):
                done = min(done + 1, total)
                _show(f"  {done} of {total} packages looked up or downloaded")
            elif line.startswith("Installing collected packages"):
                _show(f"  {total} packages are being unpacked")
    _show("")
    if pip.returncode:
        said = "".join(words)
        log = Path(sys.prefix).parent / "install.log"
        _write(log, said)
        sentence = next(
            (text for pattern, text in SENTENCES if re.search(pattern, said)), "pip could not install them."
        )
        sys.stderr.write(f"{sentence.format(prefix=sys.prefix)} What pip said: {log}\n")
    return pip.returncode


def _show(text: str) -> None:
    """Draw over the line on a terminal; elsewhere say nothing, the Makefile has said what is done."""
    if sys.stdout.isatty():
        sys.stdout.write(f"\r\033[K{text}")
        sys.stdout.flush()


def _write(log: Path, text: str) -> None:
    try:
        log.write_text(text, encoding="utf-8")
    except OSError:
        sys.stderr.write(text)


if __name__ == "__main__":
    sys.exit(install(Path(sys.argv[1]), sys.argv[2:]))
