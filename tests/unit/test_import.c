/* SPDX-License-Identifier: MIT */
/* Files of jai become files of brig: what is changed, what is reported, and which files are found. */
#include "cli/settings/import.h"

#include <string.h>

#include "base/str.h"
#include "tap.h"

static void conversions(void)
{
    static const struct {
        const char *from, *to, *notes, *sentence;
    } rows[] = {
        {"# words\n\nmask .aws\nsetenv A=b\n", "# words\n\nmask .aws\nsetenv A=b\n", "",
         "directives of both are kept, with comments and empty lines"},
        {"storage /srv/jails\nmode bare\n", "# storage /srv/jails\nmode bare\n",
         "1: 'storage' is left out: brig keeps its jails apart\n", "storage is left out"},
        {"nonsense x\\\n  more\nmode bare\n", "# nonsense x\\\n#   more\nmode bare\n",
         "1: brig has no 'nonsense'\n", "an unknown directive is left out with its next line"},
        {"command a\\\nstorage x\n", "command a\\\nstorage x\n", "",
         "a continued line is part of the value before"},
        {"script? sub/x.sh\n", "script? /home/u/.jai/sub/x.sh\n",
         "1: the file is named with its directory\n", "a script in a directory"},
        {"initjail=make\n", "initjail=make\n", "1: 'initjail' can run a program outside of jails\n",
         "a script beside the file"},
        {"mode bare\ninject x authorization=c\\md:y\n",
         "mode bare\ninject x authorization=c\\md:y\n",
         "2: 'inject' can run a program outside of jails\n", "a command for a secret"},
        {"script /etc/x\n", "script /etc/x\n", "", "an absolute one"},
        {"mode strict", "mode strict\n", "", "the last line without its end"},
        {"verbose\n", "# verbose\n", "1: brig has no 'verbose'\n",
         "an option that is no directive"},
        {"", "", "", "an empty file"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        autostr struct str to = {0};
        autostr struct str notes = {0};
        import_convert(rows[i].from, "/home/u/.jai", &to, &notes);
        tap_is_str(to.data ? to.data : "", rows[i].to, "%s", rows[i].sentence);
        tap_is_str(notes.data ? notes.data : "", rows[i].notes, "and what is said about it");
    }
}

static void add(void *context, const char *value)
{
    str_concat(context, value, ",");
}

static void scans(void)
{
    autostr struct str found = {0};
    const struct import_hooks hooks = {&found, add, add};
    import_scan("script? .jairc\nscript a/b\ninitjail =  make-it \n# script no\nstorage jails\n"
                "storage=\n",
                &hooks);
    tap_is_str(found.data, ".jairc,make-it,jails,,", "scripts beside the file, and the storage");
}

int main(void)
{
    conversions();
    scans();
    return tap_done();
}
