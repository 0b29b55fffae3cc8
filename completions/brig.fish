# SPDX-License-Identifier: MIT
# Completion of brig for fish. The candidates come from brig --complete; see brig(1).

function __brig_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    # A word that begins with a quote is completed without it.
    set -l plain (string replace -r -- '^[\'"]' '' $current)
    for line in ($words[1] --complete $words[2..-1] "$plain" 2>/dev/null)
        set -l fields (string split ' ' -- $line)
        switch $line
            case \t'_command_offset *'
                set -l rest (string escape -- $words[(math $fields[2] + 1)..-1])
                complete -C "$rest $current"
            case \t'_files *' \t'_directories *'
                set -l before (string sub -l $fields[2] -- $plain)
                set -l typed (string sub -s (math $fields[2] + 1) -- $plain)
                set -l found
                if test $fields[1] = \t_files
                    set found (__fish_complete_path $typed)
                else
                    set found (__fish_complete_directories $typed)
                end
                test -z "$found"; or printf '%s\n' $before$found
            case '*'
                string replace -r -- ' (\t|$)' '$1' $line
        end
    end
end

complete -c brig -f -a '(__brig_complete)'
