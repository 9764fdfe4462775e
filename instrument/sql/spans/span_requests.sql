-- What is known of a request from its own events: when it began and ended, and its tokens.
-- Its state holds all tokens but the last one that was sampled, hence the 1.
CREATE OR REPLACE VIEW span_requests AS
SELECT process, request,
       min(time_ns) FILTER (op = 'request.begin') AS begin_ns,
       max(time_ns) FILTER (op = 'request.end') AS end_ns,
       min(label) FILTER (op = 'request.begin') AS input_tokens,
       arg_min(label, "order") FILTER (op = 'restore') AS cached_tokens,
       max(depth) FILTER (op = 'request.end') + 1
           - min(label) FILTER (op = 'request.begin') AS output_tokens,
       any_value("row") FILTER (op = 'request.begin') AS "row",
       any_value(outcome) FILTER (op = 'request.end') AS outcome
FROM events
WHERE op IN ('request.begin', 'request.end', 'restore') AND request IS NOT NULL
GROUP BY process, request
HAVING count(*) FILTER (op <> 'restore') > 0;
