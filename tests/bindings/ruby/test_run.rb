# SPDX-License-Identifier: MIT
# frozen_string_literal: true

# Blocks in a jail: values, errors, limits, and what hostile blocks try.
require_relative "tap"
require "fiddle"
require "open3"
require "socket"
require "tmpdir"
require "timeout"

LEAK_CALLS = Integer(ENV.fetch("BRIG_LEAK_CALLS", "100"))

# What a hostile block would look for: the binding's own objects.
def child_object
  ObjectSpace.each_object(AgentJail.send(:const_get, :Child)).first
end

# Returns bytes of its own choice and ends, past the binding.
def return_bytes(bytes)
  child_object.send(:give, bytes)
  AgentJail.send(:const_get, :Library).call(:brig_call_leave, child_object.instance_variable_get(:@child))
end

# Where there are cgroups memory: :rss is enforced; elsewhere on_unsupported decides.
class ResidentMemoryTest < Case
  MUCH = 200 << 20
  LITTLE = 20 << 20
  HUGE = 1 << 30
  # More than Ruby itself has, which a resource limit counts as well.
  LIMIT_MB = 128
  # About what Ruby itself has: it ends its process where not even an exception fits.
  TOO_LITTLE_MB = 64

  def options(**more)
    { memory: :rss, memory_mb: LIMIT_MB, on_unsupported: :raise, **more }
  end

  def groups?
    AgentJail.run(**options) { true }
  rescue AgentJail::UnsupportedPlatformError
    false
  end

  def map_only
    AgentJail.run(**yield) { Fiddle.malloc(HUGE).positive? }
  end

  def test_what_is_used_is_limited
    return unless groups? # and it is refused or warned of: see below
    [false, true].each do |namespaces|
      with = options(namespaces: namespaces)
      assert_equal(LITTLE, AgentJail.run(**with) { ("x" * LITTLE).bytesize })
      assert_raises(AgentJail::MemoryError) { AgentJail.run(**with) { ("x" * MUCH).bytesize } }
      assert(map_only { with })
    end
  end

  def test_where_it_cannot_be_it_is_refused
    return if groups? # and what is asked for is enforced: see above
    error = assert_raises(AgentJail::UnsupportedPlatformError) { AgentJail.run(**options) { 1 } }
    assert_includes error.message, "memory limit"
  end

  def test_or_warned_of_or_not
    return if groups? # and what is asked for is enforced: see above
    { warn: /agent_jail: the memory limit/, ignore: /\A\z/ }.each do |what, printed|
      _, err = capture_io { assert_equal(3, AgentJail.run(**options(on_unsupported: what)) { 3 }) }
      assert_match printed, err
      # A resource limit stands in for it.
      capture_io do
        assert_raises(AgentJail::MemoryError) { map_only { options(on_unsupported: what) } }
        assert_raises(AgentJail::MemoryError) do
          kept = []
          AgentJail.run(**options(on_unsupported: what, memory_mb: TOO_LITTLE_MB)) { loop { kept << Object.new } }
        end
      end
    end
  end
end

