"""Mine finished turns for new memories: by a model, or by rules where the model is too small."""
