-- The stretches of each process in which records were lost: nothing there can be judged.
--
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
    -- Damaged bytes don't tell what they were: they may be anything of that process.
    SELECT DISTINCT process,
           COALESCE(first_order, 0) AS first_order,
           COALESCE(last_order, (SELECT max("order") FROM events)) AS last_order
    FROM gaps
    WHERE op IS NULL OR op NOT IN ('lock', 'unlock', 'split', 'request.begin')
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
