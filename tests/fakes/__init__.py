"""Fakes for services that are slow, cost money or must fail on demand; contract tests verify them."""
