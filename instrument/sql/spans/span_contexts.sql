-- Each event with its number in the trace, and the ids of its span.
CREATE OR REPLACE VIEW span_contexts AS
SELECT e.*,
       (writer::BIGINT << 40) | seq AS event,
       span_trace_id(process, request, forward, remote_trace_id) AS trace_id,
       event_span_id(writer, seq) AS span_id
FROM events AS e
LEFT JOIN span_remotes USING (process, request);
