-- Trace id of a request. `remote` is the one of its traceparent, null where it came without.
CREATE OR REPLACE MACRO request_trace_id(process, request, remote) AS
    coalesce(remote,
             span_hash(request_trace_high_seed(), span_pair(process, request, 32)) ||
             span_hash(request_trace_low_seed(), span_pair(process, request, 32)));
