"""Sealed generations: what `live.duckdb` held, as files that never change again.

`gen-000000.duckdb` holds events sorted by slot, the requests that were named meanwhile, and a copy
of all other tables as they were then, so that a trace goes on from the latest one and its segments
alone. `gen-000000.json`, written last, says that the file beside it is whole.
"""
