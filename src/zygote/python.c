/* SPDX-License-Identifier: MIT */
/* Uses CPython's embedding API. The functions are looked up at run time, because the library is
 * loaded into whatever Python the operator configured. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "zygote/zygote.h"

typedef struct object object;

#define FILE_INPUT 257  /* Py_file_input */
#define PRACTICE 32     /* number of runs after which the interpreter has specialised its code */
#define AS_STARTED (-1) /* the optimization level of the command line */

/* Local name, CPython's name, result type and arguments. */
#define PYTHON_FUNCTIONS(X)                                                                        \
    X(gil_ensure, PyGILState_Ensure, int, (void))                                                  \
    X(before_fork, PyOS_BeforeFork, void, (void))                                                  \
    X(after_fork_parent, PyOS_AfterFork_Parent, void, (void))                                      \
    X(after_fork_child, PyOS_AfterFork_Child, void, (void))                                        \
    X(run_simple_file, PyRun_SimpleFileExFlags, int, (FILE *, const char *, int, void *))          \
    X(eval, PyEval_EvalCode, object *, (object *, object *, object *))                             \
    X(let_go, Py_DecRef, void, (object *))                                                         \
    X(compile, Py_CompileStringExFlags, object *, (const char *, const char *, int, void *, int))  \
    X(matches, PyErr_ExceptionMatches, int, (object *))                                            \
    X(fetch, PyErr_Fetch, void, (object **, object **, object **))                                 \
    X(normalize, PyErr_NormalizeException, void, (object **, object **, object **))                \
    X(clear, PyErr_Clear, void, (void))                                                            \
    X(run_string, PyRun_StringFlags, object *, (const char *, int, object *, object *, void *))    \
    X(dict_new, PyDict_New, object *, (void))                                                      \
    X(dict_get, PyDict_GetItemString, object *, (object *, const char *))                          \
    X(dict_set, PyDict_SetItemString, int, (object *, const char *, object *))                     \
    X(builtins, PyEval_GetBuiltins, object *, (void))                                              \
    X(dict_next, PyDict_Next, int, (object *, ssize_t *, object **, object **))                    \
    X(dict_size, PyDict_Size, ssize_t, (object *))                                                 \
    X(list_new, PyList_New, object *, (ssize_t))                                                   \
    X(list_append, PyList_Append, int, (object *, object *))                                       \
    X(call_one, PyObject_CallFunctionObjArgs, object *, (object *, ...))                           \
    X(text, PyUnicode_FromString, object *, (const char *))                                        \
    X(call, PyObject_CallObject, object *, (object *, object *))                                   \
    X(as_long, PyLong_AsLong, long, (object *))                                                    \
    X(print_error, PyErr_Print, void, (void))                                                      \
    X(finalize, Py_FinalizeEx, int, (void))

#define MEMBER(here, name, result, arguments) result(*here) arguments;
static struct {
    PYTHON_FUNCTIONS(MEMBER)
} api;

#define ROW(here, name, result, arguments) {&api.here, #name},
static const struct {
    void *place;
    const char *name;
} names[] = {PYTHON_FUNCTIONS(ROW)};

/* Objects of the Python source below. */
static object *renew, *exit_code, *finish, *rehearse, *settle, *loaded, *system_exit;
static ssize_t known; /* number of modules loaded before the fork; they come first in sys.modules */

/* Results of `finish` if it did nothing. */
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

/* Ends a program with the effects of Py_FinalizeEx() that a program can observe: wait for
 * non-daemon threads, run exit functions, flush output, and release the objects of the program and
 * its modules, so that __del__ runs. The interpreter's own modules are not torn down: that would
 * copy all their pages first, which takes longer than most programs. Unusual cases are left to the
 * interpreter. gc.freeze() hides objects from before the fork from the collector, so each run gets
 * a __main__ created after it. Modules that this source alone imports are removed from
 * sys.modules. */
