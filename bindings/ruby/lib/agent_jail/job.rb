# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require_relative "running"

module AgentJail
  # A command that runs in a jail: AgentJail.spawn makes it.
  #
  #   AgentJail.spawn("sh", "-c", script) do |job|
  #     job.stdin.puts "hello"
  #     job.stdin.close
  #     job.each_line { |line, stream| puts "#{stream}: #{line}" }
  #   end
  #
  # A thread watches over the command, so that its limits hold whatever the program does meanwhile. A job
  # that is forgotten is ended. Its methods may be called by several threads; it belongs to the process
  # that started it.
  class Job
    # A longer line comes in pieces.
    MAX_LINE = 1 << 20
    MAX_KEPT = 64 << 20
    O_PATH = 0o10000000
    private_constant :O_PATH

    # IOs to write to and to read from; nil where there is no pipe.
    attr_reader :stdin, :stdout, :stderr
    # With pty: true the terminal's other side: what is written is typed, what is read was printed. As with
    # Ruby's PTY, reading raises Errno::EIO when the command has ended; each_line just ends.
    attr_reader :terminal

    # Starts it. With a block, yields the job, and returns the block's value: after the block the streams
    # are closed and the command is waited for; if the block raises, the command is ended.
    def self.open(running)
      job = new(running.start)
      return job unless block_given?

      begin
        value = yield job
        job.finish
        value
      ensure
        job.close
      end
    end
    private_class_method :new

    def initialize(running) # :nodoc:
      @running = running
      @stdin, @stdout, @stderr = running.ends
      @terminal = running.terminal if running.streams.pty?
      @kept = { stdout: +"", stderr: +"", terminal: +"" }.transform_values(&:b)
      @cut = false
      @unsent = nil
      @watch = Job.watch(running)
      ObjectSpace.define_finalizer(self, Job.ender(running))
    end

    class << self
      # The thread knows the library's job only, so that a forgotten Job can be collected.
      def watch(running) # :nodoc:
        Thread.new { running.wait }.tap do |thread|
          thread.name = "agent_jail"
          thread.report_on_exception = false
        end
      end

      # A finalizer must not wait for locks. When the program ends there are no new threads, and the
      # library's job is freed anyway.
      def ender(running) # :nodoc:
        proc do
          Thread.new { running.abandon } if running.result.nil?
        rescue ThreadError
          nil
        end
      end
    end

    # The command.
    def argv
      @running.argv
    end

    # The jail's first process, as the host sees it.
    def pid
      @running.pid
    end

    # What became of the command, with what communicate has read; nil while it runs.
    def result
      result = @running.result
      return result if result.nil? || !@unsent

      out = stdout || terminal ? text(terminal ? :terminal : :stdout) : result.stdout
      result.with_output(out, stderr ? text(:stderr) : result.stderr, @cut)
    end

    def alive?
      @running.result.nil?
    end

    # Waits for the end, at most `timeout` seconds. Returns the Result, or nil if the command goes on. It
    # raises nothing for limits: Result#check does. Pipes that are not read fill up, and the command
    # waits: see communicate.
    def wait(timeout: nil)
      raise StateError, "the job belongs to the process that started it" unless @running.here?
      return unless @watch.join(timeout)

      result
    end

    # Sends a signal, by name or number, to the command's process group; nothing happens if it has ended.
    def signal(signal)
      @running.signal(signal_number(signal))
    end

    def terminate
      signal(:TERM)
    end

    def kill
      signal(:KILL)
    end

    # Ends the command and all it has started: TERM, the grace, KILL. The outcome is :cancelled.
    def cancel
      @running.cancel
      nil
    end

    # Sets the size of the terminal (24 by 80 at first); the command gets SIGWINCH.
    def resize(rows, columns)
      @running.resize(Integer(rows), Integer(columns))
      self
    end

    # What was tried through the network's rules since this was asked last, oldest first.
    def net_events
      @running.net_events
    end

    # The number of the signal that stopped the command (Ctrl-Z), once; else nil. signal(:CONT) goes on.
    def take_stop
      @running.take_stop
    end

    # Yields each line as it comes, and which stream it is from: :stdout, :stderr or :terminal. Returns when
    # all of them have ended.
    def each_line(chomp: false, &block)
      return enum_for(:each_line, chomp: chomp) unless block

      lines = Lines.new(chomp, &block)
      exchange(nil, nil) { |piece, stream| lines.add(encoded(piece), stream) }
      lines.finish
      self
    end

    # Yields what is printed as it comes, in pieces, and which stream it is from.
    def each_piece
      return enum_for(:each_piece) unless block_given?

      exchange(nil, nil) { |piece, stream| yield encoded(piece), stream }
      self
    end

    # Writes the input and closes stdin, reads stdout and stderr to their ends and waits. Returns the Result
    # with both, of which no more than max_output bytes are kept; or nil if the command goes on after
    # `timeout` seconds. Then it can be called again, and nothing is lost.
    def communicate(input = nil, timeout: nil, &block)
      raise ArgumentError, "stdin is not a pipe: spawn(…, stdin: :pipe)" if input && !stdin

      @unsent ||= (input || "").b
      deadline = timeout && now + timeout
      return unless exchange(deadline, stdin) { |piece, stream| keep(piece, stream, &block) }

      wait(timeout: left(deadline))
    end

    # The same, with the lines as they come.
    def communicate_lines(input = nil, timeout: nil, &block)
      lines = Lines.new(false, &block)
      result = communicate(input, timeout: timeout) { |piece, stream| lines.add(encoded(piece), stream) }
      lines.finish
      result
    end

    # The bytes of a regular file in the directory of Policy#keep, until the job is closed. No link is
    # followed; more than max_bytes is an ArgumentError.
    def kept_file(path, max_bytes: MAX_KEPT)
      fd = @running.kept_dir
      raise StateError, "nothing was kept: see Policy#keep" if fd.negative?

      parts = Memory.checked(:path, path).split("/") - ["", "."]
      if parts.empty? || parts.include?("..")
        raise ArgumentError, "the path #{path.inspect} does not name a file below the kept directory"
      end

      read_below(fd, parts, max_bytes)
    end

    # Closes the streams and waits for the command.
    def finish
      close_streams
      wait
    end

    # Closes the streams, ends the command if it still runs, and releases everything but the result.
    def close
      close_streams
      @running.abandon
      @watch.join if @watch.alive?
      @running.release
      nil
    end

    def inspect
      "#<#{self.class} #{argv.first} #{alive? ? 'runs' : @running.result.outcome}>"
    end

    private

    def signal_number(signal)
      return signal if signal.is_a?(Integer)

      Signal.list.fetch(signal.to_s.delete_prefix("SIG")) do
        raise ArgumentError, "signal: #{signal.inspect} is not a signal"
      end
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    def left(deadline)
      deadline && [deadline - now, 0].max
    end

    # Reads all streams, and writes what is unsent if there is a writer; whether that was before the deadline.
    def exchange(deadline, writer)
      writer = nil if writer&.closed?
      until (readers = open_readers).empty? && writer.nil?
        ready, writable = IO.select(readers.keys, [writer].compact, nil, left(deadline))
        return false unless ready

        ready.each { |io| read_piece(io) { |piece| yield piece, readers[io] } }
        writer = nil if writable.any? && sent?(writer)
      end
      true
    end

    def open_readers
      all = { stdout => :stdout, stderr => :stderr, terminal => :terminal }
      all.reject { |io, _| io.nil? || io.closed? || io == @ended }
    end

    # What is there; at its end it is closed, but for a terminal, which can still be written to.
    def read_piece(io)
      piece = io.read_nonblock(Running::CHUNK, exception: false)
      return if piece == :wait_readable
      return yield piece if piece

      io.close
    rescue Errno::EIO
      @ended = io
    end

    # Writes some of the input; whether that was all.
    def sent?(writer)
      written = @unsent.empty? ? 0 : writer.write_nonblock(@unsent.byteslice(0, Running::CHUNK), exception: false)
      return false if written == :wait_writable

      @unsent = @unsent.byteslice(written..)
      writer.close if @unsent.empty?
      @unsent.empty?
    rescue Errno::EPIPE # it wants no more
      @unsent = "".b
      writer.close
      true
    end

    def keep(piece, stream)
      limit = @running.output_limit
      kept = @kept.fetch(stream)
      room = limit.zero? ? piece.bytesize : [limit - kept.bytesize, 0].max
      kept << piece.byteslice(0, room)
      @cut ||= piece.bytesize > room
      yield piece, stream if block_given?
    end

    def text(stream)
      encoded(@kept.fetch(stream).dup)
    end

    def encoded(data)
      data.force_encoding(@running.streams.binmode ? Encoding::BINARY : Encoding.default_external)
    end

    def close_streams
      [stdin, stdout, stderr, terminal].compact.each do |io|
        io.close unless io.closed?
      rescue Errno::EPIPE
        nil # the command did not read all of it
      end
    end

    # A regular file that untrusted code has made: no link on the way is followed.
    def read_below(dir_fd, parts, max_bytes)
      *folders, name = parts
      opened = []
      folders.each do |part|
        opened << File.new("/proc/self/fd/#{dir_fd}/#{part}", O_PATH | File::NOFOLLOW)
        raise ArgumentError, "#{part.inspect} is not a directory" unless opened.last.stat.directory?

        dir_fd = opened.last.fileno
      end
      flags = File::RDONLY | File::NOFOLLOW | File::NONBLOCK | File::NOCTTY
      File.open("/proc/self/fd/#{dir_fd}/#{name}", flags) { |file| read_regular(file, parts.join("/"), max_bytes) }
    ensure
      opened&.each(&:close)
    end

    def read_regular(file, path, max_bytes)
      raise ArgumentError, "#{path.inspect} is not a regular file" unless file.stat.file?

      data = file.binmode.read(max_bytes + 1) || "".b
      raise ArgumentError, "#{path.inspect} has more than #{max_bytes} bytes" if data.bytesize > max_bytes

      data
    end
  end

  # Makes lines of the pieces of several streams.
  class Lines
    def initialize(chomp, &block)
      @chomp = chomp
      @block = block
      @begun = Hash.new { |begun, stream| begun[stream] = +"" }
    end

    def add(piece, stream)
      *whole, rest = (@begun[stream].b << piece.b).split(/(?<=\n)/n, -1)
      whole.each { |line| give(line, stream, piece.encoding) }
      @begun[stream] = (rest || "").force_encoding(piece.encoding)
      give(@begun.delete(stream), stream, piece.encoding) if @begun[stream].bytesize >= Job::MAX_LINE
    end

    # What is left is a line without its end.
    def finish
      @begun.each { |stream, rest| give(rest, stream, rest.encoding) unless rest.empty? }
      @begun.clear
    end

    private

    def give(line, stream, encoding)
      line = line.force_encoding(encoding)
      @block.call(@chomp ? line.chomp : line, stream)
    end
  end
  private_constant :Lines
end
