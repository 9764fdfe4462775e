-- Span id of a forward.
CREATE OR REPLACE MACRO forward_span_id(process, forward) AS
    span_hash(forward_seed(), span_pair(process, forward, 32));
