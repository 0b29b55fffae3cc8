/* SPDX-License-Identifier: MIT */
/* Makes the manual's OPTIONS section and the completions from the same tables as the parser. */
#include "generate.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "base/write.h"
#include "cli/command.h"
#include "cli/message.h"
#include "cli/options.h"

/* ---- The manual (mdoc) ---- */

#define MAN_WIDTH 78
#define MAN_SENTENCE_MAX 256

/* One word, with quotes made proper ones; `open` remembers a quotation across words. */
static void man_word(struct str *out, const char *word, size_t length, bool *open)
{
    for (size_t i = 0; i < length; i++) {
        if (word[i] == '"') {
            str_append(out, *open ? "\\(rq" : "\\(lq");
            *open = !*open;
        } else if (word[i] == '\\') {
            str_append(out, "\\e");
        } else if (word[i] == '-' && i == 0) {
            str_append(out, "\\-");
        } else if (word[i] == '-' && word[i - 1] == '-') {
            str_append(out, "\\-");
        } else {
            str_append_char(out, word[i]);
        }
    }
}

/* Filled lines; a sentence begins on a new one, as mdoc wants it. */
static void man_text(struct str *out, const char *text)
{
    bool open = false;
    size_t line = out->length;
    for (const char *word = text; *word != '\0';) {
        size_t length = strcspn(word, " ");
        size_t rest = length + strspn(word + length, " ");
        bool sentence = word > text && word[-2] == '.';
        /* Escapes make a word longer than it looks. */
        bool full = out->length - line + 1 + length + strlen("\\(lq\\(rq") > MAN_WIDTH;
        if (word > text)
            str_append_char(out, sentence || full ? '\n' : ' ');
        if (word > text && (sentence || full))
            line = out->length;
        man_word(out, word, length, &open);
        word += rest;
    }
}

/* A choice is shown word by word, everything else as a name for a value. */
static void man_value(struct str *out, const struct option_row *row)
{
    if (!row->metavar)
        return;
    if (row->kind != OPTION_KIND_CHOICE) {
        str_appendf(out, " Ar %s", row->metavar);
        return;
    }
    str_append(out, " Cm ");
    for (const char *c = row->metavar; *c != '\0'; c++)
        if (*c == '|')
            str_append(out, " | ");
        else
            str_append_char(out, *c);
}

/* Names ending in '!' or '?' must not look like punctuation. */
static const char *man_guard(const struct option_row *row)
{
    return strpbrk(row->long_name, "!?") ? "\\&" : "";
}

static void man_item(struct str *out, const struct option_row *row)
{
    man_value(out, row);
    str_append_char(out, '\n');
    char sentence[MAN_SENTENCE_MAX];
    (void)snprintf(sentence, sizeof(sentence), "%s.", row->help);
    if (sentence[0] >= 'a' && sentence[0] <= 'z')
        sentence[0] = (char)(sentence[0] - 'a' + 'A');
    man_text(out, sentence);
    str_append_char(out, '\n');
    if (row->more[0] != '\0') {
        man_text(out, row->more);
        str_append_char(out, '\n');
    }
}

static void man_option(struct str *out, const struct option_row *row)
{
    str_append(out, ".It ");
    if (row->short_name)
        str_appendf(out, "Fl %c , ", row->short_name);
    str_appendf(out, "Fl -%s%s", row->long_name, man_guard(row));
    man_item(out, row);
}

/* The same table as directives, for brig.conf(5). */
static void generate_conf(struct str *out)
{
    for (int group = 0; group < OPTION_GROUP_COUNT_; group++) {
        if (group == OPTION_GROUP_RUN)
            continue;
        str_appendf(out, ".Ss %s\n.Bl -tag -width Ds\n", option_headings[group]);
        for (int i = 0; i < OPTION_COUNT_; i++) {
            if ((int)option_rows[i].group != group)
                continue;
            str_appendf(out, ".It Cm %s%s", option_rows[i].long_name, man_guard(&option_rows[i]));
            man_item(out, &option_rows[i]);
        }
        str_append(out, ".El\n");
    }
}

static void generate_man(struct str *out)
{
    for (int group = 0; group < OPTION_GROUP_COUNT_; group++) {
        str_appendf(out, ".Ss %s\n.Bl -tag -width Ds\n", option_headings[group]);
        for (int i = 0; i < OPTION_COUNT_; i++)
            if ((int)option_rows[i].group == group)
                man_option(out, &option_rows[i]);
        str_append(out, ".El\n");
    }
}

/* ---- Completions ---- */

