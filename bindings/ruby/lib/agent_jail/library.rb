# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require "fiddle"
require "fiddle/import"
require "json"

module AgentJail
  # libbrig as Fiddle sees it: its structs and functions, and nothing made of them. Loaded when it is
  # first needed, so that the gem itself loads anywhere.
  module Library
    extend Fiddle::Importer

    NAME = "libbrig.so.0"
    SAME = (1 << 64) - 1
    E_INVALID = -1
    E_UNSUPPORTED = -4

    INT = Fiddle::TYPE_INT
    SIZE = Fiddle::TYPE_SIZE_T
    POINTER = Fiddle::TYPE_VOIDP
    VOID = Fiddle::TYPE_VOID

    BrigError = struct(["int code", "int sys_errno", "char message[1024]"])

    CallOptions = struct([
      "size_t size", "uint64_t timeout_ms", "uint64_t cpu_timeout_ms", "uint64_t memory_mb",
      "uint64_t processes", "uint64_t grace_ms", "uint64_t max_result", "uint64_t max_output",
      "void *fs_allow", "size_t fs_allow_count",
      "void *fs_read_allow", "size_t fs_read_allow_count",
      "void *keep_fds", "size_t keep_fd_count",
      "int memory", "int network", "int on_unsupported",
      "int stdin_kind", "int stdout_kind", "int stderr_kind", "int namespaces",
      "int unix_sockets", "int trace", "int reserved"
    ])

    CallFailure = struct([
      "size_t size", "void *class_name", "void *message", "void *backtrace", "void *path", "void *address",
      "void *syscall", "int sys_errno", "int access", "int out_of_memory", "int reserved"
    ])

    # Name: what it returns, what it takes.
    FUNCTIONS = {
      brig_call_options_init: [VOID, [POINTER, SIZE]],
      brig_caller_new: [INT, [POINTER, POINTER, POINTER, POINTER]],
      brig_caller_free: [VOID, [POINTER]],
      brig_call_begin: [INT, [POINTER, POINTER, POINTER]],
      brig_call_started: [INT, [POINTER, INT, POINTER]],
      brig_call_fd: [INT, [POINTER]],
      brig_call_process: [INT, [POINTER, POINTER]],
      brig_call_wait: [INT, [POINTER, POINTER]],
      brig_call_finish: [INT, [POINTER, POINTER, POINTER]],
      brig_call_free: [VOID, [POINTER]],
      brig_call_result_free: [VOID, [POINTER]],
      brig_call_result_value: [POINTER, [POINTER, POINTER]],
      brig_call_result_json: [INT, [POINTER, POINTER, POINTER]],
      brig_text_free: [VOID, [POINTER]]
    }.freeze

    # In the forked child, where the interpreter must not be let go of: there is no other thread.
    CHILD_FUNCTIONS = {
      brig_call_keep_fd: [INT, [POINTER, INT, POINTER]],
      brig_call_enter: [POINTER, [POINTER, Fiddle::TYPE_INT]],
      brig_call_leave: [VOID, [POINTER]],
      brig_call_reserve: [POINTER, [POINTER, SIZE]],
      brig_call_fail: [INT, [POINTER, POINTER]]
    }.freeze

    @lock = Mutex.new

    class << self
      # The functions by name.
      def functions
        @functions || @lock.synchronize { @functions ||= bind }
      end

      def call(name, *arguments)
        functions.fetch(name).call(*arguments)
      end

      # Calls a function whose last argument is the error; raises if it failed.
      def check(name, *arguments)
        error = BrigError.malloc(Fiddle::RUBY_FREE)
        code = call(name, *arguments, error)
        return code unless code.negative?

        message = error.message.pack("c*").unpack1("Z*").force_encoding("UTF-8").scrub
        raise ArgumentError, message if code == E_INVALID
        raise UnsupportedPlatformError, message if code == E_UNSUPPORTED

        raise SetupError, message
      end

      # Calls a function that stores a handle in the argument before the error.
      def make(name, *arguments)
        place = Fiddle::Pointer.malloc(Fiddle::SIZEOF_VOIDP, Fiddle::RUBY_FREE)
        check(name, *arguments, place)
        place.ptr
      end

      # A text that the library made for its caller, as it is; freed.
      def take_text(pointer)
        pointer.to_s.force_encoding("UTF-8")
      ensure
        call(:brig_text_free, pointer)
      end

      # Whether a descriptor is Ruby's own, for its threads and signals.
      def reserved_fd?(number)
        @reserved ||= Fiddle::Function.new(Fiddle::Handle::DEFAULT["rb_reserved_fd_p"], [INT], INT)
        @reserved.call(number) != 0
      end

      private

      def bind
        path = ENV["BRIG_LIBRARY"] || NAME
        handle = Fiddle.dlopen(path)
        plain = FUNCTIONS.to_h { |name, (returns, takes)| [name, function(handle, name, returns, takes)] }
        child = CHILD_FUNCTIONS.to_h do |name, (returns, takes)|
          [name, function(handle, name, returns, takes, need_gvl: true)]
        end
        plain.merge(child)
      rescue Fiddle::DLError => e
        raise SetupError, "cannot load '#{path}': #{e.message}; install libbrig, or name it with " \
                          "BRIG_LIBRARY"
      end

      def function(handle, name, returns, takes, need_gvl: false)
        Fiddle::Function.new(handle[name.to_s], takes, returns, name: name.to_s, need_gvl: need_gvl)
      end
    end
  end
  private_constant :Library
end
