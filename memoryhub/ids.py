"""Public ids: a prefix and 24 random alphanumeric characters, independent of the database key."""

import re
import secrets
import string
from functools import partial
from typing import Any

from django.db import models

ALPHABET = string.ascii_letters + string.digits
LENGTH = 24
PATTERN = re.compile(r"[a-z]{2,5}_[A-Za-z0-9]{24}")


def new_id(prefix: str) -> str:
    """Return a new public id such as ``mem_4fK…`` (24 characters of 62: about 143 bits)."""
    return prefix + "_" + "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


class PublicIdField(models.CharField):
    """A unique public id with ``prefix``, generated when an instance is created."""

    def __init__(self, *args: Any, prefix: str = "", **kwargs: Any) -> None:
        self.prefix = prefix
        kwargs.update(max_length=32, unique=True, editable=False, default=partial(new_id, prefix))
        super().__init__(*args, **kwargs)

    def deconstruct(self) -> tuple[str, str, Any, Any]:
        name, path, args, kwargs = super().deconstruct()
        for implied in ("max_length", "unique", "editable", "default"):
            kwargs.pop(implied, None)
        return name, path, args, {**kwargs, "prefix": self.prefix}