static void append_verbs(struct str *out)
{
    for (const struct command *const *command = commands; *command; command++)
        str_appendf(out, "%s%s", command == commands ? "" : " ", (*command)->name);
}

/* The verbs with such words behind them, as a pattern. */
static void append_verbs_with(struct str *out, enum command_words words, const char *between)
{
    bool first = true;
    for (const struct command *const *command = commands; *command; command++) {
        if ((*command)->words != words)
            continue;
        str_appendf(out, "%s%s", first ? "" : between, (*command)->name);
        first = false;
    }
}

/* The words of a choice, separated by spaces. */
static void append_words(struct str *out, const char *metavar)
{
    for (const char *c = metavar; *c != '\0'; c++)
        str_append_char(out, *c == '|' ? ' ' : *c);
}

static void bash_values(struct str *out)
{
    for (int i = 0; i < OPTION_COUNT_; i++) {
        const struct option_row *row = &option_rows[i];
        if (!row->metavar)
            continue;
        str_append(out, "    ");
        if (row->short_name)
            str_appendf(out, "-%c | ", row->short_name);
        str_appendf(out, "'--%s')\n        ", row->long_name);
        switch (row->kind) {
        case OPTION_KIND_NONE:
        case OPTION_KIND_TEXT:
            str_append(out, "COMPREPLY=()");
            break;
        case OPTION_KIND_CHOICE:
            str_append(out, "mapfile -t COMPREPLY < <(compgen -W '");
            append_words(out, row->metavar);
            str_append(out, "' -- \"$cur\")");
            break;
        case OPTION_KIND_PATH:
        case OPTION_KIND_FILE:
            str_append(out, "mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")");
            break;
        case OPTION_KIND_CONF:
        case OPTION_KIND_JAIL:
        case OPTION_KIND_HOME:
        case OPTION_KIND_VARIABLE:
        case OPTION_KIND_ASSIGNMENT:
            str_append(out, "_brig_ask \"$1\"");
            break;
        case OPTION_KIND_DIRECTORY:
            str_append(out, "mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")");
            break;
        }
        str_append(out, "\n        return\n        ;;\n");
    }
}

/* Options that are followed by a value of their own, as a case pattern. */
static void bash_value_pattern(struct str *out)
{
    bool first = true;
    for (int i = 0; i < OPTION_COUNT_; i++) {
        const struct option_row *row = &option_rows[i];
        if (!row->metavar)
            continue;
        str_append(out, first ? "" : " | ");
        if (row->short_name)
            str_appendf(out, "-%c | ", row->short_name);
        str_appendf(out, "'--%s'", row->long_name);
        first = false;
    }
}

