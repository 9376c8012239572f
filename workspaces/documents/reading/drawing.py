"""Pictures: their text by OCR, and as models and pages show them.

Runs where ``formats`` does, on files that nobody vouches for; knows no Django.
"""

from __future__ import annotations

import io
from typing import Any

from workspaces.documents.reading import ocr
from workspaces.documents.reading.block import Block, Blocks, Unreadable, left_out

MOST_PAGES = 5_000
MOST_PIXELS = 64_000_000  # of a picture, and of a page that is drawn for OCR
LONGEST_SHOWN = 1280  # pixels a side of a picture as models and pages show it
FACE, FACE_SIDE = "image/*; of=person", 256  # a picture of which no more than a small square is wanted
PICTURES = ("PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP")  # no other decoder of the library is ever tried


def read_picture(data: bytes) -> Blocks:
    """The text in it; of a TIFF, by its pages. Whole it must be even where there is no OCR: models are shown it."""
    from PIL import ImageOps, ImageSequence

    opened = open_picture(data)
    pages = ImageSequence.Iterator if opened.format == "TIFF" else lambda only: iter([only])
    pixels = 0
    for frame in pages(opened):  # their headers alone
        pixels += frame.width * frame.height
        if frame.width * frame.height > MOST_PIXELS or pixels > MOST_PAGES * 1_000_000:
            raise Unreadable("too_large_unpacked")
    for number, frame in enumerate(pages(opened), 1):
        frame.load()
        if ocr.is_there():
            yield Block(ocr.text_of(ImageOps.exif_transpose(frame)), number)
        else:
            left_out["pages"] += 1


def open_picture(data: bytes) -> Any:
    """With its header read alone."""
    from PIL import Image

    try:
        opened = Image.open(io.BytesIO(data), formats=PICTURES)
    except Image.DecompressionBombError:
        raise Unreadable("too_large_unpacked") from None
    if opened.width * opened.height > MOST_PIXELS:
        raise Unreadable("too_large_unpacked")
    return opened


def draw_picture(data: bytes, *, square: int = 0) -> tuple[bytes, int, int]:
    """The first picture in the file, upright, as a JPEG with its width and height, at most LONGEST_SHOWN a side; or the
    middle of it, ``square`` pixels a side.

    Redrawn: nothing is left of the file's own bytes, of its location and of any other data in it.
    """
    from PIL import Image, ImageOps

    longest = square or LONGEST_SHOWN
    with open_picture(data) as opened:
        opened.draft("RGB", (2 * longest, 2 * longest))  # a JPEG is decoded no larger than is needed
        drawn = ImageOps.exif_transpose(opened)
    if drawn.mode.startswith("I"):  # 16 bits a pixel
        drawn = drawn.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    if drawn.mode in ("1", "P"):
        drawn = drawn.convert("RGBA")
    if square:
        drawn = ImageOps.fit(drawn, (square, square))
    drawn.thumbnail((longest, longest))
    drawn, sheet, out = drawn.convert("RGBA"), Image.new("RGB", drawn.size, "white"), io.BytesIO()
    sheet.paste(drawn, mask=drawn.getchannel("A"))
    sheet.save(out, "JPEG", quality=85)
    return out.getvalue(), *sheet.size
