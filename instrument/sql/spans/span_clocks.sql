-- What to add to CLOCK_MONOTONIC to get Unix time, from when on. A process takes an anchor now and
-- then, since the wall clock may be set; its first anchor also serves for whatever was before it.
CREATE OR REPLACE VIEW span_clocks AS
SELECT process,
       if(row_number() OVER turn = 1, 0::BIGINT, monotonic_ns) AS from_ns,
       realtime_ns - monotonic_ns AS offset_ns
FROM anchors
WINDOW turn AS (PARTITION BY process ORDER BY monotonic_ns);
