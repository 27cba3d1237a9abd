"""Factories: build the implementations that the settings select. Nothing else is imported."""
