"""Files that users upload: the storages, and the database rows that refer to each file."""
