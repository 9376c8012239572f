"""Secrets of authenticator apps and seeds of recovery codes are encrypted where they lie."""

from django.db import migrations

from memoryhub.sealing import Unsealable, seal, unseal
from workspaces.accounts.two_factor import rewrite_secrets


def seal_once(text: str) -> str:
    """One that is sealed stays: a migration that was cut off goes on where it was."""
    try:
        unseal(text)
    except Unsealable:
        return seal(text)
    return text


def forwards(apps, schema_editor):
    rewrite_secrets(apps.get_model("mfa", "Authenticator").objects.all(), seal_once)


def backwards(apps, schema_editor):
    rewrite_secrets(apps.get_model("mfa", "Authenticator").objects.all(), unseal)


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0009_connections"),
        ("mfa", "0003_authenticator_type_uniq"),
    ]

    operations = [migrations.RunPython(forwards, backwards, elidable=True)]
