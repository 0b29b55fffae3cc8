/* SPDX-License-Identifier: MIT */
/* Finding a byte in a text: every length and alignment, and nothing is read from the next page. */
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/scanning.h"
#include "tap.h"

#define LENGTH_MAX 100

#ifdef SCANNING_IS_FAST

/* `bytes` are mapped between two pages that are not, and the text is at their end or beginning. */
static void test_edges(char *first, size_t bytes)
{
    bool right = true;
    for (size_t length = 0; length <= LENGTH_MAX; length++) {
        for (size_t i = 0; i < bytes; i++)
            first[i] = 'x';
        char *last = first + bytes - length - 1;
        first[length] = last[length] = '\0';
        right = right && scanning_length(first) == length && scanning_length(last) == length;
        for (size_t at = 0; at < length; at++) {
            last[at] = '/';
            right = right && scanning_find(last, '/') == last + at;
            right = right && scanning_find(last, '.') == last + length;
            last[at] = 'x';
        }
    }
    tap_ok(right, "texts at the edge of a page are seen whole, and nothing beyond them is read");
}

static void test_inside(void)
{
    _Alignas(16) char text[LENGTH_MAX + 64];
    bool right = true;
    for (size_t from = 0; from < 32; from++)
        for (size_t length = 0; length <= LENGTH_MAX; length++) {
            /* What is before and behind the text would match, too. */
            for (size_t i = 0; i < sizeof text; i++)
                text[i] = i % 2 ? '\0' : '/';
            for (size_t i = 0; i < length; i++)
                text[from + i] = (char)(i % 2 ? 0x80 : '.');
            text[from + length] = '\0';
            right = right && scanning_length(text + from) == length;
            right = right && scanning_find(text + from, '/') == text + from + length;
            right = right && (length < 2 || scanning_find(text + from, 0x80) == text + from + 1);
            right = right && scanning_find(text + from, '\0') == text + from + length;
        }
    tap_ok(right, "what is before and behind a text does not matter");
}

int main(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_READ | PROT_WRITE) < 0)
        tap_bail("no memory");
    test_edges(pages + page, page);
    test_inside();
    return tap_done();
}

#else

int main(void)
{
    tap_ok(true, "there is nothing to test on this machine");
    return tap_done();
}

#endif
