"""The embedded default: Postgres, a small language model and the supervisor that runs all. No Django here."""
