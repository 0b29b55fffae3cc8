# SPDX-License-Identifier: MIT
# frozen_string_literal: true

# Jobs: commands that are talked to while they run.
require_relative "tap"
require "open3"
require "pty"
require "tempfile"

ECHO = ["sh", "-c", 'while read -r line; do echo "heard $line"; done; echo end >&2'].freeze

class StreamsTest < Case
  def test_lines_are_read_while_it_runs
    AgentJail.spawn(*ECHO) do |job|
      %w[one two].each do |word|
        job.stdin.puts word
        assert_equal "heard #{word}\n", job.stdout.gets
        assert_predicate job, :alive?
        assert_nil job.result
      end
      job.stdin.close
      assert_equal ["", "end\n"], [job.stdout.read, job.stderr.read]
      assert_predicate job.wait(timeout: PATIENCE), :ok?
    end
  end

  def test_the_value_of_the_block_and_the_end_of_the_job
    job = nil
    assert_equal(5, AgentJail.spawn("cat") { |started| (job = started) && 5 })
    assert_equal [true, true], [job.result.ok?, job.stdin.closed?]
    assert_raises(AgentJail::StateError) { job.pid }
  end

  def test_each_line_and_each_piece
    script = "echo a; echo b >&2; printf 'c\\nd'"
    lines = AgentJail.spawn("sh", "-c", script, stdin: :null) { |job| job.each_line(chomp: true).to_a }
    assert_equal [["a", :stdout], ["b", :stderr], ["c", :stdout], ["d", :stdout]], lines.sort
    pieces = AgentJail.spawn("sh", "-c", script, stdin: :null) { |job| job.each_piece.to_a }
    assert_equal "a\nc\nd", pieces.filter_map { |piece, stream| piece if stream == :stdout }.join
    sizes = AgentJail.spawn("head", "-c", "3000000", "/dev/zero") { |job| job.each_line.map { |line, _| line.size } }
    assert_equal 3_000_000, sizes.sum
    assert_equal 3, sizes.size
  end

  def test_communicate_passes_more_than_pipes_hold
    data = (0..255).to_a.pack("C*") * 4000
    result = AgentJail.spawn("cat", max_output: data.bytesize, binmode: true) { |job| job.communicate(data) }
    assert_equal [data, "", false], [result.stdout, result.stderr, result.truncated?]
    result = AgentJail.spawn("cat", max_output: 1000) { |job| job.communicate(data) }
    assert_equal [1000, true], [result.stdout.bytesize, result.truncated?]
  end

  def test_communicate_goes_on_after_its_timeout
    said, saying = IO.pipe
    AgentJail.spawn("sh", "-c", "echo first; echo >&7; sleep 600", timeout: nil, pass_fds: { saying => 7 }) do |job|
      assert_nil job.communicate(timeout: 0.05)
      assert_equal "\n", said.readpartial(1)
      [said, saying].each(&:close)
      job.kill
      assert_equal "first\n", job.communicate(timeout: PATIENCE).stdout
    end
    assert_equal "", AgentJail.spawn("true") { |job| job.communicate("x" * (1 << 20)) }.stdout
  end

  def test_streams_that_are_not_pipes
    given = Tempfile.new("given", @scratch)
    given.write("from a file")
    given.rewind
    reading, writing = IO.pipe
    AgentJail.spawn("cat", stdin: given, stdout: writing, stderr: :null) do |job|
      assert_equal [nil, nil, nil], [job.stdin, job.stdout, job.stderr]
      assert_predicate job.wait, :ok?
    end
    writing.close
    assert_equal "from a file", reading.read
    both = AgentJail.spawn("sh", "-c", "echo a; echo b >&2", stdin: :null, stderr: :stdout, &:communicate)
    assert_equal "a\nb\n", both.stdout
    assert_equal "x\n", AgentJail.spawn("echo", "x", stdout: :capture) { |job| job.wait }.stdout
  ensure
    [reading, writing, given].each(&:close)
  end

  def test_wrong_streams_are_named
    { { stdout: -7 } => /stdout: -7/, { stderr: :stdout, stdout: :null } => /needs stdout: :pipe/,
      { pty: true, stdout: :pipe } => /pty/, { stdinn: :pipe } => /stdinn/, { stdin: :tube } => /:tube.*:pipe/ }
      .each do |options, words|
        assert_match words, assert_raises(ArgumentError) { AgentJail.spawn("true", **options) }.message
      end
    AgentJail.spawn("true", stdin: :null) { |job| assert_raises(ArgumentError) { job.communicate("x") } }
  end
end

class TerminalTest < Case
  def test_a_terminal_is_typed_into_and_resized
    script = 'stty size; read -r word; stty size; echo "heard $word"; test -t 1'
    AgentJail.spawn("sh", "-c", script, pty: true) do |job|
      assert_equal "24 80\r\n", job.terminal.gets
      job.resize(40, 100)
      job.terminal.puts "hello"
      assert_equal ["hello", "40 100", "heard hello"], job.each_line(chomp: true).map { |line, _| line }
      assert_predicate job.wait(timeout: PATIENCE), :ok?
      assert_raises(AgentJail::StateError) { job.resize(1, 1) }
    end
    AgentJail.spawn("cat") { |job| assert_raises(AgentJail::StateError) { job.resize(1, 1) } }
  end

  def test_a_command_with_the_programs_terminal_prints_there
    terminal, side = PTY.open
    pid = fork do
      $stdout.reopen(side)
      exit!(AgentJail.spawn("echo", "on a terminal", stdout: :inherit) { |job| job.wait }.ok?)
    end
    assert_equal 0, Process.wait2(pid)[1].to_i
    assert_match(/on a terminal/, terminal.readpartial(1000))
  ensure
    [terminal, side].each(&:close)
  end
