/* SPDX-License-Identifier: MIT */
#include "unpack/manifest.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"

#define DESCRIPTION_MAX ((size_t)4 << 20) /* bytes of a JSON file */
#define INDEX_DEPTH_MAX 4                 /* an index can lead to another one */
#define ALGORITHM "sha256:"

#define autojson __attribute__((cleanup(forget)))
static void forget(json_t **value)
{
    json_decref(*value);
}

static int invalid(struct brig_error *err, const char *what)
{
    return brig_fail(err, BRIG_E_INVALID, 0, "not a valid image: %s", what);
}

/* ---- JSON ---- */

/* Reads a JSON file; with a digest it must have this one, and its size. */
static int read_json(struct source *source, const char *path, const char *digest, json_t **ret_json,
                     struct brig_error *err)
{
    struct blob blob;
    autofree char *text = NULL;
    char found[SHA256_HEX_LENGTH + 1];
    int result = source_find(source, path, &blob, err);
    if (result == 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "not a valid image: it has no '%s'",
                         str_shown(path).text);
    if (result < 0 || (result = blob_read_all(&blob, DESCRIPTION_MAX, &text, err)) < 0)
        return result;
    sha256_hex(text, (size_t)blob.size, found);
    if (digest && strcmp(found, digest) != 0)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' does not have the digest that it is named by", str_shown(path).text);
    *ret_json = json_loadb(text, (size_t)blob.size, JSON_REJECT_DUPLICATES, NULL);
    return *ret_json ? 0
                     : brig_fail(err, BRIG_E_INVALID, 0, "'%s' of the image is not valid JSON",
                                 str_shown(path).text);
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* The digits of "sha256:…"; NULL if it is something else. */
static const char *digits_of(const char *digest)
{
    if (!digest || !str_starts_with(digest, ALGORITHM) ||
        !image_is_digest(digest + strlen(ALGORITHM)))
        return NULL;
    return digest + strlen(ALGORITHM);
}

static void blob_path(const char *digits, char ret_path[PATH_MAX])
{
    (void)snprintf(ret_path, PATH_MAX, "blobs/sha256/%s", digits);
}

static int read_blob(struct source *source, const char *digits, json_t **ret_json,
                     struct brig_error *err)
{
    char path[PATH_MAX];
    blob_path(digits, path);
    return read_json(source, path, digits, ret_json, err);
}

/* ---- the configuration ---- */

static int copy_text(struct image_record *record, const char *text, char **ret_text,
                     struct brig_error *err)
{
    if (!text || !*text)
        return 0;
    *ret_text = arena_strdup(&record->arena, text);
    return *ret_text ? 0 : brig_fail_nomem(err);
}

static int copy_words(struct image_record *record, const json_t *list, struct image_words *words,
                      struct brig_error *err)
{
    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list))
        return invalid(err, "its command or environment is not a list");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (!text || strlen(text) != json_string_length(json_array_get(list, i)))
            return invalid(err, "its command or environment has something that is not a text");
        if (words == &record->env && (!strchr(text, '=') || *text == '='))
            continue; /* Docker allows a name alone, which sets nothing */
        int result = image_words_add(record, words, text, err);
        if (result < 0)
            return result;
    }
    return 0;
}

static int read_settings(struct image_record *record, const json_t *config, struct brig_error *err)
{
    const json_t *settings = json_object_get(config, "config");
    const char *workdir = text_of(settings, "WorkingDir");
    int result = copy_text(record, text_of(config, "architecture"), &record->architecture, err);
    if (result == 0)
        result = copy_words(record, json_object_get(settings, "Env"), &record->env, err);
    if (result == 0)
        result =
            copy_words(record, json_object_get(settings, "Entrypoint"), &record->entrypoint, err);
    if (result == 0)
        result = copy_words(record, json_object_get(settings, "Cmd"), &record->cmd, err);
    if (result == 0 && workdir && *workdir == '/')
        result = copy_text(record, workdir, &record->workdir, err);
    return result < 0 ? result : copy_text(record, text_of(settings, "User"), &record->user, err);
}

/* The digests of the unpacked archives name the layers. */
static int read_contents(struct manifest *manifest, const json_t *config, size_t count,
                         struct brig_error *err)
{
    struct image_record *record = &manifest->record;
    const json_t *list = json_object_get(json_object_get(config, "rootfs"), "diff_ids");
    if (!json_is_array(list) || json_array_size(list) != count)
        return invalid(err, "its configuration does not name each of its layers");
    for (size_t i = 0; i < count; i++) {
        const char *digits = digits_of(json_string_value(json_array_get(list, i)));
        if (!digits)
            return invalid(err, "a layer is not named by a SHA-256 digest");
        (void)snprintf(manifest->layers[i].content, sizeof manifest->layers[i].content, "%s",
                       digits);
        record->layers[i] = arena_strdup(&record->arena, digits);
        if (!record->layers[i])
            return brig_fail_nomem(err);
    }
    record->layer_count = count;
    return 0;
}

