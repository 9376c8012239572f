"""OAuth 2.1: programs that only know our address sign in, and are given what a key gives. The protocol itself is read
by the handlers of the official MCP SDK; what is here is who may have what, and how it ends.
"""
