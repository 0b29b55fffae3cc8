# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require "etc"
require_relative "template"

module AgentJail
  # Runs blocks and commands in jails, at most `size` at a time, for programs with many threads: a thread
  # that finds no place free waits for one. Options are those of Jail and of AgentJail.capture: each is
  # used for what knows it. Several threads may use one pool, and so may processes that are forked after
  # it was made: each of them has `size` places.
  #
  #   POOL = AgentJail::Pool.new(4, timeout: 5)           # in an initializer
  #   POOL.run { tool.call(arguments) }                   # in a request
  #   POOL.capture("convert", "-", "png:-", input: image)
  class Pool
    attr_reader :size

    # size::  how many run at a time (the number of CPUs)
    # wait::  seconds to wait for a place (nil: as long as it takes), then PoolTimeoutError
    def initialize(size = Etc.nprocessors, wait: nil, **options)
      @size = Checks.limit(:size, size)
      raise ArgumentError, "size: nil is not a limit: give a whole number from 1" if @size.zero?

      @wait_ms = Checks.milliseconds(:wait, wait)
      Checks.unknown(options, Jail::OPTIONS | Launcher::OPTIONS)
      @options = options
      @lock = Mutex.new
      @places = Places.new(@size)
    end

    # Runs the block in a forked child, as Jail#run.
    def run(&block)
      with_place { jail.run(&block) }
    end

    # Runs a command, as AgentJail.capture.
    def capture(*argv, **options, &block)
      with_place { template.capture(*argv, **options, &block) }
    end

    # Starts a command for the block, as AgentJail.spawn; its place is free when the block ends.
    def spawn(*argv, **options, &block)
      raise ArgumentError, "no block was given to spawn" unless block

      with_place { template.spawn(*argv, **options, &block) }
    end

    # The values of the block for each item, in their order; each runs in a jail, `size` at a time. After an
    # error no other item is begun, and it is raised when those that run have ended.
    def map(items, &block)
      waiting = Queue.new
      items.each_with_index { |item, index| waiting << [item, index] }
      waiting.close
      values = Array.new(waiting.size)
      threads = Array.new([size, values.size].min) { worker(waiting, values, block) }
      error = threads.filter_map(&:value).first
      raise error if error

      values
    ensure
      threads&.each(&:kill)&.each(&:join)
    end

    # How many blocks and commands of this process run in the pool now.
    def running
      places.taken
    end

    # Releases what was prepared; nothing can be run any more.
    def close
      @lock.synchronize do
        @closed = true
        @jail&.close
        @template&.close
      end
      nil
    end

    private

    # Made when they are first needed.
    def jail
      @lock.synchronize do
        raise StateError, "the pool is closed" if @closed

        @jail ||= Jail.new(**@options.slice(*Jail::OPTIONS))
      end
    end

    def template
      @lock.synchronize do
        raise StateError, "the pool is closed" if @closed

        @template ||= Template.new(**@options.slice(*Launcher::OPTIONS))
      end
    end

    # A thread whose value is the error that ended it, or nil.
    def worker(waiting, values, block)
      Thread.new do
        while (item, index = waiting.pop)
          values[index] = run { block.call(item) }
        end
        nil
      rescue StandardError => e
        waiting.clear
        e
      end
    end

    def with_place(&block)
      places.hold(@wait_ms.zero? ? nil : @wait_ms / 1000.0, &block)
    end

    # Those of this process: what threads of its parent held is free here.
    def places
      @lock.synchronize { @places = @places.here? ? @places : Places.new(@size) }
    end
  end

  # So many can hold a place at a time; the others wait.
  class Places
    attr_reader :taken

    def initialize(size)
      @size = size
      @taken = 0
      @process = Process.pid
      @lock = Mutex.new
      @free = ConditionVariable.new
    end

    def here?
      @process == Process.pid
    end

    # An exception of another thread's finds us waiting or in the block, not between the two.
    def hold(seconds, &block)
      Thread.handle_interrupt(Object => :on_blocking) do
        take(seconds)
        begin
          Thread.handle_interrupt(Object => :immediate, &block)
        ensure
          Thread.handle_interrupt(Object => :never) { give_back }
        end
      end
    end

    private

    def give_back
      @lock.synchronize do
        @taken -= 1
        @free.signal
      end
    end

    def take(seconds)
      deadline = seconds && Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      @lock.synchronize do
        wait(deadline, seconds) while @taken >= @size
        @taken += 1
      end
    end

    def wait(deadline, seconds)
      left = deadline && deadline - Process.clock_gettime(Process::CLOCK_MONOTONIC)
      raise PoolTimeoutError, "no place was free within #{seconds} s" if left && left <= 0

      @free.wait(@lock, left)
    end
  end
  private_constant :Places
end
