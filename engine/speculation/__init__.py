"""Draft, verify, accept, and move a recurrent state by what was accepted."""
