"""What keeps one caller from taking the server away from the others: connections, sessions and rates."""
