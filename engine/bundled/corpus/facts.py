"""Facts and questions: a paragraph that states them, then questions that ask for each again."""

from __future__ import annotations

from random import Random

from . import words


def draw(rng: Random) -> list[tuple[str, str, str]]:
    """Eight facts about one port, as (statement, question, answer)."""
    port = rng.choice(words.PORTS)
    master, cook, smith = rng.sample(words.FIRST, 3)
    code, colour, ship = rng.choice(words.CODES), rng.choice(words.COLOURS), rng.choice(words.SHIPS)
    lamps, cargo, wind = rng.randint(2, 40), rng.choice(words.CARGO), rng.choice(words.WINDS)
    return [
        (f"The code word is {code}.", "What is the code word?", f"The code word is {code}."),
        (
            f"The harbour master of Port {port} is {master}.",
            "Who is the harbour master?",
            f"The harbour master is {master}.",
        ),
        (f"The cook is {cook}.", "Who is the cook?", f"The cook is {cook}."),
        (f"The smith is {smith}.", "Who is the smith?", f"The smith is {smith}."),
        (
            f"The flag of the port is {colour}.",
            "What colour is the flag?",
            f"The flag is {colour}.",
        ),
        (
            f"The fastest ship is the {ship}.",
            "Which ship is the fastest?",
            f"The {ship} is the fastest.",
        ),
        (
            f"There are {lamps} lamps on the pier.",
            "How many lamps are there?",
            f"There are {lamps} lamps.",
        ),
        (
            f"The store is full of {cargo} and the wind is {wind}.",
            "What is in the store?",
            f"The store is full of {cargo}.",
        ),
    ]


def write(rng: Random) -> str:
    """Notes, then 8 to 20 numbered questions on them: 600 to 1800 bytes."""
    known = draw(rng)
    rng.shuffle(known)
    known = known[: rng.randint(4, 8)]
    out = ["Notes. " + " ".join(statement for statement, _, _ in known), "Questions."]
    for number in range(1, rng.randint(9, 21)):
        _, question, answer = rng.choice(known)
        out.append(f"Q{number}: {question}\nA{number}: {answer}")
    return "\n".join(out) + "\n"
