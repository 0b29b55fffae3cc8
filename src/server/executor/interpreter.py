# SPDX-License-Identifier: MIT
"""Runs the code of a sandbox's context for Python. It is given by -c, and speaks JSON lines on descriptor 3: it reads
{"run": number, "env": ["NAME=value", …], "code": text}, and writes objects whose `type` is ready, begun, result,
error or done. The names of the code are those of the module __main__."""


def __brig_main():
    import ast
    import base64
    import builtins
    import importlib.machinery
    import io
    import json
    import linecache
    import os
    import re
    import signal
    import sys
    import threading
    import traceback

    CHANNEL, OWN_PID = 3, os.getpid()
    TEXT_MAX, FORM_MAX, RESULTS_MAX, RUN_MAX = 40_000, 6 << 20, 256, 14 << 20  # the server ends one that sends more
    FIGURES = "brig_figures"
    IS_COROUTINE = 0x80  # inspect.CO_COROUTINE
    METHODS = {"html": "text/html", "markdown": "text/markdown", "svg": "image/svg+xml", "png": "image/png",
               "jpeg": "image/jpeg", "pdf": "application/pdf", "latex": "text/latex", "json": "application/json",
               "javascript": "application/javascript"}
    state = {"run": 0, "results": 0, "bytes": 0, "told": False, "count": 0, "loop": None, "futures": 0}
    lock = threading.Lock()

    # ---- the channel ----

    def say(**message):
        if os.getpid() != OWN_PID:  # a process that the code has forked is not the interpreter
            return
        line = json.dumps(message, separators=(",", ":"), default=str).encode() + b"\n"
        with lock:
            blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # the line has to be whole
            while line:
                line = line[os.write(CHANNEL, line):]
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def lines():
        rest = b""
        while True:
            *complete, rest = rest.split(b"\n")
            yield from complete
            piece = os.read(CHANNEL, 1 << 16)
            if not piece:
                return
            rest += piece

    def warn(text):
        print(text, file=sys.stderr)

    # ---- values ----

    def as_text(value):
        return base64.b64encode(value).decode() if isinstance(value, (bytes, bytearray)) else value

    def own_forms(value):
        """Those that the value makes by methods for notebooks."""
        forms = {}
        bundle = getattr(value, "_repr_mimebundle_", None)
        if callable(bundle):
            bundle = bundle()
            bundle = bundle[0] if isinstance(bundle, tuple) else bundle
            forms.update({str(name): as_text(form) for name, form in (bundle or {}).items()})
        for name, mime in METHODS.items():
            method = getattr(value, f"_repr_{name}_", None)
            form = method() if mime not in forms and callable(method) else None
            form = form[0] if isinstance(form, tuple) else form
            if form is not None:
                forms[mime] = as_text(form)
        return forms

    def describe(value):
        """All forms of a value: MIME type to text or JSON; bytes are in base64."""
        forms = {} if isinstance(value, type) else own_forms(value)
        library = type(value).__module__.partition(".")[0]
        if library == "matplotlib" and hasattr(value, "savefig"):
            forms["image/png"] = picture(value)
        if library == "pandas" and hasattr(value, "columns") and hasattr(value, "to_json"):
            forms["application/vnd.brig.table+json"] = table(value)
        if isinstance(value, (dict, list, tuple)) and "application/json" not in forms:
            try:
                forms["application/json"] = json.loads(json.dumps(value, allow_nan=False))
            except (TypeError, ValueError, RecursionError):
                pass
        return {"text/plain": repr(value), **forms}

    def table(frame):
        """The columns of a table of pandas, by their names."""
        rows = json.loads(frame.to_json(orient="values", date_format="iso"))
        return {str(name): [row[at] for row in rows] for at, name in enumerate(frame.columns)}

    def fitting(forms):
        """The forms without those that are too large."""
        found = {}
        for mime, form in forms.items():
            if mime == "text/plain":
                form = str(form)[:TEXT_MAX]
            length = len(json.dumps(form, default=str))
            if length > FORM_MAX:
                warn(f"the value as {mime} has more than {FORM_MAX} bytes, and is left out")
                continue
            state["bytes"] += length
            found[mime] = form
        return found

    def show(forms, main=False):
        forms = fitting(forms)
        state["results"] += 1
        if state["results"] <= RESULTS_MAX and state["bytes"] <= RUN_MAX:
            say(type="result", run=state["run"], main=main, data=forms)
        elif not state["told"]:
            state["told"] = True
            warn("there are too many results, or too large ones: the rest is left out")

    def display(*values, **_):
        """Shows values as results of the run."""
        for value in values:
            show(describe(value))

    # ---- figures of matplotlib ----

    def picture(figure):
        stream = io.BytesIO()
        figure.savefig(stream, format="png", bbox_inches="tight")
        return as_text(stream.getvalue())

    def show_figures(*_, **__):
        pyplot = sys.modules.get("matplotlib.pyplot")
        if not hasattr(pyplot, "get_fignums"):
            return
        for number in pyplot.get_fignums():
            figure = pyplot.figure(number)
            show({"text/plain": repr(figure), "image/png": picture(figure)})
        pyplot.close("all")

    class Figures:
        """Finds and loads matplotlib's backend: Agg, with a show() that makes results."""

        def find_spec(self, name, path=None, target=None):
            return importlib.machinery.ModuleSpec(name, self) if name == FIGURES else None

        def create_module(self, spec):
            return None

        def exec_module(self, module):
            from matplotlib.backends import backend_agg
            vars(module).update({name: value for name, value in vars(backend_agg).items() if name[:2] != "__"})
            module.show = show_figures

    # ---- errors ----

    def text_of(error):
        """The traceback without frames of this program, and of what it uses to run the code."""
        trace = error.__traceback__
        while trace and not trace.tb_frame.f_code.co_filename.startswith("<run "):
            trace = trace.tb_next
        return "".join(traceback.format_exception(type(error), error, trace))

    def tell_error(error):
        name = type(error).__name__
        try:
            value, text = str(error), text_of(error)
        except Exception as second:
            value, text = "", f"{name}: its text cannot be made ({type(second).__name__})\n"
        say(type="error", run=state["run"], name=name, value=value[:TEXT_MAX], traceback=text[-TEXT_MAX:])

    # ---- runs ----

    def wait_for(coroutine):
        import asyncio
        loop = state["loop"]
        if loop is None or loop.is_closed():
            loop = state["loop"] = asyncio.new_event_loop()
            asyncio.set_event_loop(loop)
        task = loop.create_task(coroutine)
        try:
            return loop.run_until_complete(task)
        except KeyboardInterrupt:
            task.cancel()
            loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
            raise

    def evaluate(tree, name):
        code = compile(tree, name, "eval" if isinstance(tree, ast.Expression) else "exec",
                       flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | state["futures"], dont_inherit=True)
        state["futures"] |= code.co_flags & FUTURES
        value = eval(code, names)
        return wait_for(value) if code.co_flags & IS_COROUTINE else value

    def parse(text, name):
        """Returns the tree, and the text with what notebooks have: `!command` and `%pip`, which are for a shell."""
        try:
            return ast.parse(text, name), text
        except SyntaxError:
            shell = re.sub(r"^([ \t]*)(?:!|%(?=pip\b))(.*)$",
                           lambda found: f"{found[1]}__import__('subprocess').run({found[2]!r}, shell=True);", text,
                           flags=re.MULTILINE)
            shell = re.sub(r"^[ \t]*%matplotlib\b.*$", "", shell, flags=re.MULTILINE)
            if shell == text:
                raise
            return ast.parse(shell, name), shell

    def is_silent(text, last):
        """A semicolon at the end keeps the value from being shown, as in notebooks."""
        rest = "\n".join(text.splitlines()[last.end_lineno - 1:]).encode()[last.end_col_offset:]
        return rest.lstrip().startswith(b";")

    def execute(text):
        name = f"<run {state['count']}>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        tree, text = parse(text, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        if tree.body:
            evaluate(tree, name)
        value = evaluate(ast.Expression(last.value), name) if last else None
        if value is not None and not is_silent(text, last):
            names["_"] = value
            show(describe(value), main=True)

    def set_variables(pairs):
        """Returns those that were there before."""
        before = {}
        for name, value in pairs:
            before.setdefault(name, os.environ.get(name))
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        return before

    def ignore_interrupts():
        """Unless the code has a handler of its own."""
        while signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            try:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
            except KeyboardInterrupt:
                pass

    def run(request):
        try:
            if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            say(type="begun", run=request["run"])
            try:
                execute(request["code"])
            finally:
                show_figures()
        except BaseException as error:  # also SystemExit: the interpreter stays
            ignore_interrupts()
            tell_error(error)

    def finish(request, before):
        """Undoes what a run may do to the interpreter."""
        ignore_interrupts()
        if os.getpid() != OWN_PID:  # the code has forked, and this is the child
            os._exit(0)
        set_variables(before.items())
        if sys.stdin is None or sys.stdin.closed:  # by exit()
            sys.stdin = open(os.devnull)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass
        say(type="done", run=request["run"])

    import __future__
    FUTURES = 0
    for feature in __future__.all_feature_names:
        FUTURES |= getattr(__future__, feature).compiler_flag
    names = vars(sys.modules["__main__"])
    names.clear()
    names.update({"__name__": "__main__", "__builtins__": builtins, "__doc__": None})
    sys.argv = [""]
    sys.stdout.reconfigure(line_buffering=True)
    builtins.display = display
    os.environ.setdefault("MPLBACKEND", f"module://{FIGURES}")
    sys.meta_path.insert(0, Figures())
    os.set_inheritable(CHANNEL, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    say(type="ready")
    for line in lines():
        request = json.loads(line)
        state.update(run=request["run"], results=0, bytes=0, told=False, count=state["count"] + 1)
        before = set_variables(pair.split("=", 1) for pair in request["env"])
        try:
            run(request)
        except KeyboardInterrupt:
            pass  # it came when the code had ended
        finish(request, before)
    os._exit(0)


__brig_main()
