"""The console: pages for people, over the operations that agents have.

Every page is rendered here and works without a script; what it shows is the answer of an operation or a resource, asked
for as the person who looks. Nothing that is stored can run in it: text is escaped, Markdown is cleaned, and the policy
of each page lets no script or style in but the server's own.
"""
