# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require "rbconfig"

module AgentJail
  # What this platform can do.
  module Platform
    module_function

    def linux?
      RbConfig::CONFIG["host_os"].include?("linux")
    end

    # JRuby and TruffleRuby cannot fork, and Windows neither.
    def fork_supported?
      RUBY_ENGINE == "ruby" && Process.respond_to?(:fork)
    end

    def supported?
      linux? && fork_supported?
    end

    # Why there can be no jail here.
    def problem
      return "jails are made on Linux, and this is #{RbConfig::CONFIG['host_os']}" unless linux?

      "#{RUBY_ENGINE} cannot fork" unless fork_supported?
    end

    # Loads what speaks with libbrig, which there is on Linux alone.
    def load_library
      raise UnsupportedPlatformError, problem unless supported?

      require_relative "library"
    rescue LoadError => e
      raise UnsupportedPlatformError, "this Ruby has no Fiddle: #{e.message}"
    end

    # What Ruby itself reads: its installation and installed gems. Not the program's own directory:
    # what the block loads from there should be loaded before, or be granted.
    def interpreter_paths
      config = RbConfig::CONFIG
      paths = config.values_at("rubylibdir", "archdir", "sitedir", "vendordir", "bindir", "libdir")
      paths += Gem.path if defined?(Gem)
      existing = paths.compact.select { |path| File.directory?(path) }
      existing.map { |path| File.realpath(path) }.uniq - ["/"]
    end
  end
end