end

class EndingsTest < Case
  def test_signals_and_cancelling
    ready = "trap 'exit 7' USR1; echo ready; while :; do sleep 0.01; done"
    AgentJail.spawn("sh", "-c", ready, stderr: :null) do |job|
      job.stdout.gets
      job.signal(:USR1)
      assert_equal 7, job.wait(timeout: PATIENCE).exit_code
      assert_raises(ArgumentError) { job.signal(:NONE) }
    end
    { kill: [:signalled, 9], terminate: [:signalled, 15], cancel: [:cancelled, 9] }.each do |how, ending|
      job = AgentJail.spawn("sleep", "600", timeout: nil)
      job.public_send(how)
      result = job.wait(timeout: PATIENCE)
      assert_equal ending, [result.outcome, result.signal]
      job.public_send(how) # nothing happens
      job.close
    end
  end

  def test_limits_hold_although_nothing_waits
    job = said = nil
    GROWING.each do |seconds|
      job&.close
      job = AgentJail.spawn("sh", "-c", "echo x; sleep 600", timeout: seconds)
      said = job.stdout.read # ends with the command
      break unless said.empty?
    end
    assert_equal "x\n", said
    wait_until { job.result }
    assert_equal :timeout, job.result.outcome
    assert_raises(AgentJail::TimeoutError) { job.wait.check }
    job.close
  end

  def test_waiting_in_vain_leaves_it_running
    AgentJail.spawn("cat") do |job|
      assert_nil job.wait(timeout: 0.02)
      job.stdin.close
      assert_predicate job.wait, :ok?
    end
  end

  def test_a_job_outlives_the_thread_that_started_it
    job = Thread.new { AgentJail.spawn("cat") }.value
    job.stdin.write("x")
    job.stdin.close
    assert_equal ["x", true], [job.stdout.read, job.wait.ok?]
    job.close
  end

  def forget
    AgentJail.spawn("sleep", "600", timeout: nil).pid
  end

  def test_an_exception_and_forgetting_end_the_command
    pid = nil
    assert_raises(KeyError) do
      AgentJail.spawn("sleep", "600", timeout: nil) do |job|
        pid = job.pid
        raise KeyError
      end
    end
    assert ended?(pid)
    forgotten = Array.new(3) { forget }
    # A collector that looks for references on the stack may find one of an old job there.
    wait_until { GC.start || forgotten.any? { |each| ended?(each) } }
  end

  def test_stopping_is_told_once
    AgentJail.spawn("sh", "-c", "kill -STOP $$; echo again") do |job|
      stop = nil
      wait_until { stop ||= job.take_stop }
      assert_equal Signal.list["STOP"], stop
      assert_nil job.take_stop
      job.signal(:CONT)
      assert_equal "again\n", job.stdout.read
    end
  end

  def test_a_forked_child_ends_nothing
    AgentJail.spawn("cat") do |job|
      pid = fork do
        refused = [-> { job.kill }, -> { job.wait }].count do |act|
          act.call && nil
        rescue AgentJail::StateError
          true
        end
        job.close
        exit!(refused)
      end
      assert_equal 2, Process.wait2(pid)[1].exitstatus
      job.stdin.write("still there")
      job.stdin.close
      assert_equal "still there", job.stdout.read
    end
  end

  # In a process of its own: what earlier tests left for the collector is not counted.
  def test_no_fd_and_no_child_is_left_behind
    out, = Open3.capture2e(*RUBY, "-e", <<~RUBY)
      require "agent_jail"
      fds = -> { GC.start || Dir.children("/proc/self/fd").size }
      once = lambda do
        AgentJail.spawn("cat") { |job| job.communicate("x\\n") }
        AgentJail.capture("true")
        AgentJail::Template.open { |template| template.capture("true") }
        AgentJail.spawn("nonesuch", stderr: :stdout) rescue puts($!.class)
      end
      once.call
      before = fds.call
      3.times { once.call }
      puts fds.call - before, Dir["/proc/self/task/*/children"].map { |list| File.read(list) }.join.inspect
    RUBY
    assert_equal [*["AgentJail::NotFoundError"] * 4, "0", '""'], out.lines(chomp: true)
  end
end

class KeptTest < Case
  def test_files_are_kept_and_no_link_is_followed
    policy = AgentJail::Policy.new.private("/out").keep("/out")
    script = "cd /out; mkdir -p a/b; echo data > a/b/file; ln -s /etc/passwd link; ln -s a dir; mkfifo pipe"
    AgentJail.spawn("sh", "-c", script, policy: policy) do |job|
      job.wait
      assert_equal "data\n", job.kept_file("a/b/file")
      assert_raises(Errno::ELOOP) { job.kept_file("link") }
      assert_raises(ArgumentError) { job.kept_file("dir/b/file") }
      assert_raises(ArgumentError) { job.kept_file("pipe") }
      assert_raises(ArgumentError) { job.kept_file("../x") }
      assert_raises(ArgumentError) { job.kept_file("a/b/file", max_bytes: 4) }
      assert_equal "data\n", job.kept_file("a/b/file", max_bytes: 5)
    end
    AgentJail.spawn("true") { |job| assert_raises(AgentJail::StateError) { job.kept_file("x") } }
  end
end

run_tests
