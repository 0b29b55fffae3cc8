# SPDX-License-Identifier: MIT
"""The format of values: what goes through it, and what hostile bytes do not get."""

import collections
import enum
import os
import random
import struct
import unittest

import tap
from brig import _plain

LIMIT = 64 << 20


def dump(value):
    return b"".join(_plain.dump(value))


def there_and_back(value):
    return _plain.load(dump(value), LIMIT)


def count(number):
    return struct.pack("<Q", number)


class Values(unittest.TestCase):
    def test_every_plain_value_comes_back_as_it_was(self):
        values = [
            None, True, False, 0, -1, 255, (1 << 63) - 1, -(1 << 63), 1 << 63, -(1 << 63) - 1,
            1 << 4000, -(1 << 4000), 0.0, 1.5, float("inf"), "", "text", "é\u4e00\U0001f600\0", b"",
            b"\x00\xff", [], [1], (), (1, "two"), set(), {1, 2}, frozenset({b"x"}), {}, {"a": 1},
            {1: "int", None: "none", (1, 2): "tuple", b"b": "bytes", 1.5: "float"},
            list(range(100)), [float(n) for n in range(100)], [1 << 80] * 20, [1, 2.0] * 10,
            [True] * 20, [[[[{"deep": ({1},)}]]]],
        ]
        for value in values:
            with self.subTest(value=repr(value)[:40]):
                back = there_and_back(value)
                self.assertEqual(back, value)
                self.assertIs(type(back), type(value))

    def test_not_a_number_comes_back(self):
        self.assertNotEqual(there_and_back(float("nan")), there_and_back(float("nan")))

    def test_types_inside_lists_are_kept(self):
        self.assertEqual([type(x) for x in there_and_back([1, True, 1.0] * 5)], [int, bool, float] * 5)

    def test_subclasses_come_back_as_what_they_are_made_of(self):
        point = collections.namedtuple("point", "x y")
        colour = enum.IntEnum("colour", "RED")
        for value, plain in (
            (point(1, 2), (1, 2)), (collections.OrderedDict(a=1), {"a": 1}), (colour.RED, 1),
            (bytearray(b"x"), b"x"), (memoryview(b"y"), b"y"),
        ):
            back = there_and_back(value)
            self.assertEqual(back, plain)
            self.assertIs(type(back), type(plain))

    def test_what_is_not_plain_is_refused_with_its_type(self):
        for value in (object(), len, open, 1j, range(3), Exception("x")):
            with self.assertRaisesRegex(_plain.PlainError, type(value).__name__):
                dump([value])

    def test_a_cycle_is_refused(self):
        cycle = []
        cycle.append(cycle)
        with self.assertRaisesRegex(_plain.PlainError, "100 levels"):
            dump(cycle)

    def test_lone_surrogates_are_refused_with_the_remedy(self):
        with self.assertRaisesRegex(_plain.PlainError, "fsencode"):
            dump("\udc80")

    def test_depth_and_size_of_integers_at_the_limit_and_one_past_it(self):
        value = 1
        for _ in range(_plain.MAX_DEPTH):
            value = [value]
        self.assertEqual(there_and_back(value), value)
        with self.assertRaises(_plain.PlainError):
            dump([value])
        with self.assertRaises(_plain.PlainError):
            _plain.load(b"l" + count(1) + dump(value), LIMIT)
        largest = 1 << (8 * _plain.MAX_INTEGER - 2)
        self.assertEqual(there_and_back(largest), largest)
        with self.assertRaises(_plain.PlainError):
            dump(largest << 8)
        with self.assertRaises(_plain.PlainError):
            _plain.load(b"I" + count(_plain.MAX_INTEGER + 1) + bytes(_plain.MAX_INTEGER + 1), LIMIT)


