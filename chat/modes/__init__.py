"""Modes of answers: ``mode`` is their base, ``registry`` lists them."""
