-- Span id of an event.
CREATE OR REPLACE MACRO event_span_id(writer, seq) AS
    span_hash(event_seed(), span_pair(writer, seq, 40));
