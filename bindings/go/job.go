// SPDX-License-Identifier: MIT

// A job of libbrig, driven by a goroutine that Go's own poller wakes: no thread waits for a command.

package brig

/*
#cgo pkg-config: libbrig
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <brig/brig.h>

// Go's poller reports that a descriptor became readable, once: so nothing may be left to be done.
static int process_all(struct brig_job *job, struct brig_error *err)
{
    struct pollfd fd = {.fd = brig_job_fd(job), .events = POLLIN};
    int code;
    do
        code = brig_job_process(job, err);
    while (code == 0 && poll(&fd, 1, 0) > 0);
    return code;
}

// A descriptor of the job's for the poller of Go, which wants it not to block.
static int copy_fd(int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy >= 0)
        (void)fcntl(copy, F_SETFL, fcntl(copy, F_GETFL) | O_NONBLOCK);
    return copy;
}
*/
import "C"

import (
	"encoding/json"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

func errno(number C.int) syscall.Errno { return syscall.Errno(number) }

// Version is that of the library in use.
func Version() string { return C.GoString(C.brig_version()) }

// job is used by its goroutine and by those that call Cmd's methods, one at a time.
type job struct {
	lock      sync.Mutex
	handle    *C.struct_brig_job // nil: released
	over      bool
	processID int
	onEvent   func(NetEvent)
	ended     chan struct{}
	result    *Result
	output    [2][]byte
	err       error
}

// stream is one of the command's descriptors 0 to 2.
type stream struct {
	kind C.enum_brig_stdio_kind
	fd   uintptr
}

// launch starts a command of C's memory.
func launch(policy *C.struct_brig_policy, template *C.struct_brig_template, command *C.struct_brig_command) (*job, error) {
	var failed C.struct_brig_error
	var handle *C.struct_brig_job
	var code C.int
	if template != nil {
		code = C.brig_template_start(template, command, &handle, &failed)
	} else {
		code = C.brig_start(policy, command, &handle, &failed)
	}
	if err := failure(code, &failed); err != nil {
		return nil, err
	}
	return &job{handle: handle, processID: int(C.brig_job_pid(handle)), ended: make(chan struct{})}, nil
}

// newCommand is libbrig's struct in C's memory.
func newCommand(memory *arena, args, env []string, streams [3]stream, extra []*os.File) *C.struct_brig_command {
	command := (*C.struct_brig_command)(C.calloc(1, C.sizeof_struct_brig_command))
	memory.owned = append(memory.owned, unsafe.Pointer(command))
	command.size = C.sizeof_struct_brig_command
	command.argv = memory.texts(args)
	command.envp = memory.texts(env)
	for i, stream := range streams {
		command.stdio[i].kind = stream.kind
		command.stdio[i].fd = C.int(stream.fd)
	}
	if len(extra) > 0 {
		fds := (*C.struct_brig_pass_fd)(C.calloc(C.size_t(len(extra)), C.sizeof_struct_brig_pass_fd))
		memory.owned = append(memory.owned, unsafe.Pointer(fds))
		for i, file := range extra {
			pass := &unsafe.Slice(fds, len(extra))[i]
			pass.fd, pass.number = C.int(file.Fd()), C.int(3+i)
		}
		command.pass_fds, command.pass_fd_count = fds, C.size_t(len(extra))
	}
	return command
}

// drive processes the job until it is over. Call it once, in a goroutine.
func (j *job) drive() {
	defer close(j.ended)
	fd := C.copy_fd(C.brig_job_fd(j.handle))
	if fd < 0 {
		j.err = &Error{Code: ErrSystem, Message: "cannot copy the job's descriptor"}
		j.release()
		return
	}
	file := os.NewFile(uintptr(fd), "brig job")
	defer file.Close()
	connection, err := file.SyscallConn()
	if err == nil {
		err = connection.Read(func(uintptr) bool { return j.process() })
	}
	if err != nil && j.err == nil {
		j.err = err
	}
	if j.err != nil {
		j.release()
	}
}

// process does what there is to do; whether the job is over, or failed.
func (j *job) process() bool {
	j.lock.Lock()
	var failed C.struct_brig_error
	code := C.process_all(j.handle, &failed)
	j.err = failure(code, &failed)
	j.over = code != 0
	events := j.takeEvents()
	if code == 1 {
		j.takeResult()
	}
	over := j.over
	j.lock.Unlock()
	for _, event := range events {
		j.onEvent(event)
	}
	return over
}

// decode reads a text of the library's, and frees it.
func decode(text *C.char, value any) error {
	defer C.brig_text_free(text)
	return json.Unmarshal([]byte(C.GoString(text)), value)
}

func (j *job) takeEvents() (events []NetEvent) {
	for j.onEvent != nil {
		taken := C.brig_job_take_net_event(j.handle)
		var text *C.char
		if taken == nil || C.brig_net_event_json(taken, &text, nil) < 0 {
			break
		}
		var event NetEvent
		if decode(text, &event) == nil {
			events = append(events, event)
		}
	}
	return events
}

func (j *job) takeResult() {
	var failed C.struct_brig_error
	var result *C.struct_brig_result
	if j.err = failure(C.brig_job_result(j.handle, &result, &failed), &failed); j.err != nil {
		return
	}
	defer C.brig_result_free(result)
	var text *C.char
	if j.err = failure(C.brig_result_json(result, &text, &failed), &failed); j.err != nil {
		return
	}
	j.result = &Result{InsideJail: C.brig_result_inside_jail(result) != 0}
	j.err = decode(text, j.result)
	for i := range j.output {
		var length C.size_t
		bytes := C.brig_result_output(result, C.int(i+1), &length, nil)
		j.output[i] = C.GoBytes(unsafe.Pointer(bytes), C.int(length))
	}
}

// call uses the job if it still runs.
func (j *job) call(function func(*C.struct_brig_job, *C.struct_brig_error) C.int) error {
	j.lock.Lock()
	defer j.lock.Unlock()
	if j.handle == nil || j.over {
		return &Error{Code: ErrState, Message: "the command is over"}
	}
	var failed C.struct_brig_error
	return failure(function(j.handle, &failed), &failed)
}

func (j *job) cancel() error {
	return j.call(func(job *C.struct_brig_job, err *C.struct_brig_error) C.int { return C.brig_job_cancel(job, err) })
}

func (j *job) signal(number syscall.Signal) error {
	return j.call(func(job *C.struct_brig_job, err *C.struct_brig_error) C.int {
		return C.brig_job_signal(job, C.int(number), err)
	})
}

func (j *job) resize(rows, columns uint) error {
	return j.call(func(job *C.struct_brig_job, err *C.struct_brig_error) C.int {
		return C.brig_job_resize(job, C.uint(rows), C.uint(columns), err)
	})
}

// copyFile is a copy of one of the job's descriptors; nil if there is none.
func (j *job) copyFile(name string, descriptor func(*C.struct_brig_job) C.int) *os.File {
	j.lock.Lock()
	defer j.lock.Unlock()
	if j.handle == nil {
		return nil
	}
	fd := descriptor(j.handle)
	if fd < 0 {
		return nil
	}
	if fd = C.copy_fd(fd); fd < 0 {
		return nil
	}
	return os.NewFile(uintptr(fd), name)
}

func (j *job) terminal() *os.File {
	return j.copyFile("brig terminal", func(job *C.struct_brig_job) C.int { return C.brig_job_terminal(job) })
}

func (j *job) keptDir() *os.File {
	return j.copyFile("brig kept directory", func(job *C.struct_brig_job) C.int { return C.brig_job_kept_dir(job) })
}

// keeps says whether the job is needed beyond its end.
func (j *job) keeps() bool {
	j.lock.Lock()
	defer j.lock.Unlock()
	return j.handle != nil && C.brig_job_kept_dir(j.handle) >= 0
}

// release ends what still runs.
func (j *job) release() {
	j.lock.Lock()
	defer j.lock.Unlock()
	C.brig_job_free(j.handle)
	j.handle = nil
}

// Template is a jail prepared ahead: each start only adds what must be fresh. It may be used by several goroutines.
type Template struct {
	lock   sync.RWMutex // of closed
	closed bool
	caller lazyTemplate // with the caller's environment
	given  lazyTemplate // with one that is given; made when it is needed first
}

// lazyTemplate is one of libbrig's.
type lazyTemplate struct {
	once   sync.Once
	policy *C.struct_brig_policy
	handle *C.struct_brig_template
	err    error
}

func (l *lazyTemplate) make() (*C.struct_brig_template, error) {
	l.once.Do(func() {
		var failed C.struct_brig_error
		l.err = failure(C.brig_template_new(l.policy, &l.handle, &failed), &failed)
	})
	return l.handle, l.err
}

func (l *lazyTemplate) free() {
	C.brig_policy_free(l.policy)
	C.brig_template_free(l.handle)
	l.policy, l.handle = nil, nil
}

// NewTemplate prepares a jail. A nil policy is the sealed one.
func NewTemplate(policy *Policy) (template *Template, err error) {
	template = &Template{}
	defer func() {
		if err != nil {
			_ = template.Close()
			template = nil
		}
	}()
	if template.caller.policy, err = policy.build(false); err != nil {
		return template, err
	}
	if template.given.policy, err = policy.build(true); err != nil {
		return template, err
	}
	_, err = template.caller.make()
	return template, err
}

// Close releases the template; commands that were started from it go on.
func (t *Template) Close() error {
	t.lock.Lock()
	defer t.lock.Unlock()
	if !t.closed {
		t.caller.free()
		t.given.free()
	}
	t.closed = true
	return nil
}

func (t *Template) launch(command *C.struct_brig_command, givenEnv bool) (*job, error) {
	t.lock.RLock()
	defer t.lock.RUnlock()
	if t.closed {
		return nil, &Error{Code: ErrState, Message: "the template is closed"}
	}
	source := &t.caller
	if givenEnv {
		source = &t.given
	}
	handle, err := source.make()
	if err != nil {
		return nil, err
	}
	return launch(nil, handle, command)
}

func launchWith(policy *Policy, command *C.struct_brig_command, givenEnv bool) (*job, error) {
	built, err := policy.build(givenEnv)
	if err != nil {
		return nil, err
	}
	defer C.brig_policy_free(built)
	return launch(built, nil, command)
}

const (
	streamNull    = C.BRIG_STDIO_NULL
	streamFD      = C.BRIG_STDIO_FD
	streamCapture = C.BRIG_STDIO_CAPTURE
	streamPTY     = C.BRIG_STDIO_PTY
)
