"""Watching: tells agents what is new of what they asked to be told of."""
