-- One member of a JSON object, null where the value is: `concat_ws` then leaves it out.
-- Keys are ours and need no escapes; values do, and `to_json` gives them.
CREATE OR REPLACE MACRO span_attribute(key, value) AS
    '"' || key || '":' || to_json(value);
