"""Language models that a service runs: what they are asked, how their answers are checked, and the services."""
