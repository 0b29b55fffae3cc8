# SPDX-License-Identifier: MIT
# frozen_string_literal: true

# The README does what it says: each block after a line `<!-- run -->` is run, with tools of ours in
# the place of those it speaks of, and with its /app in a scratch directory; it prints what its lines `#>` say.
require_relative "tap"
require "logger"
require "stringio"

class ReadmeTest < Case
  BLOCKS = File.read(File.join(ROOT, "bindings/ruby/README.md"), encoding: "UTF-8")
               .scan(/^<!-- run -->\n```ruby\n(.*?)^```$/m).flatten

  attr_accessor :tool, :failing_tool, :arguments

  def setup
    super
    %w[tmp uploads config].each { |name| Dir.mkdir(File.join(@scratch, name)) }
    @log = StringIO.new
    @tool = @failing_tool = ->(text) { text.upcase }
    @arguments = "abc"
  end

  def logger
    @logger ||= Logger.new(@log)
  end

  # Runs the blocks that have a text in them; returns the value of `result` in the last.
  def run_blocks(having)
    chosen = BLOCKS.select { |block| block.include?(having) }
    refute_empty chosen
    chosen.map do |block|
      names = binding
      printed, = capture_io { names.eval(block.gsub("/app", @scratch), "README.md") }
      assert_equal block.lines.grep(/\A#> /) { |line| line[3..] }.join, printed
      names.local_variable_defined?(:result) ? names.local_variable_get(:result) : nil
    end.last
  end

  def test_every_block_runs
    assert_equal 7, BLOCKS.size
    run_blocks("AgentJail")
  end

  def test_the_value_comes_back
    assert_equal "ABC", run_blocks("cpu_timeout:   5")
  end

  def test_a_block_that_loops_or_sleeps_is_ended
    self.failing_tool = ->(_) { sleep }
    run_blocks("begin\n")
    assert_empty @log.string
  end

  def test_a_tool_that_fails_is_logged
    self.failing_tool = ->(text) { raise KeyError, "no #{text}" }
    run_blocks("begin\n")
    assert_includes @log.string, "Tool call raised KeyError: no abc"
    assert_includes @log.string, "test_readme.rb"
  end

  def test_a_tool_that_reads_the_password_file_is_logged
    self.failing_tool = ->(_) { File.read("/etc/passwd") }
    run_blocks("begin\n")
    assert_includes @log.string, "refused: read /etc/passwd"
  end

  def test_a_tool_that_takes_ten_gigabytes_is_ended
    self.failing_tool = ->(_) { "x" * (10 << 30) }
    run_blocks("begin\n")
    assert_empty @log.string
  end

  def test_the_block_of_the_projects_readme_prints_what_it_says
    block = File.read(File.join(ROOT, "README.md"), encoding: "UTF-8")[/^<!-- run -->\n```ruby\n(.*?)^```$/m, 1]
    printed, = capture_io { binding.eval(block, "README.md") }
    assert_equal block.lines.grep(/\A#> /) { |line| line[3..] }.join, printed
  end

  def test_the_configuration_of_the_readme_is_the_default
    run_blocks("configure")
    fresh = AgentJail::Configuration.new
    %i[default_timeout default_memory_mb default_fs_allow on_unsupported].each do |name|
      assert_equal fresh.public_send(name), AgentJail.configuration.public_send(name)
    end
  end
end

run_tests
