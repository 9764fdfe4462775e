-- Every event of one process, placed where it takes effect. The other questions read it as `acts`.
--
-- x is what the horizontal axis shows: seconds since $zero, or the position in the process's order.
-- A device act takes effect at the launch of its forward and may go on until done_x, so it is drawn
-- there, however late the host said it. done_x is null while the forward is under way.
-- process, zero: which process; the monotonic nanoseconds at which the axis begins.
WITH flight AS (
    SELECT forward,
           any_value(kind) AS kind,
           min(time_ns)  FILTER (op = 'forward.launch') AS launch_ns,
           min("order")  FILTER (op = 'forward.done')   AS done,
           min(time_ns)  FILTER (op = 'forward.done')   AS done_ns
    FROM events
    WHERE process = $process
      AND op IN ('forward.launch', 'forward.done')
    GROUP BY forward
)
SELECT e.* REPLACE (
           coalesce(e.kind, f.kind) AS kind,
           -- A result names the launch that it belongs to, but it is read where it is said.
           CASE WHEN e.op = 'forward.done' THEN e."order" ELSE e.position END AS position
       ),
       r.request_id,
       e.writer::BIGINT << 40 | e.seq AS event,
       CASE WHEN $axis = 'time'
            THEN (CASE WHEN e.op = 'forward.done' THEN e.time_ns
                       ELSE coalesce(f.launch_ns, e.time_ns) END - $zero) / 1e9
            WHEN e.op = 'forward.done' THEN e."order"::DOUBLE
            ELSE e.position::DOUBLE END AS x,
       CASE WHEN $axis = 'time' THEN (f.done_ns - $zero) / 1e9
            ELSE f.done::DOUBLE END AS done_x
FROM events AS e
LEFT JOIN flight AS f ON f.forward = e.forward AND e.launch IS NOT NULL
LEFT JOIN requests AS r ON r.process = e.process AND r.request = e.request
WHERE e.process = $process
