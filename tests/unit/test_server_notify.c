/* SPDX-License-Identifier: MIT */
/* Tests for journal entries in the native protocol. */
#include "server/notify.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "tap.h"

static void test_entry(void)
{
    static const char wanted[] = "PRIORITY=4\nSYSLOG_IDENTIFIER=brigd\nBRIGD_PROCESS=http\n"
                                 "MESSAGE\n\x08\0\0\0\0\0\0\0two\nPID=\n";
    autostr struct str entry = {0};
    notify_append_entry(&entry, 4, "http", "two\nPID=");
    tap_ok(entry.length == sizeof wanted - 1 && memcmp(entry.data, wanted, entry.length) == 0,
           "a newline in a message begins no other field");
}

static void test_stream(void)
{
    (void)unsetenv("JOURNAL_STREAM");
    tap_ok(!notify_has_journal(), "without JOURNAL_STREAM there is no journal");
    (void)setenv("JOURNAL_STREAM", "1:1", 1);
    tap_ok(!notify_has_journal(), "nor if standard error was redirected elsewhere");
}

int main(void)
{
    test_entry();
    test_stream();
    return tap_done();
}
