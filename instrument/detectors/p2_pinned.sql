-- id: P2
-- name: pinned
-- severity: capacity
-- invariant: a running request pins no more slots than its strategy plans for it, and two more
--   while it changes a checkpoint for a new slot and waits for a crossing.
-- needs: allocate, free, donate, insert, evict, request.end
-- evidence: the allocate by which the request came to hold one slot too many.
-- example: r7+ r7+live1 r7+keep2 r7+keep3 r7+keep4 r7+keep5 r7+keep6
-- false positives: none known.
-- rule: the plan is the process's note `slots_per_request`; without one it is that of two track
--   slots (extra_buffer), 3.
-- explains: P2 request, D10 request
WITH planned AS (
    SELECT process, arg_max(value, time_ns)::INTEGER + 2 AS slots_max
    FROM notes
    WHERE key IN ('engine.slots_per_request', 'sglang.slots_per_request')
    GROUP BY process
),
change AS (
    SELECT process, pool, slot, generation, request, forward, position, time_ns, event, line,
           request AS holder, 1 AS more
    FROM fold
    WHERE op = 'allocate' AND slot > 0 AND request IS NOT NULL
    UNION ALL
    SELECT process, pool, slot, generation, request, forward, position, time_ns, event, line,
           owner_was, -1
    FROM fold
    WHERE (op = 'free' OR gives) AND owner_was IS NOT NULL
),
held AS (
    SELECT *, sum(more) OVER (PARTITION BY process, pool, holder ORDER BY position, event
                              ROWS UNBOUNDED PRECEDING) AS slots
    FROM change
)
SELECT h.process, h.pool, h.slot, h.generation, h.holder AS request, h.forward, h.position,
       h.time_ns, [h.event] AS witness,
       format('Let a request pin {} slots at most; however, by {} {} has {}: slots that cached '
              || 'prefixes could use lie with it, a contradiction.',
              COALESCE(p.slots_max, 5), act_name('allocate', NULL, NULL, h.event),
              request_name(h.process, h.holder), h.slots) AS because
FROM held h
ANTI JOIN doubts d ON d.process = h.process AND d.since <= h.position
LEFT JOIN planned p USING (process)
WHERE h.more > 0
  AND h.slots > COALESCE(p.slots_max, 5)
