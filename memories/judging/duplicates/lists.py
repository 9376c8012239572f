"""Word lists written as plain text."""


def word_list(text: str) -> list[str]:
    return text.split()


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def groups(text: str) -> dict[str, str]:
    """Map every word of every line to the first word of its line."""
    return {word: line.split()[0] for line in text.strip().splitlines() for word in line.split()}
