// SPDX-License-Identifier: MIT

// A policy: what a jail may see, reach and use, as plain data. It becomes one of libbrig's, which checks it, when a
// command starts.

package brig

/*
#include <stdlib.h>
#include <brig/brig.h>
*/
import "C"

import (
	"sort"
	"strings"
	"time"
	"unsafe"
)

// Mode is a preset.
type Mode int

const (
	Sealed Mode = iota // system directories, grants, private /tmp, no network, limits
	Casual             // the host read-only, for a home that is a copy-on-write overlay; network Open, as the next two
	Bare               // the host read-only, with an empty home
	Strict             // system directories and grants alone, with an empty home
)

// View is what of the filesystem exists before grants.
type View int

const (
	ViewOfMode View = iota
	ViewSystem
	ViewHost
	ViewRoot // Policy.Root
	ViewEmpty
)

// Access is what a grant allows.
type Access int

const (
	ReadWrite Access = iota
	ReadOnly
	Mask    // hidden: something empty stands in its place
	Device  // a device node, or a directory of them
	Protect // inside a read-write grant: can be read, but not changed
)

// Network is what of the network the jail has.
type Network int

const (
	NetworkOfMode Network = iota
	NetworkNone
	NetworkHost
	NetworkAllow // what Policy.Allow names
	NetworkOpen  // every public address
	NetworkLoopback
)

// Seccomp is a profile of system calls.
type Seccomp int

const (
	SeccompOfMode Seccomp = iota
	SeccompDev            // a deny-list: for agents and build tools
	SeccompCode           // deny by default: Python, Node, shells
)

// OnUnsupported is what follows when something cannot be enforced.
type OnUnsupported int

const (
	Fail   OnUnsupported = iota // nothing runs
	Warn                        // it runs; Result.Unenforced lists what is missing
	Ignore                      // the same
)

// Layer is a part of the jail that can be switched off, to find out which one stops a program.
type Layer uint

const (
	LayerLandlock Layer = 1 << iota
	LayerSeccomp
	LayerCaps
	LayerNamespaces
	LayerNested
)

// Grant makes a path of the host's visible.
type Grant struct {
	Access   Access
	Source   string // absolute, on the host
	Dest     string // absolute, in the jail; empty: the same path
	Optional bool   // a missing source is no error
	Create   bool   // a missing source is created as a directory
}

// Private is a directory of the jail's own, in memory.
type Private struct {
	Dest     string
	ReadOnly bool // but for Policy.Files
}

// File is put into a private directory.
type File struct {
	Dest     string
	Contents []byte
	Mode     uint32 // the nine bits of permission; 0: 0644
}

// Identity is who the jail is. Nil and empty members are chosen.
type Identity struct {
	HostUID, HostGID, InsideUID, InsideGID *uint32
	Name, Home, Shell                      string
}

// Credential never enters the jail: see struct brig_inject of the C API.
type Credential struct {
	Name, Header, Value                           string
	Upstream, Variable, Suffix, Site, Authorities string // Authorities: a file of certificates to trust
	Methods, Paths, Strip                         []string
}

// Proxy is the host's own HTTP proxy.
type Proxy struct {
	Address string // "HOST:PORT"
	Secret  string // its Proxy-Authorization
	Without []string
}

// Unlimited, as a limit, takes back the one of the mode.
const Unlimited = -1

// Limits. 0 is what the mode has, Unlimited is none.
type Limits struct {
	Wall, CPU, Grace, NetIdle                   time.Duration
	AddressSpace, FileSize, Output, Tmp, Memory int64 // bytes
	OpenFiles, Processes, TmpInodes, CPUPercent int64
	IORead, IOWrite, InotifyWatches             int64 // the first two: bytes a second
	NetConnections, NetBytes                    int64
}

