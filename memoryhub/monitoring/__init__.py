"""Monitoring of a running installation: health, counters, logs, traces."""
