# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require_relative "lib/agent_jail/version"

Gem::Specification.new do |spec|
  spec.name = "agent_jail"
  spec.version = AgentJail::VERSION
  spec.summary = "Run a block in a jail, and get its value or a typed error"
  spec.description = "Timeouts, memory limits, Landlock and a syscall filter around a block of Ruby, by libbrig."
  spec.authors = ["The authors of brig"]
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"
  spec.files = Dir["lib/**/*.rb", "README.md", base: __dir__]
  spec.require_paths = ["lib"]
  spec.add_dependency "fiddle", "~> 1.0"
end
