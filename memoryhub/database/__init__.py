"""Database access: connections, replicas, locks, prepared statements, row counts and errors."""
