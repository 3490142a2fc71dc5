"""NEXMark's events: people sign up, put things up for sale, bid. A function of the seed alone.

The proportions, hot keys, lifetimes and sizes are those of the benchmark's generator (Apache Beam's and nexmark-flink's
``GeneratorConfig``, ``PersonGenerator``, ``AuctionGenerator``, ``BidGenerator``); the random numbers are numpy's. Of 50
events one is a person, three are auctions, 46 are bids; event number n happens n / ``RATE`` seconds after ``BEGIN``.
Events are drawn by blocks of ``BLOCK``, each from a generator of its own, so that a smaller draw is the beginning of a
larger one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

BEGIN = datetime(2015, 7, 15, tzinfo=UTC)
RATE = 10_000
"""Events a second, of the events' own time."""
SEED = 7
PERSONS, AUCTIONS, BIDS = 1, 3, 46
"""Of each ``EPOCH`` events."""
EPOCH = PERSONS + AUCTIONS + BIDS
BLOCK = 1_000 * EPOCH
FIRST_PERSON, FIRST_AUCTION, FIRST_CATEGORY, CATEGORIES = 1_000, 1_000, 10, 5

ACTIVE_PEOPLE, AUCTIONS_IN_FLIGHT = 1_000, 100
LEAD = 10
"""How many people and auctions that are not there yet may be named."""
HOT_GROUP = 100
"""Of so many people or auctions one is hot, for as long as they are the last ones."""
COLD_SELLERS, COLD_AUCTIONS, COLD_BIDDERS = 4, 2, 4
"""One of so many auctions (bids) is of anybody, the others are of the hot one."""
COLD_CHANNELS, CHANNELS = 2, 10_000
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
PERSON_BYTES, AUCTION_BYTES, BID_BYTES = 200, 500, 100
"""What an event takes on average; its last column fills it up."""

_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES = (
    "Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne",
)  # fmt: skip
_FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
_LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)
_INSTANT = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Events:
    """Some of the events, by stream; each table in the order of time."""

    person: pa.Table
    auction: pa.Table
    bid: pa.Table

    def items(self) -> list[tuple[str, pa.Table]]:
        """Names of streams and their tables."""
        return [("person", self.person), ("auction", self.auction), ("bid", self.bid)]


