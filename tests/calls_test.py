#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every call of layer posix, made by a program, replayed, and the trees compared, modes included."""
import json
import os
import shutil
import stat
import subprocess
import tempfile

from harness import BUILD, TOP, Skip, feign, main, sanitized


def with_modes(path):
    out = {}
    for folder, dirs, files in os.walk(path):
        for name in dirs + files:
            full = os.path.join(folder, name)
            st = os.lstat(full)
            kind = stat.S_IFMT(st.st_mode)
            out[os.path.relpath(full, path)] = (oct(st.st_mode) if kind != stat.S_IFLNK else "link", None if kind == stat.S_IFDIR else st.st_size,
                                                st.st_blocks if kind == stat.S_IFREG else None)
    return out


def traced_calls(tmp, options):
    strace, compiler = shutil.which("strace"), shutil.which("cc") or shutil.which("gcc")
    if not strace or not compiler:
        raise Skip("there is no strace, or no C compiler")
    program, work, trace = (os.path.join(tmp, n) for n in ("all-calls", "w", "t.strace"))
    os.mkdir(work)
    subprocess.run([compiler, "-O0", "-w", "-o", program, os.path.join(TOP, "tests", "all_calls.c")], check=True)
    subprocess.run([strace, *options, "-o", trace, program], check=True, cwd=work)
    return work, trace


def replays_all(place, options, *more):
    if place and not os.access(place, os.W_OK):
        raise Skip(f"{place} is not to be written to")
    with tempfile.TemporaryDirectory(prefix="feign-test.", dir=place) as tmp:
        check(tmp, *traced_calls(tmp, options), *more)


def check(tmp, work, trace, *more):
    root = os.path.join(tmp, "root")
    os.mkdir(root)
    for _ in range(2):  # the second time on a used root
        r = feign("replay", trace, "--root", root, "--cwd", work, "--json", *more).json()
        assert r["mismatched"] == 0, r["mismatches"]
        want, got = with_modes(work), with_modes(os.path.join(root, work[1:]))
        differ = {k: (got.get(k), want.get(k)) for k in set(want) | set(got) if got.get(k) != want.get(k)}
        # What a page that was written to takes depends on its neighbours on some file systems.
        assert all(a and b and a[:2] == b[:2] and k in ("mapped", "sizes", "out", "data", "clone") for k, (a, b) in differ.items()), differ
    done = r["ops"]
    for op in ("openat2", "close_range", "pwritev2", "preadv2", "copy_file_range", "splice", "sendfile", "fallocate", "mknodat", "renameat2", "bind", "setxattr",
               "fgetxattr", "fchownat", "utimensat", "futimesat", "mmap", "msync", "madvise", "mremap", "munmap", "io_submit", "io_getevents", "sync", "syncfs",
               "flock", "umask", "linkat"):
        assert op in done, f"{op} was not traced: the test is worth nothing"


def test_all_calls():
    replays_all(None, ("-f", "-ttt", "-T", "-y"))


def test_all_calls_without_descriptors_paths():
    replays_all(None, ("-f", "-tt", "-T"))


def test_all_calls_of_a_verbose_trace():
    replays_all(None, ("-f", "-ttt", "-v", "-yy", "-s", "0", "-X", "raw"))


def test_all_calls_on_memory():
    replays_all("/dev/shm", ("-f", "-ttt", "-T", "-y"))


def test_all_calls_verified():
    replays_all(None, ("-f", "-ttt", "-T", "-y"), "--replayer", "posix,verify=yes")


def test_all_calls_with_pages_touched():
    replays_all(None, ("-f", "-ttt", "-T", "-y"), "--replayer", "posix,touch=protection")


CLONES = """
import fcntl, os, struct
def clone(to, *range):   # source, where in it, how much, where to
    fcntl.ioctl(to, 0x4020940d, struct.pack("qQQQ", *range))
source, some, all, even, larger = (os.open(name, os.O_RDWR | os.O_CREAT, 0o600) for name in ("source", "some", "all", "even", "larger"))
clone(some, source, 8192, 4096, 16384)
assert os.lseek(some, 0, os.SEEK_END) == 20480
clone(some, source, 12288, 0, 20480)
assert os.lseek(some, 0, os.SEEK_END) == 28772
clone(some, some, 16384, 4096, 0)
assert os.lseek(some, 0, os.SEEK_END) == 28772 and len(os.pread(some, 1 << 20, 0)) == 28772
fcntl.ioctl(all, 0x40049409, source)
assert len(os.read(all, 1 << 20)) == 20580
os.write(even, b"x" * 8192)
os.ftruncate(larger, 100000)
fcntl.ioctl(larger, 0x40049409, even)
assert os.lseek(larger, 0, os.SEEK_END) == 100000
fcntl.ioctl(all, 0xc0189436, bytearray(struct.pack("QQHHIqQQiI", 0, 4096, 1, 0, 0, source, 0, 0, 0, 0)))
for range, error in (((source, 1, 4096, 0), 22), ((source, 0, 1 << 20, 0), 22), ((99, 0, 4096, 0), 9)):
    try:
        clone(some, *range)
        assert False
    except OSError as e:
        assert e.errno == error, e
"""


