"""``/v1``: the OpenAI and Anthropic APIs for client programs, with the memory of one workspace."""
