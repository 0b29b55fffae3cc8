/* SPDX-License-Identifier: MIT */
/* The .conf language, its messages, and the files it includes. */
#include "policy/conf.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "tap.h"

/* What a caller would do: it keeps what it is handed, lets setenv change what later lines see, and
 * does not know `bad`. */
struct caller {
    struct str seen;        /* "file:line name <value>", one a line, the file left out for "t" */
    char variable[64];      /* the last NAME=VALUE of setenv */
    const char *long_value; /* of ${LONG} */
    int dir_fd;
    const char *dir;
};

static void caller_done(struct caller *caller)
{
    str_done(&caller->seen);
}

#define autocaller __attribute__((cleanup(caller_done))) struct caller

static int on_directive(void *context, const struct conf_directive *directive,
                        struct brig_error *err)
{
    struct caller *caller = context;
    if (str_equal(directive->name, "bad"))
        return brig_fail(err, BRIG_E_INVALID, 0, "no directive is called 'bad'");
    if (str_equal(directive->name, "setenv") && directive->value)
        (void)snprintf(caller->variable, sizeof caller->variable, "%s", directive->value);
    if (caller->seen.length > 0)
        str_append(&caller->seen, "\n");
    if (!str_equal(directive->file, "t"))
        str_appendf(&caller->seen, "%s:", directive->file);
    str_appendf(&caller->seen, "%u %s", directive->line, directive->name);
    if (directive->value)
        str_appendf(&caller->seen, " <%s>", directive->value);
    return 0;
}

static bool on_expands(void *context, const char *name)
{
    (void)context;
    return str_equal(name, "dir") || str_equal(name, "setenv");
}

static const char *on_variable(void *context, const char *name)
{
    struct caller *caller = context;
    size_t length = strlen(name);
    if (strncmp(caller->variable, name, length) == 0 && caller->variable[length] == '=')
        return caller->variable + length + 1;
    if (str_equal(name, "LONG"))
        return caller->long_value;
    if (str_equal(name, "BLANKS"))
        return " a ";
    return str_equal(name, "HOME") ? "/home/u" : NULL;
}

static int on_include(void *context, const char *name, bool optional,
                      struct conf_source *ret_source, struct brig_error *err)
{
    struct caller *caller = context;
    return conf_load(caller->dir_fd, caller->dir, name, optional, ret_source, err);
}

static struct conf_hooks hooks_of(struct caller *caller)
{
    return (struct conf_hooks){
        .context = caller,
        .directive = on_directive,
        .expands = on_expands,
        .variable = on_variable,
        .include = on_include,
    };
}

static int parse(struct caller *caller, const char *text, size_t length, struct brig_error *err)
{
    struct conf_hooks hooks = hooks_of(caller);
    const struct conf_source source = {
        .name = (char *)(uintptr_t) "t", .text = (char *)(uintptr_t)text, .length = length};
    return conf_read(&source, &hooks, err);
}

/* ---- Lines -------------------------------------------------------------------------------- */

static void gives(const char *text, const char *wanted, const char *sentence)
{
    autocaller caller = {.dir_fd = -1};
    struct brig_error err = {0};
    if (parse(&caller, text, strlen(text), &err) < 0)
        tap_diag("%s", err.message);
    tap_is_str(caller.seen.data ? caller.seen.data : "", wanted, "%s", sentence);
}

static void refuses_bytes(const char *text, size_t length, const char *message,
                          const char *sentence)
{
    autocaller caller = {.dir_fd = -1};
    struct brig_error err = {0};
    tap_is_int(parse(&caller, text, length, &err), BRIG_E_INVALID, "%s is refused", sentence);
    tap_is_str(err.message, message, "and the message says where and what to do");
}

static void refuses(const char *text, const char *message, const char *sentence)
{
    refuses_bytes(text, strlen(text), message, sentence);
}

