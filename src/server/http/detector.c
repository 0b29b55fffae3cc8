/* SPDX-License-Identifier: MIT */
/* The detector: a table of patterns in lower case without blanks, searched in the code without
 * regard to case and blanks. */
#include "server/http/detector.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define ROW(text_, type_, severity_, detail_)                                                      \
    {                                                                                              \
        .text = (text_), .type = (type_), .severity = SEVERITY_##severity_, .detail = (detail_)    \
    }
#define WORD(text_, type_, severity_, detail_)                                                     \
    {                                                                                              \
        .text = (text_), .type = (type_), .severity = SEVERITY_##severity_, .detail = (detail_),   \
        .word = true                                                                               \
    }

const struct detector_pattern detector_patterns[] = {
    /* Credentials. */
    ROW("/etc/shadow", "credential_access", CRITICAL, "reads /etc/shadow"),
    ROW("/etc/gshadow", "credential_access", CRITICAL, "reads /etc/gshadow"),
    ROW("/etc/sudoers", "credential_access", HIGH, "reads /etc/sudoers"),
    ROW("/etc/passwd", "credential_access", LOW, "reads /etc/passwd"),
    ROW(".ssh/id_", "credential_access", HIGH, "reads SSH keys"),
    ROW(".aws/credentials", "credential_access", HIGH, "reads AWS credentials"),
    ROW("/run/secrets", "credential_access", MEDIUM, "reads secrets of a container"),
    ROW("/proc/self/environ", "credential_access", MEDIUM, "reads the environment of the process"),
    ROW("/proc/1/environ", "credential_access", HIGH, "reads the environment of init"),
    /* Container engines. */
    ROW("docker.sock", "container_escape", CRITICAL, "talks to the Docker daemon"),
    ROW("containerd.sock", "container_escape", CRITICAL, "talks to containerd"),
    ROW("crio.sock", "container_escape", CRITICAL, "talks to CRI-O"),
    ROW("podman.sock", "container_escape", CRITICAL, "talks to Podman"),
    ROW("release_agent", "container_escape", CRITICAL, "sets a cgroup release agent"),
    ROW("notify_on_release", "container_escape", HIGH, "prepares a cgroup release agent"),
    ROW("core_pattern", "container_escape", CRITICAL, "sets the kernel's core pattern"),
    ROW("/proc/sysrq-trigger", "container_escape", CRITICAL, "triggers SysRq"),
    ROW("/proc/1/root", "container_escape", CRITICAL, "reaches for the root of init"),
    ROW("uevent_helper", "container_escape", CRITICAL, "sets the kernel's uevent helper"),
    ROW("binfmt_misc/register", "container_escape", CRITICAL, "registers a binary format"),
    ROW("nsenter-t1", "container_escape", CRITICAL, "enters the namespaces of init"),
    ROW("nsenter--target1", "container_escape", CRITICAL, "enters the namespaces of init"),
    ROW("nsenter--target=1", "container_escape", CRITICAL, "enters the namespaces of init"),
    ROW("open_by_handle_at", "container_escape", HIGH, "opens files by handle"),
    /* The kernel. */
    WORD("init_module", "kernel_module", CRITICAL, "loads a kernel module"),
    WORD("finit_module", "kernel_module", CRITICAL, "loads a kernel module"),
    WORD("insmod", "kernel_module", CRITICAL, "loads a kernel module"),
    WORD("modprobe", "kernel_module", CRITICAL, "loads a kernel module"),
    WORD("kexec_load", "kernel_module", CRITICAL, "replaces the kernel"),
    ROW("/dev/kmem", "kernel_access", CRITICAL, "reads kernel memory"),
    WORD("/dev/mem", "kernel_access", CRITICAL, "reads physical memory"),
    ROW("/proc/kcore", "kernel_access", CRITICAL, "reads kernel memory"),
    ROW("/proc/kallsyms", "kernel_access", HIGH, "reads kernel symbols"),
    ROW("/proc/self/mem", "kernel_access", HIGH, "writes process memory, as Dirty COW did"),
    WORD("userfaultfd", "kernel_access", HIGH, "uses userfaultfd"),
    WORD("io_uring_setup", "kernel_access", HIGH, "uses io_uring"),
    WORD("perf_event_open", "kernel_access", HIGH, "uses performance events"),
    WORD("keyctl(", "kernel_access", MEDIUM, "uses kernel keyrings"),
    ROW("bpf(bpf_", "kernel_access", HIGH, "loads BPF programs"),
    /* Processes, mounts and namespaces. */
    WORD("ptrace", "process_tracing", HIGH, "traces processes"),
    WORD("process_vm_writev", "process_tracing", HIGH, "writes the memory of processes"),
    WORD("mount(", "mount_attempt", HIGH, "mounts a filesystem"),
    WORD("mount-t", "mount_attempt", HIGH, "mounts a filesystem"),
    WORD("mount--bind", "mount_attempt", HIGH, "mounts a directory"),
    WORD("mount-obind", "mount_attempt", HIGH, "mounts a directory"),
    WORD("umount2(", "mount_attempt", HIGH, "unmounts a filesystem"),
    WORD("pivot_root", "mount_attempt", HIGH, "changes the root directory"),
    WORD("chroot(", "mount_attempt", HIGH, "changes the root directory"),
    WORD("unshare(", "namespace_attempt", HIGH, "makes namespaces"),
    WORD("unshare-", "namespace_attempt", HIGH, "makes namespaces"),
    WORD("setns(", "namespace_attempt", HIGH, "enters namespaces"),
    ROW("clone_newuser", "namespace_attempt", HIGH, "makes a user namespace"),
    WORD("setuid(0", "privilege_escalation", HIGH, "becomes root"),
    WORD("setresuid(0", "privilege_escalation", HIGH, "becomes root"),
    ROW("ld_preload", "privilege_escalation", MEDIUM, "preloads a library"),
    WORD("sudo-", "privilege_escalation", LOW, "uses sudo"),
    /* Denial of service. */
    ROW(":(){:|:&};:", "fork_bomb", CRITICAL, "is a fork bomb"),
    ROW("(){$0|$0&};", "fork_bomb", CRITICAL, "is a fork bomb"),
    ROW("whiletrue:os.fork()", "fork_bomb", CRITICAL, "is a fork bomb"),
    ROW("while1:os.fork()", "fork_bomb", CRITICAL, "is a fork bomb"),
    ROW("while(1)fork()", "fork_bomb", CRITICAL, "is a fork bomb"),
    ROW("while(1){fork()", "fork_bomb", CRITICAL, "is a fork bomb"),
    ROW("while(true){fork()", "fork_bomb", CRITICAL, "is a fork bomb"),
    ROW("os.fork()", "fork_attempt", LOW, "forks"),
    ROW("stratum+tcp://", "mining", HIGH, "mines a currency"),
    WORD("xmrig", "mining", HIGH, "mines a currency"),
    /* The network. */
    ROW("169.254.169.254", "metadata_access", CRITICAL, "asks a cloud's metadata service"),
    ROW("metadata.google.internal", "metadata_access", CRITICAL, "asks a cloud's metadata service"),
    ROW("100.100.100.200", "metadata_access", CRITICAL, "asks a cloud's metadata service"),
    ROW("fd00:ec2::254", "metadata_access", CRITICAL, "asks a cloud's metadata service"),
    ROW("169.254.170.2", "metadata_access", CRITICAL, "asks a cloud's metadata service"),
    ROW("/dev/tcp/", "reverse_shell", HIGH, "opens a connection from a shell"),
    ROW("pty.spawn(", "reverse_shell", MEDIUM, "starts a shell on a terminal"),
    WORD("nc-e", "reverse_shell", HIGH, "connects a shell to a socket"),
    ROW("sock_raw", "raw_socket", MEDIUM, "opens a raw socket"),
    ROW("tiocsti", "terminal_injection", HIGH, "types at a terminal"),
};
const size_t detector_pattern_count = ARRAY_LENGTH(detector_patterns);

