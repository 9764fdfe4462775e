"""Coldwarm: does a server answer from its cache what it answers without? Asked from outside."""
