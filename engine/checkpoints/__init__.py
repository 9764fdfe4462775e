"""When a state is saved, and when it may be given to the tree. One strategy a file."""
