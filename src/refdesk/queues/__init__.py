"""Job queues, which announce work between processes: one module or folder each, behind one port."""
