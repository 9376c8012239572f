"""``/mcp`` and ``manage.py mcp``: the Model Context Protocol, by which programs add the memory of one workspace."""
