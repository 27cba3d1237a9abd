"""refdesk: the reference desk for AI agents."""

import os

__version__ = "0.1.0"

# Turns off the usage reporting of dependencies before any of them can be imported: ONNX Runtime's wheels report by
# default, and decide once for the life of the process.
os.environ.update(dict.fromkeys(("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY", "DO_NOT_TRACK"), "1"))
