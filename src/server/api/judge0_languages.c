/* SPDX-License-Identifier: MIT */
/* The languages of Judge0. */
#include "server/api/judge0_languages.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "server/config/config.h"

/* Languages of Judge0 1.13.1, then those that its public server has added. Several of them stand for
 * the one version that is installed. Those up to 42 are archived. */
static const struct row {
    int id;
    const char *name;
    const char *runtime; /* or a word of `forms` */
} rows[] = {
    {1, "Bash (4.4)", NULL},
    {2, "Bash (4.0)", NULL},
    {3, "Basic (fbc 1.05.0)", NULL},
    {4, "C (gcc 7.2.0)", NULL},
    {5, "C (gcc 6.4.0)", NULL},
    {6, "C (gcc 6.3.0)", NULL},
    {7, "C (gcc 5.4.0)", NULL},
    {8, "C (gcc 4.9.4)", NULL},
    {9, "C (gcc 4.8.5)", NULL},
    {10, "C++ (g++ 7.2.0)", NULL},
    {11, "C++ (g++ 6.4.0)", NULL},
    {12, "C++ (g++ 6.3.0)", NULL},
    {13, "C++ (g++ 5.4.0)", NULL},
    {14, "C++ (g++ 4.9.4)", NULL},
    {15, "C++ (g++ 4.8.5)", NULL},
    {16, "C# (mono 5.4.0.167)", NULL},
    {17, "C# (mono 5.2.0.224)", NULL},
    {18, "Clojure (1.8.0)", NULL},
    {19, "Crystal (0.23.1)", NULL},
    {20, "Elixir (1.5.1)", NULL},
    {21, "Erlang (OTP 20.0)", NULL},
    {22, "Go (1.9)", NULL},
    {23, "Haskell (ghc 8.2.1)", NULL},
    {24, "Haskell (ghc 8.0.2)", NULL},
    {25, "Insect (5.0.0)", NULL},
    {26, "Java (OpenJDK 9 with Eclipse OpenJ9)", NULL},
    {27, "Java (OpenJDK 8)", NULL},
    {28, "Java (OpenJDK 7)", NULL},
    {29, "JavaScript (nodejs 8.5.0)", NULL},
    {30, "JavaScript (nodejs 7.10.1)", NULL},
    {31, "OCaml (4.05.0)", NULL},
    {32, "Octave (4.2.0)", NULL},
    {33, "Pascal (fpc 3.0.0)", NULL},
    {34, "Python (3.6.0)", NULL},
    {35, "Python (3.5.3)", NULL},
    {36, "Python (2.7.9)", NULL},
    {37, "Python (2.6.9)", NULL},
    {38, "Ruby (2.4.0)", NULL},
    {39, "Ruby (2.3.3)", NULL},
    {40, "Ruby (2.2.6)", NULL},
    {41, "Ruby (2.1.9)", NULL},
    {42, "Rust (1.20.0)", NULL},
    {43, "Plain Text", "text"},
    {44, "Executable", "executable"},
    {45, "Assembly (NASM 2.14.02)", "nasm"},
    {46, "Bash (5.0.0)", "bash"},
    {47, "Basic (FBC 1.07.1)", "basic"},
    {48, "C (GCC 7.4.0)", "c"},
    {49, "C (GCC 8.3.0)", "c"},
    {50, "C (GCC 9.2.0)", "c"},
    {51, "C# (Mono 6.6.0.161)", "csharp"},
    {52, "C++ (GCC 7.4.0)", "c++"},
    {53, "C++ (GCC 8.3.0)", "c++"},
    {54, "C++ (GCC 9.2.0)", "c++"},
    {55, "Common Lisp (SBCL 2.0.0)", "lisp"},
    {56, "D (DMD 2.089.1)", "d"},
    {57, "Elixir (1.9.4)", "elixir"},
    {58, "Erlang (OTP 22.2)", "erlang"},
    {59, "Fortran (GFortran 9.2.0)", "fortran"},
    {60, "Go (1.13.5)", "go"},
    {61, "Haskell (GHC 8.8.1)", "haskell"},
    {62, "Java (OpenJDK 13.0.1)", "java"},
    {63, "JavaScript (Node.js 12.14.0)", "node"},
    {64, "Lua (5.3.5)", "lua"},
    {65, "OCaml (4.09.0)", "ocaml"},
    {66, "Octave (5.1.0)", "octave"},
    {67, "Pascal (FPC 3.0.4)", "pascal"},
    {68, "PHP (7.4.1)", "php"},
    {69, "Prolog (GNU Prolog 1.4.5)", "prolog"},
    {70, "Python (2.7.17)", "python2"},
    {71, "Python (3.8.1)", "python"},
    {72, "Ruby (2.7.0)", "ruby"},
    {73, "Rust (1.40.0)", "rust"},
    {74, "TypeScript (3.7.4)", "typescript"},
    {75, "C (Clang 7.0.1)", "c"},
    {76, "C++ (Clang 7.0.1)", "c++"},
    {77, "COBOL (GnuCOBOL 2.2)", "cobol"},
    {78, "Kotlin (1.3.70)", "kotlin"},
    {79, "Objective-C (Clang 7.0.1)", "objective-c"},
    {80, "R (4.0.0)", "r"},
    {81, "Scala (2.13.2)", "scala"},
    {82, "SQL (SQLite 3.27.2)", "sqlite"},
    {83, "Swift (5.2.3)", "swift"},
    {84, "Visual Basic.Net (vbnc 0.0.0.5943)", "vb"},
    {85, "Perl (5.28.1)", "perl"},
    {86, "Clojure (1.10.1)", "clojure"},
    {87, "F# (.NET Core SDK 3.1.202)", "fsharp"},
    {88, "Groovy (3.0.3)", "groovy"},
    {89, "Multi-file program", "project"},
    {90, "Dart (2.19.2)", "dart"},
    {91, "Java (JDK 17.0.6)", "java"},
    {92, "Python (3.11.2)", "python"},
    {93, "JavaScript (Node.js 18.15.0)", "node"},
    {94, "TypeScript (5.0.3)", "typescript"},
    {95, "Go (1.18.5)", "go"},
    {96, "JavaFX (JDK 17.0.6, OpenJFX 22.0.2)", "java"},
    {97, "JavaScript (Node.js 20.17.0)", "node"},
    {98, "PHP (8.3.11)", "php"},
    {99, "R (4.4.1)", "r"},
    {100, "Python (3.12.5)", "python"},
    {101, "TypeScript (5.6.2)", "typescript"},
    {102, "JavaScript (Node.js 22.08.0)", "node"},
    {103, "C (GCC 14.1.0)", "c"},
    {104, "C (Clang 18.1.8)", "c"},
    {105, "C++ (GCC 14.1.0)", "c++"},
    {106, "Go (1.22.0)", "go"},
    {107, "Go (1.23.5)", "go"},
    {108, "Rust (1.85.0)", "rust"},
    {109, "Python (3.13.2)", "python"},
    {110, "C (Clang 19.1.7)", "c"},
    {111, "Kotlin (2.1.10)", "kotlin"},
    {112, "Scala (3.4.2)", "scala"},
    {113, "Python (3.14.0)", "python"},
};

