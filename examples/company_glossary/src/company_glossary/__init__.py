"""A company's glossary: what its words mean."""
