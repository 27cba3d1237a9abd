"""Job queues, which announce work between processes: one module or folder for each queue, behind one port."""
