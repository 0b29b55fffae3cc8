# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require_relative "policy"

module AgentJail
  # Checks of options that blocks and commands share.
  module Checks
    module_function

    # Whole milliseconds, at least one; nil is no limit, which the library calls 0.
    def milliseconds(name, seconds)
      return 0 if seconds.nil?
      unless seconds.is_a?(Numeric) && seconds.real? && seconds.positive?
        raise ArgumentError, "#{name}: #{seconds.inspect} is not a time: give seconds above 0, or nil " \
                             "for no limit"
      end

      seconds >= 10**12 ? 10**15 : [(seconds * 1000).to_i, 1].max
    end

    def grace(seconds)
      seconds.is_a?(Numeric) && seconds.zero? ? 0 : milliseconds(:grace, seconds)
    end

    # 0 for nil.
    def limit(name, value)
      return 0 if value.nil?
      return value if value.is_a?(Integer) && value.positive?

      raise ArgumentError, "#{name}: #{value.inspect} is not a limit: give a whole number from 1, or nil"
    end

    def fd(name, given)
      number = given.respond_to?(:fileno) ? given.fileno : given
      return number if number.is_a?(Integer) && !number.negative?

      raise ArgumentError, "#{name}: #{given.inspect} is not an IO or the number of a descriptor"
    end

    def unknown(given, known)
      unknown = given.keys - known
      raise ArgumentError, "unknown option #{unknown.first.inspect}" unless unknown.empty?
    end
  end
  private_constant :Checks

  # Where a command's streams lead, and which descriptors it gets beside them.
  class Streams
    KINDS = { null: 0, inherit: 1, fd: 2, capture: 3, bytes: 4, pipe: 5, pty: 6 }.freeze
    NAMES = %i[stdin stdout stderr].freeze
    CHOICES = %i[pipe null inherit capture].freeze
    OPTIONS = %i[stdin stdout stderr pty pass_fds binmode].freeze

    attr_reader :kinds, :fds, :input, :pass_fds
    # Whether output is bytes; it has the default encoding otherwise.
    attr_reader :binmode

    # Of AgentJail.capture.
    def self.captured(input: nil, pass_fds: [], binmode: false)
      new([input ? :bytes : :null, :capture, :capture], input: input, pass_fds: pass_fds, binmode: binmode)
    end

    # Of AgentJail.spawn.
    def self.chosen(stdin: nil, stdout: nil, stderr: nil, pty: false, pass_fds: [], binmode: false)
      given = { stdin: stdin, stdout: stdout, stderr: stderr }.compact
      raise ArgumentError, "with pty: true the terminal is stdin, stdout and stderr" if pty && given.any?

      given.each { |name, way| check_word(name, way) }
      ways = NAMES.map { |name| pty ? :pty : given.fetch(name, :pipe) }
      new(ways, pass_fds: pass_fds, binmode: binmode)
    end

    def self.check_word(name, way)
      return if !way.is_a?(Symbol) || CHOICES.include?(way) || (name == :stderr && way == :stdout)

      raise ArgumentError, "#{name}: #{way.inspect} is not one of #{CHOICES.map(&:inspect).join(', ')}, or an IO"
    end
    private_class_method :check_word

    def initialize(ways, input: nil, pass_fds: [], binmode: false)
      @merged = ways[2] == :stdout
      raise ArgumentError, "stderr: :stdout needs stdout: :pipe" if @merged && ways[1] != :pipe

      @input = input.nil? || input.is_a?(String) ? input : input.to_s
      @pass_fds = passed(pass_fds)
      @binmode = binmode
      @fds = [-1, -1, -1]
      @kinds = ways.each_with_index.map { |way, stream| kind(way, stream) }
    end

    # Whether stderr goes to the pipe of stdout.
    def merged?
      @merged
    end

    def pty?
      kinds.first == KINDS[:pty]
    end

    # The struct brig_stdio three times; `merged` is the pipe of stdout and stderr, or nil.
    def packed(memory, merged)
      Array.new(3) do |stream|
        bytes = stream.zero? && input
        here = merged && stream.positive?
        [here ? KINDS[:fd] : kinds[stream], here ? merged.fileno : fds[stream],
         bytes ? memory.bytes(input) : 0, bytes ? input.bytesize : 0].pack("iiJJ")
      end.join
    end

    private

    # The number of a kind; notes the descriptor.
    def kind(way, stream)
      return KINDS[:pipe] if @merged && stream == 2
      return KINDS.fetch(way) if way.is_a?(Symbol)

      @fds[stream] = Checks.fd(NAMES[stream], way)
      Streams.make_blocking(way)
      KINDS[:fd]
    end

    def passed(pass_fds)
      pairs = pass_fds.is_a?(Hash) ? pass_fds.to_a : Memory.items(:pass_fds, pass_fds).map { |fd| [fd, fd] }
      pairs.each { |ours, _| Streams.make_blocking(ours) }
      pairs.map { |ours, number| [Checks.fd(:pass_fds, ours), Checks.fd(:pass_fds, number)] }
    end

    # Ruby's pipes do not block, which commands do not expect. Process.spawn does the same for streams.
    def self.make_blocking(io)
      return unless io.is_a?(IO)

      flags = io.fcntl(3) # F_GETFL
      io.fcntl(4, flags & ~IO::NONBLOCK) unless (flags & IO::NONBLOCK).zero? # F_SETFL
    end
  end
  private_constant :Streams

  # Starts commands with one policy. The options are those of AgentJail.capture that concern the jail.
  class Launcher
    OPTIONS = %i[policy mode timeout cpu_timeout memory_mb memory processes grace max_output fs_allow
                 fs_read_allow network cwd env on_unsupported].freeze
    MEMORY = { address_space: :address_space_bytes, rss: :memory_bytes }.freeze
    MIB = 1 << 20

    attr_reader :policy

    def initialize(options)
      Checks.unknown(options, OPTIONS)
      @options = options
      @env = options[:env]
      @policy = laid_over(options[:policy] ? given_policy : Policy.new(options[:mode] || :sealed))
    end

    # The struct brig_command; `memory` keeps what it points to.
    def command(argv, streams, memory, merged)
      passed = streams.pass_fds
      pairs = passed.empty? ? 0 : memory.bytes(passed.flatten.pack("i*"))
      members = [memory.list(:argv, argv), memory.list(:env, environment)].pack("JJ") +
                streams.packed(memory, merged) + [pairs, passed.size].pack("JJ")
      [Fiddle::SIZEOF_SIZE_T + members.bytesize].pack("J") + members
    end

    # The library's job.
    def start(command)
      policy.with_handle { |pointer| Library.make(:brig_start, pointer, command) }
    end

    # Bytes of a stream that are kept; 0: all.
    def output_limit
      @output_limit ||= policy.to_h.dig("limits", "output_bytes")
    end

    private

    def given_policy
      policy = @options[:policy]
      return policy.copy if policy.is_a?(Policy) && @options[:mode].nil?

      raise ArgumentError, "policy: #{policy.inspect} is not an AgentJail::Policy" unless policy.is_a?(Policy)
      raise ArgumentError, "mode: and policy: cannot be given together, as a policy has its mode"
    end

    def laid_over(policy)
      what = @options[:on_unsupported]
      what ||= AgentJail.configuration.on_unsupported unless policy.said?(:on_unsupported)
      policy.on_unsupported(what) if what
      lay_access(policy)
      @env ? policy.setenv("*" => nil) : policy.host_env # all that is given is passed on
      policy.limit(**limits(policy))
    end

    def lay_access(policy)
      Memory.items(:fs_allow, @options[:fs_allow] || []).each { |path| policy.grant(path) }
      Memory.items(:fs_read_allow, @options[:fs_read_allow] || []).each { |path| policy.grant(path, :read_only) }
      policy.network(@options[:network]) if @options[:network]
      policy.workdir(@options[:cwd]) if @options[:cwd]
    end

    def limits(policy)
      found = { wall_ms: timeout(policy) }
      found[:cpu_ms] = Checks.milliseconds(:cpu_timeout, @options[:cpu_timeout]) if @options.key?(:cpu_timeout)
      found[:grace_ms] = Checks.grace(@options[:grace]) if @options.key?(:grace)
      found[:processes] = Checks.limit(:processes, @options[:processes]) if @options.key?(:processes)
      found[:output_bytes] = Checks.limit(:max_output, @options[:max_output]) if @options.key?(:max_output)
      memory = Policy.word(MEMORY, :memory, @options[:memory] || :address_space)
      found[memory] = Checks.limit(:memory_mb, @options[:memory_mb]) * MIB if @options.key?(:memory_mb)
      found
    end

    # nil leaves the policy's.
    def timeout(policy)
      return Checks.milliseconds(:timeout, @options[:timeout]) if @options.key?(:timeout)

      Checks.milliseconds(:timeout, AgentJail.configuration.default_timeout) unless policy.said?(:wall_ms)
    end

    def environment
      (@env || ENV.to_h).compact.map do |name, value|
        "#{Memory.checked(:env, name)}=#{Memory.checked(name, value)}"
      end
    end
  end
  private_constant :Launcher

  # What AgentJail and Template offer, over a launcher.
  module Commands
    CAPTURE = %i[input check pass_fds binmode].freeze

    module_function

    # With a block, each line is yielded while the command runs.
    def capture(launcher, argv, options, &block)
      Checks.unknown(options, CAPTURE)
      streams = options.slice(:pass_fds, :binmode)
      check = options[:check]
      Policy.word({ nil => 0, true => 1, false => 2 }, :check, check)
      result = if block
                 stream(launcher, argv, streams, options[:input], &block)
               else
                 collect(launcher, argv, **streams, input: options[:input])
               end
      return result.check if check

      error = result.limit_error if check.nil?
      raise error if error

      result
    end

    def spawn(launcher, argv, options, &block)
      Checks.unknown(options, Streams::OPTIONS)
      Job.open(Running.new(argv, launcher, Streams.chosen(**options)), &block)
    end

    def collect(launcher, argv, **streams)
      running = Running.new(argv, launcher, Streams.captured(**streams))
      running.start.wait
      running.result
    ensure
      running&.release
    end

    def stream(launcher, argv, streams, input, &block)
      ways = { stdin: input ? :pipe : :null, **streams }
      spawn(launcher, argv, ways) { |job| job.communicate_lines(input, &block) }
    end
  end
  private_constant :Commands
end
