/* SPDX-License-Identifier: MIT */
/* The messages between a job and its broker, and between the broker and its connector.
 *
 *     brig-broker serve     the network door of one jail; runs outside, in the host's network
 *     brig-broker connect   the connector; runs in the jail's network namespace, for --publish only
 *
 * Both are started with one SEQPACKET socket as fd 3 (DOOR_CONTROL_FD), an empty environment and no
 * other descriptors than 0, 1 and 2. They end when the other end of the socket is closed; when a
 * broker dies, every connection of the jail is closed. A job whose jail has ended may shut down its
 * end for writing and continue to read: the broker then lets open connections finish, for some
 * tenths of a second, reports them and ends.
 *
 * A job may write all its messages into the socket pair before it starts the broker: DOOR_CONFIG
 * first, then a DOOR_SOCKET for each socket. The broker answers with DOOR_READY, or with
 * DOOR_FAILED and a message before it exits; after DOOR_READY it only sends events. Sockets may
 * also be sent later. An unexpected message ends the broker. */
#pragma once

#include <stdint.h>

#define DOOR_WIRE_VERSION 1
#define DOOR_CONTROL_FD 3

/* The roles, as the only argument. */
#define DOOR_ROLE_BROKER "serve"
#define DOOR_ROLE_CONNECTOR "connect"

/* ---- The jail's addresses -------------------------------------------------------------------- */

/* Name i has the i-th address after the first of each range, and no other name gets it. The
 * addresses below the first belong to the door: .1 is the loopback device, .2 the name server. */
#define DOOR_IPV4_PREFIX 0xc6120000u /* 198.18.0.0/15 */
#define DOOR_IPV4_PREFIX_LENGTH 15
#define DOOR_IPV4_DEVICE 0xc6120001u      /* 198.18.0.1 */
#define DOOR_IPV4_NAME_SERVER 0xc6120002u /* 198.18.0.2 */
#define DOOR_IPV4_FIRST 0xc6120010u       /* 198.18.0.16 */
#define DOOR_IPV6_PREFIX_TEXT "fd62:7269:6700::"
#define DOOR_IPV6_PREFIX_LENGTH 48
#define DOOR_IPV6_FIRST 0x10u /* in the last 32 bits */
#define DOOR_NAMES_MAX 65536  /* the maximum of `limit names` */
#define DOOR_NAMES_ALLOW                                                                           \
    4096 /* the default with `policy allow`; with `policy open` it is the maximum */

/* Congestion control for connections on this machine. It does not matter there, as no packet is
 * lost, but some algorithms that a host may have as its default (bbr) set a timer for every packet.
 * Reno is in every kernel and needs no privilege. It must be set before the connection exists,
 * because a connection keeps its timers. */
#define DOOR_CONGESTION "reno"

/* ---- Memory of a broker
 * ------------------------------------------------------------------------ */

/* A broker uses memory outside the jail's limits on behalf of the jail: a fixed amount, and an
 * amount for each connection (read-ahead and unsent data; with a credential, libcurl and TLS). */
#define DOOR_CONNECTIONS 1024 /* at one time, unless `limit connections` is set */
#define DOOR_MEMORY_BASE ((uint64_t)64 << 20)
#define DOOR_MEMORY_OF_CONNECTION ((uint64_t)320 << 10)

static inline uint64_t door_memory_bytes(uint64_t connections)
{
    return DOOR_MEMORY_BASE + connections * DOOR_MEMORY_OF_CONNECTION;
}

/* ---- From the job ---------------------------------------------------------------------------- */

enum door_message_type {
    DOOR_CONFIG = 1, /* to the broker; fds: the configuration, the secrets and the live secrets */
    DOOR_SOCKET = 2, /* to the broker; fd: one socket */
    DOOR_READY = 3,  /* from the broker: confined and serving */
    DOOR_FAILED = 4, /* from the broker: struct door_failure; the broker exits */
    DOOR_EVENT = 5,  /* from the broker: struct door_event */
    DOOR_RULE = 6,   /* to a broker with `policy ask`: struct door_rule */
    DOOR_RULES = 7,  /* to the broker; fd: the rules that replace its own */
};

/* The purpose of a socket. All but the connector's are or become non-blocking. */
enum door_socket {
    DOOR_SOCKET_DNS_UDP,    /* bound in the jail: answers queries */
    DOOR_SOCKET_DNS_TCP,    /* listens in the jail: the same over TCP */
    DOOR_SOCKET_REDIRECT,   /* in the jail; destination: SO_ORIGINAL_DST or the local address */
    DOOR_SOCKET_HTTP_PROXY, /* listens in the jail: CONNECT, and plain requests by absolute URI */
    DOOR_SOCKET_SOCKS,      /* listens in the jail: SOCKS5 CONNECT */
    DOOR_SOCKET_INJECT,     /* listens in the jail: plain HTTP for `inject INDEX` */
    DOOR_SOCKET_PUBLISH,    /* listens on the host: for `publish INDEX` */
    DOOR_SOCKET_CONNECTOR,  /* SEQPACKET, whose other end is the connector's fd 3 */
    DOOR_SOCKET_QUEUE, /* netlink: SYN packets to the redirected addresses, see broker_hold.c */
    DOOR_SOCKET_COUNT
};

