"""Language models: what turns conversations into skills, each behind the port `LanguageModel`."""
