#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a replay finds: made before it, from all of the trace, and brought back on a used root."""
import errno
import json
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time

from harness import FEIGN, Skip, Tmp, bounded, feign, main, refuses, sanitized, tree


def write_trace(path, lines):
    with open(path, "w", encoding="utf-8") as f:
        for i, line in enumerate(lines):
            f.write(f"7 100.{i:06d} {line} <0.000001>\n")


class Root:
    """A trace and a root, prepared (replayer null) or replayed."""

    def __init__(self, tmp, lines):
        self.trace, self.root = os.path.join(tmp, "t.strace"), os.path.join(tmp, "root")
        os.makedirs(self.root)
        write_trace(self.trace, lines)

    def __call__(self, *options):
        r = feign("replay", self.trace, "--root", self.root, "--json", *options)
        assert r.status == 0, r.err
        return r.json()

    def prepare(self, *options):
        return self("--replayer", "null", *options)

    def at(self, path):
        return os.path.join(self.root, path.lstrip("/"))

    def read(self, path):
        with open(self.at(path), "rb") as f:
            return f.read()


READS = ('openat(AT_FDCWD, "/f", O_RDONLY) = 3', 'pread64(3, "x"..., 4096, 100000) = 4096')


def test_the_target_of_a_link_that_is_cut_and_long():
    for length in (40, 255, 263, 300, 4000):
        with Tmp() as tmp:
            link = 'readlink("/w/l", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"..., 4096) = %d' % length
            root = Root(tmp, [link, 'openat(AT_FDCWD, "/w/l", O_RDONLY) = 3', 'read(3, "x"..., 100) = 100', link])
            report = root()
            assert report["mismatched"] == 0 and len(os.readlink(root.at("/w/l"))) == length, (length, report["mismatches"])


def test_asynchronous_writes_that_append_find_what_was_there():
    submit = 'io_submit(0x7f00, 1, [{aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=4, aio_buf="x"..., aio_nbytes=1000, aio_offset=500}]) = 1'
    for there in (0, 300):
        with Tmp() as tmp:
            root = Root(tmp, ['openat(AT_FDCWD, "/a", O_WRONLY|O_CREAT|O_APPEND, 0600) = 4', "io_setup(8, [0x7f00]) = 0", submit, submit, "io_getevents(0x7f00, 2, 2, [...], NULL) = 2",
                              'fstat(4, {st_mode=S_IFREG|0600, st_size=%d, ...}) = 0' % (there + 2000)])
            report = root("--order", "depend")
            assert report["mismatched"] == 0 and os.path.getsize(root.at("/a")) == there + 2000, (report["mismatches"], os.path.getsize(root.at("/a")))


def test_the_directory_of_a_target_that_was_cut_is_an_entry_of_the_root():
    with Tmp() as tmp:
        root = Root(tmp, ['readlink("/d/l", ""..., 4095) = 40', 'stat("/d/l/f", {st_mode=S_IFREG|0644, st_size=5, ...}) = 0', 'openat(AT_FDCWD, "/", O_RDONLY|O_DIRECTORY) = 3',
                          "getdents64(3, 0x1 /* 20 entries */, 32768) = 520", "getdents64(3, 0x1 /* 0 entries */, 32768) = 0"])
        report = root()
        assert report["mismatched"] == 0 and os.path.isdir(root.at("/.links")), report["mismatches"]


def test_more_attributes_than_a_page_has_names_of_go_with_the_replay_that_set_them():
    if not os.access("/dev/shm", os.W_OK):
        raise Skip("there is no /dev/shm")
    with tempfile.TemporaryDirectory(prefix="feign-test.", dir="/dev/shm") as tmp:
        names = [f"user.{i:03d}" + "n" * 240 for i in range(20)]
        root = Root(tmp, ['openat(AT_FDCWD, "/x", O_RDONLY) = 3'] +
                    [call for n in names for call in (f'getxattr("/x", "{n}", 0x7ffe, 100) = -1 ENODATA (No data available)', f'setxattr("/x", "{n}", "abc", 3, 0) = 0')])
        try:
            os.setxattr(root.root, "user.x", b"")
            os.removexattr(root.root, "user.x")
        except OSError as e:
            raise Skip(f"no attributes in {tmp}") from e
        for _ in range(2):
            report = root()
            assert report["mismatched"] == 0, report["mismatches"]


# There is no space for the list of what was prepared.
NO_SPACE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/types.h>
typedef ssize_t put(int, const void *, size_t, off_t);
static ssize_t but_for_the_list(const char *name, int fd, const void *from, size_t size, off_t at) {
  if (size > 3 && memcmp(from, "d /d", 4) == 0) { errno = ENOSPC; return -1; }
  return ((put *)dlsym(RTLD_NEXT, name))(fd, from, size, at);
}
ssize_t pwrite(int fd, const void *from, size_t size, off_t at) { return but_for_the_list("pwrite", fd, from, size, at); }
ssize_t pwrite64(int fd, const void *from, size_t size, off_t at) { return but_for_the_list("pwrite64", fd, from, size, at); }
"""


def test_a_list_of_what_was_prepared_that_could_not_be_written_is_written_next_time():
    if sanitized() or not shutil.which("cc"):
        raise Skip("a plain compiler's object, and a command without sanitizers")
    with Tmp() as tmp:
        source, full = os.path.join(tmp, "full.c"), os.path.join(tmp, "full.so")
        with open(source, "w", encoding="utf-8") as f:
            f.write(NO_SPACE)
        subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", full, source, "-ldl"], check=True)
        lines = ['openat(AT_FDCWD, "/d/f", O_RDONLY) = 3', 'read(3, "x"..., 100) = 50']
        root = Root(tmp, lines)
        r = feign("replay", root.trace, "--root", root.root, env={"LD_PRELOAD": full})
        assert r.status == 1 and "No space left on device" in r.err, (r.status, r.err)
        # Whatever comes next, nothing is there that no list has.
        write_trace(root.trace, ['mkdir("/c", 0777) = 0'])
        assert root()["mismatched"] == 0 and sorted(os.listdir(root.root)) == [".feign", "c"], os.listdir(root.root)
        write_trace(root.trace, lines)
        assert root()["mismatched"] == 0 and root.read("/.feign").endswith(b"d /d\0f /d/f\0"), root.read("/.feign")


# The first thread that is asked for cannot be had.
NO_THREAD = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
typedef int make(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*f)(void *), void *x) {
  static int calls;
  return calls++ == 0 ? EAGAIN : ((make *)dlsym(RTLD_NEXT, "pthread_create"))(thread, how, f, x);
}
"""


def test_many_files_are_made_by_as_many_threads_as_there_may_be():
    if sanitized() or not shutil.which("cc") or len(os.sched_getaffinity(0)) < 2:
        raise Skip("a plain compiler's object, a command without sanitizers, and two processors")
    with Tmp() as tmp:
        source, none = os.path.join(tmp, "none.c"), os.path.join(tmp, "none.so")
        with open(source, "w", encoding="utf-8") as f:
            f.write(NO_THREAD)
        subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", none, source, "-ldl"], check=True)
        root = Root(tmp, [call for i in range(600) for call in (f'openat(AT_FDCWD, "/d/f{i}", O_RDONLY) = 3', "close(3) = 0")])
        r = feign("replay", root.trace, "--root", root.root, "--json", env={"LD_PRELOAD": none})
        assert r.status == 0 and r.json()["mismatched"] == 0 and len(os.listdir(root.at("/d"))) == 600, r.err


def test_attributes_of_the_root_itself():
    with Tmp() as tmp:
        root = Root(tmp, ['setxattr("/", "user.new", "1", 1, XATTR_CREATE) = 0', 'getxattr("/", "user.there", "123", 100) = 3', 'removexattr("/", "user.there") = 0'])
        try:
            os.setxattr(root.root, "user.x", b"")
            os.removexattr(root.root, "user.x")
        except OSError as e:
            raise Skip(f"no attributes in {tmp}") from e
        for _ in range(3):
            report = root()
            assert report["mismatched"] == 0, report["mismatches"]


