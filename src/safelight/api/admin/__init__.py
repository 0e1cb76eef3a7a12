"""The operator's door: what waits for a person, what was found, and who did what."""
