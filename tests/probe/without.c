/* SPDX-License-Identifier: MIT */
/* Runs a command with system calls forced to fail, to see what brig does on a lesser kernel:
 *
 *     without NAME[=ERRNO][,NAME[=ERRNO]...] -- CMD [ARG...]
 *
 * NAME is a system call (ENOSYS unless said otherwise) or one of the features in the table below. */
#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define FEATURE_CALLS_MAX 8

/* A call that fails; with a mask, only if the argument has exactly the bits `value` under it. */
struct denial {
    const char *call;
    int error;
    unsigned argument;
    uint64_t mask;
    uint64_t value;
};

struct feature {
    const char *name;
    struct denial denials[FEATURE_CALLS_MAX];
};

static const struct feature features[] = {
    {"userns",
     {{"clone", EPERM, 0, CLONE_NEWUSER, CLONE_NEWUSER},
      {"unshare", EPERM, 0, CLONE_NEWUSER, CLONE_NEWUSER},
      {"clone3", ENOSYS, 0, 0, 0}}},
    {"landlock",
     {{"landlock_create_ruleset", ENOSYS, 0, 0, 0},
      {"landlock_add_rule", ENOSYS, 0, 0, 0},
      {"landlock_restrict_self", ENOSYS, 0, 0, 0}}},
    {"mountapi",
     {{"fsopen", ENOSYS, 0, 0, 0},
      {"fsconfig", ENOSYS, 0, 0, 0},
      {"fsmount", ENOSYS, 0, 0, 0},
      {"open_tree", ENOSYS, 0, 0, 0},
      {"move_mount", ENOSYS, 0, 0, 0},
      {"mount_setattr", ENOSYS, 0, 0, 0}}},
    /* Refusing descriptors, and the pidfd of a peer, by options of a socket. */
    {"passrights",
     {{"setsockopt", ENOPROTOOPT, 2, 0xffffffff, 83},
      {"getsockopt", ENOPROTOOPT, 2, 0xffffffff, 83},
      {"getsockopt", ENOPROTOOPT, 2, 0xffffffff, 77}}},
    /* Sockets of NETLINK_NETFILTER, by their protocol. */
    {"netfilter", {{"socket", EPROTONOSUPPORT, 2, 0xffffffff, 12}}},
    /* Signals to a process group by a pidfd: a flag of 6.9. */
    {"groupsignals", {{"pidfd_send_signal", EINVAL, 3, 4, 4}}},
    {"seccomp", {{"seccomp", ENOSYS, 0, 0, 0}, {"prctl", EINVAL, 0, 0xffffffff, PR_SET_SECCOMP}}},
};

/* The errors a kernel or a container really answers with. */
static const struct {
    const char *name;
    int number;
} errors[] = {
    {"EPERM", EPERM},   {"ENOENT", ENOENT},         {"EACCES", EACCES}, {"EINVAL", EINVAL},
    {"ENOSPC", ENOSPC}, {"EOPNOTSUPP", EOPNOTSUPP}, {"ENOSYS", ENOSYS}, {"EUSERS", EUSERS},
    {"EAGAIN", EAGAIN}, {"ENOMEM", ENOMEM},         {"EBUSY", EBUSY},   {"ENODEV", ENODEV},
};

_Noreturn static void die(const char *what, const char *detail)
{
    (void)fprintf(stderr, "without: %s%s%s\n", what, detail ? ": " : "", detail ? detail : "");
    exit(125);
}

static int parse_error(const char *text)
{
    for (size_t i = 0; i < ARRAY_LENGTH(errors); i++)
        if (strcmp(errors[i].name, text) == 0)
            return errors[i].number;
    char *end = NULL;
    long number = strtol(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || number < 1 || number > 4095)
        die("not an error name or number", text);
    return (int)number;
}

/* `error` replaces the denial's own unless it is 0. The first denial of a call stands. */
static void deny(scmp_filter_ctx filter, const struct denial *denial, int error)
{
    int number = seccomp_syscall_resolve_name(denial->call);
    if (number == __NR_SCMP_ERROR)
        die("no such system call", denial->call);
    uint32_t action = SCMP_ACT_ERRNO((uint16_t)(error ? error : denial->error));
    struct scmp_arg_cmp compare = {denial->argument, SCMP_CMP_MASKED_EQ, denial->mask,
                                   denial->value};
    int rc = denial->mask ? seccomp_rule_add_array(filter, action, number, 1, &compare)
                          : seccomp_rule_add_array(filter, action, number, 0, NULL);
    if (rc < 0 && rc != -EEXIST)
        die("cannot filter", denial->call);
}

static void deny_item(scmp_filter_ctx filter, char *item)
{
    int error = 0;
    char *equals = strchr(item, '=');
    if (equals) {
        *equals = '\0';
        error = parse_error(equals + 1);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(features); i++) {
        if (strcmp(features[i].name, item) != 0)
            continue;
        for (size_t j = 0; j < FEATURE_CALLS_MAX && features[i].denials[j].call; j++)
            deny(filter, &features[i].denials[j], error);
        return;
    }
    deny(filter, &(struct denial){.call = item, .error = ENOSYS}, error);
}

int main(int argc, char **argv)
{
    if (argc < 4 || strcmp(argv[2], "--") != 0)
        die("usage: without NAME[=ERRNO][,...] -- CMD [ARG...]", NULL);
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (!filter)
        die("cannot make a filter", NULL);
    for (char *item = argv[1]; item;) {
        char *comma = strchr(item, ',');
        if (comma)
            *comma = '\0';
        deny_item(filter, item);
        item = comma ? comma + 1 : NULL;
    }
    /* Sets no_new_privs as well. */
    int rc = seccomp_load(filter);
    if (rc < 0)
        die("cannot install the filter", strerror(-rc));
    seccomp_release(filter);
    (void)execvp(argv[3], argv + 3);
    die(argv[3], strerror(errno));
}