static int read_config(struct manifest *manifest, const json_t *config, size_t layers,
                       struct brig_error *err)
{
    const char *system = text_of(config, "os");
    if (system && strcmp(system, "linux") != 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "the image is for '%s', not for Linux",
                         str_shown(system).text);
    int result = read_contents(manifest, config, layers, err);
    return result < 0 ? result : read_settings(&manifest->record, config, err);
}

static int check_count(size_t count, struct brig_error *err)
{
    if (count >= 1 && count <= ROOT_LAYERS_MAX)
        return 0;
    return brig_fail(err, BRIG_E_INVALID, 0, "the image has %zu layers; 1 to %d are possible",
                     count, ROOT_LAYERS_MAX);
}

/* ---- OCI ---- */

static const char *annotation(const json_t *descriptor, const char *key)
{
    return text_of(json_object_get(descriptor, "annotations"), key);
}

static bool is_wanted(const json_t *descriptor, const char *wanted)
{
    const char *tag = annotation(descriptor, "org.opencontainers.image.ref.name");
    const char *name = annotation(descriptor, "io.containerd.image.name");
    return !wanted || str_equal(tag, wanted) || str_equal(name, wanted);
}

/* Whether a descriptor is for this architecture, or for no particular one. */
static bool is_for(const json_t *descriptor, const char *architecture)
{
    const json_t *platform = json_object_get(descriptor, "platform");
    const char *system = text_of(platform, "os"), *its = text_of(platform, "architecture");
    return (!system || strcmp(system, "linux") == 0) && (!its || strcmp(its, architecture) == 0);
}

/* Chooses the descriptor of an index. */
static int choose(const json_t *index, const char *wanted, const char *architecture,
                  const json_t **ret_descriptor, struct brig_error *err)
{
    const json_t *list = json_object_get(index, "manifests"), *found = NULL;
    size_t named = 0, fitting = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        if (!is_wanted(item, wanted))
            continue;
        named++;
        if (!is_for(item, architecture))
            continue;
        fitting++;
        found = item;
    }
    if (named == 0 && wanted)
        return brig_fail(err, BRIG_E_INVALID, 0, "there is no image '%s' in it",
                         str_shown(wanted).text);
    if (fitting == 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "it has no image for %s", architecture);
    if (fitting > 1)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "it has %zu images; say which one, as in oci:DIR:TAG", fitting);
    *ret_descriptor = found;
    return 0;
}

static int name_record(struct image_record *record, const char *name, struct brig_error *err)
{
    name = name ? image_short_name(name) : NULL;
    return !name || image_check_name(name, NULL) < 0 ? 0
                                                     : copy_text(record, name, &record->name, err);
}

static int add_oci_layers(struct manifest *manifest, const json_t *list, struct brig_error *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const char *digits = digits_of(text_of(item, "digest"));
        const json_int_t size = json_integer_value(json_object_get(item, "size"));
        if (!digits || size < 0)
            return invalid(err, "a layer has no SHA-256 digest or no size");
        struct manifest_layer *layer = &manifest->layers[i];
        blob_path(digits, layer->path);
        (void)snprintf(layer->digest, sizeof layer->digest, "%s", digits);
        layer->size = (uint64_t)size;
    }
    return 0;
}

/* Reads a manifest, whose digits become those of the image. */
static int read_manifest(struct source *source, const json_t *json, const char *digits,
                         struct manifest *manifest, struct brig_error *err)
{
    autojson json_t *config = NULL;
    const json_t *layers = json_object_get(json, "layers");
    const char *of_config = digits_of(text_of(json_object_get(json, "config"), "digest"));
    if (!of_config)
        return invalid(err, "its manifest names no configuration");
    int result = check_count(json_array_size(layers), err);
    if (result == 0)
        result = read_blob(source, of_config, &config, err);
    if (result == 0)
        result = add_oci_layers(manifest, layers, err);
    if (result == 0)
        result = copy_text(&manifest->record, digits, &manifest->record.digest, err);
    blob_path(digits, manifest->description);
    return result < 0 ? result : read_config(manifest, config, json_array_size(layers), err);
}

static int read_oci(struct source *source, const char *wanted, const char *architecture,
                    struct manifest *manifest, struct brig_error *err)
{
    autojson json_t *json = NULL;
    char digits[SHA256_HEX_LENGTH + 1];
    int result = read_json(source, "index.json", NULL, &json, err);
    for (int depth = 0; result == 0 && depth < INDEX_DEPTH_MAX; depth++) {
        const json_t *chosen;
        if ((result = choose(json, depth == 0 ? wanted : NULL, architecture, &chosen, err)) < 0)
            return result;
        const char *its = digits_of(text_of(chosen, "digest"));
        if (!its)
            return invalid(err, "its index names no SHA-256 digest");
        (void)snprintf(digits, sizeof digits, "%s", its);
        const char *name = annotation(chosen, "io.containerd.image.name");
        if (!name)
            name = annotation(chosen, "org.opencontainers.image.ref.name");
        if (!manifest->record.name)
            result = name_record(&manifest->record, name, err);
        json_t *next = NULL;
        if (result == 0)
            result = read_blob(source, digits, &next, err);
        json_decref(json);
        json = next;
        if (result == 0 && !json_object_get(json, "manifests"))
            return read_manifest(source, json, digits, manifest, err);
    }
    return result < 0 ? result : invalid(err, "its indexes lead to each other");
}

