-- A link as OTLP keeps it; `reason` says what the other span is to this one. Null where it has no id.
-- Flag 0x100: it is known whether the other span is remote, and it is not.
CREATE OR REPLACE MACRO span_link(trace_id, span_id, reason) AS
    CASE WHEN span_id IS NOT NULL THEN
        {'trace_id': trace_id, 'span_id': span_id, 'trace_state': '',
         'attributes': ('{' || span_word('slotscope.link', reason) || '}')::JSON,
         'dropped_attributes_count': 0::UINTEGER, 'flags': 256::UINTEGER}
    END;
