-- Trace id of whatever happens for a request, else in a forward, else in the engine.
-- `remote` is the trace id of the request's traceparent, null where it came without one.
CREATE OR REPLACE MACRO span_trace_id(process, request, forward, remote) AS
    CASE WHEN request IS NOT NULL THEN coalesce(remote,
             span_hash(request_trace_high_seed(), span_pair(process, request, 32)) ||
             span_hash(request_trace_low_seed(), span_pair(process, request, 32)))
         WHEN forward IS NOT NULL THEN
             span_hash(forward_trace_high_seed(), span_pair(process, forward, 32)) ||
             span_hash(forward_trace_low_seed(), span_pair(process, forward, 32))
         ELSE
             span_hash(engine_trace_high_seed(), span_pair(process, 0, 32)) ||
             span_hash(engine_trace_low_seed(), span_pair(process, 0, 32))
    END;
