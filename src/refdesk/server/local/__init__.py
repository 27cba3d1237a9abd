"""A desk of this machine: serves the clients that share a data folder and settings over a local socket.

This is the server's side of what `refdesk.forwarder` describes. `__main__` is the process that forwarders start.
"""