static void reads_lines(void)
{
    gives("", "", "an empty file has no directive");
    gives("\n \t\n\r\n", "", "nor have blank lines");
    gives("mode strict", "1 mode <strict>", "name and value, without a newline at the end");
    gives("mode=strict\n", "1 mode <strict>", "an equals sign between them");
    gives("mode = strict\n", "1 mode <strict>", "with blanks around it");
    gives("  mode \t =\t strict \t\n", "1 mode <strict>", "with any blanks anywhere");
    gives("nocwd\n", "1 nocwd", "a directive without a value has none");
    gives("nocwd \t\r\n", "1 nocwd", "blanks behind it are none");
    gives("storage=\n", "1 storage <>", "an empty value is one");
    gives("storage = \n", "1 storage <>", "with blanks, too");
    gives("setenv A=b = c\n", "1 setenv <A=b = c>", "only the first equals sign, and only there");
    gives("command a  \"b\"  c\n", "1 command <a  \"b\"  c>", "blanks in a value stay");
    gives("dir? a\ndir! b\n", "1 dir? <a>\n2 dir! <b>", "names may end in ? and !");
    gives("a\n\n\nb\nc", "1 a\n4 b\n5 c", "lines are counted");
    gives("mode x\r\nnocwd\r\n", "1 mode <x>\n2 nocwd", "lines may end in CR LF");
    gives("a x\ry\n", "1 a <xy>", "a carriage return inside is dropped as well");
    refuses("a\n = b\n", "t:2: the name before '=' is missing", "a line without a name");
}

static void reads_comments(void)
{
    gives("# one\n  \t# two\na\n", "3 a", "comments begin a line, or follow blanks there");
    gives("# a\\\nb\n", "2 b", "a comment is not continued");
    gives("a b # c\n", "1 a <b # c>", "elsewhere # is a character");
    gives("a #\n", "1 a <#>", "even alone");
    gives("# no end", "", "the last line may be a comment");
}

static void reads_escapes(void)
{
    gives("a x\\ty\\rz\\n\n", "1 a <x\ty\rz\n>", "\\t, \\r and \\n");
    gives("a \\x\\#\\\"\\\\\n", "1 a <x#\"\\>", "any other loses its backslash");
    gives("a b\\ \n", "1 a <b >", "an escaped blank at the end stays");
    gives("a b\\  \t\n", "1 a <b >", "and those behind it go");
    gives("a b\\t\n", "1 a <b\t>", "an escaped tab stays");
    gives("a \\ b\n", "1 a < b>", "an escaped blank at the beginning stays");
    gives("a=\\ b\n", "1 a < b>", "behind an equals sign, too");
    gives("a b\\", "1 a <b>", "a backslash at the end of the file is nothing");
    gives("a b\\\r\n", "1 a <b>", "nor is one before the last newline");
    gives("a\\b c\n", "1 a\\b <c>", "names have no escapes");
    gives("a \\=b\n", "1 a <=b>", "a value can begin with an equals sign");
}

static void continues_lines(void)
{
    gives("a b \\\n \t c\nd\n", "1 a <b c>\n3 d", "a backslash continues, without leading blanks");
    gives("a b\\\nc\\\n  d\ne\n", "1 a <bcd>\n4 e", "again and again");
    gives("a \\\n  b\n", "1 a <b>", "the value may begin on the next line");
    gives("a = \\\n  b\n", "1 a <b>", "behind an equals sign, too");
    gives("a b\\\r\n c\r\n", "1 a <bc>", "with CR LF");
    gives("a b\\\n# c\n", "1 a <b# c>", "what continues is no comment");
    gives("a b \\\n\nc\n", "1 a <b>\n3 c", "an empty line ends it");
    gives("command f(){ \\\n    g \"$@\"; \\\n  }; \"$0\" \"$@\"\n",
          "1 command <f(){ g \"$@\"; }; \"$0\" \"$@\">", "as shell functions are written");
}

static char *fill(size_t length, const char *start, char c)
{
    char *text = malloc(length + 1);
    if (!text)
        tap_bail("no memory");
    memset(text, c, length);
    memcpy(text, start, strlen(start));
    text[length] = '\0';
    return text;
}

