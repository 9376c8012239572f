"""Backup and restore: one file with the database, the stored files and, under a passphrase, the keys."""
