/* SPDX-License-Identifier: MIT */
/* Every option of `brig run` in one table. The parser, --help, the OPTIONS section of the manual
 * and the completions come from it: adding an option is adding a row and a setter (settings.c). */
#pragma once

#include <stdbool.h>

#include <brig/brig.h>

/* Groups in the order of --help: id, heading. */
#define OPTION_GROUPS(X)                                                                           \
    X(CONFIG, "The jail and its configuration")                                                    \
    X(POLICY, "What the jail is")                                                                  \
    X(NETWORK, "Network")                                                                          \
    X(FILES, "Files")                                                                              \
    X(DESKTOP, "The desktop session (all of it is out of reach otherwise)")                        \
    X(LIMITS, "Limits (none lifts one)")                                                           \
    X(ENVIRONMENT, "Environment and identity")                                                     \
    X(RUN, "The run")

/* What a value is, for completions and for files: id, whether ${VARIABLES} in it are expanded in a
 * file. Those from CONF on are completed by `brig --complete`, which looks into the user's files. */
#define OPTION_KINDS(X)                                                                            \
    X(NONE, false)                                                                                 \
    X(TEXT, false)                                                                                 \
    X(CHOICE, false)                                                                               \
    X(PATH, true)  /* of a file or directory */                                                    \
    X(FILE, false) /* the same, not expanded */                                                    \
    X(DIRECTORY, true)                                                                             \
    X(CONF, true)      /* a .conf file */                                                          \
    X(JAIL, false)     /* the name of one */                                                       \
    X(HOME, true)      /* a path in the home directory */                                          \
    X(VARIABLE, false) /* the name of one, or a pattern */                                         \
    X(ASSIGNMENT, true)

/* Rows: id, short (0: none), long, metavar (NULL: takes no value), kind, group, help, more.
 *
 * `help` is the line in --help, without a full stop; `more` are sentences for the manual only. A
 * CHOICE lists its words in the metavar, separated by '|'. A long name is also the name of the
 * directive in a configuration file; those of the RUN group belong to the command line alone. */
