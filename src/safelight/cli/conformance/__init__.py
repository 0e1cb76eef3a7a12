"""The conformance suite: one set of cases for every upstream, run against the lab's dialect of it."""
