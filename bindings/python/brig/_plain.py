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
    X kind       a value that is made of a plain one, which follows: see _types.py
    O index      a value of a type that both sides know by this number: see _types.py
"""

from __future__ import annotations

import struct
from typing import Any, Callable, Collection, Dict, List, Optional, Tuple

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
# Of a value that is made of another: a path, a date, a dataclass.
OBJECT_COST = 384
# Containers may take so many times the bytes that may come.
MEMORY_FACTOR = 8

_COUNT = struct.Struct("<Q")
_INTEGER = struct.Struct("<q")
_FLOAT = struct.Struct("<d")
_WIDTH = 8
_PIECE = 8192

# Of a value: its tag, and what follows. Of a number and what followed: the value.
Reduce = Callable[[Any], Optional[Tuple[bytes, Any]]]
Make = Callable[[int, Any], Any]
Extend = Callable[[bytes, Any], Any]


class PlainError(ValueError):
    """A value that is not plain, or bytes that are not one."""


# ---- Writing -------------------------------------------------------------------------------------


def dump(value: Any, reduce: Optional[Reduce] = None) -> List[bytes]:
    """The parts whose concatenation is the value; large ones are not copied. `reduce` says for a value
    of another type which tag it gets and of which plain value it is made, or None."""
    parts: List[bytes] = []
    _Writer(parts, reduce).put(value, 0)
    return parts


class _Writer:
    def __init__(self, parts: List[bytes], reduce: Optional[Reduce]) -> None:
        self.parts = parts
        self.reduce = reduce

    def put(self, value: Any, depth: int) -> None:
        write = _WRITERS.get(type(value))
        if write is None:
            write = self.reduced(value, depth)
        if write is not None:
            write(self, value, depth)

    def reduced(self, value: Any, depth: int) -> Optional[Callable[[_Writer, Any, int], None]]:
        """Writes a value that is made of a plain one; else the writer of what it is a subclass of."""
        found = self.reduce(value) if self.reduce else None
        if found is None:
            return _writer_of_subclass(value)
        self.check_depth(depth)
        tag, inner = found
        self.parts.append(tag)
        self.put(inner, depth + 1)
        return None

    def check_depth(self, depth: int) -> None:
        if depth >= MAX_DEPTH:
            raise PlainError(f"the value is nested deeper than {MAX_DEPTH} levels")

    def integer(self, value: int, depth: int) -> None:
        if -(1 << 63) <= value < 1 << 63:
            self.parts.append(b"i" + _INTEGER.pack(value))
            return
        length = value.bit_length() // 8 + 1
        if length > MAX_INTEGER:
            raise PlainError(f"an integer of {length} bytes is too large: at most {MAX_INTEGER}")
        self.parts.append(b"I" + _COUNT.pack(length))
        self.parts.append(int(value).to_bytes(length, "little", signed=True))

    def text(self, value: str, depth: int) -> None:
        try:
            encoded = value.encode()
        except UnicodeEncodeError:
            raise PlainError(
                f"the text {_short(value)} has lone surrogates; of file names, return os.fsencode(name)"
            ) from None
        self.parts.append(b"s" + _COUNT.pack(len(encoded)))
        self.parts.append(encoded)

    def bytes_(self, value: Any, depth: int) -> None:
        data = value if isinstance(value, bytes) else bytes(value)
        self.parts.append(b"b" + _COUNT.pack(len(data)))
        self.parts.append(data)

    def list_(self, value: List[Any], depth: int) -> None:
        packed = _packed(value) if len(value) >= PACKED_FROM else None
        if packed is not None:
            self.parts.extend(packed)
            return
        self.items(b"l", value, depth)

    def items(self, tag: bytes, items: Collection[Any], depth: int) -> None:
        self.check_depth(depth)
        self.parts.append(tag + _COUNT.pack(len(items)))
        for item in items:
            self.put(item, depth + 1)

    def dict_(self, value: Dict[Any, Any], depth: int) -> None:
        self.check_depth(depth)
        self.parts.append(b"m" + _COUNT.pack(len(value)))
        for key, item in value.items():
            self.put(key, depth + 1)
            self.put(item, depth + 1)


def _packed(value: List[Any]) -> Any:
    """The parts of a list of nothing but floats, or of nothing but small integers; else None."""
    types = set(map(type, value))
    if types == {float}:
        return b"D" + _COUNT.pack(len(value)), struct.pack(f"<{len(value)}d", *value)
    if types == {int} and -(1 << 63) <= min(value) and max(value) < 1 << 63:
        return b"Q" + _COUNT.pack(len(value)), struct.pack(f"<{len(value)}q", *value)
    return None


_WRITERS: Dict[type, Callable[[_Writer, Any, int], None]] = {
    type(None): lambda writer, value, depth: writer.parts.append(b"N"),
    bool: lambda writer, value, depth: writer.parts.append(b"T" if value else b"F"),
    int: _Writer.integer,
    float: lambda writer, value, depth: writer.parts.append(b"d" + _FLOAT.pack(value)),
    str: _Writer.text,
    bytes: _Writer.bytes_,
    bytearray: _Writer.bytes_,
    memoryview: _Writer.bytes_,
    list: _Writer.list_,
    tuple: lambda writer, value, depth: writer.items(b"t", value, depth),
    set: lambda writer, value, depth: writer.items(b"e", value, depth),
    frozenset: lambda writer, value, depth: writer.items(b"f", value, depth),
    dict: _Writer.dict_,
}


def _writer_of_subclass(value: Any) -> Callable[[_Writer, Any, int], None]:
    """A named tuple comes back as a tuple, a defaultdict as a dict, and so on."""
    for kind, write in _WRITERS.items():
        if isinstance(value, kind):
            return write
    raise PlainError(
        f"{_short(value)} of type {type(value).__qualname__} is not plain data: return numbers, "
        "text, bytes, lists, tuples, sets and dicts of them; name dataclasses and enums in types=[…] "
        "or in the function's return annotation, or ask for result='pickle'"
    )


def _short(value: Any) -> str:
    text = ascii(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# ---- Reading -------------------------------------------------------------------------------------


def load(data: Any, max_bytes: int, make: Optional[Make] = None, extend: Optional[Extend] = None) -> Any:
    """The value that the bytes are. Raises PlainError if they are none; of containers it makes no
    more than MEMORY_FACTOR times max_bytes can hold. `extend` makes a value of the kind behind X of a
    plain one, `make` one of the type with the number behind O; both raise PlainError."""
    view = memoryview(data).cast("B")
    reader = _Reader(view, MEMORY_FACTOR * max_bytes, make, extend)
    value = reader.value(0)
    if reader.at != len(view):
        raise PlainError(f"{len(view) - reader.at} bytes follow the value")
    return value


class _Reader:
    def __init__(
        self, view: memoryview, room: int, make: Optional[Make], extend: Optional[Extend]
    ) -> None:
        self.view = view
        self.at = 0
        self.room = room
        self.make = make
        self.extend = extend

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
        count: int = self.number(_COUNT)
        if count > (len(self.view) - self.at) // smallest:
            raise PlainError("the value ends too early")
        self.pay(cost + count * cost_each)
        return count

    def pay(self, cost: int) -> None:
        self.room -= cost
        if self.room < 0:
            raise PlainError("the value would take too much memory")

    def check_depth(self, depth: int) -> None:
        if depth >= MAX_DEPTH:
            raise PlainError(f"the value is nested deeper than {MAX_DEPTH} levels")

    def integer(self, depth: int) -> int:
        return int(self.number(_INTEGER))

    def large_integer(self, depth: int) -> int:
        length = self.number(_COUNT)
        if not 0 < length <= MAX_INTEGER:
            raise PlainError(f"an integer of {length} bytes")
        return int.from_bytes(self.take(length), "little", signed=True)

    def float_(self, depth: int) -> float:
        return float(self.number(_FLOAT))

    def text(self, depth: int) -> str:
        data = self.take(self.number(_COUNT))
        try:
            return str(data, "utf-8")
        except UnicodeDecodeError:
            raise PlainError("text that is not UTF-8") from None

    def bytes_(self, depth: int) -> bytes:
        return bytes(self.take(self.number(_COUNT)))

    def items(self, depth: int, cost: int = LIST_COST, cost_each: int = SLOT_COST) -> List[Any]:
        self.check_depth(depth)
        return [self.value(depth + 1) for _ in range(self.count(1, cost, cost_each))]

    def table(self, depth: int, make: Callable[[List[Any]], Any]) -> Any:
        items = self.items(depth, TABLE_COST, ENTRY_COST)
        _check_keys(items)
        return _without_twins(make(items), len(items))

    def dict_(self, depth: int) -> Dict[Any, Any]:
        self.check_depth(depth)
        count = self.count(2, TABLE_COST, 2 * ENTRY_COST)
        keys, values = [], []
        for _ in range(count):
            keys.append(self.value(depth + 1))
            values.append(self.value(depth + 1))
        _check_keys(keys)
        made: Dict[Any, Any] = _without_twins(dict(zip(keys, values)), count)
        return made

    def packed(self, letter: str) -> List[Any]:
        count = self.count(_WIDTH, LIST_COST, PACKED_COST)
        numbers: List[Any] = []
        # In pieces, so that other threads get their turn.
        while len(numbers) < count:
            some = min(count - len(numbers), _PIECE)
            numbers += struct.unpack(f"<{some}{letter}", self.take(some * _WIDTH))
        return numbers

    def extended(self, depth: int) -> Any:
        self.check_depth(depth)
        self.pay(OBJECT_COST)
        kind = bytes(self.take(1))
        inner = self.value(depth + 1)
        if self.extend is None:
            raise PlainError("a value of a kind that is not expected")
        return self.extend(kind, inner)

    def object_(self, depth: int) -> Any:
        self.check_depth(depth)
        self.pay(OBJECT_COST)
        index = self.number(_COUNT)
        inner = self.value(depth + 1)
        if self.make is None:
            raise PlainError("a value of a type that is not expected")
        return self.make(index, inner)


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
    ord("X"): _Reader.extended,
    ord("O"): _Reader.object_,
}
