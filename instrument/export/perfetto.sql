-- Acts on slots as slices of 1 ns on their slot's track, in the order in which they begin. Slices of
-- one track must nest, so acts of one instant follow each other by a nanosecond: then arrows, too,
-- find the slice that they belong to.
CREATE OR REPLACE TEMP TABLE perfetto_acts AS
WITH said AS (
    SELECT *, row_number() OVER (PARTITION BY process, pool, slot
                                 ORDER BY start_time_unix_nano, event) AS n
    FROM spans
    WHERE slot IS NOT NULL AND event IS NOT NULL
)
SELECT process, pool, slot, span_id, name, attributes, links,
       generation - (generation + 1) % 2 AS lease,
       n + max(start_time_unix_nano - n) OVER (PARTITION BY process, pool, slot ORDER BY n)
           - (SELECT min(start_time_unix_nano) FROM spans) AS begin_ns
FROM said;

-- Leases around their acts. A life ends, at the latest, where the slot's next one begins.
CREATE OR REPLACE TEMP TABLE perfetto_leases AS
SELECT process, pool, slot, lease,
       min(begin_ns) AS begin_ns,
       least(max(begin_ns) + 1,
             lead(min(begin_ns)) OVER (PARTITION BY process, pool, slot ORDER BY lease)) AS end_ns
FROM perfetto_acts
WHERE lease > 0
GROUP BY process, pool, slot, lease;

-- A link is an arrow from what it names to the act that has it.
CREATE OR REPLACE TEMP TABLE perfetto_arrows AS
SELECT row_number() OVER (ORDER BY reader.begin_ns, reader.span_id, origin.span_id) AS id,
       origin.process AS from_process, origin.pool AS from_pool, origin.slot AS from_slot,
       origin.begin_ns AS from_ns,
       reader.process, reader.pool, reader.slot, reader.begin_ns
FROM (SELECT * EXCLUDE (links), unnest(links) AS link FROM perfetto_acts) AS reader
JOIN perfetto_acts AS origin ON origin.span_id = reader.link.span_id;
