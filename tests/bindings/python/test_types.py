# SPDX-License-Identifier: MIT
"""Values of more types than plain data has: what comes back, and what hostile bytes do not get."""

import collections
import dataclasses
import datetime
import decimal
import enum
import functools
import os
import pathlib
import random
import struct
import sys
import typing
import unittest
import uuid
import zoneinfo

import tap
import brig
from brig import _plain, _types
from test_call import return_bytes

try:
    import numpy
except ImportError:
    numpy = None

LIMIT = 64 << 20
MINUTE = datetime.timedelta(minutes=1)


class Colour(enum.Enum):
    RED = "r"
    BLUE = ("b", 1)


class Level(enum.IntEnum):
    LOW = 1


class Right(enum.Flag):
    READ = 1
    WRITE = 2


class Place(typing.NamedTuple):
    x: int
    colour: Colour


@dataclasses.dataclass(frozen=True)
class Inner:
    when: datetime.datetime


@dataclasses.dataclass
class Point:
    x: int
    inner: "typing.Optional[Inner]" = None
    rest: "list[Place]" = dataclasses.field(default_factory=list)
    twice: int = dataclasses.field(init=False, default=0)

    def __post_init__(self):
        if not isinstance(self.x, int):
            raise TypeError("x is an int")
        self.twice = 2 * self.x


@dataclasses.dataclass
class Unnamed:
    command: str = "true"


def count(number):
    return struct.pack("<Q", number)


def dump(value, *types):
    return b"".join(_types.Registry(types).dump(value))


def there_and_back(value, *types):
    registry = _types.Registry(types)
    return registry.load(b"".join(registry.dump(value)), LIMIT)


class Values(unittest.TestCase):
    def same(self, value, *types):
        back = there_and_back(value, *types)
        self.assertEqual(back, value)
        self.assertIs(type(back), type(value))
        return back

    def test_numbers_paths_and_times(self):
        zone = datetime.timezone(-90 * MINUTE, "odd")
        for value in (
            1j, complex(float("inf"), -0.0), decimal.Decimal("1.10"), decimal.Decimal("-Infinity"),
            decimal.Decimal("1E+999999"), pathlib.Path("/a/é"), pathlib.PurePosixPath("x"), uuid.uuid4(),
            pathlib.Path(os.fsdecode(b"/\xff")), datetime.date(2024, 2, 29), datetime.date.max, datetime.date.min,
            datetime.time(1, 2, 3, 4, fold=1), datetime.time(1, tzinfo=zone), datetime.timedelta(-1, 5, 7),
            datetime.timedelta.max, datetime.timedelta.min, datetime.timezone.utc, zone,
            datetime.datetime(2024, 1, 2, 3, 4, 5, 6), datetime.datetime.now(datetime.timezone.utc),
            datetime.datetime(1, 1, 1, tzinfo=zone), datetime.datetime.max,
            {decimal.Decimal(1): uuid.UUID(int=0), datetime.date(2024, 1, 1): [1j]},
        ):
            with self.subTest(value=value):
                self.same(value)

    def test_a_time_zone_with_rules_comes_back_as_its_offset(self):
        try:
            zone = zoneinfo.ZoneInfo("Europe/Paris")
        except zoneinfo.ZoneInfoNotFoundError:
            self.skipTest("no time zones are installed")
        summer = datetime.datetime(2024, 7, 1, tzinfo=zone)
        back = there_and_back(summer)
        self.assertEqual((back, back.utcoffset(), back.tzname()), (summer, 120 * MINUTE, "CEST"))
        with self.assertRaises(_plain.PlainError):
            dump(datetime.time(1, tzinfo=zone))

    def test_fold_is_kept(self):
        self.assertEqual(there_and_back(datetime.datetime(2024, 1, 1, fold=1)).fold, 1)

    def test_not_a_number_comes_back(self):
        self.assertTrue(there_and_back(decimal.Decimal("NaN")).is_nan())

    def test_types_of_the_caller(self):
        point = Point(3, Inner(datetime.datetime(2024, 1, 1)), [Place(1, Colour.BLUE)])
        back = self.same(point, Point)
        self.assertEqual((back.twice, type(back.rest[0]), back.rest[0].colour), (6, Place, Colour.BLUE))
        for value, kind in ((Colour.RED, Colour), (Level.LOW, Level), (Right.READ | Right.WRITE, Right), (Right(0), Right),
                            (Place(1, Colour.RED), Place)):
            self.same(value, kind)
        self.same({Inner(datetime.datetime(2024, 1, 1)): Colour.RED}, Inner, Colour)

    def test_a_type_that_is_not_named_is_refused_with_the_remedy(self):
        for value in (Unnamed(), Colour.RED, [Point(1)]):
            with self.assertRaisesRegex(_plain.PlainError, r"types=\["):
                dump(value)
        # As before, subclasses of plain types come back as these.
        self.assertEqual(there_and_back(Level.LOW), 1)
        self.assertIs(type(there_and_back(Level.LOW)), int)
        self.assertEqual(there_and_back(collections.namedtuple("pair", "a b")(1, 2)), (1, 2))

    def test_subclasses_of_times_and_paths_are_not_taken_for_them(self):
        class Stamp(datetime.datetime):
            pass

        with self.assertRaisesRegex(_plain.PlainError, "Stamp"):
            dump(Stamp(2024, 1, 1))

    def test_types_that_cannot_be_named(self):
        for wrong in (object, Exception, "Point", 3, len):
            with self.assertRaisesRegex(TypeError, "types"):
                brig.Jail(types=[wrong])
        with self.assertRaisesRegex(TypeError, r"types=\[Stamp\]"):
            brig.Jail(types=type("Stamp", (), {}))