/* What is run by a script. */
static const struct {
    const char *word;
    enum judge0_form form;
    const char *runtime; /* that must be there */
} forms[] = {
    {"text", JUDGE0_TEXT, "bash"},
    {"executable", JUDGE0_EXECUTABLE, "bash"},
    {"project", JUDGE0_PROJECT, "project"},
    {"sqlite", JUDGE0_SQL, "sqlite"},
};

/* Names of languages that run, with "%s" for the version. Clients look for their beginnings. */
static const struct {
    const char *runtime, *format;
} names[] = {
    {"bash", "Bash (%s)"},
    {"c", "C (GCC %s)"},
    {"c++", "C++ (GCC %s)"},
    {"go", "Go (%s)"},
    {"java", "Java (OpenJDK %s)"},
    {"lua", "Lua (%s)"},
    {"node", "JavaScript (Node.js %s)"},
    {"perl", "Perl (%s)"},
    {"php", "PHP (%s)"},
    {"python", "Python (%s)"},
    {"r", "R (%s)"},
    {"ruby", "Ruby (%s)"},
    {"rust", "Rust (%s)"},
    {"sqlite", "SQL (SQLite %s)"},
    {"typescript", "TypeScript (%s)"},
};

/* ---- finding ---- */

static json_t *parse(const struct str *runtimes)
{
    return json_loadb(runtimes->data ? runtimes->data : "", runtimes->length, 0, NULL);
}

static const json_t *find_runtime(const json_t *root, const char *name)
{
    const json_t *list = json_object_get(root, "runtimes");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        if (str_equal(json_string_value(json_object_get(one, "name")), name))
            return one;
    }
    return NULL;
}

/* "Python (3.11.2)". A runtime of the operator's has Judge0's name. */
static void make_name(const char *runtime, const char *version, char name[JUDGE0_NAME_MAX])
{
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        const char *format = names[i].format, *place = strstr(format, "%s");
        if (strcmp(names[i].runtime, runtime) == 0 && place)
            (void)snprintf(name, JUDGE0_NAME_MAX, "%.*s%s)", (int)(place - format), format,
                           version ? version : "installed");
    }
}

