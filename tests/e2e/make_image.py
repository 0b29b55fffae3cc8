#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes container images for tests, honest and hostile: make_image.py FORMAT OUT CASE

FORMAT is oci (a directory), oci-archive or docker (archives). The cases are the functions case_*; each
returns the layers, lowest first, as lists of entries, and may change the image afterwards.
"""
import gzip
import hashlib
import io
import json
import os
import platform
import subprocess
import sys
import tarfile

BUSYBOX = "/bin/busybox"
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def entry(name, data=None, kind=tarfile.REGTYPE, mode=0o644, link="", pax=None):
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname, info.mtime = kind, mode, link, 1700000000
    if pax:
        info.pax_headers = pax
    body = data.encode() if isinstance(data, str) else data or b""
    info.size = len(body)
    return info, body


def directory(name, mode=0o755):
    return entry(name, kind=tarfile.DIRTYPE, mode=mode)


def symlink(name, target):
    return entry(name, kind=tarfile.SYMTYPE, link=target, mode=0o777)


def hard(name, target):
    return entry(name, kind=tarfile.LNKTYPE, link=target)


def base():
    """A small system: busybox and a few files."""
    with open(BUSYBOX, "rb") as file:
        program = file.read()
    entries = [directory("./"), directory("bin"), entry("bin/busybox", program, mode=0o755), directory("etc"),
               entry("etc/name", "base\n"), entry("etc/old", "old\n"), directory("dir"), entry("dir/one", "one\n"),
               directory("tmp", 0o1777), directory("app"), hard("bin/hard", "bin/busybox")]
    return entries + [symlink(f"bin/{name}", "busybox") for name in ("sh", "cat", "ls", "echo", "id", "env", "pwd", "stat")]


class Image:
    def __init__(self, layers):
        self.layers = layers        # lists of entries, or bytes of an archive
        self.compress = "gzip"
        self.format = tarfile.PAX_FORMAT
        self.config = {"Env": ["PATH=/bin", "GREETING=hello from the image"], "Cmd": ["/bin/sh", "-c", "echo $GREETING; pwd"],
                       "WorkingDir": "/app", "User": "nobody"}
        self.name = "test/base:1"
        self.architecture = ARCHITECTURE
        self.change = lambda image, blobs, manifest, config: None
        self.spoil = lambda files: None  # the files of the layout, by name
        self.extra = []

    def archive(self, layer):
        if isinstance(layer, bytes):
            return layer
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=self.format) as tar:
            for info, body in layer:
                tar.addfile(info, io.BytesIO(body))
        return out.getvalue()

    def pack(self, data):
        if self.compress == "gzip":
            return gzip.compress(data, 6, mtime=0)
        if self.compress == "zstd":
            return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout
        return data


def digest(data):
    return hashlib.sha256(data).hexdigest()


def oci_files(image):
    archives = [image.archive(layer) for layer in image.layers]
    blobs = [image.pack(archive) for archive in archives]
    config = {"architecture": image.architecture, "os": "linux", "config": image.config,
              "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest(archive) for archive in archives]}}
    files = {}

    def add(data, kind):
        files["blobs/sha256/" + digest(data)] = data
        return {"mediaType": "application/vnd.oci.image." + kind, "digest": "sha256:" + digest(data), "size": len(data)}
    suffix = "" if image.compress == "none" else "+" + image.compress
    manifest = {"schemaVersion": 2, "layers": [add(blob, "layer.v1.tar" + suffix) for blob in blobs]}
    image.change(image, blobs, manifest, config)
    manifest["config"] = add(json.dumps(config).encode(), "config.v1+json")
    descriptor = add(json.dumps(manifest).encode(), "manifest.v1+json")
    descriptor["annotations"] = {"org.opencontainers.image.ref.name": image.name}
    files["oci-layout"] = b'{"imageLayoutVersion":"1.0.0"}'
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [descriptor] + image.extra}).encode()
    image.spoil(files)
    return files


def docker_files(image):
    archives = [image.archive(layer) for layer in image.layers]
    config = {"architecture": image.architecture, "os": "linux", "config": image.config,
              "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest(archive) for archive in archives]}}
    image.change(image, archives, {}, config)
    text = json.dumps(config).encode()
    files = {digest(text) + ".json": text}
    names = []
    for archive in archives:
        names.append(digest(archive) + "/layer.tar")
        files[names[-1]] = archive
    files["manifest.json"] = json.dumps([{"Config": digest(text) + ".json", "RepoTags": [image.name], "Layers": names}]).encode()
    image.spoil(files)
    return files


def write(files, form, out):
    if form == "oci":
        for name, data in files.items():
            path = os.path.join(out, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)
        return
    with tarfile.open(out, "w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


# ---- honest ----

def case_base():
    return Image([base()])


def case_no_user():
    image = case_base()
    del image.config["User"]
    return image


def case_layers():
    """The upper layer replaces, hides and adds."""
    upper = [directory("etc"), entry("etc/name", "upper\n"), entry("etc/.wh.old"), entry("dir/.wh..wh..opq"),
             entry("dir/two", "two\n"), entry("etc/new\nline", "newline\n")]
    image = Image([base(), upper])
    image.name = "test/layers:1"
    return image


def case_preload():
    """Its variables would make every dynamic program outside print an error."""
    image = case_layers()
    image.config["Env"] = [*image.config["Env"], "LD_PRELOAD=/workspace/absent.so"]
    image.name = "test/preload:1"
    return image


def case_plain():
    image = case_base()
    image.compress = "none"
    return image


def case_zstd():
    image = case_base()
    image.compress = "zstd"
    return image


def case_gnu():
    """Long names, in the way of GNU tar."""
    long = "long/" + "n" * 120 + "/" + "m" * 120
    image = Image([base() + [entry(long, "deep\n"), symlink("longlink", long)]])
    image.format = tarfile.GNU_FORMAT
    return image


def case_pax():
    long = "long/" + "n" * 120 + "/" + "ü" * 100
    return Image([base() + [entry(long, "deep\n"), symlink("longlink", long)]])


def case_twice():
    """A layer that occurs twice, as an empty one often does."""
    empty = [directory("etc")]
    return Image([base(), empty, [entry("etc/name", "middle\n")], empty])


def case_types():
    """Each layer has another kind of file at the same name."""
    return Image([base() + [entry("x", "file\n"), directory("y"), entry("y/in", "in\n"), directory("z"), entry("z/in", "in\n")],
                  [directory("x"), entry("x/now", "a directory\n"), entry("y", "a file\n"), symlink("z", "etc")]])


def case_duplicates():
    """Later entries of one archive replace earlier ones."""
    return Image([base() + [entry("d", "first\n"), entry("d", "second\n"), directory("e"), entry("e/in", "x"),
                            entry("e", "now a file\n"), symlink("f", "/etc/name"), entry("f", "own\n")]])


def case_modes():
    return Image([base() + [entry("suid", "x", mode=0o6755), directory("closed", 0o000), entry("closed/in", "in\n", mode=0o000),
                            entry("device", kind=tarfile.CHRTYPE), entry("fifo", kind=tarfile.FIFOTYPE)]])


def case_many():
    return Image([base() + [entry(f"many/{i // 1000}/{i}") for i in range(100000)]])


def case_arch():
    image = case_base()
    image.extra = [{"digest": "sha256:" + "0" * 64, "size": 1, "platform": {"os": "linux", "architecture": "pdp11"}}]
    image.spoil = lambda files: None
    return image


# ---- hostile ----

def escape(*entries):
    return Image([base() + list(entries)])


def case_dotdot():
    return escape(entry("../outside", "x"))


def case_dotdot_inside():
    return escape(entry("etc/../../outside", "x"))


def case_absolute():
    """Not refused: it is below the image's root, as every name."""
    return escape(entry("/etc/absolute", "x\n"))


