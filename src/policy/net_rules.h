/* SPDX-License-Identifier: MIT */
/* The destinations that a jail may reach: rules as users write them, and queries about them. Pure:
 * the verdicts are final, but the caller has to resolve the name and to connect to the very address
 * that it asked about.
 *
 *   NAME[:PORTS][/tls]     this name                      example.com:443,8443
 *   *.NAME[:PORTS][/tls]   every name below it, not it    *.example.com
 *   *[:PORTS]              every name and every public address
 *   ADDRESS[:PORTS]        one address of any class except loopback
 *   RANGE[:PORTS]          10.0.0.0/8:5432
 *   [V6]:PORTS             [2001:db8::1]:443, [2001:db8::/32]:443
 *   host:PORTS             a service on the host's loopback
 *   @PRESET[+mirrors]      the rules of a preset
 *
 * PORTS are numbers and ranges, separated by commas (22,8000-8999), or `*` for all. The default is
 * 443 and 80; for `*` and for deny rules it is all. `/tls` requests the inspection of TLS on ports
 * other than 443. A deny rule overrides every allow rule. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/net_address.h"

struct brig_error;
struct str;

#define NET_RULES_MAX 1024
#define NET_RULE_PORTS_MAX 16
#define NET_RULE_TEXT_MAX 512  /* a rule's text, including the NUL */
#define NET_HOST_NAME "host"   /* the name by which the host's loopback is reached */
#define NET_PRESET_NAME_MAX 16 /* including the '@' and the NUL */
#define NET_RULE_LINE_MAX (NET_RULE_TEXT_MAX + NET_PRESET_NAME_MAX + 8) /* including the NUL */

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
    char preset[NET_PRESET_NAME_MAX]; /* the preset of the rule, with the '@', or "" */
};

/* Zero-initialise or net_rules_init(). */
struct net_rules {
    struct net_rule *items; /* in the order in which they were added */
    size_t count;
    unsigned mirrors; /* enum net_tool: tools whose mirrors the front end also allows */
};

void net_rules_init(struct net_rules *rules);
void net_rules_done(struct net_rules *rules);

/* Adds a rule, or all rules of a preset; adds nothing on failure. The error names the text and the
 * remedy. */
int net_rules_allow(struct net_rules *rules, const char *text, struct brig_error *err);
int net_rules_deny(struct net_rules *rules, const char *text, struct brig_error *err);
/* Adds a parsed rule. */
int net_rules_add(struct net_rules *rules, const struct net_rule *rule, struct brig_error *err);

/* Parses a port from 1 to 65535, of exactly `length` digits, without a leading 0. */
bool net_port_read(const char *text, size_t length, uint16_t *ret_port);

/* Parses one rule, not a preset. */
int net_rule_parse(const char *text, bool deny, struct net_rule *ret_rule, struct brig_error *err);

/* Prints the rule in the syntax above, always with its ports; without "allow" or "deny". */
void net_rule_print(const struct net_rule *rule, char text[NET_RULE_TEXT_MAX]);

/* One line per rule, for transmission: "allow example.com:443,80" or, from a preset, "allow
 * pypi.org:443,80 @pypi". The text of net_rules_write() ends with a newline; that of
 * net_rule_write() does not. */
void net_rules_write(const struct net_rules *rules, struct str *text);
void net_rule_write(const struct net_rule *rule, char line[NET_RULE_LINE_MAX]);
/* Adds the rule of such a line, which has no newline. */
int net_rules_read_line(struct net_rules *rules, const char *line, struct brig_error *err);

/* ---- Presets: named sets of destinations ---- */

/* Tools whose users may have configured a mirror, as bits. */
enum net_tool {
    NET_TOOL_NPM = 1 << 0,
    NET_TOOL_PYPI = 1 << 1,
    NET_TOOL_CRATES = 1 << 2,
    NET_TOOL_GO = 1 << 3,
};

struct net_preset {
    const char *name;         /* with its '@' */
    const char *summary;      /* for listings */
    const char *const *rules; /* in the syntax of net_rules_add(); terminated by NULL */
    unsigned mirrors;         /* the tools whose mirrors +mirrors requests: enum net_tool; or 0 */
};

/* All presets. */
const struct net_preset *net_presets(size_t *ret_count);

/* Aliases of complete network policies, for compatibility with earlier executors. */
struct net_policy_alias {
    const char *name;    /* "deny_all", "registry_allowlist" */
    const char *network; /* the policy it stands for: "none" or "allow" */
    const char *rule;    /* the rule it allows, or NULL */
};

/* NULL if there is no such alias. */
const struct net_policy_alias *net_policy_alias_find(const char *name);

/* ---- Queries. Names are in the form of net_name_read(); anything else matches nothing. ---- */

enum net_reason {
    NET_OK,
    NET_NO_RULE,    /* no rule allows it */
    NET_WRONG_PORT, /* only other ports are allowed */
    NET_DENIED,     /* a rule denies it */
    NET_NOT_PUBLIC, /* an address of this class must be granted as an address */
};

struct net_verdict {
    enum net_reason reason;
    const struct net_rule *rule; /* the rule that allows or denies it, or NULL */
    bool tls;                    /* allowed: the rule requests the inspection of TLS */
    enum net_class class;        /* of the address; NET_PUBLIC if there was none in the query */
};

const char *net_reason_text(enum net_reason reason); /* "no rule allows it", … */

/* Whether the name may be resolved: any port of it is allowed. It is denied only if every port
 * is. */
struct net_verdict net_rules_resolve(const struct net_rules *rules, const char *name);

/* Whether the name may be connected to on this port. If the rule is of kind NET_RULE_HOST, the
 * host's loopback is meant and no name is resolved. Otherwise the caller must check the resolved
 * address with net_rules_resolved(). */
struct net_verdict net_rules_name(const struct net_rules *rules, const char *name, uint16_t port);

/* Whether this address of a name that net_rules_name() allows may be connected to: yes if it is
 * public and not denied, or granted as an address with this port. The rule denies or grants the
 * address; NULL for an address that is merely public. */
struct net_verdict net_rules_resolved(const struct net_rules *rules,
                                      const struct net_address *address, uint16_t port);

/* Whether an address that was not resolved from a name may be connected to: yes by a rule for it,
 * or for `*` if it is public. */
struct net_verdict net_rules_address(const struct net_rules *rules,
                                     const struct net_address *address, uint16_t port);

/* Whether a rule allows every name and public address, on any port. */
bool net_rules_is_open(const struct net_rules *rules);
