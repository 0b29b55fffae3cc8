# SPDX-License-Identifier: MIT
"""Values of more types than plain data has: dates, paths, numbers, arrays, and the caller's own
dataclasses, enums and named tuples.

A value is written as a plain one and read back by code of this file, or by the constructor of a type of
the caller's. Bytes of the jail name a type by its number in a list, which was made from types=[…] and the
return annotation before the fork: they can choose among these types and have none other imported, made
or run. A constructor gets values of the jail's choice, as every function does that uses them.
"""

from __future__ import annotations

import ast
import dataclasses
import datetime
import decimal
import enum
import math
import os
import pathlib
import struct
import sys
import types
import typing
import uuid
from typing import Any, Callable, Dict, List, Mapping, Optional, Set, Tuple

from . import _plain
from ._plain import PlainError

_COUNT = struct.Struct("<Q")
# Digits of a Decimal, dimensions of an array: more is nobody's honest value.
MAX_DIGITS = 64 * 1024
MAX_DIMENSIONS = 32
_MICROSECOND = datetime.timedelta(microseconds=1)


# ---- Types that are always known -----------------------------------------------------------------


def _zone_parts(zone: Optional[datetime.tzinfo], when: Any) -> Any:
    """A time zone by its offset at that time; its rules are not kept."""
    if zone is None:
        return None
    offset = zone.utcoffset(when)
    if offset is None:
        raise PlainError(f"the time zone {zone!r} has no offset at {when}")
    return offset // _MICROSECOND, zone.tzname(when)


def _zone(parts: Any) -> Optional[datetime.timezone]:
    if parts is None:
        return None
    offset, name = _typed(parts, (int, (str, type(None))))
    made = datetime.timedelta(microseconds=offset)
    if name is None or (name == "UTC" and not offset):
        return datetime.timezone(made) if offset else datetime.timezone.utc
    return datetime.timezone(made, name)


def _datetime_parts(value: datetime.datetime) -> Any:
    whole = (value.year, value.month, value.day, value.hour, value.minute, value.second)
    return (*whole, value.microsecond, value.fold, _zone_parts(value.tzinfo, value))


def _datetime(parts: Any) -> datetime.datetime:
    *whole, fold, zone = _typed(parts, (*[int] * 8, object))
    return datetime.datetime(*whole).replace(tzinfo=_zone(zone), fold=fold)


def _time_parts(value: datetime.time) -> Any:
    zone = _zone_parts(value.tzinfo, None) if value.utcoffset() is not None else None
    if zone is None and value.tzinfo is not None:
        raise PlainError(f"the time zone {value.tzinfo!r} has no offset without a date")
    return (value.hour, value.minute, value.second, value.microsecond, value.fold, zone)


def _time(parts: Any) -> datetime.time:
    *whole, fold, zone = _typed(parts, (*[int] * 5, object))
    return datetime.time(*whole).replace(tzinfo=_zone(zone), fold=fold)


def _timedelta(parts: Any) -> datetime.timedelta:
    return datetime.timedelta(*_typed(parts, (int, int, int)))


def _decimal_text(value: decimal.Decimal) -> str:
    text = str(value)
    if len(text) > MAX_DIGITS:
        raise PlainError(f"a Decimal of {len(text)} digits is too large: at most {MAX_DIGITS}")
    return text


def _decimal(text: Any) -> decimal.Decimal:
    (text,) = _typed((text,), (str,))
    if len(text) > MAX_DIGITS:
        raise PlainError("a Decimal with too many digits")
    with decimal.localcontext() as context:
        context.traps[decimal.InvalidOperation] = True
        return decimal.Decimal(text)


def _complex(parts: Any) -> complex:
    return complex(*_typed(parts, (float, float)))


def _timezone(parts: Any) -> datetime.timezone:
    made = _zone(_typed(parts, (int, (str, type(None)))))
    if made is None:
        raise PlainError("no time zone")
    return made


