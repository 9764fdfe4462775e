"""Retire: read a flight's result, hand out its tokens, and end the requests that are done."""

from __future__ import annotations

from collections import deque

from slotscope.instrument import probe
from slotscope.instrument.event import Kind, Op, Outcome

from .attempts import begin_attempt
from .batch import Flight, Item
from .cache import Cache
from .checkpoints import Strategy
from .decode import Decode
from .grids import Grids
from .prefill import Prefill
from .request import Delta, Request
from .running import Running, Target
from .telling import committed, retired


class Retire:
    """Under overlap a flight is retired a turn late: a request in it may have ended meanwhile, or
    may have been retracted. Then its result is of no use; who resumes computes it again."""

    def __init__(
        self,
        cache: Cache,
        strategy: Strategy,
        prefill: Prefill,
        decode: Decode,
        grids: Grids,
        eos_ids: frozenset[int],
        *,
        tells: bool,
    ) -> None:
        self._cache, self._strategy, self._grids = cache, strategy, grids
        self._prefill, self._decode = prefill, decode
        self._eos_ids = eos_ids
        self._tells = tells  # of commits: False where there are none, or stages tell of their own
        self.ended: deque[str] = deque()  # ids of requests whose last delta was sent
        self.tokens_generated = 0
        self.retractions = 0
        self.verifies = 0
        self.accepted = 0

    def flight(self, flight: Flight) -> None:
        """Everything that follows from one forward's result."""
        launch, result = flight.launch, flight.result
        before, accept = result.before.tolist(), result.accept.tolist()
        if flight.verified and self._tells:
            committed(launch, before, result.paths(), self._grids)
        retired(launch)
        tokens, logprobs = result.tokens.tolist(), result.logprobs.tolist()
        acts = {
            Kind.PREFILL: self._prefilled,
            Kind.DECODE: self._decoded,
            Kind.VERIFY: self._verified,
        }
        for at, item in enumerate(launch.batch.items):
            act = acts[Kind.DECODE if item.decodes else launch.batch.kind]
            act(item, before[at], tokens[at][: accept[at]], logprobs[at][: accept[at]])

    def end(self, running: Running, reason: str) -> None:
        """End a request from outside, between two turns. Forwards that name it may be in flight.

        Only a "stop" leaves its checkpoint to the tree.
        """
        running.request.finish_reason = reason
        self._end(running, finished=reason == "stop")
        self.dismiss(running.request)

    def retract(self, running: Running) -> None:
        """A running request gives up all that it holds, and goes back to the queue with what it has
        put out. Forwards that name it may be in flight.

        Its last checkpoint goes to the tree, where it may be found again unless it is evicted.
        """
        request = running.request
        probe.emit(Op.RETRACT, request=running.number, row=running.row, depth=running.length)
        self._give_back(running, donate=True)
        request.usage.retractions += 1
        self.retractions += 1
        begin_attempt(request)
        self._prefill.put_back(request)

    def dismiss(self, request: Request) -> None:
        """The last delta of a request that ended without a further token."""
        request.sink(Delta((), (), request.finish_reason))
        self.ended.append(request.request_id)

    def _prefilled(self, item: Item, before: int, tokens: list[int], logprobs: list[float]) -> None:
        running = item.running
        if running.gone or not item.last:
            return
        if self._hand_out(running, tokens, logprobs):
            self._end(running, target=item.target)
        else:
            self._strategy.publish_prefill(running)

    def _decoded(self, item: Item, before: int, tokens: list[int], logprobs: list[float]) -> None:
        running = item.running
        if running.gone:
            return
        if self._hand_out(running, tokens, logprobs):
            self._end(running, target=item.target)
        elif item.target:
            self._strategy.decoded(running, item.target)

    def _verified(self, item: Item, before: int, tokens: list[int], logprobs: list[float]) -> None:
        running, accept = item.running, len(tokens)
        if running.gone:
            return
        running.outstanding.popleft()
        running.length = before + accept
        usage = running.request.usage
        usage.verify_count += 1
        usage.accept_count += accept
        self.verifies += 1
        self.accepted += accept
        crossed = self._grids.crossed(before, before + accept)
        if self._hand_out(running, tokens, logprobs):
            self._end(running, target=item.target, crossed=crossed)
        else:
            self._strategy.verified(running, item.target, crossed)

    def _hand_out(self, running: Running, tokens: list[int], logprobs: list[float]) -> bool:
        """Append tokens up to the first that ends the request; say whether one did."""
        request, asked = running.request, running.request.sampling
        stops = set(asked.stop_token_ids) | (set() if asked.ignore_eos else self._eos_ids)
        taken = 0
        for token in tokens:
            request.output.append(token)
            taken += 1
            if token in stops:
                request.finish_reason = "stop"
            elif len(request.output) >= asked.max_new_tokens:
                request.finish_reason = "length"
            if request.finish_reason:
                break
        request.logprobs += logprobs[:taken]
        self.tokens_generated += taken
        request.sink(Delta(tuple(tokens[:taken]), tuple(logprobs[:taken]), request.finish_reason))
        if request.finished:
            self.ended.append(request.request_id)
        return request.finished

    def _end(
        self,
        running: Running,
        *,
        finished: bool = True,
        target: Target | None = None,
        crossed: int | None = None,
    ) -> None:
        """A request is over. If it ended well, the tree may have its best checkpoint; `target` and
        `crossed` are of the step that ended it."""
        probe.emit(
            Op.REQUEST_END,
            request=running.number,
            row=running.row,
            depth=running.length,
            label=len(running.request.tokens),
            outcome=Outcome.FINISHED if finished else Outcome.ABORTED,
        )
        self._give_back(running, donate=finished, target=target, crossed=crossed)

    def _give_back(
        self,
        running: Running,
        *,
        donate: bool,
        target: Target | None = None,
        crossed: int | None = None,
    ) -> None:
        if donate:
            self._strategy.finish(running, target, crossed)
        self._strategy.close(running)
        self._cache.release(running)
        self._prefill.forget(running)
        if running in self._decode.running:
            self._decode.running.remove(running)
