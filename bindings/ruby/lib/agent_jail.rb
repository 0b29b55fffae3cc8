# SPDX-License-Identifier: MIT
# frozen_string_literal: true

# Runs blocks and commands in jails, and returns what they give or raises what became of them.
#
#   result = AgentJail.run(timeout: 5, memory_mb: 256, fs_allow: ["/app/tmp"]) do
#     tool.call(arguments)
#   end
#   AgentJail.capture("python3", "-c", "print(6 * 7)", timeout: 5).stdout
module AgentJail
end

require_relative "agent_jail/version"
require_relative "agent_jail/errors"
require_relative "agent_jail/configuration"
require_relative "agent_jail/platform"
require_relative "agent_jail/plain"
require_relative "agent_jail/jail"
require_relative "agent_jail/pool"

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
      jail = Jail.new(**options)
      jail.run(&block)
    ensure
      jail&.close
    end

    # Runs a command in a jail, waits for it and returns a Result. With a block, each line is yielded as
    # it comes, with :stdout or :stderr: `capture("make") { |line, stream| … }`.
    #
    # If a limit ends the command, TimeoutError, CPUTimeoutError or MemoryError is raised; with check: true
    # also CommandError for any other end but exit status 0; with check: false neither. All of them have
    # the `result`. If the command cannot be started, NotFoundError, NotExecutableError, SetupError or
    # UnsupportedPlatformError is raised.
    #
    # The jail:
    # timeout, cpu_timeout::    seconds (the policy's, else 30; the policy's); nil is no limit
    # memory_mb, memory::       as :address_space of each process, or :rss of all (needs cgroups)
    # processes::               how many there may be, with threads
    # grace::                   seconds between TERM and KILL
    # max_output::              bytes of each stream that are kept
    # fs_allow, fs_read_allow:: paths to write and read, or to read
    # network::                 :none, :loopback, :host, :allow or :open
    # cwd::                     the directory to start in
    # env::                     variables, passed on as they are; by default those of the program, of which
    #                           the mode keeps what is harmless
    # on_unsupported::          :raise, :warn or :ignore, when this system cannot enforce something
    # mode, policy::            :sealed; or a Policy, over which these options are laid
    # The streams:
    # input::                   a text for stdin; without it stdin is empty
    # pass_fds::                IOs or numbers for the command: a list, or {io => number inside}
    # binmode::                 true: output is bytes, else it has the default encoding
    def capture(*argv, **options, &block)
      Commands.capture(Launcher.new(options.slice(*Launcher::OPTIONS)), argv,
                       options.except(*Launcher::OPTIONS), &block)
    end

    # Confines this very process for good, and all it starts, as far as that is possible without namespaces. To
    # be called before there are threads. Returns what of the policy is not enforced, one sentence each.
    def confine_self(policy = Policy.new)
      policy.with_handle { |pointer| Library.text(:brig_confine_self, pointer).lines(chomp: true) }
    end

    # The version of libbrig in use.
    def library_version
      Platform.load_library
      Library.call(:brig_version).to_s
    end

    # Starts a command in a jail and returns it as a Job, once it runs; with a block see Job.open. The
    # options of the jail are those of capture.
    #
    # stdin, stdout, stderr::   :pipe (the default), :null, :inherit (the caller's), :capture (for the
    #                           Result), an IO or the number of a descriptor; stderr can be :stdout
    # pty::                     true: a terminal is all three
    # pass_fds, binmode::       as for capture
    def spawn(*argv, **options, &block)
      Commands.spawn(Launcher.new(options.slice(*Launcher::OPTIONS)), argv,
                     options.except(*Launcher::OPTIONS), &block)
    end
  end
end
