# SPDX-License-Identifier: MIT
# Completion of brig for fish. Made by tools/gen-cli-docs; do not edit.

# Asks brig, where the answer depends on the user's files.
function __brig_ask
    brig --complete $argv[1] (commandline -ct) 2>/dev/null | string trim --right
end

# True while no command has been typed; options after it belong to it.
function __brig_before_command
    set -l skip 0
    for word in (commandline -opc)[2..-1]
        if test $skip = 1
            set skip 0
            continue
        end
        switch $word
            case run explain why
                continue
            case -m '--mode' -j '--jail' -C '--conf' '--conf?' '--storage' '--command' '--script' '--script?' '--initjail' '--initjail?' '--view' '--root' '--seccomp' '--on-unsupported' '--disable' '--net' '--allow' '--deny' -p '--publish' '--inject' '--net-log' -d '--dir' '--dir!' '--dir?' -r '--rdir' '--rdir?' '--mask' '--mask?' '--unmask' '--device' '--device?' -x '--xdir' '--unprotect' '--protect' '--timeout' '--cpu-time' '--grace' '--memory' '--cpu' '--pids' '--disk' '--disk-inodes' '--io-read' '--io-write' '--address-space' '--file-size' '--open-files' '--output' '--inotify-watches' '--net-connections' '--net-bytes' '--net-idle' '--setenv' '--unsetenv' '--workdir' '--hostname' '--pass-fd' '--result' '--facts'
                set skip 1
            case '--'
                return 1
            case '-*'
                continue
            case '*'
                return 1
        end
    end
end

# True where the name of a jail is to follow.
function __brig_awaits_jail
    set -l words (commandline -opc)
    switch "$words[2]"
        case stop rm
            return 0
        case enter
            test (count $words) = 2
            return
        case mask unmask sync held keep discard
            contains -- $words[-1] -j --jail
            return
    end
    return 1
end

# True where a path in the home directory is to follow.
function __brig_awaits_mask
    set -l words (commandline -opc)
    contains -- "$words[2]" mask unmask; and not contains -- $words[-1] -j --jail
end

