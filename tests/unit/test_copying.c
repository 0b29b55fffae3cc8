/* SPDX-License-Identifier: MIT */
/* Copying bytes: every length and alignment, and what overlaps. */
#include <stdbool.h>
#include <string.h>

#include "cli/copying.h"
#include "tap.h"

#define LENGTH_MAX 200
#define MARGIN 40
#define ROOM (LENGTH_MAX + 2 * MARGIN)

static void fill(unsigned char bytes[ROOM])
{
    for (size_t i = 0; i < ROOM; i++)
        bytes[i] = (unsigned char)(i * 7 + 1);
}

/* Byte by byte, through a copy: what has to come out. */
static void expect(unsigned char bytes[ROOM], size_t to, size_t from, size_t length)
{
    unsigned char before[ROOM];
    for (size_t i = 0; i < ROOM; i++)
        before[i] = bytes[i];
    for (size_t i = 0; i < length; i++)
        bytes[to + i] = before[from + i];
}

static bool same(const unsigned char *a, const unsigned char *b)
{
    for (size_t i = 0; i < ROOM; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

static void test_copy(void)
{
    bool right = true, returned = true;
    for (size_t length = 0; length <= LENGTH_MAX; length++)
        for (size_t to = 0; to < 17; to++)
            for (size_t from = 0; from < 17; from++) {
                unsigned char source[ROOM], target[ROOM], wanted[ROOM];
                fill(source);
                for (size_t i = 0; i < ROOM; i++)
                    target[i] = wanted[i] = 0xee;
                for (size_t i = 0; i < length; i++)
                    wanted[MARGIN + to + i] = source[MARGIN + from + i];
                void *result = copying_copy(target + MARGIN + to, source + MARGIN + from, length);
                returned = returned && result == target + MARGIN + to;
                right = right && same(target, wanted);
            }
    tap_ok(right, "every length at every alignment is copied, and nothing beside it is touched");
    tap_ok(returned, "the place that was copied to comes back");
}

static void test_move(void)
{
    bool right = true;
    for (size_t length = 0; length <= LENGTH_MAX; length++)
        for (size_t to = 0; to <= 2 * MARGIN; to++) {
            unsigned char moved[ROOM], wanted[ROOM];
            fill(moved);
            fill(wanted);
            expect(wanted, to, MARGIN, length);
            (void)copying_move(moved + to, moved + MARGIN, length);
            right = right && same(moved, wanted);
        }
    tap_ok(right, "what overlaps is moved forwards and backwards as if through a copy");
}

static int sign(int number)
{
    return (number > 0) - (number < 0);
}

static void test_compare(void)
{
    bool right = true;
    for (size_t length = 0; length <= LENGTH_MAX; length++)
        for (size_t from = 0; from < 9; from++) {
            unsigned char a[ROOM], b[ROOM];
            fill(a);
            for (size_t i = 0; i < length; i++)
                b[from + i] = a[MARGIN + i];
            b[from + length] = (unsigned char)~a[MARGIN + length]; /* is not looked at */
            right = right && copying_compare(a + MARGIN, b + from, length) == 0;
            for (size_t i = 0; i < length; i++) {
                b[from + i] ^= 0x81;
                int order = a[MARGIN + i] < b[from + i] ? -1 : 1;
                right = right && sign(copying_compare(a + MARGIN, b + from, length)) == order;
                right = right && sign(copying_compare(b + from, a + MARGIN, length)) == -order;
                b[from + i] ^= 0x81;
            }
        }
    tap_ok(right, "bytes are compared as memcmp does, of every length and at every place");
}

int main(void)
{
    test_copy();
    test_move();
    test_compare();
    return tap_done();
}
