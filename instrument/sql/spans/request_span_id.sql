-- Span id of a request.
CREATE OR REPLACE MACRO request_span_id(process, request) AS
    span_hash(request_seed(), span_pair(process, request, 32));
