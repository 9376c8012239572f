"""Template tags of the sign-in pages."""

from __future__ import annotations

from django import template

from workspaces.accounts import sign_in, two_factor

register = template.Library()
register.simple_tag(sign_in.are_asked_for, name="passwords_are_asked_for")
register.filter("has_to_set_up_two_factor", two_factor.is_required_of)
