-- 64 bits as 16 hexadecimal digits, as OTLP's JSON and W3C's traceparent write them.
CREATE OR REPLACE MACRO span_hex(id) AS
    lpad(lower(to_hex(id)), 16, '0');
