# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require "monitor"
require_relative "command"
require_relative "result"

module AgentJail
  # A job of the library, which runs or has ended. Several threads may use it.
  class Running
    KILL = 9
    CHUNK = 65_536
    # Of the network, that wait to be asked for; the oldest are dropped.
    MAX_EVENTS = 1024

    attr_reader :argv, :streams
    # The caller's ends of pipes, as IOs; nil where there is none.
    attr_reader :ends

    def initialize(argv, launcher, streams)
      @argv = arguments(argv)
      @launcher = launcher
      @streams = streams
      @lock = Monitor.new
      @memory = Memory.new # the input is borrowed by the library until the job is done
      @ends = [nil, nil, nil]
      @events = []
      @result = nil
    end

    # Returns once the command runs, or raises why it does not.
    def start
      # A job that was started must be supervised: nothing may come between.
      Thread.handle_interrupt(Object => :never) do
        reader, writer = IO.pipe if streams.merged?
        Streams.make_blocking(writer)
        command = @launcher.command(argv, streams, @memory, writer)
        @job = Handle.new(@launcher.start(command), :brig_job_free)
        take_ends(reader)
        watch_terminal
      rescue Exception # rubocop:disable Lint/RescueException
        reader&.close
        raise
      ensure
        writer&.close
      end
      self
    end

    # Until the command has ended. Not inside the library: there neither other threads' exceptions nor
    # signals could reach us.
    def wait
      fd = with { |job| Library.call(:brig_job_fd, job) }
      events = IO.for_fd(fd, autoclose: false)
      IO.select([events, @relayed].compact) until process
    end

    # What became of it, or nil while it runs.
    attr_reader :result

    # Whether this is the process that started it.
    def here?
      @job.here?
    end

    # Signals the command; nothing happens if it has ended.
    def signal(number)
      tell(:brig_job_signal, number)
    end

    def cancel
      tell(:brig_job_cancel)
    end

    def resize(rows, columns)
      tell(:brig_job_resize, rows, columns) or raise StateError, "the job is over, and so is its terminal"
    end

    def pid
      with { |job| Library.call(:brig_job_pid, job) }
    end

    # The terminal's other side as a new IO, or nil.
    def terminal
      fd = with { |job| Library.call(:brig_job_terminal, job) }
      fd.negative? ? nil : copied(fd, "r+")
    end

    def kept_dir
      with { |job| Library.call(:brig_job_kept_dir, job) }
    end

    def output_limit
      @launcher.output_limit
    end

    # The signal that stopped the command, once; else nil.
    def take_stop
      stop = with { |job| Library.call(:brig_job_take_stop, job) }
      stop.zero? ? nil : stop
    end

    # Those since this was asked last.
    def net_events
      with { |job| take_net_events(job) unless @result }
      @lock.synchronize { @events.shift(@events.size) }
    end

    # Ends it at once, for nobody. Also called for jobs that were forgotten, and in forked children.
    def abandon
      return unless @job&.here? && !@job.closed?

      signal(KILL)
      cancel
    rescue Error
      nil # it is just over
    end

    # Ends the job if it still runs.
    def release
      @lock.synchronize { @job&.close }
    end

    private

    def arguments(argv)
      if argv.size == 1 && argv.first.is_a?(Array)
        raise ArgumentError, "the command is given as single arguments: AgentJail.capture(*command)"
      end
      raise ArgumentError, "no command was given" if argv.empty?

      argv.map { |part| Memory.checked(:argv, part) }
    end

    # One thread at a time, and only in the process that started it.
    def with(&block)
      raise StateError, "the job belongs to the process that started it" unless @job.here?

      @lock.synchronize { @job.use(&block) }
    end

    def tell(function, *values)
      with do |job|
        next false if @result

        Library.check(function, job, *values)
        true
      end
    end

    # Whether the job is over. Does not block.
    def process
      with do |job|
        next true if @result

        over = Library.check(:brig_job_process, job).positive?
        relay
        take_net_events(job)
        @result = read_result(job) if over
        over
      end
    end

    # Before the result, which takes them away.
    def take_net_events(job)
      until (event = Library.call(:brig_job_take_net_event, job)).null?
        @events << JSON.parse(Library.text(:brig_net_event_json, event))
        @events.shift if @events.size > MAX_EVENTS
      end
    end

    def read_result(job)
      result = Library.make(:brig_job_result, job)
      details = JSON.parse(Library.text(:brig_result_json, result))
      details["inside_jail"] = Library.call(:brig_result_inside_jail, result) != 0
      warn_of(details["unenforced"] || [])
      Result.new(argv, details, stdout: output(result, 1), stderr: output(result, 2),
                                truncated: (details["truncated"] || {}).value?(true))
    ensure
      Library.call(:brig_result_free, result) if result
    end

    def output(result, stream)
      length = Fiddle::Pointer.malloc(Fiddle::SIZEOF_SIZE_T, Fiddle::RUBY_FREE)
      data = Library.call(:brig_result_output, result, stream, length, nil)
      text(data[0, length[0, Fiddle::SIZEOF_SIZE_T].unpack1("J")])
    end

    # As Open3 has it: bytes, or text of the default encoding.
    def text(data)
      data.force_encoding(streams.binmode ? Encoding::BINARY : Encoding.default_external)
    end

    def warn_of(unenforced)
      return unless @launcher.policy.said_on_unsupported == :warn

      unenforced.each { |line| warn "agent_jail: not enforced: #{line}" }
    end

    # IOs of Ruby own the pipes from here on.
    def take_ends(merged)
      @ends[1] = merged
      with do |job|
        3.times do |stream|
          fd = Library.call(:brig_job_stream, job, stream)
          next if fd.negative?

          @ends[stream] = copied(fd, stream.zero? ? "w" : "r")
          Library.check(:brig_job_close_stream, job, stream)
        end
      end
      @ends.compact.each { |io| io.binmode if streams.binmode }
    end

    def copied(fd, mode)
      number = IO.for_fd(fd, autoclose: false).fcntl(1030, 3) # F_DUPFD_CLOEXEC
      IO.for_fd(number, mode).tap { |io| io.sync = true }
    end

    # A terminal of the caller's was replaced by one of the jail's; what is printed there is printed.
    def watch_terminal
      @relayed = terminal unless streams.pty?
    end

    def relay
      while @relayed
        data = @relayed.read_nonblock(CHUNK, exception: false)
        return if data == :wait_readable

        data ? print_there(data) : close_relay
      end
    rescue Errno::EIO
      close_relay
    end

    def print_there(data)
      terminal = STDOUT.tty? ? STDOUT : STDERR
      terminal.write(data)
      terminal.flush
    end

    def close_relay
      @relayed.close
      @relayed = nil
    end
  end
  private_constant :Running
end
