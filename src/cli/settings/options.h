/* SPDX-License-Identifier: MIT */
/* All options of `brig run` in one table. The parser, --help, the OPTIONS section of the manual and
 * the completions are generated from it: to add an option, add a row and a setter (settings.c). */
#pragma once

#include <stdbool.h>

#include <brig/brig.h>

/* Groups in the order of --help: id, heading. */
#define OPTION_GROUPS(X)                                                                           \
    X(CONFIG, "The jail and its configuration")                                                    \
    X(POLICY, "The policy")                                                                        \
    X(NETWORK, "Network")                                                                          \
    X(FILES, "Files")                                                                              \
    X(DESKTOP, "The desktop session (not reachable by default)")                                   \
    X(LIMITS, "Limits (\"none\" removes one)")                                                     \
    X(ENVIRONMENT, "Environment and identity")                                                     \
    X(RUN, "The run")

/* Kinds of values, for completions and files: id, and whether ${VARIABLES} are expanded in a file. */
#define OPTION_KINDS(X)                                                                            \
    X(NONE, false)                                                                                 \
    X(TEXT, false)                                                                                 \
    X(CHOICE, false)                                                                               \
    X(SWITCH, false) /* one of several words, or none: --review, --review=auto */                  \
    X(PATH, true)    /* a file or directory */                                                     \
    X(FILE, false)   /* the same, not expanded */                                                  \
    X(DIRECTORY, true)                                                                             \
    X(CONF, true)      /* a .conf file */                                                          \
    X(JAIL, false)     /* the name of a jail */                                                    \
    X(HOME, true)      /* a path in the home directory */                                          \
    X(VARIABLE, false) /* the name of a variable, or a pattern */                                  \
    X(ASSIGNMENT, true)                                                                            \
    X(DESTINATION, false) /* of the network, or a preset of them */                                \
    X(CREDENTIAL, false)  /* of --inject */                                                        \
    X(PROFILE, false)     /* the name of a profile */                                              \
    X(IMAGE, false)       /* the name of an image */

/* Rows: id, short (0: none), long, metavar (NULL: takes no value), kind, group, help, more.
 *
 * `help` is the line in --help, without a full stop; `more` is text for the manual only. A CHOICE
 * lists its words in the metavar, separated by '|'; so does a SWITCH, whose value may be missing and
 * is attached by '='. The long name is also the name of the directive in configuration files; the
 * options of the RUN group exist on the command line only. */
