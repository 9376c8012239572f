"""What a run may cost, and what it has cost so far."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from memoryhub.kept import kept

CONCLUDE_AT = 0.9  # of the tokens: from here on a step may only finish
SPENT = {
    "tokens": kept("The run has used up its tokens."),
    "rounds": kept("The run has used up its replies of the model."),
    "minutes": kept("The run has used up its time."),
}


@dataclass(frozen=True)
class Limits:
    """``rounds`` are replies of the model, of the whole run; ``step_rounds`` those of one step."""

    rounds: int = 200
    tokens: int = 400_000
    minutes: int = 60
    step_rounds: int = 16


@dataclass(frozen=True)
class Used:
    rounds: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def more(self, tokens_in: int, tokens_out: int) -> Used:
        """With one reply of the model."""
        return Used(self.rounds + 1, self.tokens_in + tokens_in, self.tokens_out + tokens_out)


@dataclass
class Budget:
    """Shared by the steps of a run. ``is_over_time``: its minutes are up."""

    limits: Limits = Limits()
    used: Used = Used()
    is_over_time: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def spend(self, tokens_in: int, tokens_out: int) -> None:
        """One reply of the model."""
        with self._lock:
            self.used = self.used.more(tokens_in, tokens_out)

    @property
    def is_nearly_spent(self) -> bool:
        return self.used.tokens > CONCLUDE_AT * self.limits.tokens

    @property
    def what_is_spent(self) -> str:
        """Which part of the budget is used up, in a word; empty while something of each is left."""
        if self.used.tokens >= self.limits.tokens:
            return "tokens"
        if self.used.rounds >= self.limits.rounds:
            return "rounds"
        return "minutes" if self.is_over_time else ""