#define RING 64 /* longer than any pattern */
#define BEGINS_WORD 0x80

/* The last characters, in lower case and without blanks; BEGINS_WORD is set on the first of a
 * word. */
struct ring {
    unsigned char characters[RING];
    size_t count; /* of all characters so far */
};

static bool ends_with(const struct ring *ring, const struct detector_pattern *row)
{
    size_t length = strlen(row->text);
    if (length > ring->count)
        return false;
    for (size_t k = 1; k <= length; k++)
        if ((ring->characters[(ring->count - k) % RING] & ~BEGINS_WORD) != row->text[length - k])
            return false;
    return !row->word || ring->characters[(ring->count - length) % RING] & BEGINS_WORD;
}

/* One pass over the code. At each character, compares the patterns that end with it. */
static void scan(const char *code, size_t length, bool *seen)
{
    struct ring ring = {0};
    size_t first[128] = {0}, next[ARRAY_LENGTH(detector_patterns)]; /* by last character; from 1 */
    unsigned char before = ' ';
    for (size_t i = 0; i < detector_pattern_count; i++) {
        const char *text = detector_patterns[i].text;
        size_t *chain = &first[(unsigned char)text[strlen(text) - 1] & 127];
        next[i] = *chain;
        *chain = i + 1;
    }
    for (size_t at = 0; at < length; at++) {
        unsigned char c = (unsigned char)tolower((unsigned char)code[at]);
        bool begins_word = !isalnum(before) && before != '_';
        before = c;
        if (isspace(c) || c == '\0')
            continue;
        if (c > 127)
            c = 127; /* in no pattern */
        ring.characters[ring.count++ % RING] = begins_word ? c | BEGINS_WORD : c;
        for (size_t i = first[c]; i > 0; i = next[i - 1])
            seen[i - 1] = seen[i - 1] || ends_with(&ring, &detector_patterns[i - 1]);
    }
}

void detector_scan(const char *code, size_t length, struct arena *arena,
                   struct execution_event **ret_events, size_t *ret_count)
{
    bool seen[ARRAY_LENGTH(detector_patterns)] = {0};
    size_t count = 0;
    *ret_events = NULL;
    *ret_count = 0;
    scan(code, length, seen);
    for (size_t i = 0; i < detector_pattern_count; i++)
        count += seen[i];
    struct execution_event *events = count ? arena_alloc(arena, count * sizeof *events) : NULL;
    if (!events)
        return;
    /* The most severe first, so that they are kept if there are too many. */
    for (int severity = SEVERITY_CRITICAL; severity >= SEVERITY_LOW; severity--)
        for (size_t i = 0; i < detector_pattern_count && *ret_count < EXECUTION_EVENTS_MAX; i++)
            if (seen[i] && (int)detector_patterns[i].severity == severity)
                events[(*ret_count)++] =
                    (struct execution_event){.type = detector_patterns[i].type,
                                             .detail = detector_patterns[i].detail,
                                             .severity = detector_patterns[i].severity};
    *ret_events = events;
}
