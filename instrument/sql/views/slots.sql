-- One row per slot that was ever named: its lives, its events, and whose it is at the end.
--
-- `role`, `request` and `node` are those of the latest act that changed the owner; acts on a slot
-- that are said later, or by somebody else, make nobody its owner.
CREATE VIEW slots AS
WITH spoken AS (
    SELECT process, pool, slot,
           max(generation) AS generation,
           count(*) AS events,
           arg_max(depth, (position::HUGEINT << 64) + "order") FILTER (depth IS NOT NULL) AS depth,
           arg_max(op, (position::HUGEINT << 64) + "order") AS last_op,
           max(time_ns) AS last_ns
    FROM events
    WHERE slot IS NOT NULL
    GROUP BY process, pool, slot
),
latest AS (
    SELECT process, pool, slot, role, request, node
    FROM ownership
    QUALIFY row_number() OVER (
        PARTITION BY process, pool, slot ORDER BY position DESC, "order" DESC, seq DESC) = 1
)
SELECT process, pool, slot,
       (generation + 1) // 2 AS leases,
       events,
       if(generation % 2 = 1, 'live', 'free') AS state,
       if(generation % 2 = 1, role, NULL) AS role,
       if(generation % 2 = 1, request, NULL) AS request,
       if(generation % 2 = 1, node, NULL) AS node,
       depth, last_op, last_ns
FROM spoken
LEFT JOIN latest USING (process, pool, slot);
