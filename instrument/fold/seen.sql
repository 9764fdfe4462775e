-- The events that can be judged, amended: all but those in a stretch where records were lost.
--
--   event   BIGINT   writer << 40 | seq
--   depth   INTEGER  logical: tokens in the state, and inputs in its replay ring
CREATE OR REPLACE TEMP TABLE amendments AS
SELECT writer, amends,
       arg_max(request, seq) AS request, arg_max(slot, seq) AS slot,
       arg_max(src_slot, seq) AS src_slot, arg_max(depth_before, seq) AS depth_before,
       arg_max(depth, seq) AS depth, arg_max(label, seq) AS label, arg_max(step, seq) AS step,
       arg_max(accept_len, seq) AS accept_len, arg_max(node, seq) AS node,
       arg_max(digest, seq) AS digest
FROM events
WHERE op = 'amend'
GROUP BY writer, amends;

-- Lives of slots whose allocates and frees were said before their numbers were known. The collector
-- numbers lives by what it has read, and an amend comes too late for it.
CREATE OR REPLACE TEMP TABLE late_lives AS
WITH late AS (
    SELECT DISTINCT process FROM events WHERE op IN ('allocate', 'free') AND slot IS NULL
),
change AS (
    SELECT e.process, e.pool, COALESCE(a.slot, e.slot) AS slot, e."order", e.seq
    FROM events e
    SEMI JOIN late USING (process)
    LEFT JOIN amendments a ON a.writer = e.writer AND a.amends = e.seq
    WHERE e.op IN ('allocate', 'free') AND e.outcome IS DISTINCT FROM 'failed'
)
SELECT process, pool, slot, "order" AS since,
       row_number() OVER (PARTITION BY process, pool, slot ORDER BY "order", seq) AS generation
FROM change
WHERE slot IS NOT NULL;

CREATE OR REPLACE TEMP VIEW amended AS
SELECT (e.writer::BIGINT << 40) | e.seq AS event,
       e.* REPLACE (
           COALESCE(a.request, e.request) AS request,
           COALESCE(a.slot, e.slot) AS slot,
           COALESCE(a.src_slot, e.src_slot) AS src_slot,
           COALESCE(a.depth_before, e.depth_before) AS depth_before,
           -- Whoever goes on from a state takes the inputs of its replay ring along.
           COALESCE(a.depth, e.depth) + COALESCE(e.ring, 0) AS depth,
           COALESCE(a.label, e.label) AS label,
           COALESCE(a.step, e.step) AS step,
           COALESCE(a.accept_len, e.accept_len) AS accept_len,
           COALESCE(a.node, e.node) AS node,
           COALESCE(a.digest, e.digest) AS digest)
FROM events e
LEFT JOIN amendments a ON a.writer = e.writer AND a.amends = e.seq
ANTI JOIN spots s
       ON s.process = e.process
      AND e.position BETWEEN s.first_lost AND s.last_lost;

CREATE OR REPLACE TEMP VIEW seen AS
SELECT e.* REPLACE (
           COALESCE(l.generation, e.generation) AS generation,
           COALESCE(s.generation, e.src_generation) AS src_generation)
FROM amended e
ASOF LEFT JOIN late_lives l
  ON l.process = e.process AND l.pool = e.pool AND l.slot = e.slot AND l.since <= e.position
ASOF LEFT JOIN late_lives s
  ON s.process = e.process AND s.pool = e.pool AND s.slot = e.src_slot AND s.since <= e.position