def _of(kind: type, make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Makes a value of a plain one of just this type."""
    return lambda inner: make(*_typed((inner,), (kind,)))


def _typed(parts: Any, kinds: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """The parts, if there are as many of these types; bool is not taken for int."""
    if type(parts) is not tuple or len(parts) != len(kinds):
        raise PlainError("a value that is not made of what it should be")
    for part, kind in zip(parts, kinds):
        if not isinstance(part, kind) or (kind is int and type(part) is not int):
            raise PlainError("a value that is not made of what it should be")
    return parts


# Type: its letter, and of which plain value it is made. Exactly these types, as a subclass may be more.
_REDUCE: Dict[type, Tuple[bytes, Callable[[Any], Any]]] = {
    complex: (b"c", lambda value: (value.real, value.imag)),
    datetime.datetime: (b"d", _datetime_parts),
    datetime.date: (b"a", datetime.date.toordinal),
    datetime.time: (b"t", _time_parts),
    datetime.timedelta: (b"l", lambda value: (value.days, value.seconds, value.microseconds)),
    datetime.timezone: (b"z", lambda value: _zone_parts(value, None)),
    decimal.Decimal: (b"m", _decimal_text),
    pathlib.PosixPath: (b"p", os.fsencode),
    pathlib.PurePosixPath: (b"P", os.fsencode),
    uuid.UUID: (b"u", lambda value: value.bytes),
}
_EXTEND: Dict[bytes, Callable[[Any], Any]] = {
    b"c": _complex,
    b"d": _datetime,
    b"a": _of(int, datetime.date.fromordinal),
    b"t": _time,
    b"l": _timedelta,
    b"z": _timezone,
    b"m": _decimal,
    b"p": _of(bytes, lambda path: pathlib.PosixPath(os.fsdecode(path))),
    b"P": _of(bytes, lambda path: pathlib.PurePosixPath(os.fsdecode(path))),
    b"u": _of(bytes, lambda data: uuid.UUID(bytes=data)),
}


# ---- Arrays --------------------------------------------------------------------------------------

# Elements that are nothing but numbers, times and bytes: never objects.
_ARRAY_KINDS = "biufcmMS"


def _array_parts(numpy: Any, value: Any) -> Optional[Tuple[bytes, Any]]:
    """An array, or an element of one; None for anything else."""
    scalar = isinstance(value, numpy.generic)
    if type(value) is not numpy.ndarray and not scalar:
        return None
    array = numpy.asarray(value)
    if array.dtype.kind not in _ARRAY_KINDS:
        raise PlainError(f"an array of {array.dtype} is not plain data: use numbers, or array.tolist()")
    plain = numpy.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    inner = (plain.dtype.str, tuple(int(length) for length in array.shape), plain.tobytes())
    return b"Xs" if scalar else b"Xn", inner


def _array(numpy: Any, parts: Any) -> Any:
    dtype, shape, data = _typed(parts, (str, tuple, bytes))
    # The letter decides; "O", "V" and lists of fields are none of them.
    if len(dtype) > 16 or not dtype.isascii() or dtype[:1] not in "<|" or dtype[1:2] not in _ARRAY_KINDS:
        raise PlainError("an array of elements that are not plain")
    _typed(shape, (int,) * len(shape))
    made = numpy.dtype(dtype)
    if made.hasobject or made.kind not in _ARRAY_KINDS or made.subdtype is not None:
        raise PlainError("an array of elements that are not plain")
    if len(shape) > MAX_DIMENSIONS or min(shape, default=0) < 0:
        raise PlainError("an array whose shape cannot be")
    if math.prod(shape) * made.itemsize != len(data):
        raise PlainError("an array that is larger or smaller than its shape")
    return numpy.frombuffer(bytearray(data), made).reshape(shape)


# ---- The caller's types --------------------------------------------------------------------------


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and isinstance(getattr(kind, "_fields", None), tuple)


def is_known_kind(kind: Any) -> bool:
    """Whether values of the type can come back, once it is named."""
    if not isinstance(kind, type):
        return False
    return dataclasses.is_dataclass(kind) or issubclass(kind, enum.Enum) or _is_named_tuple(kind)


def _fields(kind: Any) -> List[str]:
    return [field.name for field in dataclasses.fields(kind) if field.init]


def _own_parts(value: Any) -> Any:
    kind = type(value)
    if isinstance(value, enum.Flag):
        return value.value
    if isinstance(value, enum.Enum):
        return value.name
    if _is_named_tuple(kind):
        return tuple(value)
    return tuple(getattr(value, name) for name in _fields(kind))


def _flags(kind: Any, value: int) -> Any:
    """Of bits that have a name: enum keeps every combination it has ever made."""
    known = 0
    for member in kind.__members__.values():
        known |= member.value
    if value & ~known:
        raise PlainError(f"{value:#x} is no combination of {kind.__name__}")
    return kind(value)


def _own(kind: Any, inner: Any) -> Any:
    """By the type's constructor, so that its checks are made."""
    if issubclass(kind, enum.Flag):
        return _flags(kind, *_typed((inner,), (int,)))
    if issubclass(kind, enum.Enum):
        (name,) = _typed((inner,), (str,))
        return kind[name]
    if type(inner) is not tuple:
        raise PlainError("a value that is not made of what it should be")
    if _is_named_tuple(kind):
        return kind(*inner)
    names = _fields(kind)
    _typed(inner, (object,) * len(names))
    return kind(**dict(zip(names, inner)))


class Registry:
    """The types that may come back from one function: those given, and those that its return annotation
    names, with the types of their fields."""

    def __init__(self, given: Any = (), function: Any = None) -> None:
        if isinstance(given, type):
            raise TypeError(f"types is a list of classes: types=[{given.__name__}]")
        for kind in given:
            if not is_known_kind(kind) and kind not in _REDUCE and kind not in _plain._WRITERS:
                if not _is_array(kind):
                    raise TypeError(f"types: {kind!r} is not a dataclass, enum or named tuple")
        self._list = _with_fields([*given, *_returned(function)])
        self._numbers = {kind: number for number, kind in enumerate(self._list)}
        # Arrays are known to programs that have numpy; nothing is imported for bytes of the jail.
        self._numpy = sys.modules.get("numpy")

    def dump(self, value: Any) -> List[bytes]:
        """In the child: the value as bytes."""
        return _plain.dump(value, self._reduce)

    def load(self, data: Any, max_bytes: int) -> Any:
        """In the caller: the value that the bytes are."""
        return _plain.load(data, max_bytes, self._make, self._extend)

    def _reduce(self, value: Any) -> Optional[Tuple[bytes, Any]]:
        kind = type(value)
        if kind in self._numbers:
            return b"O" + _COUNT.pack(self._numbers[kind]), _own_parts(value)
        if kind in _REDUCE:
            letter, parts = _REDUCE[kind]
            return b"X" + letter, parts(value)
        return _array_parts(self._numpy, value) if self._numpy else None

    def _make(self, number: int, inner: Any) -> Any:
        if number >= len(self._list):
            raise PlainError("a value of a type that is not expected")
        kind = self._list[number]
        return _refusing(lambda parts: _own(kind, parts), inner, kind.__name__)

    def _extend(self, letter: bytes, inner: Any) -> Any:
        if letter in _EXTEND:
            return _refusing(_EXTEND[letter], inner, "a date, number, path or the like")
        if letter not in (b"n", b"s") or self._numpy is None:
            raise PlainError("a value of a kind that is not expected")
        array = _refusing(lambda parts: _array(self._numpy, parts), inner, "an array")
        return array if letter == b"n" else _element(array)


def _is_array(kind: Any) -> bool:
    return getattr(kind, "__module__", None) == "numpy" and isinstance(kind, type)


def _element(array: Any) -> Any:
    if array.shape != ():
        raise PlainError("an element that is an array")
    return array[()]


def _refusing(make: Callable[[Any], Any], inner: Any, name: str) -> Any:
    """What a constructor says against its arguments is an error of the value."""
    try:
        return make(inner)
    except (PlainError, MemoryError):
        raise
    except Exception as error:
        raise PlainError(f"{name} cannot be made of what came: {error}") from None


# ---- Types by annotations ------------------------------------------------------------------------


def _returned(function: Any) -> List[type]:
    """The types that a function's return annotation names, or the class that is called."""
    while hasattr(function, "func") and not isinstance(function, type):  # partial
        function = function.func
    if isinstance(function, type):
        return [function] if is_known_kind(function) else []
    function = getattr(function, "__func__", function)
    return _named(_annotations(function).get("return"), getattr(function, "__globals__", {}))


def _annotations(thing: Any) -> Mapping[str, Any]:
    """None if they cannot be had: from Python 3.14 on they are made when they are asked for."""
    try:
        found = thing.__annotations__
    except Exception:
        return {}
    return found if isinstance(found, dict) else {}


def _with_fields(kinds: List[Any]) -> List[type]:
    """The types, and those that the annotations of their fields name, each once."""
    found: Dict[type, None] = {}
    waiting = [kind for kind in kinds if is_known_kind(kind)]
    while waiting:
        kind = waiting.pop()
        if kind in found:
            continue
        found[kind] = None
        module = sys.modules.get(kind.__module__)
        names = {**vars(module)} if module else {}
        for base in kind.__mro__:
            for annotation in _annotations(base).values():
                waiting += _named(annotation, names)
    return list(found)


def _named(annotation: Any, names: Mapping[str, Any]) -> List[type]:
    """The types in an annotation that values can have. Text is looked up, never evaluated: it may be
    that of a function that is not trusted."""
    found: List[type] = []
    seen: Set[int] = set()
    waiting = [annotation]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, typing.ForwardRef):
            part = part.__forward_arg__
        if isinstance(part, str):
            waiting += _looked_up(part, names)
        elif is_known_kind(part):
            found.append(part)
        else:
            waiting += getattr(part, "__args__", None) or ()
    return found


def _looked_up(text: str, names: Mapping[str, Any]) -> List[Any]:
    """What the names in the text of an annotation stand for."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [thing for node in ast.walk(tree) for thing in _thing(node, names)]


def _thing(node: ast.AST, names: Mapping[str, Any]) -> List[Any]:
    if isinstance(node, ast.Name):
        found = names.get(node.id)
        return [found] if is_known_kind(found) or hasattr(found, "__args__") else []
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        owner = names.get(node.value.id)
        if isinstance(owner, (types.ModuleType, type)):
            found = vars(owner).get(node.attr)
            return [found] if is_known_kind(found) else []
    return []
