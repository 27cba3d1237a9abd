"""What toolsets have in common: the parts that each of them would otherwise write again."""
