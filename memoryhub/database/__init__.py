"""Access to every table: connections, prepared statements, counts, and failures as errors with a sentence."""
