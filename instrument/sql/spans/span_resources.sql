-- Who says so: one OTLP resource per process, with what the process noted about itself. Of a note
-- that was made twice the later one counts. The command line stays here, as it may hold secrets.
CREATE OR REPLACE VIEW span_resources AS
WITH latest AS (
    SELECT process, key, arg_max(value, time_ns) AS value
    FROM notes
    GROUP BY process, key
), noted AS (
    SELECT process,
           coalesce(any_value(value) FILTER (key = 'service.name'),
                    any_value(value) FILTER (key = 'engine.name')) AS service,
           string_agg(span_attribute(if(starts_with(key, 'slotscope.'), key, 'slotscope.' || key),
                                     value), ',' ORDER BY key) AS members
    FROM latest
    GROUP BY process
)
SELECT process,
       ('{' || concat_ws(',',
           span_attribute('service.name', coalesce(service, 'slotscope')),
           span_attribute('service.instance.id', span_hex(uid) || '-' || process),
           span_attribute('host.name', nullif(host, '')),
           span_attribute('process.pid', pid),
           span_attribute('process.runtime.version', nullif(python, '')),
           members) || '}')::JSON AS attributes
FROM processes
CROSS JOIN span_trace
LEFT JOIN noted USING (process);