def case_link_parent():
    return escape(symlink("out", "/tmp"), entry("out/escaped", "x"))


def case_link_relative():
    return escape(symlink("out", "../../../../../../tmp"), entry("out/escaped", "x"))


def case_link_file():
    """The link is replaced, and not written through."""
    return escape(symlink("etc/victim", "../../../../../../../tmp/brig-image-victim"), entry("etc/victim", "own\n"))


def case_hard_outside():
    return escape(hard("passwd", "../../../../../../etc/passwd"))


def case_hard_absolute():
    return escape(hard("stolen", "/etc/passwd"))


def case_hard_through_link():
    return escape(symlink("out", "/etc"), hard("stolen", "out/passwd"))


def case_hard_directory():
    return escape(hard("bin2", "bin"))


def case_whiteout_dotdot():
    return escape(entry("etc/.wh..."), entry("etc/.wh...", ""))


def case_whiteout_parent():
    return escape(entry(".wh..", ""))


def case_whiteout_empty():
    return escape(entry("etc/.wh.", ""))


def case_whiteout_directory():
    return escape(directory("etc/.wh.x"), entry("etc/.wh.x/y", "z"))


def case_whiteout_through_link():
    return escape(symlink("out", "/tmp"), entry("out/.wh.victim", ""))


def case_opaque_through_link():
    return escape(symlink("out", "/tmp"), entry("out/.wh..wh..opq", ""))


