"""A rehearsal of what can go wrong: load, faults, and the books of both sides afterwards."""
