# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require_relative "command"
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
      details = JSON.parse(Library.text(:brig_call_result_json, result))
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

    def initialize(options)
      @options = options
      @native = Library::CallOptions.malloc(Fiddle::RUBY_FREE)
      @memory = Memory.new # what the struct points to
      Library.call(:brig_call_options_init, @native, Library::CallOptions.size)
      set_limits
      set_access
    end

    # The library's object as a Handle. With :warn the warning is what the library would have refused for.
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

    private

    def make_with(on_unsupported)
      @native.on_unsupported = Policy::ON_UNSUPPORTED.fetch(on_unsupported)
      policy = @options[:policy]
      made = if policy
               policy.with_handle { |pointer| Library.make(:brig_caller_new, pointer, @native) }
             else
               Library.make(:brig_caller_new, nil, @native)
             end
      Handle.new(made, :brig_caller_free)
    end

    def set_limits
      @native.timeout_ms = milliseconds(:timeout)
      @native.cpu_timeout_ms = @options[:cpu_timeout] == :same ? Library::SAME : milliseconds(:cpu_timeout)
      @native.memory_mb = limit(:memory_mb)
      @native.memory = Policy.word(MEMORY, :memory, @options[:memory])
      @native.processes = @options[:processes] == :default ? Library::SAME : limit(:processes)
      @native.grace_ms = Checks.grace(@options[:grace])
      @native.max_result = limit(:max_result)
    end

    def set_access
      @native.fs_allow, @native.fs_allow_count = paths(:fs_allow, [])
      @native.fs_read_allow, @native.fs_read_allow_count =
        paths(:fs_read_allow, Platform.interpreter_paths)
      fds = Memory.items(:keep_fds, @options[:keep_fds]).map { |fd| Checks.fd(:keep_fds, fd) }
      @native.keep_fds, @native.keep_fd_count = @memory.bytes(fds.pack("i*")), fds.size
      @native.network = Policy.word(NETWORK, :network, @options[:network])
      @native.namespaces = @options[:namespaces] ? 1 : 0
      @native.unix_sockets = @options[:unix_sockets] ? 1 : 0
      @native.trace = @options[:trace] ? 1 : 0
    end

    def milliseconds(name)
      Checks.milliseconds(name, @options[name])
    end

    def limit(name)
      Checks.limit(name, @options[name])
    end

    def paths(name, more)
      all = Memory.items(name, @options[name]).map { |path| Memory.path(name, path) } + more
      [@memory.list(name, all), all.size]
    end
  end
  private_constant :Caller
end
