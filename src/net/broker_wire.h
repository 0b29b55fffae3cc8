/* SPDX-License-Identifier: MIT */
/* What a job and its broker say to each other, and the broker and its connector.
 *
 *     brig-broker serve     the network door of one jail; runs outside, in the host's network
 *     brig-broker connect   the connector; runs in the jail's network namespace, for --publish only
 *
 * Both are started with one SEQPACKET socket as fd 3 (DOOR_CONTROL_FD), an empty environment and
 * nothing else open but 0, 1 and 2. They end when the other end of that socket is closed, and a
 * broker that dies closes every connection of the jail. A job whose jail has ended may shut its end
 * down for writing only, and read on: the broker then lets what is under way end, for some tenths of a
 * second, tells of it, and ends.
 *
 * A job may write all its messages into the socket pair before it starts the broker: DOOR_CONFIG
 * first, then a DOOR_SOCKET for each socket. Nothing is answered but DOOR_READY, or DOOR_FAILED with
 * a message and the end; after that the broker only tells events. Sockets may also come later. A
 * message that does not fit its place ends the broker. */
#pragma once

#include <stdint.h>

#define DOOR_WIRE_VERSION 1
#define DOOR_CONTROL_FD 3

/* The roles, as the only argument. */
#define DOOR_ROLE_BROKER "serve"
#define DOOR_ROLE_CONNECTOR "connect"

/* ---- The jail's addresses ---------------------------------------------------------------------- */

/* Name i has the i-th address after the first of each range, and never another. Below the first are
 * the door's own: .1 is the loopback device's, .2 the name server's. */
#define DOOR_IPV4_PREFIX 0xc6120000u /* 198.18.0.0/15 */
#define DOOR_IPV4_PREFIX_LENGTH 15
#define DOOR_IPV4_DEVICE 0xc6120001u      /* 198.18.0.1 */
#define DOOR_IPV4_NAME_SERVER 0xc6120002u /* 198.18.0.2 */
#define DOOR_IPV4_FIRST 0xc6120010u       /* 198.18.0.16 */
#define DOOR_IPV6_PREFIX_TEXT "fd62:7269:6700::"
#define DOOR_IPV6_PREFIX_LENGTH 48
#define DOOR_IPV6_FIRST 0x10u /* in the last 32 bits */
#define DOOR_NAMES_MAX 65536  /* what `limit names` may say at most */
#define DOOR_NAMES_ALLOW                                                                           \
    4096 /* its default with `policy allow`; with `policy open` it is the maximum */

/* Congestion control where both ends are on this machine. Nothing is lost there and nothing gained by
 * waiting, but some that a host may have as its default (bbr) set a timer for every packet. This one
 * is in every kernel, and for everybody. It is chosen before there is a connection: one that has
 * begun with timers keeps them. */
#define DOOR_CONGESTION "reno"

/* ---- What a broker may take -------------------------------------------------------------------- */

/* Its memory is not the jail's, but it is for the jail that it is used: so much by itself, and so much
 * for each connection (what was read ahead, what could not be written yet; with a credential libcurl
 * and TLS). */
#define DOOR_CONNECTIONS 1024 /* at one time, unless `limit connections` says otherwise */
#define DOOR_MEMORY_BASE ((uint64_t)64 << 20)
#define DOOR_MEMORY_OF_CONNECTION ((uint64_t)320 << 10)

static inline uint64_t door_memory_bytes(uint64_t connections)
{
    return DOOR_MEMORY_BASE + connections * DOOR_MEMORY_OF_CONNECTION;
}

/* ---- From the job ------------------------------------------------------------------------------ */

enum door_message_type {
    DOOR_CONFIG = 1, /* to the broker; fds: the configuration, and the secrets if there are any */
    DOOR_SOCKET = 2, /* to the broker; fd: one socket */
    DOOR_READY = 3,  /* from the broker: confined, and at work */
    DOOR_FAILED = 4, /* from the broker: struct door_failure; it ends */
    DOOR_EVENT = 5,  /* from the broker: struct door_event */
};

