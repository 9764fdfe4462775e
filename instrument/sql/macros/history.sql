-- All that happened to a slot, in the order in which it took effect; reads of it included.
--
--   FROM history(7)
--   FROM history(7, p := 1)       -- of pool 1
CREATE MACRO history(s, p := 0) AS TABLE
SELECT events.*, requests.request_id
FROM events
LEFT JOIN requests USING (process, request)
WHERE (slot = s OR src_slot = s) AND pool = p
ORDER BY process, position, "order", seq;