static void look_up(const struct server_config *config, const json_t *root, const struct row *row,
                    struct judge0_language *ret)
{
    const char *name = row->runtime;
    *ret = (struct judge0_language){.id = row->id};
    (void)snprintf(ret->name, sizeof ret->name, "%s", row->name);
    for (size_t i = 0; name && i < ARRAY_LENGTH(forms); i++)
        if (strcmp(forms[i].word, row->runtime) == 0) {
            ret->form = forms[i].form;
            name = forms[i].runtime;
        }
    const struct runtime *runtime = name ? config_find_runtime(config, name) : NULL;
    const json_t *known = runtime ? find_runtime(root, runtime->name) : NULL;
    if (!runtime || runtime->agent || !json_is_true(json_object_get(known, "available")))
        return;
    ret->runtime = runtime;
    if (ret->form == JUDGE0_CODE || ret->form == JUDGE0_SQL)
        make_name(name, json_string_value(json_object_get(known, "version")), ret->name);
    if (ret->form == JUDGE0_SQL)
        ret->runtime = config_find_runtime(config, "bash");
}

bool judge0_language_find(const struct server_config *config, const struct str *runtimes,
                          int64_t id, struct judge0_language *ret_language)
{
    json_auto_t *root = parse(runtimes);
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        if (rows[i].id == id) {
            look_up(config, root, &rows[i], ret_language);
            return true;
        }
    return false;
}

bool judge0_language_is_compiled(const struct judge0_language *language)
{
    return language->form == JUDGE0_CODE && language->runtime && language->runtime->compile[0];
}

/* ---- writing ---- */

static int by_name(const void *a, const void *b)
{
    const struct judge0_language *one = a, *two = b;
    int order = strcmp(one->name, two->name);
    return order != 0 ? order : one->id < two->id ? -1 : one->id > two->id;
}

void judge0_languages_write(const struct server_config *config, const struct str *runtimes,
                            bool all, struct json *j)
{
    json_auto_t *root = parse(runtimes);
    struct judge0_language list[ARRAY_LENGTH(rows)];
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        look_up(config, root, &rows[i], &list[i]);
    qsort(list, ARRAY_LENGTH(list), sizeof *list, by_name);
    json_open_array(j, NULL);
    for (size_t i = 0; i < ARRAY_LENGTH(list); i++) {
        if (!all && !list[i].runtime)
            continue;
        json_open_object(j, NULL);
        json_int(j, "id", list[i].id);
        json_text(j, "name", list[i].name);
        if (all)
            json_bool(j, "is_archived", !list[i].runtime);
        json_close_object(j);
    }
    json_close_array(j);
}

static void write_command(struct json *j, const char *key, const char *const *words)
{
    autostr struct str text = {0};
    if (!words[0]) {
        json_nothing(j, key);
        return;
    }
    str_join(&text, words);
    json_text(j, key, text.data);
    j->out->failed |= text.failed;
}

void judge0_language_write(const struct judge0_language *language, struct json *j)
{
    static const char *const files[] = {[JUDGE0_TEXT] = JUDGE0_TEXT_FILE,
                                        [JUDGE0_EXECUTABLE] = JUDGE0_EXECUTABLE_FILE,
                                        [JUDGE0_SQL] = JUDGE0_SQL_FILE,
                                        [JUDGE0_PROJECT] = NULL};
    static const char *const scripts[] = {[JUDGE0_TEXT] = JUDGE0_TEXT_SCRIPT,
                                          [JUDGE0_EXECUTABLE] = JUDGE0_EXECUTABLE_SCRIPT,
                                          [JUDGE0_SQL] = JUDGE0_SQL_SCRIPT,
                                          [JUDGE0_PROJECT] = NULL};
    static const char *const nothing[] = {NULL};
    bool code = language->form == JUDGE0_CODE;
    const struct runtime *runtime = language->runtime;
    json_open_object(j, NULL);
    json_int(j, "id", language->id);
    json_text(j, "name", language->name);
    json_bool(j, "is_archived", !runtime);
    json_text(j, "source_file",
              !runtime ? NULL
              : code   ? runtime->file_name
                       : files[language->form]);
    write_command(j, "compile_cmd", runtime && code ? runtime->compile : nothing);
    if (runtime && code)
        write_command(j, "run_cmd", runtime->argv);
    else
        json_text(j, "run_cmd", runtime ? scripts[language->form] : NULL);
    json_close_object(j);
}
