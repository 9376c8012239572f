"""Backup and restore: one file with the database, the stored files and, encrypted with a passphrase, the keys."""
