"""The module in which Django looks for the backend ``memoryhub.database``."""

from memoryhub.database.replicas import DatabaseWrapper

__all__ = ["DatabaseWrapper"]
