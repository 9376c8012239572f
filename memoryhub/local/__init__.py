"""The built-in services: Postgres, language models and the supervisor that runs them. Django is not imported here."""