class HostileBytes(unittest.TestCase):
    def refused(self, data, words, limit=LIMIT):
        with self.assertRaisesRegex(_plain.PlainError, words):
            _plain.load(data, limit)

    def test_a_pickle_is_no_value(self):
        self.refused(b"\x80\x04\x95\x0c\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x8c\x06system\x93.", "0x80")

    def test_every_prefix_of_a_value_ends_too_early(self):
        data = dump({"a": [1, 2.5, b"x", ({1},), 1 << 70], "b": list(range(20))})
        for length in range(len(data)):
            self.refused(data[:length], "too early")

    def test_bytes_after_the_value_are_refused(self):
        self.refused(dump(1) + b"N", "1 bytes follow")

    def test_lengths_that_overflow_are_refused(self):
        for tag in b"sbltefmQDI":
            for number in (1, 1 << 31, 1 << 32, (1 << 63) - 1, (1 << 64) - 1):
                with self.assertRaises(_plain.PlainError):
                    _plain.load(bytes([tag]) + count(number), LIMIT)

    def test_text_that_is_not_utf_8_is_refused(self):
        self.refused(b"s" + count(2) + b"\xc3\x28", "UTF-8")
        self.refused(b"s" + count(3) + b"\xed\xb2\x80", "UTF-8")

    def test_keys_that_cannot_be_keys_are_refused(self):
        self.refused(b"m" + count(1) + dump([]) + b"N", "cannot be a key")
        self.refused(b"e" + count(1) + dump({}), "cannot be a key")

    def test_equal_keys_are_refused(self):
        self.refused(b"m" + count(2) + dump(1) + b"N" + dump(True) + b"N", "equal keys")
        self.refused(b"e" + count(2) + dump("a") + dump("a"), "equal keys")

    def test_keys_chosen_to_collide_are_refused(self):
        keys = [n * ((1 << 61) - 1) for n in range(1000)]
        self.refused(b"m" + count(1000) + b"".join(dump(key) + b"N" for key in keys), "collide")
        self.refused(b"e" + count(1000) + b"".join(dump(key) for key in keys), "collide")
        ordinary = {n * 1000003: None for n in range(1000)}
        self.assertEqual(there_and_back(ordinary), ordinary)

    def test_containers_cannot_take_much_more_memory_than_the_bytes(self):
        many = b"l" + count(20000) + (b"e" + count(0)) * 20000
        self.refused(many, "too much memory", len(many))
        self.assertEqual(len(_plain.load(many, LIMIT)), 20000)
        nothings = b"l" + count(20000) + b"N" * 20000
        self.refused(nothings, "too much memory", len(nothings))
        packed = list(range(20000))
        self.assertEqual(_plain.load(dump(packed), len(dump(packed))), packed)

    def test_text_tricks_are_refused(self):
        for data in (b"\xed\xa0\x80\xed\xb0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80"):
            self.refused(b"s" + count(len(data)) + data, "UTF-8")
        self.assertEqual(there_and_back("\U0010ffff\0\ufeff"), "\U0010ffff\0\ufeff")

    def test_keys_that_hide_numbers_in_tuples_and_sets(self):
        tuples = b"".join(dump((n * ((1 << 61) - 1),)) for n in range(1000))
        self.refused(b"e" + count(1000) + tuples, "collide")
        frozen = b"".join(dump(frozenset([n * ((1 << 61) - 1)])) for n in range(1000))
        self.refused(b"e" + count(1000) + frozen, "collide")

    def grow(self, chance, depth):
        """Bytes that have the form of values, with hostile numbers in them."""
        tag = chance.choice(b"NTFidsbIltefmQD")
        size = 0 if depth > 120 else chance.randrange(4)
        said = size
        if chance.random() < 0.05:
            said = chance.choice((0, 1 << 31, 1 << 32, (1 << 64) - 1))
        head = bytes([tag])
        if tag in b"NTF":
            return head
        if tag in b"id":
            return head + chance.randbytes(8)
        if tag in b"sbI":
            return head + count(said) + chance.randbytes(size)
        if tag in b"QD":
            return head + count(said) + chance.randbytes(8 * size)
        parts = 2 * size if tag == ord("m") else size
        step = chance.choice((1, 31))
        return head + count(said) + b"".join(self.grow(chance, depth + step) for _ in range(parts))

    def test_random_values_make_a_value_or_an_error_and_nothing_else(self):
        chance = random.Random(os.environ.get("BRIG_SEED", "2"))
        values = 0
        for _ in range(20000):
            try:
                _plain.load(self.grow(chance, 0), 1 << 16)
                values += 1
            except _plain.PlainError:
                pass
        self.assertGreater(values, 100)

    def test_random_changes_make_a_value_or_an_error_and_nothing_else(self):
        chance = random.Random(os.environ.get("BRIG_SEED", "1"))
        base = dump({"a": [1, 2.0, b"x", (None, {1, 2})], "q": 1 << 70, "l": list(range(9))})
        values = 0
        for _ in range(20000):
            data = bytearray(base)
            for _ in range(chance.randrange(1, 4)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            try:
                _plain.load(bytes(data), 1 << 20)
                values += 1
            except _plain.PlainError:
                pass
        self.assertGreater(values, 100)


if __name__ == "__main__":
    tap.main()
