"""Export: a trace in the file formats of other tools."""