/* What a socket is for. All but the connector's are non-blocking or are made so. */
enum door_socket {
    DOOR_SOCKET_DNS_UDP,    /* bound in the jail: answers queries */
    DOOR_SOCKET_DNS_TCP,    /* listens in the jail: the same over TCP */
    DOOR_SOCKET_REDIRECT,   /* listens in the jail: where a connection was meant to go is its
                             * SO_ORIGINAL_DST, else (not redirected) its own local address */
    DOOR_SOCKET_HTTP_PROXY, /* listens in the jail: CONNECT, and plain requests by absolute URI */
    DOOR_SOCKET_SOCKS,      /* listens in the jail: SOCKS5 CONNECT */
    DOOR_SOCKET_INJECT,     /* listens in the jail: plain HTTP for `inject INDEX` */
    DOOR_SOCKET_PUBLISH,    /* listens on the host: for `publish INDEX` */
    DOOR_SOCKET_CONNECTOR,  /* SEQPACKET, whose other end is the connector's fd 3 */
    DOOR_SOCKET_COUNT
};

#define DOOR_SOCKETS_MAX 256 /* of a broker */

/* DOOR_CONFIG and DOOR_SOCKET; also what is before door_event and door_failure. */
struct door_message {
    uint32_t version; /* DOOR_WIRE_VERSION */
    uint32_t type;    /* enum door_message_type */
    uint32_t kind;    /* DOOR_SOCKET: enum door_socket */
    uint32_t index;   /* DOOR_SOCKET_INJECT, DOOR_SOCKET_PUBLISH: which */
};

/* The configuration is text in a memfd, read from its start, lines of words separated by one space.
 * A line that is not understood ends the broker. The first is "brig-door 1". N counts from 0.
 *
 *     policy allow|open           allow: what rules name; open: every public destination
 *     allow RULE, deny RULE       as --allow and --deny have them, presets already resolved
 *     user UID GID                the user the broker changes to; needed if started as root
 *     resolver ADDRESS[:PORT]     instead of those of /etc/resolv.conf; may be repeated
 *     proxy HOST:PORT             the host's own HTTP proxy: every connection goes through it,
 *     proxy-secret K              with secret K as its Proxy-Authorization,
 *     no-proxy SUFFIX             but for names that are SUFFIX or end in .SUFFIX; may be repeated
 *     ca PATH                     CA certificates instead of the system's, for inject
 *     limit connections N         at one time; default 1024
 *     limit names N               that get an address; default: see DOOR_NAMES_MAX
 *     limit bytes N               both ways together, 0 (the default) is no limit; what goes beyond
 *                                 ends every connection
 *     limit idle-ms N             without a byte either way; 0 (the default) is no limit
 *     limit connect-ms N          for a name to be resolved and connected to; default 30000
 *     limit inspect-ms N          for a ClientHello or a request's head to come; default 15000
 *     inject N name NAME          the name this stands for; no longer reachable in other ways
 *     inject N upstream URL       http[s]://HOST[:PORT][/PREFIX]; default https://NAME
 *     inject N header HEADER K    adds it with secret K as its value; the client's own is dropped
 *     inject N strip HEADER       a header of the client's that is dropped as well
 *     inject N method METHOD      allowed; repeated; none means all
 *     inject N path PREFIX        allowed; repeated; none means all
 *     publish N PORT              the port inside
 *
 * Secrets are a memfd of their own: texts that each end with a NUL, counted from 0. The broker copies
 * them into locked memory and closes it; the job should have sealed it, and must not keep it. */
#define DOOR_CONFIG_HEAD "brig-door 1"
#define DOOR_CONFIG_MAX ((uint32_t)4 << 20)
#define DOOR_SECRETS_MAX ((uint32_t)64 << 10)
#define DOOR_INJECT_MAX 32
#define DOOR_PUBLISH_MAX 64

/* ---- From the broker --------------------------------------------------------------------------- */

enum door_verdict {
    DOOR_ALLOWED, /* connected; an event with DOOR_ENDED and the same `connection` follows */
    DOOR_DENIED,  /* refused by a rule, or for want of one */
    DOOR_ERROR,   /* allowed, and failed: no such name, no answer, a limit */
    DOOR_ENDED,   /* the end of what was allowed, with its bytes */
};

