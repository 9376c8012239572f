"""For the page of signing in."""

from __future__ import annotations

from django import template

from workspaces.accounts import passwords

register = template.Library()
register.simple_tag(passwords.are_asked_for, name="passwords_are_asked_for")
