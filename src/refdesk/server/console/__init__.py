"""The console: pages for people, over the operations that agents have.

Every page is rendered here and works without a script; it shows the answer of an operation or a resource, asked for on
behalf of the visitor. Nothing that is stored can run in it: text is escaped, Markdown is cleaned, and the policy of
each page allows no script or style but the server's own.
"""
