// SPDX-License-Identifier: MIT

// Package brig runs a command in a jail and says precisely what became of it. Its Cmd has the methods of that of os/exec.
//
//	out, err := brig.Command(nil, "python3", "-c", "print(6 * 7)").Output()
package brig

import (
	"bytes"
	"context"
	"io"
	"os"
	"sync"
	"syscall"
)

// Cmd is a command to be run once. Members are set before Start.
type Cmd struct {
	Policy *Policy // nil: the sealed one
	Args   []string
	Env    []string // passed on as it is; nil: os.Environ(), of which the mode passes on what is harmless

	// As in os/exec: nil is /dev/null, an *os.File is given to the command, of others a goroutine copies. Wait does
	// not wait for a Stdin that is not at its end when the command is.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// PTY makes those of the three that are nil one terminal, whose other side is Terminal.
	PTY        bool
	ExtraFiles []*os.File // descriptors from 3 on
	// OnNetEvent is called for what goes through the network door, as it comes, from one goroutine.
	OnNetEvent func(NetEvent)

	// Result is there when Wait has returned.
	Result *Result

	ctx        context.Context
	template   *Template
	capture    [2]bool
	job        *job
	childFiles []*os.File // closed after the start
	ownFiles   []*os.File // closed by Wait
	stdin      *os.File
	copies     []func() error
	copying    sync.WaitGroup
	copyErrors chan error
	waited     bool
}

// Command returns a Cmd for a program and its arguments.
func Command(policy *Policy, name string, args ...string) *Cmd {
	return &Cmd{Policy: policy, Args: append([]string{name}, args...)}
}

// CommandContext is Command with a context that ends the command.
func CommandContext(ctx context.Context, policy *Policy, name string, args ...string) *Cmd {
	if ctx == nil {
		panic("nil Context")
	}
	cmd := Command(policy, name, args...)
	cmd.ctx = ctx
	return cmd
}

// Command returns a Cmd that starts from the template, whose policy it has.
func (t *Template) Command(name string, args ...string) *Cmd {
	return &Cmd{Args: append([]string{name}, args...), template: t}
}

// CommandContext is Command with a context that ends the command.
func (t *Template) CommandContext(ctx context.Context, name string, args ...string) *Cmd {
	cmd := CommandContext(ctx, nil, name, args...)
	cmd.template = t
	return cmd
}

// ---- Streams ----

// pipe returns both ends of a new pipe; Start and Wait close what is theirs.
func (c *Cmd) pipe(childReads bool) (child, own *os.File, err error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	child, own = writer, reader
	if childReads {
		child, own = reader, writer
	}
	c.childFiles = append(c.childFiles, child)
	c.ownFiles = append(c.ownFiles, own)
	return child, own, nil
}

// StdinPipe returns a pipe to the command's input. Wait closes it; close it before, so that the command reads the end.
func (c *Cmd) StdinPipe() (io.WriteCloser, error) {
	if c.Stdin != nil || c.job != nil {
		return nil, &Error{Code: ErrState, Message: "Stdin is set, or the command has started"}
	}
	child, own, err := c.pipe(true)
	c.Stdin = child
	return own, err
}

func (c *Cmd) outputPipe(output *io.Writer) (io.ReadCloser, error) {
	if *output != nil || c.job != nil {
		return nil, &Error{Code: ErrState, Message: "the stream is set, or the command has started"}
	}
	child, own, err := c.pipe(false)
	*output = child
	return own, err
}

// StdoutPipe returns a pipe from the command's output. Wait closes it: read all before.
func (c *Cmd) StdoutPipe() (io.ReadCloser, error) { return c.outputPipe(&c.Stdout) }

// StderrPipe is the same for the other output.
func (c *Cmd) StderrPipe() (io.ReadCloser, error) { return c.outputPipe(&c.Stderr) }

func (c *Cmd) unset() stream {
	if c.PTY {
		return stream{kind: streamPTY}
	}
	return stream{kind: streamNull}
}

