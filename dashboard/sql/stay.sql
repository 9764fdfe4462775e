-- When a request was there: from its first act to its last, and what it said of itself.
SELECT list(DISTINCT request)                         AS requests,
       count(*)                                       AS acts,
       least(min(x), min(x) FILTER (op = 'request.begin')) AS low,
       greatest(max(x), max(done_x), max(x) FILTER (op = 'request.end')) AS high,
       arg_min(label, "order") FILTER (op = 'request.begin')    AS prompt,
       arg_max(outcome, "order") FILTER (op = 'request.end')    AS outcome,
       max(grid) FILTER (op IN ('scatter', 'copy'))   AS grid,
       sum(accept_len) FILTER (op = 'scatter' AND role = 'live' AND pool = 0)::INTEGER AS accepted,
       count(*) FILTER (op = 'scatter' AND role = 'live' AND pool = 0)        AS verifies
FROM acts
WHERE request_id = $request
