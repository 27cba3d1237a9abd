"""Which of the implementations do the settings choose? What is not chosen is not imported."""
