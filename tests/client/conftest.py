"""The client's tests talk to the product behind a real port."""

from tests.chat.programs.conftest import door, people

__all__ = ["door", "people"]
