// SPDX-License-Identifier: MIT

// What can go wrong: errors of the library, and ends of a command that are not an exit with 0.

package brig

import (
	"fmt"
	"syscall"
)

// Code says what kind of error it is. Every code is an error itself, for errors.Is.
type Code int

const (
	ErrInvalid       Code = -1 // a value given by the caller is wrong; the message names it
	ErrNoMemory      Code = -2
	ErrSystem        Code = -3 // the system refused something that normally works
	ErrUnsupported   Code = -4 // this system cannot enforce what was asked; nothing ran
	ErrSetup         Code = -5 // the jail could not be built; nothing ran
	ErrNotFound      Code = -6 // the command does not exist inside the jail
	ErrNotExecutable Code = -7 // the command exists but cannot be executed
	ErrState         Code = -8 // the call does not fit the state of the object
)

var codeNames = map[Code]string{
	ErrInvalid: "invalid value", ErrNoMemory: "out of memory", ErrSystem: "system error", ErrUnsupported: "unsupported",
	ErrSetup: "setup failed", ErrNotFound: "command not found", ErrNotExecutable: "command not executable",
	ErrState: "wrong state",
}

func (c Code) Error() string {
	if name, ok := codeNames[c]; ok {
		return "brig: " + name
	}
	return fmt.Sprintf("brig: error %d", int(c))
}

// Error is an error of the library. errors.Is(err, brig.ErrNotFound) asks for its code, and
// errors.Is(err, fs.ErrPermission) for the errno behind it.
type Error struct {
	Code    Code
	Errno   syscall.Errno // 0: there is none
	Message string
}

func (e *Error) Error() string { return "brig: " + e.Message }

// Is says whether the error has this code.
func (e *Error) Is(target error) bool { return target == e.Code }

// Unwrap returns the errno, if there is one.
func (e *Error) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

func invalid(format string, values ...any) error {
	return &Error{Code: ErrInvalid, Message: fmt.Sprintf(format, values...)}
}

// ExitError says that a command did not exit with 0.
type ExitError struct {
	*Result
	// Stderr is what Output captured of it.
	Stderr []byte
}

func (e *ExitError) Error() string {
	switch e.Outcome {
	case Exited:
		return fmt.Sprintf("exit status %d", e.ExitCode())
	case Signalled:
		return fmt.Sprintf("signal %d", e.Signal())
	}
	return "ended: " + string(e.Outcome)
}
