# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module AgentJail
  # Memory that the library reads. It stays where it is for as long as this object lives.
  class Memory
    def initialize
      @kept = []
    end

    # The address of these bytes and a NUL.
    def bytes(data)
      # The pointer keeps the garbage collector from moving the string.
      pointer = Fiddle::Pointer["#{data.b}\0"]
      @kept << pointer
      pointer.to_i
    end

    # The address of a text; 0 for nil.
    def text(name, value)
      value.nil? ? 0 : bytes(Memory.checked(name, value))
    end

    # The address of an array of texts that ends with NULL; 0 for nil.
    def list(name, values)
      return 0 if values.nil?

      bytes([*Memory.items(name, values).map { |value| text(name, value) }, 0].pack("J*"))
    end

    # The values of a list, which is not one text.
    def self.items(name, values)
      return values.to_a unless values.is_a?(String) || !values.respond_to?(:to_a)

      raise ArgumentError, "#{name} is a list: #{name}: [#{values.inspect}]"
    end

    # A text as C wants it: without a NUL byte.
    def self.checked(name, value)
      text = value.respond_to?(:to_path) ? value.to_path : value
      text = text.to_s if text.is_a?(Symbol)
      raise ArgumentError, "#{name}: #{value.inspect} is not a text" unless text.is_a?(String)
      raise ArgumentError, "#{name}: #{value.inspect} has a NUL byte in it" if text.b.include?("\0")

      text
    end

    # An absolute path.
    def self.path(name, value)
      File.expand_path(checked(name, value))
    end
  end
  private_constant :Memory

  # An object of the library. It is freed once, and only in the process that made it: in a forked child
  # the numbers of its descriptors may be anything else. Several threads may use it.
  class Handle
    @inside = nil

    class << self
      # Says that this process is a jail's. There it may have the number that its maker has outside.
      def enter_jail
        @inside = :jail
      end

      def process
        @inside || Process.pid
      end

      # Not a block of the handle's, which would keep it alive.
      def releaser(state, free)
        proc { release(state, free) }
      end

      def release(state, free)
        pointer = state[:pointer]
        state[:pointer] = nil
        Library.call(free, pointer) if pointer && state[:process] == process
      end
    end

    def initialize(pointer, free)
      @state = { pointer: pointer, process: Handle.process }
      @free = free
      @lock = Mutex.new
      @users = 0
      @closed = false
      ObjectSpace.define_finalizer(self, Handle.releaser(@state, free))
    end

    # Whether this is the process that made it.
    def here?
      @state[:process] == Handle.process
    end

    def closed?
      @closed
    end

    # Yields the pointer, which is not freed meanwhile.
    def use
      @lock.synchronize do
        raise StateError, "the #{@free[/brig_(\w+)_free/, 1]} is closed" if @closed

        @users += 1
      end
      begin
        yield @state[:pointer]
      ensure
        @lock.synchronize { @users -= 1 }
        release_unused
      end
    end

    # Frees it, when the last use of it is over.
    def close
      @closed = true
      release_unused
    end

    private

    def release_unused
      @lock.synchronize { Handle.release(@state, @free) if @closed && @users.zero? }
    end
  end
  private_constant :Handle
end
