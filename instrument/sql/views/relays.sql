-- One row per verify and pipeline stage: the result that the stage had for it, and what it did with it.
--
-- `plan_order` is where the stage began to compute the verify. `result_order` is where it had what was
-- accepted: its relay.receive, on the last stage its relay.send. The commit that applies a result is
-- the next one of that stage under the micro-batch of the result; `commit_forward` and
-- `commit_micro_batch` say whose states it moved. `pairing` is
--   right      the result moved the states of its own verify
--   wrong      it moved those of another one
--   rows       the right states were moved, but taken from scratch rows that are not the requests'
--   missing    the forward is done, and this stage has moved nothing by its result
--   open       the result is under way
-- A commit that was refused (`refused`) is paired like one that was made.
CREATE VIEW relays AS
WITH act AS (
    SELECT process, coalesce(pool, 0) AS pool, forward, micro_batch, op, role, request, "row",
           src_row, outcome, "order", time_ns
    FROM events
    WHERE micro_batch IS NOT NULL
      AND op IN ('forward.launch', 'forward.done', 'verify.plan', 'relay.send', 'relay.receive',
                 'scatter')
),
plan AS (
    SELECT process, pool, forward,
           any_value(micro_batch) AS micro_batch,
           count(*)               AS requests,
           min("order")           AS plan_order,
           min(time_ns)           AS plan_ns
    FROM act
    WHERE op = 'verify.plan'
    GROUP BY process, pool, forward
),
launched AS (
    SELECT process, forward,
           any_value(micro_batch) FILTER (op = 'forward.launch') AS micro_batch,
           min("order") FILTER (op = 'forward.done')             AS done_order,
           min(time_ns) FILTER (op = 'forward.done')             AS done_ns
    FROM act
    WHERE op IN ('forward.launch', 'forward.done')
    GROUP BY process, forward
),
sent AS (
    SELECT process, forward, min("order") AS sent_order, min(time_ns) AS sent_ns,
           any_value(pool) AS sent_pool
    FROM act
    WHERE op = 'relay.send'
    GROUP BY process, forward
),
result AS (
    SELECT process, pool, forward,
           any_value(micro_batch) AS micro_batch,
           min("order")           AS result_order,
           min(time_ns)           AS result_ns
    FROM act
    WHERE op IN ('relay.send', 'relay.receive')
    GROUP BY process, pool, forward
),
-- Rows are compared request by request: a plan names the row of each, a commit the row that it read.
astray AS (
    SELECT DISTINCT c.process, c.pool, c.forward
    FROM act AS c
    JOIN act AS p USING (process, pool, forward, request)
    WHERE c.op = 'scatter'
      AND c.role = 'live'
      AND p.op = 'verify.plan'
      AND c.src_row <> p."row"
),
commits AS (
    SELECT process, pool, forward, micro_batch,
           min("order")                AS commit_order,
           min(time_ns)                AS commit_ns,
           bool_or(outcome = 'failed') AS refused
    FROM act
    WHERE op = 'scatter'
      AND role = 'live'
    GROUP BY process, pool, forward, micro_batch
),
applied AS (
    SELECT c.process, c.pool, r.forward,
           c.forward        AS commit_forward,
           of.micro_batch   AS commit_micro_batch,
           c.commit_order, c.commit_ns,
           coalesce(c.refused, FALSE) AS refused,
           a.forward IS NOT NULL      AS astray
    FROM commits AS c
    ASOF JOIN result AS r
           ON r.process = c.process AND r.pool = c.pool AND r.micro_batch = c.micro_batch
          AND r.result_order <= c.commit_order
    LEFT JOIN launched AS of ON of.process = c.process AND of.forward = c.forward
    LEFT JOIN astray AS a ON a.process = c.process AND a.pool = c.pool AND a.forward = c.forward
)
SELECT p.process, p.pool, p.forward, p.micro_batch, p.requests, p.plan_order, p.plan_ns,
       s.sent_pool, s.sent_order, s.sent_ns, r.result_order, r.result_ns,
       a.commit_forward, a.commit_micro_batch, a.commit_order, a.commit_ns,
       coalesce(a.refused, FALSE) AS refused, l.done_order, l.done_ns,
       CASE WHEN a.commit_forward <> p.forward THEN 'wrong'
            WHEN a.astray THEN 'rows'
            WHEN a.commit_forward IS NOT NULL THEN 'right'
            WHEN l.done_order IS NOT NULL THEN 'missing'
            ELSE 'open' END AS pairing
FROM plan AS p
LEFT JOIN launched AS l USING (process, forward)
LEFT JOIN sent AS s USING (process, forward)
LEFT JOIN result AS r USING (process, pool, forward)
LEFT JOIN applied AS a USING (process, pool, forward);
