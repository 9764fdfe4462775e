"""The last stage passes on one token of what it accepted, whatever the verify took."""

from __future__ import annotations

from dataclasses import replace

import torch

from slotscope.engine.batch import Flight
from slotscope.engine.faults.fault import Fault
from slotscope.engine.pipeline.station import Station


class _Station(Station):
    def receive(self, flight: Flight) -> None:
        first = torch.ones_like(flight.result.accept)
        super().receive(replace(flight, result=replace(flight.result, accept=first)))


FAULT = Fault(
    kind="K5",
    upstream="vllm #57755",
    breaks="of what was accepted, stages but the last get the first column, and move by one token",
    detector="D5",
    replaces={Station: _Station},
    load="answers",
    flags={
        "speculative_algorithm": "NGRAM",
        "pp_size": 2,
        "disable_overlap_schedule": True,
    },
)
