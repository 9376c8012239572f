"""Row-level security: which rows of each table a person's statements see, told to Postgres itself (decision 0026)."""
