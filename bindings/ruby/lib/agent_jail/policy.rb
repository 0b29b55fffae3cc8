# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require_relative "native"

module AgentJail
  # What a jail may see, reach and use: a mode, and what differs from it. Values are checked as they are
  # set, and a wrong one raises ArgumentError. Methods that change the policy return it, so that calls
  # can be chained. A policy that no thread changes may be used by several.
  #
  #   policy = AgentJail::Policy.new(:sealed).grant("/srv/data", :read_only).limit(processes: 64)
  #
  # Modes: :sealed (system directories, grants, no network, the syscall profile :code, limits), :casual
  # (the host read-only, network :open), :bare (the same with an empty home) and :strict (system
  # directories and grants alone, network :open).
  class Policy
    MODES = { sealed: 0, casual: 1, bare: 2, strict: 3 }.freeze
    VIEWS = { system: 0, host: 1, root: 2, empty: 3 }.freeze
    ACCESS = { read_write: 0, read_only: 1, mask: 2, device: 3, protect: 4 }.freeze
    NETWORKS = { none: 0, host: 1, allow: 2, open: 3, loopback: 4 }.freeze
    SECCOMP = { dev: 0, code: 1 }.freeze
    TERMINALS = { auto: 0, none: 1 }.freeze
    ON_UNSUPPORTED = { raise: 0, warn: 1, ignore: 2 }.freeze
    LAYERS = { landlock: 1, seccomp: 2, caps: 4, namespaces: 8, nested: 16 }.freeze
    LIMITS = {
      wall_ms: 0, cpu_ms: 1, grace_ms: 2, address_space_bytes: 3, file_size_bytes: 4, open_files: 5,
      processes: 6, output_bytes: 7, disk_bytes: 8, disk_inodes: 9, memory_bytes: 10, cpu_percent: 11,
      io_read_bytes_per_second: 12, io_write_bytes_per_second: 13, inotify_watches: 14,
      net_connections: 15, net_bytes: 16, net_idle_ms: 17
    }.freeze
    GRANT_OPTIONAL = 1
    GRANT_CREATE = 2
    ID_CHOOSE = 0xffffffff
    private_constant :GRANT_OPTIONAL, :GRANT_CREATE, :ID_CHOOSE

    # The number of a word, or an ArgumentError that lists all of them.
    def self.word(words, name, value)
      words.fetch(value) do
        raise ArgumentError, "#{name}: #{value.inspect} is not one of #{words.keys.map(&:inspect).join(', ')}"
      end
    end

    def initialize(mode = :sealed)
      number = Policy.word(MODES, :mode, mode)
      Platform.load_library
      own(Library.call(:brig_policy_new, number))
      @said = {}
    end

    # The same policy once more: dup, clone and copy.
    def initialize_copy(other)
      super
      other.with_handle { |pointer| own(Library.call(:brig_policy_copy, pointer)) }
      @said = @said.dup
    end
    alias copy dup

    # Yields the library's object.
    def with_handle(&block) # :nodoc:
      @handle.use(&block)
    end

    # Whether limit() or on_unsupported() has set this: defaults of other options do not replace it.
    def said?(name) # :nodoc:
      @said.key?(name)
    end

    # ---- Files ----

    # What of the filesystem is there before grants: :system, :host, :root or :empty. `root` is the
    # directory of :root.
    def view(view, root = nil)
      set(:brig_policy_view, Policy.word(VIEWS, :view, view), root && Memory.path(:root, root))
    end

    # Grants a path, in the jail at `dest` if it is given: :read_write, :read_only, :mask (hidden), :device
    # or :protect (inside a read-write grant: not to be written or replaced). With optional: true it may be
    # missing; with create: true a missing directory is made.
    def grant(path, access = :read_write, dest: nil, optional: false, create: false)
      flags = (optional ? GRANT_OPTIONAL : 0) | (create ? GRANT_CREATE : 0)
      set(:brig_policy_grant, Policy.word(ACCESS, :access, access), Memory.path(:path, path),
          dest && Memory.path(:dest, dest), flags)
    end

    # Takes back every earlier grant for exactly this destination; says how many there were.
    def ungrant(dest)
      removed = Fiddle::Pointer.malloc(Fiddle::SIZEOF_SIZE_T, Fiddle::RUBY_FREE)
      set(:brig_policy_ungrant, Memory.path(:dest, dest), removed)
      removed[0, Fiddle::SIZEOF_SIZE_T].unpack1("J")
    end

    # A directory of the jail's own: in memory, gone with the jail. :read_only for one that holds what
    # file() puts there and nothing else.
    def private(dest, access = :read_write)
      set(:brig_policy_private, Policy.word(ACCESS, :access, access), Memory.path(:dest, dest))
    end

    # A file in a private directory, in /tmp, /run or the home.
    def file(dest, content, mode = 0o644)
      raise ArgumentError, "content: #{content.inspect} is not a text" unless content.is_a?(String)

      set(:brig_policy_file, Memory.path(:dest, dest), content, content.bytesize, Integer(mode))
    end

    # Keeps the directory that private() made at dest beyond the end of the command, for Job#kept_file. One
    # in each policy.
    def keep(dest)
      set(:brig_policy_keep, Memory.path(:dest, dest))
    end

    # The directory in which the command starts, as the jail sees it.
    def workdir(path)
      set(:brig_policy_workdir, Memory.path(:path, path))
    end

    # ---- Network ----

    # :none, :loopback, :host (the caller's), :allow (what allow() names) or :open (all that is public).
    def network(network)
      set(:brig_policy_network, Policy.word(NETWORKS, :network, network))
    end

    # Destinations of the networks :allow and :open: "example.com", "*.example.com:443", "@npm", "host:5432"
    # for a service of the host's loopback.
    def allow(*rules)
      each_text(:rule, rules) { |rule| set(:brig_policy_allow, rule) }
    end

    # Destinations that are refused, whatever else allows them.
    def deny(*rules)
      each_text(:rule, rules) { |rule| set(:brig_policy_deny, rule) }
    end

    # Makes ports of the jail's loopback reachable from the host: "[ADDRESS:]HOSTPORT:PORT".
    def publish(*ports)
      each_text(:port, ports) { |port| set(:brig_policy_publish, port) }
    end

    # A credential that never enters the jail: inside, `variable` names an address of plain HTTP; outside,
    # `header` with `value` is added to each request to the host `name`, which goes on by TLS to `upstream`
    # (https://NAME). `suffix` is put behind the address in the variable, `site` is a name ending with
    # ".localhost" at which the credential is as well, `ca` a file of certificates to trust; `methods` and
    # `paths` (what they begin with) are the only ones allowed, and the headers in `strip` are dropped.
    def inject(name, header:, value:, upstream: nil, variable: nil, suffix: nil, ca: nil, site: nil,
               methods: nil, paths: nil, strip: nil)
      texts = { name: name, header: header, value: value, upstream: upstream, variable: variable,
                suffix: suffix, ca: ca && Memory.path(:ca, ca) }
      memory = Memory.new
      members = texts.map { |member, text| memory.text(member, text) } +
                { methods: methods, paths: paths, strip: strip }.map { |member, list| memory.list(member, list) }
      set(:brig_policy_inject, sized([*members, memory.text(:site, site)].pack("J*")))
    end

    # Sets HTTP_PROXY and its kind in the jail to the proxies that a network with rules has.
    def proxy_env(on = true)
      set(:brig_policy_proxy_env, on ? 1 : 0)
    end

    # The host's own HTTP proxy, "HOST:PORT", through which connections of the jail are made; `secret` is its
    # Proxy-Authorization, `no_proxy` the ends of names to go without it.
    def net_proxy(proxy, secret: nil, no_proxy: nil)
      memory = Memory.new
      set(:brig_policy_net_proxy, Memory.checked(:proxy, proxy), secret && Memory.checked(:secret, secret),
          memory.list(:no_proxy, no_proxy))
    end

    # The program brig-broker; by default the one that was installed with the library.
    def broker(path)
      set(:brig_policy_broker, Memory.path(:path, path))
    end

    # ---- Limits and confinement ----

    # Sets limits, those of LIMITS; 0 is no limit, nil leaves it as it is. grace_ms is the time between TERM
    # and KILL; cpu_ms, processes, memory_bytes, cpu_percent and io_… are of the whole jail,
    # address_space_bytes and open_files of each process; disk_… are of the private directories.
    def limit(**limits)
      limits.compact.each do |name, value|
        number = Policy.word(LIMITS, :limit, name)
        unless value.is_a?(Integer) && value.between?(0, (1 << 64) - 1)
          raise ArgumentError, "#{name}: #{value.inspect} is not a limit: give a whole number from 0"
        end

        set(:brig_policy_limit, number, value)
        @said[name] = value
      end
      self
    end

    # The syscall profile: :code (deny by default) or :dev (a deny-list, for build tools).
    def seccomp(profile)
      set(:brig_policy_seccomp, Policy.word(SECCOMP, :profile, profile))
    end

    # Lets programs with a sandbox of their own make user namespaces inside.
    def allow_nested(allow = true)
      set(:brig_policy_allow_nested, allow ? 1 : 0)
    end

    # Lets blocks without namespaces and without a network make UNIX sockets.
    def unix_sockets(allow = true)
      set(:brig_policy_unix_sockets, allow ? 1 : 0)
    end

    # Switches layers off, to find out which one stops a program: :landlock, :seccomp, :caps, :namespaces,
    # :nested. The result lists them as not enforced.
    def disable(*layers)
      bits = layers.uniq.sum { |layer| Policy.word(LAYERS, :layer, layer) }
      set(:brig_policy_disable, bits)
    end

    # What follows when this system cannot enforce something: :raise, :warn or :ignore.
    def on_unsupported(what)
      set(:brig_policy_on_unsupported, Policy.word(ON_UNSUPPORTED, :on_unsupported, what))
      @said[:on_unsupported] = what
      self
    end

    # What on_unsupported() has set, or nil.
    def said_on_unsupported # :nodoc:
      @said[:on_unsupported]
    end

    # Lists the system calls that a command was refused, as Result#denials.
    def trace(on = true)
      set(:brig_policy_trace, on ? 1 : 0)
    end

    # ---- What the jail is ----

    # Who the jail is, on the host and inside; the library chooses what is not given.
    def identity(host_uid: nil, host_gid: nil, inside_uid: nil, inside_gid: nil, name: nil, home: nil, shell: nil)
      ids = { host_uid: host_uid, host_gid: host_gid, inside_uid: inside_uid, inside_gid: inside_gid }
      memory = Memory.new
      texts = [memory.text(:name, name), memory.text(:home, home && Memory.path(:home, home)),
               memory.text(:shell, shell && Memory.path(:shell, shell))]
      set(:brig_policy_identity, sized(ids.map { |id, value| id_number(id, value) }.pack("L4") + texts.pack("J3")))
    end

    # The host name inside ("brig").
    def hostname(name)
      set(:brig_policy_hostname, Memory.checked(:name, name))
    end

    # What becomes of a terminal of the caller's: :auto (the jail gets one of its own in its place) or :none
    # (/dev/null).
    def terminal(terminal)
      set(:brig_policy_terminal, Policy.word(TERMINALS, :terminal, terminal))
    end

    # Sets variables inside; nil as a value is the caller's own, past earlier unsetenv().
    def setenv(variables)
      variables.each do |name, value|
        set(:brig_policy_setenv, Memory.checked(:name, name), value && Memory.checked(name, value))
      end
      self
    end

    # Removes variables whose names match; `*` stands for any characters.
    def unsetenv(*patterns)
      each_text(:pattern, patterns) { |pattern| set(:brig_policy_unsetenv, pattern) }
    end

    # Says that the variables a command gets are the host's: those that the mode does not keep are left out.
    # Without it they are refused. Commands say so unless env: is given.
    def host_env(on = true)
      set(:brig_policy_host_env, on ? 1 : 0)
    end

    # ---- Reading it ----

    # Where the rules added from now on come from; shown by explain().
    def origin(origin)
      set(:brig_policy_origin, Memory.checked(:origin, origin))
    end

    # The effective policy, for people.
    def explain
      with_handle { |pointer| Library.text(:brig_policy_explain, pointer, 0) }
    end

    # The effective policy as plain data.
    def to_h
      JSON.parse(with_handle { |pointer| Library.text(:brig_policy_explain, pointer, 1) })
    end

    def inspect
      "#<#{self.class} #{to_h['mode']}>"
    end

    private

    def own(pointer)
      raise NoMemoryError, "no memory for a policy" if pointer.null?

      @handle = Handle.new(pointer, :brig_policy_free)
    end

    def set(function, *arguments)
      with_handle { |pointer| Library.check(function, pointer, *arguments) }
      self
    end

    # A struct that begins with its size.
    def sized(members)
      [Fiddle::SIZEOF_SIZE_T + members.bytesize].pack("J") + members
    end

    def each_text(name, values)
      values.each { |value| yield Memory.checked(name, value) }
      self
    end

    def id_number(name, value)
      return ID_CHOOSE if value.nil?
      return value if value.is_a?(Integer) && value.between?(0, ID_CHOOSE - 1)

      raise ArgumentError, "#{name}: #{value.inspect} is not a user or group id"
    end
  end
end
