-- What was lost, and the stretches of each process in which nothing can be judged for that.
--
-- `losses` says of each gap whom it blinds:
--   process, op, count, first_order, last_order   as in `gaps`
--   hides        BOOLEAN   acts around it met another state than the fold can tell: it makes a spot
--   blinds_all   BOOLEAN   no detector can say clean; else those alone can't that need the op
-- A spot hides acts of all ops, so whatever makes one blinds every detector.
CREATE OR REPLACE TEMP TABLE losses AS
SELECT process, op, sum(count)::BIGINT AS count,
       min(first_order) AS first_order, max(last_order) AS last_order,
       -- Damaged bytes don't tell what they were: they may be anything of that process. Which hooks
       -- live is said by facts, so a lost one hides no act, and leaves it open who was heard.
       op IS NULL OR NOT harmless(op) AND op <> 'hook' AS hides,
       op IS NULL OR NOT harmless(op) AS blinds_all
FROM gaps
GROUP BY process, op;

-- A lost record may be an act that takes effect earlier, at the launch of a forward that was still
-- open. So a stretch begins at the first launch whose forward was not settled before the gap; a
-- forward is settled once the process launched or finished another one after its `forward.done`.
--   process     INTEGER
--   first_lost  BIGINT   positions from this one
--   last_lost   BIGINT   to this one
CREATE OR REPLACE TEMP TABLE spots AS
WITH beat AS (
    SELECT process, forward, op, "order",
           lead("order") OVER (PARTITION BY process ORDER BY "order") AS next_order
    FROM events
    WHERE op IN ('forward.launch', 'forward.done')
      AND process IN (SELECT process FROM gaps)
),
flight AS (
    SELECT process, forward,
           min("order") FILTER (op = 'forward.launch') AS launched,
           min(next_order) FILTER (op = 'forward.done') AS settled
    FROM beat
    GROUP BY process, forward
),
hole AS (
    SELECT DISTINCT g.process,
           COALESCE(g.first_order, 0) AS first_order,
           COALESCE(g.last_order, (SELECT max("order") FROM events)) AS last_order
    FROM gaps g
    JOIN losses l ON l.process = g.process AND l.op IS NOT DISTINCT FROM g.op
    WHERE l.hides
)
SELECT h.process,
       COALESCE(min(f.launched), h.first_order) AS first_lost,
       h.last_order AS last_lost
FROM hole h
LEFT JOIN flight f
       ON f.process = h.process
      AND f.launched < h.first_order
      AND COALESCE(f.settled >= h.first_order, TRUE)
GROUP BY h.process, h.first_order, h.last_order
;

-- From where on a process's history has holes, of whatever ops. A detector that counts acts over the
-- whole history, or misses one, argues nothing of what lies behind.
--   process  INTEGER
--   since    BIGINT   position
CREATE OR REPLACE TEMP VIEW doubts AS
SELECT process, min(since) AS since
FROM (
    SELECT process, COALESCE(first_order, 0) AS since FROM losses WHERE op IS DISTINCT FROM 'hook'
    UNION ALL
    SELECT process, first_lost FROM spots
)
GROUP BY process