static const char source[] =
    "import sys\n"
    "before = set(sys.modules)\n"
    "import gc, atexit\n"
    "from _weakref import ref\n"
    "from _frozen_importlib_external import SourceFileLoader\n"
    "SystemExit = SystemExit\n"
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
    "main = dict(vars(loaded['__main__']))\n"
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
    "def renew(file):\n"
    "    new = type(sys)('__main__')\n"
    "    names = vars(new)\n"
    "    names.clear()\n"
    "    names.update(main)\n"
    "    sys.modules['__main__'] = new\n"
    "    names['__file__'] = file\n"
    "    names['__cached__'] = None\n"
    "    names['__loader__'] = SourceFileLoader('__main__', file)\n"
    "    numbers = sys.modules.get('numpy.random')\n"
    "    if numbers is not None:\n"
    "        numbers.seed()\n"
    "    return names\n"
    "def exit_code(value):\n"
    "    code = value.code\n"
    "    if code is None:\n"
    "        return 0\n"
    "    if isinstance(code, int):\n"
    "        return code & 255\n"
    "    sys.stderr.write(str(code) + '\\n')\n"
    "    return 1\n"
    "def let_go(names, last):\n"
    "    own = []\n"
    "    for name in gone:\n"
    "        if last or hasattr(sys, name):\n"
    "            setattr(sys, name, None if last else getattr(sys, name))\n"
    "    names.append('__main__')\n"
    "    for name in names:\n"
    "        try:\n"
    "            own.append(ref(sys.modules[name]))\n"
    "        except TypeError:\n"
    "            pass\n"
    "        sys.modules[name] = None\n"
    "    gc.collect()\n"
    "    for left in own:\n"
    "        if isinstance(left(), type(sys)):\n"
    "            clear(vars(left()))\n"
    "    gc.collect()\n"
    "def finish(names, last=True):\n"
    "    if getattr(sys, 'last_type', None) is KeyboardInterrupt:\n"
    "        return 2\n"
    "    if sys.stdout is not sys.__stdout__ or sys.stderr is not sys.__stderr__:\n"
    "        return 1\n"
    "    threading = sys.modules.get('threading')\n"
    "    if threading is not None and last:\n"
    "        threading._shutdown()\n"
    "    if last or not atexit._ncallbacks():\n"
    "        atexit._run_exitfuncs()\n"
    "    flush()\n"
    "    try:\n"
    "        let_go(names, last)\n"
    "        flush()\n"
    "    except BaseException:\n"
    "        pass\n"
    "    return 0\n"
    "def rehearse(names):\n"
    "    finish(names, False)\n"
    "def settle():\n"
    "    gc.collect()\n"
    "    gc.freeze()\n"
    "settle()\n";

