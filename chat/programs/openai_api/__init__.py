"""``/v1``: the API that most programs speak to a model, with the memory of one workspace behind it."""
