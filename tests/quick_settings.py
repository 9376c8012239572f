"""The product's settings with a quick password hash, for installations whose tests sign up often."""

from memoryhub.settings import *  # noqa: F403  all of them

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
