"""Modes of answers, listed in ``registry``."""
