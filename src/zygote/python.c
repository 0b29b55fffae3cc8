/* SPDX-License-Identifier: MIT */
/* CPython, by the functions it has for programs that embed it; they are found at run time, as this is
 * loaded into whatever Python is configured. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "zygote/zygote.h"

typedef struct object object;

#define FILE_INPUT 257 /* Py_file_input */

static struct {
    int (*gil_ensure)(void);
    void (*before_fork)(void);
    void (*after_fork_parent)(void);
    void (*after_fork_child)(void);
    int (*run_simple_file)(FILE *, const char *, int, void *);
    object *(*run_string)(const char *, int, object *, object *, void *);
    object *(*dict_new)(void);
    object *(*dict_get)(object *, const char *);
    int (*dict_set)(object *, const char *, object *);
    object *(*builtins)(void);
    int (*dict_next)(object *, ssize_t *, object **, object **);
    ssize_t (*dict_size)(object *);
    object *(*list_new)(ssize_t);
    int (*list_append)(object *, object *);
    object *(*call_one)(object *, ...);
    object *(*text)(const char *);
    object *(*call)(object *, object *);
    long (*as_long)(object *);
    void (*print_error)(void);
    int (*finalize)(void);
} api;

static const struct {
    void *place;
    const char *name;
} names[] = {
    {&api.gil_ensure, "PyGILState_Ensure"},
    {&api.before_fork, "PyOS_BeforeFork"},
    {&api.after_fork_parent, "PyOS_AfterFork_Parent"},
    {&api.after_fork_child, "PyOS_AfterFork_Child"},
    {&api.run_simple_file, "PyRun_SimpleFileExFlags"},
    {&api.run_string, "PyRun_StringFlags"},
    {&api.dict_new, "PyDict_New"},
    {&api.dict_get, "PyDict_GetItemString"},
    {&api.dict_set, "PyDict_SetItemString"},
    {&api.builtins, "PyEval_GetBuiltins"},
    {&api.dict_next, "PyDict_Next"},
    {&api.dict_size, "PyDict_Size"},
    {&api.list_new, "PyList_New"},
    {&api.list_append, "PyList_Append"},
    {&api.call_one, "PyObject_CallFunctionObjArgs"},
    {&api.text, "PyUnicode_FromString"},
    {&api.call, "PyObject_CallObject"},
    {&api.as_long, "PyLong_AsLong"},
    {&api.print_error, "PyErr_Print"},
    {&api.finalize, "Py_FinalizeEx"},
};

static object *finish, *renew, *loaded; /* see below */
static ssize_t known; /* modules that were loaded before the fork: the first of them */

/* What it answers where it has done nothing. */
enum { LEFT_TO_PYTHON = 1, INTERRUPTED = 2 };

bool python_is_here(void)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *found = dlsym(RTLD_DEFAULT, names[i].name);
        if (!found)
            return false;
        memcpy(names[i].place, &found, sizeof found);
    }
    return true;
}

/* What an end by Py_FinalizeEx() does that a program can see: threads that are not daemons are waited for,
 * exit functions run, what was written goes out, and the objects of the program and of its own modules
 * are let go, so that their __del__ runs. What the interpreter brought along is not taken down: all of it
 * would have to be copied for that first, which takes longer than most programs. Whatever is out
 * of the ordinary is left to the interpreter itself. gc.freeze() keeps the collector from what was there
 * before the fork; so each run has a __main__ that is younger. Names that were not there are not left
 * behind. */
