"""Limits that keep one caller from crowding out the others: on connections, sessions and rates."""
