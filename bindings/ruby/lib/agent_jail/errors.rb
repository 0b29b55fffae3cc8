# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module AgentJail
  # All that is raised, but for ArgumentError where a value is wrong.
  #
  # `details` is what the library observed: outcome, usage, denials and more. What the block reported
  # about itself, in the `original_` methods, is untrusted text. `result` is what became of a command, a
  # Result; of a block it is nil.
  class Error < StandardError
    attr_reader :details, :result

    def initialize(message = nil, details = {}, result = nil)
      super(message)
      @details = details
      @result = result
    end

    # The name of the class of the block's exception, if one was the reason.
    def original_class
      details["class"]
    end

    def original_message
      details["message"]
    end

    def original_backtrace
      (details["backtrace"] || "").lines(chomp: true)
    end

    # What the block was refused, with trace: every system call among it.
    def denials
      details["denials"] || []
    end

    private

    def denied(key)
      (details["denial"] || {})[key]
    end
  end

  # The wall clock ran out, and the block or command was ended.
  class TimeoutError < Error; end
  # The time of the CPU ran out.
  class CPUTimeoutError < TimeoutError; end
  # Memory ran out.
  class MemoryError < Error; end

  # The block was refused a path.
  class FilesystemError < Error
    def path
      denied("subject")
    end

    # What was tried: "read", "write", "execute" or "unknown".
    def access
      denied("access")
    end

    def rule
      denied("rule")
    end
  end

  # The block ended in a way of its own: it raised an exception, or one of those below.
  class SandboxError < Error; end

  # The block was refused an address.
  class NetworkError < SandboxError
    def address
      denied("subject")
    end
  end

  # The block was refused a system call.
  class SyscallError < SandboxError
    def syscall
      denied("subject")
    end
  end

  # The block wanted one process too many.
  class ProcessLimitError < SandboxError; end
  # The value was larger than allowed.
  class OutputLimitError < SandboxError; end

  # The block ended its process instead of returning.
  class ExitedError < SandboxError
    def exit_code
      details["exit_code"]
    end
  end

  # A signal ended the block's process.
  class CrashedError < SandboxError
    def signal
      details["signal"]
    end
  end

  # The run was cancelled.
  class CancelledError < SandboxError; end
  # The block's value cannot be passed on: it is not plain, or its bytes are no value.
  class ResultError < SandboxError; end
  # This platform cannot enforce what was asked, and nothing ran.
  class UnsupportedPlatformError < Error; end
  # The jail could not be built, and nothing ran.
  class SetupError < Error; end
  # The command does not exist inside the jail.
  class NotFoundError < SetupError; end
  # The command exists, but cannot be executed.
  class NotExecutableError < SetupError; end
  # What was asked does not fit the state of the object: it is closed, or belongs to another process.
  class StateError < Error; end
  # A command did not exit with 0: `result` is what became of it.
  class CommandError < Error; end
  # No place in a pool was free in time, and nothing ran.
  class PoolTimeoutError < Error; end

  # Of Error: which class an outcome of the library is.
  module Outcomes
    # The child calls its own failure to return a value by this name.
    RESULT_CLASS = "AgentJail::ResultError"

    CLASSES = {
      "failed" => SandboxError,
      "timeout" => TimeoutError,
      "cpu-timeout" => CPUTimeoutError,
      "memory" => MemoryError,
      "filesystem" => FilesystemError,
      "network" => NetworkError,
      "syscall" => SyscallError,
      "processes" => ProcessLimitError,
      "output" => OutputLimitError,
      "exited" => ExitedError,
      "crashed" => CrashedError,
      "cancelled" => CancelledError,
      "unsupported" => UnsupportedPlatformError,
      "setup-failed" => SetupError
    }.freeze

    def self.error(details)
      outcome = details["outcome"]
      if outcome == "failed" && details["class"] == RESULT_CLASS
        return ResultError.new(details["message"], details)
      end

      CLASSES.fetch(outcome, Error).new(details["text"] || outcome, details)
    end
  end
  private_constant :Outcomes
end
