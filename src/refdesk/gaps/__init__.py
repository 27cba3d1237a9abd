"""What the desk does not know: questions without an answer, grouped, until something answers them."""
