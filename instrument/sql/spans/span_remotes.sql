-- Requests that came with a valid W3C traceparent: whose trace they belong to, and who asked.
-- Version 00 ends after the flags; a later version may go on; ff and ids of zeros are invalid.
CREATE OR REPLACE VIEW span_remotes AS
SELECT process, request, part.trace_id AS remote_trace_id, part.span_id AS remote_span_id
FROM (SELECT process, request, regexp_extract(trace_parent,
             '^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$',
             ['version', 'trace_id', 'span_id', 'rest']) AS part
      FROM requests)
WHERE part.version NOT IN ('', 'ff')
  AND (part.version <> '00' OR part.rest = '')
  AND part.trace_id <> repeat('0', 32)
  AND part.span_id <> repeat('0', 16);