static void generate_bash(struct str *out)
{
    str_append(out,
               "# SPDX-License-Identifier: MIT\n"
               "# Completion of brig for bash. Made by tools/gen-cli-docs; do not edit.\n\n"
               "# Asks brig, where the answer depends on the user's files. What ends in a blank\n"
               "# is finished.\n"
               "_brig_ask() {\n"
               "    compopt +o filenames -o nospace\n"
               "    mapfile -t COMPREPLY < <(\"${COMP_WORDS[0]}\" --complete \"$1\" \"$cur\" "
               "2>/dev/null)\n"
               "}\n\n"
               "# Completes the word after an option that takes a value.\n"
               "_brig_value() {\n"
               "    case $1 in\n");
    bash_values(out);
    str_append(out, "    esac\n"
                    "}\n\n"
                    "_brig() {\n"
                    "    local cur=${COMP_WORDS[COMP_CWORD]} why= i\n"
                    "    COMPREPLY=()\n"
                    "    [[ $COMP_CWORD -lt 2 || ${COMP_WORDS[1]} != why ]] || why=yes\n"
                    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                    "        case ${COMP_WORDS[i]} in\n"
                    "        ");
    bash_value_pattern(out);
    str_append(out, ")\n"
                    "            if ((i + 1 == COMP_CWORD)); then\n"
                    "                compopt -o filenames\n"
                    "                _brig_value \"${COMP_WORDS[i]}\"\n"
                    "                return\n"
                    "            fi\n"
                    "            ((i++))\n"
                    "            ;;\n"
                    "        --)\n"
                    "            [[ $why ]] && break\n"
                    "            _brig_command $((i + 1))\n"
                    "            return\n"
                    "            ;;\n"
                    "        -*) ;;\n"
                    "        ");
    append_verbs_with(out, COMMAND_WORDS_JAILS, " | ");
    str_append(out, ")\n"
                    "            ((i == 1)) || { _brig_command \"$i\"; return; }\n"
                    "            _brig_ask -j\n"
                    "            return\n"
                    "            ;;\n"
                    "        ");
    append_verbs_with(out, COMMAND_WORDS_JAIL_COMMAND, " | ");
    str_append(out,
               ")\n"
               "            ((i == 1 && COMP_CWORD == 2)) || { _brig_command $((i == 1 ? 3 : i)); "
               "return; }\n"
               "            _brig_ask -j\n"
               "            return\n"
               "            ;;\n"
               "        ");
    append_verbs_with(out, COMMAND_WORDS_MASKS, " | ");
    str_append(out,
               ")\n"
               "            ((i == 1)) || { _brig_command \"$i\"; return; }\n"
               "            case ${COMP_WORDS[COMP_CWORD - 1]} in\n"
               "            -j | --jail) _brig_ask -j ;;\n"
               "            *) _brig_ask --mask ;;\n"
               "            esac\n"
               "            return\n"
               "            ;;\n"
               "        run | explain | why) ((i == 1)) || { _brig_command \"$i\"; return; } ;;\n"
               "        *)\n"
               "            [[ $why ]] && break\n"
               "            _brig_command \"$i\"\n"
               "            return\n"
               "            ;;\n"
               "        esac\n"
               "    done\n"
               "    if [[ $cur == -* ]]; then\n"
               "        mapfile -t COMPREPLY < <(compgen -W '");
    for (int i = 0; i < OPTION_COUNT_; i++)
        str_appendf(out, "%s--%s", i ? " " : "", option_rows[i].long_name);
    str_append(out, "' -- \"$cur\")\n"
                    "        return\n"
                    "    fi\n"
                    "    if [[ $why ]]; then\n"
                    "        compopt -o filenames\n"
                    "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
                    "        return\n"
                    "    fi\n"
                    "    mapfile -t COMPREPLY < <(compgen -c -- \"$cur\")\n"
                    "    if ((COMP_CWORD == 1)); then\n"
                    "        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W '");
    append_verbs(out);
    str_append(out,
               "' -- \"$cur\")\n"
               "    fi\n"
               "}\n\n"
               "# Completes the command to run as if it had been typed alone, where the shell's\n"
               "# completion library can do that.\n"
               "_brig_command() {\n"
               "    if declare -F _command_offset >/dev/null; then\n"
               "        _command_offset \"$1\"\n"
               "    elif (($1 == COMP_CWORD)); then\n"
               "        mapfile -t COMPREPLY < <(compgen -c -- \"${COMP_WORDS[COMP_CWORD]}\")\n"
               "    else\n"
               "        compopt -o default\n"
               "    fi\n"
               "}\n\n"
               "complete -F _brig brig\n");
}

/* For zsh: between single quotes and inside [brackets] of a specification. */
static void zsh_text(struct str *out, const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if (*c == '\'')
            str_append(out, "'\\''");
        else if (strchr("[]:\\", *c))
            str_appendf(out, "\\%c", *c);
        else
            str_append_char(out, *c);
}

static void zsh_spec(struct str *out, const struct option_row *row, bool short_name)
{
    str_append(out, "        '*");
    if (short_name)
        str_appendf(out, "-%c%s", row->short_name, row->metavar ? "+" : "");
    else
        str_appendf(out, "--%s%s", row->long_name, row->metavar ? "=" : "");
    str_append_char(out, '[');
    zsh_text(out, row->help);
    str_append_char(out, ']');
    if (row->metavar) {
        str_append_char(out, ':');
        zsh_text(out, row->kind == OPTION_KIND_CHOICE ? row->long_name : row->metavar);
        str_append_char(out, ':');
    }
    switch (row->kind) {
    case OPTION_KIND_NONE:
    case OPTION_KIND_TEXT:
        break;
    case OPTION_KIND_CHOICE:
        str_append_char(out, '(');
        append_words(out, row->metavar);
        str_append_char(out, ')');
        break;
    case OPTION_KIND_PATH:
    case OPTION_KIND_FILE:
        str_append(out, "_files");
        break;
    case OPTION_KIND_CONF:
    case OPTION_KIND_JAIL:
    case OPTION_KIND_HOME:
    case OPTION_KIND_VARIABLE:
    case OPTION_KIND_ASSIGNMENT:
        str_appendf(out, "{_brig_ask \"--%s\"}", row->long_name);
        break;
    case OPTION_KIND_DIRECTORY:
        str_append(out, "_files -/");
        break;
    }
    str_append(out, "' \\\n");
}