#define OPTION_TABLE(X)                                                                            \
    X(MODE, 'm', "mode", "casual|bare|strict|sealed", CHOICE, CONFIG,                              \
      "the preset to start from (default: casual)",                                                \
      "A mode is a preset of everything below; options refine it whatever their order. "           \
      "\"casual\": your home directory is copy-on-write, without the masked files; the rest of "   \
      "the host is read-only. \"bare\": an empty home that belongs to the jail. \"strict\": "      \
      "system directories and grants only, and an empty home. \"sealed\": like strict, with a "    \
      "home that is deleted after the run, no network and the syscall profile \"code\". The "      \
      "default for a jail with a name is \"strict\".")                                             \
    X(JAIL, 'j', "jail", "NAME", JAIL, CONFIG, "the jail to use (default: that of the project)",   \
      "Each jail has its own home and /tmp, and a file NAME.jail with its settings, which is "     \
      "created on first use and stores the mode. A name is one word without a slash that does "    \
      "not begin with a dot. Without this option each project has a jail of its own: the "         \
      "project is the top directory of the git repository, else the working directory. A run "     \
      "without one, as with -D, uses the jail \"default\". Not possible in a .jail file.")         \
    X(CONF, 'C', "conf", "FILE", CONF, CONFIG, "the configuration file to use",                    \
      "Default: CMD.conf if it exists, else default.conf. A name without a slash is a file in "    \
      "the configuration directory, and \".conf\" may be left out. In a file: includes another "   \
      "file at this point.")                                                                       \
    X(CONF_OPTIONAL, 0, "conf?", "FILE", CONF, CONFIG, "the same, ignored if missing", "")         \
    X(PROFILE, 0, "profile", "NAME", PROFILE, CONFIG, "the profile of an agent or tool to use",    \
      "Default: the one for the command, see brig profiles; \"none\" means no profile. What a "    \
      "profile sets is weaker than every file and option. In the mode \"sealed\" a profile is "    \
      "used only with this option. In a file: conf @NAME.")                                        \
    X(STORAGE, 0, "storage", "DIR", DIRECTORY, CONFIG, "where jails are kept",                     \
      "In a file, relative to the home directory. An empty value restores the default.")           \
    X(NO_DEFAULTS, 0, "no-defaults", NULL, NONE, CONFIG,                                           \
      "do not use the built-in masks and environment filters",                                     \
      "They apply in all modes but \"sealed\", whatever the files say; see --print-defaults.")     \
    X(COMMAND, 0, "command", "TEXT", TEXT, CONFIG, "a shell command line that starts the command", \
      "It is run by bash with the command as $0 and its arguments as $@. An empty one starts "     \
      "the command directly.")                                                                     \
    X(SCRIPT, 0, "script", "FILE", FILE, CONFIG, "a file that the shell reads before the command", \
      "All scripts are joined in one file in the jail, which $BRIG_SCRIPT names, in the order "    \
      "of the command line, the .conf and the .jail. The shell sources it, unless --command "      \
      "says otherwise, and it removes itself unless $BRIG_KEEP_SCRIPT is set. In a file, "         \
      "relative to the configuration directory.")                                                  \
    X(SCRIPT_OPTIONAL, 0, "script?", "FILE", FILE, CONFIG, "the same, ignored if missing", "")     \
    X(INITJAIL, 0, "initjail", "PROGRAM", FILE, CONFIG,                                            \
      "run once, outside the jail, for a new home",                                                \
      "It runs as you and not in a jail, right after the home of a jail is created, with the "     \
      "home as the working directory. In a file, relative to the configuration directory.")        \
    X(INITJAIL_OPTIONAL, 0, "initjail?", "PROGRAM", FILE, CONFIG, "the same, ignored if missing",  \
      "")                                                                                          \
    X(VIEW, 0, "view", "system|host|empty", CHOICE, POLICY,                                        \
      "which host files are visible without grants",                                               \
      "\"system\": /usr, /bin, /lib and the files of /etc that programs need. \"host\": the "      \
      "whole host. \"empty\": only /dev, /proc and the private directories. All are read-only.")   \
    X(ROOT, 0, "root", "DIR", DIRECTORY, POLICY, "use DIR as the root directory, read-only",       \
      "For a tree of another system, such as one made by debootstrap.")                            \
    X(IMAGE, 0, "image", "NAME", IMAGE, POLICY, "use a container image as the root directory",     \
      "The image must have been loaded with brig image load. The command sees its files instead "  \
      "of the host's, and can change them: changes are in memory, counted with /tmp, and gone "    \
      "after the run. Without a command, that of the image is run. Its variables are set unless "  \
      "a rule sets them, and its working directory is used unless the jail has yours; its user "   \
      "is ignored.")                                                                               \
    X(SECCOMP, 0, "seccomp", "dev|code", CHOICE, POLICY, "which system calls are allowed",         \
      "\"code\" allows only what Python, Node and shells use. \"dev\" denies dangerous calls "     \
      "only, and suits agents and build tools.")                                                   \
    X(ALLOW_NESTED, 0, "allow-nested", NULL, NONE, POLICY,                                         \
      "let programs create their own sandbox inside",                                              \
      "Allows user namespaces and mounts in the jail, and drops the Landlock rules for files. "    \
      "For programs that refuse to run without their own sandbox.")                                \
    X(TRACE_DENIALS, 0, "trace-denials", NULL, NONE, POLICY,                                       \
      "list the system calls that were refused",                                                   \
      "They are refused as usual, and counted by name in the result. clone3 and openat2 are not "  \
      "listed, as every program has a fallback. A program that repeats refused calls is slowed "   \
      "down.")                                                                                     \
    X(ON_UNSUPPORTED, 0, "on-unsupported", "fail|warn|ignore", CHOICE, POLICY,                     \
      "what to do if this system cannot enforce a rule",                                           \
      "\"fail\" (the default) does not start the command. \"warn\" starts it and lists on "        \
      "standard error what is not enforced. \"ignore\" lists it in the result only.")              \
    X(DISABLE, 0, "disable", "landlock|seccomp|caps|namespaces|nested", CHOICE, POLICY,            \
      "switch a layer off, to find what stops a program",                                          \
      "For diagnosis only: the other layers remain, but the jail is weaker. The result lists "     \
      "it. May be repeated.")                                                                      \
    X(NET, 0, "net", "none|loopback|allow|ask|open|host|learn", CHOICE, NETWORK,                   \
      "the network of the jail (default: open; sealed: none)",                                     \
      "\"none\": no network; the syscall profile \"code\" refuses sockets. \"loopback\": no "      \
      "network but the jail's loopback interface, in every profile. \"allow\": the destinations "  \
      "of --allow only. \"ask\": the same, but a connection to another name waits until you "      \
      "decide about it with brig allow, in another terminal, for at most two minutes. \"open\": "  \
      "every "                                                                                     \
      "public address, but not the host itself, the local network or a cloud's metadata "          \
      "service. \"host\": the host's own network, without any restriction. \"learn\": like "       \
      "open, and prints at the end the rules that would have been enough. The names deny_all "     \
      "and registry_allowlist are accepted as well.")                                              \
    X(ALLOW, 0, "allow", "DESTINATION", DESTINATION, NETWORK,                                      \
      "allow connections to a destination",                                                        \
      "NAME[:PORTS], *.NAME for all names below, an address or a range such as "                   \
      "10.0.0.0/8:5432, host:PORT for a service on the host's loopback, or a preset: "             \
      "@registries, @npm, @pypi, @crates, @go, @github, @anthropic, @openai. The default ports "   \
      "are 443 and 80; NAME:PORT/tls checks the name in TLS on other ports too. Without --net "    \
      "it implies --net allow, except for host:PORT and private addresses where the mode is "      \
      "open: these are added to it. May be repeated.")                                             \
    X(DENY, 0, "deny", "DESTINATION", DESTINATION, NETWORK,                                        \
      "deny connections to a destination, even if allowed",                                        \
      "Written as for --allow; without ports it is denied on all of them. If a name is denied "    \
      "while the network is open, an address is reached only if it is allowed as an address, "     \
      "or if the connection names its host in TLS on port 443 or in HTTP on port 80.")             \
    X(PUBLISH, 'p', "publish", "[ADDRESS:]HOSTPORT:PORT", TEXT, NETWORK,                           \
      "reach a server in the jail from the host",                                                  \
      "Connections to HOSTPORT on the host's loopback, or on ADDRESS, are forwarded to PORT on "   \
      "the jail's loopback.")                                                                      \
    X(INJECT, 0, "inject", "NAME HEADER=SOURCE", CREDENTIAL, NETWORK,                              \
      "add a credential to requests, outside the jail",                                            \
      "Inside, NAME is reached by plain HTTP at a loopback address, which is in the variable "     \
      "of url=VARIABLE; outside, the header is added and TLS is used. SOURCE is env:VARIABLE, "    \
      "file:PATH, fd:NUMBER, oauth:AGENT (see brig login) or cmd:COMMAND LINE (which must come "   \
      "last); bearer: or basic:USER: "                                                             \
      "before it selects the form. Further words: methods=GET,POST, path=/PREFIX, "                \
      "upstream=https://HOST/PREFIX, strip=HEADER, ca=/FILE. With path= or a PREFIX, the path "    \
      "of a request is compared and sent without '.', '..' and empty segments, and refused if "    \
      "servers could read it in more than one way. WebSockets are relayed. Short forms: "          \
      "@anthropic, @claude, @openai, @codex, @gemini, @openrouter, @github, @npm, @pypi, each "    \
      "followed by a "                                                                             \
      "SOURCE if the secret is not in the usual variable, and @git: passwords in the URLs of "     \
      "the remotes of the repository here. @npm and @pypi also find the secret in ~/.npmrc "       \
      "and in pip's configuration. The "                                                           \
      "file of file: is hidden in the jail under every name and cannot be granted. The file of "   \
      "ca= and the files named in the line of cmd:, the program included, are hidden as well, "    \
      "unless every user can read them in a directory of the system such as /usr or /etc. Hard "   \
      "links to these files are not hidden, nor are files that a program reads without being "     \
      "told their names.")                                                                         \
    X(INJECT_OPTIONAL, 0, "inject?", "NAME HEADER=SOURCE", CREDENTIAL, NETWORK,                    \
      "the same, ignored if there is no secret",                                                   \
      "Also ignored if another --inject is for the same NAME, and with --net none or host.")       \
    X(PROXY_ENV, 0, "proxy-env", NULL, NONE, NETWORK,                                              \
      "set HTTP_PROXY and similar variables inside",                                               \
      "For programs that resolve names only through a proxy. Others do not need it.")              \
    X(NET_LOG, 0, "net-log", "FILE|FD", FILE, NETWORK,                                             \
      "write allowed and refused connections as JSON",                                             \
      "One line for each decision and for the end of each connection. Digits, or \"fd:N\", "       \
      "mean an open file descriptor; a file is appended to. Symbolic links are treated as with "   \
      "--result.")                                                                                 \
    X(DIR, 'd', "dir", "PATH[:DEST]", PATH, FILES, "grant a file or directory, read-write",        \
      "It appears in the jail at DEST, or at its own path. A colon in a name is written "          \
      "\"\\:\". The most specific rule wins whatever the order, and a grant replaces the "         \
      "private directories of the jail, such as the home and /tmp.")                               \
    X(DIR_CREATE, 0, "dir!", "PATH[:DEST]", PATH, FILES,                                           \
      "the same, created as a directory if missing", "")                                           \
    X(DIR_OPTIONAL, 0, "dir?", "PATH[:DEST]", PATH, FILES, "the same, ignored if missing", "")     \
    X(RDIR, 'r', "rdir", "PATH[:DEST]", PATH, FILES, "grant a file or directory, read-only", "")   \
    X(RDIR_OPTIONAL, 0, "rdir?", "PATH[:DEST]", PATH, FILES, "the same, ignored if missing", "")   \
    X(REVIEW, 'R', "review", "on|auto|off", SWITCH, FILES,                                         \
      "make the working directory copy-on-write",                                                  \
      "The command sees its changes, and your files stay as they are until you apply them: see "   \
      "Reviewing. Its commits are kept below refs/brig/. The next run of the jail in this "        \
      "directory continues with the changes. \"auto\" applies changes without a risk or a "        \
      "conflict when nothing was written for a second, and at the end of the run. \"off\" undoes " \
      "an earlier \"review\", for example of a file.")                                             \
    X(REVIEW_DIR, 0, "review-dir", "PATH[:DEST]", PATH, FILES, "grant a directory, copy-on-write", \
      "Like --dir, with the changes written aside as with --review.")                              \
    X(MASK, 0, "mask", "PATH", HOME, FILES, "hide a file or directory",                            \
      "A relative path begins at your home directory; * and ? match any characters. On the "       \
      "command line, a path that begins with ./ or ../ begins at the working directory. For "      \
      "those and for absolute paths an empty file or directory is shown instead, also when the "   \
      "host replaces the file while the jail runs. The targets of symbolic links are hidden "      \
      "too. A mask of a new run applies at once to the runs that exist.")                          \
    X(MASK_OPTIONAL, 0, "mask?", "PATH", HOME, FILES, "the same, ignored if missing", "")          \
    X(UNMASK, 0, "unmask", "PATH", HOME, FILES, "show a path that an earlier mask hides",          \
      "Removes the same mask, or shows a part of what a wider one hides. Programs that run in "    \
      "the jail already see the path after all of them have ended.")                               \
    X(DEVICE, 0, "device", "PATH", PATH, FILES, "grant a device, or a directory of devices", "")   \
    X(DEVICE_OPTIONAL, 0, "device?", "PATH", PATH, FILES, "the same, ignored if missing", "")      \
    X(XDIR, 'x', "xdir", "PATH", PATH, FILES, "remove an earlier rule for exactly this path", "")  \
    X(NOCWD, 'D', "nocwd", NULL, NONE, FILES, "do not grant the working directory",                \
      "Without this option the working directory is granted read-write, unless it is your home "   \
      "directory, a parent of it, or the root directory: these need --dir.")                       \
    X(FOREIGN, 0, "foreign", NULL, NONE, FILES, "as root, work in a directory of another user",    \
      "Outside the jail, files of the project are then read and written with that user's ids.")    \
    X(UNPROTECT, 0, "unprotect", "PATH", PATH, FILES, "make a protected path writable",            \
      "In a directory that is granted for writing, the command has a private git directory, "      \
      "and settings of editors and agents are read-only. PATH is a name from the top of that "     \
      "directory, such as \".git\" or \".vscode\", and includes everything below it; or an "       \
      "absolute path.")                                                                            \
    X(PROTECT, 0, "protect", "hold|report|off", CHOICE, FILES,                                     \
      "what to do with new files that execute code",                                               \
      "\"hold\" (the default) moves new settings of editors and agents to the jail's storage "     \
      "when the command ends: see brig held. \"report\" leaves them in place and lists them. "     \
      "\"off\" is --no-protect.")                                                                  \
    X(NO_PROTECT, 0, "no-protect", NULL, NONE, FILES, "protect nothing in granted directories",    \
      "The command gets the real git directory. Programs outside may run the files that it "       \
      "writes there, such as git hooks.")                                                          \
    X(CHECKPOINT, 0, "checkpoint", NULL, NONE, FILES,                                              \
      "keep what the command could overwrite or delete",                                           \
      "Before the command starts, the contents of the directories that it can write to are "       \
      "stored in the jail's storage, where no jail can reach them; brig undo then restores "       \
      "what the command has changed. Files that git ignores are included up to "                   \
      "--checkpoint-size; what is left out is reported. If nothing has changed since the last "    \
      "checkpoint, it costs about as much as git status.")                                         \
    X(CHECKPOINT_OPTIONAL, 0, "checkpoint?", NULL, NONE, FILES, "the same, if it is possible",     \
      "Without git brig says so and runs the command without a checkpoint. Of files that are not " \
      "stored yet it reads at most 256 MiB: the others are left out, and reported.")               \
    X(CHECKPOINT_SIZE, 0, "checkpoint-size", "SIZE", TEXT, FILES,                                  \
      "up to which size ignored files are kept (default: 16M)",                                    \
      "The limit for each file or whole directory that git ignores. On a filesystem that can "     \
      "share blocks between files (btrfs, XFS), larger ones are included as well.")                \
    X(NO_CHECKPOINT, 0, "no-checkpoint", NULL, NONE, FILES, "take no checkpoint",                  \
      "Overrides an earlier --checkpoint, for example in a file.")                                 \
    X(X11, 0, "x11", NULL, NONE, DESKTOP, "grant the X display of $DISPLAY",                       \
      "Its socket, and the file of $XAUTHORITY read-only. The command can watch and type into "    \
      "every program on the display, also those outside the jail.")                                \
    X(WAYLAND, 0, "wayland", NULL, NONE, DESKTOP, "grant the display of $WAYLAND_DISPLAY",         \
      "The command can open windows, and read the clipboard while one of them has the focus.")     \
    X(AUDIO, 0, "audio", NULL, NONE, DESKTOP, "grant PulseAudio and PipeWire",                     \
      "By their sockets in $XDG_RUNTIME_DIR, or as $PULSE_SERVER and $PIPEWIRE_REMOTE say. The "   \
      "command can record the microphone.")                                                        \
    X(SSH_AGENT, 0, "ssh-agent", NULL, NONE, DESKTOP, "grant the SSH agent of $SSH_AUTH_SOCK",     \
      "The command can log in with its keys, but cannot read them.")                               \
    X(GPG_AGENT, 0, "gpg-agent", NULL, NONE, DESKTOP, "grant GnuPG's agent, to sign commits",      \
      "The agent's restricted socket, and the public keys read-only, in a directory that "         \
      "$GNUPGHOME names in the jail. The command can sign and decrypt with your keys, but "        \
      "cannot read them. The agent asks for passphrases outside.")                                 \
    X(DBUS, 0, "dbus", NULL, NONE, DESKTOP, "grant the session bus",                               \
      "The bus of $DBUS_SESSION_BUS_ADDRESS. The command can start programs outside the jail "     \
      "through it, and so leave the jail.")                                                        \
    X(TIMEOUT, 0, "timeout", "DURATION", TEXT, LIMITS,                                             \
      "wall-clock time (30, 1.5s, 200ms, 5m, 1h)",                                                 \
      "The command gets SIGTERM and, after the grace period, SIGKILL, with everything it "         \
      "started. Every limit can be \"none\"; 0 is refused.")                                       \
    X(CPU_TIME, 0, "cpu-time", "DURATION", TEXT, LIMITS, "CPU time of all its processes", "")      \
    X(GRACE, 0, "grace", "DURATION", TEXT, LIMITS, "from SIGTERM to SIGKILL (default: 5s)",        \
      "0 kills at once.")                                                                          \
    X(MEMORY, 0, "memory", "SIZE", TEXT, LIMITS, "memory of the jail (sealed: 512M)",              \
      "Page cache and private directories count; there is no swap beyond it. Beyond it the "       \
      "kernel kills the largest process, and the command goes on unless it is that one. In mode "  \
      "sealed the whole jail ends (cgroup v2). If the command ends, the outcome is \"oom\".")      \
    X(CPU, 0, "cpu", "PERCENT", TEXT, LIMITS, "CPU, in percent of one core (sealed: 100%)",        \
      "From 1% to 100% of every core: 150% is one and a half cores.")                              \
    X(PIDS, 0, "pids", "N", TEXT, LIMITS, "processes and threads in the jail (sealed: 1024)", "")  \
    X(DISK, 0, "disk", "SIZE", TEXT, LIMITS,                                                       \
      "size of /tmp and other private directories (sealed: 512M)",                                 \
      "In a jail with a home, a second limit of the same size applies to the home on disk: see "   \
      "Limits.")                                                                                   \
    X(DISK_INODES, 0, "disk-inodes", "N", TEXT, LIMITS, "number of files in them (sealed: 65536)", \
      "")                                                                                          \
    X(IO_READ, 0, "io-read", "SIZE", TEXT, LIMITS, "bytes a second read from each disk",           \
      "With cgroup v2 only.")                                                                      \
    X(IO_WRITE, 0, "io-write", "SIZE", TEXT, LIMITS, "bytes a second written to each disk",        \
      "With cgroup v2 only.")                                                                      \
    X(ADDRESS_SPACE, 0, "address-space", "SIZE", TEXT, LIMITS,                                     \
      "address space per process (64M, 2G)", "")                                                   \
    X(FILE_SIZE, 0, "file-size", "SIZE", TEXT, LIMITS, "size of any file written", "")             \
    X(OPEN_FILES, 0, "open-files", "N", TEXT, LIMITS, "open files per process", "")                \
    X(OUTPUT, 0, "output", "SIZE", TEXT, LIMITS,                                                   \
      "bytes of standard output, and of standard error",                                           \
      "Both then go through brig, as pipes; bytes beyond the limit are dropped, and the result "   \
      "says so.")                                                                                  \
    X(INOTIFY, 0, "inotify-watches", "N", TEXT, LIMITS, "inotify watches in the jail", "")         \
    X(NET_CONNECTIONS, 0, "net-connections", "N", TEXT, LIMITS,                                    \
      "concurrent connections through the broker", "The default is 1024.")                         \
    X(NET_BYTES, 0, "net-bytes", "SIZE", TEXT, LIMITS,                                             \
      "bytes through the broker, in both directions", "Beyond it all connections are closed.")     \
    X(NET_IDLE, 0, "net-idle", "DURATION", TEXT, LIMITS,                                           \
      "close a connection after this time without data", "")                                       \
    X(SETENV, 0, "setenv", "NAME[=VALUE]", ASSIGNMENT, ENVIRONMENT,                                \
      "set a variable, or pass on your own",                                                       \
      "Without a value your variable is passed on, even if earlier --unsetenv patterns or "        \
      "those of the mode match it.")                                                               \
    X(UNSETENV, 0, "unsetenv", "PATTERN", VARIABLE, ENVIRONMENT,                                   \
      "remove variables; * matches any characters",                                                \
      "The last --setenv or --unsetenv that matches a name decides. Upper and lower case are "     \
      "equal. A pattern that contains \"://\" is compared with addresses in values: "              \
      "\"*://*:*@*\" matches those with a password.")                                              \
    X(WORKDIR, 0, "workdir", "PATH", PATH, ENVIRONMENT, "where the command starts, in the jail",   \
      "Default: the working directory if the jail contains it, else the home directory.")          \
    X(HOSTNAME, 0, "hostname", "NAME", TEXT, ENVIRONMENT, "the host name inside", "")              \
    X(NO_TERMINAL, 0, "no-terminal", NULL, NONE, RUN, "use /dev/null instead of a terminal",       \
      "Otherwise each of standard input, output and error that is a terminal is replaced by a "    \
      "terminal of the jail; the host's terminal is never reachable from inside.")                 \
    X(PASS_FD, 0, "pass-fd", "N", TEXT, RUN, "pass this open file descriptor on (3 to 255)",       \
      "All others but standard input, output and error are closed. May be repeated.")              \
    X(RESULT, 0, "result", "FILE|FD", PATH, RUN, "write the result of the run as JSON",            \
      "A file is replaced in one step. Digits, or \"fd:N\", mean an open file descriptor; a "      \
      "file whose name is a number is written \"./7\". A path through a symbolic link that a "     \
      "program in a jail may have made is refused: links are followed in / and in your home "      \
      "directory itself and, unless brig acts for root, if the link and its directory belong "     \
      "to root.")                                                                                  \
    X(NET_RULES, 0, "net-rules", "FD", TEXT, RUN, "write the rules that were learnt to FD too",    \
      "Digits, or \"fd:N\": an open file descriptor. It gets the directives that --net learn "     \
      "prints, without other messages.")                                                           \
    X(UNMOUNT, 'u', "unmount", NULL, NONE, RUN, "unmount all jails, or the one of -j",             \
      "Only their /tmp is lost. Runs no command.")                                                 \
    X(INIT, 0, "init", NULL, NONE, RUN, "write example configuration files",                       \
      "Existing files are not changed.")                                                           \
    X(PRINT_DEFAULTS, 0, "print-defaults", NULL, NONE, RUN,                                        \
      "print the built-in masks and filters", "As a configuration file.")                          \
    X(COMPLETE, 0, "complete", NULL, NONE, RUN, "print completions for the words that follow",     \
      "For the completions of shells, and as the first option only: one per line, with a blank "   \
      "at its end if it is complete, then a tab and a description if there is one. Lines that "    \
      "begin with a tab are for the shell: \"_files N\", \"_directories N\" and "                  \
      "\"_command_offset N\" mean paths, which begin after N bytes of the word, and a command, "   \
      "which begins with word N.")                                                                 \
    X(DRY_RUN, 0, "dry-run", NULL, NONE, RUN, "print the policy instead of running", "")           \
    X(PLAN, 0, "plan", NULL, NONE, RUN, "with --dry-run: print the jail in detail",                \
      "Mounts, ids, Landlock rules, system calls, limits, environment, network and descriptors "   \
      "of the finished jail. Nothing is started or created. Variables that are passed on are "     \
      "named without their values.")                                                               \
    X(FACTS, 0, "facts", "FILE", FILE, RUN, "with --plan: use these kernel features",              \
      "For tests: lines of a name and its values, all of them required: landlock ABI, "            \
      "namespaces yes|no, root yes|no, groups GID..., cgroup memory cpu pids io time, "            \
      "cgroup-at-hand yes|no, nproc-by-namespace yes|no, files SOFT HARD, proc NAME...; none "     \
      "for an empty list.")                                                                        \
    X(JSON, 0, "json", NULL, NONE, RUN, "with --dry-run, explain and why: as JSON", "")            \
    X(VERBOSE, 'v', "verbose", NULL, NONE, RUN, "report the outcome and the resources used", "")   \
    X(HELP, 'h', "help", NULL, NONE, RUN, "print this help", "")                                   \
    X(VERSION, 0, "version", NULL, NONE, RUN, "print the version",                                 \
      "With -v also the features and libraries that brig was built with.")

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
/* Whether the option must have a value; a SWITCH may have one. */
bool option_needs_value(const struct option_row *row);
/* Whether ${VARIABLES} in the value are expanded in a file. */
bool option_expands(const struct option_row *row);
/* Indexed by enum option_group. */
extern const char *const option_headings[OPTION_GROUP_COUNT_];

/* The row with this long name (`length` bytes, without the dashes), or NULL. */
const struct option_row *option_find_long(const char *name, size_t length);
const struct option_row *option_find_short(char name);

/* Fails because no option or directive has this name; suggests the nearest name. */
int option_fail_unknown(const char *name, size_t length, bool directive, struct brig_error *err);

/* Fails because an option was given more than `max` times; `value` is the first one too many. */
int option_fail_too_many(const char *value, int max, struct brig_error *err);

/* The position of the parser. Zero-initialise, except for argc, argv and `next`, the index to begin
 * at. The parser allocates nothing and makes no system call. */
struct options_cursor {
    int argc;
    char *const *argv;
    int next;            /* at the end: the index of the command's first word, or argc */
    const char *cluster; /* inside "-abc": the remaining letters */
    bool ended;          /* "--" was read */
};

/* One option as given. The value points into argv. */
struct option_use {
    const struct option_row *row;
    const char *value; /* NULL if the row takes none */
};

/* Reads the next option: 1 and *ret_use, 0 at the first word that is not an option, or
 * BRIG_E_INVALID. */
int options_next(struct options_cursor *cursor, struct option_use *ret_use, struct brig_error *err);
