-- Every span of the trace, with all that OTLP says of one, and the slot, request and forward that
-- it is about: those that others sent, and those computed from events.
CREATE OR REPLACE VIEW spans AS
SELECT * FROM otlp_spans
UNION ALL
SELECT * FROM spans_computed;
