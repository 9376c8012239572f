"""The embedded default: Postgres, a small language model and the supervisor that runs everything. No Django here."""
