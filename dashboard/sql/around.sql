-- The life of one slot around the witness events of a finding, for a picture of a few dozen acts.
--
-- Acts on the slot, and the launch and result of each forward that writes to it, numbered by `turn`.
-- Only turns within $reach of a witness stay; turns are then counted anew, so that the picture shows
-- order and not time. `depth` is the depth of the state after the act, carried forward.
-- The leases that the witness names are told; all of them where it names none.
WITH lease AS (
    SELECT DISTINCT generation
    FROM acts
    WHERE list_contains($events, event)
      AND pool = $pool
      AND slot = $slot
),
own AS (
    SELECT *
    FROM acts
    WHERE pool = $pool
      AND (slot = $slot OR src_slot = $slot)
      AND (NOT EXISTS (FROM lease)
           OR CASE WHEN slot = $slot THEN generation ELSE src_generation END IN (FROM lease))
),
flight AS (
    SELECT DISTINCT forward FROM own WHERE forward IS NOT NULL
),
life AS (
    SELECT * FROM own
    UNION
    SELECT * FROM acts
    WHERE op IN ('forward.launch', 'forward.done')
      AND forward IN (SELECT forward FROM flight)
),
turned AS (
    SELECT event, position, "order", seq, op, kind, role, outcome, slot, src_slot, generation,
           request, request_id, forward, launch, label, node, depth AS said_depth,
           -- A new lease begins with no depth: -1 stands for that while it is carried.
           nullif(last_value(CASE WHEN slot <> $slot THEN NULL
                                  WHEN op = 'allocate' THEN -1
                                  WHEN op IN ('clear', 'restore', 'advance', 'scatter', 'copy',
                                              'load_back', 'transfer.receive') THEN depth
                             END IGNORE NULLS) OVER turns, -1) AS state_depth,
           row_number() OVER turns AS turn,
           list_contains($events, event) AS witness
    FROM life
    WINDOW turns AS (ORDER BY position, "order", seq)
),
near AS (
    SELECT DISTINCT t.*
    FROM turned AS t
    JOIN turned AS w ON w.witness AND abs(t.turn - w.turn) <= $reach
)
SELECT * REPLACE (row_number() OVER (ORDER BY turn) AS turn)
FROM near
ORDER BY turn
LIMIT $limit
