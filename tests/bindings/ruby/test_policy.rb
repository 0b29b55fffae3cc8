# SPDX-License-Identifier: MIT
# frozen_string_literal: true

# Policies: every member reaches the jail, and wrong values are named.
require_relative "tap"

class PolicyTest < Case
  def policy(mode = :sealed)
    AgentJail::Policy.new(mode)
  end

  def sh(script, policy)
    AgentJail.capture("sh", "-c", script, policy: policy).stdout
  end

  def test_wrong_values_are_named_as_they_are_set
    { /mode: :soft/ => -> { policy(:soft) }, /access: :all/ => -> { policy.grant("/tmp", :all) },
      /limit: :speed/ => -> { policy.limit(speed: 3) }, /processes: -1/ => -> { policy.limit(processes: -1) },
      /processes: 1.5/ => -> { policy.limit(processes: 1.5) }, /A=B/ => -> { policy.setenv("A=B" => "c") },
      /not a rule/ => -> { policy.allow("not a rule at all") }, /path: nil is not a text/ => -> { policy.workdir(nil) },
      /NUL/ => -> { policy.hostname("a\0b") }, /rule: 7/ => -> { policy.allow("example.com", 7) },
      /layer: :walls/ => -> { policy.disable(:walls) }, /host_uid: -1/ => -> { policy.identity(host_uid: -1) },
      /methods is a list/ => -> { policy.inject("a.b", header: "h", value: "v", methods: "GET") },
      /on_unsupported: :cry/ => -> { policy.on_unsupported(:cry) } }.each do |words, change|
      assert_match words, assert_raises(ArgumentError, &change).message
    end
  end

  def test_it_is_explained_and_copied
    first = policy.grant("/srv", :read_only, optional: true).hostname("first").origin("test")
    second = first.copy.hostname("second")
    assert_match %r{/srv}, first.explain
    assert_equal %w[first second], [first, second].map { |each| each.to_h["hostname"] }
    assert_equal "second\n", sh("hostname", second)
  end

  def test_grants_have_a_destination_and_can_be_taken_back
    path = file("file", "text")
    File.chmod(0o755, @scratch)
    granted = policy.grant(@scratch, :read_only, dest: "/data")
    assert_equal "text", sh("cat /data/file", granted)
    assert_equal [1, 0], [granted.ungrant("/data"), granted.ungrant("/data")]
    assert_equal "", sh("cat /data/file 2>/dev/null", granted)
    assert_equal "", sh("cat #{path}", policy.grant(@scratch, :read_only).grant(path, :mask))
    made = File.join(@scratch, "made")
    policy.grant(made, create: true).then { |each| sh("true", each) }
    assert_path_exists made
  end

  def test_private_directories_and_files
    own = policy.private("/own").file("/own/tool", "#!/bin/sh\necho ran\n", 0o755).private("/fixed", :read_only)
    assert_equal "ran\nwritten\nrefused\n",
                 sh("/own/tool; touch /own/x && echo written; touch /fixed/x 2>/dev/null || echo refused", own)
  end

  def test_identity_environment_view_and_directory
    chosen = policy.identity(inside_uid: 1234, inside_gid: 1234, name: "tester", home: "/home/tester", shell: "/bin/sh")
                   .setenv("A" => "1", "B" => "2").unsetenv("B*").view(:system).workdir("/usr")
                   .terminal(:none).seccomp(:dev)
    assert_equal "tester\n1234\n1\n/usr\n", sh('id -un; id -u; echo "$A$B"; pwd', chosen)
  end

  def test_limits
    given = AgentJail::Policy::LIMITS.to_h { |name, index| [name, (name == :memory_bytes ? 16 << 20 : 100) + index] }
    assert_equal given.transform_keys(&:to_s), policy.limit(**given).to_h["limits"]
    assert_raises(AgentJail::TimeoutError) { sh("sleep 600", policy.limit(wall_ms: 100)) }
  end

  def test_rules_of_the_network_and_what_they_refuse
    broker = File.expand_path("net/brig-broker", File.dirname(ENV.fetch("BRIG_LIBRARY")))
    ruled = policy(:strict).network(:allow).allow("example.com").deny("*.example.org").proxy_env
    ruled.broker(broker) if File.executable?(broker)
    AgentJail.spawn("getent", "hosts", "stranger.example", policy: ruled) do |job|
      events = job.wait.network["events"]
      assert(events.any? { |event| event.values_at("name", "verdict") == %w[stranger.example denied] }, events.inspect)
      assert_equal events, job.net_events
      assert_empty job.net_events
    end
  end

  def test_credentials_ports_and_proxies
    told = policy(:strict).network(:allow).publish("18080:8080")
                          .net_proxy("proxy.example:3128", secret: "Basic x", no_proxy: ["example.com"])
                          .inject("api.example.com", header: "authorization", value: "Bearer x", variable: "API",
                                                     suffix: "/v1", methods: ["GET"], paths: ["/v1"], strip: ["cookie"],
                                                     site: "api.localhost").to_h
    refute_includes told.to_s, "Bearer"
    assert_equal ["api.example.com"], told["inject"].map { |each| each["name"] }
    refute_empty told["publish"]
  end

  def test_layers_that_are_off_are_listed
    off = policy.disable(:landlock).trace.allow_nested.allow_nested(false).unix_sockets.host_env.on_unsupported(:warn)
    _, err = capture_io do
      result = AgentJail.capture("true", policy: off)
      assert_match(/Landlock/, result.unenforced.join)
      assert_empty result.denials
    end
    assert_match(/not enforced/, err)
    assert_empty AgentJail.capture("true").unenforced.grep(/Landlock/)
  end

  def test_blocks_have_policies_too
    assert_equal "boxed\n", AgentJail.run(policy: policy.hostname("boxed"), namespaces: true) { `hostname` }
  end

  def test_refused_system_calls_are_listed
    denials = AgentJail.capture("unshare", "-U", "true", policy: policy.trace).denials
    assert_equal [["unshare", Errno::EPERM::Errno]], denials.map { |each| [each.name, each.errno] }
  end

  # What of the header's enums and functions Ruby does not know.
  def test_nothing_of_the_librarys_policy_is_missing
    header = File.read(File.join(ROOT, "include/brig/brig.h"))
    source = File.read(File.join(ROOT, "bindings/ruby/lib/agent_jail/policy.rb"))
    functions = header.scan(/\bbrig_policy_(\w+)\(/).flatten.uniq
    assert_operator functions.size, :>, 30
    functions -= %w[free] # by a Handle
    assert_empty(functions.reject { |name| source.match?(/:brig_policy_#{name}\b/) })
    limits = header[/^enum brig_limit \{.*?^\};/m].scan(/^    BRIG_LIMIT_(\w+),/).flatten - %w[COUNT_]
    assert_equal limits.size, AgentJail::Policy::LIMITS.size
    assert_equal members(header, "brig_inject"), members(source[/def inject.*?^    end/m], nil)
  end

  # Each function that Ruby calls is declared in a header, with arguments and value of these types.
  def test_functions_have_the_types_of_the_headers
    headers = %w[brig call].map { |name| File.read(File.join(ROOT, "include/brig/#{name}.h")) }.join
    headers = headers.gsub(%r{/\*.*?\*/}m, "")
    AgentJail::Platform.load_library
    library = AgentJail.send(:const_get, :Library)
    library::FUNCTIONS.merge(library::CHILD_FUNCTIONS).each do |name, types|
      returns, arguments = headers.match(/^(?:BRIG_NORETURN )?([\w *]+?)\b#{name}\(([^)]*)\);/m)&.captures
      assert returns, name
      taken = arguments == "void" ? "" : arguments.split(",").map { |argument| letter(argument) }.join
      assert_equal letter(returns) + taken, types, name
    end
    assert_equal headers[/BRIG_VERSION "(.*)"/, 1], AgentJail.library_version
  end

  def letter(type)
    { /\*/ => "p", /size_t/ => "z", /uint64_t/ => "q", /unsigned|mode_t/ => "u", /void/ => "v", /int|enum|pid_t/ => "i" }
      .find { |pattern, _| pattern.match?(type) }.last
  end

  # The names of a struct's members, or of a method's keywords.
  def members(text, struct)
    found = if struct
              text[/^struct #{struct} \{.*?^\};/m].scan(/^    const char \*(?:const \*)?(\w+);/)
            else
              text[/\(.*?\)/m].scan(/(\w+)[,:)]/)
            end
    found.flatten.sort - %w[nil size]
  end
end

run_tests