static void keeps_to_the_limits(void)
{
    struct brig_error err = {0};
    autocaller caller = {.dir_fd = -1};
    autofree char *line = fill(CONF_LINE_MAX + 1, "a b", 'b');
    tap_is_int(parse(&caller, line, CONF_LINE_MAX, &err), 0, "a directive of the longest kind");
    tap_is_int((intmax_t)caller.seen.length, (intmax_t)CONF_LINE_MAX + 4, "is handed on whole");
    refuses(line, "t:1: the directive is longer than 262144 bytes: write several shorter ones",
            "a longer one");
    line[1] = '\\'; /* a name as long as that */
    refuses(line, "t:1: the directive is longer than 262144 bytes: write several shorter ones",
            "a longer name");
    line[0] = '#';
    gives(line, "", "comments may be longer");

    refuses_bytes("a\nb\0c\n", 6, "t:2: there is a NUL byte: save the file as plain text (UTF-8)",
                  "a NUL byte");
    refuses_bytes("#\0", 2, "t:1: there is a NUL byte: save the file as plain text (UTF-8)",
                  "a NUL byte in a comment");
    autofree char *text = fill(CONF_TEXT_MAX + 1, "a\n#\n#\n", '\n');
    autocaller large = {.dir_fd = -1};
    tap_is_int(parse(&large, text, CONF_TEXT_MAX, &err), 0, "a file of the largest size is read");
    tap_is_str(large.seen.data, "1 a", "whole");
    refuses("a\nb\nc\nbad\n", "t:4: no directive is called 'bad'", "what the caller refuses");
    memset(text + 6, '#', CONF_TEXT_MAX + 1 - 6);
    refuses(text,
            "t:4: the file is larger than 16 MiB: move a part of it to another file and include "
            "that with 'conf'",
            "one byte more");
    tap_is_int(parse(&large, "bad", 3, NULL), BRIG_E_INVALID, "the words may be left out");
}

/* ---- Variables ---------------------------------------------------------------------------- */

static void expands(void)
{
    gives("dir ${HOME}/x\n", "1 dir </home/u/x>", "a variable is expanded");
    gives("dir=${HOME}${HOME}\n", "1 dir </home/u/home/u>", "two are");
    gives("dir a${NONE}b\n", "1 dir <ab>", "an unset one is nothing");
    gives("dir $HOME/$x$\n", "1 dir <$HOME/$x$>", "braces are mandatory");
    gives("dir }{$}\n", "1 dir <}{$}>", "braces alone are nothing");
    gives("command ${HOME}\n", "1 command <${HOME}>", "only where the caller wants it");
    gives("command ${HOME:-x} ${\n", "1 command <${HOME:-x} ${>",
          "elsewhere nothing is read of it");
    gives("dir ${HO\\\nME}\n", "1 dir </home/u>", "lines are joined before");
    gives("dir x${BLANKS} \n", "1 dir <x a >", "blanks of a variable are not trimmed");
    gives("setenv X=1\ndir ${X}\nsetenv X=${X}2\ndir ${X}\n",
          "1 setenv <X=1>\n2 dir <1>\n3 setenv <X=12>\n4 dir <12>",
          "a line sees what those before it set");
    gives("setenv X=\\${HOME}\ndir ${X}\n", "1 setenv <X=${HOME}>\n2 dir <${HOME}>",
          "what was expanded is not expanded again");
}

/* The results for even numbers of backslashes are jai's. */
static void quotes(void)
{
    gives("dir \\${HOME}\n", "1 dir <${HOME}>", "one backslash quotes");
    gives("dir \\\\${HOME}\n", "1 dir <${HOME}>", "two do the same");
    gives("dir \\\\\\${HOME}\n", "1 dir <${HOME}>", "three do");
    gives("dir \\\\\\\\${HOME}\n", "1 dir <\\/home/u>", "four are one before a variable");
    gives("dir \\\\\\\\\\${HOME}\n", "1 dir <\\${HOME}>", "five are one and quote");
    gives("dir \\\\\\\\\\\\${HOME}\n", "1 dir <\\${HOME}>", "six are");
    gives("dir \\$x \\\\$\n", "1 dir <$x $>", "a dollar sign alone can be quoted");
    gives("dir a\\\\b\n", "1 dir <a\\b>", "two backslashes are one");
    gives("dir a\\\\\\\\b\n", "1 dir <a\\b>", "four are, as quoted twice");
    gives("dir a\\\\:b\n", "1 dir <a\\:b>", "one stays before any other character");
    gives("dir a\\\\\n", "1 dir <a\\>", "and at the end");
    gives("command \\${HOME} \\\\\\\\ \\\\$\n", "1 command <${HOME} \\\\ \\$>",
          "what is not expanded is only quoted once");
}

