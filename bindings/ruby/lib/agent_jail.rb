# SPDX-License-Identifier: MIT
# frozen_string_literal: true

# Runs a block in a jail, and returns its value or raises what became of it.
#
#   result = AgentJail.run(timeout: 5, memory_mb: 256, fs_allow: ["/app/tmp"]) do
#     tool.call(arguments)
#   end
module AgentJail
end

require_relative "agent_jail/version"
require_relative "agent_jail/errors"
require_relative "agent_jail/configuration"
require_relative "agent_jail/platform"
require_relative "agent_jail/plain"
require_relative "agent_jail/jail"

module AgentJail
  @configuration = Configuration.new

  class << self
    attr_reader :configuration

    # Sets the defaults of the program:
    #
    #   AgentJail.configure { |c| c.default_timeout = 10 }
    def configure
      yield configuration
      configuration
    end

    # Runs the block in a forked child with these options (see Jail), over the defaults.
    def run(**options, &block)
      Jail.new(**options).run(&block)
    end
  end
end
