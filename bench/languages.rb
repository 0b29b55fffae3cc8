# SPDX-License-Identifier: MIT
# frozen_string_literal: true

# The worker of bench/languages in Ruby: does what a line of its input says, and prints the microseconds.
require "agent_jail"
require "open3"

jail = AgentJail::Jail.new
WAYS = {
  "command plain" => -> { Open3.capture3("/bin/true") },
  "command brig" => -> { AgentJail.capture("/bin/true") },
  "call plain" => -> { Process.wait(fork { exit!(0) }) },
  "call brig" => -> { jail.run { nil } }
}.freeze
$stdout.sync = true
$stdin.each_line(chomp: true) do |line|
  way = WAYS[line]
  next puts("-") unless way

  start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  way.call
  puts (Process.clock_gettime(Process::CLOCK_MONOTONIC) - start) * 1e6
end
