"""Stand-ins for what is slow, costs money or must fail on demand; contract tests hold them to the real."""
