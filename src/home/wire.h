/* SPDX-License-Identifier: MIT */
/* What brig and a jail's holder say to each other, over a SEQPACKET socket: one message each way,
 * then the connection stays open for as long as the run lives. On it the holder passes HOME_MASK on
 * to the runs. */
#pragma once

#include <stdint.h>

#include <brig/brig.h>

#include "base/place.h"

#define HOME_WIRE_VERSION 11
#define HOME_TEXT_MAX 65536 /* of a request's strings */
#define HOME_RULES_MAX 4096 /* masks and the like */

enum home_op {
    HOME_JOIN, /* the jail's home and private directories, for one run */
    HOME_STOP, /* end, if nobody is in the jail */
    HOME_LIST, /* who is */
    HOME_MASK, /* hide more, now; with the end of a pipe, for who has done so to close */
};

enum home_place {
    HOME_PLACE_HOME = 'h',
    HOME_PLACE_TMP = 't',
    HOME_PLACE_SHM = 's',
    HOME_PLACE_RUN = 'r',
};

/* Followed by `length` bytes of strings, each ended by a NUL: the user's home, then the masks, then
 * what is shown below masks, then what is hidden for good (brig's own directories), then the filters for
 * start-up files (see startup.h), each counted. Last, in
 * `mount_points` bytes, where a run mounts something in what all runs share: the letter of a home_place, 'd'
 * for a directory or 'f' for a file, and the path relative to the place. */
struct home_request {
    uint32_t version;
    uint32_t op;
    uint32_t kind; /* enum policy_home */
    uint32_t mask_count, shown_count, own_count, filter_count;
    uint32_t length, mount_points;
    uint64_t disk_bytes, disk_inodes; /* HOME_JOIN: of the private directories; 0: no limit */
    struct place place;               /* HOME_JOIN: of the user's home, if it is known */
};

struct home_message {
    struct home_request head;
    char text[HOME_TEXT_MAX + 1];
};

/* With HOME_JOIN from root, whose holder is a stranger to the files: what it could not open. */
enum home_given {
    HOME_GIVEN_LOWER, /* the user's home, or the jail's, as a mount that makes them the stranger's */
    HOME_GIVEN_STORE, /* for an overlay: the mount that the next two are on */
    HOME_GIVEN_CHANGES,
    HOME_GIVEN_WORK,
    HOME_GIVEN_BELOW, /* and up to STORAGE_BELOW_MAX in all */
    HOME_GIVEN_COUNT = HOME_GIVEN_BELOW + 7
};

/* The fds that come with the answer to HOME_JOIN, in this order. */
enum home_fd {
    HOME_FD_HOME,
    HOME_FD_TMP,
    HOME_FD_VAR_TMP, /* the same directory */
    HOME_FD_SHM,
    HOME_FD_RUN,
    HOME_FD_LOCK,
    HOME_FD_COUNT
};

#define HOME_PIDS_MAX 64

struct home_reply {
    int32_t code;                     /* 0, or an enum brig_code; with a message in either case */
    int32_t sys_errno;                /* behind it */
    uint32_t created;                 /* HOME_JOIN: the home is new */
    uint32_t crowded;                 /* others are in the jail */
    uint64_t disk_bytes, disk_inodes; /* the least that somebody in the jail asks for, */
    int32_t disk_errno;               /* and why it could not be made so */
    uint32_t told;                    /* HOME_MASK: so many runs */
    uint32_t pid_count;
    int32_t pids[HOME_PIDS_MAX]; /* of the runs in the jail */
    char message[BRIG_MESSAGE_MAX];
};