func (c *Cmd) inputStream() (stream, error) {
	if c.Stdin == nil {
		return c.unset(), nil
	}
	if file, ok := c.Stdin.(*os.File); ok {
		return stream{streamFD, file.Fd()}, nil
	}
	child, own, err := c.pipe(true)
	if err != nil {
		return stream{}, err
	}
	c.stdin = own
	return stream{streamFD, child.Fd()}, nil
}

func (c *Cmd) outputStream(output io.Writer, capture bool) (stream, error) {
	if capture {
		return stream{kind: streamCapture}, nil
	}
	if output == nil {
		return c.unset(), nil
	}
	if file, ok := output.(*os.File); ok {
		return stream{streamFD, file.Fd()}, nil
	}
	child, own, err := c.pipe(false)
	if err != nil {
		return stream{}, err
	}
	c.copies = append(c.copies, func() error {
		_, err := io.Copy(output, own)
		_, _ = io.Copy(io.Discard, own) // a writer that fails must not stop the command
		return err
	})
	return stream{streamFD, child.Fd()}, nil
}

func (c *Cmd) streams() (streams [3]stream, err error) {
	if streams[0], err = c.inputStream(); err != nil {
		return streams, err
	}
	if streams[1], err = c.outputStream(c.Stdout, c.capture[0]); err != nil {
		return streams, err
	}
	if c.Stderr != nil && !c.capture[1] && same(c.Stdout, c.Stderr) {
		streams[2] = streams[1] // one pipe, so that the order is kept
		return streams, nil
	}
	streams[2], err = c.outputStream(c.Stderr, c.capture[1])
	return streams, err
}

// same compares writers, of which some cannot be compared.
func same(a, b io.Writer) bool {
	defer func() { _ = recover() }()
	return a == b
}

func closeAll(files []*os.File) {
	for _, file := range files {
		_ = file.Close() // some are closed already
	}
}

// ---- Running ----

// Start starts the command, and returns once it runs. Wait must follow.
func (c *Cmd) Start() error {
	if c.job != nil || c.waited {
		return &Error{Code: ErrState, Message: "the command was started already"}
	}
	if c.ctx != nil && c.ctx.Err() != nil {
		c.abandon()
		return c.ctx.Err()
	}
	err := c.launch()
	closeAll(c.childFiles)
	if err != nil {
		c.abandon()
		return err
	}
	c.job.onEvent = c.OnNetEvent
	go c.job.drive()
	c.copyStreams()
	if c.ctx != nil {
		go c.watch()
	}
	return nil
}

func (c *Cmd) abandon() {
	c.waited = true
	closeAll(c.childFiles)
	closeAll(c.ownFiles)
}

func (c *Cmd) launch() error {
	memory := &arena{}
	defer memory.free()
	streams, err := c.streams()
	if err != nil {
		return err
	}
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	command := newCommand(memory, c.Args, env, streams, c.ExtraFiles)
	if memory.err != nil {
		return memory.err
	}
	if c.template != nil {
		c.job, err = c.template.launch(command, c.Env != nil)
	} else {
		c.job, err = launchWith(c.Policy, command, c.Env != nil)
	}
	return err
}

func (c *Cmd) copyStreams() {
	if c.stdin != nil {
		go func() {
			_, _ = io.Copy(c.stdin, c.Stdin) // a command need not read it
			_ = c.stdin.Close()
		}()
	}
	c.copyErrors = make(chan error, len(c.copies))
	for _, copying := range c.copies {
		c.copying.Add(1)
		go func(copying func() error) {
			defer c.copying.Done()
			if err := copying(); err != nil {
				c.copyErrors <- err
			}
		}(copying)
	}
}

func (c *Cmd) watch() {
	select {
	case <-c.ctx.Done():
		_ = c.job.cancel() // it may be over
	case <-c.job.ended:
	}
}

