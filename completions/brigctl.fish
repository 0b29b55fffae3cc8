# SPDX-License-Identifier: MIT
# Completion of brigctl for fish.

set -l commands exec claude submit wait ls show kill health runtimes
set -l languages 'python node bash c c++ go java rust ruby php perl lua r sqlite'
set -l none "not __fish_seen_subcommand_from $commands"
set -l run '__fish_seen_subcommand_from exec claude submit'

complete -c brigctl -f
complete -c brigctl -n $none -a exec -d 'run code, from a file, an argument or standard input'
complete -c brigctl -n $none -a claude -d 'let Claude Code work in a directory'
complete -c brigctl -n $none -a submit -d 'queue code, and print the id of the execution'
complete -c brigctl -n $none -a wait -d 'wait for an execution, and print its output'
complete -c brigctl -n $none -a ls -d 'list executions'
complete -c brigctl -n $none -a show -d 'print the details of an execution'
complete -c brigctl -n $none -a kill -d 'end a running or queued execution'
complete -c brigctl -n $none -a health -d 'print the state of the server'
complete -c brigctl -n $none -a runtimes -d 'list the languages and agents of the server'
complete -c brigctl -n $none -s s -l server -x -d 'the server'
complete -c brigctl -n $none -s k -l key -x -d 'the API key'
complete -c brigctl -n $none -l cacert -r -F -d 'the CA certificate'
complete -c brigctl -n $none -s V -l version -d 'the version'
complete -c brigctl -n "$none; or __fish_seen_subcommand_from ls" -l json -d 'print the JSON of the server'
complete -c brigctl -s h -l help -d 'print the help'

complete -c brigctl -n $run -s t -l timeout -x -d 'such as 500ms, 10s or 2m'
complete -c brigctl -n $run -s m -l memory -x -d 'memory in MiB'
complete -c brigctl -n $run -l no-stream -d 'print the output at the end'
complete -c brigctl -n "$run; or __fish_seen_subcommand_from wait" -l raw -d 'control characters go to the terminal as they are'
complete -c brigctl -n '__fish_seen_subcommand_from claude' -s d -l dir -x -a '(__fish_complete_directories)' -d 'the directory'

set -l exec '__fish_seen_subcommand_from exec submit'
complete -c brigctl -n "$exec; and not __fish_seen_subcommand_from $languages" -a $languages -d language
complete -c brigctl -n "$exec; and __fish_seen_subcommand_from $languages" -F
complete -c brigctl -n $exec -s c -l code -x -d 'the code itself'
complete -c brigctl -n $exec -s e -l env -x -d 'a variable'
complete -c brigctl -n $exec -s f -l file -r -F -d 'a file beside the code'
complete -c brigctl -n "$exec; or __fish_seen_subcommand_from wait" -s o -l out -x -a '(__fish_complete_directories)' -d 'where files of the program go'
complete -c brigctl -n $exec -l return -x -d 'only files like this'
complete -c brigctl -n $exec -s i -l stdin -d 'hand over standard input'
complete -c brigctl -n $exec -l allow -x -d 'let it reach this host'
complete -c brigctl -n $exec -l network -d 'let it reach any public host'

set -l submit '__fish_seen_subcommand_from submit'
complete -c brigctl -n $submit -s p -l priority -x -d 'from -10 to 10; higher ones run first'
complete -c brigctl -n $submit -l callback -x -d 'is sent the result'
complete -c brigctl -n $submit -l secret -x -d 'signs it'

set -l list '__fish_seen_subcommand_from ls'
complete -c brigctl -n $list -s l -l language -x -a $languages -d 'of this language'
complete -c brigctl -n $list -s s -l status -x -a 'running ok error timeout oom killed blocked' -d 'with this status'
complete -c brigctl -n $list -l since -x -d 'later than this'
complete -c brigctl -n $list -s n -l limit -x -d 'how many'
complete -c brigctl -n $list -l cursor -x -d 'the page behind another'
