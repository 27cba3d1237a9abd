"""Search: what is asked becomes candidates, candidates become a ranked page, and pages of several toolsets one list."""
