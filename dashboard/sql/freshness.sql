-- How far the reading reaches: the state of the trace's processes, and the wall-clock time of the
-- last event. A trace with a running process may still grow; a crash outweighs an orderly stop.
WITH last AS (
    SELECT process, max(time_ns) AS time_ns
    FROM events
    GROUP BY process
)
SELECT (SELECT CASE WHEN bool_or(state = 'running') THEN 'running'
                    WHEN bool_or(state = 'crashed') THEN 'crashed'
                    ELSE 'stopped' END
        FROM processes) AS state,
       max(make_timestamp_ns(a.realtime_ns + last.time_ns - a.monotonic_ns)) AS until
FROM last
JOIN (
    SELECT process, arg_max(realtime_ns, monotonic_ns) AS realtime_ns,
           max(monotonic_ns) AS monotonic_ns
    FROM anchors
    GROUP BY process
) AS a USING (process)
