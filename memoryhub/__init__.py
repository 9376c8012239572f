"""The base below all apps, which knows no person: settings, database, models, files, monitoring, supervisor."""

import os

# Every process imports this package first. onnxruntime reads the variable when it is loaded: without it, it sends
# events about this machine to its maker, and disable_telemetry_events() afterwards is too late.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