/* ---- docker save ---- */

/* skopeo writes docker.io/library/python:3 for python:3, Docker does not. */
static bool has_tag(const json_t *image, const char *wanted)
{
    const json_t *tags = json_object_get(image, "RepoTags");
    for (size_t i = 0; i < json_array_size(tags); i++) {
        const char *tag = json_string_value(json_array_get(tags, i));
        if (tag && strcmp(image_short_name(tag), image_short_name(wanted)) == 0)
            return true;
    }
    return false;
}

static int choose_docker(const json_t *list, const char *wanted, const json_t **ret_image,
                         struct brig_error *err)
{
    const json_t *found = NULL;
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *image = json_array_get(list, i);
        if (wanted && !has_tag(image, wanted))
            continue;
        found = image;
        count++;
    }
    if (count == 0 && wanted)
        return brig_fail(err, BRIG_E_INVALID, 0, "there is no image '%s' in it",
                         str_shown(wanted).text);
    if (count != 1)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "it has %zu images; say which one, as in docker-archive:FILE:NAME", count);
    *ret_image = found;
    return 0;
}

/* The configuration's digest is the image's id, whatever its file is called. */
static int read_docker_config(struct source *source, const char *path, json_t **ret_config,
                              struct image_record *record, struct brig_error *err)
{
    struct blob blob;
    autofree char *text = NULL;
    char digits[SHA256_HEX_LENGTH + 1];
    int result = read_json(source, path, NULL, ret_config, err);
    if (result < 0 || (result = source_find(source, path, &blob, err)) <= 0 ||
        (result = blob_read_all(&blob, DESCRIPTION_MAX, &text, err)) < 0)
        return result == 0 ? invalid(err, "it has no configuration") : result;
    sha256_hex(text, (size_t)blob.size, digits);
    return copy_text(record, digits, &record->digest, err);
}

static int read_docker(struct source *source, const char *wanted, struct manifest *manifest,
                       struct brig_error *err)
{
    autojson json_t *list = NULL;
    autojson json_t *config = NULL;
    const json_t *image = NULL;
    int result = read_json(source, "manifest.json", NULL, &list, err);
    if (result < 0 || (result = choose_docker(list, wanted, &image, err)) < 0)
        return result;
    const json_t *layers = json_object_get(image, "Layers");
    const char *path = text_of(image, "Config");
    const char *name =
        wanted ? wanted : json_string_value(json_array_get(json_object_get(image, "RepoTags"), 0));
    if (!path || !str_fill(manifest->description, PATH_MAX, path))
        return invalid(err, "its manifest names no configuration");
    if ((result = check_count(json_array_size(layers), err)) < 0 ||
        (result = read_docker_config(source, path, &config, &manifest->record, err)) < 0)
        return result;
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const char *file = json_string_value(json_array_get(layers, i));
        if (!file || !str_fill(manifest->layers[i].path, PATH_MAX, file))
            return invalid(err, "a layer has no file");
    }
    result = name_record(&manifest->record, name, err);
    return result < 0 ? result : read_config(manifest, config, json_array_size(layers), err);
}

/* ---- both ---- */

static int find_format(struct source *source, enum manifest_format *ret_format,
                       struct brig_error *err)
{
    struct blob blob;
    int found = source_find(source, "index.json", &blob, err);
    if (found > 0) {
        *ret_format = MANIFEST_OCI;
        return 0;
    }
    if (found == 0)
        found = source_find(source, "manifest.json", &blob, err);
    if (found == 0)
        return invalid(err, "it has neither an index.json (OCI) nor a manifest.json (docker save)");
    *ret_format = MANIFEST_DOCKER;
    return found < 0 ? found : 0;
}

int manifest_read(struct source *source, enum manifest_format format, const char *wanted,
                  const char *architecture, struct manifest *ret_manifest, struct brig_error *err)
{
    *ret_manifest = (struct manifest){0};
    int result = format == MANIFEST_ANY ? find_format(source, &format, err) : 0;
    if (result == 0)
        result = format == MANIFEST_OCI ? read_oci(source, wanted, architecture, ret_manifest, err)
                                        : read_docker(source, wanted, ret_manifest, err);
    if (result < 0)
        image_record_done(&ret_manifest->record);
    return result;
}
