# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module AgentJail
  # Options for runs, which are checked and looked up when the first block runs. May be used by many threads at
  # a time, and by forked processes.
  #
  #   jail = AgentJail::Jail.new(timeout: 5, fs_read_allow: ["/app/config"])
  #   jail.run { tool.call(arguments) }
  #
  # timeout::        seconds of the wall clock (30); nil, here and below, is no limit
  # cpu_timeout::    seconds of the CPU (as timeout)
  # memory_mb::      of memory: :address_space or, where there are cgroups, :rss (512)
  # fs_allow::       paths, read-write, beside the system's directories and Ruby's own ([])
  # fs_read_allow::  paths, read-only ([])
  # namespaces::     true: the full jail
  # network::        :host, as the caller has it, or :none
  # unix_sockets::   true: UNIX sockets also with network: :none and without namespaces (false)
  # processes::      at a time, threads included
  # grace::          seconds between TERM and KILL (0)
  # max_result::     bytes of the value (64 MiB)
  # keep_fds::       IOs that stay open; all others but stdin, stdout and stderr are closed
  # trace::          true: every refused system call is in the error's `denials`. What can be called is
  #                  called with the list, also of a block that came to its end (false)
  # policy::         a Policy, for what these options cannot say; they are laid over it
  # on_unsupported:: :raise, :warn or :ignore, when this system cannot enforce something (:raise)
  # marshal::        true: any object can come back. Then the block can make the caller run anything:
  #                  only for blocks that are trusted. Else values are plain: nil, booleans, numbers,
  #                  strings, symbols, arrays, hashes and sets.
  class Jail
    OPTIONS = %i[timeout cpu_timeout memory_mb memory fs_allow fs_read_allow namespaces network unix_sockets
                 processes grace max_result keep_fds trace policy on_unsupported marshal].freeze

    attr_reader :options

    def initialize(**options)
      unknown = options.keys - OPTIONS
      raise ArgumentError, "unknown option #{unknown.first.inspect}" unless unknown.empty?

      @options = defaults.merge(options) { |_, default, given| given.nil? && keep_default?(default) ? default : given }
      Configuration.check_on_unsupported(@options[:on_unsupported])
      @options.freeze
      @lock = Mutex.new
      @closed = false
    end

    # Runs the block in a forked child, which sees the program's memory as it is now. Returns the
    # block's value, or raises what became of it.
    def run(&block)
      raise ArgumentError, "no block was given to run" unless block
      return run_without(block) unless Platform.supported?

      prepared.use { |pointer| Call.new(pointer, @options).run(block) }
    end

    # Releases what was looked up, when the last run has ended; there can be no new ones.
    def close
      @lock.synchronize do
        @closed = true
        @caller&.close
      end
      nil
    end

    private

    def prepared
      @lock.synchronize do
        raise StateError, "the jail is closed" if @closed
        next @caller if @caller

        Platform.load_library
        require_relative "call"
        @caller = Caller.new(@options).make
      end
    end

    def defaults
      configured = AgentJail.configuration
      {
        timeout: configured.default_timeout, cpu_timeout: :same,
        memory_mb: configured.default_memory_mb, memory: :address_space,
        fs_allow: configured.default_fs_allow, fs_read_allow: configured.default_fs_read_allow,
        namespaces: false, network: :host, unix_sockets: false, processes: :default, grace: 0,
        max_result: configured.default_max_result, keep_fds: [], trace: configured.default_trace,
        policy: nil, on_unsupported: configured.on_unsupported, marshal: false
      }
    end

    # nil where a list, a word or a flag belongs says nothing; for a limit it says: none.
    def keep_default?(default)
      !default.is_a?(Numeric)
    end

    # Where there can be no jail.
    def run_without(block)
      what = @options[:on_unsupported]
      raise UnsupportedPlatformError, Platform.problem if what == :raise

      warn "agent_jail: #{Platform.problem}; the block runs without a jail" if what == :warn
      begin
        block.call
      rescue StandardError => e
        raise SandboxError.new("#{e.class}: #{e.message}",
                               { "outcome" => "failed", "class" => e.class.name, "message" => e.message,
                                 "backtrace" => (e.backtrace || []).join("\n") })
      end
    end
  end
end
