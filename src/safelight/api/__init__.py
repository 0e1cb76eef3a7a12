"""The door for programs: one resource a file, all over HTTP."""
