"""Static files as they are served: hashed, compressed, and a page's many sheets and scripts as one of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import Storage
from whitenoise.storage import CompressedManifestStaticFilesStorage

_SHEET = re.compile(r'^@import "([\w.-]+\.css)";$', re.M)
_SCRIPT = re.compile(r'^import "\./([\w.-]+\.js)";$', re.M)


class OneFileStorage(CompressedManifestStaticFilesStorage):
    """A sheet or script that imports others of its folder has them in it: one request in the place of twelve.

    Of a script each becomes a block, in which its names stay its own, as they are in a module: none exports anything.
    Without collecting, as developers have it, the browser follows the imports itself.
    """

    def post_process(
        self, paths: dict[str, tuple[Storage, str]], dry_run: bool = False, **options: Any
    ) -> Iterator[Any]:
        for name, (source, path) in list(paths.items()) if not dry_run else ():
            folder = PurePosixPath(name).parent

            def read(imported: str, folder: PurePosixPath = folder) -> str:
                return _read(*paths[str(folder / imported)])

            if name.endswith((".css", ".js")):
                text = _read(source, path)
                whole = with_imports(text, read)
                if whole != text:
                    self.delete(name)
                    self._save(name, ContentFile(whole.encode()))
                    paths[name] = (self, name)
        yield from super().post_process(paths, dry_run, **options)


def with_imports(text: str, read: Callable[[str], str]) -> str:
    """The text with what its lines import in their place."""
    text = _SHEET.sub(lambda found: read(found[1]), text)
    return _SCRIPT.sub(lambda found: f"{{\n{read(found[1])}\n}}", text)


def _read(storage: Storage, path: str) -> str:
    with storage.open(path) as file:
        return str(file.read().decode())
