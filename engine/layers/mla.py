"""Multi-head latent attention: all heads read one latent vector of each token."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import linear

from slotscope.engine.memory import Memory

from .norm import Norm
from .paged import look
from .plan import Plan


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Attention whose keys and values are products of a latent vector, which alone is kept.

    A head's key is (k_up latent, shared), its value v_up latent. So query . key is
    (query k_up, query's last part) . (latent, shared), and a weighted sum of values is v_up of the
    sum of latents: one key of one head, which is also the value, serves all (DeepSeek-V2, arXiv
    2405.04434, section 2.1.2). There are no positions.
    """

    query: Tensor  # [heads * (size + shared size), hidden]
    latent: Tensor  # [rank + shared size, hidden]
    norm: Norm  # of the latent, scale [rank]
    k_up: Tensor  # [heads, size, rank]
    v_up: Tensor  # [heads, value size, rank]
    output: Tensor  # [hidden, heads * value size]
    layer: int  # index in memory.keys

    def __call__(self, x: Tensor, plan: Plan, memory: Memory) -> Tensor:
        """[T, hidden] to [T, hidden]; writes the new tokens' latents first, then reads."""
        heads, size, rank = self.k_up.shape
        shared_size = self.latent.shape[0] - rank
        latent, shared = linear(x, self.latent).split((rank, shared_size), -1)
        key = torch.cat((self.norm(latent), shared), -1)[:, None]
        memory.keep(self.layer, plan.batch.locations, key)
        keys = memory.keys[self.layer]

        query = linear(x, self.query).unflatten(-1, (heads, size + shared_size))
        own, others = query.split((size, shared_size), -1)
        own = (own.transpose(0, 1) @ self.k_up).transpose(0, 1)  # [T, heads, rank]
        scale = float(size + shared_size) ** -0.5
        seen = look(torch.cat((own, others), -1), keys, keys, plan, scale)[..., :rank]
        value = seen.transpose(0, 1) @ self.v_up.mT  # [heads, T, value size]
        return linear(value.transpose(0, 1).flatten(1), self.output)