class Annotations(unittest.TestCase):
    def found(self, annotation):
        def function():
            pass

        function.__annotations__["return"] = annotation
        return set(_types.Registry((), function)._list)

    def test_types_are_found_wherever_they_are_named(self):
        everything = {Point, Inner, Place, Colour}
        for annotation in (
            Point, "Point", "list[Point]", typing.List[Point], typing.Optional["Point"], "dict[str, Point | None]",
            typing.Dict[str, typing.Tuple["Point", ...]], "typing.Optional['Point']", "typing.Annotated[Point, 3]",
        ):
            with self.subTest(annotation=annotation):
                self.assertEqual(self.found(annotation), everything)
        for annotation in (None, "None", int, "nonesuch", "x y", "", "[", 3, typing.Any, "(" * 5000):
            self.assertEqual(self.found(annotation), set())

    def test_text_is_never_evaluated(self):
        seen = []
        globals()["trap"] = lambda: seen.append(1)
        self.assertEqual(self.found("trap() or Point"), {Point, Inner, Place, Colour})
        self.assertEqual(self.found("Point if trap() else [trap() for _ in range(3)]"), {Point, Inner, Place, Colour})
        self.assertEqual(seen, [])

    def test_partial_methods_and_classes(self):
        class Maker:
            def make(self, x) -> Point:
                return Point(x)

            def __call__(self):
                return 3

        self.assertEqual(brig.call(functools.partial(Maker().make, 4)), Point(4))
        self.assertEqual(brig.call(Maker().make, 4), Point(4))
        self.assertEqual(brig.call(Point, 4), Point(4))
        self.assertEqual(brig.call(Maker()), 3)

    def test_coroutine_functions_and_decorated_ones(self):
        @brig.jailed(timeout=20)
        def make(x: int) -> "Point":
            return Point(x)

        @brig.jailed(timeout=20, types=[Colour])
        def colour():
            return Colour.RED

        self.assertEqual((make(2), colour()), (Point(2), Colour.RED))
        with self.assertRaisesRegex(brig.ResultError, "types="):
            brig.call(lambda: Unnamed())


