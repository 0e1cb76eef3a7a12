"""The OpenAI-compatible door: the Images API of OpenAI for every model of the catalog."""