// Policy is what a jail may do. The zero value is the sealed jail. It may be used by several goroutines that do not
// change it.
type Policy struct {
	Mode     Mode
	Origin   string // where the rules come from; shown by Explain
	View     View
	Root     string // of ViewRoot
	Grants   []Grant
	Privates []Private
	Files    []File
	Keep     string // the private directory that Cmd.KeptDir opens
	Identity *Identity
	Hostname string
	Workdir  string // absolute, in the jail

	Network  Network
	Allow    []string // rules for NetworkAllow and NetworkOpen; other networks ignore them
	Deny     []string
	Publish  []string
	ProxyEnv bool
	Proxy    *Proxy
	Broker   string // the broker program; by default the installed one
	Inject   []Credential

	Unsetenv []string          // patterns of names
	Expose   []string          // names of the caller's that Unsetenv, or the mode, would remove
	Setenv   map[string]string // set inside

	Limits        Limits
	Seccomp       Seccomp
	NoTerminal    bool // a terminal of the caller's is replaced by /dev/null, not by one of the jail's own
	AllowNested   bool
	UnixSockets   bool
	Trace         bool // lists refused system calls in Result.Denials
	OnUnsupported OnUnsupported
	Disable       Layer
}

// arena owns memory of C.
type arena struct {
	owned []unsafe.Pointer
	err   error // the first one
}

func (a *arena) free() {
	for _, pointer := range a.owned {
		C.free(pointer)
	}
	a.owned = nil
}

func (a *arena) text(text string) *C.char {
	if a.err == nil && strings.IndexByte(text, 0) >= 0 {
		a.err = invalid("%q has a NUL byte in it", text)
	}
	pointer := C.CString(text)
	a.owned = append(a.owned, unsafe.Pointer(pointer))
	return pointer
}

// optional is NULL for an empty text.
func (a *arena) optional(text string) *C.char {
	if text == "" {
		return nil
	}
	return a.text(text)
}

// texts is an array that ends with NULL.
func (a *arena) texts(texts []string) **C.char {
	size := C.size_t(unsafe.Sizeof((*C.char)(nil)))
	array := (**C.char)(C.calloc(C.size_t(len(texts)+1), size))
	a.owned = append(a.owned, unsafe.Pointer(array))
	slice := unsafe.Slice(array, len(texts)+1)
	for i, text := range texts {
		slice[i] = a.text(text)
	}
	return array
}

// textsOrNull is NULL for nil.
func (a *arena) textsOrNull(texts []string) **C.char {
	if texts == nil {
		return nil
	}
	return a.texts(texts)
}

// builder calls setters until the first one fails.
type builder struct {
	arena
	policy *C.struct_brig_policy
}

func failure(code C.int, err *C.struct_brig_error) error {
	if code >= 0 {
		return nil
	}
	return &Error{Code: Code(code), Errno: errno(err.sys_errno), Message: C.GoString(&err.message[0])}
}

func (b *builder) set(setter func(*C.struct_brig_error) C.int) {
	if b.err != nil {
		return
	}
	var err C.struct_brig_error
	b.err = failure(setter(&err), &err)
}

// each sets a list of texts.
func (b *builder) each(texts []string, setter func(*C.char, *C.struct_brig_error) C.int) {
	for _, text := range texts {
		pointer := b.text(text)
		b.set(func(err *C.struct_brig_error) C.int { return setter(pointer, err) })
	}
}

// maybe sets a text that is not empty.
func (b *builder) maybe(text string, setter func(*C.char, *C.struct_brig_error) C.int) {
	if text != "" {
		b.each([]string{text}, setter)
	}
}

// flag sets what is off by default.
func (b *builder) flag(on bool, setter func(C.int, *C.struct_brig_error) C.int) {
	if on {
		b.set(func(err *C.struct_brig_error) C.int { return setter(1, err) })
	}
}

