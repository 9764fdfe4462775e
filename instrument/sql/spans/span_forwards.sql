-- When a forward was launched, and when the host had read its result.
CREATE OR REPLACE VIEW span_forwards AS
SELECT process, forward,
       min(time_ns) FILTER (op = 'forward.launch') AS launch_ns,
       max(time_ns) FILTER (op = 'forward.done') AS done_ns,
       any_value(kind) AS kind,
       any_value(stream) AS stream,
       any_value(micro_batch) AS micro_batch,
       any_value("order") FILTER (op = 'forward.launch') AS launch
FROM events
WHERE op IN ('forward.launch', 'forward.done')
GROUP BY process, forward;