static void generate_zsh(struct str *out)
{
    str_append(out,
               "#compdef brig\n"
               "# SPDX-License-Identifier: MIT\n"
               "# Completion of brig for zsh. Made by tools/gen-cli-docs; do not edit.\n\n"
               "# Asks brig, where the answer depends on the user's files. What ends in a blank\n"
               "# is finished.\n"
               "_brig_ask() {\n"
               "    local word\n"
               "    for word in ${(f)\"$(brig --complete $1 \"$PREFIX\" 2>/dev/null)\"}; do\n"
               "        if [[ $word == *' ' ]]; then\n"
               "            compadd -- ${word% }\n"
               "        else\n"
               "            compadd -S '' -- $word\n"
               "        fi\n"
               "    done\n"
               "}\n\n"
               "_brig_first() {\n"
               "    local -a verbs=(\n");
    for (const struct command *const *command = commands; *command; command++) {
        str_appendf(out, "        '%s:", (*command)->name);
        zsh_text(out, (*command)->summary);
        str_append(out, "'\n");
    }
    str_append(out, "    )\n"
                    "    ((CURRENT == 2)) && _describe -t verbs verb verbs\n"
                    "    _command_names -e\n"
                    "}\n\n"
                    "_brig() {\n"
                    "    local first=_brig_first rest=_normal\n"
                    "    if ((CURRENT > 2)) && [[ $words[2] == (");
    append_verbs_with(out, COMMAND_WORDS_JAILS, "|");
    str_append(out, ") ]]; then\n"
                    "        _brig_ask --jail\n"
                    "        return\n"
                    "    fi\n"
                    "    if ((CURRENT > 2)) && [[ $words[2] == (");
    append_verbs_with(out, COMMAND_WORDS_JAIL_COMMAND, "|");
    str_append(out, ") ]]; then\n"
                    "        ((CURRENT == 3)) && { _brig_ask --jail; return; }\n"
                    "        shift 3 words\n"
                    "        ((CURRENT -= 3))\n"
                    "        _normal\n"
                    "        return\n"
                    "    fi\n"
                    "    if ((CURRENT > 2)) && [[ $words[2] == (");
    append_verbs_with(out, COMMAND_WORDS_MASKS, "|");
    str_append(out, ") ]]; then\n"
                    "        if [[ $words[CURRENT-1] == (-j|--jail) ]]; then\n"
                    "            _brig_ask --jail\n"
                    "        else\n"
                    "            _brig_ask --mask\n"
                    "        fi\n"
                    "        return\n"
                    "    fi\n"
                    "    [[ $words[2] == why && CURRENT -gt 2 ]] && first=_files rest=_files\n"
                    "    [[ $words[2] == (run|explain|why) && CURRENT -gt 2 ]] && "
                    "{ shift words; ((CURRENT--)); }\n"
                    "    _arguments -s -S -A '-*' \\\n");
    for (int i = 0; i < OPTION_COUNT_; i++) {
        if (option_rows[i].short_name)
            zsh_spec(out, &option_rows[i], true);
        zsh_spec(out, &option_rows[i], false);
    }
    str_append(out, "        \"1:command:$first\" \\\n"
                    "        \"*::arguments:$rest\"\n"
                    "}\n\n"
                    "_brig \"$@\"\n");
}

static void fish_quoted(struct str *out, const char *text)
{
    str_append_char(out, '\'');
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\'' || *c == '\\')
            str_append_char(out, '\\');
        str_append_char(out, *c);
    }
    str_append_char(out, '\'');
}

static void fish_option(struct str *out, const struct option_row *row)
{
    str_append(out, "complete -c brig -n __brig_before_command");
    if (row->short_name)
        str_appendf(out, " -s %c", row->short_name);
    str_append(out, " -l ");
    fish_quoted(out, row->long_name);
    switch (row->kind) {
    case OPTION_KIND_NONE:
        break;
    case OPTION_KIND_TEXT:
        str_append(out, " -x");
        break;
    case OPTION_KIND_CHOICE:
        str_append(out, " -x -a '");
        append_words(out, row->metavar);
        str_append_char(out, '\'');
        break;
    case OPTION_KIND_PATH:
    case OPTION_KIND_FILE:
        str_append(out, " -r -F");
        break;
    case OPTION_KIND_CONF:
    case OPTION_KIND_JAIL:
    case OPTION_KIND_HOME:
    case OPTION_KIND_VARIABLE:
    case OPTION_KIND_ASSIGNMENT:
        str_appendf(out, " -x -a \"(__brig_ask '--%s')\"", row->long_name);
        break;
    case OPTION_KIND_DIRECTORY:
        str_append(out, " -x -a '(__fish_complete_directories)'");
        break;
    }
    str_append(out, " -d ");
    fish_quoted(out, row->help);
    str_append_char(out, '\n');
}

