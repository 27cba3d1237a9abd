"""What the desk does not know: unanswered questions, grouped, until something answers them."""
