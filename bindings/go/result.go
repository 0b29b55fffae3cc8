// SPDX-License-Identifier: MIT

// What became of a command.

package brig

import (
	"syscall"
	"time"
)

// Outcome says how a command ended.
type Outcome string

const (
	Exited      Outcome = "exited"
	Signalled   Outcome = "signalled"
	TimedOut    Outcome = "timeout"     // the wall clock
	CPUTimedOut Outcome = "cpu-timeout" // CPU time of the tree
	OutOfMemory Outcome = "oom"
	Cancelled   Outcome = "cancelled" // Cancel, or the context
)

// Result is what became of a command. Its members are those of libbrig's JSON.
type Result struct {
	Outcome    Outcome   `json:"outcome"`
	Status     int       `json:"status"` // as a shell would say it
	Exit       *int      `json:"exit_code"`
	SignalSent *int      `json:"signal"`
	Usage      Usage     `json:"usage"`
	Truncated  Truncated `json:"truncated"`
	Unenforced []string  `json:"unenforced"` // restrictions that were not enforced, or were switched off
	Notices    []string  `json:"notices"`
	Denials    *Denials  `json:"denials"` // nil: they were not listened for, see Policy.Trace
	Network    NetUse    `json:"network"`
	InsideJail bool      `json:"-"` // it ran inside another jail, which had no namespaces to give
}

// ExitCode is -1 if the command did not exit by itself.
func (r *Result) ExitCode() int {
	if r.Exit == nil {
		return -1
	}
	return *r.Exit
}

// Signal is the one that ended the command, also for timeouts; else 0.
func (r *Result) Signal() syscall.Signal {
	if r.SignalSent == nil {
		return 0
	}
	return syscall.Signal(*r.SignalSent)
}

// Success says whether the command exited with 0.
func (r *Result) Success() bool { return r.Outcome == Exited && r.ExitCode() == 0 }

// Truncated says of which captured streams there was more than the limit.
type Truncated struct {
	Stdout bool `json:"stdout"`
	Stderr bool `json:"stderr"`
}

// Usage is what a run used.
type Usage struct {
	WallMicros         int64  `json:"wall_us"`
	CPUUserMicros      int64  `json:"cpu_user_us"`
	CPUSysMicros       int64  `json:"cpu_sys_us"`
	PeakMemoryBytes    uint64 `json:"peak_memory_bytes"` // 0: not known
	PeakPids           uint64 `json:"peak_pids"`         // 0: not known
	OOMKills           uint64 `json:"oom_kills"`
	PidsRefused        uint64 `json:"pids_refused"`
	CPUThrottledMicros int64  `json:"cpu_throttled_us"`
	StuckPid           int    `json:"stuck_pid"` // could not be ended yet; 0: none
	StdoutBytes        uint64 `json:"stdout_bytes"`
	StderrBytes        uint64 `json:"stderr_bytes"`
}

// Wall is how long the run took.
func (u Usage) Wall() time.Duration { return time.Duration(u.WallMicros) * time.Microsecond }

// CPU is the CPU time of the whole tree.
func (u Usage) CPU() time.Duration {
	return time.Duration(u.CPUUserMicros+u.CPUSysMicros) * time.Microsecond
}

// Denials are the system calls that the filter refused.
type Denials struct {
	Total    uint64   `json:"total"`
	Syscalls []Denial `json:"syscalls"`
}

// Denial is one kind of refused system call.
type Denial struct {
	Name  string        `json:"name"`
	Errno syscall.Errno `json:"errno"`
	Count uint64        `json:"count"`
}

// NetUse is what went through the network door.
type NetUse struct {
	Allowed       uint64     `json:"allowed"`
	Denied        uint64     `json:"denied"`
	Failed        uint64     `json:"failed"`
	BytesIn       uint64     `json:"bytes_in"`
	BytesOut      uint64     `json:"bytes_out"`
	EventsDropped uint64     `json:"events_dropped"`
	Events        []NetEvent `json:"events"`
}

// NetEvent is one try to reach something through the network door.
type NetEvent struct {
	Time       string `json:"time"`    // RFC 3339
	Verdict    string `json:"verdict"` // "allowed", "denied", "failed", "ended" or "waiting"
	Name       string `json:"name"`
	Address    string `json:"address"`
	Port       int    `json:"port"` // 0: only the name was asked for
	Via        string `json:"via"`
	Because    string `json:"because"`
	Rule       string `json:"rule"`
	Detail     string `json:"detail"`
	Connection uint64 `json:"connection"`
	BytesIn    uint64 `json:"bytes_in"`
	BytesOut   uint64 `json:"bytes_out"`
	DurationMS uint64 `json:"duration_ms"`
}
