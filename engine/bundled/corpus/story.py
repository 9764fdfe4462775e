"""Small stories: a searcher, a companion, a lost thing, days that are counted, a refrain."""

from __future__ import annotations

from random import Random

from . import words

_WEATHER = (
    "it rained",
    "the sun shone",
    "the wind was cold",
    "fog lay on the water",
    "it was calm",
)
_MEALS = ("bread and cheese", "soup", "apples", "fish and salt", "porridge")
_SAYINGS = (
    "Step by step and stone by stone",
    "What is lost is not yet gone",
    "Slow is sure and sure is home",
    "Count the days and carry on",
)


def write(rng: Random) -> str:
    """A story of three to ten days, 600 to 3000 bytes."""
    return tell(rng, rng.randint(3, 10))


def tell(rng: Random, days: int, hero: str = "", animal: str = "") -> str:
    """A story of `days` days. `hero` and `animal` are drawn where not given."""
    hero = hero or rng.choice(words.FIRST)
    animal = animal or rng.choice(words.ANIMALS)
    friend = rng.choice([name for name in words.FIRST if name != hero])
    colour, thing = rng.choice(words.COLOURS), rng.choice(words.THINGS)
    saying, port = rng.choice(_SAYINGS), rng.choice(words.PORTS)
    article = "an" if animal[0] in "aeiou" else "a"
    paragraphs = [
        f"Once there lived in Port {port} a child named {hero}, who had lost a {colour} {thing}."
        f" With {hero} went {article} {animal} named {friend}."
        f' "{saying}," said {friend} the {animal}.'
    ]
    for day in range(days - 1):
        paragraphs.append(_day(rng, day, hero, friend, f"{colour} {thing}"))
        if day % 2 == 1:
            paragraphs.append(f'"{saying}," said {friend} the {animal}.')
    paragraphs.append(
        f"On the {words.ORDINALS[days - 1]} day {hero} and {friend} came to"
        f" {rng.choice(words.PLACES)}, and there lay the {colour} {thing}. {hero} laughed,"
        f" and {friend} the {animal} laughed too."
        f" So after {words.NUMBERS[days]} days they went home to Port {port}."
    )
    return "\n".join(paragraphs) + "\n"


def _day(rng: Random, day: int, hero: str, friend: str, lost: str) -> str:
    place = rng.choice(words.PLACES)
    found = rng.choice((f"but no {lost}", "but nothing else"))
    return (
        f"On the {words.ORDINALS[day]} day {rng.choice(_WEATHER)}. {hero} and {friend} searched"
        f" {place} and found {rng.choice(words.NUMBERS[2:10])} {rng.choice(words.GOODS)}s, {found}."
        f" They ate {rng.choice(_MEALS)} and slept."
    )
