"""Knowledge in and out of refdesk: one module per format, and the plan that an import is judged by. No file is touched
here; `source.py` reads and writes them."""