static void refuses_bad_variables(void)
{
    refuses("a\n\ndir x${HOME\n",
            "t:3: '${' without '}': close it, or write '\\${' for just these characters",
            "an open brace");
    refuses("dir ${HOME:-x}\n",
            "t:1: '${HOME:-x}' names no variable: a name has only letters, digits and '_'; write "
            "'\\${' for just these characters",
            "what only a shell understands");
    refuses("dir ${}\n",
            "t:1: '${}' names no variable: a name has only letters, digits and '_'; write '\\${' "
            "for just these characters",
            "an empty name");
    refuses("dir ${1}\n",
            "t:1: '${1}' names no variable: a name has only letters, digits and '_'; write '\\${' "
            "for just these characters",
            "a number");

    autofree char *value = fill(CONF_LINE_MAX, "", 'v');
    autocaller caller = {.dir_fd = -1, .long_value = value};
    struct brig_error err = {0};
    tap_is_int(parse(&caller, "dir ${LONG}", 11, &err), 0, "a long value is expanded");
    tap_is_int((intmax_t)caller.seen.length, (intmax_t)CONF_LINE_MAX + 8, "whole");
    tap_is_int(parse(&caller, "dir ${LONG}x", 12, &err), BRIG_E_INVALID, "a longer one is refused");
    tap_is_str(err.message,
               "t:1: the value is longer than 262144 bytes with its variables: use shorter ones",
               "and the message says it is the variables");
}

/* ---- Files -------------------------------------------------------------------------------- */

