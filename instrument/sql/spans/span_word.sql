-- The same for a word of ours, such as the name of an op: nothing in it needs an escape.
CREATE OR REPLACE MACRO span_word(key, value) AS
    '"' || key || '":"' || value || '"';