@unittest.skipUnless(numpy, "numpy is not installed")
class Arrays(unittest.TestCase):
    def test_arrays_and_their_elements_come_back(self):
        for array in (
            numpy.arange(6).reshape(2, 3), numpy.zeros((0, 5)), numpy.array(3.5), numpy.array([True, False]),
            numpy.arange(4, dtype=">u2"), numpy.arange(12.0).reshape(3, 4)[::2, ::-1], numpy.array([1j], "complex64"),
            numpy.array(["2024-01-01"], "datetime64[D]"), numpy.array([b"ab", b"c"]), numpy.array([1], "float16"),
            numpy.asfortranarray(numpy.ones((2, 3))), numpy.array([5], "timedelta64[ms]"),
        ):
            with self.subTest(dtype=array.dtype, shape=array.shape):
                back = there_and_back(array)
                self.assertIs(type(back), numpy.ndarray)
                self.assertEqual((back.shape, back.dtype.kind), (array.shape, array.dtype.kind))
                numpy.testing.assert_array_equal(back, array)
        back = there_and_back(numpy.arange(3))
        back[0] = 7  # it is the caller's own
        for element in (numpy.int64(3), numpy.float32(1.5), numpy.bool_(True), numpy.datetime64("2024-01-01")):
            self.assertEqual(there_and_back(element), element)
            self.assertIs(type(there_and_back(element)), type(element))

    def test_a_large_one_from_a_jail(self):
        with brig.Jail(memory_mb=2048) as jail:
            back = jail.call(numpy.arange, 4_000_000)
        self.assertEqual(back.sum(), 4_000_000 * 3_999_999 // 2)

    def test_objects_and_records_are_refused(self):
        for array in (numpy.array([object()]), numpy.array(["text"]), numpy.zeros(2, "i4,f8"), numpy.ma.array([1], mask=[1])):
            with self.assertRaises(_plain.PlainError):
                dump(array)

    def test_hostile_arrays(self):
        def refused(dtype, shape, data, words="array"):
            hostile = b"Xn" + b"".join(_plain.dump((dtype, shape, data)))
            with self.assertRaisesRegex(_plain.PlainError, words):
                _types.Registry().load(hostile, LIMIT)

        for dtype in ("|O", "O", "<O8", "|V8", "<U4", "i4,O", "<i4,<O", "object", "<i4:O", "", "<", "<i3", "<iO", "<b99", ">i4",
                      "<M8[x]", "(3,)<i4", "<é", "<i4\0", "<S99999999999", "<i" + "9" * 30):
            refused(dtype, (1,), bytes(8))
        refused("<i8", (2,), bytes(8))
        refused("<i8", (1 << 61,), b"")
        refused("<i8", (-1,), bytes(8))
        refused("<i8", (-1, -1), bytes(8))
        refused("<i8", (True,), bytes(8), "made of")
        refused("<i8", (1,) * 33, bytes(8))
        refused("<i8", [1], bytes(8), "made of")
        refused("|S0", (1 << 62,), b"")
        with self.assertRaisesRegex(_plain.PlainError, "element"):
            _types.Registry().load(b"Xs" + b"".join(_plain.dump(("<i8", (1,), bytes(8)))), LIMIT)
        # Shapes without elements cost nothing, however large they say they are.
        for shape in ((0, 1 << 62), (1 << 62, 1 << 62, 0)):
            try:
                made = _types.Registry().load(b"Xn" + b"".join(_plain.dump(("<i8", shape, b""))), LIMIT)
                self.assertEqual(made.nbytes, 0)
            except _plain.PlainError:
                pass

    def test_without_numpy_there_are_no_arrays(self):
        data = dump(numpy.arange(3))
        registry = _types.Registry()
        registry._numpy = None
        with self.assertRaisesRegex(_plain.PlainError, "not expected"):
            registry.load(data, LIMIT)


class HostileBytes(unittest.TestCase):
    TYPES = (Point, Inner, Place, Colour, Right, Level)

    def refused(self, data, words, limit=LIMIT, types=TYPES):
        with self.assertRaisesRegex(_plain.PlainError, words):
            _types.Registry(types).load(data, limit)

    def object(self, index, inner):
        return b"O" + count(index) + dump(inner)

    def number(self, kind):
        return _types.Registry(self.TYPES)._list.index(kind)

    def test_a_number_beyond_the_list(self):
        for index in (len(_types.Registry(self.TYPES)._list), 1 << 31, (1 << 64) - 1):
            self.refused(self.object(index, ()), "not expected")
        self.refused(self.object(0, ()), "not expected", types=())

    def test_the_checks_of_the_constructor_are_made(self):
        self.refused(self.object(self.number(Point), ("text", None, [])), "x is an int")

    def test_wrong_parts(self):
        for kind, inner in (
            (Point, ()), (Point, (1,)), (Point, (1, None, [], 4)), (Point, {"x": 1}), (Point, "x"), (Place, (1,)), (Place, [1, 2]),
            (Colour, "GREEN"), (Colour, "__class__"), (Colour, "mro"), (Colour, 1), (Colour, ("RED",)), (Right, "READ"),
            (Right, 1 << 70), (Right, 4), (Right, -1), (Right, True), (Level, 1), (Inner, ()),
        ):
            with self.subTest(kind=kind.__name__, inner=inner):
                self.refused(self.object(self.number(kind), inner), ".")

    def test_a_field_that_is_computed_cannot_be_set(self):
        back = _types.Registry(self.TYPES).load(self.object(self.number(Point), (4, None, [])), LIMIT)
        self.assertEqual(back.twice, 8)

    def test_wrong_dates_numbers_and_paths(self):
        for letter, inner in (
            (b"c", (1.0,)), (b"c", ("1", "2")), (b"c", (1, 2)), (b"a", 0), (b"a", 1 << 70), (b"a", -5), (b"a", True), (b"d", ()),
            (b"d", (2024, 13, 1, 0, 0, 0, 0, 0, None)), (b"d", (2024, 1, 1, 0, 0, 0, 0, 2, None)),
            (b"d", (2024, 1, 1, 0, 0, 0, 0, 0, (1 << 60, None))), (b"d", (2024, 1, 1, 0, 0, 0, 0, 0, (90_000_000_000, "x"))),
            (b"d", (2024, 1, 1, 0, 0, 0, 0, 0, 5)), (b"d", (1 << 80, 1, 1, 0, 0, 0, 0, 0, None)), (b"t", (25, 0, 0, 0, 0, None)),
            (b"t", ("1", 0, 0, 0, 0, None)), (b"l", (1 << 40, 0, 0)), (b"l", (1.5, 0, 0)), (b"l", 5), (b"z", None), (b"z", (1, 2)),
            (b"m", "one"), (b"m", 1), (b"m", "1" * (_types.MAX_DIGITS + 1)), (b"m", "1e99999999999999999999999"), (b"p", "text"),
            (b"p", (b"x",)), (b"u", b"short"), (b"u", "0" * 32), (b"?", None), (b"\xff", ()), (b"P", None),
        ):
            with self.subTest(letter=letter, inner=repr(inner)[:40]):
                self.refused(b"X" + letter + dump(inner), ".")

    def test_what_is_too_much(self):
        deep = dump(1)
        for _ in range(_plain.MAX_DEPTH + 1):
            deep = b"Xp" + deep
        self.refused(deep, "levels")
        self.refused(b"O" + count(0) + deep, "levels")
        self.refused(b"Xp" * 1_000_000, "levels")
        self.refused((b"O" + count(0)) * 1_000_000, "levels")
        many = b"l" + count(20000) + (b"Xa" + dump(5)) * 20000
        self.refused(many, "too much memory", 20000)
        self.assertEqual(len(_types.Registry().load(many, LIMIT)), 20000)

    def test_every_prefix_ends_too_early(self):
        data = dump([Point(3, Inner(datetime.datetime.now(datetime.timezone.utc))), Colour.RED, decimal.Decimal(1)], *self.TYPES)
        for length in range(len(data)):
            self.refused(data[:length], "too early")

    def test_keys_chosen_to_collide(self):
        step = (1 << 61) - 1
        data = b"".join(b"Xm" + dump(str(n * step)) for n in range(1000))
        self.refused(b"e" + count(1000) + data, "collide")
        data = b"".join(self.object(self.number(Inner), (n * step,)) for n in range(1000))
        self.refused(b"e" + count(1000) + data, "collide")

    def test_unhashable_objects_are_no_keys(self):
        self.refused(b"e" + count(1) + self.object(self.number(Point), (4, None, [])), "cannot be a key")
        self.refused(b"e" + count(1) + b"Xm" + dump("sNaN"), "cannot be a key")

    def test_nothing_is_imported_or_run_for_bytes_of_a_jail(self):
        before = set(sys.modules)
        for data in (b"O" + count(1) + dump("os"), b"Xn" + dump(("|O", (1,), bytes(8))), b"cos\nsystem\n(S'true'\ntR.",
                     b"X\x80\x04\x95", b"O" + count(0) + dump(("x", None, []))):
            with self.assertRaises(brig.ResultError):
                with brig.Jail(types=self.TYPES) as jail:
                    jail.call(return_bytes, data)
        self.assertEqual({name for name in set(sys.modules) - before if not name.startswith("encodings")}, set())

    def test_random_changes_make_a_value_or_an_error_and_nothing_else(self):
        chance = random.Random(os.environ.get("BRIG_SEED", "3"))
        values = [Point(3, Inner(datetime.datetime.now(datetime.timezone.utc)), [Place(1, Colour.RED)]), 1j, Right.READ,
                  decimal.Decimal("1.5"), uuid.UUID(int=5), pathlib.Path("/x"), datetime.timedelta(1), datetime.date(2024, 1, 1)]
        if numpy:
            values += [numpy.arange(6.0).reshape(2, 3), numpy.int32(4)]
        base, good = dump(values, *self.TYPES), 0
        registry = _types.Registry(self.TYPES)
        for _ in range(20000):
            data = bytearray(base)
            for _ in range(chance.randrange(1, 4)):
                data[chance.randrange(len(data))] = chance.choice((chance.randrange(256), *b"XOltms"))
            try:
                registry.load(bytes(data), 1 << 20)
                good += 1
            except _plain.PlainError:
                pass
        self.assertGreater(good, 100)


if __name__ == "__main__":
    tap.main()
