"""What toolsets share: parts that each of them would otherwise write again."""