// Wait waits for the end of the command. It returns nil if the command exited with 0; the context's error if that ended
// the command; else an *ExitError. Result says more in all three cases.
func (c *Cmd) Wait() error {
	if c.job == nil || c.waited {
		return &Error{Code: ErrState, Message: "the command does not run, or was waited for"}
	}
	c.waited = true
	<-c.job.ended
	c.copying.Wait()
	closeAll(c.ownFiles)
	if c.job.err != nil {
		return c.job.err
	}
	c.Result = c.job.result
	if !c.job.keeps() {
		c.job.release()
	}
	if c.ctx != nil && c.ctx.Err() != nil && c.Result.Outcome == Cancelled {
		return c.ctx.Err()
	}
	if !c.Result.Success() {
		return &ExitError{Result: c.Result, Stderr: c.job.output[1]}
	}
	select {
	case err := <-c.copyErrors:
		return err
	default:
		return nil
	}
}

// Run starts the command and waits for it.
func (c *Cmd) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Output runs the command and returns its output, as much as the policy's limit allows: see Result.Truncated. If Stderr is
// not set, that of a failed command is in ExitError.
func (c *Cmd) Output() ([]byte, error) {
	if c.Stdout != nil {
		return nil, &Error{Code: ErrState, Message: "Stdout is set"}
	}
	c.capture = [2]bool{true, c.Stderr == nil}
	err := c.Run()
	if c.job == nil {
		return nil, err
	}
	return c.job.output[0], err
}

// MaxCombined is how many bytes CombinedOutput keeps.
const MaxCombined = 1 << 20

// limited keeps the beginning of what is written to it. The buffer is a member: io.Copy would use its ReadFrom.
type limited struct {
	kept bytes.Buffer
	more bool
}

func (l *limited) Write(piece []byte) (int, error) {
	keep := piece
	if room := MaxCombined - l.kept.Len(); len(keep) > room {
		keep, l.more = keep[:room], true
	}
	l.kept.Write(keep)
	return len(piece), nil
}

// CombinedOutput runs the command and returns both outputs as they came, up to MaxCombined bytes: see Result.Truncated.
func (c *Cmd) CombinedOutput() ([]byte, error) {
	if c.Stdout != nil || c.Stderr != nil {
		return nil, &Error{Code: ErrState, Message: "Stdout or Stderr is set"}
	}
	output := &limited{}
	c.Stdout, c.Stderr = output, output
	err := c.Run()
	if c.Result != nil {
		c.Result.Truncated = Truncated{Stdout: output.more, Stderr: output.more}
	}
	return output.kept.Bytes(), err
}

// ---- While it runs ----

func (c *Cmd) running() error {
	if c.job == nil {
		return &Error{Code: ErrState, Message: "the command has not started"}
	}
	return nil
}

// Signal sends a signal to the command's process group.
func (c *Cmd) Signal(signal syscall.Signal) error {
	if err := c.running(); err != nil {
		return err
	}
	return c.job.signal(signal)
}

// Cancel asks for the end: TERM, the policy's grace, KILL of the whole tree. Wait must follow.
func (c *Cmd) Cancel() error {
	if err := c.running(); err != nil {
		return err
	}
	return c.job.cancel()
}

// Done is closed when the command is over; nil before Start.
func (c *Cmd) Done() <-chan struct{} {
	if c.job == nil {
		return nil
	}
	return c.job.ended
}

// Pid is the jail's first process, as seen by the caller; 0 before Start.
func (c *Cmd) Pid() int {
	if c.job == nil {
		return 0
	}
	return c.job.processID
}

// Resize sets the size of the terminal.
func (c *Cmd) Resize(rows, columns uint) error {
	if err := c.running(); err != nil {
		return err
	}
	return c.job.resize(rows, columns)
}

// Terminal is the other side of a PTY, once it is started; nil if there is none. Close it. Reading fails with EIO when the
// command has ended and all was read.
func (c *Cmd) Terminal() *os.File {
	if c.job == nil {
		return nil
	}
	return c.job.terminal()
}

// KeptDir opens the directory of Policy.Keep, also after Wait, until Release; nil if there is none. What is in it was made by
// the command: follow no link.
func (c *Cmd) KeptDir() *os.File {
	if c.job == nil {
		return nil
	}
	return c.job.keptDir()
}

// Release ends the command if it still runs, and releases a kept directory. Wait does it where nothing is kept.
func (c *Cmd) Release() {
	if c.job == nil {
		return
	}
	_ = c.job.cancel() // it may be over
	<-c.job.ended
	c.job.release()
}
