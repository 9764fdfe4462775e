-- One row per (event, slot that it touches), in the order in which acts take effect on the slot.
--
-- A restore and a copy touch two slots: `reads` is true in the row of the slot that they read. The
-- pad slot is left out, as everybody may write it, but not its allocate or free: these are faults.
-- Where records were lost, each slot of the process gets a row without op: it is unknown by then.
--
-- Two facts change as rows go by. Each is one integer, `line << 31 | value` of the row that set it,
-- so that the latest is the greatest, and a running maximum carries it at a tenth of the price of
-- last_value(... IGNORE NULLS) (1 M rows on 2 cores: 0.1 s against 2 s). The maximum runs over all
-- rows, slot after slot, and needs no partitions, since the first row of a slot sets both facts.
-- `written` stands before the sort, as a long IN is a join, and behind one DuckDB no longer streams
-- windows: it would collect all rows once more.
--   holder_was  value: the request that has the slot, or one of `holder_*` in macros.sql
--   wrote_was   value: the depth that the last write of the lease left, or one of `wrote_*`
CREATE OR REPLACE TEMP TABLE touches AS
WITH act AS (
    SELECT event, process, pool, slot, generation, FALSE AS reads, op, role, outcome, request,
           forward, stream, position, "order", time_ns, depth_before, depth, label, grid, node
    FROM seen
    WHERE (slot > 0 OR op IN ('allocate', 'free'))
      AND op NOT IN ('verify.plan', 'split', 'lock', 'unlock', 'amend')
    UNION ALL
    SELECT event, process, pool, src_slot, src_generation, TRUE, op, role, outcome, request,
           forward, stream, position, "order", time_ns, depth_before, depth, label, grid, node
    FROM seen
    WHERE src_slot > 0
      AND op IN ('restore', 'copy')
    UNION ALL
    SELECT NULL, s.process, t.pool, t.slot, NULL, FALSE, NULL, NULL, NULL, NULL,
           NULL, NULL, s.last_lost, s.last_lost, NULL, NULL, NULL, NULL, NULL, NULL
    FROM spots s
    JOIN (SELECT DISTINCT process, pool, slot FROM events WHERE slot > 0) t USING (process)
),
written AS (
    SELECT *,
           op IN ('clear', 'restore', 'advance', 'scatter', 'copy', 'load_back', 'transfer.receive')
               AND NOT reads
               AND (outcome IS NULL OR outcome NOT IN ('failed', 'suppressed')) AS writes
    FROM act
),
ordered AS (
    -- Events of one record are numbered on. A record reads a slot before it writes it.
    FROM written ORDER BY process, pool, slot, position, "order", event, reads DESC
),
numbered AS (
    SELECT *,
           row_number() OVER () AS line,
           lag(slot) OVER () IS DISTINCT FROM slot
               OR lag(pool) OVER () IS DISTINCT FROM pool
               OR lag(process) OVER () IS DISTINCT FROM process AS heads
    FROM ordered
),
marked AS (
    SELECT *,
           CASE WHEN op = 'allocate' THEN COALESCE(request, holder_nobody())
                WHEN op = 'free' THEN holder_free()
                WHEN op IN ('donate', 'insert')
                     AND (outcome IS NULL OR outcome NOT IN ('failed', 'suppressed', 'exists'))
                THEN holder_tree()
                WHEN op = 'evict' THEN holder_nobody()
                WHEN op IS NULL THEN holder_unknown()
                WHEN heads THEN holder_free() END AS holds,
           CASE WHEN writes THEN COALESCE(depth, wrote_unknown())
                WHEN op = 'allocate' THEN wrote_nothing()
                WHEN op IS NULL THEN wrote_unknown()
                WHEN heads THEN wrote_nothing() END AS leaves
    FROM numbered
),
carried AS (
    SELECT * EXCLUDE (leaves),
           max((line << 31) | holds) OVER sofar AS holder_is,
           max((line << 31) | leaves) OVER sofar AS wrote_is
    FROM marked
    WINDOW sofar AS (ROWS UNBOUNDED PRECEDING)
)
SELECT * EXCLUDE (holds, holder_is, wrote_is, heads),
       COALESCE(holds = holder_tree(), FALSE) AS gives,
       CASE WHEN heads THEN holder_free() ELSE lag(holder_is) OVER () END AS holder_was,
       CASE WHEN heads THEN wrote_nothing() ELSE lag(wrote_is) OVER () END AS wrote_was
FROM carried
