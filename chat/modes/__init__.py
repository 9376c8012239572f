"""Modes of answers: ``base`` is their base class, ``registry`` lists them."""
