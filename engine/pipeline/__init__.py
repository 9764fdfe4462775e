"""Pipeline stages: a model's layers cut into parts, and micro-batches that follow one another."""
