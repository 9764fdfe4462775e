-- Who says so: one OTLP resource per process, with what the process noted about itself.
CREATE OR REPLACE VIEW span_resources AS
WITH noted AS (
    SELECT process, string_agg(span_attribute('slotscope.' || key, value), ',' ORDER BY key) AS members
    FROM notes
    GROUP BY process
)
SELECT process,
       ('{' || concat_ws(',',
           span_attribute('service.name', 'slotscope'),
           span_attribute('service.instance.id', uid || '-' || process),
           span_attribute('process.pid', pid),
           members) || '}')::JSON AS attributes
FROM processes
CROSS JOIN span_trace
LEFT JOIN noted USING (process);
