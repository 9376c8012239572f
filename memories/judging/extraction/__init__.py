"""Extraction of memories from finished turns by a model, or by rules if the model is not capable enough."""
