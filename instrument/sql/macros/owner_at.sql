-- The lease that a slot had at a position, one row per process; none if the slot was free.
--
--   FROM owner_at(7, 1200)
CREATE MACRO owner_at(s, place, p := 0) AS TABLE
SELECT *
FROM leases
WHERE slot = s AND pool = p AND allocated_order <= place AND (freed_order IS NULL OR freed_order > place);
