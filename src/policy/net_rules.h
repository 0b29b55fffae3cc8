/* SPDX-License-Identifier: MIT */
/* Which destinations a jail may reach: rules as people write them, and the questions they
 * answer. Pure: what they say about names and addresses is final, but the caller has to resolve
 * the name and to connect to the very address that was asked about.
 *
 *   NAME[:PORTS][/tls]     this name                      example.com:443,8443
 * *.NAME[:PORTS][/tls]   every name below it, not it    *.example.com   *[:PORTS]
 * every name and every public address   ADDRESS[:PORTS]        one address, whatever its kind
 * but for loopback   RANGE[:PORTS]          10.0.0.0/8:5432   [V6]:PORTS
 * [2001:db8::1]:443, [2001:db8::/32]:443   host:PORTS             a service on the host's own
 * loopback   @PRESET[+mirrors]      the rules of that preset
 *
 * PORTS are numbers and ranges with commas between them (22,8000-8999), or `*` for all.
 * Without: 443 and 80; for `*` and whatever is denied, all. `/tls` asks for the inspection of
 * TLS on ports other than 443. What is denied is denied, whatever else allows it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/net_address.h"

struct brig_error;
struct str;

#define NET_RULES_MAX 1024
#define NET_RULE_PORTS_MAX 16
#define NET_RULE_TEXT_MAX 512  /* a rule's text, with the NUL */
#define NET_HOST_NAME "host"   /* the name by which the host's loopback is reached */
#define NET_PRESET_NAME_MAX 16 /* with the '@' and the NUL */
#define NET_RULE_LINE_MAX (NET_RULE_TEXT_MAX + NET_PRESET_NAME_MAX + 8) /* with the NUL */

enum net_rule_kind {
    NET_RULE_NAME,
    NET_RULE_BELOW,
    NET_RULE_ANY,
    NET_RULE_RANGE,
    NET_RULE_HOST,
};

struct net_ports {
    uint16_t first, last;
};

/* Plain data. */
struct net_rule {
    enum net_rule_kind kind;
    bool deny;
    bool tls;                    /* inspect TLS on all its ports */
    char name[NET_NAME_MAX + 1]; /* NAME, BELOW (without the "*.") */
    struct net_range range;      /* RANGE */
    struct net_ports ports[NET_RULE_PORTS_MAX];
    size_t port_count;                /* 0: every port */
    char preset[NET_PRESET_NAME_MAX]; /* the preset it is from, with the '@', or "" */
};

/* Zero-initialise or net_rules_init(). */
struct net_rules {
    struct net_rule *items; /* in the order in which they were added */
    size_t count;
    unsigned mirrors; /* enum net_tool: tools whose mirrors the front allows too */
};

void net_rules_init(struct net_rules *rules);
void net_rules_done(struct net_rules *rules);

/* Adds what the text says, all of a preset; nothing if that fails. The text of an error names it
 * and the remedy. */
int net_rules_allow(struct net_rules *rules, const char *text, struct brig_error *err);
int net_rules_deny(struct net_rules *rules, const char *text, struct brig_error *err);
/* Adds one that is there already. */
int net_rules_add(struct net_rules *rules, const struct net_rule *rule, struct brig_error *err);

/* A port from 1 to 65535, of exactly so many digits, the first not 0. */
bool net_port_read(const char *text, size_t length, uint16_t *ret_port);

/* One rule, no preset. */
int net_rule_parse(const char *text, bool deny, struct net_rule *ret_rule, struct brig_error *err);

/* The rule as it would be written, the ports always with it; without "allow" or "deny". */
void net_rule_print(const struct net_rule *rule, char text[NET_RULE_TEXT_MAX]);

/* One line a rule, for handing over: "allow example.com:443,80" or, of a preset,
 * "allow pypi.org:443,80 @pypi". The text of net_rules_write() ends with a newline;
 * net_rule_write() has none. */
void net_rules_write(const struct net_rules *rules, struct str *text);
void net_rule_write(const struct net_rule *rule, char line[NET_RULE_LINE_MAX]);
/* Adds what such a line says; it is without its newline. */
int net_rules_read_line(struct net_rules *rules, const char *line, struct brig_error *err);

/* ---- Presets: sets of destinations under a name ---- */

/* Tools whose users may have configured a mirror, as bits. */
enum net_tool {
    NET_TOOL_NPM = 1 << 0,
    NET_TOOL_PYPI = 1 << 1,
    NET_TOOL_CRATES = 1 << 2,
    NET_TOOL_GO = 1 << 3,
};

struct net_preset {
    const char *name;         /* with its '@' */
    const char *summary;      /* for a list of them */
    const char *const *rules; /* as net_rules_add() reads them; NULL at the end */
    unsigned mirrors;         /* the tools whose mirrors +mirrors asks for: enum net_tool; or 0 */
};

/* All of them, for lists. */
const struct net_preset *net_presets(size_t *ret_count);

/* Other names of whole policies, as the executors before us have them. */
struct net_policy_alias {
    const char *name;    /* "deny_all", "registry_allowlist" */
    const char *network; /* the policy it stands for: "none" or "allow" */
    const char *rule;    /* what that allows, or NULL */
};

/* NULL if it is no such name. */
const struct net_policy_alias *net_policy_alias_find(const char *name);

/* ---- Questions. Names are as net_name_read() gives them; anything else matches nothing. ---- */

enum net_reason {
    NET_OK,
    NET_NO_RULE,    /* nothing allows it */
    NET_WRONG_PORT, /* only other ports are allowed */
    NET_DENIED,     /* a rule denies it */
    NET_NOT_PUBLIC, /* the kind of address needs to be granted as an address */
};

struct net_verdict {
    enum net_reason reason;
    const struct net_rule *rule; /* what allows or denies it; NULL if there is none */
    bool tls;                    /* allowed: the rule asks for the inspection of TLS */
    enum net_class class;        /* of the address; NET_PUBLIC where none was asked about */
};

const char *net_reason_text(enum net_reason reason); /* "no rule allows it", … */

/* May the name be looked up: is any port of it allowed? It is denied only if every port is. */
struct net_verdict net_rules_resolve(const struct net_rules *rules, const char *name);

/* May the name be connected to on this port? If the rule is of kind NET_RULE_HOST, the host's
 * loopback is meant and no name is to be resolved. Else the address that the name resolves to has
 * to be asked about with net_rules_resolved(). */
struct net_verdict net_rules_name(const struct net_rules *rules, const char *name, uint16_t port);

/* A name that net_rules_name() allows has this address: may it be connected to? Yes if it is public
 * and not denied, or granted as an address with this port. The rule is what denies or grants the
 * address, NULL for one that is just public. */
struct net_verdict net_rules_resolved(const struct net_rules *rules,
                                      const struct net_address *address, uint16_t port);

/* May an address be connected to that was given as such? Yes by a rule for it, or for `*` if it is
 * public. */
struct net_verdict net_rules_address(const struct net_rules *rules,
                                     const struct net_address *address, uint16_t port);

/* Is there a rule for every name and public address, on any port? */
bool net_rules_is_open(const struct net_rules *rules);