// build makes libbrig's policy, to be freed with brig_policy_free. A nil policy is the zero value. Of the caller's own
// environment the mode passes on what is harmless; one that is given is passed on.
func (p *Policy) build(givenEnv bool) (*C.struct_brig_policy, error) {
	if p == nil {
		p = &Policy{}
	}
	b := &builder{policy: C.brig_policy_new(C.enum_brig_mode(p.Mode))}
	defer b.free()
	if b.policy == nil {
		return nil, invalid("mode: %d is not one of the modes, or memory is short", p.Mode)
	}
	b.maybe(p.Origin, func(text *C.char, err *C.struct_brig_error) C.int { return C.brig_policy_origin(b.policy, text, err) })
	p.setFiles(b)
	p.setNetwork(b)
	p.setEnvironment(b, givenEnv)
	p.Limits.set(b)
	p.setOthers(b)
	if b.err != nil {
		C.brig_policy_free(b.policy)
		return nil, b.err
	}
	return b.policy, nil
}

func (p *Policy) setFiles(b *builder) {
	if p.View != ViewOfMode {
		root := b.optional(p.Root)
		b.set(func(err *C.struct_brig_error) C.int {
			return C.brig_policy_view(b.policy, C.enum_brig_view(p.View-1), root, err)
		})
	}
	for _, grant := range p.Grants {
		access, source, dest, flags := C.enum_brig_access(grant.Access), b.text(grant.Source), b.optional(grant.Dest), C.uint(0)
		if grant.Optional {
			flags |= C.BRIG_GRANT_OPTIONAL
		}
		if grant.Create {
			flags |= C.BRIG_GRANT_CREATE
		}
		b.set(func(err *C.struct_brig_error) C.int {
			return C.brig_policy_grant(b.policy, access, source, dest, flags, err)
		})
	}
	for _, private := range p.Privates {
		access, dest := C.enum_brig_access(C.BRIG_READ_WRITE), b.text(private.Dest)
		if private.ReadOnly {
			access = C.BRIG_READ_ONLY
		}
		b.set(func(err *C.struct_brig_error) C.int { return C.brig_policy_private(b.policy, access, dest, err) })
	}
	for _, file := range p.Files {
		b.file(file)
	}
	b.maybe(p.Keep, func(text *C.char, err *C.struct_brig_error) C.int { return C.brig_policy_keep(b.policy, text, err) })
	b.maybe(p.Workdir, func(text *C.char, err *C.struct_brig_error) C.int { return C.brig_policy_workdir(b.policy, text, err) })
}

func (b *builder) file(file File) {
	mode := file.Mode
	if mode == 0 {
		mode = 0o644
	}
	dest := b.text(file.Dest)
	bytes := C.CBytes(file.Contents)
	b.owned = append(b.owned, bytes)
	b.set(func(err *C.struct_brig_error) C.int {
		return C.brig_policy_file(b.policy, dest, bytes, C.size_t(len(file.Contents)), C.mode_t(mode), err)
	})
}

func (p *Policy) setNetwork(b *builder) {
	if p.Network != NetworkOfMode {
		b.set(func(err *C.struct_brig_error) C.int {
			return C.brig_policy_network(b.policy, C.enum_brig_network(p.Network-1), err)
		})
	}
	b.each(p.Allow, func(text *C.char, err *C.struct_brig_error) C.int { return C.brig_policy_allow(b.policy, text, err) })
	b.each(p.Deny, func(text *C.char, err *C.struct_brig_error) C.int { return C.brig_policy_deny(b.policy, text, err) })
	b.each(p.Publish, func(text *C.char, err *C.struct_brig_error) C.int { return C.brig_policy_publish(b.policy, text, err) })
	b.flag(p.ProxyEnv, func(on C.int, err *C.struct_brig_error) C.int { return C.brig_policy_proxy_env(b.policy, on, err) })
	if p.Proxy != nil {
		address, secret, without := b.text(p.Proxy.Address), b.optional(p.Proxy.Secret), b.textsOrNull(p.Proxy.Without)
		b.set(func(err *C.struct_brig_error) C.int {
			return C.brig_policy_net_proxy(b.policy, address, secret, without, err)
		})
	}
	b.maybe(p.Broker, func(text *C.char, err *C.struct_brig_error) C.int { return C.brig_policy_broker(b.policy, text, err) })
	for _, credential := range p.Inject {
		b.inject(credential)
	}
}

