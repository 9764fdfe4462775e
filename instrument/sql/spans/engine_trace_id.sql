-- Trace id of what a process does for no request and in no forward.
CREATE OR REPLACE MACRO engine_trace_id(process) AS
    span_hash(engine_trace_high_seed(), span_pair(process, 0, 32)) ||
    span_hash(engine_trace_low_seed(), span_pair(process, 0, 32));
