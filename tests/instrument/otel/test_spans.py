"""What the `spans` view makes of a history."""

from __future__ import annotations

import json
from typing import Any

from slotscope.instrument.event import columns
from slotscope.instrument.otel.ids import SpanIds, hex64
from slotscope.instrument.schema import statements

from .told import BOOT_NS, STORY, UID, Asked, rows, story, tell

Row = dict[str, Any]


def named(all_rows: list[Row], name: str, **where: Any) -> Row:
    """The one span of this name and these columns."""
    found = [r for r in all_rows if r["name"] == name and where.items() <= r.items()]
    assert len(found) == 1, found
    return found[0]


def attributes(row: Row) -> Row:
    return dict(json.loads(row["attributes"]))


def micros(row: Row) -> tuple[float, float]:
    """Start and end as places in the history, counted from 1."""
    return (
        (row["start_time_unix_nano"] - BOOT_NS) / 1000,
        (row["end_time_unix_nano"] - BOOT_NS) / 1000,
    )


def test_every_event_is_a_span_or_an_end_of_one() -> None:
    con = tell()
    events = rows(con, "SELECT op, seq FROM events")
    ends = {"request.begin", "request.end", "forward.launch", "forward.done"}
    assert sorted(r["event"] for r in rows(con) if r["event"] is not None) == [
        e["seq"] for e in events if e["op"] not in ends
    ]
    counts = rows(con, "SELECT name, count(*) AS n FROM spans WHERE event IS NULL GROUP BY name")
    assert {c["name"]: c["n"] for c in counts} == {"request": 2, "forward": 3, "slot.lease": 2}


def test_ids_are_unique_and_those_of_python() -> None:
    told, ids = story(), SpanIds(UID)
    assert len({r["span_id"] for r in told}) == len(told)
    assert [named(told, "request", request=1)["span_id"]] == hex64(ids.request(0, 1))
    assert [named(told, "forward", forward=8)["span_id"]] == hex64(ids.forward(0, 8))
    assert [named(told, "slot.lease", slot=3)["span_id"]] == hex64(ids.lease(0, 0, 3, 1))
    donate = named(told, "slot.donate")
    assert [donate["span_id"]] == hex64(ids.event(0, donate["event"]))
    assert [donate["trace_id"]] == ids.request_trace(0, 0)
    assert [named(told, "forward", forward=8)["trace_id"]] == ids.forward_trace(0, 8)
    assert [named(told, "slot.insert")["trace_id"]] == ids.engine_trace(0)


def test_the_parent_is_the_request_and_the_forward_a_link() -> None:
    told = story()
    request, forward = named(told, "request", request=0), named(told, "forward", forward=7)
    clear = named(told, "slot.clear")
    assert (clear["trace_id"], clear["parent_span_id"]) == (
        request["trace_id"],
        request["span_id"],
    )
    (link,) = clear["links"]
    assert (link["trace_id"], link["span_id"]) == (forward["trace_id"], forward["span_id"])
    assert json.loads(link["attributes"]) == {"slotscope.link": "forward"}


def test_without_a_request_the_forward_is_the_parent() -> None:
    told = rows(tell("D5 copy(slot=4,src_slot=3,forward=5) /5"))
    forward, copy = named(told, "forward"), named(told, "slot.copy")
    assert copy["parent_span_id"] == forward["span_id"]
    assert copy["trace_id"] == forward["trace_id"]
    assert copy["links"] == []


def test_a_forward_links_to_its_requests() -> None:
    told = rows(tell("r1+ r2+ r1+live3 r2+live4 D5 5:3@8>9 5:4@8>9 /5"))
    expected = {named(told, "request", request=r)["span_id"] for r in (1, 2)}
    assert {link["span_id"] for link in named(told, "forward")["links"]} == expected


def test_a_restore_links_to_the_donate_and_that_to_the_write() -> None:
    told = story()
    donate, restore = named(told, "slot.donate"), named(told, "slot.restore")
    advance = named(told, "slot.advance", slot=3)
    assert restore["links"][-1]["span_id"] == donate["span_id"]
    assert restore["links"][-1]["trace_id"] == donate["trace_id"] != restore["trace_id"]
    assert donate["links"][-1]["span_id"] == advance["span_id"]
    assert json.loads(donate["links"][-1]["attributes"]) == {"slotscope.link": "write"}


