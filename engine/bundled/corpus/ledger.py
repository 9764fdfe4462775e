"""Shop ledgers: prices from the head of the page, a running sum, a stamp at a fixed period."""

from __future__ import annotations

from random import Random

from . import words


def write(rng: Random) -> str:
    """A ledger page, 400 to 1800 bytes."""
    owner = f"{rng.choice(words.FIRST)} {rng.choice(words.LAST)}"
    stamp = f"{rng.choice('ABCDEFGHJKLMNPRSTUVWXYZ')}{rng.randint(10, 99)}"
    prices = {good: rng.randint(2, 9) for good in rng.sample(words.GOODS, rng.randint(3, 5))}
    listed = ", ".join(f"{good} {price}" for good, price in prices.items())
    out = [f"Ledger of {owner}. Stamp {stamp}.", f"Prices in pence: {listed}."]
    total, every = 0, rng.choice((3, 4, 5))
    lines = rng.randint(8, 28)
    goods = list(prices)
    for number in range(1, lines + 1):
        good = rng.choice(goods)
        count = rng.randint(1, 3)
        cost = count * prices[good]
        total += cost
        plural = good if count == 1 else f"{good}s"
        out.append(f"{number}. {count} {plural} at {prices[good]} is {cost}. Sum {total}.")
        if number % every == 0:
            out.append(f"Stamp {stamp}. Page of {owner}.")
    out.append(f"Closed after {lines} entries. Sum {total}. Stamp {stamp}. Signed {owner}.")
    return "\n".join(out) + "\n"
