"""Private words and sentence forms that the project does not use, each with what to write instead.

``python -m tests.style FILE`` checks a commit message, as .pre-commit-config.yaml does before each commit.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Words with one meaning in this project's former language. Everyday words that it also used (place, room, ask) are
# left to a reader.
WORDS = {
    r"doors?": "view, endpoint, page",
    r"rooms|halls?|wings?": "module, package",
    r"hurry|hurries|hurried": "enqueue",
    r"tickets?|lanes?": "slot",
    r"givers?": "previous_key_owner",
    r"holders?": "key_owner",
    r"payers?": "billed_user",
    r"sureness": "relevance_score",
    r"delicate": "sensitive",
    r"crowds?": "limiter",
    r"anew": "again",
    r"seldom": "rarely",
    r"meanwhile": "while, in the meantime",
    r"thereby": "so that",
    r"whoever": "anyone who",
    r"whatever": "any, everything",
}
# In code alone: docs tell people things.
PHRASES = {r"(?:is|are|was|were|be|been|being) (?:said|told|asked|heard)": "set, return, request, receive"}
# A docstring's first line begins with a verb (functions) or a noun phrase (classes, modules).
NO_BEGINNING = re.compile(
    r"(?:What|Who|Whose|Whom|Where|How|Of|That|Which|When|Whoever|Whatever|Nobody|One|Those|These)\b"
)
# Variables that do not say what they hold: memories, a reply, a count.
VAGUE = {"found", "asked", "made", "kept", "given", "said", "taken"}
COMMENT = re.compile(r"(?:^\s*|  )# .*")  # tokenize would take ten times as long
LONGEST_SUBJECT = 72


def private_words(text: str, *, code: bool = True) -> Iterator[str]:
    patterns = {**WORDS, **(PHRASES if code else {})}
    for match in re.finditer(rf"\b(?:{'|'.join(patterns)})\b", text, re.IGNORECASE):
        (instead,) = [patterns[each] for each in patterns if re.fullmatch(each, match[0], re.IGNORECASE)]
        yield f"“{match[0]}”: {instead}"


def faults_of_code(path: Path) -> Iterator[str]:
    """Yield each private word in a comment or docstring, and each docstring without a noun or verb at its beginning."""
    text = path.read_text()
    name = path.relative_to(ROOT).as_posix()
    for number, line in enumerate(text.splitlines(), start=1):
        if comment := COMMENT.search(line):
            yield from (f"{name}:{number}: {fault}" for fault in private_words(comment[0]))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node) or ""
            at = 1 if isinstance(node, ast.Module) else node.lineno
            yield from (f"{name}:{at}: {fault}" for fault in private_words(docstring))
            if NO_BEGINNING.match(docstring):
                yield f"{name}:{at}: begins with “{docstring.split()[0]}”"


def vague_variables(path: Path) -> Iterator[str]:
    """Yield each local variable of a function that is named by one of the words VAGUE."""
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in VAGUE:
                    yield f"{path.relative_to(ROOT).as_posix()}:{node.lineno}: {node.id}"


def faults_of_message(text: str) -> Iterator[str]:
    """Faults of a commit message, whose comments are lines that begin with #."""
    lines = [
        line
        for line in text.split("\n# ------------------------ >8")[0].splitlines()
        if not line.startswith("#")
    ]
    subject = lines[0] if lines else ""
    if len(subject) > LONGEST_SUBJECT:
        yield f"the subject has {len(subject)} characters, {LONGEST_SUBJECT} at most"
    if subject.endswith("."):
        yield "the subject ends with a full stop"
    if len(lines) > 1 and lines[1].strip():
        yield "the second line is not empty"
    if re.match(r"\w+(?:ed|ing)\b|[a-z]", subject) and not re.match(
        r"(?:Embed|Feed|Need|Seed|Speed|Bring)\b", subject
    ):
        yield "the subject begins with a verb in the imperative (“Fix”, not “fixed” or “Fixing”)"
    yield from private_words("\n".join(lines))


def main(path: str) -> int:
    faults = list(faults_of_message(Path(path).read_text()))
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
