-- Trace id of a forward, and of what happens in it for no request.
CREATE OR REPLACE MACRO forward_trace_id(process, forward) AS
    span_hash(forward_trace_high_seed(), span_pair(process, forward, 32)) ||
    span_hash(forward_trace_low_seed(), span_pair(process, forward, 32));
