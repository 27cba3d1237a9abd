"""Watching: tells agents the news about what they asked to watch."""
