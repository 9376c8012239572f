"""Fixtures that serve the application on a real port for the client's tests."""

from tests.chat.programs.conftest import door, people

__all__ = ["door", "people"]
