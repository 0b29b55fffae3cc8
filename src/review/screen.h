/* SPDX-License-Identifier: MIT */
/* The terminal: curses, its signals, and text in it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Colours. Without them, attributes such as bold stand for the more important ones. */
enum screen_style {
    STYLE_PLAIN,
    STYLE_BAR,  /* the first and the last line */
    STYLE_HEAD, /* the line above a part of the screen */
    STYLE_FOCUS,
    STYLE_ADDED,
    STYLE_REMOVED,
    STYLE_CHANGED,
    STYLE_HUNK,
    STYLE_DIRECTORY,
    STYLE_RISK,
    STYLE_CONFLICT,
    STYLE_FAINT,
    STYLE_STRONG,
    STYLE_COUNT_,
};

/* Keys that are not characters. */
enum screen_key {
    KEY_OF_SCREEN = 0x200000, /* above all characters */
    SCREEN_UP,
    SCREEN_DOWN,
    SCREEN_LEFT,
    SCREEN_RIGHT,
    SCREEN_PAGE_UP,
    SCREEN_PAGE_DOWN,
    SCREEN_HOME,
    SCREEN_END,
    SCREEN_BACKSPACE,
    SCREEN_ENTER,
    SCREEN_ESCAPE,
    SCREEN_OTHER, /* a key without a meaning here, or a new size */
};

/* Takes the terminal over; false if it has no cursor addressing or is unknown. From then on the
 * signals that end, stop or resize are blocked and arrive at screen_signals(). */
bool screen_open(void);
/* Gives the terminal back. Without effect if it is not open. */
void screen_close(void);

/* A descriptor that is readable when a signal has arrived. */
int screen_signals(void);
/* Handles a signal: a new size and Ctrl-Z here. Returns the number of a signal that should end the
 * program, else 0. */
int screen_take_signal(void);

/* The next key, or 0 if there is none. */
int screen_key(void);

/* Gives the terminal to another program for a while. */
void screen_leave(void);
void screen_return(void);

int screen_height(void);
int screen_width(void);

void screen_begin(void);  /* an empty picture */
void screen_finish(void); /* show it */
void screen_redraw(void); /* send everything again, if something else has written there */

/* Writes text of the given width in columns, escaped and cut, after `skip` columns of it are left
 * out; the rest is filled with blanks. In a diff tabs are expanded. */
struct screen_text {
    int y, x, width;
    size_t skip;
    enum screen_style style;
    bool selected; /* under the cursor */
    bool tabs;     /* expand tabs */
};
void screen_write(const struct screen_text *where, const char *bytes, size_t length);
void screen_line_down(int y, int x, int height);
