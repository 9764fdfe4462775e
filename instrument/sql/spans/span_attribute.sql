-- One member of a JSON object, null where the value is: `concat_ws` then leaves it out.
-- Keys and values are escaped: a process names its notes as it likes.
CREATE OR REPLACE MACRO span_attribute(key, value) AS
    to_json(key) || ':' || to_json(value);
