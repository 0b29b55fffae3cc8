# SPDX-License-Identifier: MIT
"""Plain values as bytes: the format in which the value of a jailed function comes back.

What the bytes say was decided by untrusted code. So reading them makes nothing but values of the
types below, runs nothing, and is bounded in time and memory by the number of bytes.

A value is a tag of one byte and what follows it; all numbers are little-endian, a length or count
is 64 bits unsigned:

    N T F        None, True, False
    i            an integer of 64 bits, signed
    I length     a larger integer: two's complement, at most MAX_INTEGER bytes
    d            a float
    s length     text in UTF-8
    b length     bytes
    l t e f      count values: list, tuple, set, frozenset
    m            count pairs: dict
    Q D          count integers (as i) or floats: a list of nothing else
"""

from __future__ import annotations

import struct
from typing import Any, Callable, Dict, Iterable, List

MAX_DEPTH = 100
MAX_INTEGER = 64 * 1024
# Keys of equal hash in one dict or set: integers are hashed without a secret, and some thousands
# chosen to collide would keep the reader busy for minutes.
MAX_EQUAL_HASHES = 8
# Lists of numbers are packed from this length on.
PACKED_FROM = 8
# What a container takes in memory beside its elements, about, and for each of them. Elements that
# are read one by one cost time as well; packed numbers do not.
LIST_COST, SLOT_COST, PACKED_COST = 64, 64, 8
TABLE_COST, ENTRY_COST = 256, 64
# Containers may take so many times the bytes that may come.
MEMORY_FACTOR = 8

_COUNT = struct.Struct("<Q")
_INTEGER = struct.Struct("<q")
_FLOAT = struct.Struct("<d")
_WIDTH = 8


class PlainError(ValueError):
    """A value that is not plain, or bytes that are not one."""


# ---- Writing -------------------------------------------------------------------------------------


def dump(value: Any) -> List[bytes]:
    """The parts whose concatenation is the value; large ones are not copied."""
    parts: List[bytes] = []
    _put(value, parts, 0)
    return parts


def _put(value: Any, parts: List[bytes], depth: int) -> None:
    write = _WRITERS.get(type(value)) or _writer_of_subclass(value)
    write(value, parts, depth)


def _put_integer(value: int, parts: List[bytes], depth: int) -> None:
    if -(1 << 63) <= value < 1 << 63:
        parts.append(b"i" + _INTEGER.pack(value))
        return
    length = value.bit_length() // 8 + 1
    if length > MAX_INTEGER:
        raise PlainError(f"an integer of {length} bytes is too large: at most {MAX_INTEGER}")
    parts.append(b"I" + _COUNT.pack(length))
    parts.append(int(value).to_bytes(length, "little", signed=True))


def _put_text(value: str, parts: List[bytes], depth: int) -> None:
    try:
        encoded = value.encode()
    except UnicodeEncodeError:
        raise PlainError(
            f"the text {_short(value)} has lone surrogates; of file names, return os.fsencode(name)"
        ) from None
    parts.append(b"s" + _COUNT.pack(len(encoded)))
    parts.append(encoded)


def _put_bytes(value: Any, parts: List[bytes], depth: int) -> None:
    data = value if isinstance(value, bytes) else bytes(value)
    parts.append(b"b" + _COUNT.pack(len(data)))
    parts.append(data)


def _put_list(value: List[Any], parts: List[bytes], depth: int) -> None:
    packed = _packed(value) if len(value) >= PACKED_FROM else None
    if packed is not None:
        parts.extend(packed)
        return
    _put_items(b"l", value, len(value), parts, depth)


def _packed(value: List[Any]) -> Any:
    """The parts of a list of nothing but floats, or of nothing but small integers; else None."""
    types = set(map(type, value))
    if types == {float}:
        return b"D" + _COUNT.pack(len(value)), struct.pack(f"<{len(value)}d", *value)
    if types == {int} and -(1 << 63) <= min(value) and max(value) < 1 << 63:
        return b"Q" + _COUNT.pack(len(value)), struct.pack(f"<{len(value)}q", *value)
    return None


def _put_items(
    tag: bytes, items: Iterable[Any], count: int, parts: List[bytes], depth: int
) -> None:
    if depth >= MAX_DEPTH:
        raise PlainError(f"the value is nested deeper than {MAX_DEPTH} levels")
    parts.append(tag + _COUNT.pack(count))
    for item in items:
        _put(item, parts, depth + 1)


