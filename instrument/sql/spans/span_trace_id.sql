-- Trace id of whatever happens for a request, else in a forward, else in the engine.
CREATE OR REPLACE MACRO span_trace_id(process, request, forward, remote) AS
    CASE WHEN request IS NOT NULL THEN request_trace_id(process, request, remote)
         WHEN forward IS NOT NULL THEN forward_trace_id(process, forward)
         ELSE engine_trace_id(process)
    END;
