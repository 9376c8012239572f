"""Monitoring of an installation: metrics, logs, traces, and the origin of requests."""
