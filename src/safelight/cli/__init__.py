"""The command line: thin commands, one group a file."""