def end(count: int) -> datetime:
    """An instant after all of the first ``count`` events, and after all windows over them have closed."""
    seconds = -(-count // RATE)
    return datetime.fromtimestamp(BEGIN.timestamp() + (seconds // 60 + 2) * 60, UTC)


def events(count: int, seed: int = SEED) -> Iterator[Events]:
    """The first ``count`` events, block by block."""
    channels = _Channels(np.random.default_rng([seed]))
    for first in range(0, count, BLOCK):
        yield _block(first, min(BLOCK, count - first), np.random.default_rng([seed, first // BLOCK]), channels)


def _block(first: int, count: int, chance: np.random.Generator, channels: _Channels) -> Events:
    # all of the block is drawn, so that the beginning does not depend on how much of it is wanted
    number = np.arange(first, first + BLOCK, dtype=np.int64)
    place = number % EPOCH
    wanted = number < first + count
    kinds = place < PERSONS, (place >= PERSONS) & (place < PERSONS + AUCTIONS), place >= PERSONS + AUCTIONS
    people = _people(number[kinds[0]], chance)
    auctions = _auctions(number[kinds[1]], chance)
    bids = _bids(number[kinds[2]], chance, channels)
    drawn = zip((people, auctions, bids), kinds, strict=True)
    return Events(*(table.slice(0, int((kind & wanted).sum())) for table, kind in drawn))


def _people(number: np.ndarray, chance: np.random.Generator) -> pa.Table:
    n = len(number)
    name = _pairs(_FIRST_NAMES, _LAST_NAMES, chance.integers(0, len(_FIRST_NAMES) * len(_LAST_NAMES), n))
    # as many letters as the benchmark draws, without its blanks
    email = _joined(_words(chance, chance.integers(3, 7, n)), "@", _words(chance, chance.integers(3, 5, n)), ".com")
    digits = chance.integers(0, 10_000, (n, 4))
    card = pa.array([f"{a:04d} {b:04d} {c:04d} {d:04d}" for a, b, c, d in digits.tolist()])
    city = _chosen(_CITIES, chance.integers(0, len(_CITIES), n))
    state = _chosen(_STATES, chance.integers(0, len(_STATES), n))
    size = 8 + np.sum([_lengths(texts) for texts in (name, email, card, city, state)], axis=0)
    return pa.table(
        {
            "id": FIRST_PERSON + _last_person(number),
            "name": name,
            "email_address": email,
            "credit_card": card,
            "city": city,
            "state": state,
            "date_time": _instants(number),
            "extra": _extra(chance, size, PERSON_BYTES),
        }
    )


def _auctions(number: np.ndarray, chance: np.random.Generator) -> pa.Table:
    n = len(number)
    hot = _last_person(number) // HOT_GROUP * HOT_GROUP
    seller = np.where(chance.integers(0, COLD_SELLERS, n) > 0, hot, _anybody(number, chance))
    begin = _milliseconds(number)
    # until as many auctions have begun as are in flight, on average
    horizon = _milliseconds(number + AUCTIONS_IN_FLIGHT * EPOCH // AUCTIONS) - begin
    expires = begin + 1 + (chance.random(n) * np.maximum(2 * horizon, 1)).astype(np.int64)
    initial = _prices(chance, n)
    name = _words(chance, chance.integers(3, 20, n), blanks=True)
    description = _words(chance, chance.integers(3, 100, n), blanks=True)
    return pa.table(
        {
            "id": FIRST_AUCTION + _last_auction(number),
            "item_name": name,
            "description": description,
            "initial_bid": initial,
            "reserve": initial + _prices(chance, n),
            "date_time": _instants(number),
            "expires": pa.array(expires * 1000).cast(_INSTANT),
            "seller": FIRST_PERSON + seller,
            "category": FIRST_CATEGORY + chance.integers(0, CATEGORIES, n),
            "extra": _extra(chance, 48 + _lengths(name) + _lengths(description), AUCTION_BYTES),
        }
    )


def _bids(number: np.ndarray, chance: np.random.Generator, channels: _Channels) -> pa.Table:
    n = len(number)
    last = _last_auction(number)
    oldest = np.maximum(last - AUCTIONS_IN_FLIGHT, 0)
    cold = oldest + (chance.random(n) * (last - oldest + 1 + LEAD)).astype(np.int64)
    auction = np.where(chance.integers(0, COLD_AUCTIONS, n) > 0, last // HOT_GROUP * HOT_GROUP, cold)
    # the second of a group, so that hot bidders are no hot sellers
    hot = _last_person(number) // HOT_GROUP * HOT_GROUP + 1
    bidder = np.where(chance.integers(0, COLD_BIDDERS, n) > 0, hot, _anybody(number, chance))
    price = _prices(chance, n)
    channel, url = channels.drawn(chance, n)
    return pa.table(
        {
            "auction": FIRST_AUCTION + auction,
            "bidder": FIRST_PERSON + bidder,
            "price": price,
            "channel": channel,
            "url": url,
            "date_time": _instants(number),
            "extra": _extra(chance, np.full(n, 32), BID_BYTES),
        }
    )


class _Channels:
    """Where bids come from: four channels have half of them, each channel has one address."""

    def __init__(self, chance: np.random.Generator):
        folders = [_words(chance, chance.integers(3, 5, CHANNELS + len(HOT_CHANNELS))).to_pylist() for _ in range(3)]
        named = chance.integers(0, 10, CHANNELS) > 0
        urls = [f"https://www.nexmark.com/{a}/{b}/{c}/item.htm?query=1" for a, b, c in zip(*folders, strict=True)]
        for number in range(CHANNELS):
            if named[number]:
                urls[number] += f"&channel_id={_reversed(number)}"
        self._channels = pa.array([*(f"channel-{number}" for number in range(CHANNELS)), *HOT_CHANNELS])
        self._urls = pa.array(urls)

    def drawn(self, chance: np.random.Generator, n: int) -> tuple[pa.Array, pa.Array]:
        """Channels and addresses of ``n`` bids."""
        hot = CHANNELS + chance.integers(0, len(HOT_CHANNELS), n)
        which = np.where(chance.integers(0, COLD_CHANNELS, n) > 0, hot, chance.integers(0, CHANNELS, n))
        return self._channels.take(pa.array(which)), self._urls.take(pa.array(which))


def _reversed(number: int) -> int:
    """The 32 bits of a number in reverse, as a signed one without its sign."""
    bits = int(f"{number:032b}"[::-1], 2)
    return abs(bits - (1 << 32) if bits >> 31 else bits)


def _last_person(number: np.ndarray) -> np.ndarray:
    """The last person that had signed up when an event happened, counted from 0."""
    return number // EPOCH * PERSONS + np.minimum(number % EPOCH, PERSONS - 1)


def _last_auction(number: np.ndarray) -> np.ndarray:
    """The last auction that had begun, counted from 0; -1 before the first."""
    return number // EPOCH * AUCTIONS + np.clip(number % EPOCH - PERSONS, -1, AUCTIONS - 1)


def _anybody(number: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """Any of the people who are active, or one of the next ones."""
    people = _last_person(number) + 1
    active = np.minimum(people, ACTIVE_PEOPLE)
    return people - active + (chance.random(len(number)) * (active + LEAD)).astype(np.int64)


def _milliseconds(number: np.ndarray) -> np.ndarray:
    return int(BEGIN.timestamp()) * 1000 + number * 1000 // RATE


def _instants(number: np.ndarray) -> pa.Array:
    return pa.array(_milliseconds(number) * 1000).cast(_INSTANT)


def _prices(chance: np.random.Generator, n: int) -> np.ndarray:
    """Cents from 100 to 100,000,000, as many of each length."""
    return np.rint(10 ** (chance.random(n) * 6) * 100).astype(np.int64)


def _words(chance: np.random.Generator, lengths: np.ndarray, blanks: bool = False) -> pa.Array:
    """Random letters; with ``blanks`` one of 13 inside is none."""
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    letters = _LETTERS[chance.integers(0, 26, int(ends[-1]), dtype=np.uint8)]
    if blanks:
        gaps = chance.integers(0, 13, len(letters)) == 0
        gaps[ends[:-1]] = gaps[ends[1:] - 1] = False
        letters[gaps] = ord(" ")
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(ends), pa.py_buffer(letters))


def _extra(chance: np.random.Generator, size: np.ndarray, wanted: int) -> pa.Array:
    """Letters that make events of ``size`` bytes such of ``wanted``, within a fifth."""
    room = np.maximum(wanted - size, 0)
    spread = np.rint(room * 0.2).astype(np.int64)
    return _words(chance, room - spread + (chance.random(len(room)) * np.maximum(2 * spread, 1)).astype(np.int64))


def _chosen(texts: tuple[str, ...], which: np.ndarray) -> pa.Array:
    return pa.array(texts).take(pa.array(which))


def _pairs(first: tuple[str, ...], second: tuple[str, ...], which: np.ndarray) -> pa.Array:
    return _chosen(tuple(f"{a} {b}" for a in first for b in second), which)


def _joined(first: pa.Array, sign: str, second: pa.Array, rest: str) -> pa.Array:
    pairs = zip(first.to_pylist(), second.to_pylist(), strict=True)
    return pa.array([f"{a}{sign}{b}{rest}" for a, b in pairs])


def _lengths(texts: pa.Array) -> np.ndarray:
    return np.diff(np.frombuffer(texts.buffers()[1], np.int32)[: len(texts) + 1]).astype(np.int64)
