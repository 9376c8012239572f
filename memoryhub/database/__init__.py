"""What every table is asked through: connections, prepared statements, counts, and failures as errors that say so."""
