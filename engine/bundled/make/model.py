"""Trunk and draft head for training; the trunk equals transformers' Qwen3NextForCausalLM."""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .config import Sizes
from .layers import Experts, Layer, LinearAttention, Mixture, Norm


class Trunk(nn.Module):
    """Embedding, layers, last norm."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(sizes.vocab_size, sizes.hidden_size)
        self.layers = nn.ModuleList(
            Layer(sizes, attention=sizes.is_attention(i)) for i in range(sizes.num_hidden_layers)
        )
        self.norm = Norm(sizes.hidden_size, sizes.rms_norm_eps)

    def forward(self, tokens: Tensor) -> Tensor:
        """[B, T] to normed hidden [B, T, D]."""
        hidden = self.embed_tokens(tokens)
        for layer in self.layers:
            hidden = layer(hidden)
        return self.norm(hidden)  # type: ignore[no-any-return]


class Draft(nn.Module):
    """The MTP head: one attention layer over (embedding of the next token, hidden).

    Drafting is recursive: step 1 takes the trunk's hidden, step s the head's own of step s - 1.
    A later step at position p sees the KV that step 1 wrote up to position p - s + 1, since the
    engine rewrites accepted positions from the trunk's hidden, and after it the KV of the steps
    between. `unroll` trains exactly that.
    """

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.pre_fc_norm_embedding = Norm(sizes.hidden_size, sizes.rms_norm_eps)
        self.pre_fc_norm_hidden = Norm(sizes.hidden_size, sizes.rms_norm_eps)
        self.fc = nn.Linear(2 * sizes.hidden_size, sizes.hidden_size, bias=False)
        self.layers = nn.ModuleList([Layer(sizes, attention=True)])
        self.norm = Norm(sizes.hidden_size, sizes.rms_norm_eps)

    def unroll(self, hidden: Tensor, embedded: Tensor, steps: int) -> list[Tensor]:
        """Run `steps` draft steps at all positions at once.

        Args:
            hidden:   [B, T, D], the trunk's, normed, at positions 0 .. T-1.
            embedded: [B, T, D], embeddings of the tokens 1 .. T.
        Returns:
            One [B, T, D] a step. Row p of step s started at p - s + 1 and predicts token p + 2;
            the first s - 1 rows started before the sequence and mean nothing.
        """
        layer = cast(Layer, self.layers[0])
        attention = layer.self_attn
        out: list[Tensor] = []
        keys: list[Tensor] = []
        values: list[Tensor] = []
        for step in range(steps):
            joined = torch.cat(
                [self.pre_fc_norm_embedding(embedded), self.pre_fc_norm_hidden(hidden)], dim=-1
            )
            x = self.fc(joined)
            q, k, v, gate = attention.project(layer.input_layernorm(x))
            keys.append(k)
            values.append(v)
            mixed = _attend(q, keys, values)
            out.append(self.norm(layer.feed(x + attention.close(mixed, gate))))
            # Step s + 1 at position p continues what step s left at p - 1.
            hidden = F.pad(out[step][:, :-1], (0, 0, 1, 0))
        return out


def _attend(q: Tensor, keys: list[Tensor], values: list[Tensor]) -> Tensor:
    """Step `len(keys)` attends: step 1's keys up to where it started, then one key of each step."""
    if len(keys) == 1:
        return F.scaled_dot_product_attention(q, keys[0], values[0], is_causal=True)
    tokens = q.shape[2]
    behind = torch.arange(tokens, device=q.device)[:, None] - torch.arange(tokens, device=q.device)
    last = len(keys) - 1
    seen = [behind >= last] + [behind == last - step for step in range(1, last + 1)]
    return F.scaled_dot_product_attention(
        q, torch.cat(keys, dim=2), torch.cat(values, dim=2), attn_mask=torch.cat(seen, dim=-1)
    )


class Model(nn.Module):
    """Trunk and draft head, which share embedding and output matrix."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.model = Trunk(sizes)
        self.mtp = Draft(sizes)
        self.apply(start)

    def logits(self, hidden: Tensor) -> Tensor:
        """[..., D] to [..., vocabulary]."""
        return F.linear(hidden, self.model.embed_tokens.weight)

    def balance(self) -> Tensor:
        """Mean balance loss of all mixtures in the last forward; 1 is perfect."""
        parts = [module.balance for module in self.modules() if isinstance(module, Mixture)]
        return torch.stack(parts).mean()


def start(module: nn.Module) -> None:
    """Initial weights; norms, decays and steps keep those of their constructors."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    elif isinstance(module, Experts):
        nn.init.normal_(module.gate_up_proj, std=0.02)
        nn.init.normal_(module.down_proj, std=0.02)
    elif isinstance(module, LinearAttention):
        nn.init.uniform_(module.conv1d.weight, -0.5, 0.5)