static void write_file(int dir, const char *name, const char *text)
{
    autoclose int fd = openat(dir, name, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        tap_bail("cannot write '%s': %s", name, strerror(errno));
}

/* Reads a file of the directory with all it includes. */
static int read_conf(struct caller *caller, const char *name, struct brig_error *err)
{
    struct conf_hooks hooks = hooks_of(caller);
    __attribute__((cleanup(conf_source_done))) struct conf_source source = {0};
    int rc = conf_load(caller->dir_fd, caller->dir, name, false, &source, err);
    return rc < 0 ? rc : conf_read(&source, &hooks, err);
}

static void file_gives(int dir, const char *text, const char *wanted, const char *sentence)
{
    autocaller caller = {.dir_fd = dir};
    struct brig_error err = {0};
    write_file(dir, "t", text);
    if (read_conf(&caller, "t", &err) < 0)
        tap_diag("%s", err.message);
    tap_is_str(caller.seen.data ? caller.seen.data : "", wanted, "%s", sentence);
}

static void file_refuses(int dir, const char *text, int code, const char *message,
                         const char *sentence)
{
    autocaller caller = {.dir_fd = dir};
    struct brig_error err = {0};
    write_file(dir, "t", text);
    tap_is_int(read_conf(&caller, "t", &err), code, "%s is refused", sentence);
    tap_is_str(err.message, message, "and the message says where and why");
}

static void includes(int dir)
{
    write_file(dir, ".defaults", "one\ntwo x");
    write_file(dir, "b.conf", "conf .defaults\nthree\n");
    write_file(dir, "none", "");
    write_file(dir, "none.conf", "wrong\n");
    write_file(dir, "sub/c.conf", "four\nconf .defaults\n");
    file_gives(dir, "a\nconf .defaults\nb\n", "1 a\n.defaults:1 one\n.defaults:2 two <x>\n3 b",
               "a file is read in its place");
    file_gives(dir, "conf=b.conf\n", ".defaults:1 one\n.defaults:2 two <x>\nb.conf:2 three",
               "and what it includes in turn");
    file_gives(dir, "conf b\n", ".defaults:1 one\n.defaults:2 two <x>\nb.conf:2 three",
               ".conf may be left out");
    file_gives(dir, "conf none\na\n", "2 a", "unless there is a file of the shorter name");
    file_gives(dir, "conf sub/c.conf\n", "sub/c.conf:1 four\n.defaults:1 one\n.defaults:2 two <x>",
               "names are those of one directory, in files elsewhere, too");
    file_gives(dir, "conf .defaults\nconf .defaults\n",
               ".defaults:1 one\n.defaults:2 two <x>\n.defaults:1 one\n.defaults:2 two <x>",
               "a file may be read twice");
    file_gives(dir, "setenv N=defaults\nconf .${N}\n",
               "1 setenv <N=defaults>\n.defaults:1 one\n.defaults:2 two <x>",
               "the name is expanded");
    file_gives(dir, "conf? b\nconf? no\nconf? ${NO}\nconf? sub/no\na\n",
               ".defaults:1 one\n.defaults:2 two <x>\nb.conf:2 three\n5 a",
               "conf? reads what there is");
}

static void misses(int dir)
{
    file_refuses(dir, "a\nconf no\n", BRIG_E_INVALID,
                 "t:2: no such configuration file: no (nor no.conf)", "a missing file");
    file_refuses(dir, "conf sub/b\n", BRIG_E_INVALID, "t:1: no such configuration file: sub/b",
                 "a missing one elsewhere, where .conf is not left out,");
    file_refuses(dir, "conf ${NO}\n", BRIG_E_INVALID,
                 "t:1: no such configuration file: ", "an empty name");
    file_refuses(dir, "conf\n", BRIG_E_INVALID, "t:1: 'conf' needs the name of a file",
                 "conf without a name");
    file_refuses(dir, "conf? \n", BRIG_E_INVALID, "t:1: 'conf?' needs the name of a file",
                 "conf? without one");
    write_file(dir, "d.conf", "a\nbad\n");
    file_refuses(dir, "\nconf d\n", BRIG_E_INVALID, "d.conf:2: no directive is called 'bad'",
                 "a mistake in an included file");
    write_file(dir, "d.conf", "a\nconf no\n");
    file_refuses(dir, "\nconf d\n", BRIG_E_INVALID,
                 "d.conf:2: no such configuration file: no (nor no.conf)",
                 "a missing file of an included one");
    write_file(dir, "d.conf", "dir ${\n");
    file_refuses(dir, "\nconf d\n", BRIG_E_INVALID,
                 "d.conf:1: '${' without '}': close it, or write '\\${' for just these characters",
                 "an open brace in one");
    file_refuses(dir, "conf? none/x\n", BRIG_E_SYSTEM, "t:1: cannot open 'none/x': Not a directory",
                 "a file taken for a directory");
    if (symlinkat("itself", dir, "itself") < 0)
        tap_bail("symlink: %s", strerror(errno));
    file_refuses(dir, "conf? itself\n", BRIG_E_SYSTEM,
                 "t:1: cannot open 'itself': Too many levels of symbolic links",
                 "a link to itself");
}

static void takes_only_files(int dir)
{
    if (mkfifoat(dir, "fifo", 0600) < 0 || mkfifoat(dir, "fifo2.conf", 0600) < 0)
        tap_bail("mkfifo: %s", strerror(errno));
    file_refuses(dir, "conf fifo\n", BRIG_E_INVALID,
                 "t:1: 'fifo' is not a regular file: only such are read as configuration",
                 "a FIFO, without waiting,");
    file_refuses(dir, "conf? fifo2\n", BRIG_E_INVALID,
                 "t:1: 'fifo2.conf' is not a regular file: only such are read as configuration",
                 "one that ends in .conf");
    file_refuses(dir, "conf? /dev/null\n", BRIG_E_INVALID,
                 "t:1: '/dev/null' is not a regular file: only such are read as configuration",
                 "a device");
    file_refuses(dir, "conf sub\n", BRIG_E_INVALID,
                 "t:1: 'sub' is not a regular file: only such are read as configuration",
                 "a directory");
    autofree char *large = fill(CONF_TEXT_MAX + 1, "\n", '#');
    write_file(dir, "large", large);
    file_refuses(dir, "conf large\n", BRIG_E_INVALID,
                 "large:2: the file is larger than 16 MiB: move a part of it to another file and "
                 "include that with 'conf'",
                 "a file that is too large");
    large[CONF_TEXT_MAX] = '\0';
    write_file(dir, "large", large);
    file_gives(dir, "conf large\na\n", "2 a", "the largest is read");
}

static void detects_loops(int dir)
{
    write_file(dir, "a.conf", "x\n\nconf b.conf\n");
    write_file(dir, "b.conf", "conf a\n");
    autocaller caller = {.dir_fd = dir};
    struct brig_error err = {0};
    tap_is_int(read_conf(&caller, "a", &err), BRIG_E_INVALID, "a loop is refused");
    tap_is_str(err.message, "a.conf:3: configuration loop: a.conf includes b.conf includes a.conf",
               "the message shows it, and the line that leads into it");
    tap_is_str(caller.seen.data, "a.conf:1 x", "nothing was read twice");
    file_refuses(dir, "\nconf t\n", BRIG_E_INVALID, "t:2: configuration loop: t includes t",
                 "a file that includes itself");
    file_refuses(dir, "conf a\n", BRIG_E_INVALID,
                 "a.conf:3: configuration loop: a.conf includes b.conf includes a.conf",
                 "a loop further down");
    if (symlinkat("../t", dir, "sub/link") < 0 || linkat(dir, "t", dir, "hard", 0) < 0)
        tap_bail("link: %s", strerror(errno));
    file_refuses(dir, "conf? sub/link\n", BRIG_E_INVALID,
                 "t:1: configuration loop: t includes sub/link", "a file by a symbolic link");
    file_refuses(dir, "conf hard\n", BRIG_E_INVALID, "t:1: configuration loop: t includes hard",
                 "a file by a second name");
}

/* Files d1, d2, … each including the next, the last one "end". */
static void nest(int dir, unsigned count)
{
    for (unsigned i = 1; i <= count; i++) {
        char name[16];
        char text[32];
        (void)snprintf(name, sizeof name, "d%u", i);
        (void)snprintf(text, sizeof text, i < count ? "conf d%u\n" : "end\n", i + 1);
        write_file(dir, name, text);
    }
}

static void limits_includes(int dir)
{
    nest(dir, CONF_DEPTH_MAX - 1);
    file_gives(dir, "conf d1\n", "d31:1 end", "files may be nested as deep as that");
    nest(dir, CONF_DEPTH_MAX);
    file_refuses(dir, "conf d1\n", BRIG_E_INVALID,
                 "d31:1: configuration files include one another too deeply: at most 32 at once",
                 "one more");
    autostr struct str text = {0};
    for (int i = 0; i < CONF_FILES_MAX; i++)
        str_append(&text, "conf none\n");
    str_append(&text, "end\n");
    file_gives(dir, text.data, "1025 end", "files may be included as often as that");
    str_done(&text);
    for (int i = 0; i <= CONF_FILES_MAX; i++)
        str_append(&text, "conf none\n");
    file_refuses(dir, text.data, BRIG_E_INVALID,
                 "t:1025: too many configuration files are included: at most 1024", "one more");
}

static void loads(int dir, const char *path)
{
    struct brig_error err = {0};
    __attribute__((cleanup(conf_source_done))) struct conf_source source = {0};
    tap_is_int(conf_load(dir, "/etc/x", "no", true, &source, &err), 0, "no file is no error");
    tap_ok(!source.name && !source.text, "and gives nothing");
    tap_is_int(conf_load(dir, "/etc/x", "no", false, &source, &err), BRIG_E_INVALID, "or one");
    tap_is_str(err.message, "no such configuration file: no (nor no.conf) in /etc/x",
               "which says where it was looked for");
    write_file(dir, "l.conf", "a\n");
    tap_is_int(conf_load(dir, "/etc/x", "l", false, &source, &err), 1, "a file is loaded");
    tap_is_str(source.name, "/etc/x/l.conf", "its name is what was found, and where");
    tap_is_str(source.text, "a\n", "with its text");
    conf_source_done(&source);
    char name[128];
    (void)snprintf(name, sizeof name, "%s/l.conf", path);
    tap_is_int(conf_load(-1, "/etc/x", name, false, &source, &err), 1,
               "an absolute one needs none");
    tap_is_str(source.name, name, "and keeps its name");
    autocaller caller = {.dir_fd = dir, .dir = "/etc/x"};
    write_file(dir, "l.conf", "a\nbad\n");
    tap_is_int(read_conf(&caller, "l", &err), BRIG_E_INVALID, "a mistake in it");
    tap_is_str(err.message, "/etc/x/l.conf:2: no directive is called 'bad'", "is where it is");
}

static void remove_all(int dir, const char *path)
{
    static const char *const names[] = {"sub/c.conf", "sub/link"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        (void)unlinkat(dir, names[i], 0);
    (void)unlinkat(dir, "sub", AT_REMOVEDIR);
    autodir DIR *entries = opendir(path);
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        (void)unlinkat(dir, entry->d_name, 0);
    (void)rmdir(path);
}

int main(void)
{
    reads_lines();
    reads_comments();
    reads_escapes();
    continues_lines();
    keeps_to_the_limits();
    expands();
    quotes();
    refuses_bad_variables();

    char path[] = "/tmp/brig-conf-XXXXXX";
    if (!mkdtemp(path))
        tap_bail("mkdtemp: %s", strerror(errno));
    autoclose int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || mkdirat(dir, "sub", 0700) < 0)
        tap_bail("cannot make directories: %s", strerror(errno));
    includes(dir);
    misses(dir);
    takes_only_files(dir);
    detects_loops(dir);
    limits_includes(dir);
    loads(dir, path);
    remove_all(dir, path);
    return tap_done();
}
