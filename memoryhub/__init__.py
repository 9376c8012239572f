"""The base package below all apps, without user accounts: settings, database, models, files, monitoring, supervisor."""

import os

# Set here because every process imports this package first. Without the variable, onnxruntime sends telemetry about
# this machine as soon as it is loaded, and calling disable_telemetry_events() afterwards is too late.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
