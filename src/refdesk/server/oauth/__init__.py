"""OAuth 2.1 access tokens, issued by the authorization server that the operator configures and validated here.

refdesk is the resource server of RFC 9728 and of the MCP authorization specification; it never sees a password, makes
no token, passes none on and keeps none. While no issuer is named, only `configuration` is imported of this package.
"""
