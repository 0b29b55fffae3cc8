# SPDX-License-Identifier: MIT
# frozen_string_literal: true

# Runs the tests of a file with minitest and prints TAP. Finds the gem under test in the tree.
ROOT = File.expand_path("../../..", __dir__)
ENV["BRIG_LIBRARY"] ||= File.join(ROOT, "build/src/libbrig.so.0")
$LOAD_PATH.unshift(File.join(ROOT, "bindings/ruby/lib"))
$stdout.sync = true

require "agent_jail"
require "minitest"
require "rbconfig"
require "tmpdir"

# Seconds for what takes an instant: when they are over, something is wrong.
PATIENCE = 60 * Integer(ENV.fetch("BRIG_SLOW", "1"))
# Time limits to try, for a command that must have said something before its limit ends it.
GROWING = [1, 4, 16, PATIENCE].freeze

RUBY = [RbConfig.ruby, "-I", File.join(ROOT, "bindings/ruby/lib")].freeze

# One line a test.
class TapReporter < Minitest::Reporter
  def initialize
    super
    @count = 0
    @failed = false
  end

  def record(result)
    @count += 1
    name = "#{result.klass}: #{result.name.delete_prefix('test_').tr('_', ' ')}"
    return puts "ok #{@count} - #{name} # SKIP #{result.failure.message}" if result.skipped?
    return puts "ok #{@count} - #{name}" if result.passed?

    @failed = true
    puts "not ok #{@count} - #{name}", result.to_s.gsub(/^/, "# ")
  end

  def report
    puts "1..#{@count}"
  end

  def passed?
    !@failed
  end
end

# Not Minitest.autorun: children of the tests must not run them when they exit.
def run_tests
  reporter = TapReporter.new
  patterns = ARGV.map { |name| Regexp.escape(name) }
  options = { filter: patterns.empty? ? nil : "/#{patterns.join('|')}/" }.compact
  Minitest.seed = 1
  Minitest::Runnable.runnables.each { |suite| suite.run(reporter, options) }
  reporter.report
  exit(reporter.passed?)
end

# A test with a directory of its own.
class Case < Minitest::Test
  def setup
    @scratch = File.realpath(Dir.mktmpdir("brig-test-"))
    # No run ends by a time limit that the test does not set, however busy the machine is.
    AgentJail.configure { |c| c.default_timeout = 5 * PATIENCE }
  end

  def teardown
    FileUtils.rm_rf(@scratch)
    AgentJail.instance_variable_set(:@configuration, AgentJail::Configuration.new)
  end

  def file(name, text = "secret")
    path = File.join(@scratch, name)
    File.write(path, text)
    path
  end

  # Waits until the block gives something true. Tests never sleep and hope.
  def wait_until
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    until yield
      flunk "waited in vain" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.02
    end
  end

  def readable?(io)
    IO.select([io], nil, nil, 0)
  end

  # Whether the process is gone, or a zombie that its parent has not waited for.
  def ended?(pid)
    "ZX".include?(File.read("/proc/#{pid}/stat").rpartition(")").last.split.first)
  rescue Errno::ENOENT, Errno::ESRCH
    true
  end
end