static void generate_fish(struct str *out)
{
    str_append(out, "# SPDX-License-Identifier: MIT\n"
                    "# Completion of brig for fish. Made by tools/gen-cli-docs; do not edit.\n\n"
                    "# Asks brig, where the answer depends on the user's files.\n"
                    "function __brig_ask\n"
                    "    brig --complete $argv[1] (commandline -ct) 2>/dev/null | "
                    "string trim --right\n"
                    "end\n\n"
                    "# True while no command has been typed; options after it belong to it.\n"
                    "function __brig_before_command\n"
                    "    set -l skip 0\n"
                    "    for word in (commandline -opc)[2..-1]\n"
                    "        if test $skip = 1\n"
                    "            set skip 0\n"
                    "            continue\n"
                    "        end\n"
                    "        switch $word\n"
                    "            case run explain why\n"
                    "                continue\n"
                    "            case");
    for (int i = 0; i < OPTION_COUNT_; i++) {
        const struct option_row *row = &option_rows[i];
        if (!row->metavar)
            continue;
        if (row->short_name)
            str_appendf(out, " -%c", row->short_name);
        str_append_char(out, ' ');
        /* In a pattern '?' stands for any character, which does no harm here. */
        str_appendf(out, "'--%s'", row->long_name);
    }
    str_append(out, "\n"
                    "                set skip 1\n"
                    "            case '--'\n"
                    "                return 1\n"
                    "            case '-*'\n"
                    "                continue\n"
                    "            case '*'\n"
                    "                return 1\n"
                    "        end\n"
                    "    end\n"
                    "end\n\n"
                    "# True where the name of a jail is to follow.\n"
                    "function __brig_awaits_jail\n"
                    "    set -l words (commandline -opc)\n"
                    "    switch \"$words[2]\"\n"
                    "        case ");
    append_verbs_with(out, COMMAND_WORDS_JAILS, " ");
    str_append(out, "\n"
                    "            return 0\n"
                    "        case ");
    append_verbs_with(out, COMMAND_WORDS_JAIL_COMMAND, " ");
    str_append(out, "\n"
                    "            test (count $words) = 2\n"
                    "            return\n"
                    "        case ");
    append_verbs_with(out, COMMAND_WORDS_MASKS, " ");
    str_append(out, "\n"
                    "            contains -- $words[-1] -j --jail\n"
                    "            return\n"
                    "    end\n"
                    "    return 1\n"
                    "end\n\n"
                    "# True where a path in the home directory is to follow.\n"
                    "function __brig_awaits_mask\n"
                    "    set -l words (commandline -opc)\n"
                    "    contains -- \"$words[2]\" ");
    append_verbs_with(out, COMMAND_WORDS_MASKS, " ");
    str_append(out, "; and not contains -- $words[-1] -j --jail\n"
                    "end\n\n");
    for (const struct command *const *command = commands; *command; command++) {
        str_appendf(out, "complete -c brig -n __fish_use_subcommand -f -a %s -d ",
                    (*command)->name);
        fish_quoted(out, (*command)->summary);
        str_append_char(out, '\n');
    }
    str_append(out, "complete -c brig -n '__brig_awaits_jail' -f -a \"(__brig_ask '--jail')\"\n"
                    "complete -c brig -n '__brig_awaits_mask' -f -a \"(__brig_ask '--mask')\"\n");
    for (int i = 0; i < OPTION_COUNT_; i++)
        fish_option(out, &option_rows[i]);
    str_append(out, "complete -c brig -n 'not __brig_awaits_jail' -f -a "
                    "'(__fish_complete_subcommand --fcs-skip=1)'\n");
}

int generate(const char *what)
{
    static const struct {
        const char *name;
        void (*make)(struct str *out);
    } kinds[] = {
        {"man", generate_man}, {"conf", generate_conf}, {"bash", generate_bash},
        {"zsh", generate_zsh}, {"fish", generate_fish},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
        if (strcmp(kinds[i].name, what) != 0)
            continue;
        autostr struct str out = {0};
        kinds[i].make(&out);
        bool written = !out.failed && write_all(STDOUT_FILENO, out.data, out.length) == 0;
        return written ? 0 : APP_FAILED;
    }
    message_error("--generate '%s' is none of man, conf, bash, zsh and fish", what);
    return APP_FAILED;
}