#define DOOR_SOCKETS_MAX 256 /* of a broker */

/* DOOR_CONFIG and DOOR_SOCKET; also the head of door_event and door_failure. */
struct door_message {
    uint32_t version; /* DOOR_WIRE_VERSION */
    uint32_t type;    /* enum door_message_type */
    uint32_t kind;    /* DOOR_SOCKET: enum door_socket */
    uint32_t index;   /* DOOR_SOCKET_INJECT, DOOR_SOCKET_PUBLISH: the number */
};

/* The configuration is text in a memfd, read from its start: lines of words separated by one space.
 * A malformed line ends the broker. The first line is "brig-door 1". N counts from 0.
 *
 *     policy allow|ask|open       allow: only what rules allow; open: every public destination; ask:
 *                                 as allow, but a connection to another name waits for a rule
 *     allow RULE, deny RULE       as in --allow and --deny, with presets already resolved
 *     user UID GID                the user the broker changes to; required if started as root
 *     resolver ADDRESS[:PORT]     instead of those of /etc/resolv.conf; may be repeated
 *     proxy HOST:PORT             the host's HTTP proxy: every connection goes through it,
 *     proxy-secret K              with secret K as its Proxy-Authorization,
 *     no-proxy SUFFIX             except for SUFFIX and names that end in .SUFFIX; may be repeated
 *     ca PATH                     CA certificates instead of the system's, for inject
 *     limit connections N         at one time; default 1024
 *     limit names N               that get an address; default: see DOOR_NAMES_MAX
 *     limit bytes N               both directions together, 0 (the default) is no limit; beyond it
 *                                 every connection is ended
 *     limit idle-ms N             without a byte in either direction; 0 (the default) is no limit
 *     limit connect-ms N          for resolving a name and connecting to it; default 30000
 *     limit inspect-ms N          for a ClientHello or a request's head to arrive; default 15000
 *     limit ask-ms N              for the user to allow a connection, with `policy ask`; default
 *                                 120000
 *     inject N name NAME          the name this stands for; not reachable in any other way
 *     inject N upstream URL       http[s]://HOST[:PORT][/PREFIX]; default https://NAME
 *     inject N header HEADER K    adds it with secret K as its value; the client's is dropped
 *     inject N live L             the value of its header is live secret L, once that was written
 *     inject N strip HEADER       another header of the client that is dropped
 *     inject N method METHOD      allowed; repeated; none means all
 *     inject N path PREFIX        allowed; repeated; none means all
 *     publish N PORT              the port inside
 *
 * The secrets are in a memfd of their own: texts, each terminated by a NUL, counted from 0. The
 * broker copies them into locked memory and closes the memfd; the job should have sealed it, and
 * must not keep it. */
#define DOOR_LIVE_TEXT_MAX 4352 /* with the NUL; "Bearer " and the longest secret */

/* Live secrets are refreshed during a run, by the job: its memfd is an array of this struct, which
 * the broker can only read. The job writes the text that `generation + 1` selects (even: the first)
 * and then the generation. The broker looks for a new generation before each request. */
struct door_live {
    uint64_t generation; /* 0: nothing was written yet */
    char texts[2][DOOR_LIVE_TEXT_MAX];
};

#define DOOR_CONFIG_HEAD "brig-door 1"
#define DOOR_CONFIG_MAX ((uint32_t)4 << 20)
#define DOOR_SECRETS_MAX ((uint32_t)64 << 10)
#define DOOR_INJECT_MAX 32
#define DOOR_PUBLISH_MAX 64

/* ---- From the broker ------------------------------------------------------------------------- */

enum door_verdict {
    DOOR_ALLOWED, /* connected; DOOR_ENDED with the same `connection` follows */
    DOOR_DENIED,  /* refused by a rule, or because no rule allows it */
    DOOR_ERROR,   /* allowed, but failed: no such name, no answer, a limit */
    DOOR_ENDED,   /* the end of an allowed connection, with its byte counts */
    DOOR_WAITING, /* `policy ask`: no rule allows the destination, and the connection waits for one */
};

