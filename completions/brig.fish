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
            case -m '--mode' -j '--jail' -C '--conf' '--conf?' '--profile' '--storage' '--command' '--script' '--script?' '--initjail' '--initjail?' '--view' '--root' '--seccomp' '--on-unsupported' '--disable' '--net' '--allow' '--deny' -p '--publish' '--inject' '--inject?' '--net-log' -d '--dir' '--dir!' '--dir?' -r '--rdir' '--rdir?' '--review-dir' '--mask' '--mask?' '--unmask' '--device' '--device?' -x '--xdir' '--unprotect' '--protect' '--checkpoint-size' '--timeout' '--cpu-time' '--grace' '--memory' '--cpu' '--pids' '--disk' '--disk-inodes' '--io-read' '--io-write' '--address-space' '--file-size' '--open-files' '--output' '--inotify-watches' '--net-connections' '--net-bytes' '--net-idle' '--setenv' '--unsetenv' '--workdir' '--hostname' '--pass-fd' '--result' '--net-rules' '--facts'
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
        case stop rm fork allow
            return 0
        case enter
            test (count $words) = 2
            return
        case mask unmask sync status diff review apply discard undo log held keep gc
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
complete -c brig -n __fish_use_subcommand -f -a why -d 'tell whether a jail has a path, host or variable, and by which rule'
complete -c brig -n __fish_use_subcommand -f -a list -d 'list jails, their projects, disk use and processes'
complete -c brig -n __fish_use_subcommand -f -a enter -d 'open a shell in a running jail'
complete -c brig -n __fish_use_subcommand -f -a stop -d 'end the processes in a jail'
complete -c brig -n __fish_use_subcommand -f -a rm -d 'remove a jail with its home and changes'
complete -c brig -n __fish_use_subcommand -f -a cp -d 'copy files into a jail or out of it'
complete -c brig -n __fish_use_subcommand -f -a mask -d 'hide a path of your home in a jail, at once'
complete -c brig -n __fish_use_subcommand -f -a unmask -d 'show it again, from the jail\'s next mount on'
complete -c brig -n __fish_use_subcommand -f -a sync -d 'transfer git commits out of jails'
complete -c brig -n __fish_use_subcommand -f -a status -d 'list what a jail has changed in its copies of your files'
complete -c brig -n __fish_use_subcommand -f -a diff -d 'show what a jail has changed in its copies of your files'
complete -c brig -n __fish_use_subcommand -f -a review -d 'look through the changes of a jail and apply them'
complete -c brig -n __fish_use_subcommand -f -a apply -d 'write what a jail has changed to your files'
complete -c brig -n __fish_use_subcommand -f -a discard -d 'drop changes of a jail, or delete a file that was held back'
complete -c brig -n __fish_use_subcommand -f -a undo -d 'revert the last operation, or the one with this number'
complete -c brig -n __fish_use_subcommand -f -a log -d 'list runs and what was applied, discarded and undone'
complete -c brig -n __fish_use_subcommand -f -a held -d 'list files that were held back, or print one'
complete -c brig -n __fish_use_subcommand -f -a keep -d 'restore a file that was held back'
complete -c brig -n __fish_use_subcommand -f -a fork -d 'make a second jail on the state of another'
complete -c brig -n __fish_use_subcommand -f -a gc -d 'remove old operations, and jails of projects that are gone'
complete -c brig -n __fish_use_subcommand -f -a allow -d 'list or answer connections that wait for you (network "ask")'
complete -c brig -n __fish_use_subcommand -f -a profiles -d 'list the profiles of agents and tools, or print one'
complete -c brig -n __fish_use_subcommand -f -a login -d 'log in an agent, and keep its credential outside jails'
complete -c brig -n __fish_use_subcommand -f -a logout -d 'remove the credential of an agent'
complete -c brig -n __fish_use_subcommand -f -a init -d 'write example configuration files'
complete -c brig -n __fish_use_subcommand -f -a doctor -d 'check what this system can enforce, and say how to fix the rest'
complete -c brig -n __fish_use_subcommand -f -a mcp -d 'serve a jail to an agent, by the Model Context Protocol'
complete -c brig -n __fish_use_subcommand -f -a mcp-wrap -d 'run another MCP server in a jail, with a learned network'
complete -c brig -n __fish_use_subcommand -f -a help -d 'print this help, or the usage of a command'
complete -c brig -n __fish_use_subcommand -f -a version -d 'print the version'
complete -c brig -n '__brig_awaits_jail' -f -a "(__brig_ask '--jail')"
complete -c brig -n '__brig_awaits_mask' -f -a "(__brig_ask '--mask')"
complete -c brig -n __brig_before_command -s m -l 'mode' -x -a 'casual bare strict sealed' -d 'the preset to start from (default: casual)'
complete -c brig -n __brig_before_command -s j -l 'jail' -x -a "(__brig_ask '--jail')" -d 'the jail to use (default: that of the project)'
complete -c brig -n __brig_before_command -s C -l 'conf' -x -a "(__brig_ask '--conf')" -d 'the configuration file to use'
complete -c brig -n __brig_before_command -l 'conf?' -x -a "(__brig_ask '--conf?')" -d 'the same, ignored if missing'
complete -c brig -n __brig_before_command -l 'profile' -x -d 'the profile of an agent or tool to use'
complete -c brig -n __brig_before_command -l 'storage' -x -a '(__fish_complete_directories)' -d 'where jails are kept'
complete -c brig -n __brig_before_command -l 'no-defaults' -d 'do not use the built-in masks and environment filters'
complete -c brig -n __brig_before_command -l 'command' -x -d 'a shell command line that starts the command'
complete -c brig -n __brig_before_command -l 'script' -r -F -d 'a file that the shell reads before the command'
complete -c brig -n __brig_before_command -l 'script?' -r -F -d 'the same, ignored if missing'
complete -c brig -n __brig_before_command -l 'initjail' -r -F -d 'run once, outside the jail, for a new home'
complete -c brig -n __brig_before_command -l 'initjail?' -r -F -d 'the same, ignored if missing'
complete -c brig -n __brig_before_command -l 'view' -x -a 'system host empty' -d 'which host files are visible without grants'
complete -c brig -n __brig_before_command -l 'root' -x -a '(__fish_complete_directories)' -d 'use DIR as the root directory, read-only'
complete -c brig -n __brig_before_command -l 'seccomp' -x -a 'dev code' -d 'which system calls are allowed'
complete -c brig -n __brig_before_command -l 'allow-nested' -d 'let programs create their own sandbox inside'
complete -c brig -n __brig_before_command -l 'trace-denials' -d 'list the system calls that were refused'
complete -c brig -n __brig_before_command -l 'on-unsupported' -x -a 'fail warn ignore' -d 'what to do if this system cannot enforce a rule'
complete -c brig -n __brig_before_command -l 'disable' -x -a 'landlock seccomp caps namespaces nested' -d 'switch a layer off, to find what stops a program'
complete -c brig -n __brig_before_command -l 'net' -x -a 'none loopback allow ask open host learn' -d 'the network of the jail (default: open; sealed: none)'
complete -c brig -n __brig_before_command -l 'allow' -x -d 'allow connections to a destination'
complete -c brig -n __brig_before_command -l 'deny' -x -d 'deny connections to a destination, even if allowed'
complete -c brig -n __brig_before_command -s p -l 'publish' -x -d 'reach a server in the jail from the host'
complete -c brig -n __brig_before_command -l 'inject' -x -d 'add a credential to requests, outside the jail'
complete -c brig -n __brig_before_command -l 'inject?' -x -d 'the same, ignored if there is no secret'
complete -c brig -n __brig_before_command -l 'proxy-env' -d 'set HTTP_PROXY and similar variables inside'
complete -c brig -n __brig_before_command -l 'net-log' -r -F -d 'write allowed and refused connections as JSON'
complete -c brig -n __brig_before_command -s d -l 'dir' -r -F -d 'grant a file or directory, read-write'
complete -c brig -n __brig_before_command -l 'dir!' -r -F -d 'the same, created as a directory if missing'
complete -c brig -n __brig_before_command -l 'dir?' -r -F -d 'the same, ignored if missing'
complete -c brig -n __brig_before_command -s r -l 'rdir' -r -F -d 'grant a file or directory, read-only'
complete -c brig -n __brig_before_command -l 'rdir?' -r -F -d 'the same, ignored if missing'
complete -c brig -n __brig_before_command -s R -l 'review' -d 'make the working directory copy-on-write'
complete -c brig -n __brig_before_command -l 'review-dir' -r -F -d 'grant a directory, copy-on-write'
complete -c brig -n __brig_before_command -l 'mask' -x -a "(__brig_ask '--mask')" -d 'hide a file or directory'
complete -c brig -n __brig_before_command -l 'mask?' -x -a "(__brig_ask '--mask?')" -d 'the same, ignored if missing'
complete -c brig -n __brig_before_command -l 'unmask' -x -a "(__brig_ask '--unmask')" -d 'show a path that an earlier mask hides'
complete -c brig -n __brig_before_command -l 'device' -r -F -d 'grant a device, or a directory of devices'
complete -c brig -n __brig_before_command -l 'device?' -r -F -d 'the same, ignored if missing'
complete -c brig -n __brig_before_command -s x -l 'xdir' -r -F -d 'remove an earlier rule for exactly this path'
complete -c brig -n __brig_before_command -s D -l 'nocwd' -d 'do not grant the working directory'
complete -c brig -n __brig_before_command -l 'foreign' -d 'as root, work in a directory of another user'
complete -c brig -n __brig_before_command -l 'unprotect' -r -F -d 'make a protected path writable'
complete -c brig -n __brig_before_command -l 'protect' -x -a 'hold report off' -d 'what to do with new files that execute code'
complete -c brig -n __brig_before_command -l 'no-protect' -d 'protect nothing in granted directories'
complete -c brig -n __brig_before_command -l 'checkpoint' -d 'keep what the command could overwrite or delete'
complete -c brig -n __brig_before_command -l 'checkpoint?' -d 'the same, if it is possible'
complete -c brig -n __brig_before_command -l 'checkpoint-size' -x -d 'up to which size ignored files are kept (default: 16M)'
complete -c brig -n __brig_before_command -l 'no-checkpoint' -d 'take no checkpoint'
complete -c brig -n __brig_before_command -l 'x11' -d 'grant the X display of $DISPLAY'
complete -c brig -n __brig_before_command -l 'wayland' -d 'grant the display of $WAYLAND_DISPLAY'
complete -c brig -n __brig_before_command -l 'audio' -d 'grant PulseAudio and PipeWire'
complete -c brig -n __brig_before_command -l 'ssh-agent' -d 'grant the SSH agent of $SSH_AUTH_SOCK'
complete -c brig -n __brig_before_command -l 'gpg-agent' -d 'grant GnuPG\'s agent, to sign commits'
complete -c brig -n __brig_before_command -l 'dbus' -d 'grant the session bus'
complete -c brig -n __brig_before_command -l 'timeout' -x -d 'wall-clock time (30, 1.5s, 200ms, 5m, 1h)'
complete -c brig -n __brig_before_command -l 'cpu-time' -x -d 'CPU time of all its processes'
complete -c brig -n __brig_before_command -l 'grace' -x -d 'from SIGTERM to SIGKILL (default: 5s)'
complete -c brig -n __brig_before_command -l 'memory' -x -d 'memory of the jail (sealed: 512M)'
complete -c brig -n __brig_before_command -l 'cpu' -x -d 'CPU, in percent of one core (sealed: 100%)'
complete -c brig -n __brig_before_command -l 'pids' -x -d 'processes and threads in the jail (sealed: 1024)'
complete -c brig -n __brig_before_command -l 'disk' -x -d 'size of /tmp and other private directories (sealed: 512M)'
complete -c brig -n __brig_before_command -l 'disk-inodes' -x -d 'number of files in them (sealed: 65536)'
complete -c brig -n __brig_before_command -l 'io-read' -x -d 'bytes a second read from each disk'
complete -c brig -n __brig_before_command -l 'io-write' -x -d 'bytes a second written to each disk'
complete -c brig -n __brig_before_command -l 'address-space' -x -d 'address space per process (64M, 2G)'
complete -c brig -n __brig_before_command -l 'file-size' -x -d 'size of any file written'
complete -c brig -n __brig_before_command -l 'open-files' -x -d 'open files per process'
complete -c brig -n __brig_before_command -l 'output' -x -d 'bytes of standard output, and of standard error'
complete -c brig -n __brig_before_command -l 'inotify-watches' -x -d 'inotify watches in the jail'
complete -c brig -n __brig_before_command -l 'net-connections' -x -d 'concurrent connections through the broker'
complete -c brig -n __brig_before_command -l 'net-bytes' -x -d 'bytes through the broker, in both directions'
complete -c brig -n __brig_before_command -l 'net-idle' -x -d 'close a connection after this time without data'
complete -c brig -n __brig_before_command -l 'setenv' -x -a "(__brig_ask '--setenv')" -d 'set a variable, or pass on your own'
complete -c brig -n __brig_before_command -l 'unsetenv' -x -a "(__brig_ask '--unsetenv')" -d 'remove variables; * matches any characters'
complete -c brig -n __brig_before_command -l 'workdir' -r -F -d 'where the command starts, in the jail'
complete -c brig -n __brig_before_command -l 'hostname' -x -d 'the host name inside'
complete -c brig -n __brig_before_command -l 'no-terminal' -d 'use /dev/null instead of a terminal'
complete -c brig -n __brig_before_command -l 'pass-fd' -x -d 'pass this open file descriptor on (3 to 255)'
complete -c brig -n __brig_before_command -l 'result' -r -F -d 'write the result of the run as JSON'
complete -c brig -n __brig_before_command -l 'net-rules' -x -d 'write the rules that were learnt to FD too'
complete -c brig -n __brig_before_command -s u -l 'unmount' -d 'unmount all jails, or the one of -j'
complete -c brig -n __brig_before_command -l 'init' -d 'write example configuration files'
complete -c brig -n __brig_before_command -l 'print-defaults' -d 'print the built-in masks and filters'
complete -c brig -n __brig_before_command -l 'complete' -d 'print completions for the words that follow'
complete -c brig -n __brig_before_command -l 'dry-run' -d 'print the policy instead of running'
complete -c brig -n __brig_before_command -l 'plan' -d 'with --dry-run: print the jail in detail'
complete -c brig -n __brig_before_command -l 'facts' -r -F -d 'with --plan: use these kernel features'
complete -c brig -n __brig_before_command -l 'json' -d 'with --dry-run, explain and why: as JSON'
complete -c brig -n __brig_before_command -s v -l 'verbose' -d 'report the outcome and the resources used'
complete -c brig -n __brig_before_command -s h -l 'help' -d 'print this help'
complete -c brig -n __brig_before_command -l 'version' -d 'print the version'
complete -c brig -n 'not __brig_awaits_jail' -f -a '(__fish_complete_subcommand --fcs-skip=1)'