/* Why. For people there is `detail`; DOOR_ALLOWED has DOOR_BECAUSE_RULE. */
enum door_because {
    DOOR_BECAUSE_RULE,      /* the rule in `rule` said so */
    DOOR_BECAUSE_NO_RULE,   /* denied: nothing allows it */
    DOOR_BECAUSE_PORT,      /* denied: the name is allowed, this port is not */
    DOOR_BECAUSE_ADDRESS,   /* denied: the name's addresses are not public, or the address is not */
    DOOR_BECAUSE_UNKNOWN,   /* denied: an address of the range that stands for no name */
    DOOR_BECAUSE_NO_SNI,    /* denied: TLS was due, and it names no server */
    DOOR_BECAUSE_WRONG_SNI, /* denied: it names another */
    DOOR_BECAUSE_NOT_TLS,   /* denied: TLS was due */
    DOOR_BECAUSE_WRONG_HOST,  /* denied: the request is for another host, or for none */
    DOOR_BECAUSE_BAD_REQUEST, /* denied: the request cannot be understood, or is meant not to be */
    DOOR_BECAUSE_METHOD,      /* denied: inject, the method */
    DOOR_BECAUSE_PATH,        /* denied: inject, the path */
    DOOR_BECAUSE_INJECTED,    /* denied: the name is reached through inject only */
    DOOR_BECAUSE_NO_NAME,     /* error: the name does not exist, or could not be resolved */
    DOOR_BECAUSE_NO_CONNECT,  /* error: no address of it could be connected to */
    DOOR_BECAUSE_TIMEOUT,     /* error: nothing was sent that could be inspected; or idle */
    DOOR_BECAUSE_CONNECTIONS, /* error: the limit on connections */
    DOOR_BECAUSE_NAMES,       /* error: the limit on names */
    DOOR_BECAUSE_BYTES,       /* error: the limit on bytes */
    DOOR_BECAUSE_RESET,       /* ended: one side broke the connection off */
    DOOR_BECAUSE_CLOSED,      /* ended: as connections end */
    DOOR_BECAUSE_TLS,         /* error: the certificate of an inject's upstream is not valid */
    DOOR_BECAUSE_COUNT
};

#define DOOR_NAME_MAX 256
#define DOOR_ADDRESS_MAX 48
#define DOOR_RULE_MAX 512 /* any rule's text */
#define DOOR_DETAIL_MAX 256

/* One decision, or the end of a connection. Texts end with a NUL and may be empty; what of them comes
 * from the jail is made of printable ASCII. A query for a name that is not allowed is an event with
 * port 0 (the same name asked for again within seconds is not). While the job does not read events,
 * the broker does nothing else, and loses none. */
struct door_event {
    struct door_message head; /* DOOR_EVENT */
    uint32_t verdict;         /* enum door_verdict */
    uint32_t because;         /* enum door_because */
    uint32_t via;             /* enum door_socket it came through */
    uint32_t port;            /* of the destination; 0: a query */
    int64_t time_ns;          /* CLOCK_REALTIME */
    uint64_t connection;      /* counts from 1; 0: a query */
    uint64_t bytes_in;        /* to the jail */
    uint64_t bytes_out;       /* from the jail */
    uint64_t duration_ms;     /* of a connection that ended */
    char name[DOOR_NAME_MAX];
    char address[DOOR_ADDRESS_MAX]; /* connected to, or refused; "" where none was reached */
    char rule[DOOR_RULE_MAX];       /* as it was written */
    char detail[DOOR_DETAIL_MAX];   /* inject: "METHOD PATH → STATUS"; else why, in words */
};

struct door_failure {
    struct door_message head; /* DOOR_FAILED */
    char message[1024];
};

/* ---- Broker and connector ---------------------------------------------------------------------- */

/* The broker asks for a connection to the jail's loopback; the connector answers each request, in
 * order, with a socket on which connect() was called and may still be in progress, or with why not. */
enum door_loopback {
    DOOR_LOOPBACK_IPV4, /* 127.0.0.1 */
    DOOR_LOOPBACK_IPV6, /* ::1 */
};

struct door_connect {
    uint32_t version;  /* DOOR_WIRE_VERSION */
    uint32_t loopback; /* enum door_loopback */
    uint32_t port;
    uint32_t id; /* comes back in the answer */
};

struct door_connected {
    uint32_t version;
    uint32_t id;
    int32_t sys_errno; /* 0: the socket is attached */
};
