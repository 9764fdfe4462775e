-- The forwards that were launched and whose result the host had not read at a position.
--
--   FROM in_flight_at(1200)
CREATE MACRO in_flight_at(place) AS TABLE
SELECT *
FROM forwards
WHERE launch <= place AND (done_order IS NULL OR done_order > place);
