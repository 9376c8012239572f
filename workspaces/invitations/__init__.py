"""Letting people in who may not have an account yet: by a link, which an owner passes on or has sent by mail."""
