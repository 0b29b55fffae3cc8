# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module AgentJail
  # The defaults of a program, set with AgentJail.configure.
  class Configuration
    ON_UNSUPPORTED = %i[raise warn ignore].freeze

    attr_accessor :default_timeout, :default_memory_mb, :default_fs_allow, :default_fs_read_allow,
                  :default_max_result, :default_trace
    attr_reader :on_unsupported

    def initialize
      @default_timeout = 30
      @default_memory_mb = 512
      @default_fs_allow = []
      @default_fs_read_allow = []
      @default_max_result = 64 * 1024 * 1024
      @default_trace = false
      @on_unsupported = :raise
    end

    # What to do where something cannot be enforced: :raise UnsupportedPlatformError; :warn and go on
    # with what there is, for a block even without any jail; or :ignore, the same without a word.
    def on_unsupported=(what)
      @on_unsupported = Configuration.check_on_unsupported(what)
    end

    def self.check_on_unsupported(what)
      return what if ON_UNSUPPORTED.include?(what)

      raise ArgumentError, "on_unsupported: #{what.inspect} is not one of :raise, :warn, :ignore"
    end
  end
end
