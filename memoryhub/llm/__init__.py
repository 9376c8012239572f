"""The only package that calls language and embedding models.

Callers import the interface from `base`, the errors from `errors` and the configured models from `registry`. No type of
a vendor's library leaves this package.
"""
