/* SPDX-License-Identifier: MIT */
#include "review/screen.h"

#include <curses.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "review/shown.h"

#define ESCAPE_DELAY_MS 250
#define TAB_COLUMNS 8
#define RESTORE_MAX 256
#define CONTROL(letter) ((letter)&0x1f)
#define KEY_ESCAPE 0x1b
#define KEY_DELETE 0x7f

/* The terminal exists once for a process, and handlers of signals have no argument. */
static struct {
    SCREEN *screen;
    bool unicode, colours;
    int signals;
    sigset_t blocked;
    struct termios before;
    char restore[RESTORE_MAX]; /* for a crash: what leaves the full screen */
    size_t restore_length;
} terminal = {.signals = -1};

/* ---- colours ---- */

static const struct style_row {
    short colour; /* -1: the terminal's */
    attr_t attributes, without_colours;
} styles[STYLE_COUNT_] = {
    [STYLE_PLAIN] = {-1, A_NORMAL, A_NORMAL},
    [STYLE_BAR] = {-1, A_REVERSE, A_REVERSE},
    [STYLE_HEAD] = {-1, A_UNDERLINE, A_UNDERLINE},
    [STYLE_FOCUS] = {-1, A_UNDERLINE | A_BOLD, A_UNDERLINE | A_BOLD},
    [STYLE_ADDED] = {COLOR_GREEN, A_NORMAL, A_NORMAL},
    [STYLE_REMOVED] = {COLOR_RED, A_NORMAL, A_NORMAL},
    [STYLE_CHANGED] = {COLOR_YELLOW, A_NORMAL, A_NORMAL},
    [STYLE_HUNK] = {COLOR_CYAN, A_NORMAL, A_BOLD},
    [STYLE_DIRECTORY] = {COLOR_BLUE, A_BOLD, A_BOLD},
    [STYLE_RISK] = {COLOR_RED, A_BOLD, A_BOLD},
    [STYLE_CONFLICT] = {COLOR_MAGENTA, A_BOLD, A_BOLD},
    [STYLE_FAINT] = {-1, A_DIM, A_NORMAL},
    [STYLE_STRONG] = {-1, A_BOLD, A_BOLD},
};

static void make_colours(void)
{
    const char *no_color = getenv("NO_COLOR");
    terminal.colours = has_colors() && !(no_color && *no_color);
    if (!terminal.colours)
        return;
    (void)start_color();
    short background = use_default_colors() == OK ? -1 : COLOR_BLACK;
    for (int i = 0; i < STYLE_COUNT_; i++)
        if (styles[i].colour >= 0)
            (void)init_pair((short)(i + 1), styles[i].colour, background);
}

/* Sets the style for what is written next. */
static void set_style(enum screen_style style, bool selected)
{
    const struct style_row *row = &styles[style];
    bool coloured = terminal.colours && row->colour >= 0;
    attr_t attributes = coloured ? row->attributes : row->without_colours;
    if (selected)
        attributes = (attributes & ~A_DIM) ^ A_REVERSE;
    (void)attr_set(attributes, (short)(coloured ? style + 1 : 0), NULL);
}

/* ---- signals ---- */

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};

