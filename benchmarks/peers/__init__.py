"""refdesk beside installed rivals: the same work through their own doors, in turns, in one run."""
