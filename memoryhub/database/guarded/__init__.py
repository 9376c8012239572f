"""The database backend with row security: every statement of a person runs as a role that sees their rows alone."""
