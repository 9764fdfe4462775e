"""How the bundled model was made: `python -m slotscope.engine.bundled.make.train OUT`."""
