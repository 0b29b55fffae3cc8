/* SPDX-License-Identifier: MIT */
/* Names of hosts, in the one form in which they are compared. */
#include "policy/net_name.h"

#include <string.h>

#include "base/error.h"
#include "base/str.h"

/* Not those of <ctype.h>, which ask the locale. */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_name_character(char c)
{
    return (lower(c) >= 'a' && lower(c) <= 'z') || is_digit(c) || c == '-' || c == '_';
}

static size_t label_length(const char *text, size_t length)
{
    const char *dot = memchr(text, '.', length);
    return dot ? (size_t)(dot - text) : length;
}

static const char *fault_in_label(const char *label, size_t length)
{
    if (length == 0)
        return "it has two dots in a row, or begins with one; write it without";
    for (size_t i = 0; i < length; i++) {
        if (label[i] & 0x80)
            return "only ASCII is taken; write its ASCII form, which has xn-- in it";
        if (!is_name_character(label[i]))
            return "a name has letters, digits, '-', '_' and dots, such as example.com";
    }
    if (length > NET_LABEL_MAX)
        return "no part between dots has more than 63 characters";
    if (label[0] == '-' || label[length - 1] == '-')
        return "no part between dots begins or ends with '-'";
    return NULL;
}

/* As readers of URLs see it: what ends in a number is an address, in some spelling. */
static bool is_number(const char *label, size_t length)
{
    if (length >= 2 && label[0] == '0' && lower(label[1]) == 'x') {
        for (size_t i = 2; i < length; i++)
            if (!is_digit(label[i]) && !(lower(label[i]) >= 'a' && lower(label[i]) <= 'f'))
                return false;
        return true;
    }
    for (size_t i = 0; i < length; i++)
        if (!is_digit(label[i]))
            return false;
    return true;
}

static size_t without_trailing_dot(const char *text, size_t length)
{
    return length > 1 && text[length - 1] == '.' ? length - 1 : length;
}

/* What is wrong with it, and the remedy; NULL if it is a name. */
static const char *fault_in(const char *text, size_t length)
{
    if (length == 0)
        return "it is empty; write a name such as example.com";
    length = without_trailing_dot(text, length);
    if (length > NET_NAME_MAX)
        return "a name has at most 253 characters";
    for (size_t at = 0;;) {
        size_t label = label_length(text + at, length - at);
        const char *fault = fault_in_label(text + at, label);
        if (fault)
            return fault;
        if (at + label == length)
            return is_number(text + at, label)
                       ? "it ends in a number, but is not an address such as 192.0.2.1"
                       : NULL;
        at += label + 1;
    }
}

static void copy_lower(const char *text, size_t length, char ret_name[NET_NAME_MAX + 1])
{
    length = without_trailing_dot(text, length);
    for (size_t i = 0; i < length; i++)
        ret_name[i] = lower(text[i]);
    ret_name[length] = '\0';
}

bool net_name_read(const char *text, size_t length, char ret_name[NET_NAME_MAX + 1])
{
    if (fault_in(text, length))
        return false;
    copy_lower(text, length, ret_name);
    return true;
}

int net_name_parse(const char *text, size_t length, char ret_name[NET_NAME_MAX + 1],
                   struct brig_error *err)
{
    const char *fault = fault_in(text, length);
    if (!fault) {
        copy_lower(text, length, ret_name);
        return 0;
    }
    char shown[STR_SHOWN_MAX] = "";
    memcpy(shown, text, length < sizeof shown ? length : sizeof shown - 1);
    return brig_fail(err, BRIG_E_INVALID, 0, "bad host name '%s': %s", str_shown(shown).text,
                     fault);
}

bool net_name_below(const char *name, const char *domain)
{
    size_t length = strlen(name), tail = strlen(domain);
    return tail > 0 && length > tail + 1 && name[length - tail - 1] == '.' &&
           strcmp(name + length - tail, domain) == 0;
}

bool net_name_is_localhost(const char *name)
{
    return strcmp(name, "localhost") == 0 || net_name_below(name, "localhost");
}
