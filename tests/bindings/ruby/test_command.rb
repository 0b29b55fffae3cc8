# SPDX-License-Identifier: MIT
# frozen_string_literal: true

# Commands that are waited for: output, status, errors, limits, and what they may have.
require_relative "tap"
require "open3"
require "timeout"

class CaptureTest < Case
  def sh(script, **options, &block)
    AgentJail.capture("sh", "-c", script, **options, &block)
  end

  def test_output_and_status
    result = sh("echo out; echo err >&2; exit 3")
    assert_equal [:exited, 3, 3, nil], [result.outcome, result.exit_code, result.status, result.signal]
    assert_equal %W[out\n err\n], [result.stdout, result.stderr]
    refute_predicate result, :success?
    refute_predicate result, :truncated?
    refute_predicate result, :inside_jail?
    assert_operator result.usage.wall_us, :>, 0
    assert_equal 4, result.usage.stdout_bytes
    case result
    in { outcome: :exited, exit_code: 3, stdout: } then assert_equal "out\n", stdout
    end
    assert_nil result.denials
    assert_equal 0, result.network["denied"]
  end

  def test_input_and_encodings
    assert_equal "text é", AgentJail.capture("cat", input: "text é").stdout
    assert_equal Encoding.default_external, AgentJail.capture("cat", input: "x").stdout.encoding
    assert_equal "\xff\0é".b, AgentJail.capture("cat", input: "\xff\0é".b, binmode: true).stdout
    assert_equal "300000", AgentJail.capture("wc", "-c", input: "x" * 300_000).stdout.strip
    assert_equal "", AgentJail.capture("cat").stdout
  end

  def test_lines_come_while_it_runs
    reading, writing = IO.pipe
    seen = []
    # The command goes on when its first line was seen.
    result = sh("echo one; read -r word <&9; echo $word; echo two >&2; printf end", pass_fds: { reading => 9 }) do |line, stream|
      seen << [line, stream]
      writing.puts("heard") if line == "one\n"
    end
    assert_equal [["one\n", :stdout], ["heard\n", :stdout], ["two\n", :stderr], ["end", :stdout]].sort, seen.sort
    assert_equal ["one\nheard\nend", "two\n"], [result.stdout, result.stderr]
    assert_equal 1000, AgentJail.capture("cat", input: "x" * 300_000, max_output: 1000) { nil }.stdout.size
    assert_raises(KeyError) { sh("echo one; sleep 600", timeout: nil) { raise KeyError } }
  ensure
    [reading, writing].each(&:close)
  end

  def test_one_rule_for_errors
    error = assert_raises(AgentJail::TimeoutError) { AgentJail.capture("sleep", "600", timeout: 0.1) }
    assert_equal :timeout, error.result.outcome
    assert_equal 124, AgentJail.capture("sleep", "600", timeout: 0.1, check: false).status
    assert_equal 4, sh("exit 4").exit_code
    error = assert_raises(AgentJail::CommandError) { sh("echo half; exit 4", check: true) }
    assert_equal "half\n", error.result.stdout
    assert_includes error.message, "exited with 4"
    assert_predicate sh("true", check: true), :ok?
    assert_equal [9, nil], sh("kill -9 $$").then { |result| [result.signal, result.exit_code] }
    assert_raises(AgentJail::CPUTimeoutError) { sh("while :; do :; done", cpu_timeout: 0.1) }
  end

  def test_what_cannot_be_started
    error = assert_raises(AgentJail::NotFoundError) { AgentJail.capture("nonesuch") }
    assert_kind_of AgentJail::SetupError, error
    assert_includes error.message, "'nonesuch'"
    assert_raises(AgentJail::NotExecutableError) { AgentJail.capture("/etc/passwd") }
  end

  def test_wrong_values_are_named
    { timeout: 0, memory_mb: -1, memory: :much, network: :some, on_unsupported: :cry, processes: 0, max_output: 0.5,
      mode: :soft, policy: "sealed", check: 1 }.each do |name, value|
      error = assert_raises(ArgumentError) { AgentJail.capture("true", name => value) }
      assert_includes error.message, name.to_s
      assert_includes error.message, value.inspect
    end
    assert_match(/tiemout/, assert_raises(ArgumentError) { AgentJail.capture("true", tiemout: 3) }.message)
    assert_match(/fs_allow is a list/, assert_raises(ArgumentError) { AgentJail.capture("true", fs_allow: "/tmp") }.message)
    assert_match(/NUL/, assert_raises(ArgumentError) { AgentJail.capture("a\0b") }.message)
    assert_match(/single arguments/, assert_raises(ArgumentError) { AgentJail.capture(["true"]) }.message)
    assert_raises(ArgumentError) { AgentJail.capture }
    assert_raises(ArgumentError) { AgentJail.capture("true", mode: :sealed, policy: AgentJail::Policy.new) }
  end

  # Errors are the library's, and name no options of the command brig.
  def test_errors_name_nothing_of_the_command_line
    policy = AgentJail::Policy.new
    [-> { policy.allow("not a rule at all") }, -> { policy.setenv("A=B" => "c") }, -> { policy.publish("x") },
     -> { policy.keep("/none") && AgentJail.capture("true", policy: policy) },
     -> { AgentJail.capture("true", fs_allow: ["/none/such"]) }].each do |wrong|
      error = assert_raises(ArgumentError, AgentJail::Error, &wrong)
      refute_match(/(\A|\s)--?[a-z]/, error.message)
    end
  end

  def test_files_directory_and_variables
    path = file("data")
    File.chmod(0o755, @scratch)
    assert_equal "", sh("cat #{path} 2>/dev/null").stdout
    assert_equal "secret", sh("cat data", fs_read_allow: [@scratch], cwd: @scratch).stdout
    assert_equal "", sh("echo x > data", fs_read_allow: [@scratch], cwd: @scratch).stdout
    assert_equal "secret", File.read(path)
    ENV["BRIG_TEST_SECRET"] = "x"
    assert_equal "\n", sh("echo $BRIG_TEST_SECRET").stdout
    assert_equal "y\n", sh("echo $BRIG_TEST_SECRET", env: { "BRIG_TEST_SECRET" => "y", "PATH" => ENV["PATH"], "NO" => nil }).stdout
  ensure
    ENV.delete("BRIG_TEST_SECRET")
  end

  def test_memory_and_the_defaults_of_the_program
    assert_raises(AgentJail::CommandError) { sh("head -c 300M /dev/zero | tail -c 300M", memory_mb: 50, check: true) }
    AgentJail.configure { |c| c.default_timeout = 0.1 }
    assert_raises(AgentJail::TimeoutError) { sh("sleep 600") }
    assert_raises(AgentJail::TimeoutError) { sh("sleep 600", policy: AgentJail::Policy.new) }
    assert_predicate sh("sleep 0.15", policy: AgentJail::Policy.new.limit(wall_ms: PATIENCE * 1000)), :ok?
  end

  def test_a_timeout_of_the_caller_ends_it
    assert_raises(Timeout::Error) { Timeout.timeout(0.1) { AgentJail.capture("sleep", "600", timeout: nil) } }
    children = Dir["/proc/self/task/*/children"].map do |list|
      File.read(list)
    rescue Errno::ENOENT, Errno::ESRCH # a thread that has ended
      ""
    end
    assert_empty children.join
  end

  def test_what_is_not_enforced_is_refused_or_warned_of
    without = File.expand_path("../tests/probe/without", File.dirname(ENV.fetch("BRIG_LIBRARY")))
    skip "tests/probe/without is not built" unless File.executable?(without)
    out, err, = Open3.capture3(without, "seccomp", "--", *RUBY, "-e", <<~RUBY)
      require "agent_jail"
      [{}, { on_unsupported: :warn }, { policy: AgentJail::Policy.new.on_unsupported(:ignore) }].each do |options|
        puts AgentJail.capture("echo", "ran", **options).stdout
      rescue AgentJail::UnsupportedPlatformError => e
        puts e.class
      end
    RUBY
    assert_equal "AgentJail::UnsupportedPlatformError\nran\nran\n", out
    assert_equal 1, err.scan(/^agent_jail: not enforced: no syscall filter/).size
  end

  def test_a_process_confines_itself
    out, err, = Open3.capture3(*RUBY, "-e", <<~RUBY)
      require "agent_jail"
      unenforced = AgentJail.confine_self(AgentJail::Policy.new.grant(#{@scratch.inspect}))
      puts unenforced.grep(/namespaces/).size
      File.write(#{File.join(@scratch, 'file').inspect}, "x")
      File.read("/etc/shadow")
    RUBY
    assert_equal "1\n", out
    assert_match(/EACCES/, err)
    assert_equal "x", File.read(File.join(@scratch, "file"))
  end

  def test_on_another_platform_no_command_runs
    AgentJail::Platform.stub(:linux?, false) do
      %i[raise warn ignore].each do |what|
        assert_raises(AgentJail::UnsupportedPlatformError) { AgentJail.capture("true", on_unsupported: what) }
      end
    end
  end
end

# Ruby's lock is not held while the library works or a command is waited for.
class LockTest < Case
  def test_other_threads_go_on_while_one_waits
    reading, writing = IO.pipe
    begun, begin_ = IO.pipe
    other = Thread.new { writing.write(begun.gets) && writing.close }
    result = AgentJail.capture("sh", "-c", "echo begun >&8; cat <&9", pass_fds: { reading => 9, begin_ => 8 })
    assert_equal "begun\n", result.stdout
    other.join
  ensure
    [reading, writing, begun, begin_].each(&:close)
  end

  def test_functions_of_the_library_let_go_of_it
    AgentJail::Platform.load_library
    library = AgentJail.send(:const_get, :Library)
    library::FUNCTIONS.each_key { |name| refute_predicate library.functions[name], :need_gvl?, name }
    # The same way to make a function, for one that waits until another thread writes.
    read = library.send(:function, Fiddle::Handle::DEFAULT, :read, "iipz", false)
    reading, writing = IO.pipe
    reading.fcntl(4, 0) # F_SETFL: it blocks
    other = Thread.new { writing.syswrite("x") }
    assert_equal 1, read.call(reading.fileno, " ".dup, 1)
    other.join
  ensure
    [reading, writing].each(&:close)
  end
end

require "minitest/mock"
run_tests
