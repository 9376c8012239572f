"""What an operator types, as the place that it names."""

from __future__ import annotations

from pathlib import Path

from memoryhub.backup.places import SCHEME, BackupError, FilePlace, Place


def place_of(text: str | Path) -> Place:
    """A file or folder, or of ``s3://bucket/folder/`` and ``s3://bucket/folder/one.zip`` what lies there."""
    if not str(text).startswith(SCHEME):
        return FilePlace(Path(text))
    from memoryhub.backup.buckets import BucketPlace  # brings boto3

    bucket, _, key = str(text).removeprefix(SCHEME).partition("/")
    if not bucket:
        raise BackupError(f"{text} names no bucket: it must look like s3://bucket/folder/.")
    return BucketPlace(bucket, key)