// The struct is C's memory, as it holds pointers to such.
func (b *builder) inject(credential Credential) {
	inject := (*C.struct_brig_inject)(C.calloc(1, C.sizeof_struct_brig_inject))
	b.owned = append(b.owned, unsafe.Pointer(inject))
	inject.size = C.sizeof_struct_brig_inject
	inject.name, inject.header, inject.value = b.text(credential.Name), b.text(credential.Header), b.text(credential.Value)
	inject.upstream, inject.variable = b.optional(credential.Upstream), b.optional(credential.Variable)
	inject.suffix, inject.ca = b.optional(credential.Suffix), b.optional(credential.Authorities)
	inject.methods, inject.paths = b.textsOrNull(credential.Methods), b.textsOrNull(credential.Paths)
	inject.strip, inject.site = b.textsOrNull(credential.Strip), b.optional(credential.Site)
	b.set(func(err *C.struct_brig_error) C.int { return C.brig_policy_inject(b.policy, inject, err) })
}

func (p *Policy) setEnvironment(b *builder, givenEnv bool) {
	b.each(p.Unsetenv, func(text *C.char, err *C.struct_brig_error) C.int { return C.brig_policy_unsetenv(b.policy, text, err) })
	b.each(p.Expose, func(text *C.char, err *C.struct_brig_error) C.int {
		return C.brig_policy_setenv(b.policy, text, nil, err)
	})
	names := make([]string, 0, len(p.Setenv))
	for name := range p.Setenv {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		key, value := b.text(name), b.text(p.Setenv[name])
		b.set(func(err *C.struct_brig_error) C.int { return C.brig_policy_setenv(b.policy, key, value, err) })
	}
	if givenEnv {
		all := b.text("*")
		b.set(func(err *C.struct_brig_error) C.int { return C.brig_policy_setenv(b.policy, all, nil, err) })
	} else {
		b.set(func(err *C.struct_brig_error) C.int { return C.brig_policy_host_env(b.policy, 1, err) })
	}
}

func (l *Limits) set(b *builder) {
	milliseconds := func(limit time.Duration) int64 {
		if limit > 0 {
			return int64((limit + time.Millisecond - 1) / time.Millisecond)
		}
		return int64(limit)
	}
	for limit, value := range map[C.enum_brig_limit]int64{
		C.BRIG_LIMIT_WALL_MS: milliseconds(l.Wall), C.BRIG_LIMIT_CPU_MS: milliseconds(l.CPU),
		C.BRIG_LIMIT_GRACE_MS: milliseconds(l.Grace), C.BRIG_LIMIT_NET_IDLE_MS: milliseconds(l.NetIdle),
		C.BRIG_LIMIT_ADDRESS_SPACE: l.AddressSpace, C.BRIG_LIMIT_FILE_SIZE: l.FileSize,
		C.BRIG_LIMIT_OUTPUT_BYTES: l.Output, C.BRIG_LIMIT_TMP_BYTES: l.Tmp, C.BRIG_LIMIT_MEMORY_BYTES: l.Memory,
		C.BRIG_LIMIT_OPEN_FILES: l.OpenFiles, C.BRIG_LIMIT_PROCESSES: l.Processes,
		C.BRIG_LIMIT_TMP_INODES: l.TmpInodes, C.BRIG_LIMIT_CPU_PERCENT: l.CPUPercent,
		C.BRIG_LIMIT_IO_READ_BYTES: l.IORead, C.BRIG_LIMIT_IO_WRITE_BYTES: l.IOWrite,
		C.BRIG_LIMIT_INOTIFY_WATCHES: l.InotifyWatches, C.BRIG_LIMIT_NET_CONNECTIONS: l.NetConnections,
		C.BRIG_LIMIT_NET_BYTES: l.NetBytes,
	} {
		b.limit(limit, value)
	}
}

