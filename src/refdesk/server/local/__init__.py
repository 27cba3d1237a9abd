"""The desk of this machine: serves the clients of one data folder and one choice of settings over a local socket.

This side of what `refdesk.forwarder` describes. `__main__` is the process that forwarders start.
"""
