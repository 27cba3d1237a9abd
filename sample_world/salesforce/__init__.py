"""The invented help desk's articles, and an emulator of the REST API that such articles come from."""

from __future__ import annotations

from sample_world.salesforce.articles import Article, Version, load_articles

__all__ = ["Article", "Version", "load_articles"]
