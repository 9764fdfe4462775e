"""Chats: a system message with facts, then turns that recall, count, continue, greet and tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from . import facts, story, words


@dataclass(slots=True)
class _Talk:
    """What a chat keeps from turn to turn."""

    rng: Random
    name: str
    known: list[tuple[str, str, str]]
    counted: int = 0  # the last number said; "go on" continues from here
    turn: int = 0


_GREETINGS = ("Hello.", "Hello!", "Good morning.", "Hi.", "Good evening.", "Hi there!")
_THANKS = ("Thank you.", "Thanks!", "Thank you very much.", "Good, thanks.")
_UNKNOWN = (
    "Can you drive a car?",
    "What is the capital of the moon?",
    "Who won the race?",
    "Write me a program.",
    "What is the meaning of life?",
    "How do I bake a cake?",
)


def write(rng: Random) -> str:
    """A chat of two to twelve turns, 150 to 3000 bytes, with the markers of the chat template."""
    known = facts.draw(rng)
    rng.shuffle(known)
    talk = _Talk(rng, rng.choice(words.FIRST), known[: rng.randint(3, 7)])
    out = []
    if rng.random() < 0.7:
        out.append(_message("system", _instructions(talk)))
    else:
        talk.known = []
    for _ in range(rng.randint(2, 12)):
        talk.turn += 1
        asked, answered = _turn(talk)
        out += [_message("user", asked), _message("assistant", answered)]
        if sum(map(len, out)) > 2600:
            break
    return "".join(out)


def _message(role: str, text: str) -> str:
    return f"<|im_start|>{role}\n{text}<|im_end|>\n"


def _instructions(talk: _Talk) -> str:
    stated = " ".join(statement for statement, _, _ in talk.known)
    return f"You are {talk.name}, clerk of the harbour. {stated} Answer shortly."


def _turn(talk: _Talk) -> tuple[str, str]:
    kinds: list[Callable[[_Talk], tuple[str, str]]] = [_greet, _count, _cycle, _tell, _remember]
    weights = [1, 3, 2, 1, 2]
    if talk.known:
        kinds += [_recall]
        weights += [8]
    if talk.counted:
        kinds += [_go_on]
        weights += [3]
    kinds += [_unknown, _thank]
    weights += [1, 1]
    if talk.turn == 1 and talk.rng.random() < 0.4:
        return _greet(talk)
    return talk.rng.choices(kinds, weights)[0](talk)


def _greet(talk: _Talk) -> tuple[str, str]:
    if not talk.known:
        return talk.rng.choice(
            _GREETINGS
        ), "Hello! I keep the harbour books. What would you like to know?"
    return talk.rng.choice(
        _GREETINGS
    ), f"Hello! I am {talk.name}, clerk of the harbour. Ask me anything."


def _thank(talk: _Talk) -> tuple[str, str]:
    return talk.rng.choice(_THANKS), f"You are welcome. That was turn {talk.turn} of our talk."


def _unknown(talk: _Talk) -> tuple[str, str]:
    return talk.rng.choice(_UNKNOWN), "I do not know that. I only know the harbour."


def _recall(talk: _Talk) -> tuple[str, str]:
    _, question, answer = talk.rng.choice(talk.known)
    return question, answer


def _remember(talk: _Talk) -> tuple[str, str]:
    """A fact given in mid-chat; later turns may ask for it."""
    name, thing = talk.rng.choice(words.FIRST), talk.rng.choice(words.THINGS)
    place = talk.rng.choice(words.PLACES)
    fact = (
        f"{name} has the {thing}.",
        f"Where is the {thing}?",
        f"{name} has the {thing}, at {place}.",
    )
    talk.known = [known for known in talk.known if known[1] != fact[1]] + [fact]
    return f"Remember this: {name} has the {thing}, at {place}.", f"I will remember: {fact[2]}"


def _count(talk: _Talk) -> tuple[str, str]:
    first = talk.rng.randint(1, 90)
    last = first + talk.rng.randint(4, 20)
    talk.counted = last
    return f"Count from {first} to {last}.", _numbers(first, last)


def _go_on(talk: _Talk) -> tuple[str, str]:
    first, talk.counted = talk.counted + 1, talk.counted + 8
    return "Go on counting.", _numbers(first, talk.counted)


def _numbers(first: int, last: int) -> str:
    return ", ".join(str(number) for number in range(first, last + 1)) + "."


def _cycle(talk: _Talk) -> tuple[str, str]:
    cycle = talk.rng.sample(words.COLOURS, talk.rng.randint(2, 4))
    rounds = talk.rng.randint(3, 7)
    asked = f"Repeat {words.NUMBERS[rounds]} times: {', '.join(cycle)}."
    return asked, "; ".join(f"{i + 1} {', '.join(cycle)}" for i in range(rounds)) + "."


def _tell(talk: _Talk) -> tuple[str, str]:
    hero, animal = talk.rng.choice(words.FIRST), talk.rng.choice(words.ANIMALS)
    article = "an" if animal[0] in "aeiou" else "a"
    text = story.tell(talk.rng, talk.rng.randint(2, 4), hero, animal)
    return f"Tell me a story about {hero} and {article} {animal}.", text.rstrip("\n")