func (b *builder) limit(limit C.enum_brig_limit, value int64) {
	if value < Unlimited && b.err == nil {
		b.err = invalid("a limit of %d is negative: brig.Unlimited (-1) is none", value)
	}
	if value == 0 {
		return
	}
	if value == Unlimited {
		value = 0
	}
	b.set(func(err *C.struct_brig_error) C.int {
		return C.brig_policy_limit(b.policy, limit, C.uint64_t(value), err)
	})
}

func id(id *uint32) C.uint {
	if id == nil {
		return C.BRIG_ID_CHOOSE
	}
	return C.uint(*id)
}

func (p *Policy) setOthers(b *builder) {
	if p.Identity != nil {
		identity := (*C.struct_brig_identity)(C.calloc(1, C.sizeof_struct_brig_identity))
		b.owned = append(b.owned, unsafe.Pointer(identity))
		identity.size = C.sizeof_struct_brig_identity
		identity.host_uid, identity.host_gid = C.uid_t(id(p.Identity.HostUID)), C.gid_t(id(p.Identity.HostGID))
		identity.inside_uid, identity.inside_gid = C.uid_t(id(p.Identity.InsideUID)), C.gid_t(id(p.Identity.InsideGID))
		identity.name, identity.home = b.optional(p.Identity.Name), b.optional(p.Identity.Home)
		identity.shell = b.optional(p.Identity.Shell)
		b.set(func(err *C.struct_brig_error) C.int { return C.brig_policy_identity(b.policy, identity, err) })
	}
	b.maybe(p.Hostname, func(text *C.char, err *C.struct_brig_error) C.int { return C.brig_policy_hostname(b.policy, text, err) })
	if p.Seccomp != SeccompOfMode {
		b.set(func(err *C.struct_brig_error) C.int {
			return C.brig_policy_seccomp(b.policy, C.enum_brig_seccomp(p.Seccomp-1), err)
		})
	}
	b.flag(p.NoTerminal, func(on C.int, err *C.struct_brig_error) C.int {
		return C.brig_policy_terminal(b.policy, C.BRIG_TERMINAL_NONE, err)
	})
	b.flag(p.AllowNested, func(on C.int, err *C.struct_brig_error) C.int { return C.brig_policy_allow_nested(b.policy, on, err) })
	b.flag(p.UnixSockets, func(on C.int, err *C.struct_brig_error) C.int { return C.brig_policy_unix_sockets(b.policy, on, err) })
	b.flag(p.Trace, func(on C.int, err *C.struct_brig_error) C.int { return C.brig_policy_trace(b.policy, on, err) })
	b.set(func(err *C.struct_brig_error) C.int {
		return C.brig_policy_on_unsupported(b.policy, C.enum_brig_on_unsupported(p.OnUnsupported), err)
	})
	if p.Disable != 0 {
		b.set(func(err *C.struct_brig_error) C.int { return C.brig_policy_disable(b.policy, C.uint(p.Disable), err) })
	}
}

func (p *Policy) explain(json C.int) (string, error) {
	policy, err := p.build(false)
	if err != nil {
		return "", err
	}
	defer C.brig_policy_free(policy)
	var text *C.char
	var failed C.struct_brig_error
	if err := failure(C.brig_policy_explain(policy, json, &text, &failed), &failed); err != nil {
		return "", err
	}
	defer C.brig_text_free(text)
	return C.GoString(text), nil
}

// Explain is the effective policy for people. It fails if the policy has a value that is wrong.
func (p *Policy) Explain() (string, error) { return p.explain(0) }

// ExplainJSON is the effective policy as a JSON object.
func (p *Policy) ExplainJSON() ([]byte, error) {
	text, err := p.explain(1)
	return []byte(text), err
}
