"""The proof: layers that try to lose a task, pay it twice, or let a stranger in. `make prove` runs them all."""
