"""Promises that tests elsewhere in the suite already show: each names its test, which must exist."""

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@cache
def tests_in(file: str) -> frozenset[str]:
    """Return the names of a file's tests, ``Class::name`` for those of a class."""
    found = set()
    for node in ast.parse((ROOT / file).read_text()).body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        for each in members:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name.startswith("test_"):
                found.add(f"{node.name}::{each.name}" if isinstance(node, ast.ClassDef) else each.name)
    return frozenset(found)


def is_there(test: str) -> bool:
    file, _colons, name = test.partition("::")
    return (ROOT / file).is_file() and name in tests_in(file)


def without_a_test(shown: Mapping[str, str]) -> list[str]:
    """Return the promises of the table whose test does not exist."""
    return [promise for promise, test in shown.items() if not is_there(test)]