/* The reason. `detail` has it as text; DOOR_ALLOWED has DOOR_BECAUSE_RULE. */
enum door_because {
    DOOR_BECAUSE_RULE,       /* the rule in `rule` decided */
    DOOR_BECAUSE_NO_RULE,    /* denied: no rule allows it */
    DOOR_BECAUSE_PORT,       /* denied: the name is allowed, this port is not */
    DOOR_BECAUSE_ADDRESS,    /* denied: the address, or all addresses of the name, are not public */
    DOOR_BECAUSE_UNKNOWN,    /* denied: an address of the door's range that stands for no name */
    DOOR_BECAUSE_NO_SNI,     /* denied: TLS was required, and the ClientHello has no server name */
    DOOR_BECAUSE_WRONG_SNI,  /* denied: the ClientHello names another server */
    DOOR_BECAUSE_NOT_TLS,    /* denied: TLS was required */
    DOOR_BECAUSE_WRONG_HOST, /* denied: the request is for another host, or has no host */
    DOOR_BECAUSE_BAD_REQUEST, /* denied: the request is malformed or ambiguous */
    DOOR_BECAUSE_METHOD,      /* denied: inject does not allow the method */
    DOOR_BECAUSE_PATH,        /* denied: inject does not allow the path */
    DOOR_BECAUSE_INJECTED,    /* denied: the name can be reached through inject only */
    DOOR_BECAUSE_NO_NAME,     /* error: the name does not exist, or could not be resolved */
    DOOR_BECAUSE_NO_CONNECT,  /* error: could not connect to any of its addresses */
    DOOR_BECAUSE_TIMEOUT,     /* error: nothing arrived that could be inspected; or idle */
    DOOR_BECAUSE_CONNECTIONS, /* error: the limit on connections */
    DOOR_BECAUSE_NAMES,       /* error: the limit on names */
    DOOR_BECAUSE_BYTES,       /* error: the limit on bytes */
    DOOR_BECAUSE_RESET,       /* ended: one side reset the connection */
    DOOR_BECAUSE_CLOSED,      /* ended: closed in an orderly way */
    DOOR_BECAUSE_TLS,         /* error: the certificate of the inject's upstream is not valid */
    DOOR_BECAUSE_COUNT
};

/* DOOR_RULE: one line "allow RULE" or "deny RULE", as in the configuration. It is added to the
 * rules, and the connections that wait are decided about again. */
struct door_rule {
    struct door_message head; /* DOOR_RULE */
    char line[528];           /* terminated by a NUL */
};

/* The memfd of DOOR_RULES, which is read from its position, has lines "allow RULE" and "deny RULE", as
 * in the configuration. Connections that the new rules do not allow are ended. A malformed line ends the broker. */
#define DOOR_RULES_MAX ((uint32_t)1 << 20)

#define DOOR_NAME_MAX 256
#define DOOR_ADDRESS_MAX 48
#define DOOR_RULE_MAX 512 /* the longest rule */
#define DOOR_DETAIL_MAX 256

/* One decision, or the end of a connection. Texts are NUL-terminated and may be empty; text from
 * the jail is printable ASCII. A query for a name that is not allowed is an event with port 0
 * (repeated queries for the name within seconds are not). While the job does not read events, the
 * broker blocks, so no event is lost. */
struct door_event {
    struct door_message head; /* DOOR_EVENT */
    uint32_t verdict;         /* enum door_verdict */
    uint32_t because;         /* enum door_because */
    uint32_t via;             /* enum door_socket of the connection */
    uint32_t port;            /* of the destination; 0: a query */
    int64_t time_ns;          /* CLOCK_REALTIME */
    uint64_t connection;      /* counts from 1; 0: a query */
    uint64_t bytes_in;        /* to the jail */
    uint64_t bytes_out;       /* from the jail */
    uint64_t duration_ms;     /* of a connection that ended */
    char name[DOOR_NAME_MAX];
    char address[DOOR_ADDRESS_MAX]; /* connected to, or refused; "" if there was none */
    char rule[DOOR_RULE_MAX];       /* as it was written */
    char detail[DOOR_DETAIL_MAX];   /* inject: "METHOD PATH → STATUS"; else the reason as text */
};

struct door_failure {
    struct door_message head; /* DOOR_FAILED */
    char message[1024];
};

/* ---- Broker and connector -------------------------------------------------------------------- */

/* The broker requests a connection to the jail's loopback. The connector answers each request, in
 * order, with a socket on which connect() was called and may still be in progress, or with an
 * errno. */
enum door_loopback {
    DOOR_LOOPBACK_IPV4, /* 127.0.0.1 */
    DOOR_LOOPBACK_IPV6, /* ::1 */
};

struct door_connect {
    uint32_t version;  /* DOOR_WIRE_VERSION */
    uint32_t loopback; /* enum door_loopback */
    uint32_t port;
    uint32_t id; /* repeated in the answer */
};

struct door_connected {
    uint32_t version;
    uint32_t id;
    int32_t sys_errno; /* 0: the socket is attached */
};