bool python_prepare(const char *modules)
{
    (void)api.gil_ensure(); /* never released: Python is stopped in fopen() */
    object *names_here = api.dict_new();
    object *wanted = api.text(modules);
    if (!names_here || !wanted || api.dict_set(names_here, "__builtins__", api.builtins()) < 0 ||
        api.dict_set(names_here, "modules", wanted) < 0)
        return false;
    if (!api.run_string(source, FILE_INPUT, names_here, names_here, NULL)) {
        api.print_error();
        return false;
    }
    renew = api.dict_get(names_here, "renew");
    exit_code = api.dict_get(names_here, "exit_code");
    finish = api.dict_get(names_here, "finish");
    rehearse = api.dict_get(names_here, "rehearse");
    settle = api.dict_get(names_here, "settle");
    loaded = api.dict_get(names_here, "loaded");
    system_exit = api.dict_get(names_here, "SystemExit");
    known = loaded ? api.dict_size(loaded) : 0;
    return renew && exit_code && finish && rehearse && settle && loaded && system_exit;
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

static object *main_names; /* __dict__ of __main__ */

bool python_renew(const char *file)
{
    main_names = api.call_one(renew, api.text(file), NULL);
    return main_names != NULL;
}

/* The builtin compile() first creates the types of syntax trees, which takes longer than running
 * most programs. */
static object *code_of(const char *text, const char *file)
{
    return api.compile(text, file, FILE_INPUT, NULL, AS_STARTED);
}

/* Runs the code as `python3 FILE` does, without a Python frame above it. */
static bool run_code(object *code)
{
    object *result = api.eval(code, main_names, main_names);
    api.let_go(code);
    return result != NULL;
}

/* Does some of what most programs do, without writing output. Every page that it touches is copied
 * for each run, so it should not do more. */
static const char sample[] = "for i in range(2):\n"
                             "    print('', end='')\n";

/* Returns the names of modules that the program has loaded. Modules from before the fork are not
 * touched: changing their reference count would copy their pages. */
static object *own_modules(void)
{
    object *names_found = api.list_new(0), *name, *module;
    ssize_t at = 0;
    for (ssize_t i = 0; names_found && api.dict_next(loaded, &at, &name, &module); i++)
        if (i >= known)
            (void)api.list_append(names_found, name);
    return names_found;
}

static object *end_by(object *function)
{
    object *own = own_modules();
    object *answer = api.call_one(function, own, NULL);
    api.let_go(own);
    return answer;
}

void python_touch(const char *file)
{
    object *code = python_renew(file) ? code_of(sample, file) : NULL;
    bool done = code && run_code(code);
    api.let_go(main_names);
    if (!done || !end_by(rehearse))
        api.clear();
}

void python_practise(const char *file)
{
    for (int i = 0; i < PRACTICE; i++)
        python_touch(file);
    if (!api.call_one(settle, NULL))
        api.clear();
}

static __attribute__((noreturn)) void end_slowly(int status, bool interrupted)
{
    if (api.finalize() < 0)
        status = 120;
    if (interrupted) { /* end by the signal, so that the parent sees it */
        (void)signal(SIGINT, SIG_DFL);
        (void)kill(getpid(), SIGINT);
    }
    exit(status);
}

/* Returns the exit status of a program that ended with an exception. */
static int status_of_error(void)
{
    if (!api.matches(system_exit)) {
        api.print_error();
        return 1;
    }
    object *type, *value, *trace;
    api.fetch(&type, &value, &trace);
    api.normalize(&type, &value, &trace);
    object *code = api.call_one(exit_code, value, NULL);
    if (code)
        return (int)api.as_long(code);
    api.print_error();
    return 1;
}

static char *read_file(const char *file, size_t *ret_length)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    struct stat info;
    char *text = NULL;
    size_t length = 0;
    if (fd >= 0 && fstat(fd, &info) == 0 && (text = malloc((size_t)info.st_size + 1))) {
        ssize_t count;
        while (length < (size_t)info.st_size &&
               (count = read(fd, text + length, (size_t)info.st_size - length)) > 0)
            length += (size_t)count;
        text[length] = '\0';
    }
    if (fd >= 0)
        (void)close(fd);
    *ret_length = length;
    return text;
}

/* Runs a file that does not compile, so that the interpreter prints the same message as for
 * `python3 FILE`. */
static int run_bad_code(const char *file)
{
    FILE *program = fopen(file, "rbe");
    api.clear();
    return program && api.run_simple_file(program, file, 1, NULL) == 0 ? 0 : 1;
}

void python_run(const char *file)
{
    size_t length = 0;
    char *text = read_file(file, &length);
    if (!text) {
        perror(file);
        end_slowly(2, false);
    }
    object *code = memchr(text, '\0', length) ? NULL : code_of(text, file);
    free(text);
    int status = code ? (run_code(code) ? 0 : status_of_error()) : run_bad_code(file);
    api.let_go(main_names);
    object *answer = end_by(finish);
    long left = answer ? api.as_long(answer) : LEFT_TO_PYTHON;
    if (left != 0)
        end_slowly(status, left == INTERRUPTED);
    (void)fflush(NULL);
    _exit(status);
}
