# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require "fiddle"
require "fiddle/import"
require "json"

module AgentJail
  # libbrig as Fiddle sees it: its structs and functions, and nothing made of them. Loaded when it is
  # first needed (Platform.load_library), so that the gem itself loads anywhere.
  module Library
    extend Fiddle::Importer

    NAME = "libbrig.so.0"
    SAME = (1 << 64) - 1

    # What a code of the library raises, other than SetupError.
    CODES = {
      -1 => ArgumentError, -2 => NoMemoryError, -4 => UnsupportedPlatformError, -6 => NotFoundError,
      -7 => NotExecutableError, -8 => StateError
    }.freeze

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

    TYPES = {
      "v" => Fiddle::TYPE_VOID, "p" => Fiddle::TYPE_VOIDP, "i" => Fiddle::TYPE_INT,
      "u" => -Fiddle::TYPE_INT, "z" => Fiddle::TYPE_SIZE_T, "q" => -Fiddle::TYPE_LONG_LONG
    }.freeze

    # Name: the type it returns, then those it takes, as letters of TYPES. Other Ruby threads run
    # meanwhile.
    FUNCTIONS = {
      brig_version: "p",
      brig_text_free: "vp",
      # Policies
      brig_policy_new: "pi",
      brig_policy_copy: "pp",
      brig_policy_free: "vp",
      brig_policy_origin: "ippp",
      brig_policy_view: "ipipp",
      brig_policy_grant: "ipippup",
      brig_policy_ungrant: "ipppp",
      brig_policy_private: "ipipp",
      brig_policy_file: "ipppzup",
      brig_policy_keep: "ippp",
      brig_policy_identity: "ippp",
      brig_policy_network: "ipip",
      brig_policy_allow: "ippp",
      brig_policy_deny: "ippp",
      brig_policy_publish: "ippp",
      brig_policy_proxy_env: "ipip",
      brig_policy_net_proxy: "ippppp",
      brig_policy_broker: "ippp",
      brig_policy_inject: "ippp",
      brig_policy_seccomp: "ipip",
      brig_policy_limit: "ipiqp",
      brig_policy_setenv: "ipppp",
      brig_policy_unsetenv: "ippp",
      brig_policy_host_env: "ipip",
      brig_policy_terminal: "ipip",
      brig_policy_workdir: "ippp",
      brig_policy_hostname: "ippp",
      brig_policy_allow_nested: "ipip",
      brig_policy_unix_sockets: "ipip",
      brig_policy_trace: "ipip",
      brig_policy_on_unsupported: "ipip",
      brig_policy_disable: "ipup",
      brig_policy_explain: "ipipp",
      # Commands
      brig_start: "ipppp",
      brig_job_fd: "ip",
      brig_job_process: "ipp",
      brig_job_signal: "ipip",
      brig_job_cancel: "ipp",
      brig_job_result: "ippp",
      brig_job_stream: "ipi",
      brig_job_close_stream: "ipip",
      brig_job_resize: "ipuup",
      brig_job_pid: "ip",
      brig_job_terminal: "ip",
      brig_job_kept_dir: "ip",
      brig_job_take_stop: "ip",
      brig_job_take_net_event: "pp",
      brig_job_free: "vp",
      brig_net_event_json: "ippp",
      brig_result_output: "ppipp",
      brig_result_json: "ippp",
      brig_result_inside_jail: "ip",
      brig_result_free: "vp",
      brig_template_new: "ippp",
      brig_template_start: "ipppp",
      brig_template_free: "vp",
      # Blocks
      brig_call_options_init: "vpz",
      brig_caller_new: "ipppp",
      brig_caller_free: "vp",
      brig_call_begin: "ippp",
      brig_call_started: "ipip",
      brig_call_fd: "ip",
      brig_call_process: "ipp",
      brig_call_wait: "ipp",
      brig_call_finish: "ippp",
      brig_call_free: "vp",
      brig_call_result_free: "vp",
      brig_call_result_value: "ppp",
      brig_call_result_json: "ippp",
      brig_confine_self: "ippp"
    }.freeze

    # In the forked child, where the interpreter must not be let go of: there is no other thread.
    CHILD_FUNCTIONS = {
      brig_call_keep_fd: "ipip",
      brig_call_enter: "ppu",
      brig_call_leave: "vp",
      brig_call_reserve: "ppz",
      brig_call_fail: "ipp"
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

        raise failure(code, error)
      end

      # Calls a function that stores a handle in the argument before the error.
      def make(name, *arguments)
        place = Fiddle::Pointer.malloc(Fiddle::SIZEOF_VOIDP, Fiddle::RUBY_FREE)
        check(name, *arguments, place)
        place.ptr
      end

      # A text that the library makes for its caller; "" if it makes none.
      def text(name, *arguments)
        pointer = make(name, *arguments)
        pointer.null? ? "" : pointer.to_s.force_encoding(Encoding::UTF_8).scrub
      ensure
        call(:brig_text_free, pointer) if pointer
      end

      # Whether a descriptor is Ruby's own, for its threads and signals.
      def reserved_fd?(number)
        @reserved ||= Fiddle::Function.new(Fiddle::Handle::DEFAULT["rb_reserved_fd_p"],
                                           [Fiddle::TYPE_INT], Fiddle::TYPE_INT)
        @reserved.call(number) != 0
      end

      # BRIG_LIBRARY names it, the gem carries it, or the system knows it.
      def path
        named = ENV["BRIG_LIBRARY"]
        return named if named && !named.empty?

        carried = File.join(__dir__, NAME)
        File.exist?(carried) ? carried : NAME
      end

      private

      def failure(code, error)
        message = error.message.pack("c*").unpack1("Z*").force_encoding(Encoding::UTF_8).scrub
        kind = CODES.fetch(code, SetupError)
        kind <= Error ? kind.new(message, { "code" => code, "errno" => error.sys_errno }) : kind.new(message)
      end

      def bind
        handle = Fiddle.dlopen(path)
        [[FUNCTIONS, false], [CHILD_FUNCTIONS, true]].each_with_object({}) do |(names, holding), found|
          names.each { |name, types| found[name] = function(handle, name, types, holding) }
        end
      rescue Fiddle::DLError => e
        raise SetupError, "cannot load '#{path}': #{e.message}; install libbrig, or name it with " \
                          "BRIG_LIBRARY"
      end

      def function(handle, name, types, need_gvl)
        returns, *takes = types.chars.map { |letter| TYPES.fetch(letter) }
        Fiddle::Function.new(handle[name.to_s], takes, returns, name: name.to_s, need_gvl: need_gvl)
      end
    end
  end
  private_constant :Library
end
