// SPDX-License-Identifier: MIT

package brig_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"brig"
)

func equal[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// output is that of a shell's command.
func output(t *testing.T, policy *brig.Policy, text string) string {
	t.Helper()
	out, err := brig.Command(policy, "sh", "-c", text).Output()
	must(t, err)
	return string(out)
}

// folder is a directory that the jail's user may enter.
func folder(t *testing.T, mode os.FileMode) string {
	t.Helper()
	path, err := os.MkdirTemp("", "brig-test-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	must(t, os.Chmod(path, mode))
	return path
}

func ended(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest[0] == 'Z' || rest[0] == 'X'
}

func TestOutputStatusAndUsage(t *testing.T) {
	cmd := brig.Command(nil, "sh", "-c", "echo out; echo err >&2; exit 3")
	out, err := cmd.Output()
	var exit *brig.ExitError
	if !errors.As(err, &exit) {
		t.Fatal(err)
	}
	equal(t, exit.Error(), "exit status 3")
	equal(t, string(out)+string(exit.Stderr), "out\nerr\n")
	equal(t, cmd.Result.Outcome, brig.Exited)
	equal(t, cmd.Result.ExitCode(), 3)
	equal(t, cmd.Result.Status, 3)
	equal(t, cmd.Result.Usage.StdoutBytes, 4)
	if cmd.Result.Usage.Wall() <= 0 || cmd.Result.Denials != nil {
		t.Fatal(cmd.Result)
	}
}

func TestASignalIsNamed(t *testing.T) {
	cmd := brig.Command(nil, "sh", "-c", "kill -KILL $$")
	equal(t, fmt.Sprint(cmd.Run()), "signal 9")
	equal(t, cmd.Result.Signal(), syscall.SIGKILL)
	equal(t, cmd.Result.ExitCode(), -1)
	equal(t, cmd.Result.Status, 137)
}

func TestReadersAndWriters(t *testing.T) {
	input := strings.Repeat("brig ", 1<<19)
	var out, errs bytes.Buffer
	cmd := brig.Command(nil, "sh", "-c", "cat; echo err >&2")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
	must(t, cmd.Run())
	if out.String() != input || errs.String() != "err\n" {
		t.Fatal("other bytes came back")
	}
}

func TestCombinedOutputKeepsTheOrder(t *testing.T) {
	out, err := brig.Command(nil, "sh", "-c", "echo one; echo two >&2; echo three").CombinedOutput()
	must(t, err)
	equal(t, string(out), "one\ntwo\nthree\n")
	cmd := brig.Command(nil, "head", "-c", "3000000", "/dev/zero")
	out, err = cmd.CombinedOutput()
	must(t, err)
	equal(t, len(out), brig.MaxCombined)
	equal(t, cmd.Result.Truncated.Stdout, true)
}

func TestOutputBeyondTheLimitIsCutAndMarked(t *testing.T) {
	cmd := brig.Command(&brig.Policy{Limits: brig.Limits{Output: 1000}}, "head", "-c", "5000", "/dev/zero")
	out, err := cmd.Output()
	must(t, err)
	equal(t, len(out), 1000)
	equal(t, cmd.Result.Truncated, brig.Truncated{Stdout: true})
}

func TestPipes(t *testing.T) {
	cmd := brig.Command(nil, "sh", "-c", `while read -r line; do echo "heard: $line"; done; echo end; echo err >&2`)
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	stderr, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	reader := bufio.NewReader(stdout)
	for _, word := range []string{"one", "two"} {
		_, err = fmt.Fprintln(stdin, word)
		must(t, err)
		line, err := reader.ReadString('\n')
		must(t, err)
		equal(t, line, "heard: "+word+"\n")
	}
	must(t, stdin.Close())
	rest, _ := io.ReadAll(reader)
	errs, _ := io.ReadAll(stderr)
	must(t, cmd.Wait())
	equal(t, string(rest)+string(errs), "end\nerr\n")
}

func TestAWriterThatFailsDoesNotStopTheCommand(t *testing.T) {
	cmd := brig.Command(nil, "head", "-c", "1000000", "/dev/zero")
	cmd.Stdout = failing{}
	equal(t, fmt.Sprint(cmd.Run()), "full")
	equal(t, cmd.Result.ExitCode(), 0)
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestAStdinWithoutEndDoesNotHoldWait(t *testing.T) {
	reader, writer := io.Pipe()
	defer writer.Close()
	cmd := brig.Command(nil, "true")
	cmd.Stdin = reader
	must(t, cmd.Run())
}

func TestTheContextEndsTheCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cmd := brig.CommandContext(ctx, nil, "sh", "-c", "sleep 600 & wait")
	must(t, cmd.Start())
	cancel()
	if err := cmd.Wait(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	equal(t, cmd.Result.Outcome, brig.Cancelled)
	equal(t, ended(cmd.Pid()), true)
	if err := brig.CommandContext(ctx, nil, "true").Run(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	deadline, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := brig.CommandContext(deadline, nil, "sleep", "600").Run(); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	must(t, brig.CommandContext(context.Background(), nil, "true").Run())
}

func TestTheTimeLimitOfThePolicy(t *testing.T) {
	cmd := brig.Command(&brig.Policy{Limits: brig.Limits{Wall: 100 * time.Millisecond}}, "sleep", "600")
	equal(t, fmt.Sprint(cmd.Run()), "ended: timeout")
	equal(t, cmd.Result.Outcome, brig.TimedOut)
	equal(t, cmd.Result.Status, 124)
}

func TestSignals(t *testing.T) {
	cmd := brig.Command(nil, "sh", "-c", "trap 'exit 5' USR1; echo ready; while :; do sleep 0.1; done")
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	_, err = bufio.NewReader(stdout).ReadString('\n')
	must(t, err)
	must(t, cmd.Signal(syscall.SIGUSR1))
	equal(t, fmt.Sprint(cmd.Wait()), "exit status 5")
	if err := cmd.Signal(syscall.SIGTERM); !errors.Is(err, brig.ErrState) {
		t.Fatal(err)
	}
}

func TestCancelEndsTheTree(t *testing.T) {
	cmd := brig.Command(nil, "sh", "-c", "sleep 600 & wait")
	must(t, cmd.Start())
	select {
	case <-cmd.Done():
		t.Fatal("it is over")
	default:
	}
	must(t, cmd.Cancel())
	equal(t, fmt.Sprint(cmd.Wait()), "ended: cancelled")
	equal(t, ended(cmd.Pid()), true)
}

func TestATerminal(t *testing.T) {
	cmd := brig.Command(nil, "sh", "-c", `stty size; read -r line; stty size; echo "heard: $line"`)
	cmd.PTY = true
	must(t, cmd.Start())
	terminal := cmd.Terminal()
	defer terminal.Close()
	reader := bufio.NewReader(terminal)
	line, err := reader.ReadString('\n')
	must(t, err)
	equal(t, line, "24 80\r\n")
	must(t, cmd.Resize(40, 132))
	_, err = terminal.WriteString("hello\n")
	must(t, err)
	rest, err := io.ReadAll(reader)
	if !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	must(t, cmd.Wait())
	if !strings.HasSuffix(string(rest), "40 132\r\nheard: hello\r\n") {
		t.Fatalf("%q", rest)
	}
}

func TestFilesAreHandedIntoTheJail(t *testing.T) {
	path := filepath.Join(folder(t, 0o700), "data")
	must(t, os.WriteFile(path, []byte("by descriptor"), 0o600))
	file, err := os.Open(path)
	must(t, err)
	defer file.Close()
	cmd := brig.Command(nil, "sh", "-c", "cat <&3")
	cmd.ExtraFiles = []*os.File{file}
	out, err := cmd.Output()
	must(t, err)
	equal(t, string(out), "by descriptor")
	equal(t, output(t, nil, "cat "+path+" 2>&1 || true") != "by descriptor", true)
}

func TestErrorsHaveCodes(t *testing.T) {
	err := brig.Command(nil, "nonesuch").Run()
	if !errors.Is(err, brig.ErrNotFound) || errors.Is(err, brig.ErrSetup) || !strings.Contains(err.Error(), "nonesuch") {
		t.Fatal(err)
	}
	path := folder(t, 0o755)
	must(t, os.WriteFile(path+"/text", nil, 0o644))
	err = brig.Command(&brig.Policy{Grants: []brig.Grant{{Source: path, Access: brig.ReadOnly}}}, path+"/text").Run()
	if !errors.Is(err, brig.ErrNotExecutable) || !errors.Is(err, fs.ErrPermission) {
		t.Fatal(err)
	}
	for name, policy := range map[string]*brig.Policy{
		"mode":     {Mode: 99},
		"grant":    {Grants: []brig.Grant{{Source: "relative"}}},
		"limit":    {Limits: brig.Limits{Processes: -5}},
		"rule":     {Allow: []string{"not a rule at all"}},
		"variable": {Setenv: map[string]string{"A=B": "c"}},
		"NUL":      {Hostname: "a\x00b"},
		"network":  {Network: 77},
	} {
		if _, err := policy.Explain(); !errors.Is(err, brig.ErrInvalid) {
			t.Fatal(name, err)
		}
	}
	if err := brig.Command(nil, "a\x00b").Run(); !errors.Is(err, brig.ErrInvalid) {
		t.Fatal(err)
	}
	cmd := brig.Command(nil, "true")
	must(t, cmd.Run())
	if !errors.Is(cmd.Run(), brig.ErrState) || !errors.Is(cmd.Wait(), brig.ErrState) {
		t.Fatal("a Cmd can be used twice")
	}
}

func TestGrants(t *testing.T) {
	path := folder(t, 0o777)
	must(t, os.WriteFile(path+"/data", []byte("secret"), 0o644))
	equal(t, output(t, nil, "cat "+path+"/data 2>/dev/null || true"), "")
	read := &brig.Policy{Grants: []brig.Grant{{Source: path, Dest: "/data", Access: brig.ReadOnly}}}
	equal(t, output(t, read, "cat /data/data; touch /data/new 2>/dev/null || echo ' refused'"), "secret refused\n")
	write := &brig.Policy{Grants: []brig.Grant{{Source: path}, {Source: path + "/data", Access: brig.Mask}}}
	equal(t, output(t, write, "cat data; touch new && echo made"), "made\n")
}

func TestPrivateDirectoriesFilesAndWhatIsKept(t *testing.T) {
	policy := &brig.Policy{
		Privates: []brig.Private{{Dest: "/own"}, {Dest: "/fixed", ReadOnly: true}},
		Files:    []brig.File{{Dest: "/own/tool", Contents: []byte("#!/bin/sh\necho ran > made\n"), Mode: 0o755}, {Dest: "/fixed/empty"}},
		Keep:     "/own",
		Workdir:  "/own",
	}
	cmd := brig.Command(policy, "sh", "-c", "./tool; cat /fixed/empty; ! touch /fixed/x 2>/dev/null")
	must(t, cmd.Run())
	kept := cmd.KeptDir()
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d/made", kept.Fd()))
	must(t, err)
	equal(t, string(text), "ran\n")
	must(t, kept.Close())
	cmd.Release()
	if cmd.KeptDir() != nil {
		t.Fatal("it is still there")
	}
}

func TestIdentityEnvironmentAndNames(t *testing.T) {
	user := uint32(1234)
	policy := &brig.Policy{
		Identity: &brig.Identity{InsideUID: &user, InsideGID: &user, Name: "tester", Home: "/home/tester"},
		Setenv:   map[string]string{"A": "1"},
		Hostname: "cell",
		View:     brig.ViewSystem,
		Seccomp:  brig.SeccompDev,
		Workdir:  "/usr",
		Origin:   "test",
	}
	cmd := brig.Command(policy, "sh", "-c", `id -un; id -u; echo "$A$LANG"; hostname; pwd`)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LANG=C"}
	out, err := cmd.Output()
	must(t, err)
	equal(t, string(out), "tester\n1234\n1C\ncell\n/usr\n")
	text, err := policy.Explain()
	must(t, err)
	json, err := policy.ExplainJSON()
	must(t, err)
	if !strings.Contains(text, "cell") || !bytes.Contains(json, []byte("cell")) {
		t.Fatal(text)
	}
}

func TestSecretsOfTheEnvironmentStayOutside(t *testing.T) {
	t.Setenv("API_KEY", "secret")
	t.Setenv("LANG", "C")
	text := `echo "$API_KEY$LANG"`
	equal(t, output(t, nil, text), "C\n")
	equal(t, output(t, &brig.Policy{Unsetenv: []string{"LANG"}}, text), "\n")
	equal(t, output(t, &brig.Policy{Expose: []string{"API_KEY"}}, text), "secretC\n")
	template, err := brig.NewTemplate(nil)
	must(t, err)
	defer template.Close()
	for _, make := range []func(...string) *brig.Cmd{
		func(args ...string) *brig.Cmd { return brig.Command(nil, "/bin/sh", args...) },
		func(args ...string) *brig.Cmd { return template.Command("/bin/sh", args...) },
	} {
		out, err := make("-c", text).Output()
		must(t, err)
		equal(t, string(out), "C\n")
		cmd := make("-c", text)
		cmd.Env = []string{"API_KEY=given"}
		out, err = cmd.Output()
		must(t, err)
		equal(t, string(out), "given\n")
	}
}

func TestEveryOtherMemberIsAccepted(t *testing.T) {
	hour := time.Hour
	_, err := (&brig.Policy{
		Mode: brig.Strict, Network: brig.NetworkAllow, Allow: []string{"example.com"}, Deny: []string{"*.example.org"},
		Publish: []string{"18080:8080"}, ProxyEnv: true,
		Proxy:  &brig.Proxy{Address: "proxy.example:3128", Secret: "Basic x", Without: []string{"example.com"}},
		Inject: []brig.Credential{{Name: "api.example.com", Header: "authorization", Value: "x", Variable: "API", Methods: []string{"GET"}}},
		Expose: []string{"LANG"}, NoTerminal: true, AllowNested: true, UnixSockets: true, Trace: true,
		OnUnsupported: brig.Warn, Disable: brig.LayerLandlock | brig.LayerSeccomp,
		Limits: brig.Limits{
			Wall: hour, CPU: hour, Grace: brig.Unlimited, NetIdle: hour, AddressSpace: 1 << 30, FileSize: 1 << 30, Output: 1 << 20,
			Tmp: 1 << 20, Memory: 1 << 30, OpenFiles: 100, Processes: brig.Unlimited, TmpInodes: 100, CPUPercent: 150, IORead: 1 << 20,
			IOWrite: 1 << 20, InotifyWatches: 10, NetConnections: 5, NetBytes: 1 << 20,
		},
	}).Explain()
	must(t, err)
}

func TestRefusedSystemCallsAreListed(t *testing.T) {
	code := "import socket\nsocket.socket(socket.AF_PACKET, socket.SOCK_RAW)"
	cmd := brig.Command(&brig.Policy{Trace: true}, "/usr/bin/python3", "-c", code)
	if cmd.Run() == nil || len(cmd.Result.Denials.Syscalls) == 0 || cmd.Result.Denials.Syscalls[0].Name != "socket" {
		t.Fatal(cmd.Result.Denials)
	}
}

func TestALayerThatIsOffIsListed(t *testing.T) {
	cmd := brig.Command(&brig.Policy{Disable: brig.LayerLandlock}, "true")
	must(t, cmd.Run())
	if !strings.Contains(strings.Join(cmd.Result.Unenforced, "\n"), "Landlock") {
		t.Fatal(cmd.Result.Unenforced)
	}
}

func TestNetworkEvents(t *testing.T) {
	policy := &brig.Policy{Mode: brig.Strict, Network: brig.NetworkAllow, Allow: []string{"example.com"}}
	if broker := filepath.Join(os.Getenv("BUILD_DIR"), "src/net/brig-broker"); os.Getenv("BUILD_DIR") != "" {
		policy.Broker = broker
	}
	code := "import socket\ntry: socket.getaddrinfo('stranger.example', 80)\nexcept OSError: pass"
	cmd := brig.Command(policy, "/usr/bin/python3", "-c", code)
	var events []brig.NetEvent
	cmd.OnNetEvent = func(event brig.NetEvent) { events = append(events, event) }
	must(t, cmd.Run())
	if len(events) == 0 || events[0].Name != "stranger.example" || events[0].Verdict != "denied" {
		t.Fatal(events, cmd.Result.Network)
	}
	equal(t, len(events), len(cmd.Result.Network.Events))
}

func TestTemplatesShareNothing(t *testing.T) {
	template, err := brig.NewTemplate(&brig.Policy{Hostname: "cell"})
	must(t, err)
	var group sync.WaitGroup
	for i := 0; i < 8; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			out, err := template.Command("sh", "-c", "hostname; ls /tmp; touch /tmp/mine").Output()
			if err != nil || string(out) != "cell\n" {
				t.Errorf("%v %q", err, out)
			}
		}()
	}
	group.Wait()
	must(t, template.Close())
	if err := template.CommandContext(context.Background(), "true").Run(); !errors.Is(err, brig.ErrState) {
		t.Fatal(err)
	}
}

func TestManyGoroutines(t *testing.T) {
	var group sync.WaitGroup
	for i := 0; i < 20; i++ {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			out, err := brig.Command(nil, "echo", strconv.Itoa(i)).Output()
			if err != nil || string(out) != strconv.Itoa(i)+"\n" {
				t.Errorf("%v %q", err, out)
			}
		}(i)
	}
	group.Wait()
}

func TestNoDescriptorIsLeftBehind(t *testing.T) {
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		return len(entries)
	}
	run := func() {
		cmd := brig.Command(nil, "cat")
		cmd.Stdin, cmd.Stdout = strings.NewReader("x"), io.Discard
		must(t, cmd.Run())
		_ = brig.Command(nil, "nonesuch").Run()
	}
	run()
	before := count()
	for i := 0; i < 10; i++ {
		run()
	}
	equal(t, count(), before)
}
