# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module AgentJail
  # What a command used. Times are microseconds; nil is not known.
  Usage = Struct.new(:wall_us, :cpu_user_us, :cpu_sys_us, :peak_memory_bytes, :peak_pids, :oom_kills,
                     :pids_refused, :cpu_throttled_us, :stdout_bytes, :stderr_bytes, keyword_init: true)

  # A system call that a command was refused, how often, and the errno it failed with.
  Denial = Struct.new(:name, :errno, :count, keyword_init: true)

  # What became of a command.
  class Result
    # Limits that end a command raise, as they do for a block.
    LIMITS = {
      timeout: [TimeoutError, "took longer than its timeout"],
      cpu_timeout: [CPUTimeoutError, "used more CPU time than allowed"],
      oom: [MemoryError, "used more memory than allowed"]
    }.freeze
    private_constant :LIMITS

    # argv::      the command
    # outcome::   :exited, :signalled, :timeout, :cpu_timeout, :oom or :cancelled
    # exit_code:: nil unless it exited
    # signal::    the number of the signal that ended it, also for limits; or nil
    # status::    as a shell would say it
    # details::   all that the library says, as plain data
    attr_reader :argv, :outcome, :exit_code, :signal, :status, :stdout, :stderr, :details

    def initialize(argv, details, stdout: "", stderr: "", truncated: false)
      @argv = argv
      @details = details
      @outcome = details.fetch("outcome").tr("-", "_").to_sym
      @exit_code, @signal, @status = details.values_at("exit_code", "signal", "status")
      @stdout = stdout
      @stderr = stderr
      @truncated = truncated
      freeze
    end

    # Whether it exited with 0.
    def success?
      outcome == :exited && exit_code.zero?
    end
    alias ok? success?

    # Whether output was left out, as it was more than max_output.
    def truncated?
      @truncated
    end

    # Time, memory and processes that the command used.
    def usage
      typed(Usage, details["usage"] || {})
    end

    # What this system did not enforce, or what was switched off, one sentence each.
    def unenforced
      details["unenforced"] || []
    end

    # What became of masked and protected paths meanwhile.
    def notices
      details["notices"] || []
    end

    # The system calls that it was refused; nil without Policy#trace.
    def denials
      details.dig("denials", "syscalls")&.map { |each| typed(Denial, each) }
    end

    # What went through the network's rules: counts, and "events".
    def network
      details["network"] || {}
    end

    # Whether it ran inside another jail, which had no namespaces to give.
    def inside_jail?
      details["inside_jail"] ? true : false
    end

    # Itself if it exited with 0; else raises CommandError, or the error of a limit.
    def check
      error = limit_error || status_error
      raise error if error

      self
    end

    # The exception for a limit that ended the command, or nil.
    def limit_error
      kind, words = LIMITS[outcome]
      kind&.new("the command '#{argv.first}' #{words}", details, self)
    end

    # For `case result in {outcome: :exited, exit_code: 0}`.
    def deconstruct_keys(_names)
      { argv: argv, outcome: outcome, exit_code: exit_code, signal: signal, status: status, stdout: stdout,
        stderr: stderr }
    end

    def inspect
      "#<#{self.class} #{argv.first} #{outcome} status=#{status}>"
    end

    # The same with this output, which was read while the command ran.
    def with_output(stdout, stderr, truncated)
      Result.new(argv, details, stdout: stdout, stderr: stderr, truncated: truncated? || truncated)
    end

    private

    # Members that a later library adds are left out.
    def typed(struct, data)
      struct.new(**data.transform_keys(&:to_sym).slice(*struct.members))
    end

    def status_error
      return if success?

      ending = outcome == :exited ? "exited with #{exit_code}" : "ended: #{outcome}"
      CommandError.new("the command '#{argv.first}' #{ending}", details, self)
    end
  end
end