# Refused system calls are listed where that is asked for.
class TraceTest < Case
  UNSHARE = Fiddle::Function.new(Fiddle::Handle::DEFAULT["unshare"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT)
  NEW_USER = 0x10000000

  def refused
    UNSHARE.call(NEW_USER)
    yield
  end

  def subjects(denials)
    denials.map { |denial| [denial["kind"], denial["subject"], denial["traced"]] }
  end

  def teardown
    AgentJail.configuration.default_trace = false
    super
  end

  def test_an_error_lists_them
    error = assert_raises(AgentJail::SandboxError) { AgentJail.run(trace: true) { refused { raise "no" } } }
    assert_equal([["syscall", "unshare", true]], subjects(error.denials))
  end

  def test_without_it_there_is_no_list
    error = assert_raises(AgentJail::SandboxError) { AgentJail.run { refused { raise "no" } } }
    assert_empty(error.denials)
  end

  def test_what_can_be_called_hears_of_a_block_that_went_on
    [false, true].each do |namespaces|
      seen = nil
      value = AgentJail.run(trace: ->(denials) { seen = denials }, namespaces: namespaces) { refused { 3 } }
      assert_equal([3, [["syscall", "unshare", true]]], [value, subjects(seen)])
    end
  end

  def test_it_is_not_called_for_nothing
    assert_equal(4, AgentJail.run(trace: ->(_) { flunk }) { 4 })
  end

  def test_it_can_be_the_default
    AgentJail.configuration.default_trace = true
    error = assert_raises(AgentJail::SandboxError) { AgentJail.run { refused { raise "no" } } }
    assert_equal([["syscall", "unshare", true]], subjects(error.denials))
    assert_empty(assert_raises(AgentJail::SandboxError) { AgentJail.run(trace: false) { refused { raise "no" } } }.denials)
  end
end

class ValuesTest < Case
  def test_a_value_comes_back
    assert_equal({ "a" => [1, 2.5, :b, nil] }, AgentJail.run { { "a" => [1, 2.5, :b, nil] } })
  end

  def test_next_gives_the_value
    assert_equal(3, AgentJail.run { next 3 })
  end

  def test_the_block_sees_the_memory_and_cannot_change_it
    seen = [1]
    assert_equal([1, 2], AgentJail.run { seen << 2 })
    assert_equal [1], seen
  end

  def test_50_megabytes_come_back
    value = AgentJail.run(memory_mb: 1024) { "ab" * (25 << 20) }
    assert_equal 50 << 20, value.bytesize
  end

  def test_a_value_at_the_limit_and_one_byte_more
    assert_equal(100, AgentJail.run(max_result: 109) { "x" * 100 }.size)
    assert_raises(AgentJail::OutputLimitError) { AgentJail.run(max_result: 109) { "x" * 101 } }
  end

  def test_what_is_not_plain_needs_marshal
    error = assert_raises(AgentJail::ResultError) { AgentJail.run { Time.at(0) } }
    assert_includes error.message, "marshal: true"
    assert_equal(Time.at(0), AgentJail.run(marshal: true) { Time.at(0) })
    assert_raises(AgentJail::ResultError) { AgentJail.run(marshal: true) { proc {} } }
  end

  def test_output_of_the_program_is_not_printed_twice
    code = 'require "agent_jail"; $stdout.write("parent "); ' \
           'AgentJail.run { $stdout.write("child "); nil }; $stdout.write("end")'
    out, = Open3.capture2(*RUBY, "-e", code)
    assert_equal "parent child end", out
  end
end

class ErrorsTest < Case
  def test_an_exception_keeps_class_message_and_backtrace
    error = assert_raises(AgentJail::SandboxError) { AgentJail.run { raise KeyError, "no such tool" } }
    assert_equal "KeyError", error.original_class
    assert_equal "no such tool", error.original_message
    assert_match(/test_run\.rb:\d+/, error.original_backtrace.first)
  end

  def test_messages_with_nul_and_bytes
    error = assert_raises(AgentJail::SandboxError) { AgentJail.run { raise "a\0b\xff" } }
    assert_match(/\Aa\\0b/, error.original_message)
  end

  def test_exceptions_that_are_no_standard_errors
    [NotImplementedError, Interrupt, NoMemoryError].each do |kind|
      error = assert_raises(AgentJail::Error) { AgentJail.run { raise kind } }
      assert_equal kind.name, error.original_class
    end
  end

  def test_deep_recursion
    error = assert_raises(AgentJail::SandboxError) { AgentJail.run { (f = -> { f.call + 1 }).call } }
    assert_equal "SystemStackError", error.original_class
  end

  def test_leaving_the_process
    { -> { exit!(3) } => 3, -> { exit(4) } => 4, -> { abort } => 1, -> { Thread.exit } => 0 }.each do |leave, code|
      error = assert_raises(AgentJail::ExitedError) { AgentJail.run(&leave) }
      assert_equal code, error.exit_code
    end
  end

  def leave_by_return
    AgentJail.run { return 5 }
  end

  def test_jumps_out_of_the_block_are_its_failure
    [-> { AgentJail.run { break 5 } }, -> { leave_by_return },
     -> { catch(:tag) { AgentJail.run { throw :tag, 5 } } }].each do |jump|
      error = assert_raises(AgentJail::SandboxError, &jump)
      assert_equal "LocalJumpError", error.original_class
      assert_includes error.message, "next"
    end
  end

  def test_exit_handlers_and_ensure_of_the_parent_do_not_run_in_the_child
    path = File.join(@scratch, "ran")
    code = <<~RUBY
      require "agent_jail"
      me = $$
      at_exit { File.write(#{path.inspect}, "exit \#{me == $$}\\n", mode: "a") }
      [-> { 1 }, -> { exit 3 }, -> { raise "x" }].each do |leave|
        AgentJail.run(fs_allow: [#{@scratch.inspect}], &leave)
      rescue AgentJail::Error
        nil
      ensure
        File.write(#{path.inspect}, "ensure \#{me == $$}\\n", mode: "a")
      end
    RUBY
    assert system(*RUBY, "-e", code)
    assert_equal "ensure true\n" * 3 + "exit true\n", File.read(path)
  end

  def test_a_crash_has_its_signal
    error = assert_raises(AgentJail::CrashedError) do
      AgentJail.run { Process.kill(:KILL, Process.pid) && sleep }
    end
    assert_equal 9, error.signal
    # Ruby's own handler reports a segmentation fault at length, then aborts.
    error = assert_raises(AgentJail::CrashedError) do
      AgentJail.run { $stderr.reopen(File::NULL, "w") && Fiddle::Pointer.new(1)[0, 1] }
    end
    assert_includes [6, 11], error.signal
  end
end

class LimitsTest < Case
  def test_a_block_that_sleeps_for_ever
    error = assert_raises(AgentJail::TimeoutError) { AgentJail.run(timeout: 0.3) { sleep } }
    refute_kind_of AgentJail::CPUTimeoutError, error
  end

  def test_an_endless_loop
    assert_raises(AgentJail::TimeoutError) { AgentJail.run(timeout: 0.3) { loop {} } }
    assert_raises(AgentJail::CPUTimeoutError) { AgentJail.run(cpu_timeout: 1) { loop {} } }
  end

  def test_ten_gigabytes
    assert_raises(AgentJail::MemoryError) { AgentJail.run { "x" * (10 << 30) } }
    assert_equal(10 << 20, AgentJail.run { ("x" * (10 << 20)).size })
  end

  def test_an_array_that_grows_for_ever
    assert_raises(AgentJail::MemoryError) do
      AgentJail.run(memory_mb: 300) { (kept = []).tap { loop { kept << "x" * (1 << 20) } } }
    end
  end

  # Ruby itself ends its process where not even the exception fits, and the report takes memory too.
  def test_small_objects_without_end
    kept = []
    [-> { loop { kept << Object.new } }, -> { loop { kept << "x" * 20 } },
     -> { loop { kept << "x" * 1000 } }, -> { loop { kept << proc {} } }].each do |grow|
      [false, true].each do |namespaces|
        assert_raises(AgentJail::MemoryError) do
          AgentJail.run(memory_mb: 100, namespaces: namespaces) { grow.call }
        end
      end
    end
    error = assert_raises(AgentJail::ExitedError) { AgentJail.run(memory_mb: 100) { exit 1 } }
    assert_equal 1, error.exit_code
    assert_equal(1000, AgentJail.run(memory_mb: 100) { Array.new(1000) { Object.new }.size })
  end

  def test_a_fork_bomb_ends_with_the_run
    assert_raises(AgentJail::Error) do
      AgentJail.run(timeout: 1, processes: 20) do
        loop do
          fork { nil }
        rescue SystemCallError
          nil
        end
      end
    end
    assert_equal(3, AgentJail.run { 3 })
  end

  def test_what_the_block_started_ends_with_it
    pid = AgentJail.run { fork { sleep } }
    wait_until { ended?(pid) }
  end

  def test_wrong_values_are_named
    { timeout: 0, memory_mb: -1, memory: :much, network: :some, on_unsupported: :cry,
      processes: 0, max_result: 0.5 }.each do |name, value|
      error = assert_raises(ArgumentError) { AgentJail.run(name => value) { 1 } }
      assert_includes error.message, name.to_s
      assert_includes error.message, value.inspect
    end
    assert_raises(ArgumentError) { AgentJail.run(tiemout: 3) { 1 } }
    assert_raises(ArgumentError) { AgentJail.run(fs_allow: "/tmp") { 1 } }
    assert_raises(ArgumentError) { AgentJail.run }
  end
end

class AccessTest < Case
  def test_a_password_file_is_refused_and_readable_when_granted
    error = assert_raises(AgentJail::FilesystemError) { AgentJail.run { File.read("/etc/login.defs") } }
    assert_equal "/etc/login.defs", error.path
    assert_equal "Errno::EACCES", error.original_class
    assert_match(/PASS_MAX_DAYS/, AgentJail.run(fs_read_allow: ["/etc/login.defs"]) { File.read("/etc/login.defs") })
  end

  # One kind of error for everybody: whether the user could read it outside makes no difference.
  def test_a_path_that_is_not_granted_is_the_same_error_for_root_and_for_a_user
    [false, true].each do |namespaces|
      error = assert_raises(AgentJail::FilesystemError) do
        AgentJail.run(namespaces: namespaces) { File.read("/etc/shadow") }
      end
      assert_equal "/etc/shadow", error.path
      assert_equal "read", error.access
    end
    error = assert_raises(AgentJail::FilesystemError) { AgentJail.run { File.read("/root/.profile") } }
    assert_equal "/root/.profile", error.path
  end

  # In what is granted the refusal is the file's own.
  def test_a_mode_that_refuses_is_not_the_jails_doing
    path = file("locked")
    File.chmod(0, path)
    error = assert_raises(AgentJail::SandboxError) do
      AgentJail.run(fs_allow: [@scratch]) { File.read(path) }
    end
    assert_equal "Errno::EACCES", error.original_class
    File.chmod(0o600, path)
    assert_equal("secret", AgentJail.run(fs_allow: [@scratch]) { File.read(path) })
  end

  def test_reading_and_writing_as_granted
    path = file("data")
    assert_raises(AgentJail::FilesystemError) { AgentJail.run { File.read(path) } }
    assert_equal("secret", AgentJail.run(fs_read_allow: [@scratch]) { File.read(path) })
    error = assert_raises(AgentJail::FilesystemError) do
      AgentJail.run(fs_read_allow: [@scratch]) { File.write(path, "changed") }
    end
    assert_equal path, error.path
    assert_equal "write", error.access
    assert_equal "secret", File.read(path)
    AgentJail.run(fs_allow: [@scratch]) { File.write(path, "changed") }
    assert_equal "changed", File.read(path)
  end

  def test_directories
    { -> { Dir.children(@scratch) } => "read", -> { Dir.mkdir("#{@scratch}/new") } => "write" }
      .each do |act, access|
        error = assert_raises(AgentJail::FilesystemError) { AgentJail.run(&act) }
        assert_equal access, error.access
      end
    AgentJail.run(fs_allow: [@scratch]) { Dir.mkdir("#{@scratch}/new") }
    assert_path_exists "#{@scratch}/new"
  end

  def test_an_errno_that_is_not_the_jails_is_the_blocks_own_failure
    error = assert_raises(AgentJail::SandboxError) do
      AgentJail.run(fs_read_allow: [@scratch]) { File.read("#{@scratch}/none") }
    end
    assert_equal "Errno::ENOENT", error.original_class
  end

  def test_libraries_can_be_required_inside
    assert_equal("Abbrev", AgentJail.run { require("abbrev") && Abbrev.name })
  end

  def test_the_network_is_the_callers_or_none
    server = TCPServer.new("127.0.0.1", 0)
    port = server.addr[1]
    assert_equal(port, AgentJail.run { TCPSocket.new("127.0.0.1", port).peeraddr[1] })
    assert_raises(AgentJail::NetworkError) do
      AgentJail.run(network: :none) { TCPSocket.new("127.0.0.1", port) }
    end
  ensure
    server&.close
  end

  def test_unix_sockets_go_with_the_network_unless_asked_for
    Dir.mktmpdir do |scratch|
      path = File.join(scratch, "socket")
      server = UNIXServer.new(path)
      options = { fs_allow: [scratch] } # so that Landlock is no reason
      connect = proc { UNIXSocket.new(path).close || "connected" }
      assert_equal("connected", AgentJail.run(unix_sockets: true, **options, &connect))
      assert_raises(AgentJail::NetworkError) do
        AgentJail.run(network: :none, **options, &connect)
      end
      assert_equal("connected", AgentJail.run(network: :none, unix_sockets: true, **options, &connect))
      assert_equal("x", AgentJail.run(network: :none) do
        ours, theirs = UNIXSocket.pair
        ours.write("x")
        theirs.read(1)
      end)
    ensure
      server&.close
    end
  end

  def test_open_connections_are_closed_in_the_child_unless_passed
    ours, theirs = Socket.pair(:UNIX, :STREAM)
    error = assert_raises(AgentJail::SandboxError) { AgentJail.run { theirs.syswrite("forged") } }
    assert_equal "Errno::EBADF", error.original_class
    assert_equal(6, AgentJail.run(keep_fds: [theirs]) { theirs.syswrite("passed") })
    assert_equal "passed", ours.readpartial(100)
  ensure
    [ours, theirs].each(&:close)
  end

  def test_a_log_of_the_parent_does_not_write_into_files_of_the_block
    path = File.join(@scratch, "data")
    File.open(File.join(@scratch, "log"), "w") do |log|
      log.write("of the parent, not yet written")
      [{}, { namespaces: true }].each do |options|
        AgentJail.run(fs_allow: [@scratch], **options) do
          File.open(path, "w") do |stream|
            log.write("a line")
            log.flush
          rescue SystemCallError => e
            stream.write(e.class)
          end
        end
        assert_equal "Errno::EBADF", File.read(path)
      end
    end
    assert_equal "of the parent, not yet written", File.read(File.join(@scratch, "log"))
  end

  # Opens as ever. In the child, which does it once, all files of the parent are garbage from then on.
  def open_and_forget(function, arguments)
    number = function.call(*arguments)
    @files = nil
    GC.stress = true
    number
  end

  def test_files_of_the_parent_that_are_garbage_in_the_child_close_nothing_of_its_own
    function = IO.method(:sysopen)
    [{}, { namespaces: true }].each do |options|
      @files = Array.new(20) { File.open(File::NULL) }
      value = IO.stub(:sysopen, ->(*arguments) { open_and_forget(function, arguments) }) do
        AgentJail.run(**options) { (GC.stress = false) || 7 }
      end
      assert_equal 7, value
      @files.each(&:close)
    end
  end

  def test_threads_and_commands_work_inside
    [{}, { namespaces: true }].each do |options|
      assert_equal([5, "hi\n", 3], AgentJail.run(**options) do
        [Thread.new { 5 }.value, `echo hi`, Process.wait2(spawn("exit 3"))[1].exitstatus]
      end)
    end
  end

  # In the full jail an interrupt of a sleeping thread may be lost; README.md says so.
  def test_timeouts_work_inside
    assert_equal(5, AgentJail.run do
      busy = Thread.new { loop { Thread.pass } }
      begin
        Timeout.timeout(0.2) { sleep }
      rescue Timeout::Error
        busy.kill
        5
      end
    end)
  end

  def test_fork_works_but_for_the_full_jail
    assert_equal(3, AgentJail.run { Process.wait2(fork { exit!(3) })[1].exitstatus })
    error = assert_raises(AgentJail::SandboxError) { AgentJail.run(namespaces: true) { fork { nil } } }
    assert_equal "NotImplementedError", error.original_class
  end

  def test_the_full_jail
    assert_operator AgentJail.run(namespaces: true) { Process.pid }, :<, 10
    assert_equal(false, AgentJail.run(namespaces: true) { File.exist?(@scratch) })
    AgentJail.run(namespaces: true, fs_allow: [@scratch]) { Dir.mkdir("#{@scratch}/new") }
    assert_path_exists "#{@scratch}/new"
  end
end

class HostileTest < Case
  def test_bytes_that_are_no_value
    ["?", "l\xff\xff\xff\xff\xff\xff\xff\xff", "NN", Marshal.dump(Object.new)].each do |bytes|
      assert_raises(AgentJail::ResultError) { AgentJail.run { return_bytes(bytes.b) } }
    end
  end

  def test_nonsense_where_marshal_was_asked_for
    assert_raises(AgentJail::ResultError) { AgentJail.run(marshal: true) { return_bytes("nonsense") } }
  end

  def test_the_parent_cannot_be_signalled
    parent = Process.pid
    assert_raises(AgentJail::SandboxError) { AgentJail.run { Process.kill(:TERM, parent) } }
  end

  def test_closing_everything_in_the_child
    begin
      AgentJail.run { (0..1000).each { |fd| IO.for_fd(fd).close rescue nil } && nil } # rubocop:disable Style/RescueModifier
    rescue AgentJail::SandboxError
      nil # an error is an answer too; hanging or crashing is not
    end
    assert_equal(3, AgentJail.run { 3 })
  end

  def test_the_child_ends_with_its_parent
    path = File.join(@scratch, "pid")
    code = <<~RUBY
      require "agent_jail"
      AgentJail.run(fs_allow: [#{@scratch.inspect}]) do
        File.write("#{path}.new", Process.pid)
        File.rename("#{path}.new", "#{path}")
        sleep
      end
    RUBY
    parent = spawn(*RUBY, "-e", code)
    wait_until { File.exist?(path) }
    child = File.read(path)
    assert_path_exists "/proc/#{child}"
    Process.kill(:KILL, parent)
    Process.wait(parent)
    parent = nil
    wait_until { ended?(child) }
  ensure
    Process.kill(:KILL, parent) && Process.wait(parent) if parent
  end
end

class UseTest < Case
  # Each in words: its name, its state.
  def children
    File.read("/proc/self/task/#{Process.pid}/children").split.map do |pid|
      File.read("/proc/#{pid}/stat")[0, 60]
    end
  end

  # Forks as Process.fork does; then, when the block runs, an exception strikes in the parent.
  def strike_after_fork(runs)
    forked = nil
    striking = lambda do
      forked = fork
      next unless forked

      runs.read(1)
      raise Interrupt
    end
    Process.stub(:fork, striking) { yield }
    forked
  end

  def test_an_exception_between_fork_and_what_follows
    reading, writing = IO.pipe
    pid = strike_after_fork(reading) do
      assert_raises(Interrupt) do
        AgentJail.run(keep_fds: [writing]) do
          writing.syswrite("x")
          sleep 600
        end
      end
    end
    writing.close
    assert_nil reading.read(1) # nobody has the other end any more
    assert_raises(Errno::ECHILD) { Process.wait(pid, Process::WNOHANG) }
    assert_equal(3, AgentJail.run { 3 })
  end

  def test_configured_defaults
    AgentJail.configure do |c|
      c.default_timeout = 0.3
      c.default_fs_allow = [@scratch]
    end
    assert_equal(3, AgentJail.run(timeout: PATIENCE) { File.write("#{@scratch}/a", "abc") })
    begun, begin_ = IO.pipe
    waiting, end_ = IO.pipe
    # A run that begins before another has ended by the default, and ends after it, takes longer than that.
    longer = Thread.new do
      AgentJail.run(timeout: 5 * PATIENCE, keep_fds: [begin_, waiting]) do
        begin_.syswrite("x")
        waiting.sysread(1)
      end
    end
    wait_until { readable?(begun) || !longer.alive? }
    assert_raises(AgentJail::TimeoutError) { AgentJail.run { sleep } }
    end_.syswrite("x")
    assert_equal("x", longer.value)
  ensure
    [begun, begin_, waiting, end_].each { |io| io&.close }
  end

  def test_a_jail_can_be_used_again_and_from_threads
    jail = AgentJail::Jail.new
    values = Array.new(6) { |n| Thread.new { Array.new(5) { |turn| jail.run { n * 10 + turn } } } }.flat_map(&:value)
    assert_equal Array.new(6) { |n| Array.new(5) { |turn| n * 10 + turn } }.flatten, values
  end

  def test_other_threads_go_on_meanwhile
    begun, begin_ = IO.pipe
    waiting, end_ = IO.pipe
    # The block ends when another thread has answered it.
    other = Thread.new { end_.syswrite(begun.read(1)) }
    assert_equal("x", AgentJail.run(keep_fds: [begin_, waiting]) do
      begin_.syswrite("x")
      waiting.sysread(1)
    end)
    other.join
  ensure
    [begun, begin_, waiting, end_].each(&:close)
  end

  def test_a_timeout_of_the_caller_ends_the_run
    reading, writing = IO.pipe
    seconds = 0.1
    # Until the block has begun when the time is over.
    wait_until do
      assert_raises(Timeout::Error) do
        Timeout.timeout(seconds *= 2) do
          AgentJail.run(timeout: 600, keep_fds: [writing]) { writing.syswrite("x") && sleep }
        end
      end
      assert_empty children
      readable?(reading)
    end
  ensure
    [reading, writing].each(&:close)
  end

  # In a process of its own: what earlier tests left for the collector is not counted.
  def test_no_fd_and_no_memory_is_left_behind
    out, = Open3.capture2e(*RUBY, "-e", <<~RUBY)
      require "agent_jail"
      fds = -> { Dir.children("/proc/self/fd").size }
      memory = -> { File.read("/proc/self/status")[/^VmRSS:\\s+(\\d+)/, 1].to_i << 10 }
      50.times { AgentJail.run { "x" * 1000 } }
      GC.start
      before = [fds.call, memory.call]
      #{LEAK_CALLS}.times { AgentJail.run { "x" * 1000 } }
      GC.start
      children = Dir["/proc/self/task/*/children"].map { |list| File.read(list) }.join
      puts fds.call - before[0], memory.call - before[1], children.inspect
    RUBY
    fds, memory, children = out.lines(chomp: true)
    assert_equal ["0", '""'], [fds, children], out
    assert_operator memory.to_i, :<, 16 << 20
  end

  def test_a_missing_library_is_named
    out, = Open3.capture2e({ "BRIG_LIBRARY" => "/none.so" }, *RUBY, "-e", <<~RUBY)
      require "agent_jail"
      begin
        AgentJail.run { 1 }
      rescue AgentJail::SetupError => e
        puts e.message
      end
    RUBY
    assert_match(%r{'/none\.so'.*BRIG_LIBRARY}, out)
  end
end

class PlatformTest < Case
  def on_another_platform
    AgentJail::Platform.stub(:linux?, false) { yield }
  end

  def test_here_there_can_be_jails
    assert_predicate AgentJail::Platform, :fork_supported?
    assert_predicate AgentJail::Platform, :supported?
    assert_nil AgentJail::Platform.problem
  end

  def test_elsewhere_on_unsupported_decides
    on_another_platform do
      assert_raises(AgentJail::UnsupportedPlatformError) { AgentJail.run { 1 } }
      assert_silent { assert_equal(Process.pid, AgentJail.run(on_unsupported: :ignore) { Process.pid }) }
      AgentJail.configuration.on_unsupported = :warn
      _, err = capture_io { assert_equal(Process.pid, AgentJail.run { Process.pid }) }
      assert_match(/agent_jail: .*without a jail/, err)
      error = assert_raises(AgentJail::SandboxError) { AgentJail.run(on_unsupported: :ignore) { raise "x" } }
      assert_equal "RuntimeError", error.original_class
    end
  end

  def test_here_there_is_nothing_to_warn_of
    assert_silent { assert_equal(3, AgentJail.run(on_unsupported: :warn) { 3 }) }
  end

  def test_a_kernel_without_landlock
    without = File.expand_path("../tests/probe/without", File.dirname(ENV.fetch("BRIG_LIBRARY")))
    skip "tests/probe/without is not built" unless File.executable?(without)
    out, err, = Open3.capture3(without, "landlock", "--", *RUBY, "-e", <<~RUBY)
      require "agent_jail"
      %i[raise warn ignore].each do |what|
        puts AgentJail.run(on_unsupported: what) { 3 }
      rescue AgentJail::UnsupportedPlatformError => e
        puts e.class
      end
    RUBY
    assert_equal "AgentJail::UnsupportedPlatformError\n3\n3\n", out
    assert_match(/\Aagent_jail: .*Landlock[^\n]*\n\z/, err)
  end

  def test_the_gem_loads_without_fiddle
    out, = Open3.capture2e(*RUBY, "-e", <<~RUBY)
      module Kernel
        alias real_require require
        def require(name)
          raise LoadError, name if name.start_with?("fiddle")
          real_require(name)
        end
      end
      require "agent_jail"
      module AgentJail::Platform
        def self.linux? = false
      end
      AgentJail.configure { |c| c.on_unsupported = :ignore }
      puts AgentJail.run { 42 }
    RUBY
    assert_equal "42\n", out
  end
end

require "minitest/mock"
run_tests
