-- The events that can be judged: all but those in a stretch where records were lost.
CREATE OR REPLACE TEMP VIEW seen AS
SELECT (writer::BIGINT << 40) | seq AS event, *
FROM events e
ANTI JOIN spots s
       ON s.process = e.process
      AND e.position BETWEEN s.first_lost AND s.last_lost
