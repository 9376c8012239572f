"""What was made once for a file of tests, as each of them finds it, whatever those before did to rows in memory."""

from __future__ import annotations

import pickle
from typing import TypeVar

T = TypeVar("T")


def copied(made: T) -> T:
    """A copy of all of it, ten times as fast as ``copy.deepcopy``: thousands of tests begin with one."""
    return pickle.loads(pickle.dumps(made))
