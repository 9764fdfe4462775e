-- Who has each slot from when on: one row per act by which a slot gets another owner, or another
-- role to the same one, in the order of docs/events.md.
--
-- `role` is what the slot is from then on: live, keep, spare or scratch of `request`, node where the
-- tree has it (`node` says which, once that is known); null where nobody has it. What came to
-- nothing, such as a donate of a state that the node had already, changes no owner.
CREATE VIEW ownership AS
WITH said AS (
    SELECT process, pool, slot, generation, position, "order", seq, time_ns, op,
           CASE WHEN op IN ('donate', 'insert') THEN 'node'
                WHEN op = 'allocate' THEN role::VARCHAR END AS role,
           CASE WHEN op = 'allocate' THEN request END AS request,
           CASE WHEN op IN ('donate', 'insert') THEN node END AS node
    FROM events
    WHERE op IN ('allocate', 'free', 'donate', 'insert', 'evict')
      AND slot IS NOT NULL
      AND coalesce(outcome, 'ok') NOT IN ('suppressed', 'failed', 'exists')
    UNION ALL
    SELECT process, pool, slot, generation, position, "order", seq, time_ns, op,
           'keep', request, NULL
    FROM events
    WHERE op = 'swap' AND slot IS NOT NULL
    UNION ALL
    -- The slot that a swap names as the old keep is the spare from then on.
    SELECT process, pool, src_slot, src_generation, position, "order", seq, time_ns, op,
           'spare', request, NULL
    FROM events
    WHERE op = 'swap' AND src_slot IS NOT NULL
)
SELECT *
FROM said
-- A slot that the tree has, or nobody, is not taken by a late swap.
WINDOW life AS (PARTITION BY process, pool, slot ORDER BY position, "order", seq)
QUALIFY op <> 'swap' OR coalesce(lag(role) OVER life, 'node') <> 'node';
