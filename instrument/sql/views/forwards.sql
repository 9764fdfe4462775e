-- One row per forward: what it computed, when it was launched and when its result was read.
--
-- `rows` counts the live states that it moved; `done_ns` and `done_order` are null while it is in
-- flight, or where the trace ends first.
CREATE VIEW forwards AS
SELECT process, forward,
       any_value(kind) FILTER (op = 'forward.launch') AS kind,
       any_value(stream) FILTER (op = 'forward.launch') AS stream,
       any_value(micro_batch) FILTER (op = 'forward.launch') AS micro_batch,
       min("order") FILTER (op = 'forward.launch') AS launch,
       min(time_ns) FILTER (op = 'forward.launch') AS launched_ns,
       min("order") FILTER (op = 'forward.done') AS done_order,
       min(time_ns) FILTER (op = 'forward.done') AS done_ns,
       count(DISTINCT slot) FILTER (op = 'advance' OR (op = 'scatter' AND role = 'live')) AS rows
FROM events
WHERE forward IS NOT NULL
GROUP BY process, forward;
