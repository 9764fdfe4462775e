-- One row per (event, slot that it touches), in the order in which acts take effect on the slot.
--
-- A restore and a copy touch two slots: `reads` is true in the row of the slot that they read. The
-- pad slot is left out, as everybody may write it, but not its allocate or free, which are faults.
-- Where records were lost, each slot of the process gets a row `lost`: what it held is unknown then.
--
-- Two facts change as rows go by. Each is one integer, number of the row that set it << 31 | value,
-- so that the latest is simply the greatest, and a running maximum carries it at a tenth of the
-- price of last_value(... IGNORE NULLS) (1 M rows on 2 cores: 0.1 s against 2 s). The maximum runs
-- over all rows, slot after slot, and needs no partitions, since the first row of a slot sets both.
--   holder  value: a request, or one of `holder_*` below
--   wrote   value: the depth that the last write of the lease left, or one of `wrote_*`
CREATE OR REPLACE TEMP TABLE touches AS
WITH act AS (
    SELECT event, process, pool, slot, generation, FALSE AS reads, op, role, outcome, request,
           forward, stream, position, "order", seq, time_ns, depth_before, depth, label, grid, node, accept_len
    FROM seen
    WHERE (slot > 0 OR op IN ('allocate', 'free'))
      AND op NOT IN ('verify.plan', 'split', 'lock', 'unlock', 'amend')
    UNION ALL
    SELECT event, process, pool, src_slot, src_generation, TRUE, op, role, outcome, request,
           forward, stream, position, "order", seq, time_ns, depth_before, depth, label, grid, node, accept_len
    FROM seen
    WHERE src_slot > 0
      AND op IN ('restore', 'copy')
    UNION ALL
    SELECT NULL, s.process, t.pool, t.slot, NULL, FALSE, 'lost', NULL, NULL, NULL,
           NULL, NULL, s.last_lost, s.last_lost, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM spots s
    JOIN (SELECT DISTINCT process, pool, slot FROM events WHERE slot > 0) t USING (process)
),
ordered AS (
    -- In one forward, a slot is read before it is written by the same record.
    FROM act ORDER BY process, pool, slot, position, "order", seq, reads DESC
),
numbered AS (
    SELECT * EXCLUDE (seq),
           row_number() OVER () AS line,
           lag((process, pool, slot)) OVER () IS DISTINCT FROM (process, pool, slot) AS heads,
           NOT reads AND op IN ('clear', 'restore', 'advance', 'scatter', 'copy', 'load_back',
                                'transfer.receive')
               AND COALESCE(outcome, 'ok') NOT IN ('failed', 'suppressed') AS writes,
           op IN ('donate', 'insert')
               AND COALESCE(outcome, 'ok') NOT IN ('failed', 'suppressed', 'exists') AS gives
    FROM ordered
),
marked AS (
    SELECT *,
           CASE WHEN op = 'allocate' OR op = 'lost' OR heads THEN line END AS begins,
           CASE WHEN op = 'allocate' THEN COALESCE(request, holder_nobody())
                WHEN op = 'free' THEN holder_free()
                WHEN gives THEN holder_tree()
                WHEN op = 'evict' THEN holder_nobody()
                WHEN op = 'lost' THEN holder_unknown()
                WHEN heads THEN holder_free() END AS holds,
           CASE WHEN op = 'allocate' THEN wrote_nothing()
                WHEN writes THEN COALESCE(depth, wrote_unknown())
                WHEN op = 'lost' THEN wrote_unknown()
                WHEN heads THEN wrote_nothing() END AS leaves
    FROM numbered
),
carried AS (
    SELECT * EXCLUDE (begins, holds, leaves),
           max(begins) OVER sofar AS lease,
           max((line << 31) | holds) OVER sofar AS holder,
           max((line << 31) | leaves) OVER sofar AS wrote
    FROM marked
    WINDOW sofar AS (ROWS UNBOUNDED PRECEDING)
)
SELECT * EXCLUDE (holder, wrote, heads),
       holder AS holder_is,
       wrote AS wrote_is,
       CASE WHEN heads THEN holder_free() ELSE lag(holder) OVER () END AS holder_was,
       CASE WHEN heads THEN wrote_nothing() ELSE lag(wrote) OVER () END AS wrote_was
FROM carried
