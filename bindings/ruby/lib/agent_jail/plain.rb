# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require "set"

module AgentJail
  # Plain values as bytes: the format in which the value of a block comes back.
  #
  # What the bytes say was decided by untrusted code. So reading them makes nothing but values of the
  # classes below, runs nothing, and is bounded in time and memory by the number of bytes.
  #
  # A value is a tag of one byte and what follows it; all numbers are little-endian, a length or
  # count is 64 bits unsigned:
  #
  #   N T F        nil, true, false
  #   i            an integer of 64 bits, signed
  #   I length     a larger integer: two's complement, at most MAX_INTEGER bytes
  #   d            a float
  #   s length     text in UTF-8
  #   b length     bytes
  #   y length     a symbol, in UTF-8
  #   l e          count values: Array, Set
  #   m            count pairs: Hash
  module Plain
    # A value that is not plain, or bytes that are not one.
    class Problem < StandardError; end

    MAX_DEPTH = 100
    MAX_INTEGER = 64 * 1024
    MAX_SYMBOL = 1024
    # What a container takes in memory beside its elements, about, and for each of them; an element
    # costs time as well.
    ARRAY_COST = 64
    SLOT_COST = 64
    TABLE_COST = 256
    ENTRY_COST = 64
    # Ruby keeps a table of symbols.
    SYMBOL_COST = 256
    # Containers may take so many times the bytes that may come.
    MEMORY_FACTOR = 8
    SMALL = (-(1 << 63)...(1 << 63)).freeze

    def self.dump(value)
      Writer.new.dump(value)
    end

    # The value that the bytes are; of containers it makes no more than MEMORY_FACTOR times max_bytes
    # can hold.
    def self.load(bytes, max_bytes)
      Reader.new(bytes, MEMORY_FACTOR * max_bytes).load
    end

    # Values to bytes.
    class Writer
      def initialize
        @out = String.new(encoding: Encoding::BINARY)
      end

      def dump(value)
        put(value, 0)
        @out
      end

      private

      def put(value, depth)
        case value
        when nil then @out << "N"
        when true then @out << "T"
        when false then @out << "F"
        when Integer then put_integer(value)
        when Float then @out << "d" << [value].pack("E")
        when String then put_string(value)
        when Symbol then put_bytes("y", value.to_s.encode(Encoding::UTF_8))
        when Array then put_items("l", value, depth)
        when Hash then put_pairs(value, depth)
        when Set then put_items("e", value, depth)
        else refuse(value)
        end
      end

      def put_integer(value)
        return @out << "i" << [value].pack("q<") if SMALL.cover?(value)

        length = value.bit_length / 8 + 1
        if length > MAX_INTEGER
          raise Problem, "an integer of #{length} bytes is too large: at most #{MAX_INTEGER}"
        end

        unsigned = value.negative? ? value + (1 << (8 * length)) : value
        put_bytes("I", [unsigned.to_s(16).rjust(2 * length, "0")].pack("H*").reverse)
      end

      # Text is what is valid UTF-8 and says so; all else comes back as bytes.
      def put_string(value)
        text = [Encoding::UTF_8, Encoding::US_ASCII].include?(value.encoding)
        put_bytes(text && value.valid_encoding? ? "s" : "b", value)
      end

      def put_bytes(tag, value)
        @out << tag << [value.bytesize].pack("Q<") << value.b
      end

      def put_items(tag, items, depth)
        put_count(tag, items.size, depth)
        items.each { |item| put(item, depth + 1) }
      end

      def put_pairs(hash, depth)
        put_count("m", hash.size, depth)
        hash.each_pair do |key, value|
          put(key, depth + 1)
          put(value, depth + 1)
        end
      end

      def put_count(tag, count, depth)
        raise Problem, "the value is nested deeper than #{MAX_DEPTH} levels" if depth >= MAX_DEPTH

        @out << tag << [count].pack("Q<")
      end

      def refuse(value)
        raise Problem, "the value has a #{value.class} in it, which is not plain: return numbers, " \
                       "strings, symbols, arrays, hashes and sets of them, or ask for marshal: true"
      end
    end

    # Bytes to a value.
    class Reader
      def initialize(bytes, room)
        @bytes = bytes.b
        @at = 0
        @room = room
      end

      def load
        value = read(0)
        left = @bytes.bytesize - @at
        raise Problem, "#{left} bytes follow the value" if left.positive?

        value
      end

      private

      def read(depth)
        case take(1)
        when "N" then nil
        when "T" then true
        when "F" then false
        when "i" then take(8).unpack1("q<")
        when "I" then read_integer
        when "d" then take(8).unpack1("E")
        when "s" then read_text
        when "b" then take(length)
        when "y" then read_symbol
        when "l" then read_array(depth)
        when "m" then read_hash(depth)
        when "e" then read_set(depth)
        else raise Problem, "no value begins with the byte 0x#{@bytes.byteslice(@at - 1).unpack1('H*')}"
        end
      end

      def take(count)
        raise Problem, "the value ends too early" if count > @bytes.bytesize - @at

        @at += count
        @bytes.byteslice(@at - count, count)
      end

      def length
        take(8).unpack1("Q<")
      end

      def read_integer
        size = length
        raise Problem, "an integer of #{size} bytes" unless size.between?(1, MAX_INTEGER)

        data = take(size)
        value = data.reverse.unpack1("H*").to_i(16)
        data.getbyte(-1) > 127 ? value - (1 << (8 * size)) : value
      end

      def read_text
        text = take(length).force_encoding(Encoding::UTF_8)
        raise Problem, "text that is not UTF-8" unless text.valid_encoding?

        text
      end

      def read_symbol
        text = read_text
        raise Problem, "a symbol of #{text.bytesize} bytes" if text.bytesize > MAX_SYMBOL

        charge(SYMBOL_COST)
        text.to_sym
      end

      # How many elements follow; no more than the bytes left can be.
      def count(depth, smallest, cost, cost_each)
        raise Problem, "the value is nested deeper than #{MAX_DEPTH} levels" if depth >= MAX_DEPTH

        count = length
        raise Problem, "the value ends too early" if count > (@bytes.bytesize - @at) / smallest

        charge(cost + count * cost_each)
        count
      end

      def charge(cost)
        @room -= cost
        raise Problem, "the value would take too much memory" if @room.negative?
      end

      def read_array(depth)
        Array.new(count(depth, 1, ARRAY_COST, SLOT_COST)) { read(depth + 1) }
      end

      def read_hash(depth)
        count = count(depth, 2, TABLE_COST, 2 * ENTRY_COST)
        hash = {}
        count.times do
          key = read(depth + 1)
          hash[key] = read(depth + 1)
        end
        without_twins(hash, count)
      end

      def read_set(depth)
        count = count(depth, 1, TABLE_COST, ENTRY_COST)
        set = Set.new
        count.times { set << read(depth + 1) }
        without_twins(set, count)
      end

      def without_twins(table, count)
        raise Problem, "a hash or set with two equal keys" if table.size != count

        table
      end
    end
    private_constant :Writer, :Reader
  end
  private_constant :Plain
end
