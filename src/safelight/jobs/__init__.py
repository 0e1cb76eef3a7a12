"""Who does it: queue lanes and loops; no rules of its own."""
