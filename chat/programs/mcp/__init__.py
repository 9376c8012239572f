"""``/mcp`` and ``manage.py mcp``: the Model Context Protocol, through which programs use the memory of one
workspace.
"""
