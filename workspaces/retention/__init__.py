"""How long things are kept: owners' rules for a workspace, the operator's for all, and what goes by them."""
