# SPDX-License-Identifier: MIT
# frozen_string_literal: true

# Templates and pools: many threads, and processes that are forked after their use.
require_relative "tap"
require "timeout"

class TemplateTest < Case
  def test_threads_share_one
    AgentJail::Template.open(policy: AgentJail::Policy.new.private("/own").workdir("/own"), timeout: PATIENCE) do |template|
      outputs = Array.new(6) { |n| Thread.new { template.capture("sh", "-c", "echo #{n} > x; cat *").stdout } }.map(&:value)
      assert_equal %W[0\n 1\n 2\n 3\n 4\n 5\n], outputs
      assert_equal "x\n", template.spawn("cat") { |job| job.communicate("x\n") }.stdout
    end
  end

  def test_a_closed_one_says_so_and_its_jobs_go_on
    template = AgentJail::Template.new
    job = template.spawn("cat")
    template.close
    assert_match(/closed/, assert_raises(AgentJail::StateError) { template.capture("true") }.message)
    assert_equal "x", job.communicate("x").stdout
    job.close
    assert_raises(ArgumentError) { AgentJail::Template.new(marshal: true) }
  end
end

class JailTest < Case
  def test_closing_waits_for_blocks_that_run
    begun, begin_ = IO.pipe
    waiting, end_ = IO.pipe
    jail = AgentJail::Jail.new(keep_fds: [begin_, waiting])
    running = Thread.new { jail.run { begin_.syswrite("x") && waiting.sysread(1) } }
    wait_until { readable?(begun) }
    jail.close
    assert_raises(AgentJail::StateError) { jail.run { 1 } }
    end_.syswrite("y")
    assert_equal "y", running.value
  ensure
    [begun, begin_, waiting, end_].each(&:close)
  end
end

class PoolTest < Case
  def teardown
    @pool&.close
    super
  end

  def pool(size = 2, **options)
    @pool ||= AgentJail::Pool.new(size, timeout: PATIENCE, **options)
  end

  def test_blocks_and_commands
    assert_equal(3, pool.run { 3 })
    assert_equal "x\n", pool.capture("echo", "x").stdout
    assert_equal "y", pool.spawn("cat") { |job| job.communicate("y") }.stdout
    assert_equal [0, 1, 4, 9, 16], pool.map(0...5) { |n| n**2 }
    error = assert_raises(AgentJail::SandboxError) { pool.map([1, 0]) { |n| 1 / n } }
    assert_equal "ZeroDivisionError", error.original_class
    assert_equal 0, pool.running
  end

  def test_no_more_than_its_size_run_at_a_time
    most = 0
    lock = Mutex.new
    now = 0
    shared = pool
    Array.new(6) do
      Thread.new do
        shared.spawn("cat") do |job|
          lock.synchronize { most = [most, now += 1].max }
          job.communicate("x")
          lock.synchronize { now -= 1 }
        end
      end
    end.each(&:join)
    assert_includes 1..2, most
  end

  def test_waiting_for_a_place_has_an_end
    pool(1, wait: 0.05).spawn("cat") do
      assert_equal 1, pool.running
      assert_raises(AgentJail::PoolTimeoutError) { pool.capture("true") }
    end
    assert_predicate pool.capture("true"), :ok?
  end

  def test_a_thread_that_is_killed_or_timed_out_gives_its_place_back
    assert_raises(Timeout::Error) { Timeout.timeout(0.05) { pool(1).run { sleep } } }
    [-> { pool.run { sleep } }, -> { pool.spawn("cat") { sleep } }].each do |act|
      holding = Thread.new(&act)
      wait_until { pool.running == 1 }
      waiting = Thread.new { pool.run { 1 } }
      wait_until { waiting.stop? }
      waiting.kill.join
      holding.kill.join
      assert_equal 0, pool.running
    end
    assert_equal(3, pool.run { 3 })
  end

  def test_wrong_values_and_a_closed_pool
    assert_raises(ArgumentError) { AgentJail::Pool.new(0) }
    assert_raises(ArgumentError) { AgentJail::Pool.new(nil) }
    assert_match(/tiemout/, assert_raises(ArgumentError) { AgentJail::Pool.new(1, tiemout: 3) }.message)
    pool.close
    assert_raises(AgentJail::StateError) { pool.run { 1 } }
    assert_raises(AgentJail::StateError) { pool.capture("true") }
  end

  def work(number)
    [pool.run { number**2 }, pool.capture("echo", number.to_s).stdout.to_i]
  end

  # As the workers of a server that loads the program before it forks, while threads use the pool.
  def test_preforked_workers_with_threads
    work(1)
    stop = false
    threads = Array.new(3) { Thread.new { work(2) until stop } }
    workers = Array.new(2) do
      fork do
        found = Array.new(3) { |n| Thread.new { work(n) } }.map(&:value)
        exit!(found == [[0, 0], [1, 1], [4, 2]] ? 0 : 1)
      rescue Exception => e # rubocop:disable Lint/RescueException
        warn e.full_message
        exit!(2)
      end
    end
    assert_equal([0, 0], workers.map { |pid| Process.wait2(pid)[1].to_i })
  ensure
    stop = true
    threads&.each(&:join)
  end
end

run_tests