def test_who_replays_may_do_what_root_did():
    """Whatever modes the trace gave to files and directories; and these are prepared anew."""
    with Tmp() as tmp:
        root = Root(tmp, ['mkdir("/new", 0) = 0', 'mkdir("/new/d", 0500) = 0', 'mkdir("/new/d/e", 0777) = 0', 'stat("/old/f", {st_mode=S_IFREG|0644, st_size=5, ...}) = 0', 'chmod("/old", 0) = 0',
                          'truncate("/old/f", 3) = 0', 'openat(AT_FDCWD, "/old", O_RDONLY|O_DIRECTORY) = 3', "fchmod(3, 0555) = 0", 'creat("/old/g", 0600) = 4', 'chmod("/", 0111) = 0', 'creat("/h", 0) = 5', 'openat(AT_FDCWD, "/h", O_RDWR) = 6', 'creat("/i", 0400) = 7', 'truncate("/i", 5) = 0', 'access("/new/d/e", W_OK) = 0',
                          'creat("/j", 0) = 8', 'getxattr("/j", "user.a", NULL, 0) = -1 ENODATA (No data available)', 'creat("/k", 0) = 9', 'fsetxattr(9, "user.b", "x", 1, XATTR_REPLACE) = -1 ENODATA (No data available)',
                          'creat("/l", 0) = 10', 'fsetxattr(10, "user.a", "x", 1, 0) = 0', 'creat("/m", 0011) = 11', 'faccessat2(AT_FDCWD, "/m", R_OK|X_OK, AT_EACCESS) = 0',
                          'chmod("/untold", 0) = 0', 'creat("/untold/f", 0600) = 12'])
        command = [FEIGN, "replay", root.trace, "--root", root.root, "--json"]
        plans = os.path.join(tmp, "plans")
        os.mkdir(plans)
        if os.geteuid() == 0:
            os.chmod(tmp, 0o755)
            os.chown(root.root, 65534, 65534)
            os.chown(plans, 65534, 65534)
            command = ["setpriv", "--reuid=65534", "--clear-groups", *command]
            if subprocess.run([*command[:3], FEIGN, "inspect"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
                raise Skip("another user may not run feign here")
        for _ in range(2):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": plans}, check=False)
            assert done.returncode == 0, done.stderr
            report = json.loads(done.stdout)
            assert report["mismatched"] == 0, report["mismatches"]


def test_a_directory_that_is_listed_by_a_link_whose_target_is_told_later():
    with Tmp() as tmp:
        for link, before in (("l", ""), ("l2", '100 1000.000900 readlink("l2", "l", 1023) = 1 <0.000010>\n')):
            path = os.path.join(tmp, "listed.strace")
            with open(path, "w", encoding="utf-8") as f:
                f.write(f'100 1000.000000 openat(AT_FDCWD</x>, "{link}", O_RDONLY|O_DIRECTORY) = 3</x/real> <0.000010>\n{before}'
                        "100 1000.002030 getdents64(3</x/real>, 0x55 /* 5 entries */, 32768) = 120 <0.000010>\n"
                        "100 1000.002050 getdents64(3</x/real>, 0x55 /* 0 entries */, 32768) = 0 <0.000010>\n"
                        '100 1000.003000 newfstatat(AT_FDCWD</x>, "l/b", {st_mode=S_IFREG|0644, st_size=0, ...}, 0) = 0 <0.000010>\n'
                        '100 1000.003500 newfstatat(AT_FDCWD</x>, "real/b", {st_mode=S_IFREG|0644, st_size=0, ...}, 0) = 0 <0.000010>\n'
                        '100 1000.003700 newfstatat(AT_FDCWD</x>, "real/c", {st_mode=S_IFREG|0644, st_size=0, ...}, 0) = 0 <0.000010>\n'
                        '100 1000.004000 readlink("l", "real", 1023) = 4 <0.000010>\n')
            with Tmp() as root:
                report = feign("replay", path, "--root", root, "--require", "1", "--json").json()
                assert report["mismatched"] == 0, (link, report["mismatches"])
                assert len(os.listdir(os.path.join(root, "x", "real"))) == 3


def test_a_link_that_only_getcwd_tells():
    use = ['getcwd("/w/real", 4096) = 8', 'openat(AT_FDCWD, "n", O_WRONLY|O_CREAT|O_EXCL, 0666) = 3', 'write(3, "12345", 5) = 5', "close(3) = 0",
           'mkdir("d", 0777) = 0', 'chdir("/") = 0', 'stat("/w/l/n", {st_mode=S_IFREG|0644, st_size=5, ...}) = 0', 'unlink("/w/l/n") = 0',
           'stat("/w/real/n", 0x7ffd) = -1 ENOENT (No such file or directory)', 'rmdir("/w/l/d") = 0', 'stat("/w/real/old", {st_mode=S_IFREG|0644, st_size=7, ...}) = 0']
    # Met by its name before; the link is above it; by steps; by one that is known.
    for before in (['stat("/w/l/old", {st_mode=S_IFREG|0644, st_size=7, ...}) = 0', 'chdir("/w/l") = 0'], ['getcwd("/w", 4096) = 3', 'chdir("l") = 0'],
                   ['chdir("/w") = 0', 'chdir("l") = 0'], ['chdir("/v/l") = 0', *use[:1], 'chdir("/w/l") = 0'],
                   ['readlink("/w/k", "l", 99) = 1', 'chdir("/w/k") = 0']):
        with Tmp() as tmp:
            root = Root(tmp, [*before, *use])
            for order in ("trace", "depend"):
                report = root("--order", order)
                assert report["mismatched"] == 0, (before, report["mismatches"])
            assert os.path.islink(root.at("/w/l")) and os.listdir(root.at("/w/real")) == ["old"], before
    # Where it was before nothing tells, or it is no link.
    for lines in (['chdir("l") = 0', use[0], 'mkdir("d", 0777) = 0'],
                  ['lstat("/w/l", {st_mode=S_IFDIR|0755, st_size=40, ...}) = 0', 'chdir("/w/l") = 0', use[0], 'mkdir("d", 0777) = 0']):
        with Tmp() as tmp:
            root = Root(tmp, lines)
            assert root()["mismatched"] == 0 and os.path.isdir(root.at("/w/real/d"))
            assert not os.path.islink(root.at("/w/l")) and not os.path.islink(root.at("/l"))


def test_what_is_met_by_names_of_links_that_lead_to_links_is_one_file():
    """/lib64/ld-linux-x86-64.so.2 is behind three links, which a debugger reads after it has read the file."""
    told = ('readlink("/lib64", "usr/lib64", 99) = 9', 'readlink("/usr/lib64/l", "/lib/x/l", 99) = 8', 'readlink("/lib", "usr/lib", 99) = 7')
    beside = 'newfstatat(AT_FDCWD, "/%s/x/a", {st_mode=S_IFREG|0644, st_size=1, ...}, 0) = 0'
    for others in ((), (beside % "usr/lib",), (beside % "lib",), (beside % "lib", beside % "usr/lib")):
        with Tmp() as tmp:
            root = Root(tmp, [*others, 'newfstatat(AT_FDCWD, "/lib64/l", {st_mode=S_IFREG|0755, st_size=1000, ...}, 0) = 0',
                              'openat(AT_FDCWD, "/lib64/l", O_RDONLY) = 3', 'read(3, "x"..., 4096) = 1000', *told,
                              'openat(AT_FDCWD, "/usr/lib/x/l", O_RDONLY) = 4', 'read(4, "x"..., 100) = 100'])
            report = root("--require", "1")
            assert report["mismatched"] == 0, (others, report["mismatches"])
            assert os.lstat(root.at("usr/lib/x/l")).st_size == 1000 and os.readlink(root.at("lib")) == "usr/lib"


def test_a_link_that_nobody_followed_or_read_is_one():
    """lstat tells that it is one, and how long its target; who went by way of one found a file."""
    with Tmp() as tmp:
        trace, root = os.path.join(tmp, "t"), os.path.join(tmp, "root")
        os.mkdir(root)
        link = "{st_mode=S_IFLNK|0777, st_size=%d, ...}"
        write_trace(trace, [f'lstat("/d/l", {link % 7}) = 0', f'lstat("/d/long", {link % 300}) = 0', f'lstat("/d/m", {link % 5}) = 0', 'open("/d/m", O_RDONLY) = 3', "close(3) = 0",
                            f'lstat("/d/to", {link % 5}) = 0', 'open("/d/to/f", O_RDONLY) = 3', f'lstat("/d/moved", {link % 9}) = 0', 'rename("/d/moved", "/d/n") = 0'])
        for _ in range(2):
            report = feign("replay", trace, "--root", root, "--json").json()
            assert report["mismatched"] == 0, report["mismatches"]
        at = os.path.join(root, "d")
        assert {name: len(os.readlink(os.path.join(at, name))) for name in os.listdir(at) if os.path.islink(os.path.join(at, name))} == {"l": 7, "long": 300}, os.listdir(at)
        assert os.path.isfile(os.path.join(at, "m")) and os.path.isdir(os.path.join(at, "to"))
    # Whatever else is done by its name tells otherwise, also what fails.
    for call in ('openat(AT_FDCWD, "/d/l/x", O_RDONLY) = -1 ENOTDIR (x)', 'getxattr("/d/l", "user.a", 0x7, 9) = -1 ENODATA (x)', 
                 'lstat("/d/l", {st_mode=S_IFREG|0644, st_size=0, ...}) = 0', 'readlink("/d/l", 0x7, 99) = -1 EINVAL (x)'):
        with Tmp() as tmp:
            trace, root = os.path.join(tmp, "t"), os.path.join(tmp, "root")
            os.mkdir(root)
            write_trace(trace, [f'lstat("/d/l", {link % 7}) = 0', call])
            report = feign("replay", trace, "--root", root, "--json").json()
            assert report["mismatched"] == 0, (call, report["mismatches"])


def test_links_that_were_read_with_buffers_that_grew_are_as_long_as_they_were():
    """As readlink(1) and find do it: what fills the buffer is the beginning of the target."""
    target = "/d/" + "y" * 80 + "/file"
    with Tmp() as tmp:
        trace, root = os.path.join(tmp, "t"), os.path.join(tmp, "root")
        os.mkdir(root)
        read = [f'readlink("/d/l", "{target[:n]}", {n}) = {min(n, len(target))}' for n in (64, 83, 128)]
        write_trace(trace, [*read, 'open("/d/l", O_RDONLY) = 3', "close(3) = 0", read[0]])
        report = feign("replay", trace, "--root", root, "--json").json()
        assert report["mismatched"] == 0, report["mismatches"]
        assert os.readlink(os.path.join(root, "d", "l")) == target and os.listdir(os.path.join(root, "d", "y" * 80)) == ["file"]
        write_trace(trace, [f'readlink("/e/l", "yyy"..., {n}) = {min(n, 88)}' for n in (64, 83, 128, 64)])
        report = feign("replay", trace, "--root", root, "--json").json()
        assert report["mismatched"] == 0, report["mismatches"]
        assert len(os.readlink(os.path.join(root, "e", "l"))) == 88


def test_links_lead_where_they_did_whenever_they_are_told():
    """Files of a random tree are used by way of its links; what each call said there it must say in an empty root, too."""
    for seed in range(int(os.environ.get("FEIGN_SEEDS", "60"))):
        chance = random.Random(seed)
        with Tmp() as tmp:
            top, root = (os.path.join(os.path.realpath(tmp), name) for name in ("work", "root"))
            os.mkdir(top)
            os.mkdir(root)
            directories, all_ = [top], []
            for i in range(4):
                directories.append(os.path.join(chance.choice(directories), f"d{i}"))
                os.mkdir(directories[-1])
            for i in range(4):
                all_.append(os.path.join(chance.choice(directories), f"f{i}"))
                with open(all_[-1], "wb") as f:
                    f.write(b"x" * chance.choice((0, 7, 5000)))
            for i in range(6):
                link, to = os.path.join(chance.choice(directories), f"l{i}"), chance.choice(directories[1:] + all_ + [os.path.join(top, "none")])
                os.symlink(chance.choice((to, os.path.relpath(to, os.path.dirname(link)), to, ".")), link)
                all_.append(link)

            def path(top=top, chance=chance):
                at = top
                for _ in range(chance.randint(1, 5)):
                    if not os.path.isdir(at):
                        break
                    at = os.path.join(at, chance.choice([*os.listdir(at), "none"]))
                return at

            calls = []

            def call(text, make, result=lambda made: 0, calls=calls):
                try:
                    calls.append(f"{text} = {result(make())}")
                except OSError as e:
                    calls.append(f"{text} = -1 {errno.errorcode[e.errno]} ({os.strerror(e.errno)})")

            for _ in range(40):
                p = path()
                kind = chance.choice(("stat", "lstat", "access", "readlink", "readlink", "open", "O_PATH", "O_DIRECTORY"))
                if kind in ("stat", "lstat"):
                    made = getattr(os, kind)
                    mode = stat.S_IFMT(made(p).st_mode) if os.path.exists(p) or kind == "lstat" and os.path.lexists(p) else 0
                    name = {stat.S_IFREG: "S_IFREG", stat.S_IFDIR: "S_IFDIR", stat.S_IFLNK: "S_IFLNK"}.get(mode, "0")
                    size = made(p).st_size if mode else 0
                    call(f'{kind}("{p}", {{st_mode={name}|0755, st_size={size}, ...}})', lambda made=made, p=p: made(p))
                elif kind == "access":
                    call(f'access("{p}", F_OK)', lambda p=p: os.stat(p))
                elif kind == "readlink":
                    to = f'"{os.readlink(p)}"' if os.path.islink(p) else "0x7f"
                    call(f'readlink("{p}", {to}, 4095)', lambda p=p: os.readlink(p), len)
                else:
                    flags = {"open": "O_RDONLY", "O_PATH": "O_RDONLY|O_PATH|O_NOFOLLOW", "O_DIRECTORY": "O_RDONLY|O_DIRECTORY"}[kind]
                    value = {"open": os.O_RDONLY, "O_PATH": os.O_PATH | os.O_NOFOLLOW, "O_DIRECTORY": os.O_DIRECTORY}[kind]
                    call(f'open("{p}", {flags})', lambda p=p, value=value: os.close(os.open(p, value)), lambda made: 3)
                    if calls[-1].endswith("= 3"):
                        if kind == "open" and os.path.isfile(p):
                            calls.append(f'read(3, "x"..., 9999) = {os.stat(p).st_size}')
                        calls.append("close(3) = 0")
            trace = os.path.join(tmp, "t.strace")
            write_trace(trace, calls)
            report = feign("replay", trace, "--root", root, "--json").json()
            assert report["matched"] == len(calls), (seed, report["mismatches"])


def test_opens_tell_links_that_were_there():
    """strace -y says where an open led: what lies there is one file by all of its names."""
    used = ('read(3</real/x>, "x"..., 4096) = 10', 'openat(AT_FDCWD, "/real/x", O_WRONLY|O_TRUNC) = 4</real/x>', 'write(4</real/x>, "abc", 3) = 3')
    again = 'read(5</real/x>, "abc", 4096) = 3'
    tells = {
        # The name before those that are the same leads there, or the one behind it if that is no link.
        "link/x": (("/w/link", "/real"), 'openat(AT_FDCWD</w>, "link/x", O_RDONLY) = %d</real/x>'),
        "x": (("/w/x", "/real/x"), 'openat(AT_FDCWD</w>, "x", O_RDONLY) = %d</real/x>'),
        "/home/real/x": (("/home", "/"), 'openat(AT_FDCWD, "/home/real/x", O_RDONLY) = %d</real/x>'),
    }
    for (link, target), opens in tells.values():
        for order in ("trace", "depend"):
            with Tmp() as tmp:
                root = Root(tmp, [opens % 3, *used, opens % 5, again])
                report = root("--require", "1", "--order", order)
                assert report["mismatched"] == 0 and os.readlink(root.at(link)) == target, (link, report["mismatches"])
                assert os.path.getsize(root.at("real/x")) == 3
    native = "t.feign"
    with Tmp() as tmp:
        root = Root(tmp, [tells["x"][1] % 3, *used, tells["x"][1] % 5, again])
        assert feign("convert", root.trace, os.path.join(tmp, native)).status == 0
        assert feign("replay", os.path.join(tmp, native), "--root", root.root, "--with", "rebase,map=/w:/v", "--require", "1").status == 0
        assert os.readlink(root.at("v/x")) == "/real/x"


def test_what_a_link_that_an_open_told_of_turns_out_to_be():
    """What was made by its name before, a directory of links, and a link to a link."""
    for lines, links in (
            (('mkdir("/in/abs/d", 0777) = 0', 'openat(AT_FDCWD</w>, "../in/abs/d/x", O_RDWR|O_CREAT, 0666) = 3</real/d/x>', 'write(3, "x"..., 10) = 10',
              'rename("/in/abs/d/x", "/real/x") = 0', 'rmdir("/in/abs/d") = 0', 'stat("/real/d", 0x7f) = -1 ENOENT (x)'), {"in/abs": "/real"}),
            (('openat(AT_FDCWD</w>, "x", O_RDONLY) = 3</w/x>', 'chdir("../in/l") = 0', 'newfstatat(AT_FDCWD</real>, "x", {st_mode=S_IFREG|0644, st_size=5, ...}, 0) = 0',
              'rename("x", "y") = 0', 'openat(AT_FDCWD, "/real/y", O_RDONLY) = 4</real/y>', 'read(4, "x"..., 99) = 5', 'stat("/real/x", 0x7f) = -1 ENOENT (x)'), {}),
            (('openat(AT_FDCWD</w>, "x", O_RDONLY) = 3</w/x>', 'chdir("../in/l") = 0', 'mkdir("d", 0777) = 0', 'openat(AT_FDCWD</real>, "d/x", O_RDWR|O_CREAT, 0666) = 4</real/d/x>',
              'rename("d/x", "y") = 0', 'openat(AT_FDCWD</real>, "../real/y", O_RDONLY) = 5</real/y>'), {"in/l": "/real"}),
            (('mkdir("link", 0777) = -1 EEXIST (x)', 'mkdir("link/d", 0777) = 0', 'openat(AT_FDCWD</w>, "link/d/f", O_RDWR|O_CREAT, 0666) = 3</real/d/f>',
              'write(3, "x"..., 10) = 10', 'openat(AT_FDCWD, "/real/d/f", O_RDONLY) = 4</real/d/f>', 'read(4, "x"..., 4096) = 10', 'unlink("link") = 0',
              'openat(AT_FDCWD, "/real/d/f", O_RDONLY) = 5</real/d/f>', 'read(5, "x"..., 4096) = 10'), {}),
            (('openat(AT_FDCWD, "/home/u/f", O_RDONLY) = 3</mnt/home/u/f>', 'openat(AT_FDCWD, "/home/v/f", O_RDONLY) = 4</home/v/f>', 'read(3, "x"..., 4096) = 10',
              'read(4, "x"..., 4096) = 12', 'openat(AT_FDCWD, "/mnt/home/u/f", O_WRONLY|O_TRUNC) = 4</mnt/home/u/f>',
              'openat(AT_FDCWD, "/home/u/f", O_RDONLY) = 5</mnt/home/u/f>', 'read(5, "", 4096) = 0'), {"home/u": "/mnt/home/u"}),
            (('openat(AT_FDCWD</w>, "farm/x", O_RDONLY) = 3</real/x>', 'read(3, "x"..., 4096) = 10', 'openat(AT_FDCWD</w>, "farm", O_RDONLY|O_DIRECTORY) = 4</w/farm>',
              'unlinkat(4</w/farm>, "x", 0) = 0', 'rmdir("farm") = 0', 'openat(AT_FDCWD, "/real/x", O_RDONLY) = 5</real/x>', 'read(5, "x"..., 4096) = 10'), {}),
            (('openat(AT_FDCWD</w>, "link", O_RDONLY) = 3</real/f>', 'read(3, "x"..., 4096) = 10', 'readlink("link", "mid", 4096) = 3',
              'openat(AT_FDCWD, "/real/f", O_WRONLY|O_TRUNC) = 4</real/f>', 'openat(AT_FDCWD</w>, "mid", O_RDONLY) = 4</real/f>', 'read(4, "", 4096) = 0'),
             {"w/link": "mid", "w/mid": "/real/f"}),
            (('openat(AT_FDCWD, "/bin/x", O_RDONLY) = 3</real/x>', 'read(3, "x"..., 10) = 10', 'lstat("/bin/x", {st_mode=S_IFLNK|0777, st_size=8, ...}) = 0',
              'readlink("/bin/x", "/alias/x", 99) = 8', 'readlink("/alias/x", "/real/x", 99) = 7', 'lstat("/real/x", {st_mode=S_IFREG|0644, st_size=10, ...}) = 0'),
             {"bin/x": "/alias/x", "alias/x": "/real/x"}),
            (('lstat("/real/a", {st_mode=S_IFLNK|0777, st_size=1, ...}) = 0', 'openat(AT_FDCWD</w>, "/in/l/a", O_RDONLY) = 3</real/d/f>', 'read(3, "x"..., 10) = 10',
              'readlink("/in/l/a", "d/f", 99) = 3', 'readlink("/in/l/d/f", 0x7f, 99) = -1 EINVAL (x)', 'lstat("/in/l/d", {st_mode=S_IFDIR|0755, st_size=10, ...}) = 0',
              'openat(AT_FDCWD, "/real/d/f", O_WRONLY|O_TRUNC) = 4</real/d/f>', 'stat("/in/l/a", {st_mode=S_IFREG|0644, st_size=0, ...}) = 0'),
             {"in/l": "/real", "real/a": "d/f"})):
        with Tmp() as tmp:
            root = Root(tmp, lines)
            report = root("--require", "1")
            assert report["mismatched"] == 0, report["mismatches"]
            assert {name: os.readlink(root.at(name)) for name, entry in tree(root.root).items() if entry[0] == "l"} == links, (lines, tree(root.root))


def test_names_met_before_an_open_told_of_a_link_above_them_that_is_none():
    """/m is taken for a link to /d, since /m/c/f leads to /d/c/f; it is none: then /m/c, or /m/c/f, is one."""
    regular, folder = "{st_mode=S_IFREG|0644, st_size=10, ...}", "{st_mode=S_IFDIR|0755, st_size=4096, ...}"
    opens = ['openat(AT_FDCWD, "/m/c/f", O_RDONLY) = 3</d/c/f>', 'read(3</d/c/f>, "x"..., 4096) = 10', 'close(3</d/c/f>) = 0',
             'openat(AT_FDCWD, "/m", O_RDONLY|O_DIRECTORY) = 3</m>', 'access("/m/c/f", R_OK) = 0']
    both = [f'stat("/{top}/c{name}", {what}) = 0' for top in "md" for name, what in (("", folder), ("/f", regular))]
    for before, links in ((both, {"m/c": "/d/c"}), ([f'stat("/m/g", {regular}) = 0', *both], {"m/c": "/d/c", "m/g": "/d/g"}),
                          ([f'lstat("/m/c", {folder}) = 0', *both], {"m/c/f": "/d/c/f"})):
        for order in ("trace", "depend"):
            with Tmp() as tmp:
                root = Root(tmp, [*before, *opens])
                report = root("--require", "1", "--order", order)
                assert report["mismatched"] == 0, (before, report["mismatches"])
                assert {name: os.readlink(root.at(name)) for name, entry in tree(root.root).items() if entry[0] == "l"} == links, before


def test_threads_that_need_one_directory_make_it_once():
    """That of what links lead to whose targets are cut. (Many bytes: else one thread makes all files. Often: both have to be there at once.)"""
    links = [line for i in range(40) for line in (f'access("/w/l{i}", R_OK) = 0', f'readlink("/w/l{i}", "/usr/share/fontconfig/"..., 4095) = 40')]
    with Tmp() as tmp:
        root = Root(tmp, [*links, 'stat("/z", {st_mode=S_IFREG|0644, st_size=100000000, ...}) = 0'])
        for _ in range(100):
            notes = root.prepare()["notes"]
            assert not any("cannot be there" in note for note in notes), notes
            shutil.rmtree(root.root)
            os.mkdir(root.root)


def test_a_link_met_by_way_of_what_is_no_link_is_where_it_was_met():
    """/B is taken for a link to /A, so that /A/sub is one, to /A; when /B is none, that is /B/sub, or /B/sub/g. Whoever goes by /A/sub shows it."""
    def opens(name, there=None):
        return [f'openat(AT_FDCWD, "{name}", O_RDONLY) = 3<{there or name}>', f'close(3<{there or name}>) = 0']
    met = [*opens("/B/f", "/A/f"), *opens("/B/sub/g", "/A/g")]
    direct = opens("/A/sub/g", "/A/g")
    for lines, links in (([*met, *opens("/B")], {"B/f": "/A/f", "B/sub": "/A"}),
                         ([*met, *opens("/B"), *opens("/B/sub")], {"B/f": "/A/f", "B/sub/g": "/A/g"}),
                         ([*met, *direct, *opens("/B")], {"B/f": "/A/f", "A/sub": "/A", "B/sub": "/A/sub"})):
        for order in ("trace", "depend"):
            with Tmp() as tmp:
                root = Root(tmp, [*lines, *opens("/B/sub/g", "/A/g")])
                report = root("--require", "1", "--order", order)
                assert report["mismatched"] == 0, (lines, report["mismatches"])
                assert {name: os.readlink(root.at(name)) for name, entry in tree(root.root).items() if entry[0] == "l"} == links, (lines, tree(root.root))


def test_a_link_that_an_open_told_of_is_as_long_as_it_was_read():
    """strace -s 0: where links lead is not in the text, but how long they are. What is shorter than any way there leads to another link."""
    for length in (2, 6, 8, 9, 13, 16):
        with Tmp() as tmp:
            root = Root(tmp, ['openat(AT_FDCWD</w/in>, "l", O_RDONLY) = 3</w/real/f>', 'read(3, ""..., 10) = 10', f'readlink("/w/in/l", ""..., 99) = {length}',
                              'openat(AT_FDCWD, "/w/real/f", O_WRONLY|O_TRUNC) = 4</w/real/f>', 'stat("/w/in/l", {st_mode=S_IFREG|0644, st_size=0, ...}) = 0'])
            report = root()
            assert report["mismatched"] == 0, (length, report["mismatches"])


def test_links_in_a_circle_that_were_there():
    fails = 'stat("/w/a", 0x7f) = -1 ELOOP (x)'
    opens = 'openat(AT_FDCWD, "/w/a", O_RDONLY) = -1 ELOOP (x)'
    for lines in ([fails], [opens, 'unlink("/w/a") = 0', 'openat(AT_FDCWD, "/w/a", O_RDONLY|O_CREAT|O_EXCL, 0600) = 3'], ['mkdir("/w/a/d", 0777) = -1 ELOOP (x)'],
                  ['lstat("/w/a", {st_mode=S_IFLNK|0777, st_size=1, ...}) = 0', fails], [fails, 'readlink("/w/a", "a", 9) = 1', fails],
                  [fails, 'readlink("/w/a", "b", 9) = 1', 'readlink("/w/b", "a", 9) = 1', opens], ['readlink("/w/a", "b", 9) = 1', opens],
                  ['rename("/w/a/x", "/w/b") = -1 ELOOP (x)', fails], ['stat("/w/f", {st_mode=S_IFREG|0644, st_size=5, ...}) = 0', 'link("/w/f", "/w/a/x") = -1 ELOOP (x)'],
                  ['openat(AT_FDCWD, "/w/d/a", O_RDONLY) = -1 ELOOP (x)', 'stat("/w/d/f", {st_mode=S_IFREG|0644, st_size=5, ...}) = 0', 'rename("/w/d/a", "/w/c") = 0',
                   'access("/w/c", F_OK) = -1 ELOOP (x)', 'stat("/w/d/a", 0x7f) = -1 ENOENT (x)']):
        with Tmp() as tmp:
            root = Root(tmp, lines)
            report = root("--require", "1")
            assert report["mismatched"] == 0 and report["matched"] == len(lines), (lines, report["mismatches"], report["skips"])


def test_what_has_names_in_it_and_is_no_directory_is_a_link():
    """Whether its target is told or not: who removes it, or is refused, tells what it is."""
    removes = ('unlink("/l") = 0', 'rmdir("/l") = -1 ENOTDIR (x)')
    for last in (removes[:1], removes[1:], (removes[1], 'readlink("/l", "d", 9) = 1', 'openat(AT_FDCWD, "/d/f", O_RDONLY) = 3', 'read(3, "x"..., 9) = 5')):
        with Tmp() as tmp:
            root = Root(tmp, ['newfstatat(AT_FDCWD, "/l/f", {st_mode=S_IFREG|0644, st_size=5, ...}, 0) = 0', *last])
            report = root("--require", "1")
            assert report["mismatched"] == 0, (last, report["mismatches"])
    with Tmp() as tmp:
        root = Root(tmp, ['access("/f", F_OK) = 0', 'openat(AT_FDCWD, "/f", O_WRONLY|O_CREAT, 0644) = 3', 'close(3) = 0', 'mkdir("/f", 0755) = -1 EEXIST (x)'])
        assert root("--require", "1")["mismatched"] == 0 and os.path.isfile(root.at("f"))


def test_two_names_of_one_file_that_were_there_are_one_file():
    def told(form, name, inode, size, links=2):
        if form == "statx":
            return ('statx(AT_FDCWD, "%s", AT_STATX_SYNC_AS_STAT, STATX_ALL, {stx_mask=STATX_ALL, stx_blksize=4096, stx_attributes=0, stx_nlink=%d, stx_uid=0, stx_mode=S_IFREG|0644, '
                    'stx_ino=%d, stx_size=%d, stx_rdev_major=0, stx_rdev_minor=0, stx_dev_major=0xfe, stx_dev_minor=0}) = 0' % (name, links, inode, size))
        device = "0xfe00" if form == "raw" else "makedev(0xfe, 0)"
        return 'stat("%s", {st_dev=%s, st_ino=%d, st_mode=S_IFREG|0644, st_nlink=%d, st_uid=0, st_size=%d, ...}) = 0' % (name, device, inode, links, size)

    write = ['openat(AT_FDCWD, "/d/f", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3</d/f>', 'write(3, "longer"..., 11) = 11', "close(3) = 0"]
    fstat = 'fstat(3</e/h>, {st_dev=makedev(0xfe, 0), st_ino=5, st_mode=S_IFREG|0644, st_nlink=2, st_size=11, ...}) = 0'
    read = ['openat(AT_FDCWD, "/e/h", O_RDONLY) = 3</e/h>', fstat, 'read(3, "longer"..., 4096) = 11', 'read(3, ""..., 4096) = 0', "close(3) = 0"]
    with Tmp() as tmp:
        for form in ("stat", "statx", "raw"):  # told before, by name; then by a descriptor
            root = Root(os.path.join(tmp, form), [told(form, "/d/f", 5, 6)] + write + read)
            for _ in range(2):  # a used root is brought back
                root.prepare()
                one, other = os.stat(root.at("/d/f")), os.stat(root.at("/e/h"))
                assert one.st_ino == other.st_ino and one.st_size == 6, (form, one, other)
                report = root()
                assert report["mismatched"] == 0, (form, report["mismatches"])
            assert os.path.getsize(root.at("/e/h")) == 11
            if form == "stat":  # and so from the native format
                feign("convert", root.trace, root.trace + ".feign")
                os.mkdir(root.root + "2")
                assert feign("replay", root.trace + ".feign", "--root", root.root + "2", "--json").json()["mismatched"] == 0
        # Nothing but an open tells that it was there; and one name is removed.
        root = Root(os.path.join(tmp, "opens"), write + [told("stat", "/d/f", 5, 11)] + read + ['unlink("/d/f") = 0', told("stat", "/e/h", 5, 11, 1)])
        assert root()["mismatched"] == 0 and sorted(os.listdir(root.at("/d")) + os.listdir(root.at("/e"))) == ["h"]
        # Another inode or file system; a name that the trace made; an inode that is used again.
        two = [told("stat", "/d/f", 5, 6), told("stat", "/e/h", 6, 6), told("stat", "/e/i", 5, 6).replace("0xfe", "0xfd")]
        made = [told("stat", "/d/a", 7, 6), 'link("/d/a", "/e/a") = 0', told("stat", "/e/a", 7, 6, 3), 'unlink("/d/a") = 0', 'unlink("/e/a") = 0', told("stat", "/e/k", 7, 9)]
        root = Root(os.path.join(tmp, "others"), two + made)
        root.prepare()
        assert all(os.stat(root.at(name)).st_nlink == 1 for name in ("/d/f", "/e/h", "/e/i", "/d/a", "/e/k")) and os.path.getsize(root.at("/e/k")) == 9
        assert root()["mismatched"] == 0


def test_recorded_programs_find_hard_links_as_they_were():
    with Tmp() as tmp:
        work, trace = os.path.join(tmp, "work"), os.path.join(tmp, "t.feign")
        os.mkdir(work)
        with open(os.path.join(work, "f"), "w", encoding="utf-8") as f:
            f.write("short\n")
        os.link(os.path.join(work, "f"), os.path.join(work, "h"))
        r = feign("record", "-o", trace, "--", "sh", "-c", "stat f h; echo a longer text > f; cat h", cwd=work)
        assert r.status == 0, r.err
        root = os.path.join(tmp, "root")
        os.mkdir(root)
        r = feign("replay", trace, "--root", root, "--json", "--require", "100%")
        assert r.status == 0, r.out
        assert os.path.getsize(root + work + "/h") == len("a longer text\n")


def test_sizes_come_from_reads_stats_and_seeks():
    with Tmp() as tmp:
        root = Root(tmp, [*READS, 'newfstatat(AT_FDCWD, "/g", {st_mode=S_IFREG|0755, st_size=777, ...}, 0) = 0',
                          'openat(AT_FDCWD, "/h", O_RDWR) = 4', "lseek(4, -5, SEEK_END) = 995", 'openat(AT_FDCWD, "/new", O_RDWR|O_CREAT|O_EXCL, 0644) = 5',
                          'openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = 6', 'readlink("/l", "g", 100) = 1', 'access("/none", F_OK) = -1 ENOENT (x)'])
        root.prepare()
        sizes = {n: os.lstat(root.at(n)).st_size for n in ("f", "g", "h")}
        assert sizes == {"f": 104096, "g": 777, "h": 1000}, sizes
        assert stat.S_IMODE(os.stat(root.at("g")).st_mode) == 0o755 and os.path.isdir(root.at("d")) and os.readlink(root.at("l")) == "g"
        assert not os.path.exists(root.at("new")) and not os.path.exists(root.at("none"))


def test_an_empty_root_is_not_asked_what_is_there():
    """On slow storage each question is a message; a used root is asked once for a directory that is missing."""
    if shutil.which("strace") is None or sanitized():
        raise Skip("strace is not installed, or would see a sanitizer's own calls")
    with Tmp() as tmp:
        root = Root(tmp, [line for i in range(100) for line in (f'access("/d/e/f{i}", F_OK) = 0', f'access("/none/at/all/{i}", F_OK) = -1 ENOENT (x)')])
        calls = os.path.join(tmp, "calls")

        def asked():
            done = subprocess.run(["strace", "-f", "-qq", "-o", calls, "-e", "trace=newfstatat,openat2,readlinkat", FEIGN, "replay", root.trace,
                                   "--root", root.root, "--replayer", "null"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if b"ptrace" in done.stdout or b"PTRACE" in done.stdout:
                raise Skip("no process may be traced here")
            assert done.returncode == 0, done.stdout
            with open(calls, encoding="utf-8") as f:
                return [line for line in f if '"/d' in line or '"/none' in line or '"f' in line]
        assert len(asked()) <= 4 and len(os.listdir(root.at("/d/e"))) == 100, asked()
        os.remove(root.at("/d/e/f7"))
        mark = root.read(".feign")
        assert b"\nprepared " in mark
        with open(root.at(".feign"), "wb") as f:
            f.write(mark.replace(b"\nprepared ", b"\n         "))  # as after another trace's replay
        assert len([line for line in asked() if '"/none' in line]) <= 2 and len(os.listdir(root.at("/d/e"))) == 100


def test_deep_directories_are_not_looked_up_from_the_root_each():
    """Where a name lies deeper than a path may be long, each look-up from the root is as many calls as there are names."""
    if shutil.which("strace") is None or sanitized():
        raise Skip("strace is not installed, or would see a sanitizer's own calls")
    depth = 600
    with Tmp() as tmp:
        root = Root(tmp, ['chdir("/deep") = 0', *['chdir("directory") = 0'] * depth, 'access("f", F_OK) = 0'])
        calls = os.path.join(tmp, "calls")
        done = subprocess.run(["strace", "-f", "-qq", "-o", calls, "-e", "trace=openat,openat2,readlinkat", FEIGN, "replay", root.trace, "--root", root.root,
                               "--replayer", "null"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if b"ptrace" in done.stdout or b"PTRACE" in done.stdout:
            raise Skip("no process may be traced here")
        assert done.returncode == 0, done.stdout
        with open(calls, encoding="utf-8") as f:
            asked = sum('"directory"' in line for line in f)
        assert asked <= 10 * depth, asked


def test_what_was_met_by_a_link_before_its_directory_is_listed_is_there_once():
    with Tmp() as tmp:
        root = Root(tmp, ['newfstatat(AT_FDCWD, "/l/met", {st_mode=S_IFREG|0644, st_size=0, ...}, 0) = 0', 'readlink("/l", "d", 1023) = 1', 'openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = 3',
                          'getdents64(3, 0x5, 32768) = 96', 'getdents64(3, 0x5, 32768) = 0'])
        report = root()
        assert report["mismatched"] == 0 and len(os.listdir(root.at("d"))) == 2, report["mismatches"]


def test_a_directory_that_is_listed_twice_has_its_entries_once():
    def listing(tmp, *calls):
        root = Root(tmp, ['openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = 3', *calls, "close(3) = 0", 'access("/d/one", F_OK) = 0'])
        report = root()
        assert report["mismatched"] == 0, report["mismatches"]
        return os.listdir(root.at("/d"))

    read = "getdents64(3, 0x1 /* 3 entries */, 32768) = 72"
    end = "getdents64(3, 0x1 /* 0 entries */, 32768) = 0"
    for calls in ([read, end], [read, "lseek(3, 0, SEEK_SET) = 0", read, end], [read, "lseek(3, 0, SEEK_CUR) = 72", end],
                  [read, end, "lseek(3, 0, SEEK_SET) = 0", read, end]):
        with Tmp() as tmp:
            assert listing(tmp, *calls) == ["one"], calls


def test_what_failed_for_the_machine_of_then_changes_nothing():
    with Tmp() as tmp:
        root = Root(tmp, [*READS, 'newfstatat(AT_FDCWD, "/f", {st_mode=S_IFREG|0755, st_size=200000, ...}, 0) = 0',
                          'rename("/f", "/other/f") = -1 EXDEV (x)', 'open("/f", O_WRONLY|O_TRUNC) = -1 ETXTBSY (x)', 'open("/f", O_WRONLY|O_TRUNC) = -1 EROFS (x)',
                          'open("/g", O_WRONLY|O_CREAT, 0644) = -1 ENOSPC (x)', 'access("/g", F_OK) = -1 ENOENT (x)', 'access("/f", F_OK) = 0'])
        report = root()
        assert report["mismatched"] == 0, report["mismatches"]
        assert os.path.getsize(root.at("/f")) == 200000 and not os.path.exists(root.at("/other/f")) and not os.path.exists(root.at("/g"))


def test_what_failed_for_its_arguments_fails_again():
    with Tmp() as tmp:  # the long path goes through a file; the attribute is none that a replay makes
        root = Root(tmp, ['openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0644) = 3', 'fsetxattr(3, "security.x", "v", 1, 0) = 0', "flistxattr(3, NULL, 1) = -1 ERANGE (x)",
                          f'chmod("/f/{"x/" * 2050}", 0700) = -1 ENAMETOOLONG (x)', 'openat(AT_FDCWD, "/large", O_RDONLY) = -1 EOVERFLOW (x)',
                          "copy_file_range(3, [-1], 3, NULL, 10, 0) = -1 EOVERFLOW (x)", "lseek(3, 0, SEEK_CUR) = 0"])
        report = root()
        assert report["mismatched"] == 0, report["mismatches"]


def test_opening_a_disk_makes_and_cuts_nothing():
    with Tmp() as tmp:
        root = Root(tmp, ['openat(AT_FDCWD, "/dev/sdx", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3', 'write(3, "x"..., 512) = 512', "close(3) = 0",
                          'openat(AT_FDCWD, "/dev/sdx", O_RDONLY) = 3', "lseek(3, 4096, SEEK_SET) = 4096", 'read(3, "x"..., 512) = 512', "lseek(3, 0, SEEK_END) = 1048576"])
        report = root()
        assert report["mismatched"] == 0 and os.path.getsize(root.at("/dev/sdx")) == 1 << 20, report["mismatches"]


def test_a_link_nobody_read_that_leads_to_a_directory():
    with Tmp() as tmp:
        root = Root(tmp, ['newfstatat(AT_FDCWD, "/l", {st_mode=S_IFLNK|0777, st_size=1, ...}, AT_SYMLINK_NOFOLLOW) = 0',
                          'openat(AT_FDCWD, "/l", O_RDONLY|O_DIRECTORY) = 3', "close(3) = 0", 'openat(AT_FDCWD, "/l/none", O_RDONLY) = -1 ENOENT (x)'])
        report = root()
        assert report["mismatched"] == 0, report["mismatches"]


def test_a_link_that_is_read_by_its_descriptor():
    with Tmp() as tmp:
        root = Root(tmp, ['openat(AT_FDCWD, "/d/link", O_RDONLY|O_PATH|O_DIRECTORY) = 3', 'newfstatat(AT_FDCWD, "/d/link/f", {st_mode=S_IFREG|0644, st_size=5, ...}, 0) = 0',
                          'openat(AT_FDCWD, "/d/link", O_RDONLY|O_NOFOLLOW|O_PATH) = 4', 'newfstatat(4, "", {st_mode=S_IFLNK|0777, st_size=5, ...}, AT_EMPTY_PATH) = 0',
                          'readlinkat(4, "", "there", 1024) = 5', 'newfstatat(AT_FDCWD, "/d/there/f", {st_mode=S_IFREG|0644, st_size=5, ...}, 0) = 0'])
        report = root()
        assert report["mismatched"] == 0 and os.readlink(root.at("d/link")) == "there" and os.path.getsize(root.at("d/there/f")) == 5, report["mismatches"]


def test_a_device_that_the_trace_made_is_no_file():
    with Tmp() as tmp:
        root = Root(tmp, ['mknod("/null", S_IFCHR|0666, makedev(0x1, 0x3)) = 0', 'openat(AT_FDCWD, "/null", O_RDWR) = 3', 'newfstatat(3, "", {st_mode=S_IFCHR|0666, ...}, AT_EMPTY_PATH) = 0',
                          'write(3, "x", 1) = 1', "close(3) = 0", 'newfstatat(AT_FDCWD, "/null", {st_mode=S_IFCHR|0666, ...}, 0) = 0', 'unlink("/null") = 0'])
        report = root()
        assert report["mismatched"] == 0 and report["skipped"] == 4 and report["matched"] == 3, report


def test_what_was_removed_before_a_listing_is_none_of_its_entries():
    with Tmp() as tmp:
        root = Root(tmp, ['unlink("/d/gone") = 0', 'unlink("/d/again") = 0', 'openat(AT_FDCWD, "/d/again", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3', 'rename("/d/moved", "/elsewhere") = 0',
                          'openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = 4', "getdents64(4, 0x1 /* 5 entries */, 32768) = 136", "getdents64(4, 0x1 /* 0 entries */, 32768) = 0"])
        root.prepare()
        assert {"gone", "again", "moved"} < set(os.listdir(root.at("/d"))) and len(os.listdir(root.at("/d"))) == 4, os.listdir(root.at("/d"))
        report = root()
        assert report["mismatched"] == 0, report["mismatches"]


def test_the_root_is_listed_as_it_was():
    with Tmp() as tmp:
        root = Root(tmp, ['access("/usr", F_OK) = 0', 'openat(AT_FDCWD, "/", O_RDONLY|O_DIRECTORY) = 4', "getdents64(4, 0x1 /* 20 entries */, 32768) = 520",
                          "getdents64(4, 0x1 /* 0 entries */, 32768) = 0"])
        for _ in range(2):
            report = root()
            assert report["mismatched"] == 0, report["mismatches"]
    # Also where calls name all that is in it, or all but the two names that are not made.
    others = ['newfstatat(AT_FDCWD, "/proc", {st_mode=S_IFDIR|0555, st_size=0, ...}, 0) = 0', 'access("/sys", F_OK) = 0']
    for lines, listing in (([], [(32768, 72)]), ([], [(32, 24)] * 3), (others, [(32768, 120)])):
        with Tmp() as tmp:
            report = Root(tmp, ['access("/usr", F_OK) = 0', *lines, 'openat(AT_FDCWD, "/", O_RDONLY|O_DIRECTORY) = 4',
                                *(f"getdents64(4, 0x1, {size}) = {bytes}" for size, bytes in listing), "getdents64(4, 0x1, 32) = 0"])()
            assert report["mismatched"] == 0, (listing, report["mismatches"])


def test_who_cannot_move_in_what_was_opened_has_a_fifo():
    for refused in "lseek(3, 0, SEEK_CUR)", "fallocate(3, 0, 0, 9)", 'pread64(3, 0x7, 9, 0)', 'pwrite64(3, "x", 1, 0)':
        with Tmp() as tmp:
            report = Root(tmp, ['openat(AT_FDCWD, "/p", O_RDWR|O_CREAT, 0644) = 3', f'{refused} = -1 ESPIPE (Illegal seek)', 'write(3, "abc", 3) = 3', 'read(3, "abc", 9) = 3', 'close(3) = 0', 'unlink("/p") = 0'])()
            assert report["mismatched"] == 0 and report["skipped"] == 4, (refused, report)


def test_what_is_named_by_way_of_a_missing_name_may_be_there():
    missing = "-1 ENOENT (No such file or directory)"
    with Tmp() as tmp:
        report = Root(tmp, [f'access("/d/gone", F_OK) = {missing}', f'access("/d/gone/../a", F_OK) = {missing}', f'openat(AT_FDCWD, "/d/gone/../b", O_RDONLY) = {missing}',
                            f'unlink("/d/gone/x/../../c") = {missing}', f'access("/d/new/../gone", F_OK) = {missing}', 'newfstatat(AT_FDCWD, "/d/a", {st_mode=S_IFREG|0644, st_size=5, ...}, 0) = 0',
                            'openat(AT_FDCWD, "/d/b", O_RDONLY) = 3', 'read(3, "abc", 3) = 3', 'unlink("/d/c") = 0'])()
        assert report["mismatched"] == 0 and report["skipped"] == 3, report["mismatches"]
    # Or it is below what is no directory: what the call says is not said of it.
    with Tmp() as tmp:
        report = Root(tmp, ['mkdir("/w", 0755) = 0', 'mkdir("/w/d", 0755) = 0', f'access("/w/d/x", F_OK) = {missing}', f'access("/w/c/x", F_OK) = {missing}', 'rmdir("/w/d") = 0', 'symlink("c", "/w/c") = 0',
                            'creat("/w/d", 0644) = 3', f'access("/w/gone/../d/x", F_OK) = {missing}', f'openat(AT_FDCWD, "/w/gone/../c/x", O_RDONLY) = {missing}'])()
        assert report["mismatched"] == 0 and report["skipped"] == 2, report["mismatches"]


def test_a_name_made_of_nothing_but_ways_up_takes_no_memory():
    def write(count):
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(f'access("{f"/b{i}/.." * 500}/x", F_OK) = -1 ENOENT (No such file or directory)\n' for i in range(count))

    with Tmp() as tmp:
        path = os.path.join(tmp, "t.strace")
        bounded(write, "info", path, counts=(2, 200))


def test_what_is_copied_within_a_file_was_there():
    opens = ['openat(AT_FDCWD, "/f", O_RDWR) = 3', 'openat(AT_FDCWD, "/f", O_RDWR) = 4']
    for copy in ("copy_file_range(3, [5], 4, [0], 10, 0) = 5", "copy_file_range(3, [5], 4, [20], 10, 0) = 5", "sendfile(4, 3, [5], 10) = 5"):
        with Tmp() as tmp:
            report = Root(tmp, [*opens, copy])()
            assert report["mismatched"] == 0, (copy, report["mismatches"])


def test_what_is_named_by_way_of_a_circle_of_links_may_be_there():
    loops = "-1 ELOOP (Too many levels of symbolic links)"
    with Tmp() as tmp:
        report = Root(tmp, ['symlink("d", "/d") = 0', f'openat(AT_FDCWD, "/./d/../a", O_RDONLY|O_NOFOLLOW) = {loops}', 'openat(AT_FDCWD, "/a", O_RDONLY|O_DIRECTORY) = 3',
                            f'openat(AT_FDCWD, "/d/../a", O_RDONLY|O_NOFOLLOW) = {loops}'])()
        assert report["mismatched"] == 0 and report["skipped"] == 2, report["mismatches"]


def test_a_long_listing_is_right_as_a_whole():
    """Where its buffers end is the file system's order; that an entry lacks, or is one too many, shows at its end."""
    names = [f"{i:03d}" + "x" * (i * 7 % 60) for i in range(300)]
    entries = [24, 24] + [(len(n) + 20 + 7) // 8 * 8 for n in names]
    for order, unseen in ((entries, 0), (sorted(entries), 0), (entries[::-1], 0), (sorted(entries), 8), (sorted(entries), -24)):
        buffers = [0]
        for e in order:
            if buffers[-1] + e > 1024:
                buffers.append(0)
            buffers[-1] += e
        listing = [f"getdents64(3, 0x1 /* 9 entries */, 1024) = {b}" for b in buffers] + ["getdents64(3, 0x1 /* 0 entries */, 1024) = 0"]
        if unseen:   # by the second listing, which nothing is prepared for
            last = f"getdents64(3, 0x1 /* 9 entries */, 1024) = {buffers[-1] - unseen}"
            listing += ["lseek(3, 0, SEEK_SET) = 0", *listing[:-2], last, listing[-1]]
        else:
            listing += ["lseek(3, 0, SEEK_SET) = 0", *listing[:2], "lseek(3, 0, SEEK_SET) = 0", *listing]
        with Tmp() as tmp:
            root = Root(tmp, [f'newfstatat(AT_FDCWD, "/d/{n}", {{st_mode=S_IFREG|0644, st_size=5, ...}}, 0) = 0' for n in names] +
                        ['openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = 3', *listing])
            report = root()
            assert report["mismatched"] == (unseen != 0), (unseen, report["mismatches"])


def test_what_a_link_leads_to_is_not_listed_beside_it():
    """Of a long target strace shows the beginning: something has to be there, and not in a directory whose listing is known."""
    with Tmp() as tmp:
        root = Root(tmp, ['openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = 3', "getdents64(3, 0x1 /* 3 entries */, 32768) = 72", "getdents64(3, 0x1 /* 0 entries */, 32768) = 0",
                          'newfstatat(AT_FDCWD, "/d/l", {st_mode=S_IFREG|0644, st_size=5, ...}, 0) = 0', 'readlink("/d/l", "/usr/lib/systemd/system/systemd-"..., 4096) = 51',
                          'readlink("/d/l", "/usr"..., 4096) = 51'])
        report = root()
        assert report["mismatched"] == 0, report["mismatches"]
        assert os.listdir(root.at("/d")) == ["l"] and len(os.readlink(root.at("/d/l"))) == 51


def test_what_a_link_of_a_short_target_leads_to():
    """strace -s 0: it lies elsewhere, or, where there is but one name that short, is one of those that a listing shows and nobody names."""
    for shown, length, names in ((96, 4, ["b", "l"]), (96, 1, ["l", "x"])):
        with Tmp() as tmp:
            root = Root(tmp, ['openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = 3', f"getdents64(3, 0x1 /* 4 entries */, 32768) = {shown}", "getdents64(3, 0x1 /* 0 entries */, 32768) = 0",
                              f'readlink("/d/l", ""..., 4096) = {length}', 'newfstatat(AT_FDCWD, "/d/l", {st_mode=S_IFREG|0644, st_size=5, ...}, 0) = 0',
                              *(['newfstatat(AT_FDCWD, "/d/b", {st_mode=S_IFREG|0644, st_size=5, ...}, 0) = 0'] if length > 1 else [])])
            report = root()
            assert report["mismatched"] == 0 and sorted(os.listdir(root.at("/d"))) == names, (report["mismatches"], os.listdir(root.at("/d")))
            assert len(os.readlink(root.at("/d/l"))) == length and os.path.getsize(root.at("/d/l" if length == 1 else os.readlink(root.at("/d/l")))) == 5


def test_what_is_above_a_name_that_is_missing_is_a_directory():
    with Tmp() as tmp:
        root = Root(tmp, ['readlink("/d", 0x1, 100) = -1 EINVAL (x)', 'openat(AT_FDCWD, "/d/none/at/all", O_RDONLY) = -1 ENOENT (x)',
                          'readlink("/f", 0x1, 100) = -1 EINVAL (x)', 'openat(AT_FDCWD, "/f/none/at/all", O_RDONLY) = -1 ENOTDIR (x)'])
        report = root()
        assert report["mismatched"] == 0 and os.path.isdir(root.at("/d")) and os.path.isfile(root.at("/f")), report["mismatches"]


def test_a_file_that_was_not_allowed_to_be_made_is_not_there():
    for how in ("O_EXCL|", ""):
        with Tmp() as tmp:
            root = Root(tmp, ['openat(AT_FDCWD, "/l/a.py", O_RDONLY) = 3', 'openat(AT_FDCWD, "/l/a.pyc", O_RDONLY) = -1 ENOENT (x)', 'unlink("/l/a.pyc") = -1 ENOENT (x)',
                              f'openat(AT_FDCWD, "/l/a.pyc", O_WRONLY|O_CREAT|{how}O_TRUNC, 0644) = -1 EACCES (x)', 'openat(AT_FDCWD, "/l/kept", O_WRONLY|O_CREAT, 0644) = -1 EACCES (x)'])
            report = root()
            assert report["mismatched"] == 0 and sorted(os.listdir(root.at("/l"))) == ["a.py", "kept"], (report["mismatches"], os.listdir(root.at("/l")))


def test_listings_tell_whether_what_was_refused_is_there():
    for there in (["no"], ["kept"], ["kept", "no"], []):
        with Tmp() as tmp:
            size = 72 + sum(24 for name in there)
            root = Root(tmp, ['openat(AT_FDCWD, "/l/a", O_RDONLY) = 3', 'openat(AT_FDCWD, "/l/new", O_WRONLY|O_CREAT|O_EXCL, 0644) = 4',
                              *(f'openat(AT_FDCWD, "/l/{name}", O_WRONLY|O_CREAT|O_TRUNC, 0644) = -1 EACCES (x)' for name in ("no", "kept")),
                              'openat(AT_FDCWD, "/l", O_RDONLY|O_DIRECTORY) = 5', f"getdents64(5, 0x55, 32768) = {size + 24}", "getdents64(5, 0x55, 32768) = 0"])
            report = root()
            assert report["mismatched"] == 0 and len(os.listdir(root.at("/l"))) == 2 + len(there), (there, report["mismatches"], os.listdir(root.at("/l")))


def test_who_may_not_look_into_a_directory_is_told_nothing_of_it():
    listing = ['openat(AT_FDCWD, "/l", O_RDONLY|O_DIRECTORY) = 3', "getdents64(3, 0x55 /* 3 entries */, 32768) = 72", "getdents64(3, 0x55 /* 0 entries */, 32768) = 0"]
    with Tmp() as tmp:
        root = Root(tmp, ['newfstatat(AT_FDCWD, "/p/bash", 0x7ff, 0) = -1 ENOENT (x)', 'newfstatat(AT_FDCWD, "/p/bash", 0x7ff, 0) = -1 EACCES (x)', 'access("/p/bash", X_OK) = -1 EACCES (x)',
                          'readlink("/l/link", 0x7ff, 10) = -1 EACCES (x)', 'newfstatat(AT_FDCWD, "/p/bash", 0x7ff, 0) = -1 ENOENT (x)',
                          # touch, where nothing may be made
                          'openat(AT_FDCWD, "/l/new", O_WRONLY|O_CREAT|O_NOCTTY|O_NONBLOCK, 0666) = -1 EACCES (x)', 'utimensat(AT_FDCWD, "/l/new", NULL, 0) = -1 ENOENT (x)',
                          'openat(AT_FDCWD, "/l/f", O_WRONLY|O_CREAT, 0666) = -1 EACCES (x)', 'newfstatat(AT_FDCWD, "/l/f", {st_mode=S_IFREG|0644, st_size=5, ...}, 0) = 0', *listing])
        report = root()
        assert report["mismatched"] == 0 and os.listdir(root.at("/l")) == ["f"] and not os.path.exists(root.at("/p/bash")), (report["mismatches"], os.listdir(root.at("/l")))


def test_a_directory_that_was_not_allowed_to_be_made_is_not_there():
    with Tmp() as tmp:
        root = Root(tmp, ['openat(AT_FDCWD, "/l/a.py", O_RDONLY) = 3', 'mkdir("/l/__pycache__", 0777) = -1 EACCES (x)', 'symlink("x", "/l/s") = -1 EACCES (x)', 'mknod("/l/n", S_IFREG|0600) = -1 EACCES (x)',
                          'openat(AT_FDCWD, "/l/__pycache__/a.pyc", O_WRONLY|O_CREAT|O_EXCL, 0644) = -1 ENOENT (x)', 'newfstatat(AT_FDCWD, "/l/s", 0x7ff, AT_SYMLINK_NOFOLLOW) = -1 ENOENT (x)'])
        report = root()
        assert report["mismatched"] == 0 and os.listdir(root.at("/l")) == ["a.py"], (report["mismatches"], os.listdir(root.at("/l")))


def test_a_link_to_a_link_whose_target_was_cut_short():
    with Tmp() as tmp:
        root = Root(tmp, ['newfstatat(AT_FDCWD, "/b/gcc", {st_mode=S_IFREG|0755, st_size=1301, ...}, 0) = 0', 'access("/b/gcc", X_OK) = 0',
                          'readlink("/b/gcc", "gcc-12", 1023) = 6', 'readlink("/b/gcc-12", "x86_64-lin"..., 1023) = 23'])
        report = root()
        assert report["mismatched"] == 0, report["mismatches"]
        assert os.stat(root.at("/b/gcc-12"), follow_symlinks=False).st_size == 23, os.listdir(root.at("/b"))


def test_what_cannot_be_there_is_left_out_and_said():
    lines = [*READS, 'readlink("/l", "l", 100) = 1', 'newfstatat(AT_FDCWD, "/l/x", {st_mode=S_IFREG|0644, st_size=5, ...}, 0) = 0',
             'openat(AT_FDCWD, "/d/%s", O_RDONLY) = 4' % ("n" * 300)]
    with Tmp() as tmp:
        root = Root(tmp, lines)
        report = root()
        assert report["mismatched"] == 2 and os.path.getsize(root.at("/f")) == 104096, report["mismatches"]
        assert any(re.match("2 of what the trace starts from cannot be there.*: make ", n) for n in report["notes"]), report["notes"]
    with Tmp() as tmp:
        root = Root(tmp, [*READS, 'openat(AT_FDCWD, "/g", O_RDONLY) = 4', 'pread64(4, "x", 1, 9223372036854775000) = 1'])
        report = root()
        assert report["mismatched"] == 1 and any("make /g: File too large" in n for n in report["notes"]), report
    # In a directory of somebody else's it is for him to say.
    with Tmp() as tmp:
        root = Root(tmp, lines)
        with open(root.at("/mine"), "w", encoding="ascii"):
            pass
        refuses("replay", root.trace, "--root", root.root, text="Too many levels of symbolic links|File name too long")


def contradictions(count, seed):
    """Calls on a few names of a deep tree whose results contradict each other."""
    r = random.Random(seed)

    def path():
        return "/t/" + "/".join(r.choice("abcde") for _ in range(r.randint(1, 5)))

    def error(*names):
        e = r.choice(names)
        return "0" if e == "0" else f"-1 {e} ({os.strerror(getattr(errno, e))})"

    def any_call():
        p, q = path(), r.choice((path(), "../" * r.randint(0, 2) + "/".join(r.choice("abcde") for _ in range(r.randint(1, 3)))))
        kind, size = r.choice(("S_IFREG|0644", "S_IFDIR|0755")), r.randrange(9)
        return r.choice((f'readlink("{p}", "{q}", 4096) = {len(q)}',
                         f'symlink("{q}", "{p}") = {error("0", "EEXIST")}',
                         f'rename("{p}", "{path()}") = {error("0", "ENOENT")}',
                         f'unlink("{p}") = {error("0", "ENOENT", "EISDIR")}',
                         f'mkdir("{p}", 0755) = {error("0", "EEXIST", "ENOTDIR")}',
                         f'lstat("{p}", {{st_mode={kind}, st_size={size}, ...}}) = 0',
                         f'stat("{p}", {{st_mode={kind}, st_size={size}, ...}}) = 0',
                         f'access("{p}", F_OK) = {error("0", "ENOENT", "ENOTDIR", "ELOOP")}',
                         f'open("{p}", O_RDONLY|O_CREAT, 0644) = {error("ENOENT", "EISDIR", "ENOTDIR")}'))

    return [any_call() for _ in range(count)]


def test_what_contradicts_itself_is_read_and_prepared_at_once():
    for seed in range(1, 4):
        with Tmp() as tmp:
            root = Root(tmp, contradictions(20000, seed))
            report = root.prepare()
            assert any("cannot be there" in n for n in report["notes"]), report["notes"]


def test_content():
    with Tmp() as tmp:
        root = Root(tmp, READS)
        root.prepare()
        assert os.stat(root.at("f")).st_blocks == 0 and root.read("f") == bytes(104096)
        root.prepare("--content", "zeros")
        assert os.stat(root.at("f")).st_blocks >= 104096 // 512 and root.read("f") == bytes(104096)
        root.prepare("--content", "random")
        one = root.read("f")
        assert len(set(one[i:i + 4096] for i in range(0, 102400, 4096))) == 25 and one.count(0) < 2000
        root.prepare("--content", "ratio=4")
        packed = root.read("f")[:102400]
        assert 0.7 * len(packed) < packed.count(0) < 0.8 * len(packed), packed.count(0)
        for bad in ("ratio=0", "ratio=x", "full"):
            refuses("replay", root.trace, "--root", root.root, "--content=" + bad, text="want sparse, zeros, random or ratio=N")


def test_holes_are_where_the_trace_saw_them():
    with Tmp() as tmp:
        root = Root(tmp, ['openat(AT_FDCWD, "/f", O_RDONLY) = 3', "lseek(3, 0, SEEK_DATA) = 0", "lseek(3, 0, SEEK_HOLE) = 65536",
                          "lseek(3, 65536, SEEK_DATA) = 1048576", "lseek(3, 1048576, SEEK_HOLE) = 1114112", "lseek(3, 1114112, SEEK_DATA) = -1 ENXIO (x)",
                          "lseek(3, 0, SEEK_END) = 2097152", 'openat(AT_FDCWD, "/full", O_RDONLY) = 4', "lseek(4, 0, SEEK_HOLE) = 300000"])
        for content in ("sparse", "random"):
            report = root("--content", content)
            assert report["mismatched"] == 0, (content, report["mismatches"])
            assert os.stat(root.at("f")).st_blocks * 512 < 400_000 and os.stat(root.at("f")).st_size == 2097152


def test_ranges_that_the_trace_inserted_or_took_out():
    """Of a file whose size is told when that is done, they are none of what it had, or some of it."""
    with Tmp() as tmp:
        root = Root(tmp, ['openat(AT_FDCWD, "/f", O_RDWR) = 3', "fallocate(3, FALLOC_FL_INSERT_RANGE, 4096, 4096) = 0", "lseek(3, 0, SEEK_END) = 14096",
                          'openat(AT_FDCWD, "/g", O_RDWR) = 4', "fallocate(4, FALLOC_FL_COLLAPSE_RANGE, 0, 4096) = 0", "lseek(4, 0, SEEK_END) = 15904"])
        report = root()
        assert {m["op"] for m in report["mismatches"]} <= {"fallocate"}, report["mismatches"]  # tmpfs has none
        assert (os.path.getsize(root.at("/f")), os.path.getsize(root.at("/g"))) == (14096, 15904)


def test_what_has_no_end_is_a_directory():
    with Tmp() as tmp:  # of ext4
        root = Root(tmp, ['openat(AT_FDCWD, "/d", O_RDONLY) = 3', "lseek(3, 0, SEEK_END) = 9223372036854775807", "close(3) = 0"])
        report = root()
        assert os.path.isdir(root.at("/d")) and not any("cannot be there" in note for note in report["notes"]), report["notes"]


def test_what_was_read_without_waiting_does_not_tell_where_a_file_ends():
    with Tmp() as tmp:
        root = Root(tmp, ['openat(AT_FDCWD, "/f", O_RDWR) = 3', 'preadv2(3, [{iov_base="x"..., iov_len=8192}], 1, 0, RWF_NOWAIT) = 4096', 'write(3, "x"..., 10) = 10',
                          'pread64(3, "x"..., 100, 30000) = 100'])
        report = root()
        assert report["mismatched"] == 0 and os.path.getsize(root.at("/f")) == 30100, report["mismatches"]


def test_data_that_the_trace_wrote_was_not_there_before():
    with Tmp() as tmp:
        root = Root(tmp, ['openat(AT_FDCWD, "/f", O_RDWR) = 3', "lseek(3, 0, SEEK_END) = 300000", "lseek(3, 0, SEEK_DATA) = -1 ENXIO (x)",
                          'pwrite64(3, "x"..., 512, 1536) = 512', "lseek(3, 0, SEEK_DATA) = 0", 'openat(AT_FDCWD, "/g", O_RDWR) = 4', "lseek(4, 0, SEEK_END) = 1048576",
                          "lseek(4, 0, SEEK_DATA) = 524288", 'pwrite64(4, "x"..., 4096, 65536) = 4096', "lseek(4, 0, SEEK_DATA) = 65536", "lseek(4, 524288, SEEK_HOLE) = 1048576",
                          'openat(AT_FDCWD, "/h", O_RDWR) = 5', "lseek(5, 0, SEEK_END) = 9000", "lseek(5, 9000, SEEK_DATA) = -1 ENXIO (x)", "lseek(5, 0, SEEK_DATA) = 0",
                          # nbdkit asks for a hole at 0 to learn whether the file system tells any.
                          'openat(AT_FDCWD, "/i", O_RDWR) = 6', "lseek(6, 0, SEEK_END) = 9000000", "lseek(6, 0, SEEK_HOLE) = 0", 'pwrite64(6, "x"..., 1048576, 0) = 1048576',
                          "lseek(6, 0, SEEK_DATA) = 0", "lseek(6, 0, SEEK_HOLE) = 1048576", "lseek(6, 1048576, SEEK_DATA) = -1 ENXIO (x)"])
        report = root()
        assert report["mismatched"] == 0, report["mismatches"]


def test_extended_attributes_are_there():
    with Tmp() as tmp:
        probe = os.path.join(tmp, "probe")
        open(probe, "w", encoding="ascii").close()
        try:
            os.setxattr(probe, "user.x", b"1")
        except OSError:
            raise Skip("this file system has no extended attributes")
        root = Root(tmp, ['getxattr("/f", "user.one", "12345", 100) = 5', 'setxattr("/f", "user.two", "1", 1, XATTR_CREATE) = 0', 'getxattr("/f", "user.none", 0x1, 10) = -1 ENODATA (x)',
                          'getxattr("/d", "user.one", "12345", 100) = 5', 'setxattr("/d", "user.two", "1", 1, XATTR_CREATE) = 0', 'mkdir("/d/e", 0777) = 0'])
        for _ in range(2):
            report = root()
            assert report["mismatched"] == 0, report["mismatches"]
        # In a root that was not empty, what is there stays.
        theirs = os.path.join(tmp, "theirs")
        os.makedirs(os.path.join(theirs, "d"))
        os.setxattr(os.path.join(theirs, "d"), "user.one", b"theirs")
        feign("replay", root.trace, "--root", theirs, "--json")
        assert os.getxattr(os.path.join(theirs, "d"), "user.one") == b"theirs"
    # What is replaced, or in the way of a new one, was there, as long as a later call tells; only those of users are made.
    with Tmp() as tmp:
        root = Root(tmp, ['setxattr("/f", "user.one", "1", 1, XATTR_REPLACE) = 0', 'getxattr("/f", "user.one", "1", 100) = 1', 'setxattr("/g", "user.one", "1", 1, XATTR_CREATE) = -1 EEXIST (x)',
                          'getxattr("/g", "user.one", "12345", 100) = 5', 'setxattr("/g", "security.one", "1", 1, XATTR_CREATE) = -1 EEXIST (x)', 'removexattr("/g", "trusted.one") = 0'])
        report = root()
        assert report["mismatched"] == 0 and os.listxattr(root.at("g")) == ["user.one"], report["mismatches"]


def test_what_an_attribute_was_asked_of_was_there():
    calls = ('getxattr("/d/%d", "user.none", 0x1, 10) = -1 ENODATA (x)', 'lgetxattr("/d/%d", "security.selinux", 0x1, 10) = -1 ENODATA (x)', 'removexattr("/d/%d", "user.none") = -1 ENODATA (x)',
             'setxattr("/d/%d", "user.one", "1", 1, XATTR_CREATE) = -1 EEXIST (x)', 'getxattr("/d/%d", "user.one", 0x1, 1) = -1 ERANGE (x)')
    with Tmp() as tmp:
        try:
            os.setxattr(tmp, "user.x", b"1")
        except OSError:
            raise Skip("this file system has no extended attributes")
        # But not where the attribute has no name.
        nameless = ('setxattr("/none/a", "", "1", 1, 0) = -1 ERANGE (x)', 'lgetxattr("/none/b", "", 0x1, 1) = -1 ERANGE (x)', 'removexattr("/none/c", "") = -1 ERANGE (x)')
        root = Root(tmp, [*(call % i for i, call in enumerate(calls)), *nameless])
        report = root()
        assert report["mismatched"] == 0 and len(os.listdir(root.at("d"))) == len(calls) and not os.path.exists(root.at("none")), report["mismatches"]


def test_fifos_and_modes_that_were_refused():
    with Tmp() as tmp:
        root = Root(tmp, ['newfstatat(AT_FDCWD, "/p", {st_mode=S_IFIFO|0644, st_size=0, ...}, 0) = 0', 'openat(AT_FDCWD, "/no", O_RDONLY) = -1 EACCES (x)',
                          'access("/half", W_OK) = -1 EACCES (x)', 'openat(AT_FDCWD, "/half", O_RDONLY) = 3'])
        root.prepare()
        assert stat.S_ISFIFO(os.stat(root.at("p")).st_mode)
        assert stat.S_IMODE(os.stat(root.at("no")).st_mode) & 0o444 == 0 and stat.S_IMODE(os.stat(root.at("half")).st_mode) & 0o666 == 0o444


def test_links_below_which_something_is_made():
    """They lead to a directory: where, nothing tells."""
    link, open_file = 'lstat("/a", {st_mode=S_IFLNK|0777, st_size=3, ...}) = 0', 'open("/f", O_RDONLY) = 3'
    for made in (['mkdir("/a/b", 0755) = 0', 'rmdir("/a/b") = 0'], ['open("/a/b", O_WRONLY|O_CREAT|O_EXCL, 0600) = 3', 'write(3, "x", 1) = 1'], ['symlink("x", "/a/b") = 0'],
                 [open_file, 'rename("/f", "/a/b") = 0'], [open_file, 'link("/f", "/a/b") = 0', 'unlink("/a/b") = 0'], ['openat(AT_FDCWD, "/a", O_RDWR|O_TMPFILE, 0600) = 3']):
        for lines in ([link, *made], [link, *made, link]):
            with Tmp() as tmp:
                report = Root(tmp, lines)()
                assert report["mismatched"] == 0, (lines, report["mismatches"])
    with Tmp() as tmp:  # what is known of the target is made there
        root = Root(tmp, [link, 'mkdir("/a/b", 0755) = 0', 'readlink("/a", "d/e", 4096) = 3'])
        assert root()["mismatched"] == 0 and os.readlink(root.at("a")) == "d/e" and os.listdir(root.at("d/e")) == ["b"]


def test_sockets_that_were_there():
    with Tmp() as tmp:
        calls = ['lstat("/d/told", {st_mode=S_IFSOCK|0755, st_size=0, ...}) = 0', 'open("/d/told", O_RDONLY) = -1 ENXIO (x)', 'open("/d/opened", O_RDWR) = -1 ENXIO (x)',
                 'stat("/d/left", {st_mode=S_IFSOCK|0755, st_size=0, ...}) = 0', 'unlink("/d/left") = 0', 'open("/d/left", O_WRONLY|O_CREAT, 0600) = 3', 'write(3, "x", 1) = 1',
                 'open("/listed", O_RDONLY|O_DIRECTORY) = 4', 'getdents64(4, [{d_ino=1, d_off=1, d_reclen=24, d_type=DT_SOCK, d_name="s"}], 32768) = 24', 'open("/fifo", O_WRONLY|O_NONBLOCK) = -1 ENXIO (x)']
        root = Root(tmp, calls)
        for _ in range(3):  # of a used root, too
            report = root()
            assert report["mismatched"] == 0, report["mismatches"]
            kinds = {name: stat.S_IFMT(os.lstat(root.at(name)).st_mode) for name in ("d/told", "d/opened", "d/left", "listed/s", "fifo")}
            assert kinds == {"d/told": stat.S_IFSOCK, "d/opened": stat.S_IFSOCK, "d/left": stat.S_IFREG, "listed/s": stat.S_IFSOCK, "fifo": stat.S_IFIFO}, kinds


def test_a_socket_stays_one_whatever_is_refused_because_it_is_no_directory():
    told, opened = 'lstat("/s", {st_mode=S_IFSOCK|0644, st_size=0, ...}) = 0', 'open("/s", O_RDWR) = -1 ENXIO (No such device or address)'
    for refused in ('open("/s", O_RDONLY|O_DIRECTORY) = -1 ENOTDIR (x)', 'access("/s/x", F_OK) = -1 ENOTDIR (x)', 'rmdir("/s") = -1 ENOTDIR (x)', 'mkdir("/s", 0777) = -1 EEXIST (x)'):
        with Tmp() as tmp:
            report = Root(tmp, [told, refused, opened])()
            assert report["mismatched"] == 0, (refused, report["mismatches"])


def test_sockets_and_fifos_of_two_names_are_two_again():
    for kind in "S_IFSOCK|", "S_IFIFO|":
        with Tmp() as tmp:
            root = Root(tmp, [f'lstat("/s", {{st_mode={kind}0755, st_size=0, ...}}) = 0', 'access("/s", X_OK) = 0', f'lstat("/t", {{st_mode={kind}0644, st_size=0, ...}}) = 0', 'access("/t", X_OK) = -1 EACCES (x)',
                              'chmod("/s", 0) = 0', 'unlink("/s") = 0', 'link("/t", "/s") = 0'])
            for _ in range(3):
                report = root()
                assert report["mismatched"] == 0, report["mismatches"]


def test_sockets_may_be_executed_or_become_files_of_others():
    """What their mode lets one do is so; who is not traced puts a file in the place of one."""
    with Tmp() as tmp:
        calls = ['lstat("/s", {st_mode=S_IFSOCK|0777, st_size=0, ...}) = 0', 'access("/s", X_OK) = 0', 'chmod("/s", 0) = 0', 'lstat("/told", {st_mode=S_IFSOCK|0755, st_size=0, ...}) = 0',
                 'lstat("/told", {st_mode=S_IFREG|0644, st_size=4, ...}) = 0', 'open("/told", O_RDWR) = 3', 'pread64(3, "abcd", 4, 0) = 4', 'stat("/opened", {st_mode=S_IFSOCK|0755, st_size=0, ...}) = 0',
                 'open("/opened", O_RDWR) = 4', 'pread64(4, "abcd", 4, 0) = 4']
        root = Root(tmp, calls)
        for _ in range(3):
            report = root()
            assert report["mismatched"] == 0 and report["skipped"] == 0, report
            assert [os.stat(root.at(name)).st_size for name in ("told", "opened")] == [4, 4] and stat.S_ISSOCK(os.lstat(root.at("s")).st_mode)


CHANGES = ['openat(AT_FDCWD, "/same/a", O_RDONLY) = 3', 'read(3, "x"..., 100) = 50', 'read(3, "", 100) = 0', 'openat(AT_FDCWD, "/log", O_WRONLY|O_APPEND) = 4',
           "fstat(4, {st_mode=S_IFREG|0644, st_size=10, ...}) = 0", 'write(4, "x"..., 5) = 5', 'openat(AT_FDCWD, "/over", O_RDWR) = 5', 'pread64(5, "x"..., 20, 0) = 20',
           'pwrite64(5, "y"..., 20, 0) = 20', 'unlink("/gone") = 0', 'rename("/old/dir", "/old/moved") = 0', 'newfstatat(AT_FDCWD, "/old/moved/inside", {st_mode=S_IFREG|0600, st_size=7, ...}, 0) = 0',
           'mkdir("/made", 0755) = 0', 'openat(AT_FDCWD, "/made/x", O_WRONLY|O_CREAT|O_EXCL, 0644) = 6', 'write(6, "x"..., 9) = 9', 'chmod("/mode", 0600) = 0',
           'newfstatat(AT_FDCWD, "/mode", {st_mode=S_IFREG|0600, st_size=3, ...}, 0) = 0', 'truncate("/cut", 4) = 0']


def test_a_used_root_is_brought_back():
    with Tmp() as tmp:
        root = Root(tmp, CHANGES)
        for _ in range(3):
            report = root("--content", "zeros", "--replayer", "posix,content=random")
            assert report["mismatched"] == 0, report["mismatches"]
            assert os.path.getsize(root.at("log")) == 15 and not os.path.exists(root.at("gone")) and os.path.exists(root.at("old/moved/inside"))
        assert root.read("over") != bytes(20)
        root.prepare("--content", "zeros")
        assert root.read("over") == bytes(20) and os.path.getsize(root.at("log")) == 10
        assert os.path.exists(root.at("old/dir/inside")) and not os.path.exists(root.at("old/moved")) and not os.path.exists(root.at("made"))


def test_what_was_made_by_way_of_a_link_goes_and_nothing_else_behind_it():
    """The link is told by a later call: until then its names were those of directories."""
    made = 'openat(AT_FDCWD</>, "/s/u/c/new", O_RDWR|O_CREAT|O_EXCL, 0666) = 3</v/u/c/new>'
    there = 'openat(AT_FDCWD</>, "/s/u/c/there", O_RDONLY|O_DIRECTORY) = 4</v/u/c/there>'
    no_link = ['openat(AT_FDCWD</>, "/s/f", O_RDONLY) = 5</s/f>', 'mkdir("/s/u/c", 0777) = -1 EEXIST (File exists)']
    for lines in ([made, there], [*no_link, there], [*no_link, made, there]):
        with Tmp() as tmp:
            root = Root(tmp, lines)
            for _ in range(3):
                report = root()
                assert report["mismatched"] == 0, report["mismatches"]
                assert sorted(os.listdir(root.at("v/u/c"))) == (["new"] if made in lines else []) + ["there"]


def test_a_deep_tree_that_a_replay_made_goes():
    """Deeper than a path may be long, as GNU's configure scripts make them."""
    with Tmp() as tmp:
        root = Root(tmp, ['mkdir("/deep", 0755) = 0', 'chdir("/deep") = 0', *['mkdir("directory", 0755) = 0', 'chdir("directory") = 0'] * 600,
                          'openat(AT_FDCWD, "f", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3', 'mkdir("../beside", 0755) = 0'])
        for _ in range(2):
            report = root()
            assert report["mismatched"] == 0 and not report["notes"], report["notes"]
        subprocess.run(["rm", "-rf", root.root], check=True)  # which rmtree() cannot


def test_what_another_replay_left_goes():
    """Of another trace, or of the same one with other modifiers; what nobody's replay made stays."""
    with Tmp() as tmp:
        one, two = Root(tmp, CHANGES), os.path.join(tmp, "two.strace")
        write_trace(two, ['openat(AT_FDCWD, "/same/b", O_RDONLY) = 3', 'read(3, "x"..., 100) = 50', 'mkdir("/made", 0755) = 0'])
        one()
        with open(one.at("same/mine"), "w", encoding="utf-8") as f:
            f.write("x")
        r = feign("replay", two, "--root", one.root, "--json")
        assert r.status == 0 and r.json()["mismatched"] == 0, r.err
        assert sorted(os.listdir(one.root)) == [".feign", "made", "same"] and sorted(os.listdir(one.at("same"))) == ["b", "mine"]
        assert os.listdir(one.at("made")) == [], "a directory that both make is the second's"
        assert one()["mismatched"] == 0
        assert sorted(os.listdir(one.root)) == [".feign", "cut", "log", "made", "mode", "old", "over", "same"]
        assert sorted(os.listdir(one.at("same"))) == ["a", "mine"]
        shutil.rmtree(one.at("same"))
        assert feign("replay", two, "--root", one.root).status == 0 and os.listdir(one.at("same")) == ["b"]
        # Whatever the mark says, nothing but what lies in the root goes, and the mark stays.
        outside = os.path.join(tmp, "outside")
        os.mkdir(outside)
        with open(os.path.join(tmp, "outside/x"), "w", encoding="utf-8") as f:
            f.write("x")
        os.symlink("../outside", one.at("out"))
        with open(one.at(".feign"), "a", encoding="utf-8") as f:
            f.write("t ../outside\0t /../outside\0t /out/x\0t " + outside + "\0t /\0t /.feign\0x\0\0t")
        assert one()["mismatched"] == 0
        assert os.path.exists(os.path.join(outside, "x")) and os.path.exists(one.at(".feign"))


def test_a_directory_that_is_needed_now_holds_nothing_of_what_another_replay_made_in_it():
    with Tmp() as tmp:
        one = Root(tmp, ['mkdir("/d", 0755) = 0', 'open("/d/a", O_WRONLY|O_CREAT, 0644) = 3', 'mkdir("/d/s", 0755) = 0', 'open("/d/s/b", O_WRONLY|O_CREAT, 0644) = 4',
                         'readlink("/lib", "other", 100) = 5', 'open("/lib/x", O_RDONLY) = 5'])
        two = os.path.join(tmp, "two.strace")
        write_trace(two, ['open("/d/g", O_RDONLY) = 3', 'open("/lib/y", O_RDONLY) = 4', 'open("/d", O_RDONLY|O_DIRECTORY) = 5',
                          'getdents64(5, [{d_ino=1, d_off=1, d_reclen=24, d_type=DT_DIR, d_name="."}, {d_ino=1, d_off=2, d_reclen=24, d_type=DT_DIR, d_name=".."}, '
                          '{d_ino=2, d_off=3, d_reclen=24, d_type=DT_REG, d_name="g"}], 32768) = 72', 'getdents64(5, [], 32768) = 0'])
        for _ in range(2):
            one()
            r = feign("replay", two, "--root", one.root, "--json")
            assert r.status == 0 and r.json()["mismatched"] == 0, r.json()["mismatches"]
            there = sorted(os.path.join(at[len(one.root):], name) for at, _, names in os.walk(one.root) for name in names)
            assert there == [".feign", "/d/g", "/lib/y"], there
        assert one()["mismatched"] == 0 and os.readlink(one.at("lib")) == "other"


def test_a_link_that_a_replay_put_where_a_directory_was_gives_its_place_back():
    """To the next replay of the same trace, and of another one."""
    with Tmp() as tmp:
        one = Root(tmp, ['stat("/a", {st_mode=S_IFDIR|0755, st_size=0, ...}) = 0', 'open("/a/x", O_RDONLY) = 3', 'unlink("/a/x") = 0', 'rmdir("/a") = 0',
                         'mkdir("/b", 0755) = 0', 'symlink("b", "/a") = 0'])
        two = os.path.join(tmp, "two.strace")
        write_trace(two, ['mkdir("/a/b", 0755) = 0'])
        for _ in range(2):
            assert one()["mismatched"] == 0 and os.readlink(one.at("a")) == "b" and os.listdir(one.at("b")) == []
        r = feign("replay", two, "--root", one.root, "--json")
        assert r.status == 0 and r.json()["mismatched"] == 0 and not os.path.islink(one.at("a")) and sorted(os.listdir(one.root)) == [".feign", "a"], r.out


def test_a_name_too_long_to_be_made_leaves_nothing_to_remove():
    for path in ("/d/" + "n" * 300, "/" + "n" * 300, "/" + "/".join(["d" * 200] * 30)):
        with Tmp() as tmp:
            root = Root(tmp, ['mkdir("%s", 0777) = -1 ENAMETOOLONG (File name too long)' % path,
                              'openat(AT_FDCWD, "%s", O_WRONLY|O_CREAT, 0644) = -1 ENAMETOOLONG (File name too long)' % path])
            assert root()["matched"] == 2
            write_trace(root.trace, READS)
            assert root()["mismatched"] == 0


def test_ctrl_c_during_prepare_ends_it_there():
    with Tmp() as tmp:
        root = Root(tmp, [line for i in range(5000) for line in (f'openat(AT_FDCWD, "/{i}", O_RDONLY) = 3',
                                                                'pread64(3, "x"..., 4096, 258048) = 4096', "close(3) = 0")])
        child = subprocess.Popen([FEIGN, "replay", root.trace, "--root", root.root, "--content", "random", "--json"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while child.poll() is None and len(os.listdir(root.root)) < 5:
            time.sleep(0.001)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
        report = json.loads(out)
        assert child.returncode == 1 and "signal 2 while the root was prepared" in report["stopped_by"], err
        assert report["replayed"] == 0 and report["prepared"]["files"] < 5000
        assert root("--content", "random")["mismatched"] == 0


def test_only_what_the_trace_changes_is_looked_at_again():
    with Tmp() as tmp:
        lines = CHANGES + [f'newfstatat(AT_FDCWD, "/many/{i}", {{st_mode=S_IFREG|0644, st_size=5, ...}}, 0) = 0' for i in range(5000)]
        root = Root(tmp, lines)
        assert root.prepare()["prepared"]["files"] > 5000
        strace = shutil.which("strace")
        if not strace:
            raise Skip("there is no strace to count calls with")
        log = os.path.join(tmp, "log")

        def count():
            subprocess.run([strace, "-f", "-c", "-o", log, FEIGN, "replay", root.trace, "--root", root.root, "--replayer", "null"],
                           stdout=subprocess.DEVNULL, check=True, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
            with open(log, encoding="ascii") as f:
                return int(re.search(r"^100\.00\s.*?(\d+)(?:\s+\d+)? total", f.read(), re.M)[1])

        most = 8000 if sanitized() else 4500  # a sanitizer makes calls of its own
        again = count()
        assert again < most, again
        root()  # a replay changes what it changes, and no more
        assert count() < most
        # Somebody emptied it, but for the mark.
        shutil.rmtree(root.at("many"))
        assert root.prepare()["prepared"]["files"] >= 5000
        # Another trace was replayed in between.
        other = os.path.join(tmp, "other.strace")
        write_trace(other, ['openat(AT_FDCWD, "/many/3", O_WRONLY|O_TRUNC) = 3'])
        assert feign("replay", other, "--root", root.root).status == 0
        root.prepare()
        assert os.path.getsize(root.at("many/3")) == 5


def test_directories_have_the_permission_bits_that_were_shown():
    """Before the trace's own chmod; and get them back, as files do. Who replays may use them all the same."""
    with Tmp() as tmp:
        one = Root(tmp, ['stat("/a", {st_mode=S_IFDIR|0750, st_size=0, ...}) = 0', 'stat("/a/b", {st_mode=S_IFDIR|S_ISVTX|0777, st_size=0, ...}) = 0',
                         'stat("/c", {st_mode=S_IFDIR|0055, st_size=0, ...}) = 0', 'open("/c/f", O_RDONLY) = 3', 'open("/d/f", O_RDONLY) = 4',
                         'chmod("/a", 0777) = 0', 'stat("/a", {st_mode=S_IFDIR|0777, st_size=0, ...}) = 0', 'chmod("/d", 0777) = 0', 'chmod("/c/f", 0666) = 0'])
        two, three = (os.path.join(tmp, name) for name in ("two.strace", "three.strace"))
        shown = 'stat("/a", {st_mode=S_IFDIR|0750, st_size=0, ...}) = 0', 'stat("/a/b", {st_mode=S_IFDIR|0755, st_size=0, ...}) = 0'
        write_trace(two, [*shown, 'open("/c/f", O_RDONLY) = 3', 'open("/d/f", O_RDONLY) = 4'])
        write_trace(three, ['stat("/a", {st_mode=S_IFDIR|0755, st_size=0, ...}) = 0', 'open("/a/x", O_RDONLY) = 3', 'open("/d/f", O_RDONLY) = 4'])
        for mask, untold, told in (0o022, (0o755, 0o644), 0o755), (0o077, (0o700, 0o600), 0o755):
            modes = lambda *names: [stat.S_IMODE(os.stat(one.at(name)).st_mode) for name in names]  # noqa: E731
            before = os.umask(mask)
            try:
                for _ in range(2):
                    assert one()["mismatched"] == 0 and modes("a", "a/b", "c", "c/f", "d", "d/f") == [0o777, 0o777, 0o755, 0o666, 0o777, untold[1]], [oct(m) for m in modes("a", "a/b", "c", "c/f", "d", "d/f")]
                assert feign("replay", two, "--root", one.root).status == 0
                assert modes("a", "a/b", "d/f") == [0o750, 0o755, untold[1]], [oct(m) for m in modes("a", "a/b", "d/f")]
                shutil.rmtree(one.root)
                os.mkdir(one.root)
                os.chmod(one.root, 0o2755)
                assert feign("replay", three, "--root", one.root).status == 0
                assert modes("a", "d", "d/f") == [0o2000 | told, 0o2000 | untold[0], untold[1]], [oct(m) for m in modes("a", "d", "d/f")]
            finally:
                os.umask(before)
            shutil.rmtree(one.root)
            os.mkdir(one.root)


def test_what_mkdir_found_is_a_file_if_nothing_can_be_below_it():
    with Tmp() as tmp:
        assert Root(tmp, ['rename("/f", "/d") = 0', 'mkdir("/d", 0755) = -1 EEXIST (File exists)', 'open("/d/x", O_WRONLY) = -1 ENOTDIR (Not a directory)'])()["mismatched"] == 0
    # (Of chdir it is the last name that is none.)
    with Tmp() as tmp:
        root = Root(tmp, ['mkdir("/d", 0755) = -1 EEXIST (File exists)', 'chdir("/d/x") = -1 ENOTDIR (Not a directory)'])
        assert root()["mismatched"] == 0 and os.path.isfile(root.at("d/x"))


def test_what_was_asked_for_as_a_directory_and_refused_is_a_file():
    with Tmp() as tmp:
        root = Root(tmp, ['openat(AT_FDCWD, "/a", O_RDONLY|O_PATH) = 3', "fchdir(3) = -1 ENOTDIR (Not a directory)", 'link("/a", "/b") = 0', 'openat(AT_FDCWD, "/c", O_RDONLY) = 4',
                          "getdents64(4, 0x7f00, 32768) = -1 ENOTDIR (Not a directory)", 'truncate("/c", 9) = 0', 'openat(AT_FDCWD, "/d", O_RDONLY|O_PATH) = 5', "fchdir(5) = 0"])
        assert root()["mismatched"] == 0 and os.path.getsize(root.at("/c")) == 9 and os.path.isdir(root.at("/d"))


def test_a_directory_that_moves_before_it_is_listed():
    with Tmp() as tmp:
        # "x" is known before, the rest only behind the new name: it was all below the old one.
        root = Root(tmp, ['newfstatat(AT_FDCWD, "/a/x", {st_mode=S_IFREG|0644, st_size=5, ...}, 0) = 0', 'newfstatat(AT_FDCWD, "/a/was", {st_mode=S_IFREG|0644, st_size=5, ...}, 0) = 0',
                          'unlink("/a/was") = 0', 'rename("/a", "/b") = 0', 'openat(AT_FDCWD, "/b", O_RDONLY|O_DIRECTORY) = 3',
                          'getdents64(3, 0x5 /* 5 entries */, 32768) = 120', 'getdents64(3, 0x5 /* 0 entries */, 32768) = 0', 'unlinkat(3, "x", 0) = 0', 'unlinkat(3, "y", 0) = 0',
                          'openat(3, "sub", O_RDONLY|O_DIRECTORY) = 4', 'getdents64(4, 0x5 /* 3 entries */, 32768) = 72', 'getdents64(4, 0x5 /* 0 entries */, 32768) = 0',
                          'unlinkat(4, "z", 0) = 0', 'unlinkat(3, "sub", AT_REMOVEDIR) = 0', 'rmdir("/b") = 0',
                          *(f'newfstatat(AT_FDCWD, "/many/{i}", {{st_mode=S_IFREG|0644, st_size=5, ...}}, 0) = 0' for i in range(1000))])
        for _ in range(3):  # of what is needed, a used root is asked for what the trace changes, and for some of the rest
            report = root()
            assert report["mismatched"] == 0 and not os.path.exists(root.at("a")) and not os.path.exists(root.at("b")), report["mismatches"]


def test_what_open_found_in_a_directory_that_had_moved_was_where_that_was():
    """O_CREAT may have made it; what is read of it was there."""
    for moves, there in (('rename("/a", "/b") = 0', "/a"), ('renameat2(AT_FDCWD, "/a", AT_FDCWD, "/b", RENAME_EXCHANGE) = 0', "/a"), ('rename("/x/a", "/b") = 0', "/x/a")):
        with Tmp() as tmp:
            root = Root(tmp, [moves, 'openat(AT_FDCWD, "/b/d/f", O_RDWR|O_CREAT, 0644) = 3', 'read(3, "x"..., 30) = 30'])
            root.prepare()
            assert os.path.getsize(root.at(there + "/d/f")) == 30, moves
            report = root()
            assert report["mismatched"] == 0, (moves, report["mismatches"])


def test_a_whiteout_is_left_where_a_file_was_moved_from():
    for asks in 'rename("/b", "/e") = -1 EISDIR (Is a directory)', 'newfstatat(AT_FDCWD, "/b", {st_mode=S_IFCHR|000, st_rdev=makedev(0, 0), ...}, AT_SYMLINK_NOFOLLOW) = 0':
        with Tmp() as tmp:
            report = Root(tmp, ['openat(AT_FDCWD, "/a", O_WRONLY|O_CREAT, 0600) = 3', 'link("/a", "/b") = 0', 'renameat2(AT_FDCWD, "/b", AT_FDCWD, "/c", RENAME_WHITEOUT) = 0',
                                'mkdir("/e", 0700) = 0', asks, 'unlink("/b") = 0'])()
            assert (report["matched"], report["mismatched"]) == (6, 0), (asks, report["mismatches"])


def test_a_directory_that_is_not_empty_when_all_that_was_named_has_left_holds_more():
    refused = 'rmdir("/d") = -1 ENOTEMPTY (Directory not empty)'
    gone, away = 'unlink("/d/a") = 0', 'rename("/d/a", "/b") = 0'
    for calls, more in (([refused], True), ([gone, refused], True), ([away, refused], True), ([refused, gone, refused], True), ([refused, gone, 'rmdir("/d") = 0'], False),
                        ([gone, refused, 'unlink("/d/c") = 0', 'rmdir("/d") = 0'], False), ([gone, 'rename("/e", "/d") = -1 ENOTEMPTY (Directory not empty)'], True)):
        with Tmp() as tmp:
            root = Root(tmp, calls)
            report = root()
            assert report["mismatched"] == 0 and os.path.isdir(root.at("/d")) == more, (calls, report["mismatches"])


def test_one_listing_that_others_disturbed_makes_up_no_entry():
    """What was being made and removed while it was read may be in it; the next ones tell better."""
    listing = lambda size: ['openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = 3', f'getdents64(3, 0x5, 32768) = {size}', 'getdents64(3, 0x5, 32768) = 0', 'close(3) = 0']
    for sizes, left, others in (((72, 48, 48, 48), [], 1), ((72, 48, 72, 72), ["~0~~"], 1), ((72,), ["~0~~"], 0)):
        with Tmp() as tmp:
            root = Root(tmp, sum(map(listing, sizes), []))
            report = root()
            assert report["mismatched"] == others and os.listdir(root.at("d")) == left, (sizes, report["mismatches"], os.listdir(root.at("d")))
    # What the trace made or removed between them counts for each.
    with Tmp() as tmp:
        root = Root(tmp, [*listing(72), 'creat("/d/a", 0644) = 3', 'close(3) = 0', *listing(96), 'unlink("/d/a") = 0', 'unlink("/d/b") = 0', *listing(48)])
        report = root()
        assert report["mismatched"] == 0 and os.listdir(root.at("d")) == [], report["mismatches"]


def test_listings_tell_what_was_there_before_it_was_written_over():
    """An open with O_CREAT, or a rename to a name, may find a file or none: entries of no other name are these."""
    def listing(size):
        return ['openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = 3', f"getdents64(3, 0x5, 32768) = {size}", "getdents64(3, 0x5, 32768) = 0", "close(3) = 0"]

    def over(name):
        return [f'openat(AT_FDCWD, "/d/{name}", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3', "close(3) = 0"]

    long = "n" * 20  # its entry takes 40 bytes
    moves = [*over("../t"), f'rename("/t", "/d/{long}") = 0']
    for lines, left in ((listing(72) + over("a"), ["a"]),  # the only one that it showed
                        (listing(96) + over("a") + listing(96) + over(long), ["a", "~", long]),
                        (listing(96) + over("a") + listing(120), ["a", "~"]),  # a new one
                        (listing(112) + over("a") + moves + listing(136), ["a", "~", long]),
                        (listing(136) + moves + over("a") + listing(136) + ['unlink("/d/a") = 0'] + listing(112), ["~", long]),
                        (listing(48) + over("a") + listing(72), ["a"]),
                        (listing(112) * 30 + moves + listing(112) + listing(112)[:2], ["~", long]),  # the trace ends in the last one
                        (['rename("/d/a", "/d/a") = 0', *listing(72)], ["a"])):
        with Tmp() as tmp:
            root = Root(tmp, lines)
            for _ in range(2):
                report = root()
                entries = sorted(os.listdir(root.at("d")))
                assert report["mismatched"] == 0, (lines, report["mismatches"], entries)
                assert [e[0] if e.startswith("~") else e for e in entries] == sorted(left), (lines, entries)


def test_refusals_tell_what_was_there():
    no, full, is_one = "-1 ENOTDIR (Not a directory)", "-1 ENOTEMPTY (Directory not empty)", "-1 EISDIR (Is a directory)"
    for lines, there in ((['rmdir("/f") = ' + no, 'unlink("/f") = 0'], []),
                         (['unlinkat(AT_FDCWD, "/f", AT_REMOVEDIR) = ' + no, 'openat(AT_FDCWD, "/f", O_RDONLY) = 3'], ["f"]),
                         (['rename("/d", "/f") = ' + no, 'rmdir("/d") = 0', 'unlink("/f") = 0'], []),
                         (['rename("/f", "/d") = ' + is_one, 'rmdir("/d") = 0', 'unlink("/f") = 0'], []),
                         (['rename("/d", "/e") = ' + full, 'rename("/d", "/g") = 0'], ["e", "g"]),
                         (['rmdir("/d") = ' + full], ["d"]),
                         (['creat("/d/x", 0644) = 3', 'rmdir("/d") = ' + full, 'unlink("/d/x") = 0', 'rmdir("/d") = 0'], []),
                         (['truncate("/d", 5) = ' + is_one, 'rmdir("/d") = 0'], []),
                         (['openat(AT_FDCWD, "/d", O_RDONLY) = 3', 'read(3, 0x5, 10) = ' + is_one, 'rmdir("/d") = 0'], []),
                         (['mkdir("/f", 0777) = -1 EEXIST (File exists)', 'openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0666) = 3', 'link("/f", "/g") = 0'], ["f", "g"]),
                         (['mkdir("/f", 0777) = -1 EEXIST (File exists)', 'unlink("/f") = 0'], []),
                         # A guess gives way to what is told later.
                         (['rmdir("/d/e") = ' + no, 'unlink("/d/c") = ' + no, 'stat("/d", {st_mode=S_IFREG|0644, st_size=3, ...}) = 0'], ["d"]),
                         (['rmdir("/d/e") = ' + no, 'unlink("/d/c") = ' + no], ["d"]),
                         (['rmdir("/d/e") = ' + no, 'openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = ' + no], ["d"]),
                         (['rename("/b/c", "/m") = ' + no, 'openat(AT_FDCWD, "/b", O_RDWR|O_CREAT, 0644) = 3'], ["b", "m"]),
                         # Of these, only what is above a name is none.
                         (['renameat2(AT_FDCWD, "/m/a", AT_FDCWD, "/b/d", RENAME_EXCHANGE) = ' + no, 'rmdir("/b") = 0'], ["m"]),
                         (['renameat2(AT_FDCWD, "/l", AT_FDCWD, "/m/d", RENAME_NOREPLACE) = ' + no], ["m"]),
                         (['link("/a", "/c/a") = ' + no], ["a", "c"]),
                         (['renameat2(AT_FDCWD, "/a", AT_FDCWD, "/b", RENAME_NOREPLACE) = -1 EEXIST (x)'], ["a", "b"]),
                         (['readlink("/a", 0x1, 9) = -1 EINVAL (x)', 'rename("/a", "/n/a") = -1 ENOENT (x)', 'mkdir("/n", 0777) = 0'], ["a", "n"]),
                         (['rename("/f", "/d") = ' + is_one, 'rename("/x", "/f/c") = ' + no], ["d", "f"]),
                         (['mkdir("/f", 0777) = -1 EEXIST (File exists)', 'truncate("/f", 5) = 0'], ["f"]),
                         (['symlink("x", "/f") = -1 EEXIST (x)', 'truncate("/f", 5) = 0', 'mkdir("/f", 0777) = -1 EEXIST (x)', 'unlink("/f") = 0'], []),
                         (['link("/f", "/g") = 0', 'mkdir("/f", 0777) = -1 EEXIST (File exists)', 'unlink("/f") = 0'], ["g"]),
                         (['mkdir("/f", 0777) = -1 EEXIST (x)', 'openat(AT_FDCWD, "/f", O_RDONLY|O_TRUNC) = 3', 'unlink("/f") = 0'], []),
                         (['mkdir("/f", 0777) = -1 EEXIST (x)', 'openat(AT_FDCWD, "/f", O_RDONLY) = 3', 'read(3, "", 9) = 0'], ["f"]),
                         (['mkdir("/f", 0777) = -1 EEXIST (x)', 'openat(AT_FDCWD, "/f", O_RDONLY) = 3', 'mmap(NULL, 5, PROT_READ, MAP_SHARED, 3, 0) = 0x7fb8b6068000', 'read(3, "x", 1) = 1'], ["f"]),
                         (['mkdir("/f", 0777) = -1 EEXIST (x)', 'stat("/f", {st_mode=S_IFREG|0644, st_size=3, ...}) = 0', 'unlink("/f") = 0'], []),
                         (['openat(AT_FDCWD, "/p", O_WRONLY|O_NONBLOCK) = -1 ENXIO (x)', 'unlink("/p") = 0'], []),
                         (['openat(AT_FDCWD, "/", O_RDWR|O_TMPFILE, 0600) = 3', 'linkat(AT_FDCWD, "/proc/self/fd/3", AT_FDCWD, "/f", AT_SYMLINK_FOLLOW) = -1 EEXIST (x)', 'unlink("/f") = 0'], []),
                         (['openat(AT_FDCWD, "/", O_RDWR|O_TMPFILE, 0600) = 3', 'linkat(AT_FDCWD, "/proc/self/fd/3", AT_FDCWD, "/f", AT_SYMLINK_FOLLOW) = -1 EEXIST (x)', 'openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0600) = 4'], ["f"]),
                         (['mkdir("/d", 0777) = 0', 'rename("/e", "/d") = 0', 'rmdir("/d") = 0'], []),
                         (['link("/f", "/g") = 0', 'unlink("/g") = 0', 'mkdir("/f", 0777) = -1 EEXIST (x)', 'unlink("/f") = 0'], []),
                         (['mkdir("/f", 0777) = -1 EEXIST (x)', 'rename("/g", "/f") = 0', 'unlink("/f") = 0'], []),
                         (['renameat2(AT_FDCWD, "/a", AT_FDCWD, "/b", RENAME_EXCHANGE) = -1 ENOENT (x)', 'openat(AT_FDCWD, "/a", O_RDWR|O_CREAT, 0644) = 3', 'lseek(3, 0, SEEK_END) = 5000', 'read(3, "", 9) = 0'], ["a"]),
                         (['symlink("x", "/l") = 0', 'mkdir("/f", 0777) = -1 EEXIST (x)', 'rename("/f", "/l") = 0', 'unlink("/l") = 0'], []),
                         # A directory above has something in it, whatever that is.
                         (['rename("/d/f", "/d") = ' + full, 'unlink("/d/f") = 0', 'rmdir("/d") = 0'], []),
                         # Of what is no directory, it may be the one above that refused.
                         (['openat(AT_FDCWD, "/f", O_WRONLY|O_CREAT|O_EXCL, 0666) = 3', 'rmdir("/f/x") = ' + no, 'unlink("/f") = 0', 'mkdir("/f", 0777) = 0', 'mkdir("/f/x", 0777) = 0'], ["f"])):
        with Tmp() as tmp:
            root = Root(tmp, lines)
            report = root()
            left = sorted(set(os.listdir(root.at("/"))) - {".feign"})
            assert report["mismatched"] == 0 and left == there, (lines, report["mismatches"], left)


def test_a_listing_by_name_tells_what_an_open_made():
    """What strace -v shows of a directory, and no call names, is not what was opened there later."""
    entry = '{d_ino=1, d_off=1, d_reclen=24, d_type=DT_REG, d_name="%s"}'
    for shown, there in (("s", ["s"]), ("n", ["n"])):
        with Tmp() as tmp:
            entries = ", ".join(entry % name for name in (".", "..", shown))
            root = Root(tmp, ['openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = 3', f"getdents64(3, [{entries}], 32768) = 72", "getdents64(3, [], 32768) = 0", "close(3) = 0",
                              'openat(AT_FDCWD, "/d/n", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3'])
            root.prepare()
            assert os.listdir(root.at("d")) == there, (shown, os.listdir(root.at("d")))
            assert root()["mismatched"] == 0


def test_a_signal_ends_a_listing_early():
    with Tmp() as tmp:
        names = [f'newfstatat(AT_FDCWD, "/d/{c}", {{st_mode=S_IFREG|0644, st_size=5, ...}}, 0) = 0' for c in "xyz"]
        listing = ['openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = 3', 'getdents64(3, 0x5 /* 1 entries */, 32768) = 24', 'getdents64(3, 0x5 /* 4 entries */, 32768) = 96',
                   'getdents64(3, 0x5 /* 0 entries */, 32768) = 0', "close(3) = 0"]
        root = Root(tmp, names + listing)
        report = root()
        assert report["mismatched"] == 0, report["mismatches"]
        # What is there beside them is told at the end.
        with open(root.at("d/beside"), "w", encoding="ascii"):
            pass
        report = root("--no-prepare")
        assert [(m["recorded"], m["replayed"]) for m in report["mismatches"]] == [(0, 32)], report["mismatches"]


def test_verify_finds_other_bytes_than_were_written():
    with Tmp() as tmp:
        lines = ['openat(AT_FDCWD, "/a", O_RDWR|O_CREAT, 0644) = 3', 'write(3, "x"..., 1000) = 1000', 'pwrite64(3, "x"..., 100, 5000) = 100',
                 'pread64(3, "x"..., 6000, 0) = 5100', 'ftruncate(3, 500) = 0', 'ftruncate(3, 1000) = 0', 'pread64(3, "x"..., 1000, 0) = 1000',
                 'writev(3, [{iov_base="x", iov_len=33}, {iov_base="y", iov_len=77}], 2) = 110', 'pread64(3, "x"..., 110, 1000) = 110']
        root = Root(tmp, lines)
        report = root("--replayer", "posix,verify=yes")
        assert report["mismatched"] == 0, report["mismatches"]
        # A second name of the same file, that the trace does not know of: bytes of "/a" are overwritten behind its back.
        os.link(root.at("a"), root.at("b"))
        write_trace(root.trace, ['openat(AT_FDCWD, "/a", O_RDWR) = 3', 'openat(AT_FDCWD, "/b", O_RDWR) = 4', 'pwrite64(3, "x"..., 100, 0) = 100', 'pwrite64(4, "x"..., 1, 50) = 1',
                                 'pread64(3, "x"..., 50, 0) = 50', 'pread64(3, "x"..., 100, 0) = 100', 'pread64(4, "x"..., 1, 50) = 1'])
        report = root("--replayer", "posix,verify=yes", "--no-prepare")
        assert report["mismatched"] == 1 and report["mismatches"][0]["replayed"] == -74, report["mismatches"]


def test_what_was_open_before_the_trace_is_opened_by_its_name():
    with Tmp() as tmp:
        root = Root(tmp, ['pread64(9</data/db>, "x"..., 8192, 16384) = 8192', 'pwrite64(9</data/db>, "x"..., 8192, 0) = 8192', "fsync(9</data/db>) = 0",
                          'write(2</dev/pts/0<char 136:0>>, "x", 1) = 1', 'write(8, "x", 1) = 1', 'read(5<socket:[77]>, "x", 1) = 1', "close(9</data/db>) = 0"])
        report = root()
        assert report["mismatched"] == 0 and os.path.getsize(root.at("data/db")) == 24576
        whys = {s["why"] for s in report["skips"]}
        assert any("no storage" in w for w in whys) and any("does not name" in w or "pipe" in w for w in whys), whys
        assert report["bytes_read"] == 8192 and report["bytes_written"] == 8192
    # Where it was, who asks tells, as long as nobody has moved it.
    with Tmp() as tmp:
        root = Root(tmp, ['newfstatat(1</log>, "", {st_mode=S_IFREG|0644, st_size=44, ...}, AT_EMPTY_PATH) = 0', "lseek(1</log>, 0, SEEK_CUR) = 44", 'write(1</log>, "x", 6) = 6',
                          "lseek(1</log>, 0, SEEK_CUR) = 50", "lseek(2</other>, 5, SEEK_SET) = 5", "lseek(2</other>, 0, SEEK_CUR) = 7"])
        report = root()
        assert os.path.getsize(root.at("log")) == 50 and [(m["recorded"], m["replayed"]) for m in report["mismatches"]] == [(7, 5)], report["mismatches"]
    # Else it is there from then on.
    with Tmp() as tmp:
        root = Root(tmp, ['read(0</list>, "x", 50) = 50', "lseek(0</list>, -30, SEEK_CUR) = 120", 'read(0</list>, "x", 1000) = 80', "lseek(0</list>, 0, SEEK_CUR) = 200"])
        report = root()
        assert [(m["recorded"], m["replayed"]) for m in report["mismatches"]] == [(120, 20)], report["mismatches"]


if __name__ == "__main__":
    main(globals())
