"""Files that people bring: where they lie, and that a row tells of each."""