/* Only calls that are allowed in a handler. */
static void restore_after_crash(int number)
{
    (void)!write(STDOUT_FILENO, terminal.restore, terminal.restore_length);
    (void)tcsetattr(STDOUT_FILENO, TCSANOW, &terminal.before);
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void add_restore(const char *capability)
{
    char name[8];
    (void)strncpy(name, capability, sizeof name - 1);
    name[sizeof name - 1] = '\0';
    const char *text = tigetstr(name);
    size_t length = text && text != (char *)-1 ? strlen(text) : 0;
    if (length > RESTORE_MAX - terminal.restore_length)
        return;
    memcpy(terminal.restore + terminal.restore_length, text ? text : "", length);
    terminal.restore_length += length;
}

static bool open_signals(void)
{
    (void)sigemptyset(&terminal.blocked);
    for (size_t i = 0; i < ARRAY_LENGTH(ending_signals); i++)
        (void)sigaddset(&terminal.blocked, ending_signals[i]);
    (void)sigaddset(&terminal.blocked, SIGTSTP);
    (void)sigaddset(&terminal.blocked, SIGWINCH);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigprocmask(SIG_BLOCK, &terminal.blocked, NULL);
    terminal.signals = signalfd(-1, &terminal.blocked, SFD_CLOEXEC | SFD_NONBLOCK);
    return terminal.signals >= 0;
}

static void catch_crashes(void)
{
    terminal.restore_length = 0;
    add_restore("sgr0");
    add_restore("cnorm");
    add_restore("rmkx");
    add_restore("rmcup");
    struct sigaction action = {.sa_handler = restore_after_crash};
    for (size_t i = 0; i < ARRAY_LENGTH(crash_signals); i++)
        (void)sigaction(crash_signals[i], &action, NULL);
}

static void take_size(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
        (void)resizeterm(size.ws_row, size.ws_col);
    (void)clearok(curscr, TRUE);
}

/* As the shell expects it. Without job control, or in an orphaned process group, the kernel drops
 * the signal and this returns at once. */
static void stop(void)
{
    screen_leave();
    sigset_t only;
    (void)sigemptyset(&only);
    (void)sigaddset(&only, SIGTSTP);
    void (*before)(int) = signal(SIGTSTP, SIG_DFL);
    (void)raise(SIGTSTP);
    (void)sigprocmask(SIG_UNBLOCK, &only, NULL);
    (void)sigprocmask(SIG_BLOCK, &only, NULL);
    (void)signal(SIGTSTP, before);
    screen_return();
}

int screen_take_signal(void)
{
    struct signalfd_siginfo info;
    int ending = 0;
    while (read(terminal.signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGWINCH)
            take_size();
        else if (info.ssi_signo == SIGTSTP)
            stop();
        else
            ending = (int)info.ssi_signo;
    }
    return ending;
}

int screen_signals(void)
{
    return terminal.signals;
}

/* ---- opening and closing ---- */

static bool has_cursor_addressing(void)
{
    char name[] = "cup";
    const char *text = tigetstr(name);
    return text && text != (char *)-1;
}

bool screen_open(void)
{
    (void)tcgetattr(STDOUT_FILENO, &terminal.before);
    terminal.unicode = shown_has_unicode();
    if (!open_signals())
        return false;
    terminal.screen = newterm(NULL, stdout, stdin);
    if (!terminal.screen || !has_cursor_addressing()) {
        screen_close();
        return false;
    }
    catch_crashes();
    (void)set_escdelay(ESCAPE_DELAY_MS);
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)keypad(stdscr, TRUE);
    (void)nodelay(stdscr, TRUE);
    (void)curs_set(0);
    make_colours();
    return true;
}

void screen_close(void)
{
    if (terminal.screen) {
        (void)endwin();
        delscreen(terminal.screen);
        terminal.screen = NULL;
    }
    close_fd(&terminal.signals);
    (void)sigprocmask(SIG_UNBLOCK, &terminal.blocked, NULL);
}

void screen_leave(void)
{
    (void)endwin();
}

void screen_return(void)
{
    (void)reset_prog_mode();
    take_size();
    (void)curs_set(0);
    (void)refresh();
}

/* ---- keys ---- */

static int function_key(wint_t key)
{
    static const struct {
        wint_t curses;
        int key;
    } keys[] = {
        {KEY_UP, SCREEN_UP},        {KEY_DOWN, SCREEN_DOWN},     {KEY_LEFT, SCREEN_LEFT},
        {KEY_RIGHT, SCREEN_RIGHT},  {KEY_PPAGE, SCREEN_PAGE_UP}, {KEY_NPAGE, SCREEN_PAGE_DOWN},
        {KEY_HOME, SCREEN_HOME},    {KEY_END, SCREEN_END},       {KEY_BACKSPACE, SCREEN_BACKSPACE},
        {KEY_DC, SCREEN_BACKSPACE}, {KEY_ENTER, SCREEN_ENTER},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++)
        if (keys[i].curses == key)
            return keys[i].key;
    return SCREEN_OTHER;
}

