"""What happens: one verb a file, in the order of a task's life."""
