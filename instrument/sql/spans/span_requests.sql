-- What is known of a request from its own events: when it began and ended, and its tokens.
-- The label of a begin counts the prompt, that of an end, where an engine gives one, prompt and
-- output. The depth of an end would not do: a launched forward or a verify may have gone beyond.
CREATE OR REPLACE VIEW span_requests AS
SELECT process, request,
       min(time_ns) FILTER (op = 'request.begin') AS begin_ns,
       -- A retracted request comes back under another number: this attempt is over.
       max(time_ns) FILTER (op IN ('request.end', 'retract')) AS end_ns,
       min(label) FILTER (op = 'request.begin') AS input_tokens,
       arg_min(label, "order") FILTER (op = 'restore') AS cached_tokens,
       max(label) FILTER (op = 'request.end')
           - min(label) FILTER (op = 'request.begin') AS output_tokens,
       any_value("row") FILTER (op = 'request.begin') AS "row",
       any_value(outcome) FILTER (op = 'request.end') AS outcome
FROM events
WHERE op IN ('request.begin', 'request.end', 'retract', 'restore') AND request IS NOT NULL
GROUP BY process, request
HAVING count(*) FILTER (op <> 'restore') > 0;