def _put_dict(value: Dict[Any, Any], parts: List[bytes], depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise PlainError(f"the value is nested deeper than {MAX_DEPTH} levels")
    parts.append(b"m" + _COUNT.pack(len(value)))
    for key, item in value.items():
        _put(key, parts, depth + 1)
        _put(item, parts, depth + 1)


_WRITERS: Dict[type, Callable[[Any, List[bytes], int], None]] = {
    type(None): lambda value, parts, depth: parts.append(b"N"),
    bool: lambda value, parts, depth: parts.append(b"T" if value else b"F"),
    int: _put_integer,
    float: lambda value, parts, depth: parts.append(b"d" + _FLOAT.pack(value)),
    str: _put_text,
    bytes: _put_bytes,
    bytearray: _put_bytes,
    memoryview: _put_bytes,
    list: _put_list,
    tuple: lambda value, parts, depth: _put_items(b"t", value, len(value), parts, depth),
    set: lambda value, parts, depth: _put_items(b"e", value, len(value), parts, depth),
    frozenset: lambda value, parts, depth: _put_items(b"f", value, len(value), parts, depth),
    dict: _put_dict,
}


def _writer_of_subclass(value: Any) -> Callable[[Any, List[bytes], int], None]:
    """A named tuple comes back as a tuple, a defaultdict as a dict, and so on."""
    for kind, write in _WRITERS.items():
        if isinstance(value, kind):
            return write
    raise PlainError(
        f"{_short(value)} of type {type(value).__qualname__} is no plain value: return numbers, "
        "text, bytes, lists, tuples, sets and dicts of them, or ask for result='pickle'"
    )


def _short(value: Any) -> str:
    text = ascii(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# ---- Reading -------------------------------------------------------------------------------------


def load(data: Any, max_bytes: int) -> Any:
    """The value that the bytes are. Raises PlainError if they are none; of containers it makes no
    more than MEMORY_FACTOR times max_bytes can hold."""
    view = memoryview(data).cast("B")
    reader = _Reader(view, MEMORY_FACTOR * max_bytes)
    value = reader.value(0)
    if reader.at != len(view):
        raise PlainError(f"{len(view) - reader.at} bytes follow the value")
    return value


class _Reader:
    def __init__(self, view: memoryview, room: int) -> None:
        self.view = view
        self.at = 0
        self.room = room

    def value(self, depth: int) -> Any:
        if self.at >= len(self.view):
            raise PlainError("the value ends too early")
        read = _READERS.get(self.view[self.at])
        if read is None:
            raise PlainError(f"no value begins with the byte {self.view[self.at]:#04x}")
        self.at += 1
        return read(self, depth)

    def take(self, length: int) -> memoryview:
        if length > len(self.view) - self.at:
            raise PlainError("the value ends too early")
        self.at += length
        return self.view[self.at - length : self.at]

    def number(self, form: struct.Struct) -> Any:
        return form.unpack(self.take(_WIDTH))[0]

    def count(self, smallest: int, cost: int, cost_each: int) -> int:
        """How many elements follow; no more than the bytes left can be."""
        count = self.number(_COUNT)
        if count > (len(self.view) - self.at) // smallest:
            raise PlainError("the value ends too early")
        self.room -= cost + count * cost_each
        if self.room < 0:
            raise PlainError("the value would take too much memory")
        return count

    def integer(self, depth: int) -> int:
        return self.number(_INTEGER)

    def large_integer(self, depth: int) -> int:
        length = self.number(_COUNT)
        if not 0 < length <= MAX_INTEGER:
            raise PlainError(f"an integer of {length} bytes")
        return int.from_bytes(self.take(length), "little", signed=True)

    def float_(self, depth: int) -> float:
        return self.number(_FLOAT)

    def text(self, depth: int) -> str:
        data = self.take(self.number(_COUNT))
        try:
            return str(data, "utf-8")
        except UnicodeDecodeError:
            raise PlainError("text that is not UTF-8") from None

    def bytes_(self, depth: int) -> bytes:
        return bytes(self.take(self.number(_COUNT)))

    def items(self, depth: int, cost: int = LIST_COST, cost_each: int = SLOT_COST) -> List[Any]:
        if depth >= MAX_DEPTH:
            raise PlainError(f"the value is nested deeper than {MAX_DEPTH} levels")
        return [self.value(depth + 1) for _ in range(self.count(1, cost, cost_each))]

    def table(self, depth: int, make: Callable[[List[Any]], Any]) -> Any:
        items = self.items(depth, TABLE_COST, ENTRY_COST)
        _check_keys(items)
        return _without_twins(make(items), len(items))

    def dict_(self, depth: int) -> Dict[Any, Any]:
        if depth >= MAX_DEPTH:
            raise PlainError(f"the value is nested deeper than {MAX_DEPTH} levels")
        count = self.count(2, TABLE_COST, 2 * ENTRY_COST)
        keys, values = [], []
        for _ in range(count):
            keys.append(self.value(depth + 1))
            values.append(self.value(depth + 1))
        _check_keys(keys)
        return _without_twins(dict(zip(keys, values)), count)

    def packed(self, letter: str) -> List[Any]:
        count = self.count(_WIDTH, LIST_COST, PACKED_COST)
        return list(struct.unpack(f"<{count}{letter}", self.take(count * _WIDTH)))


def _without_twins(table: Any, count: int) -> Any:
    if len(table) != count:
        raise PlainError("a dict or set with two equal keys")
    return table


def _check_keys(keys: List[Any]) -> None:
    """Text and bytes are hashed with a secret; the hashes of all else are counted before a table
    is made of them."""
    if set(map(type, keys)) <= {str, bytes}:
        return
    seen: Dict[int, int] = {}
    for key in keys:
        try:
            number = hash(key)
        except TypeError:
            raise PlainError(f"a {type(key).__name__} cannot be a key") from None
        seen[number] = seen.get(number, 0) + 1
        if seen[number] > MAX_EQUAL_HASHES:
            raise PlainError("a dict or set with keys that were chosen to collide")


_READERS: Dict[int, Callable[[_Reader, int], Any]] = {
    ord("N"): lambda reader, depth: None,
    ord("T"): lambda reader, depth: True,
    ord("F"): lambda reader, depth: False,
    ord("i"): _Reader.integer,
    ord("I"): _Reader.large_integer,
    ord("d"): _Reader.float_,
    ord("s"): _Reader.text,
    ord("b"): _Reader.bytes_,
    ord("l"): _Reader.items,
    ord("t"): lambda reader, depth: tuple(reader.items(depth)),
    ord("e"): lambda reader, depth: reader.table(depth, set),
    ord("f"): lambda reader, depth: reader.table(depth, frozenset),
    ord("m"): _Reader.dict_,
    ord("Q"): lambda reader, depth: reader.packed("q"),
    ord("D"): lambda reader, depth: reader.packed("d"),
}
