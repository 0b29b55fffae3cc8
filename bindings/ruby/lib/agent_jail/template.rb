# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require_relative "job"

module AgentJail
  # A jail prepared once for many commands, which then start faster. Takes the options of the jail that
  # AgentJail.capture takes. Commands share nothing writable but what is granted. Several threads may use
  # one template at the same time. A forked process prepares its own when it first uses it.
  #
  #   template = AgentJail::Template.new(timeout: 5, fs_read_allow: ["/srv/data"])
  #   template.capture("ls", "/srv/data").stdout
  class Template
    # With a block, yields the template and closes it afterwards.
    def self.open(**options)
      template = new(**options)
      return template unless block_given?

      begin
        yield template
      ensure
        template.close
      end
    end

    def initialize(**options)
      @launcher = Prepared.new(options)
      @launcher.prepare
    end

    # As AgentJail.capture.
    def capture(*argv, **options, &block)
      Commands.capture(@launcher, argv, options, &block)
    end

    # As AgentJail.spawn.
    def spawn(*argv, **options, &block)
      Commands.spawn(@launcher, argv, options, &block)
    end

    # Commands that were started go on; there can be no new ones.
    def close
      @launcher.close
    end
  end

  # Starts commands from a template of the library.
  class Prepared < Launcher
    def initialize(options)
      super
      @lock = Mutex.new
      @template = nil
      @closed = false
    end

    def start(command)
      prepare.use { |pointer| Library.make(:brig_template_start, pointer, command) }
    end

    # The template of this process.
    def prepare
      @lock.synchronize do
        raise StateError, "the template is closed" if @closed
        next @template if @template&.here?

        policy.with_handle do |pointer|
          @template = Handle.new(Library.make(:brig_template_new, pointer), :brig_template_free)
        end
      end
    end

    def close
      @lock.synchronize do
        @closed = true
        @template&.close
      end
      nil
    end
  end
  private_constant :Prepared
end