static const char source[] =
    "import sys\n"
    "before = set(sys.modules)\n"
    "import gc, atexit\n"
    "from _weakref import ref\n"
    "for name in modules.split():\n"
    "    try:\n"
    "        __import__(name)\n"
    "        before.add(name)\n"
    "    except Exception as error:\n"
    "        print('cannot import', name + ':', error, file=sys.stderr)\n"
    "for name in ('gc', 'atexit'):\n"
    "    if name not in before:\n"
    "        del sys.modules[name]\n"
    "loaded = sys.modules\n"
    "gone = ('path', 'argv', 'ps1', 'ps2', 'last_type', 'last_value', 'last_traceback',\n"
    "        'path_hooks', 'path_importer_cache', 'meta_path')\n"
    "def clear(names):\n"
    "    for own in (True, False):\n"
    "        for name in list(names):\n"
    "            hidden = name.startswith('_') and not name.startswith('__')\n"
    "            if name != '__builtins__' and (hidden or not own) and names[name] is not None:\n"
    "                names[name] = None\n"
    "def flush():\n"
    "    for stream in (sys.stdout, sys.stderr):\n"
    "        if stream is not None and not stream.closed:\n"
    "            stream.flush()\n"
    "def renew():\n"
    "    old = sys.modules['__main__']\n"
    "    new = type(sys)('__main__')\n"
    "    vars(new).clear()\n"
    "    vars(new).update(vars(old))\n"
    "    sys.modules['__main__'] = new\n"
    "def let_go(names):\n"
    "    own = []\n"
    "    for name in gone:\n"
    "        setattr(sys, name, None)\n"
    "    names.append('__main__')\n"
    "    for name in names:\n"
    "        try:\n"
    "            own.append(ref(sys.modules[name]))\n"
    "        except TypeError:\n"
    "            pass\n"
    "        sys.modules[name] = None\n"
    "    gc.collect()\n"
    "    for left in own:\n"
    "        if left() is not None:\n"
    "            clear(vars(left()))\n"
    "    gc.collect()\n"
    "def finish(names):\n"
    "    if getattr(sys, 'last_type', None) is KeyboardInterrupt:\n"
    "        return 2\n"
    "    if sys.stdout is not sys.__stdout__ or sys.stderr is not sys.__stderr__:\n"
    "        return 1\n"
    "    threading = sys.modules.get('threading')\n"
    "    if threading is not None:\n"
    "        threading._shutdown()\n"
    "    atexit._run_exitfuncs()\n"
    "    flush()\n"
    "    let_go(names)\n"
    "    flush()\n"
    "    return 0\n"
    "gc.collect()\n"
    "gc.freeze()\n";

bool python_prepare(const char *modules)
{
    (void)api.gil_ensure(); /* and never let go: the interpreter waits for us */
    object *names_here = api.dict_new();
    object *wanted = api.text(modules);
    if (!names_here || !wanted || api.dict_set(names_here, "__builtins__", api.builtins()) < 0 ||
        api.dict_set(names_here, "modules", wanted) < 0)
        return false;
    if (!api.run_string(source, FILE_INPUT, names_here, names_here, NULL)) {
        api.print_error();
        return false;
    }
    finish = api.dict_get(names_here, "finish");
    renew = api.dict_get(names_here, "renew");
    loaded = api.dict_get(names_here, "loaded");
    known = loaded ? api.dict_size(loaded) : 0;
    return finish && renew && loaded;
}

void python_before_fork(void)
{
    api.before_fork();
}

void python_after_fork(bool child)
{
    if (child)
        api.after_fork_child();
    else
        api.after_fork_parent();
}

void python_renew(void)
{
    (void)api.call(renew, NULL);
}

void python_touch(const char *file)
{
    static char text[] = "print('', end='')\n";
    FILE *program = fmemopen(text, sizeof text - 1, "r");
    if (program)
        (void)api.run_simple_file(program, file, 1, NULL);
}

static __attribute__((noreturn)) void end_slowly(int status, bool interrupted)
{
    if (api.finalize() < 0)
        status = 120;
    if (interrupted) { /* so that who waits for it knows */
        (void)signal(SIGINT, SIG_DFL);
        (void)kill(getpid(), SIGINT);
    }
    exit(status);
}

/* The names of modules that the program has loaded. To look at one of the others, even to count that,
 * would write to its page. */
static object *own_modules(void)
{
    object *names_found = api.list_new(0), *name, *module;
    ssize_t at = 0;
    for (ssize_t i = 0; names_found && api.dict_next(loaded, &at, &name, &module); i++)
        if (i >= known)
            (void)api.list_append(names_found, name);
    return names_found;
}

void python_run(const char *file)
{
    FILE *program = fopen(file, "rb");
    if (!program) {
        perror(file);
        end_slowly(2, false);
    }
    int status = api.run_simple_file(program, file, 1, NULL) == 0 ? 0 : 1;
    object *answer = api.call_one(finish, own_modules(), NULL);
    long left = answer ? api.as_long(answer) : LEFT_TO_PYTHON;
    if (left != 0)
        end_slowly(status, left == INTERRUPTED);
    (void)fflush(NULL);
    _exit(status);
}
