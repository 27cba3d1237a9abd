"""Language models, which turn conversations into skills, behind the port `Inducer`."""