def test_clones():
    """What FICLONE and FICLONERANGE make of files, where a file system has them."""
    if os.geteuid() != 0:
        raise Skip("only root mounts a file system")
    for kind, size in (("xfs", 400), ("btrfs", 200)):
        with tempfile.TemporaryDirectory(prefix="feign-test.") as tmp:
            image, mount = os.path.join(tmp, "image"), os.path.join(tmp, "mount")
            os.mkdir(mount)
            with open(image, "wb") as f:
                f.truncate(size << 20)
            if shutil.which("mkfs." + kind) and all(subprocess.run(c, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0
                                                    for c in (["mkfs." + kind, "-q", image], ["mount", "-o", "loop", image, mount])):
                try:
                    return clones(tmp, mount)
                finally:
                    subprocess.run(["umount", "-l", mount], check=True)
    raise Skip("neither xfs nor btrfs can be mounted")


def clones(tmp, mount):
    recorders = {"strace": ("strace", "-f", "-ttt", "-o"), "raw": ("strace", "-f", "-ttt", "-X", "raw", "-y", "-o"), "record": (os.path.join(BUILD, "core", "feign"), "record", "-o")}
    for name, command in recorders.items():
        if not shutil.which(command[0]) or (name == "record" and (sanitized() or not os.path.exists(os.path.join(BUILD, "capture", "libfeign-capture.so")))):
            continue
        work, root, trace = os.path.join(mount, name), os.path.join(mount, name + ".root"), os.path.join(tmp, name)
        os.mkdir(work)
        with open(os.path.join(work, "source"), "wb") as f:
            f.write(b"x" * 20580)
        subprocess.run([*command, trace, *(["--"] if name == "record" else []), "python3", "-S", "-c", CLONES], cwd=work, check=True)
        for more in ((), ("--order", "depend"), ("--replayer", "posix,verify=yes"), ("--with", "replicate,copies=2"), ("--with", "scale,size=2")):
            shutil.rmtree(root, ignore_errors=True)
            os.mkdir(root)
            done = feign("replay", trace, "--root", root, *(("--cwd", work) if name != "record" else ()), "--json", "--with", f"filter,path={work}/*", *more)
            assert done.status == 0, (name, more, done.err)
            r = done.json()
            assert r["mismatched"] == 0 and "ioctl" in r["ops"], (name, more, r["mismatches"], r["ops"])
            if "replicate,copies=2" not in more:
                times = 2 if "scale,size=2" in more else 1
                sizes = {n: os.path.getsize(os.path.join(root + work, n)) // times for n in ("source", "some", "all", "larger")}
                assert sizes == {"source": 20580, "some": 28772, "all": 20580, "larger": 100000}, (name, more, sizes)


def test_small_mappings_are_read_as_the_programs_faults_did():
    strace = shutil.which("strace")
    if not strace or sanitized():
        raise Skip("there is no strace, or a sanitizer that it disturbs")
    with tempfile.TemporaryDirectory(prefix="feign-test.") as tmp:
        trace, calls = os.path.join(tmp, "t.strace"), os.path.join(tmp, "calls")
        with open(trace, "w", encoding="ascii") as f:
            for i, size in enumerate((8192, 131072, 131073, 1 << 20)):
                f.write(f'7 1700000000.{i}00000 openat(AT_FDCWD, "/f{i}", O_RDONLY) = 3 <0.000001>\n'
                        f'7 1700000000.{i}00010 mmap(NULL, {size}, PROT_READ, MAP_PRIVATE, 3, 0) = 0x7f0000{i}00000 <0.000001>\n'
                        f'7 1700000000.{i}00020 close(3) = 0 <0.000001>\n')
        for touch, read in (("small", 2), ("none", 0)):
            root = os.path.join(tmp, touch)
            os.mkdir(root)
            done = subprocess.run([strace, "-f", "-o", calls, "-e", "trace=readahead", os.path.join(BUILD, "core", "feign"), "replay", trace, "--root", root,
                                   "--replayer", f"posix,touch={touch}"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
            if "ptrace" in done.stderr:
                raise Skip("strace may not trace here")
            assert done.returncode == 0, done.stderr
            with open(calls, encoding="utf-8") as f:
                assert f.read().count("readahead(") == read, touch


def test_names_are_looked_up_as_far_as_the_program_named_them():
    strace = shutil.which("strace")
    if not strace or sanitized():
        raise Skip("there is no strace, or a sanitizer that it disturbs")
    with tempfile.TemporaryDirectory(prefix="feign-test.") as tmp:
        trace, calls, asked = os.path.join(tmp, "t.strace"), os.path.join(tmp, "calls"), {}
        with open(trace, "w", encoding="ascii") as f:
            for i, call in enumerate(('openat(AT_FDCWD</w>, "a/b/c/f", O_RDONLY) = 3</w/a/b/c/f>', 'access("./a//b/c/f", F_OK) = 0', 'access("f", F_OK) = -1 ENOENT (x)',
                                      'access("/w/a/b/c/f", F_OK) = 0', 'access("../w/a/b/c/f", F_OK) = 0', 'rename("a/b/c/f", "a/g") = 0')):
                f.write(f"7 1700000000.{i}00000 {call}\n")
        for lookup in ("nearest", "named"):
            root = os.path.join(tmp, lookup)
            os.mkdir(root)
            done = subprocess.run([strace, "-f", "-o", calls, "-e", "trace=openat2", os.path.join(BUILD, "core", "feign"), "replay", trace, "--root", root,
                                   "--replayer", f"posix,lookup={lookup}", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
            if "ptrace" in done.stderr:
                raise Skip("strace may not trace here")
            assert done.returncode == 0 and json.loads(done.stdout)["mismatched"] == 0, done.stdout + done.stderr
            with open(calls, encoding="utf-8") as f:
                text = f.read()
            if "openat2(" not in text:
                raise Skip("the kernel has no openat2")
            asked[lookup] = {path: text.count(f', "{path}", ') for path in ("a/b/c", "a", "w/a/b/c")}
        assert {path: n - asked["nearest"][path] for path, n in asked["named"].items()} == {"a/b/c": 3, "a": 1, "w/a/b/c": 2}, asked


if __name__ == "__main__":
    main(globals())
