"""SCIM 2.0 (RFC 7643, 7644): the company's directory makes, changes and closes accounts, by a token of the settings."""
