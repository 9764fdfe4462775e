-- The processes of the trace that said something, the busiest first: who they are, and the span of
-- time and of order that they cover.
WITH said AS (
    SELECT process,
           count(*)          AS events,
           min(time_ns)      AS first_ns,
           max(time_ns)      AS last_ns,
           max("order")      AS positions,
           count(DISTINCT (pool, slot)) FILTER (slot IS NOT NULL) AS slots,
           count(*) FILTER (op = 'request.begin')                 AS requests,
           count(*) FILTER (op = 'forward.launch')                AS forwards
    FROM events
    GROUP BY process
)
SELECT said.*, p.pid, p.state
FROM said
LEFT JOIN processes AS p USING (process)
ORDER BY events DESC, process