def test_a_donation_of_what_the_node_has_gives_nothing() -> None:
    given = "donate(slot=5,request=0,role=keep,label=192,node=2,outcome=exists)"
    told = rows(tell(f"r0+ r0+keep5 P1 1:5^192 /1 {given} n2+5@192x -5"))
    assert named(told, "slot.donate")["links"] == []
    assert "slotscope.node" not in json.loads(named(told, "slot.lease")["attributes"])


def test_links_follow_positions_not_the_order_of_saying() -> None:
    # Slot 3 is donated at 64 while a launched forward 2 still writes it; its write is said late,
    # and after the donate, which was written by forward 1.
    told = rows(tell("r0+ r0+live3 P1 1:3@0 1:3@0>64 D2 /1 3!64n9 P3 2:3@64>65 /2 3:3@65>66"))
    last = named(told, "slot.donate")["links"][-1]["span_id"]
    assert last == named(told, "slot.advance", forward=2)["span_id"]


def test_a_lease_that_began_again_is_another_source() -> None:
    told = rows(
        tell(
            "r0+ r0+live3 P1 1:3@0 1:3@0>64 /1 3!64n9 -3 "
            "r1+ r1+live3 r1+live4 P2 2:3@0 2:4<3@64n9 /2"
        )
    )
    assert [json.loads(li["attributes"]) for li in named(told, "slot.restore")["links"]] == [
        {"slotscope.link": "forward"}
    ]


def test_a_device_act_lasts_from_launch_to_done() -> None:
    told = rows(tell("r0+ r0+live3 P1 1:3@0 D2 /1 1:3@0>64 /2"))
    assert micros(named(told, "forward", forward=1)) == (3, 6)
    assert micros(named(told, "slot.clear")) == (3, 6)
    assert micros(named(told, "slot.advance")) == (3, 6)  # said after the end, yet it lies before
    assert micros(named(told, "slot.allocate")) == (2, 2)


def test_what_is_open_ends_where_its_process_was_last_heard_of() -> None:
    told = story()
    last = len(STORY.split())
    for row in (
        named(told, "request", request=1),
        named(told, "forward", forward=9),
        named(told, "slot.lease", slot=4),
        named(told, "slot.scatter"),
    ):
        assert row["open"]
        assert attributes(row)["slotscope.open"] is True
        assert micros(row)[1] == last
    closed = named(told, "request", request=0)
    assert not closed["open"]
    assert "slotscope.open" not in attributes(closed)
    assert micros(closed) == (1, 9)


def test_a_lease_lasts_from_allocate_to_free_with_its_donation() -> None:
    lease = named(story(), "slot.lease", slot=3)
    assert micros(lease) == (2, 15)
    told = attributes(lease)
    assert (told["slotscope.role"], told["slotscope.node"], told["slotscope.label"]) == (
        "live",
        9,
        64,
    )
    assert lease["parent_span_id"] == hex64(SpanIds(UID).request(0, 0))[0]


def test_every_column_is_an_attribute_where_it_is_known() -> None:
    events = {e["seq"]: e for e in rows(tell(), "FROM events")}
    for span in story():
        if span["event"] is not None:
            told = attributes(span)
            told.pop("slotscope.open", None)
            event = events[span["event"]]
            assert told == {f"slotscope.{k}": v for k, v in event.items() if v is not None}


def test_the_view_names_every_column_of_an_event() -> None:
    text = statements("spans")["spans_of_events"]
    for name, _, _ in columns():
        assert f"'slotscope.{name}'" in text


def test_a_request_carries_gen_ai_attributes() -> None:
    con = tell(STORY, Asked(0, "req-0"), Asked(1, "req-1", client_id="mine"))
    first, second = (attributes(named(rows(con), "request", request=r)) for r in (0, 1))
    assert first["gen_ai.request.id"] == "req-0"
    assert first["gen_ai.usage.input_tokens"] == 500
    assert "gen_ai.usage.output_tokens" not in first  # its end does not say
    assert first["gen_ai.usage.cached_tokens"] == 0
    assert first["slotscope.outcome"] == "finished"
    assert second["gen_ai.usage.cached_tokens"] == 64
    assert second["slotscope.client_id"] == "mine"
    assert "gen_ai.usage.output_tokens" not in second