complete -c brig -n __fish_use_subcommand -f -a run -d 'run a command in a jail (the default)'
complete -c brig -n __fish_use_subcommand -f -a explain -d 'print what a run would be allowed, and why (--dry-run)'
complete -c brig -n __fish_use_subcommand -f -a why -d 'tell whether a path or host is within a jail\'s reach, and by which rule'
complete -c brig -n __fish_use_subcommand -f -a list -d 'list jails, what they keep and who is in them'
complete -c brig -n __fish_use_subcommand -f -a enter -d 'open a shell in a jail in which something runs'
complete -c brig -n __fish_use_subcommand -f -a stop -d 'end what runs in a jail'
complete -c brig -n __fish_use_subcommand -f -a rm -d 'remove a jail with all it keeps'
complete -c brig -n __fish_use_subcommand -f -a cp -d 'copy files into a jail or out of it'
complete -c brig -n __fish_use_subcommand -f -a mask -d 'hide something of the home in a jail, at once'
complete -c brig -n __fish_use_subcommand -f -a unmask -d 'no longer hide it, from the jail\'s next mount on'
complete -c brig -n __fish_use_subcommand -f -a sync -d 'transfer what jails did in git'
complete -c brig -n __fish_use_subcommand -f -a held -d 'list files that were held back, or print one'
complete -c brig -n __fish_use_subcommand -f -a keep -d 'restore a file that was held back'
complete -c brig -n __fish_use_subcommand -f -a discard -d 'delete a file that was held back'
complete -c brig -n __fish_use_subcommand -f -a init -d 'write files to start a configuration from'
complete -c brig -n __fish_use_subcommand -f -a doctor -d 'say what this system can enforce, and the remedy where it cannot'
complete -c brig -n __fish_use_subcommand -f -a help -d 'print this help, or the usage of a command'
complete -c brig -n __fish_use_subcommand -f -a version -d 'print the version'
complete -c brig -n '__brig_awaits_jail' -f -a "(__brig_ask '--jail')"
complete -c brig -n '__brig_awaits_mask' -f -a "(__brig_ask '--mask')"
complete -c brig -n __brig_before_command -s m -l 'mode' -x -a 'casual bare strict sealed' -d 'the preset to start from (default: casual)'
complete -c brig -n __brig_before_command -s j -l 'jail' -x -a "(__brig_ask '--jail')" -d 'the jail to use (default: default)'
complete -c brig -n __brig_before_command -s C -l 'conf' -x -a "(__brig_ask '--conf')" -d 'the configuration file to use'
complete -c brig -n __brig_before_command -l 'conf?' -x -a "(__brig_ask '--conf?')" -d 'the same; nothing if missing'
complete -c brig -n __brig_before_command -l 'storage' -x -a '(__fish_complete_directories)' -d 'where jails are kept'
complete -c brig -n __brig_before_command -l 'no-defaults' -d 'without the built-in masks and environment filters'
complete -c brig -n __brig_before_command -l 'command' -x -d 'a line of shell that starts the command'
complete -c brig -n __brig_before_command -l 'script' -r -F -d 'what the shell reads before the command'
complete -c brig -n __brig_before_command -l 'script?' -r -F -d 'the same; nothing if missing'
complete -c brig -n __brig_before_command -l 'initjail' -r -F -d 'run once for a jail\'s new home, outside'
complete -c brig -n __brig_before_command -l 'initjail?' -r -F -d 'the same; nothing if missing'
complete -c brig -n __brig_before_command -l 'view' -x -a 'system host empty' -d 'what of the filesystem is there before grants'
complete -c brig -n __brig_before_command -l 'root' -x -a '(__fish_complete_directories)' -d 'use DIR as the root directory, read-only'
complete -c brig -n __brig_before_command -l 'seccomp' -x -a 'dev code' -d 'the system calls allowed'
complete -c brig -n __brig_before_command -l 'allow-nested' -d 'let programs make a sandbox of their own inside'
complete -c brig -n __brig_before_command -l 'trace-denials' -d 'list the system calls that were refused'
complete -c brig -n __brig_before_command -l 'on-unsupported' -x -a 'fail warn ignore' -d 'if this system cannot enforce something'
complete -c brig -n __brig_before_command -l 'disable' -x -a 'landlock seccomp caps namespaces nested' -d 'switch a layer off, to find what stops a program'
complete -c brig -n __brig_before_command -l 'net' -x -a 'none allow open host learn' -d 'which network it has (default: open; sealed: none)'
complete -c brig -n __brig_before_command -l 'allow' -x -d 'let this be reached'
complete -c brig -n __brig_before_command -l 'deny' -x -d 'let this not be reached, whatever allows it'
complete -c brig -n __brig_before_command -s p -l 'publish' -x -d 'reach a server in the jail from the host'
complete -c brig -n __brig_before_command -l 'inject' -x -d 'add a credential to requests, outside the jail'
complete -c brig -n __brig_before_command -l 'proxy-env' -d 'set HTTP_PROXY and its kind inside'
complete -c brig -n __brig_before_command -l 'net-log' -r -F -d 'write what is reached and refused as JSON'
complete -c brig -n __brig_before_command -s d -l 'dir' -r -F -d 'grant a file or directory, read-write'
complete -c brig -n __brig_before_command -l 'dir!' -r -F -d 'the same; create a directory if missing'
complete -c brig -n __brig_before_command -l 'dir?' -r -F -d 'the same; nothing if missing'
complete -c brig -n __brig_before_command -s r -l 'rdir' -r -F -d 'grant a file or directory, read-only'
complete -c brig -n __brig_before_command -l 'rdir?' -r -F -d 'the same; nothing if missing'
complete -c brig -n __brig_before_command -l 'mask' -x -a "(__brig_ask '--mask')" -d 'hide a file or directory'
complete -c brig -n __brig_before_command -l 'mask?' -x -a "(__brig_ask '--mask?')" -d 'the same; nothing if missing'
complete -c brig -n __brig_before_command -l 'unmask' -x -a "(__brig_ask '--unmask')" -d 'show again what an earlier mask hides'
complete -c brig -n __brig_before_command -l 'device' -r -F -d 'grant a device or a directory of them'
complete -c brig -n __brig_before_command -l 'device?' -r -F -d 'the same; nothing if missing'
complete -c brig -n __brig_before_command -s x -l 'xdir' -r -F -d 'take back an earlier rule for exactly this path'
complete -c brig -n __brig_before_command -s D -l 'nocwd' -d 'do not grant the working directory'
complete -c brig -n __brig_before_command -l 'foreign' -d 'as root, work in a directory of another user'
complete -c brig -n __brig_before_command -l 'unprotect' -r -F -d 'let a protected path be written'
complete -c brig -n __brig_before_command -l 'protect' -x -a 'hold report off' -d 'what becomes of new files that execute something'
complete -c brig -n __brig_before_command -l 'no-protect' -d 'protect nothing in granted directories'
complete -c brig -n __brig_before_command -l 'x11' -d 'let the X display of $DISPLAY in'
complete -c brig -n __brig_before_command -l 'wayland' -d 'let the display of $WAYLAND_DISPLAY in'
complete -c brig -n __brig_before_command -l 'audio' -d 'let PulseAudio and PipeWire in'
complete -c brig -n __brig_before_command -l 'ssh-agent' -d 'let the agent of $SSH_AUTH_SOCK in'
complete -c brig -n __brig_before_command -l 'dbus' -d 'let the session bus in'
complete -c brig -n __brig_before_command -l 'timeout' -x -d 'wall-clock time (30, 1.5s, 200ms, 5m, 1h)'
complete -c brig -n __brig_before_command -l 'cpu-time' -x -d 'CPU time of all its processes'
complete -c brig -n __brig_before_command -l 'grace' -x -d 'from SIGTERM to SIGKILL (default: 5s)'
complete -c brig -n __brig_before_command -l 'memory' -x -d 'memory of the jail (sealed: 512M)'
complete -c brig -n __brig_before_command -l 'cpu' -x -d 'CPU, in percent of one core (sealed: 100%)'
complete -c brig -n __brig_before_command -l 'pids' -x -d 'processes and threads in the jail (sealed: 1024)'
complete -c brig -n __brig_before_command -l 'disk' -x -d '/tmp and what else is private (sealed: 512M)'
complete -c brig -n __brig_before_command -l 'disk-inodes' -x -d 'files in them (sealed: 65536)'
complete -c brig -n __brig_before_command -l 'io-read' -x -d 'bytes a second read from each disk'
complete -c brig -n __brig_before_command -l 'io-write' -x -d 'bytes a second written to each disk'
complete -c brig -n __brig_before_command -l 'address-space' -x -d 'address space per process (64M, 2G)'
complete -c brig -n __brig_before_command -l 'file-size' -x -d 'size of any file written'
complete -c brig -n __brig_before_command -l 'open-files' -x -d 'open files per process'
complete -c brig -n __brig_before_command -l 'output' -x -d 'bytes of its output and of its errors'
complete -c brig -n __brig_before_command -l 'inotify-watches' -x -d 'inotify watches in the jail'
complete -c brig -n __brig_before_command -l 'net-connections' -x -d 'connections through the network door at a time'
complete -c brig -n __brig_before_command -l 'net-bytes' -x -d 'bytes through it, both ways together'
complete -c brig -n __brig_before_command -l 'net-idle' -x -d 'a connection without a byte either way'
complete -c brig -n __brig_before_command -l 'setenv' -x -a "(__brig_ask '--setenv')" -d 'set a variable, or pass yours on'
complete -c brig -n __brig_before_command -l 'unsetenv' -x -a "(__brig_ask '--unsetenv')" -d 'remove variables; * stands for any'
complete -c brig -n __brig_before_command -l 'workdir' -r -F -d 'where the command starts, in the jail'
complete -c brig -n __brig_before_command -l 'hostname' -x -d 'the host name inside'
complete -c brig -n __brig_before_command -l 'no-terminal' -d 'give it /dev/null instead of a terminal'
complete -c brig -n __brig_before_command -l 'pass-fd' -x -d 'hand this open file descriptor in (3 to 255)'
complete -c brig -n __brig_before_command -l 'result' -r -F -d 'write what became of it as JSON'
complete -c brig -n __brig_before_command -s u -l 'unmount' -d 'tear down all jails, or the one of -j'
complete -c brig -n __brig_before_command -l 'init' -d 'write files to start a configuration from'
complete -c brig -n __brig_before_command -l 'print-defaults' -d 'print the built-in masks and filters'
complete -c brig -n __brig_before_command -l 'complete' -d 'print completions of the words behind it'
complete -c brig -n __brig_before_command -l 'dry-run' -d 'print the policy instead of running'
complete -c brig -n __brig_before_command -l 'plan' -d 'with --dry-run: print the jail in detail'
complete -c brig -n __brig_before_command -l 'facts' -r -F -d 'with --plan: take this for what the kernel can do'
complete -c brig -n __brig_before_command -l 'json' -d 'with --dry-run, explain and why: as JSON'
complete -c brig -n __brig_before_command -s v -l 'verbose' -d 'say how it ended and what it used'
complete -c brig -n __brig_before_command -s h -l 'help' -d 'print this help'
complete -c brig -n __brig_before_command -l 'version' -d 'print the version'
complete -c brig -n 'not __brig_awaits_jail' -f -a '(__fish_complete_subcommand --fcs-skip=1)'
