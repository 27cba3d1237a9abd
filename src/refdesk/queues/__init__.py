"""How processes tell each other what is to be done: one module or folder each, behind one port."""
