# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require_relative "lib/agent_jail/version"

Gem::Specification.new do |spec|
  spec.name = "agent_jail"
  spec.version = AgentJail::VERSION
  spec.summary = "Run a block or a command in a jail, and get what it gives or a typed error"
  spec.description = "Timeouts, memory limits, Landlock, namespaces and a syscall filter around blocks of Ruby and " \
                     "commands, by libbrig."
  spec.authors = ["The authors of brig"]
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"
  spec.files = Dir["lib/**/*.rb", "lib/agent_jail/libbrig.so.0", "README.md", base: __dir__]
  # tools/gem puts the library there.
  spec.platform = Gem::Platform::CURRENT if spec.files.include?("lib/agent_jail/libbrig.so.0")
  spec.require_paths = ["lib"]
  spec.add_dependency "fiddle", "~> 1.0"
end
