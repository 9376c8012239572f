"""The only place that talks to a language or embedding model.

Callers import the contract from `base`, the failures from `errors` and the configured models from `registry`;
no type of a vendor's library leaves this package.
"""