def case_below_file():
    return escape(entry("file", "x"), entry("file/below", "y"))


def case_long_component():
    return escape(entry("n" * 300, "x"))


def case_deep():
    return escape(entry("/".join("d" * 200), "x"))


def case_bad_checksum():
    data = bytearray(Image([]).archive(base()))
    data[0] ^= 1
    return Image([bytes(data)])


def case_truncated():
    data = Image([]).archive(base())
    return Image([data[:len(data) // 2]])


def case_truncated_gzip():
    image = case_base()
    pack = image.pack
    image.pack = lambda data: pack(data)[:-2000]
    return image


def case_sparse():
    data = bytearray(Image([]).archive([entry("sparse", "x")]))
    data[156] = ord("S")
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    return Image([base(), bytes(data)])


def case_huge_size():
    data = bytearray(Image([]).archive([entry("huge", "x")]))
    data[124:136] = b"77777777777\0"
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    return Image([base(), bytes(data)])


def case_bomb():
    return Image([base() + [entry(f"zero{i}", bytes(64 << 20)) for i in range(5)]])


def case_wrong_digest():
    image = case_base()

    def spoil(files):
        largest = max((name for name in files if name.startswith("blobs/")), key=lambda name: len(files[name]))
        data = bytearray(files[largest])
        data[20] ^= 1
        files[largest] = bytes(data)
    image.spoil = spoil
    return image


def case_wrong_size():
    image = case_base()
    image.change = lambda image, blobs, manifest, config: manifest["layers"][0].update(size=7)
    return image


def case_wrong_diff_id():
    image = case_base()
    image.change = lambda image, blobs, manifest, config: config["rootfs"].update(diff_ids=["sha256:" + "0" * 64])
    return image


def case_missing_layer():
    image = case_base()
    image.spoil = lambda files: files.pop(max((name for name in files if "/" in name), key=lambda name: len(files[name])))
    return image


def case_no_layers():
    return Image([])


def case_too_many_layers():
    return Image([[entry(f"f{i}")] for i in range(128)])


def case_path_digest():
    """A digest that is a path."""
    image = case_base()
    image.change = lambda image, blobs, manifest, config: manifest["layers"][0].update(digest="sha256:../../../../etc/passwd")
    return image


def case_deep_json():
    image = case_base()

    def spoil(files):
        files["index.json"] = b"[" * 100000
    image.spoil = spoil
    return image


def case_windows():
    image = case_base()
    image.change = lambda image, blobs, manifest, config: config.update(os="windows")
    return image


def case_bad_env():
    image = case_base()
    image.config["Env"] = ["A=1\nlayer " + "0" * 64, "B=%41", "=x", "C"]
    return image


def main():
    form, out, case = sys.argv[1:]
    image = globals()["case_" + case.replace("-", "_")]()
    write(docker_files(image) if form == "docker" else oci_files(image), form, out)


if __name__ == "__main__":
    main()
