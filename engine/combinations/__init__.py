"""Which features go together, proved cell by cell: `python -m slotscope.engine.combinations`."""