#define OPTION_TABLE(X)                                                                            \
    X(MODE, 'm', "mode", "casual|bare|strict|sealed", CHOICE, CONFIG,                              \
      "the preset to start from (default: casual)",                                                \
      "A mode is a preset of everything below; options refine it whatever their order. "           \
      "\"casual\": your home directory copied on writing, with what is masked hidden; the rest "   \
      "of the host read-only. \"bare\": an empty home of the jail's own instead. \"strict\": "     \
      "system directories and the grants alone, and an empty home of the jail's own. "             \
      "\"sealed\": the same with a home that is thrown away, no network and the syscall "          \
      "profile \"code\". The default for a jail with a name is \"strict\".")                       \
    X(JAIL, 'j', "jail", "NAME", JAIL, CONFIG, "the jail to use (default: default)",               \
      "Each has a home and a /tmp of its own, and a file NAME.jail for its settings, which is "    \
      "made on first use and remembers the mode. A name is one word without a slash that does "    \
      "not begin with a dot. Not possible in a .jail file.")                                       \
    X(CONF, 'C', "conf", "FILE", CONF, CONFIG, "the configuration file to use",                    \
      "Default: CMD.conf if there is one, else default.conf. Without a slash it is a file in "     \
      "the configuration directory, and \".conf\" may be left out. In a file: reads another in "   \
      "this place.")                                                                               \
    X(CONF_OPTIONAL, 0, "conf?", "FILE", CONF, CONFIG, "the same; nothing if missing", "")         \
    X(STORAGE, 0, "storage", "DIR", DIRECTORY, CONFIG, "where jails are kept",                     \
      "Relative to the home directory in a file. An empty value means the default again.")         \
    X(NO_DEFAULTS, 0, "no-defaults", NULL, NONE, CONFIG,                                           \
      "without the built-in masks and environment filters",                                        \
      "They hold in all modes but \"sealed\", whatever the files say; see --print-defaults.")      \
    X(COMMAND, 0, "command", "TEXT", TEXT, CONFIG, "a line of shell that starts the command",      \
      "It is run by bash with the command as $0 and its words as $@. An empty one starts the "     \
      "command directly.")                                                                         \
    X(SCRIPT, 0, "script", "FILE", FILE, CONFIG, "what the shell reads before the command",        \
      "All of them are put together in one file in the jail, which $BRIG_SCRIPT names, in the "    \
      "order of the command line, the .conf and the .jail. It is sourced, unless --command "       \
      "says otherwise, and removes itself unless $BRIG_KEEP_SCRIPT is set. Relative to the "       \
      "configuration directory in a file.")                                                        \
    X(SCRIPT_OPTIONAL, 0, "script?", "FILE", FILE, CONFIG, "the same; nothing if missing", "")     \
    X(INITJAIL, 0, "initjail", "PROGRAM", FILE, CONFIG, "run once for a jail's new home, outside", \
      "It runs as you and not in a jail, when the home of a jail was just made, with that as "     \
      "the working directory. Relative to the configuration directory in a file.")                 \
    X(INITJAIL_OPTIONAL, 0, "initjail?", "PROGRAM", FILE, CONFIG, "the same; nothing if missing",  \
      "")                                                                                          \
    X(VIEW, 0, "view", "system|host|empty", CHOICE, POLICY,                                        \
      "what of the filesystem is there before grants",                                             \
      "\"system\": /usr, /bin, /lib and of /etc what programs need to run. \"host\": the whole "   \
      "host. \"empty\": nothing but /dev, /proc and the private directories. All are read-only.")  \
    X(ROOT, 0, "root", "DIR", DIRECTORY, POLICY, "use DIR as the root directory, read-only",       \
      "For a tree of another system, such as one made by debootstrap.")                            \
    X(SECCOMP, 0, "seccomp", "dev|code", CHOICE, POLICY, "the system calls allowed",               \
      "\"code\" denies by default and has what Python, Node and shells use. \"dev\" denies "       \
      "what is dangerous, and suits agents and build tools.")                                      \
    X(ALLOW_NESTED, 0, "allow-nested", NULL, NONE, POLICY,                                         \
      "let programs make a sandbox of their own inside",                                           \
      "Allows user namespaces and mounts in the jail, and no Landlock on files: use it for "       \
      "programs that refuse to run without their own sandbox.")                                    \
    X(TRACE_DENIALS, 0, "trace-denials", NULL, NONE, POLICY,                                       \
      "list the system calls that were refused",                                                   \
      "They are refused as ever, and counted in the result by name. What is answered as if the "   \
      "kernel had no such call is not listed. A program that goes on asking is slowed down.")      \
    X(ON_UNSUPPORTED, 0, "on-unsupported", "fail|warn|ignore", CHOICE, POLICY,                     \
      "if this system cannot enforce something",                                                   \
      "\"fail\" (the default) does not start the command. \"warn\" starts it with less and "       \
      "says what is missing. \"ignore\" does not say it; the result does.")                        \
    X(DISABLE, 0, "disable", "landlock|seccomp|caps|namespaces|nested", CHOICE, POLICY,            \
      "switch a layer off, to find what stops a program",                                          \
      "For diagnosis only: the others still hold, but one wall is missing. The result lists "      \
      "it. May be repeated.")                                                                      \
    X(NET, 0, "net", "none|allow|open|host|learn", CHOICE, NETWORK,                                \
      "which network it has (default: open; sealed: none)",                                        \
      "\"none\": nothing but loopback. \"allow\": what --allow names, and nothing else. "          \
      "\"open\": every public address, but not the host itself, the local network or a cloud's "   \
      "metadata service. \"host\": the host's own, without any restriction. \"learn\": as "        \
      "open, and at the end prints the rules that would have sufficed. The names deny_all and "    \
      "registry_allowlist are taken as well.")                                                     \
    X(ALLOW, 0, "allow", "DESTINATION", TEXT, NETWORK, "let this be reached",                      \
      "NAME[:PORTS], *.NAME for all names below, an address or a range as 10.0.0.0/8:5432, "       \
      "host:PORT for a service on the host's loopback, or a preset: @registries, @npm, @pypi, "    \
      "@crates, @go, @github, @anthropic, @openai. Ports are 443 and 80 if none are given; "       \
      "NAME:PORT/tls checks the name in TLS on other ports too. Without --net it means --net "     \
      "allow, but for host:PORT and private addresses where the mode is open: those are added "    \
      "to it. May be repeated.")                                                                   \
    X(DENY, 0, "deny", "DESTINATION", TEXT, NETWORK,                                               \
      "let this not be reached, whatever allows it",                                               \
      "Written as for --allow; without ports it is denied on all of them. Where all else is "      \
      "open and a name is denied, an address is reached only if it is allowed as an address, "     \
      "or if the connection says in TLS on port 443 or HTTP on port 80 which name it is for.")     \
    X(PUBLISH, 'p', "publish", "[ADDRESS:]HOSTPORT:PORT", TEXT, NETWORK,                           \
      "reach a server in the jail from the host",                                                  \
      "What connects to HOSTPORT of the host's loopback, or of ADDRESS, comes out at PORT of "     \
      "the jail's loopback.")                                                                      \
    X(INJECT, 0, "inject", "NAME HEADER=SOURCE", TEXT, NETWORK,                                    \
      "add a credential to requests, outside the jail",                                            \
      "Inside, NAME is reached by plain HTTP at a loopback address, which the variable given "     \
      "by url=VARIABLE has; outside, the header is added and TLS spoken. SOURCE is "               \
      "env:VARIABLE, file:PATH, fd:NUMBER or cmd:COMMAND LINE (the last word then); bearer: or "   \
      "basic:USER: before it says how it is written. Further words: methods=GET,POST, "            \
      "path=/PREFIX, upstream=https://HOST/PREFIX, strip=HEADER, ca=/FILE. With path= or a "       \
      "PREFIX, a request's path is compared and sent without '.', '..' and empty segments, and "   \
      "refused where servers could read it in more than one way. Short forms: @anthropic, "        \
      "@openai, @github, @npm, @pypi, each with a SOURCE behind it if it is not in the usual "     \
      "variable. The file of file: is hidden in the jail, by every name and whatever other "       \
      "rules show, and cannot be granted. So are the file of ca= and the files that the line "     \
      "of cmd: names, the program included, unless everybody can read them in a directory of "     \
      "the system such as /usr or /etc. Not hidden are hard links to them, and files that a "      \
      "program reads without being told their names.")                                             \
    X(PROXY_ENV, 0, "proxy-env", NULL, NONE, NETWORK, "set HTTP_PROXY and its kind inside",        \
      "For programs that find names only through a proxy. Nothing else needs it.")                 \
    X(NET_LOG, 0, "net-log", "FILE|FD", FILE, NETWORK,                                             \
      "write what is reached and refused as JSON",                                                 \
      "One line for each decision and for the end of each connection. Digits, or \"fd:N\", "       \
      "mean an open file descriptor; a file is appended to. Links are treated as with --result.")  \
    X(DIR, 'd', "dir", "PATH[:DEST]", PATH, FILES, "grant a file or directory, read-write",        \
      "It appears in the jail at DEST, or at its own path. A colon in a name is written "          \
      "\"\\:\". The most specific rule wins whatever the order, and a grant wins over what the "   \
      "jail has of its own at that place, as the home and /tmp.")                                  \
    X(DIR_CREATE, 0, "dir!", "PATH[:DEST]", PATH, FILES,                                           \
      "the same; create a directory if missing", "")                                               \
    X(DIR_OPTIONAL, 0, "dir?", "PATH[:DEST]", PATH, FILES, "the same; nothing if missing", "")     \
    X(RDIR, 'r', "rdir", "PATH[:DEST]", PATH, FILES, "grant a file or directory, read-only", "")   \
    X(RDIR_OPTIONAL, 0, "rdir?", "PATH[:DEST]", PATH, FILES, "the same; nothing if missing", "")   \
    X(MASK, 0, "mask", "PATH", HOME, FILES, "hide a file or directory",                            \
      "A relative path begins at your home directory; * and ? stand for any characters. One "      \
      "that begins with ./ or ../ on the command line begins at the working directory, and an "    \
      "absolute one is what it is: there an empty file or directory stands in its place, also "    \
      "when the host replaces the file while the jail runs. What symbolic links lead to is "       \
      "hidden with them. A mask that a new run brings holds at once in those there are.")          \
    X(MASK_OPTIONAL, 0, "mask?", "PATH", HOME, FILES, "the same; nothing if missing", "")          \
    X(UNMASK, 0, "unmask", "PATH", HOME, FILES, "show again what an earlier mask hides",           \
      "Takes back the same mask, or shows a part of what a wider one hides. What runs in the "     \
      "jail already sees it when all have ended.")                                                 \
    X(DEVICE, 0, "device", "PATH", PATH, FILES, "grant a device or a directory of them", "")       \
    X(DEVICE_OPTIONAL, 0, "device?", "PATH", PATH, FILES, "the same; nothing if missing", "")      \
    X(XDIR, 'x', "xdir", "PATH", PATH, FILES, "take back an earlier rule for exactly this path",   \
      "")                                                                                          \
    X(NOCWD, 'D', "nocwd", NULL, NONE, FILES, "do not grant the working directory",                \
      "Without this option the working directory is granted read-write, unless it is your home "   \
      "directory, a parent of it, or the root directory: that has to be asked for by --dir.")      \
    X(FOREIGN, 0, "foreign", NULL, NONE, FILES, "as root, work in a directory of another user",    \
      "Files of the project are then read and written outside the jail with the ids of that "      \
      "user.")                                                                                     \
    X(UNPROTECT, 0, "unprotect", "PATH", PATH, FILES, "let a protected path be written",           \
      "In a directory that is granted for writing, the command has a private git directory, "      \
      "and settings of editors and agents are read-only. PATH is a name from the top of that "     \
      "directory, such as \".git\" or \".vscode\", with everything below it; or an absolute "      \
      "path.")                                                                                     \
    X(PROTECT, 0, "protect", "hold|report|off", CHOICE, FILES,                                     \
      "what becomes of new files that execute something",                                          \
      "\"hold\" (the default) moves new settings of editors and agents to the jail's storage "     \
      "when the command ends: see brig held. \"report\" leaves them in place and names them. "     \
      "\"off\" is --no-protect.")                                                                  \
    X(NO_PROTECT, 0, "no-protect", NULL, NONE, FILES, "protect nothing in granted directories",    \
      "The command gets the real git directory. What it puts there, programs outside may run: "    \
      "git's hooks above all.")                                                                    \
    X(X11, 0, "x11", NULL, NONE, DESKTOP, "let the X display of $DISPLAY in",                      \
      "Its socket, and read-only the file of $XAUTHORITY. Any program on the display can be "      \
      "watched and typed into, also those outside.")                                               \
    X(WAYLAND, 0, "wayland", NULL, NONE, DESKTOP, "let the display of $WAYLAND_DISPLAY in",        \
      "Windows can be opened, and the clipboard read while one of them has the focus.")            \
    X(AUDIO, 0, "audio", NULL, NONE, DESKTOP, "let PulseAudio and PipeWire in",                    \
      "By their sockets in $XDG_RUNTIME_DIR, or where $PULSE_SERVER and $PIPEWIRE_REMOTE say. "    \
      "The microphone can be listened to.")                                                        \
    X(SSH_AGENT, 0, "ssh-agent", NULL, NONE, DESKTOP, "let the agent of $SSH_AUTH_SOCK in",        \
      "Its keys can be used wherever they open, but not read.")                                    \
    X(DBUS, 0, "dbus", NULL, NONE, DESKTOP, "let the session bus in",                              \
      "That of $DBUS_SESSION_BUS_ADDRESS. Programs can be started outside through it: it is a "    \
      "way out of the jail.")                                                                      \
    X(TIMEOUT, 0, "timeout", "DURATION", TEXT, LIMITS,                                             \
      "wall-clock time (30, 1.5s, 200ms, 5m, 1h)",                                                 \
      "The command gets SIGTERM, and after the grace SIGKILL, with everything it started. "        \
      "Every limit can be \"none\"; 0 is refused.")                                                \
    X(CPU_TIME, 0, "cpu-time", "DURATION", TEXT, LIMITS, "CPU time of all its processes", "")      \
    X(GRACE, 0, "grace", "DURATION", TEXT, LIMITS, "from SIGTERM to SIGKILL (default: 5s)",        \
      "0 kills at once.")                                                                          \
    X(MEMORY, 0, "memory", "SIZE", TEXT, LIMITS, "memory of the jail (sealed: 512M)",              \
      "Page cache and private directories count; there is no swap beyond it. Where the kernel "    \
      "ends a process for it, the whole jail ends (cgroup v2) and the outcome is \"oom\".")        \
    X(CPU, 0, "cpu", "PERCENT", TEXT, LIMITS, "CPU, in percent of one core (sealed: 100%)",        \
      "From 1% to that of all cores: 150% is one and a half.")                                     \
    X(PIDS, 0, "pids", "N", TEXT, LIMITS, "processes and threads in the jail (sealed: 1024)", "")  \
    X(DISK, 0, "disk", "SIZE", TEXT, LIMITS, "/tmp and what else is private (sealed: 512M)",       \
      "In a jail with a home also what that has on disk, by itself: see Limits.")                  \
    X(DISK_INODES, 0, "disk-inodes", "N", TEXT, LIMITS, "files in them (sealed: 65536)", "")       \
    X(IO_READ, 0, "io-read", "SIZE", TEXT, LIMITS, "bytes a second read from each disk",           \
      "With cgroup v2 only.")                                                                      \
    X(IO_WRITE, 0, "io-write", "SIZE", TEXT, LIMITS, "bytes a second written to each disk",        \
      "With cgroup v2 only.")                                                                      \
    X(ADDRESS_SPACE, 0, "address-space", "SIZE", TEXT, LIMITS,                                     \
      "address space per process (64M, 2G)", "")                                                   \
    X(FILE_SIZE, 0, "file-size", "SIZE", TEXT, LIMITS, "size of any file written", "")             \
    X(OPEN_FILES, 0, "open-files", "N", TEXT, LIMITS, "open files per process", "")                \
    X(OUTPUT, 0, "output", "SIZE", TEXT, LIMITS, "bytes of its output and of its errors",          \
      "Standard output and error then go through brig, as pipes; what is beyond the limit is "     \
      "thrown away, and the result says so.")                                                      \
    X(INOTIFY, 0, "inotify-watches", "N", TEXT, LIMITS, "inotify watches in the jail", "")         \
    X(NET_CONNECTIONS, 0, "net-connections", "N", TEXT, LIMITS,                                    \
      "connections through the network door at a time", "1024 if nothing is said.")                \
    X(NET_BYTES, 0, "net-bytes", "SIZE", TEXT, LIMITS, "bytes through it, both ways together",     \
      "What goes beyond ends every connection.")                                                   \
    X(NET_IDLE, 0, "net-idle", "DURATION", TEXT, LIMITS, "a connection without a byte either way", \
      "")                                                                                          \
    X(SETENV, 0, "setenv", "NAME[=VALUE]", ASSIGNMENT, ENVIRONMENT,                                \
      "set a variable, or pass yours on",                                                          \
      "Without a value the caller's variable is passed, past earlier --unsetenv patterns and "     \
      "those of the mode.")                                                                        \
    X(UNSETENV, 0, "unsetenv", "PATTERN", VARIABLE, ENVIRONMENT,                                   \
      "remove variables; * stands for any",                                                        \
      "The last of --setenv and --unsetenv that matches a name decides. The case of letters "      \
      "does not matter. A pattern with \"://\" in it is for addresses in values, as "              \
      "\"*://*:*@*\" is for those with a password.")                                               \
    X(WORKDIR, 0, "workdir", "PATH", PATH, ENVIRONMENT, "where the command starts, in the jail",   \
      "Default: the working directory if the jail has it, else the home directory.")               \
    X(HOSTNAME, 0, "hostname", "NAME", TEXT, ENVIRONMENT, "the host name inside", "")              \
    X(NO_TERMINAL, 0, "no-terminal", NULL, NONE, RUN, "give it /dev/null instead of a terminal",   \
      "Otherwise each of standard input, output and error that is a terminal is replaced by "      \
      "one of the jail's own; the host's terminal is never reachable from inside.")                \
    X(PASS_FD, 0, "pass-fd", "N", TEXT, RUN, "hand this open file descriptor in (3 to 255)",       \
      "All others but standard input, output and error are closed. May be repeated.")              \
    X(RESULT, 0, "result", "FILE|FD", PATH, RUN, "write what became of it as JSON",                \
      "A file is replaced in one step. Digits, or \"fd:N\", mean an open file descriptor; a "      \
      "file whose name is a number is written \"./7\". A path through a symbolic link that a "     \
      "program in a jail may have made is refused: links are followed in / and in your home "      \
      "directory itself and, unless brig acts for root, if the link and its directory belong "     \
      "to root.")                                                                                  \
    X(UNMOUNT, 'u', "unmount", NULL, NONE, RUN, "tear down all jails, or the one of -j",           \
      "Nothing of what they hold is lost but their /tmp. Runs no command.")                        \
    X(INIT, 0, "init", NULL, NONE, RUN, "write files to start a configuration from",               \
      "None that exists is touched.")                                                              \
    X(PRINT_DEFAULTS, 0, "print-defaults", NULL, NONE, RUN,                                        \
      "print the built-in masks and filters", "In the form of a configuration file.")              \
    X(COMPLETE, 0, "complete", NULL, NONE, RUN, "print completions of the words behind it",        \
      "For the shells' completions, and as the first option only: one a line, ended by a blank "   \
      "if nothing can follow, or \"_command_offset N\" if word N begins the command.")             \
    X(DRY_RUN, 0, "dry-run", NULL, NONE, RUN, "print the policy instead of running", "")           \
    X(PLAN, 0, "plan", NULL, NONE, RUN, "with --dry-run: print the jail in detail",                \
      "Mounts, ids, Landlock rules, system calls, limits, environment, network and "               \
      "descriptors, as they would be in the end. Nothing is started and nothing is made. "         \
      "Variables that are passed on are named without their values.")                              \
    X(FACTS, 0, "facts", "FILE", FILE, RUN, "with --plan: take this for what the kernel can do",   \
      "For tests: lines of a name and its values, all of them required: landlock ABI, "            \
      "namespaces yes|no, root yes|no, groups GID..., cgroup memory cpu pids io time, "            \
      "cgroup-at-hand yes|no, nproc-by-namespace yes|no, files SOFT HARD, proc NAME...; none "     \
      "for an empty list.")                                                                        \
    X(JSON, 0, "json", NULL, NONE, RUN, "with --dry-run, explain and why: as JSON", "")            \
    X(VERBOSE, 'v', "verbose", NULL, NONE, RUN, "say how it ended and what it used", "")           \
    X(HELP, 'h', "help", NULL, NONE, RUN, "print this help", "")                                   \
    X(VERSION, 0, "version", NULL, NONE, RUN, "print the version", "")

