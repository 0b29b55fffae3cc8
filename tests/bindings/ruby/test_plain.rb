# SPDX-License-Identifier: MIT
# frozen_string_literal: true

# The format of values: what goes through it, and what hostile bytes do not get.
require_relative "tap"

Plain = AgentJail.send(:const_get, :Plain)

class PlainTest < Minitest::Test
  LIMIT = 64 << 20

  def there_and_back(value)
    Plain.load(Plain.dump(value), LIMIT)
  end

  def count(number)
    [number].pack("Q<")
  end

  def assert_refused(bytes, words, limit = LIMIT)
    error = assert_raises(Plain::Problem) { Plain.load(bytes.b, limit) }
    assert_match words, error.message
  end

  def test_every_plain_value_comes_back_as_it_was
    [nil, true, false, 0, -1, (1 << 63) - 1, -(1 << 63), 1 << 63, -(1 << 63) - 1, 1 << 4000, -(1 << 4000),
     255, 256, -256, 0.0, 1.5, Float::INFINITY, "", "text", "é\u4e00\u{1f600}\0", "\xff".b, :symbol, :"é ö",
     [], [1, [2, [nil]]], {}, { "a" => 1, b: 2, 3 => [4], nil => :x, [1] => {} }, Set[], Set[1, "a"]]
      .each do |value|
        back = there_and_back(value)
        value.nil? ? assert_nil(back) : assert_equal(value, back)
        assert_equal value.class, back.class
        assert_equal value.encoding, back.encoding if value.is_a?(String)
      end
  end

  def test_not_a_number_comes_back
    assert_predicate there_and_back(Float::NAN), :nan?
  end

  def test_text_that_is_not_utf_8_comes_back_as_bytes
    assert_equal "\xe9".b, there_and_back((+"\xe9").force_encoding("ISO-8859-1"))
    assert_equal "\xff".b, there_and_back("\xff")
  end

  def test_what_is_not_plain_is_refused_with_its_class
    [Object.new, 1..2, Time.now, 1r, 1i, Struct.new(:a).new(1), method(:puts), $stdout, String].each do |value|
      error = assert_raises(Plain::Problem) { Plain.dump([value]) }
      assert_includes error.message, value.class.to_s
      assert_includes error.message, "marshal: true"
    end
  end

  def test_a_cycle_is_refused
    cycle = []
    cycle << cycle
    assert_raises(Plain::Problem) { Plain.dump(cycle) }
  end

  def test_depth_and_sizes_at_the_limit_and_one_past_it
    value = 1
    Plain::MAX_DEPTH.times { value = [value] }
    assert_equal value, there_and_back(value)
    assert_raises(Plain::Problem) { Plain.dump([value]) }
    assert_refused "l#{count(1)}".b + Plain.dump(value), /deeper/
    largest = 1 << (8 * Plain::MAX_INTEGER - 2)
    assert_equal largest, there_and_back(largest)
    assert_raises(Plain::Problem) { Plain.dump(largest << 8) }
    assert_equal 1024, there_and_back(("s" * 1024).to_sym).length
    assert_refused Plain.dump(("s" * 1025).to_sym), /symbol/
  end

  def test_every_prefix_of_a_value_ends_too_early
    bytes = Plain.dump({ "a" => [1, 2.5, "x".b, Set[1], 1 << 70], b: nil })
    (0...bytes.bytesize).each { |length| assert_refused bytes.byteslice(0, length), /too early/ }
  end

  def test_bytes_that_are_no_value
    assert_refused Marshal.dump([1]), /0x04/
    assert_refused "NN", /1 bytes follow/
    assert_refused "s".b + count(2) + "\xc3\x28".b, /UTF-8/
    assert_refused "y".b + count(1) + "\xff".b, /UTF-8/
    assert_refused "m".b + count(2) + Plain.dump(1) + "N" + Plain.dump(1) + "N", /equal keys/
    assert_refused "I".b + count(0), /integer of 0/
    assert_refused "I".b + count(Plain::MAX_INTEGER + 1) + "\0" * (Plain::MAX_INTEGER + 1), /integer of/
  end

  def test_lengths_that_overflow_are_refused
    "sbylemI".each_char do |tag|
      [1, 1 << 31, 1 << 32, (1 << 63) - 1, (1 << 64) - 1].each do |number|
        assert_raises(Plain::Problem) { Plain.load(tag.b + count(number), LIMIT) }
      end
    end
  end

  def test_containers_cannot_take_much_more_memory_than_the_bytes
    many = "l".b + count(20_000) + ("e".b + count(0)) * 20_000
    assert_refused many, /too much memory/, many.bytesize
    assert_equal 20_000, Plain.load(many, LIMIT).size
  end

  def test_many_symbols_cannot_take_much_more_memory_than_the_bytes
    many = "l".b + count(20_000) + Array.new(20_000) { |n| "y".b + count(4) + [n].pack("L<").tr("\x80-\xff".b, "a") }.join
    assert_refused many, /too much memory/, many.bytesize
    assert_equal 20_000, Plain.load(many, LIMIT).size
    # The program's own symbols are as many as an array of them can be.
    assert_equal [:a] * 1000, there_and_back([:a] * 1000)
  end

  # Bytes that have the form of values, with hostile numbers in them.
  def grow(chance, depth)
    case tag = "NTFidsbyIlem"[chance.rand(12)]
    when "N", "T", "F" then tag.b
    when "i", "d" then tag.b + chance.bytes(8)
    when "s", "b", "y", "I" then tag.b + hostile_count(chance, 3) + chance.bytes(3)
    else
      size = depth > 120 ? 0 : chance.rand(4)
      parts = Array.new(tag == "m" ? 2 * size : size) { grow(chance, depth + 1 + 30 * chance.rand(2)) }
      tag.b + hostile_count(chance, size) + parts.join
    end
  end

  def hostile_count(chance, size)
    count(chance.rand(20).zero? ? [0, 1 << 31, 1 << 32, (1 << 64) - 1].sample(random: chance) : size)
  end

  def test_random_values_make_a_value_or_an_error_and_nothing_else
    chance = Random.new(2)
    values = 0
    10_000.times do
      Plain.load(grow(chance, 0), 1 << 16)
      values += 1
    rescue Plain::Problem
      nil
    end
    assert_operator values, :>, 100
  end

  def test_random_changes_make_a_value_or_an_error_and_nothing_else
    chance = Random.new(1)
    base = Plain.dump({ "a" => [1, 2.0, "x".b, [nil, Set[1, 2]]], q: 1 << 70 })
    values = 0
    10_000.times do
      bytes = base.dup
      chance.rand(1..3).times { bytes.setbyte(chance.rand(bytes.bytesize), chance.rand(256)) }
      Plain.load(bytes, 1 << 20)
      values += 1
    rescue Plain::Problem
      nil
    end
    assert_operator values, :>, 100
  end
end

run_tests
