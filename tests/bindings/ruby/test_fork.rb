# SPDX-License-Identifier: MIT
# frozen_string_literal: true

# Runs in processes that the program forks, while other threads run and log; and logs in the block.
require_relative "tap"
require "logger"
require "tmpdir"

JAIL = AgentJail::Jail.new(timeout: 60)
FULL = AgentJail::Jail.new(timeout: 60, namespaces: true)

class ForkTest < Case
  def work(number)
    [JAIL.run { number**2 }, FULL.run { number**3 }]
  end

  def forked
    Process.fork do
      status = 1
      status = 0 if yield
    ensure
      exit!(status)
    end
  end

  def check(*pids)
    assert_equal([0] * pids.size, pids.map { |pid| Process.wait2(pid)[1].to_i })
  end

  def test_a_fork_can_run_blocks
    work(1)
    check(forked { work(3) == [9, 27] })
    assert_equal [4, 8], work(2)
  end

  def test_preforked_workers_run_blocks_at_once
    work(1)
    2.times { check(*Array.new(4) { forked { (0...3).all? { |n| work(n) == [n**2, n**3] } } }) }
    assert_equal [4, 8], work(2)
  end

  def test_forking_while_threads_run_blocks
    stop = false
    threads = Array.new(3) { Thread.new { work(2) until stop } }
    5.times { check(forked { work(3) == [9, 27] }) }
  ensure
    stop = true
    threads&.each(&:join)
  end
end

class LogTest < Case
  CALLS = 16
  THREADS = 8

  # Runs that log, while 8 threads do.
  def runs_that_log(log, jail)
    stop = false
    threads = Array.new(THREADS) { Thread.new { log.info("noise") until stop } }
    CALLS.times { |number| assert_equal(number, jail.run { log.info("inside #{number}") && number }) }
  ensure
    stop = true
    threads&.each(&:join)
  end

  def with_log
    Dir.mktmpdir do |dir|
      path = File.join(dir, "log")
      yield dir, path, Logger.new(path)
    end
  end

  def test_a_log_that_is_closed_inside
    with_log do |_, path, log|
      assert_silent { runs_that_log(log, JAIL) }
      refute_includes File.read(path), "inside"
    end
  end

  def test_a_log_whose_path_is_granted
    with_log do |dir, path, log|
      jail = AgentJail::Jail.new(timeout: 60, fs_allow: [dir])
      assert_silent { runs_that_log(log, jail) }
      assert_equal CALLS, File.read(path).scan("inside").size
    end
  end

  def test_a_log_that_is_kept
    with_log do |_, path, log|
      file = log.instance_variable_get(:@logdev).dev
      jail = AgentJail::Jail.new(timeout: 60, keep_fds: [file])
      assert_silent { runs_that_log(log, jail) }
      assert_equal CALLS, File.read(path).scan("inside").size
    end
  end
end

class RefusedTest < Case
  def test_modes_and_times_are_refused_without_namespaces
    Dir.mktmpdir do |dir|
      path = File.join(dir, "file")
      File.write(path, "x")
      ways = [-> { File.chmod(0o777, path) }, -> { File.utime(1, 1, path) },
              -> { File.open(path) { |file| file.chmod(0o777) } }]
      before = File.stat(path)
      ways.each do |way|
        assert_raises(AgentJail::SandboxError) { AgentJail.run(fs_allow: [dir], timeout: 60, &way) }
      end
      after = File.stat(path)
      assert_equal [before.mode, before.mtime], [after.mode, after.mtime]
      ways.each { |way| FULL.class.new(namespaces: true, fs_allow: [dir], timeout: 60).run { way.call && 1 } }
      refute_equal before.mode, File.stat(path).mode
    end
  end
end

run_tests