enum option_group {
#define OPTION_GROUP_ID(id, heading) OPTION_GROUP_##id,
    OPTION_GROUPS(OPTION_GROUP_ID)
#undef OPTION_GROUP_ID
        OPTION_GROUP_COUNT_
};

enum option_kind {
#define OPTION_KIND_ID(id, expands) OPTION_KIND_##id,
    OPTION_KINDS(OPTION_KIND_ID)
#undef OPTION_KIND_ID
};

enum option_id {
#define OPTION_ID(id, ...) OPTION_##id,
    OPTION_TABLE(OPTION_ID)
#undef OPTION_ID
        OPTION_COUNT_
};

struct option_row {
    enum option_id id;
    char short_name; /* or 0 */
    const char *long_name;
    const char *metavar; /* NULL: takes no value */
    enum option_kind kind;
    enum option_group group;
    const char *help;
    const char *more;
};

/* Indexed by enum option_id. */
extern const struct option_row option_rows[OPTION_COUNT_];
/* Whether variables are expanded in its value, in a file. */
bool option_expands(const struct option_row *row);
/* Indexed by enum option_group. */
extern const char *const option_headings[OPTION_GROUP_COUNT_];

/* The row of this name (length bytes long, without the dashes), or NULL. */
const struct option_row *option_find_long(const char *name, size_t length);
const struct option_row *option_find_short(char name);

/* Fails because there is no option, or no directive, of this name; with the nearest. */
int option_fail_unknown(const char *name, size_t length, bool directive, struct brig_error *err);

/* Where the parser stands. Zero-initialise but for argc, argv and `next`, the index to begin at. It
 * allocates nothing and asks the system nothing. */
struct options_cursor {
    int argc;
    char *const *argv;
    int next;            /* at the end: the index of the command's first word, or argc */
    const char *cluster; /* inside "-abc": what is left of it */
    bool ended;          /* "--" was read */
};

/* One option as given. The value points into argv. */
struct option_use {
    const struct option_row *row;
    const char *value; /* NULL if the row takes none */
};

/* Reads the next option: 1 and *ret_use, 0 at the first word that is none, or BRIG_E_INVALID. */
int options_next(struct options_cursor *cursor, struct option_use *ret_use, struct brig_error *err);
