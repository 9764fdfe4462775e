"""The word lists that all writers draw from."""

from __future__ import annotations


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FIRST = _split(
    "Mara Jonas Pia Tamsin Edda Rolf Hanne Bram Sefa Otto Lena Kasper Ines Goran Yrsa Tobias Nell"
    " Anton Britt Caspian Dora Emil Frida Gustav Hilde Ivo Jutta Klaus Lotte Magnus Nadia Oskar"
    " Petra Quinn Rosa Stellan Thea Ulrik Vera Wim"
)
LAST = _split(
    "Voss Reed Holm Marsh Crane Berg Tarn Fisk Lund Stone Weir Hale Brandt Quist Moor Vane Dahl"
    " Frost Pike Rowan Thorne Winter Ash Birk"
)
PORTS = _split(
    "Ansel Brine Corrow Dunmere Eskel Farrow Grenn Hollin Istrow Kelda Lorne Merrin Norwick Ostrey"
    " Pellow Quarrel Rusk Saltby Tern Ulver Vinter Wexley"
)
SHIPS = _split(
    "Swallow Petrel Heron Osprey Tern Gannet Puffin Curlew Plover Fulmar Kestrel Merlin Dunlin"
    " Avocet Bittern Egret Godwit Lapwing Pipit Shrike Wren Starling Linnet Siskin"
)
KINDS = ("brig", "cutter", "sloop", "ketch", "lugger", "barque")
CARGO = _split(
    "salt tar wool hemp timber copper barley oil glass slate honey candles rope herring cloth tin"
    " coal flour pepper tea"
)
CODES = _split(
    "heron amber lantern cobalt thistle marble falcon juniper ember willow anchor saffron pebble"
    " raven clover velvet harbour acorn copper mistral orchid basalt ginger nettle opal pumice"
    " quartz sable tundra walnut zephyr bramble"
)
GOODS = _split(
    "rope lamp nail candle kettle bucket needle blanket barrel hammer compass whistle basket"
    " ladder mirror anchor"
)
COLOURS = _split("red blue green white black yellow grey brown")
WINDS = ("north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west")
ANIMALS = _split("fox owl goat heron otter badger crow hare dog cat")
THINGS = _split("key bell ring lantern compass coin map flute")
PLACES = (
    "the mill",
    "the old bridge",
    "the lighthouse",
    "the market",
    "the chapel",
    "the boat shed",
    "the orchard",
    "the quarry",
)
NUMBERS = _split(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen twenty"
)
ORDINALS = _split("first second third fourth fifth sixth seventh eighth ninth tenth")
MONTHS = _split(
    "January February March April May June July August September October November December"
)
