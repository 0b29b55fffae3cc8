/* SPDX-License-Identifier: MIT */
/* The detector: all patterns at once, by the automaton of Aho and Corasick. */
#include "server/http/detector.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

#define STATES_MAX 2048
#define PATTERNS_MAX 128
#define PATTERN_LENGTH_MAX 64 /* a power of two */
#define NO_PATTERN UINT8_MAX

struct state {
    uint16_t next[128]; /* by character; patterns are ASCII */
    uint16_t shorter;   /* the longest other state that ends the same */
    uint16_t ending;    /* the nearest such state that ends a pattern, 0: none */
    uint8_t pattern;    /* which ends here */
};

struct detector {
    struct state states[STATES_MAX];
    size_t count;
};

static int add_pattern(struct detector *detector, size_t index, struct brig_error *err)
{
    uint16_t at = 0;
    for (const char *c = detector_patterns[index].text; *c; c++) {
        uint16_t *next = &detector->states[at].next[(unsigned char)*c & 127];
        if (*next == 0) {
            if (detector->count == STATES_MAX)
                return brig_fail(err, BRIG_E_STATE, 0, "the detector has too many patterns");
            detector->states[detector->count].pattern = NO_PATTERN;
            *next = (uint16_t)detector->count++;
        }
        at = *next;
    }
    detector->states[at].pattern = (uint8_t)index;
    return 0;
}

/* The state `next` follows `at` by `character`; its shorter ones are known, as are all of at's. */
static void link_state(struct state *states, uint16_t at, unsigned character, uint16_t next)
{
    uint16_t shorter = at == 0 ? 0 : states[states[at].shorter].next[character];
    states[next].shorter = shorter;
    states[next].ending = states[shorter].pattern != NO_PATTERN ? shorter : states[shorter].ending;
}

/* Breadth first, so that what is shorter is complete; missing steps become those of the shorter. */
static void complete(struct detector *detector)
{
    uint16_t queue[STATES_MAX];
    size_t head = 0, tail = 0;
    queue[tail++] = 0;
    while (head < tail) {
        uint16_t at = queue[head++];
        for (unsigned c = 0; c < 128; c++) {
            uint16_t *next = &detector->states[at].next[c];
            if (*next == 0) {
                *next = at == 0 ? 0 : detector->states[detector->states[at].shorter].next[c];
            } else {
                link_state(detector->states, at, c, *next);
                queue[tail++] = *next;
            }
        }
    }
}

int detector_new(struct detector **ret_detector, struct brig_error *err)
{
    autofree struct detector *detector = calloc(1, sizeof *detector);
    if (!detector)
        return brig_fail_nomem(err);
    detector->count = 1;
    detector->states[0].pattern = NO_PATTERN;
    if (detector_pattern_count > PATTERNS_MAX)
        return brig_fail(err, BRIG_E_STATE, 0, "the detector has too many patterns");
    for (size_t i = 0; i < detector_pattern_count; i++) {
        int result = add_pattern(detector, i, err);
        if (result < 0)
            return result;
    }
    complete(detector);
    *ret_detector = take_ptr(&detector);
    return 0;
}

void detector_free(struct detector *detector)
{
    free(detector);
}

struct scan {
    bool begins_word[PATTERN_LENGTH_MAX]; /* of the last characters */
    bool seen[PATTERNS_MAX];
    size_t position; /* blanks are not counted */
};

static void note(struct scan *scan, uint8_t pattern)
{
    const struct detector_pattern *row = &detector_patterns[pattern];
    size_t start = scan->position + 1 - strlen(row->text);
    if (!row->word || scan->begins_word[start % PATTERN_LENGTH_MAX])
        scan->seen[pattern] = true;
}

static void run(const struct detector *detector, const char *code, size_t length, struct scan *scan)
{
    uint16_t at = 0;
    unsigned char before = ' ';
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)tolower((unsigned char)code[i]);
        bool blank = isspace(c) || c == '\0';
        if (!blank) {
            scan->begins_word[scan->position % PATTERN_LENGTH_MAX] =
                !isalnum(before) && before != '_';
            at = c < 128 ? detector->states[at].next[c] : 0;
            uint16_t ending =
                detector->states[at].pattern != NO_PATTERN ? at : detector->states[at].ending;
            for (; ending != 0; ending = detector->states[ending].ending)
                note(scan, detector->states[ending].pattern);
            scan->position++;
        }
        before = c;
    }
}

void detector_scan(const struct detector *detector, const char *code, size_t length,
                   struct arena *arena, struct execution_event **ret_events, size_t *ret_count)
{
    struct scan scan = {0};
    size_t count = 0;
    *ret_events = NULL;
    *ret_count = 0;
    run(detector, code, length, &scan);
    for (size_t i = 0; i < detector_pattern_count; i++)
        count += scan.seen[i];
    struct execution_event *events = count ? arena_alloc(arena, count * sizeof *events) : NULL;
    if (!events)
        return;
    /* The gravest first: should there be too many, they are the ones that stay. */
    for (int severity = SEVERITY_CRITICAL; severity >= SEVERITY_LOW; severity--)
        for (size_t i = 0; i < detector_pattern_count && *ret_count < EXECUTION_EVENTS_MAX; i++)
            if (scan.seen[i] && (int)detector_patterns[i].severity == severity)
                events[(*ret_count)++] =
                    (struct execution_event){.type = detector_patterns[i].type,
                                             .detail = detector_patterns[i].detail,
                                             .severity = detector_patterns[i].severity};
    *ret_events = events;
}

bool detector_has(const struct execution_event *event)
{
    for (size_t i = 0; i < detector_pattern_count; i++)
        if (strcmp(detector_patterns[i].type, event->type) == 0 &&
            strcmp(detector_patterns[i].detail, event->detail) == 0)
            return true;
    return false;
}
