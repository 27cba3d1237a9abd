"""The forwarder: carries a client's messages to the one desk of its data folder and settings, and starts that desk.

Clients start one for every window and task, so it imports nothing but small modules of the standard library.
"""
