# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require_relative "library"
require_relative "child"

module AgentJail
  # One run of a block in a forked child, as the parent sees it.
  class Call
    def initialize(caller, options)
      @caller = caller
      @options = options
    end

    def run(block)
      start(block)
      wait
      value
    ensure
      # Ends the child if it still runs.
      Library.call(:brig_call_free, @call) if @call
    end

    private

    def start(block)
      # A child that was forked must be supervised: nothing may come between.
      Thread.handle_interrupt(Object => :never) do
        @call = Library.make(:brig_call_begin, @caller)
        [$stdout, $stderr].each(&:flush)
        pid = fork_child
        Child.new(@call, @options).run(block) unless pid
        Library.check(:brig_call_started, @call, pid)
      end
    end

    def fork_child
      Process.fork
    rescue SystemCallError => e
      raise SetupError, "cannot fork: #{e.message}"
    end

    # Not inside the library: there neither other threads' exceptions nor signals could reach us.
    def wait
      fd = Library.call(:brig_call_fd, @call)
      return Library.check(:brig_call_wait, @call) if fd.negative?

      events = IO.for_fd(fd, autoclose: false)
      IO.select([events]) while Library.check(:brig_call_process, @call).zero?
    end

    def value
      result = Library.make(:brig_call_finish, @call)
      details = JSON.parse(Library.take_text(Library.make(:brig_call_result_json, result)))
      tell_denials(details)
      raise Outcomes.error(details) unless details["outcome"] == "returned"

      decode(bytes_of(result))
    ensure
      Library.call(:brig_call_result_free, result) if result
    end

    def tell_denials(details)
      denials = details["denials"] || []
      @options[:trace].call(denials) if @options[:trace].respond_to?(:call) && !denials.empty?
    end

    def bytes_of(result)
      place = Fiddle::Pointer.malloc(Fiddle::SIZEOF_SIZE_T, Fiddle::RUBY_FREE)
      data = Library.call(:brig_call_result_value, result, place)
      raise ResultError, "the block's process returned without a value" if data.null?

      data[0, place[0, Fiddle::SIZEOF_SIZE_T].unpack1("J")]
    end

    def decode(bytes)
      return Marshal.load(bytes) if @options[:marshal] # rubocop:disable Security/MarshalLoad

      Plain.load(bytes, @options[:max_result] || bytes.bytesize)
    rescue Plain::Problem => e
      raise ResultError, "the value that came back cannot be read: #{e.message}"
    rescue TypeError, ArgumentError => e
      raise ResultError, "the value that came back cannot be loaded: #{e.message}"
    end
  end
  private_constant :Call

  # The options of a jail as the library wants them, thought through once.
  class Caller
    MEMORY = { address_space: 0, rss: 1 }.freeze
    NETWORK = { none: 0, host: 1 }.freeze
    ON_UNSUPPORTED = { raise: 0, warn: 1, ignore: 2 }.freeze

    def initialize(options)
      @options = options
      @native = Library::CallOptions.malloc(Fiddle::RUBY_FREE)
      # What the struct points to.
      @kept = []
      Library.call(:brig_call_options_init, @native, Library::CallOptions.size)
      set_limits
      set_access
    end

    # Yields the handle, which is freed afterwards.
    def open
      handle = make
      yield handle
    ensure
      Library.call(:brig_caller_free, handle) if handle
    end

    private

    # With :warn the warning is what the library would have refused for.
    def make
      what = @options[:on_unsupported]
      return make_with(what) unless what == :warn

      begin
        make_with(:raise)
      rescue UnsupportedPlatformError => e
        warn "agent_jail: #{e.message}"
        make_with(:warn)
      end
    end

    def make_with(on_unsupported)
      @native.on_unsupported = ON_UNSUPPORTED.fetch(on_unsupported)
      Library.make(:brig_caller_new, nil, @native)
    end

    def set_limits
      @native.timeout_ms = milliseconds(:timeout)
      @native.cpu_timeout_ms = @options[:cpu_timeout] == :same ? Library::SAME : milliseconds(:cpu_timeout)
      @native.memory_mb = limit(:memory_mb)
      @native.memory = word(:memory, MEMORY)
      @native.processes = @options[:processes] == :default ? Library::SAME : limit(:processes)
      @native.grace_ms = @options[:grace].zero? ? 0 : milliseconds(:grace)
      @native.max_result = limit(:max_result)
    end

    def set_access
      @native.fs_allow, @native.fs_allow_count = paths(:fs_allow, [])
      @native.fs_read_allow, @native.fs_read_allow_count =
        paths(:fs_read_allow, Platform.interpreter_paths)
      fds = @options[:keep_fds].map { |fd| fd.respond_to?(:fileno) ? fd.fileno : Integer(fd) }
      @native.keep_fds, @native.keep_fd_count = array(fds.pack("i*")), fds.size
      @native.network = word(:network, NETWORK)
      @native.namespaces = @options[:namespaces] ? 1 : 0
      @native.unix_sockets = @options[:unix_sockets] ? 1 : 0
      @native.trace = @options[:trace] ? 1 : 0
    end

    # Whole milliseconds, at least one; nil is no limit, which the library calls 0.
    def milliseconds(name)
      seconds = @options[name]
      return 0 if seconds.nil?
      unless seconds.is_a?(Numeric) && seconds.positive?
        raise ArgumentError, "#{name}: #{seconds.inspect} is not a time: give seconds above 0, or nil " \
                             "for no limit"
      end

      [(seconds * 1000).to_i.clamp(0, 10**15), 1].max
    end

    def limit(name)
      value = @options[name]
      return 0 if value.nil?
      return value if value.is_a?(Integer) && value.positive?

      raise ArgumentError, "#{name}: #{value.inspect} is not a limit: give a whole number from 1, or nil"
    end

    def word(name, words)
      words.fetch(@options[name]) do
        raise ArgumentError, "#{name}: #{@options[name].inspect} is not one of " \
                             "#{words.keys.map(&:inspect).join(', ')}"
      end
    end

    def paths(name, more)
      given = @options[name]
      raise ArgumentError, "#{name} is a list of paths: #{name}: [#{given.inspect}]" if given.is_a?(String)

      all = given.to_a.map { |path| absolute(path) } + more
      strings = all.map { |path| keep("#{path}\0") }
      [array(strings.map { |string| Fiddle::Pointer[string].to_i }.pack("J*")), all.size]
    end

    def absolute(path)
      path = path.to_path if path.respond_to?(:to_path)
      raise ArgumentError, "the path #{path.inspect} has a NUL byte in it" if path.include?("\0")

      File.expand_path(path)
    end

    def array(packed)
      packed.empty? ? nil : Fiddle::Pointer[keep(packed)]
    end

    def keep(value)
      @kept << value
      value
    end
  end
  private_constant :Caller
end
