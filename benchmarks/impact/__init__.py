"""How often impacts and contradictions are right, on pairs that we labelled."""
