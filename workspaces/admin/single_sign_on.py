"""Single sign-on is set by the environment: allauth's pages, of providers with their secrets and of tokens, go."""

from __future__ import annotations

import allauth.socialaccount.admin  # noqa: F401  registers the pages that are taken away here
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django.contrib import admin

admin.site.unregister([SocialApp, SocialToken, SocialAccount])
