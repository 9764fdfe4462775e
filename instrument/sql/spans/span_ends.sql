-- When a process was last heard of: where a span that is still open is drawn to.
CREATE OR REPLACE VIEW span_ends AS
SELECT process, max(time_ns) AS last_ns
FROM events
GROUP BY process;