def test_output_tokens_are_told_where_the_end_counts_them() -> None:
    told = rows(tell("r0+@500 request.end(request=0,depth=512,label=510)"))
    assert attributes(named(told, "request"))["gen_ai.usage.output_tokens"] == 10


TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def test_a_traceparent_is_joined() -> None:
    told = rows(tell(STORY, Asked(1, "q", f"00-{TRACE}-{SPAN}-01")))
    request = named(told, "request", request=1)
    assert (request["trace_id"], request["parent_span_id"]) == (TRACE, SPAN)
    assert request["flags"] == 0x300
    assert named(told, "slot.restore")["trace_id"] == TRACE
    assert named(told, "slot.lease", slot=4)["trace_id"] == TRACE
    assert TRACE in {link["trace_id"] for link in named(told, "forward", forward=8)["links"]}
    assert named(told, "request", request=0)["trace_id"] != TRACE


INVALID = [
    "",
    "nonsense",
    f"00-{TRACE}-{SPAN}",
    f"00-{TRACE}-{SPAN}-01-more",
    f"ff-{TRACE}-{SPAN}-01",
    f"00-{TRACE.upper()}-{SPAN}-01",
    f"00-{'0' * 32}-{SPAN}-01",
    f"00-{TRACE}-{'0' * 16}-01",
    f"00-{TRACE}-{SPAN}-01\n",
]


def test_a_traceparent_that_w3c_calls_invalid_is_ignored() -> None:
    told = rows(
        tell(
            " ".join(f"r{i}+" for i in range(len(INVALID))),
            *(Asked(i, f"q{i}", parent) for i, parent in enumerate(INVALID)),
        )
    )
    for i in range(len(INVALID)):
        request = named(told, "request", request=i)
        assert [request["trace_id"]] == SpanIds(UID).request_trace(0, i), INVALID[i]
        assert request["parent_span_id"] == ""


def test_a_later_version_of_traceparent_is_read_as_far_as_it_is_known() -> None:
    told = rows(tell(STORY, Asked(1, "q", f"01-{TRACE}-{SPAN}-01-what-is-new")))
    assert named(told, "request", request=1)["trace_id"] == TRACE


def test_a_failure_is_an_error() -> None:
    failed = named(story(), "slot.allocate", slot=None)
    assert (failed["status_code"], failed["status_message"]) == ("error", "allocate failed")


def test_names() -> None:
    told = {
        r["name"] for r in rows(tell("relay.send(micro_batch=0) transfer.send(slot=1) V1 1:r0?@5"))
    }
    assert {"relay.send", "slot.transfer.send", "verify.plan"} <= told


def test_a_clock_that_was_set_moves_starts_and_turns_no_span_around() -> None:
    con = tell("r0+ r0+live3 P1 1:3@0 /1 r0-")
    con.execute("INSERT INTO anchors VALUES (0, 4500, ?)", [BOOT_NS - 10**9 + 4500])
    told = rows(con)
    assert micros(named(told, "slot.clear")) == (3, 5)
    assert micros(named(told, "request")) == (1, 6)
    con.execute("INSERT INTO anchors VALUES (0, 2500, ?)", [BOOT_NS + 10**9 + 2500])
    assert micros(named(rows(con), "slot.clear")) == (10**6 + 3, 10**6 + 5)


def test_resources_say_who_and_where() -> None:
    con = tell("r0+ r0+live3 | r0+ r0+live3")
    con.execute("INSERT INTO notes VALUES (0, 'engine.name', 'old', 1), (0, 'engine.name', 'x', 2)")
    con.execute("INSERT INTO notes VALUES (0, 'slotscope.level', '1', 1), (0, '\"quo\\te', 'a', 1)")
    told = {r["process"]: json.loads(r["resource_attributes"]) for r in rows(con)}
    assert told[0] == {
        "service.name": "x",
        "service.instance.id": f"{UID:016x}-0",
        "host.name": "box",
        "process.pid": 100,
        "process.runtime.version": "3.11",
        "slotscope.engine.name": "x",
        "slotscope.level": "1",
        'slotscope."quo\\te': "a",
    }
    assert told[1]["service.name"] == "slotscope"
    assert told[0]["service.instance.id"] != told[1]["service.instance.id"]