int screen_key(void)
{
    wint_t key;
    int kind = get_wch(&key);
    if (kind == ERR)
        return 0;
    if (kind == KEY_CODE_YES)
        return function_key(key);
    switch (key) {
    case '\r':
    case '\n':
        return SCREEN_ENTER;
    case KEY_ESCAPE:
        return SCREEN_ESCAPE;
    case KEY_DELETE:
    case '\b':
        return SCREEN_BACKSPACE;
    case CONTROL('n'):
        return SCREEN_DOWN;
    case CONTROL('p'):
        return SCREEN_UP;
    case CONTROL('f'):
        return SCREEN_PAGE_DOWN;
    case CONTROL('b'):
        return SCREEN_PAGE_UP;
    default:
        return key > 0 && key < KEY_OF_SCREEN ? (int)key : SCREEN_OTHER;
    }
}

/* ---- drawing ---- */

int screen_height(void)
{
    return LINES;
}

int screen_width(void)
{
    return COLS;
}

void screen_begin(void)
{
    (void)erase();
}

void screen_finish(void)
{
    (void)refresh();
}

void screen_redraw(void)
{
    (void)clearok(curscr, TRUE);
}

/* Expands a tab, or else escapes; returns the number of bytes read. */
static size_t next_piece(const char *bytes, size_t left, bool tabs, size_t column,
                         struct shown *shown)
{
    if (bytes[0] != '\t' || !tabs)
        return shown_next(bytes, left, terminal.unicode, shown);
    shown->count = shown->width = (int)(TAB_COLUMNS - column % TAB_COLUMNS);
    shown->escaped = false;
    (void)wmemset(shown->text, L' ', (size_t)shown->count);
    return 1;
}

/* Writes the characters of one piece from the column `skip` of it on, as far as there is room.
 * Returns the columns written. */
static int put_piece(const struct shown *shown, int skip, int room)
{
    if (shown->count == 1 && skip == 0 && shown->width <= room) {
        (void)addnwstr(shown->text, 1);
        return shown->width;
    }
    if (shown->count == 1) { /* half of a wide character */
        (void)addch(' ');
        return 1;
    }
    int count = shown->count - skip < room ? shown->count - skip : room;
    (void)addnwstr(shown->text + skip, count);
    return count;
}

void screen_write(const struct screen_text *where, const char *bytes, size_t length)
{
    if (where->width <= 0 || where->y < 0 || where->y >= LINES)
        return;
    size_t column = 0;
    int used = 0, marks = 0;
    set_style(where->style, where->selected);
    (void)move(where->y, where->x);
    for (size_t at = 0; at < length && used < where->width;) {
        struct shown shown;
        at += next_piece(bytes + at, length - at, where->tabs, column, &shown);
        size_t end = column + (size_t)shown.width;
        marks = shown.width == 0 ? marks + 1 : 0;
        /* Curses combines few marks with a character; many would fill the screen above and below. */
        if (end > where->skip && marks <= 2)
            used += put_piece(&shown, column < where->skip ? (int)(where->skip - column) : 0,
                              where->width - used);
        column = end;
    }
    for (; used < where->width; used++)
        (void)addch(' ');
    (void)attr_set(A_NORMAL, 0, NULL);
}

void screen_line_down(int y, int x, int height)
{
    set_style(STYLE_FAINT, false);
    for (int i = 0; i < height; i++)
        (void)mvaddch(y + i, x, terminal.unicode ? ACS_VLINE : '|');
    (void)attr_set(A_NORMAL, 0, NULL);
}
