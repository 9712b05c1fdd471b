#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whole replays: shipped and real traces, and programs traced here, against the trees they leave."""
import errno
import glob
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from harness import BUILD, CORPUS, FEIGN, TOP, Skip, Tmp, after, feign, main, refuses, same_tree, sanitized, tree
from strace_text import replayed

SHIPPED = os.path.join(TOP, "examples", "git-clone.strace.gz")


def test_shipped_trace_replays_twice_with_full_fidelity_and_the_programs_tree():
    want = after(os.path.join(TOP, "examples", "git-clone.after"))
    with Tmp() as tmp:
        for _ in range(2):
            r = feign("replay", SHIPPED, "--root", tmp, "--json").json()
            assert r["mismatched"] == 0 and r["fidelity"] == 1.0, r["mismatches"]
            assert r["activities"] == r["replayed"] + r["skipped"] and r["activities"] > 5000
            same_tree(want, tree(os.path.join(tmp, "srv/lab/w")))


def test_every_pace_in_recorded_order_gives_full_fidelity():
    for pace in ("afap", "think", "think,scale=0.1"):
        with Tmp() as tmp:
            r = feign("replay", SHIPPED, "--root", tmp, "--json", "--pace", pace).json()
            assert r["mismatched"] == 0, (pace, r["mismatches"])


def test_directories_that_are_kept_open_leave_descriptors_to_the_trace():
    with Tmp() as tmp:
        trace, root = os.path.join(tmp, "t.strace"), os.path.join(tmp, "root")
        os.mkdir(root)
        with open(trace, "w", encoding="utf-8") as f:
            for i in range(600):
                f.write(f'7 100.{3 * i:06d} mkdir("/d{i}", 0755) = 0 <0.000001>\n'
                        f'7 100.{3 * i + 1:06d} openat(AT_FDCWD, "/d{i}/f", O_RDWR|O_CREAT, 0644) = {3 + i} <0.000001>\n')
        # 600 files are open at last, and as many directories would be.
        done = subprocess.run(["prlimit", "--nofile=1000", FEIGN, "replay", trace, "--root", root, "--json"], stdout=subprocess.PIPE, check=True)
        assert json.loads(done.stdout)["mismatched"] == 0, json.loads(done.stdout)["mismatches"]


WHAT_FUSE_LACKS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for name in "ab":
    with open(name, "w") as f:
        f.write(name * (3 if name == "a" else 5))
exchange, no_replace = 2, 1
assert libc.renameat2(-100, b"a", -100, b"b", exchange) == 0
assert libc.renameat2(-100, b"a", -100, b"c", no_replace) == 0
assert libc.renameat2(-100, b"b", -100, b"c", no_replace) == -1
fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600)
os.write(fd, b"hello")
assert os.pread(fd, 10, 0) == b"hello"
os.posix_fallocate(f := os.open("long", os.O_CREAT | os.O_RDWR), 0, 100000)
assert len(os.pread(f, 200000, 0)) == 100000
os.mkdir("many")
for i in range(700):
    open("many/" + "x" * 60 + str(i), "w").close()
assert len(os.listdir("many")) == 700
"""


def test_what_a_file_system_lacks_is_done_by_hand():
    """FUSE knows no flags of rename, no nameless files, no fallocate, and fills listings' buffers less."""
    if shutil.which("bindfs") is None or shutil.which("strace") is None:
        raise Skip("bindfs or strace is not installed")
    with Tmp() as tmp:
        work, under, root, trace = (os.path.join(tmp, n) for n in ("work", "under", "root", "t.strace"))
        for folder in work, under, root:
            os.mkdir(folder)
        if subprocess.run(["bindfs", under, root], stderr=subprocess.DEVNULL).returncode:
            raise Skip("FUSE is not to be had here")
        try:
            done = subprocess.run(["strace", "-f", "-y", "-o", trace, sys.executable, "-c", WHAT_FUSE_LACKS], cwd=work)
            if done.returncode:
                raise Skip("this file system lacks them, too")
            for order in "trace", "depend":
                report = feign("replay", trace, "--root", root, "--order", order, "--json").json()
                said = [(m["op"], m["recorded"]) for m in report["mismatches"]]
                assert said in ([], [("fallocate", 0)]), report["mismatches"]
                same_tree(tree(work), tree(root + work))
        finally:
            subprocess.run(["umount", "-l", root])


def test_a_listing_in_one_buffer_may_come_in_several():
    if shutil.which("gocryptfs") is None:
        raise Skip("gocryptfs is not installed")
    with Tmp() as tmp:
        under, root, trace = (os.path.join(tmp, n) for n in ("under", "root", "t.strace"))
        os.mkdir(under)
        os.mkdir(root)
        secret = ["gocryptfs", "-q", "-extpass", "echo", "-extpass", "x"]
        if subprocess.run([*secret, "-init", "-scryptn", "10", under]).returncode or subprocess.run([*secret, under, root]).returncode:
            raise Skip("FUSE is not to be had here")
        try:
            # 2 entries of 24 bytes and 300 of 32, all in one; one more or less is not as recorded.
            for size, wrong in (9648, []), (9680, [("getdents64", 9680, 9648)]), (9616, [("getdents64", 0, 32)]):
                with open(trace, "w", encoding="ascii") as f:
                    f.writelines(f"7 1000.{i:06d} {call} <0.000001>\n" for i, call in enumerate(
                        ['mkdir("/d", 0755) = 0', *(f'mknod("/d/entry-{n}", S_IFREG|0644) = 0' for n in range(100, 400)), 'openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = 3',
                         f"getdents64(3, 0x55 /* 302 entries */, 32768) = {size}", "getdents64(3, 0x55 /* 0 entries */, 32768) = 0"]))
                report = feign("replay", trace, "--root", root, "--json").json()
                assert [(m["op"], m["recorded"], m["replayed"]) for m in report["mismatches"]] == wrong, (size, report["mismatches"])
        finally:
            subprocess.run(["umount", "-l", root])


def test_what_memory_lacks_is_done_by_hand():
    """tmpfs has no RWF_NOWAIT, nor RWF_DONTCACHE; what is inserted or collapsed changes a file's size all the same."""
    if not os.access("/dev/shm", os.W_OK):
        raise Skip("there is no /dev/shm")
    calls = ('openat(AT_FDCWD, "/f", O_RDWR|O_CREAT|O_EXCL, 0600) = 3', 'ftruncate(3, 8192) = 0', 'preadv2(3, [{iov_base="", iov_len=5}], 1, 0, 0x80 /* RWF_??? */) = 5',
             'pwritev2(3, [{iov_base="", iov_len=5}], 1, 0, RWF_DONTCACHE) = 5', 'preadv2(3, [{iov_base="", iov_len=5}, {iov_base="", iov_len=3}], 2, 0, RWF_NOWAIT) = 8',
             'pwritev2(3, [{iov_base="", iov_len=5}], 1, 0, RWF_NOWAIT|RWF_DSYNC) = 5', 'fallocate(3, FALLOC_FL_INSERT_RANGE, 4096, 8192) = 0', 'lseek(3, 0, SEEK_END) = 16384',
             'fallocate(3, FALLOC_FL_COLLAPSE_RANGE, 0, 4096) = 0', 'lseek(3, 0, SEEK_END) = 12288', 'fallocate(3, FALLOC_FL_ZERO_RANGE, 0, 20480) = 0', 'lseek(3, 0, SEEK_END) = 20480')
    with tempfile.TemporaryDirectory(prefix="feign-test.", dir="/dev/shm") as tmp:
        trace = os.path.join(tmp, "t.strace")
        with open(trace, "w", encoding="ascii") as f:
            f.writelines(f"7 1000.{i:06d} {call} <0.000001>\n" for i, call in enumerate(calls))
        r = feign("replay", trace, "--root", fresh(tmp, "root"), "--json").json()
        assert {m["op"] for m in r["mismatches"]} <= {"fallocate"}, r["mismatches"]


def test_what_memory_did_not_have_is_not_read_and_what_it_had_is_waited_for():
    """RWF_NOWAIT: what a replay has in memory is another matter."""
    one = '[{iov_base="x"..., iov_len=8192}], 1'
    report, sizes = replayed(['openat(AT_FDCWD, "/f", O_RDWR) = 3', f"preadv2(3, {one}, -1, RWF_NOWAIT) = 8192", f"preadv2(3, {one}, -1, RWF_NOWAIT) = 4096",
                              f"preadv2(3, {one}, -1, RWF_NOWAIT) = -1 EAGAIN (x)", "lseek(3, 0, SEEK_CUR) = 12288", 'pread64(3, "x"..., 8192, 20000) = 8192',
                              f"preadv2(3, {one}, -1, RWF_NOWAIT) = 4096", "lseek(3, 0, SEEK_CUR) = 16384", 'openat(AT_FDCWD, "/g", O_RDWR|O_CREAT|O_EXCL, 0600) = 4',
                              f"pwritev2(4, {one}, -1, RWF_NOWAIT) = -1 EAGAIN (x)", 'write(4, "x", 1) = 1', "lseek(4, 0, SEEK_END) = 1"],
                             "--content", "random", "--drop-caches", "files")
    assert (report["mismatched"], sizes) == (0, {"/f": 28192, "/g": 1}), (report["mismatches"], sizes)


def test_copies_that_ended_early_copy_as_much_again():
    """A signal or a limit ends them, not the file that they read."""
    report, sizes = replayed(['openat(AT_FDCWD, "/f", O_RDONLY) = 3', 'openat(AT_FDCWD, "/g", O_RDWR|O_CREAT|O_EXCL, 0600) = 4', "sendfile(4, 3, NULL, 1000) = 100",
                              "sendfile(4, 3, [100] => [300], 1000) = 200", "lseek(3, 0, SEEK_CUR) = 100", "copy_file_range(3, NULL, 4, NULL, 1000, 0) = 50",
                              "lseek(3, 0, SEEK_CUR) = 150", 'read(3, "x"..., 5000) = 350', "sendfile(4, 3, NULL, 1000) = 0", "lseek(4, 0, SEEK_END) = 350"])
    assert (report["mismatched"], sizes) == (0, {"/f": 500, "/g": 350}), (report["mismatches"], sizes)


def test_what_failed_as_it_was_closed_is_closed():
    """close(2): only what is no descriptor stays."""
    opens, locks = 'openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0600) = 3', "flock(3, LOCK_EX|LOCK_NB) = 0"
    for error in ("EIO", "ENOSPC", "EDQUOT", "EINTR"):
        report, _ = replayed([opens, locks, f"close(3) = -1 {error} (x)", opens, locks])
        assert report["mismatched"] == 0, (error, report["mismatches"])


def test_requests_go_where_their_flags_say():
    write = "{aio_data=0, aio_rw_flags=%s, aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=3, aio_nbytes=512, aio_offset=0}"
    for flag in ("RWF_APPEND", "RWF_DSYNC|RWF_APPEND", "0x10"):
        report, sizes = replayed(['openat(AT_FDCWD, "/f", O_RDWR|O_CREAT|O_EXCL, 0600) = 3', "ftruncate(3, 1000) = 0", "io_setup(4, [0x7f00]) = 0", f"io_submit(0x7f00, 1, [{write % flag}]) = 1",
                                  "io_getevents(0x7f00, 1, 8, [{data=0, obj=0x1, res=512, res2=0}], NULL) = 1", "lseek(3, 0, SEEK_END) = 1512", "io_destroy(0x7f00) = 0"])
        assert (report["mismatched"], sizes) == (0, {"/f": 1512}), (flag, report["mismatches"], sizes)


def test_requests_that_a_full_context_refused_are_not_made():
    write = "{aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=3, aio_nbytes=512, aio_offset=%d}"
    report, sizes = replayed(['openat(AT_FDCWD, "/f", O_RDWR|O_CREAT|O_EXCL, 0600) = 3', "io_setup(1, [0x7f00]) = 0", f"io_submit(0x7f00, 1, [{write % 0}]) = 1",
                              f"io_submit(0x7f00, 1, [{write % 4096}]) = -1 EAGAIN (x)", "io_getevents(0x7f00, 1, 8, [{data=0, obj=0x1, res=512, res2=0}], NULL) = 1",
                              "io_destroy(0x7f00) = 0"])
    assert (report["mismatched"], sizes) == (0, {"/f": 512}), (report["mismatches"], sizes)


def test_threads_have_memory_for_the_paths_that_they_use():
    """Not each of them for all that the trace has."""
    if sanitized():
        raise Skip("a sanitizer's own memory is counted, too")
    with Tmp() as tmp:
        threads, trace, grew = 64, os.path.join(tmp, "t.feign"), {}
        for count in 100, 8000:
            with open(os.path.join(tmp, "t.strace"), "w", encoding="ascii") as f:  # (what this test holds would be counted, too)
                f.writelines(f'{100 + p} 100.{i:06d} stat("/d/{p}/{i}", 0x7ffe) = -1 ENOENT (No such file or directory) <0.000001>\n' for i in range(count) for p in range(threads))
            assert feign("convert", "-q", f.name, trace).status == 0
            for replayer in "null", "posix":
                child = subprocess.Popen([FEIGN, "replay", trace, "--root", fresh(tmp, f"{replayer}{count}"), "--order", "stream", "--replayer", replayer, "-q"], stdout=subprocess.DEVNULL)
                _, child.returncode, usage = os.wait4(child.pid, 0)
                assert child.returncode == 0
                grew[replayer] = usage.ru_maxrss - grew.get(replayer, 0)
        assert grew["posix"] - grew["null"] < 30 << 10, grew  # KiB


# Of requests that two threads wait for: who got one goes on when the other has destroyed their context.
SLOW_TO_COUNT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>
static volatile int got, gone;
long syscall(long n, ...) {
  va_list v;
  long a[6], (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  va_start(v, n);
  for (int i = 0; i < 6; ++i) a[i] = va_arg(v, long);
  va_end(v);
  for (int i = 0; n == SYS_io_destroy && !got && i < 10000; ++i) usleep(1000);
  long result = real(n, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (n == SYS_io_destroy) gone = 1;
  if (n == SYS_io_getevents && result > 0) {
    got = 1;
    for (int i = 0; !gone && i < 10000; ++i) usleep(1000);
    usleep(200000);
  }
  return result;
}
"""


def test_requests_whose_context_goes_while_somebody_waits_for_them():
    if sanitized() or not shutil.which("cc"):
        raise Skip("a plain compiler's object, and a command without sanitizers")
    with Tmp() as tmp:
        source, slow, trace = (os.path.join(tmp, n) for n in ("slow.c", "slow.so", "t.strace"))
        with open(source, "w", encoding="utf-8") as f:
            f.write(SLOW_TO_COUNT)
        subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", slow, source, "-ldl"], check=True)
        with open(trace, "w", encoding="utf-8") as f:
            for i, call in enumerate((
                    "7 io_setup(8, [0x7f00]) = 0", '7 openat(AT_FDCWD, "/a", O_RDWR|O_CREAT, 0600) = 4',
                    "7 clone(child_stack=0x7f1, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM) = 8",
                    '7 io_submit(0x7f00, 1, [{aio_data=0, aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=4, aio_buf="", aio_nbytes=512, aio_offset=0}]) = 1',
                    "8 io_getevents(0x7f00, 1, 1, [{data=0, obj=0x1, res=512, res2=0}], NULL) = 1", "7 io_destroy(0x7f00) = 0", "7 close(4) = 0")):
                thread, rest = call.split(" ", 1)
                f.write(f"{thread} 100.{i:06d} {rest} <0.000001>\n")
        # Memory that was given back is full of numbers below zero.
        env = {"LD_PRELOAD": slow, "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.perturb=165"}
        report = feign("replay", trace, "--root", fresh(tmp, "root"), "--order", "stream", "--json", env=env).json()
        assert report["mismatches"] == [] and report["ops"]["io_getevents"]["replayed"] == 1, report["mismatches"]


def test_think_pace_takes_about_the_recorded_time():
    with Tmp() as tmp:
        r = feign("replay", SHIPPED, "--root", tmp, "--json", "--pace", "think").json()
        # Pauses are kept: never faster than the longest chain of them, which is most of this trace.
        assert r["seconds"] > 0.3 * r["recorded_seconds"], r["seconds"]


def test_the_papers_figure_4_plays_both_of_its_roles():
    for name in ("figure4", "figure4-cxx"):
        r = feign("--plugin", os.path.join(BUILD, "tests/plugins", name + ".so"), "--json").json()
        assert r["activities"] == 5 and r["ops"]["pread64"]["replayed"] == 5 and r["replayer"] == r["trace"], r
        # It says that every read came back one byte short: that is what fidelity is for.
        assert r["mismatches"][0]["replayed"] == 4095 and r["mismatches"][0]["count"] == 5


def test_a_layer_of_a_plug_ins_own_is_named_in_the_report():
    r = feign("--plugin", os.path.join(BUILD, "tests/plugins/short-layer.so"), "--plugin", "null", "--json")
    if r.status == 2:  # it is a replayer, too
        r = feign("--plugin", os.path.join(BUILD, "tests/plugins/short-layer.so"), "--json")
    names = list(r.json()["ops"])
    assert "weather:event" in names, names


def test_order_stream_runs_every_activity_without_a_hang():
    with Tmp() as tmp:
        r = feign("replay", SHIPPED, "--root", tmp, "--json", "--order", "stream").json()
        assert r["activities"] == r["replayed"] + r["skipped"] and not r["interrupted"]
        assert len(r["streams"]) > 5


def test_native_format_replays_as_the_text_does():
    with Tmp() as tmp:
        native = os.path.join(tmp, "t.feign")
        assert feign("convert", SHIPPED, native).status == 0
        a = feign("replay", SHIPPED, "--root", fresh(tmp, "a"), "--json").json()
        b = feign("replay", native, "--root", fresh(tmp, "b"), "--json").json()
        for key in ("activities", "replayed", "matched", "mismatched", "skipped", "bytes_read", "bytes_written", "recorded_seconds"):
            assert a[key] == b[key], key
        same_tree(tree(os.path.join(tmp, "a")), tree(os.path.join(tmp, "b")))
        # … and through a modifier, which makes a new plan of it.
        c = feign("replay", native, "--with", "rebase,map=/srv/lab:/moved", "--root", fresh(tmp, "c"), "--json").json()
        assert c["mismatched"] == 0
        same_tree(tree(os.path.join(tmp, "a/srv/lab")), tree(os.path.join(tmp, "c/moved")))


def test_native_format_is_read_from_a_number_a_time_a_stream_and_a_path():
    with Tmp() as tmp:
        native, text = os.path.join(tmp, "t.feign"), os.path.join(tmp, "t.txt")
        assert feign("convert", SHIPPED, native).status == 0

        def lines(*options):
            assert feign("convert", native, text, "--provider", ",".join(("feign",) + options)).status == 0
            with open(text) as f:
                return [line.split(" ", 1)[1] for line in f]
        everything = lines()
        assert lines("from=5000") == everything[5000:]
        assert lines("from-time=200ms") == [l for l in everything if float(l.split()[0]) >= 0.2]
        assert lines("stream=3") == [l for l in everything if l.split("[")[1].startswith("3 ")]
        path = "/srv/lab/w/r/.git/HEAD"
        assert lines("path=" + path) == [l for l in everything if f'"{path}"' in l] != []


def fresh(tmp, name):
    path = os.path.join(tmp, name)
    os.makedirs(path)
    return path


def test_text_is_the_same_from_the_trace_and_from_the_native_format():
    with Tmp() as tmp:
        native, one, two = (os.path.join(tmp, n) for n in ("t.feign", "1.txt", "2.txt"))
        for args in ((SHIPPED, native), (SHIPPED, one), (native, two)):
            assert feign("convert", *args).status == 0
        with open(one) as a, open(two) as b:
            assert a.read() == b.read()


def corpus(name):
    folder = os.path.join(CORPUS, "strace")
    if not os.path.isdir(folder):
        raise Skip("../shared/corpus is not here")
    return [os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f.startswith(name + ".strace")]


def replays_corpus(name, at_least, same=True):
    with Tmp() as tmp:
        r = feign("replay", *corpus(name), "--cwd", "/srv/lab/w", "--root", tmp, "--json").json()
        assert r["fidelity"] >= at_least, (r["fidelity"], r["mismatches"])
        if same:
            same_tree(after(os.path.join(CORPUS, "strace", name + ".after")), tree(os.path.join(tmp, "srv/lab/w")))


def test_corpus_git_clone():
    replays_corpus("git-clone", 1.0)


def test_corpus_git_status():
    replays_corpus("git-status", 1.0, same=False)  # it leaves alone what it never looked at


def test_corpus_tar_create():
    replays_corpus("tar-create", 1.0)


def test_corpus_tar_extract():
    replays_corpus("tar-extract", 1.0)


def test_corpus_python_import():
    replays_corpus("python-import", 1.0)


def test_corpus_make():
    replays_corpus("make-j2", 0.995)


def test_corpus_cp():
    replays_corpus("cp", 1.0)


def test_corpus_programs_in_both_orders():
    """Databases and parallel programs, each in recorded order and by its dependencies."""
    top = os.path.join(CORPUS, "strace-apps")
    if not os.path.isdir(top):
        raise Skip("../shared/corpus is not here")
    folders = [f for f in sorted(os.listdir(top)) if f != "strace-variants"]
    assert folders
    for name in folders:
        traces = sorted(glob.glob(os.path.join(top, name, "trace*.gz")))
        for order in ("trace", "depend"):
            with Tmp() as tmp:
                r = feign("replay", *traces, "--root", tmp, "--order", order, "--json")
                assert r.status == 0, (name, order, r.err)
                report = r.json()
                assert report["matched"] > 0 and report["mismatched"] == 0, (name, order, report["fidelity"], report["mismatches"])


def traced(tmp, script, options=("-f", "-ttt", "-T", "-y")):
    """Runs a shell script under strace in tmp/w; the trace and the directory that it ran in."""
    work = fresh(tmp, "w")
    trace = os.path.join(tmp, "t.strace")
    done = subprocess.run(["strace", *options, "-o", trace, "sh", "-c", script], cwd=work, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if done.returncode != 0 or not os.path.exists(trace):
        raise Skip("strace does not work here: " + done.stderr.decode()[-200:])
    return trace, work


def replays_program(script, prepare=None):
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    with Tmp() as tmp:
        trace, work = traced(tmp, script)
        root = fresh(tmp, "root")
        r = feign("replay", trace, "--root", root, "--json").json()
        assert r["fidelity"] >= 0.995, (r["fidelity"], r["mismatches"])
        same_tree(tree(work), tree(root + work))


def test_program_that_makes_renames_links_and_removes():
    replays_program("mkdir -p a/b/c; echo hello > a/b/f; cp a/b/f a/g; mv a/b a/d; ln a/g a/h; ln -s g a/l; cat a/l > a/m; "
                    "rm a/h; rmdir a/d/c; (echo x; echo y) >> a/m; truncate -s 1000 a/g; mv a e; touch e/z; ls -l e > list")


def test_several_files_are_one_trace_ordered_by_time():
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    with Tmp() as tmp:
        # -ff: a file a process, without pids in the lines; what one makes another uses.
        work = fresh(tmp, "w")
        script = "for i in 1 2 3 4; do (mkdir d$i; echo x > d$i/f; cat d*/f > all$i); done; ls d1"
        done = subprocess.run(["strace", "-ff", "-ttt", "-T", "-y", "-o", os.path.join(tmp, "t.strace"), "sh", "-c", script],
                              cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        files = [os.path.join(tmp, f) for f in sorted(os.listdir(tmp)) if f.startswith("t.strace.")]
        if done.returncode != 0 or len(files) < 5:
            raise Skip("strace -ff does not work here")
        root = fresh(tmp, "root")
        r = feign("replay", *files, "--root", root, "--json").json()
        assert r["fidelity"] >= 0.995 and len(r["streams"]) == len(files), (r["fidelity"], r["mismatches"])
        assert 0 < r["recorded_seconds"] < 60
        same_tree(tree(work), tree(root + work))


def test_files_of_two_ranks_keep_their_ranks_and_their_order():
    with Tmp() as tmp:
        names = []
        for rank, at in ((0, 100), (1, 200)):  # the same process id on two hosts
            names.append(os.path.join(tmp, f"trace.{rank}"))
            with open(names[-1], "w") as f:
                f.write(f'77 1795229220.000{at} mkdir("/r{rank}", 0755) = 0 <0.000010>\n')
                f.write(f'77 1795229220.000{at + 10} openat(AT_FDCWD, "/r{1 - rank}", O_RDONLY|O_DIRECTORY) = {"-1 ENOENT (No such file)" if rank == 0 else "3"} <0.000010>\n')
        root = fresh(tmp, "root")
        r = feign("replay", *reversed(names), "--root", root, "--json").json()
        assert r["mismatched"] == 0 and r["replayed"] == 4, r["mismatches"]
        assert sorted(s["rank"] for s in r["streams"]) == [0, 1], r["streams"]


def test_streams_may_rename_directories_side_by_side():
    """Each in its own: what one renames must not change where another's names lie."""
    with Tmp() as tmp:
        trace = os.path.join(tmp, "trace")
        with open(trace, "w", encoding="ascii") as f:
            t = 0
            for i in range(-2, 2000):
                for s in range(4):
                    of, to = ("a", "b") if i % 2 == 0 else ("b", "a")
                    call = {-2: f'mkdir("/d/{s}", 0777)', -1: f'mkdir("/d/{s}/a", 0777)'}.get(i, f'rename("/d/{s}/{of}", "/d/{s}/{to}")')
                    f.write(f"{100 + s} {1795229220 + t / 1e6:.6f} {call} = 0 <0.000002>\n")
                    t += 10
        for i in range(5):
            os.mkdir(os.path.join(tmp, f"r{i}"))
            r = feign("replay", trace, "--root", os.path.join(tmp, f"r{i}"), "--order", "stream", "--json").json()
            assert r["mismatched"] == 0, r["mismatches"]


def test_program_with_pipes_and_processes():
    replays_program("seq 1 20000 | sort -r | tee sorted | wc -l > count; (sleep 0.05; echo late > late) & wait; cat sorted count late > all")


def test_program_that_appends_and_seeks():
    replays_program("for i in 1 2 3; do echo $i >> log; done; dd if=/dev/zero of=d bs=4k count=8 status=none; "
                    "dd if=log of=d bs=1 seek=100 conv=notrunc status=none; tail -c 5 d > t; tar cf x.tar log d; mkdir out; tar xf x.tar -C out")


def test_ctrl_c_ends_a_replay_with_a_report():
    with Tmp() as tmp:
        trace = os.path.join(tmp, "slow.strace")
        with open(trace, "w") as f:
            for i in range(100):
                f.write(f'{1000 + i * 10}.000000 openat(AT_FDCWD, "/f{i}", O_RDWR|O_CREAT, 0644) = 3 <0.000010>\n')
                f.write(f"{1000 + i * 10}.100000 close(3) = 0 <0.000010>\n")
        root = fresh(tmp, "root")
        child = subprocess.Popen([FEIGN, "replay", trace, "--root", root, "--pace", "think", "--json"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(2)
        child.send_signal(signal.SIGINT)
        time.sleep(0.005)   # as of timeout(1), which signals its command, and the command's group
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=20)
        import json
        r = json.loads(out)
        assert child.returncode == 1, err
        assert r["interrupted"] and "interrupted by signal 2" in r["stopped_by"], r
        assert 0 < r["replayed"] < 200, r["replayed"]


def test_a_replay_that_compared_nothing_meets_no_requirement():
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.strace")
        with open(trace, "w", encoding="utf-8") as f:
            f.write('1000.0 mkdir("/d", 0755) = 0 <0.000010>\n')
        without = ("replay", trace, "--with", "filter,kind=read", "--root", fresh(tmp, "root"))
        refuses(*without, "--require", "1", "-q", status=1, text="no activity.*--require")
        assert feign(*without).status == 0


def test_conditions_that_nothing_meets_and_rules_that_fit_no_path_are_said():
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.strace")
        with open(trace, "w", encoding="utf-8") as f:
            f.write('7 1000.0 execve("/bin/it", ["it"], 0x1) = 0 <0.000010>\n7 1000.1 mkdir("/d", 0755) = 0 <0.000010>\n'
                    '7 1000.2 exit_group(0) = ?\n')
        said = {"filter,path=/e/**": "filter: no activity meets the conditions\n", "filter,path=/d": "", "filter,kind=process": "",
                "filter,path=/e,drop=yes": "filter: no activity meets the conditions: none is dropped\n",
                "filter": "filter: no condition was given: nothing is dropped\n", "filter,preset=workload": "", "rebase,map=/e:/f,map=/d:/g": "rebase: no path is at or below /e\n",
                "rebase,map=/:/g,map=/d:/h": ""}
        root = fresh(tmp, "root")
        for modifier, text in said.items():
            r = feign("replay", trace, "--root", root, "-q", "--with", modifier)
            assert r.status == 0 and r.err == (text and "feign: " + text), (modifier, r.err)
        r = feign("replay", trace, "--root", root, "--with", "filter,rank=7")
        assert "fidelity   nothing came back that could be compared" in r.out, r.out
        assert "note       filter: no activity meets the conditions\n" in r.out, r.out


def test_the_report_ends_with_what_matters_most():
    with Tmp() as tmp:
        trace, root = os.path.join(tmp, "t.strace"), fresh(tmp, "root")
        with open(trace, "w", encoding="utf-8") as f:
            f.write('7 1000.0 mkdir("/d", 0755) = 0 <0.000010>\n7 1000.1 rmdir("/d") = 0 <0.000010>\n7 1000.2 mkdir("/d", 0755) = -1 EEXIST (File exists) <0.000010>\n')
        r = feign("replay", trace, "--root", root)
        places = [r.out.find(text) for text in ("by op, replayed above", "\ncame back otherwise\n", "\nwall  ", "\nfidelity  ")]
        assert r.out.startswith("by op") and -1 not in places and places == sorted(places), r.out


def test_a_directory_that_was_missing_comes_under_another_name():
    calls = ('mkdir("/w", 0755) = 0', 'symlink("f", "/w/l") = 0', 'mkdir("/w/l/d", 0755) = -1 ENOENT (No such file or directory)',
             'openat(AT_FDCWD, "/w/f", O_WRONLY|O_CREAT, 0644) = 3', 'mkdir("/w/l/d", 0755) = -1 ENOTDIR (Not a directory)',
             'mkdir("/w/n/d", 0755) = -1 ENOENT (No such file or directory)', 'link("/w/f", "/w/n") = 0',
             'mkdir("/w/n/d", 0755) = -1 ENOTDIR (Not a directory)', 'unlink("/w/f") = 0', 'mkdir("/w/f", 0755) = 0',
             'mkdir("/w/l/d", 0755) = 0', 'mkdir("/w/f/e/g", 0755) = -1 ENOENT (No such file or directory)',
             'mkdir("/w/l/e", 0755) = 0', 'mkdir("/w/f/e/g", 0755) = 0', 'symlink("q", "/w/k") = 0', 'mkdir("/w/q/d", 0755) = -1 ENOENT (No such file or directory)',
             'openat(AT_FDCWD, "/w/k", O_WRONLY|O_CREAT, 0644) = 4', 'mkdir("/w/q/d", 0755) = -1 ENOTDIR (Not a directory)')
    all_as_recorded(calls)


def all_as_recorded(calls):
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.strace")
        with open(trace, "w", encoding="ascii") as f:
            f.writelines(f"7 1000.{i:06d} {call} <0.000001>\n" for i, call in enumerate(calls))
        r = feign("replay", trace, "--root", fresh(tmp, "root"), "--json").json()
        assert r["matched"] == len(calls), r["mismatches"]


def test_names_lead_where_they_did_after_any_change_of_directories_and_links():
    """Random changes of a small tree are made for real; what each call said there it must say in the replay, too."""
    for seed in range(int(os.environ.get("FEIGN_SEEDS", "12"))):
        chance = random.Random(seed)

        def path(chance=chance):
            return "/".join(["/w", *(chance.choice("abcl") for _ in range(chance.randint(1, 3)))])

        with Tmp() as tmp:
            work, calls = fresh(tmp, "work"), ['mkdir("/w", 0755) = 0']
            os.mkdir(work + "/w")
            for _ in range(400):
                one, two = path(), path()
                kind = chance.choices(("mkdir", "rmdir", "rename", "symlink", "unlink", "stat", "open"), (6, 2, 4, 2, 1, 6, 6))[0]
                text, make = {
                    "mkdir": (f'mkdir("{one}", 0755)', lambda: os.mkdir(work + one)),
                    "rmdir": (f'rmdir("{one}")', lambda: os.rmdir(work + one)),
                    "rename": (f'rename("{one}", "{two}")', lambda: os.rename(work + one, work + two)),
                    "symlink": (f'symlink("{two.rpartition("/")[2]}", "{one}")', lambda: os.symlink(two.rpartition("/")[2], work + one)),
                    "unlink": (f'unlink("{one}")', lambda: os.unlink(work + one)),
                    "stat": (f'stat("{one}", {{...}})', lambda: os.stat(work + one)),
                    "open": (f'creat("{one}", 0644)', lambda: os.close(os.open(work + one, os.O_CREAT | os.O_WRONLY | os.O_TRUNC))),
                }[kind]
                try:
                    make()
                    result = "3" if kind == "open" else "0"
                    calls += [f"{text} = {result}"] + ["close(3) = 0"] * (kind == "open")
                except OSError as e:
                    calls.append(f"{text} = -1 {errno.errorcode[e.errno]} ({os.strerror(e.errno)})")
            trace, root = os.path.join(tmp, "t.strace"), fresh(tmp, "root")
            with open(trace, "w", encoding="ascii") as f:
                f.writelines(f"7 1000.{i:06d} {call} <0.000001>\n" for i, call in enumerate(calls))
            r = feign("replay", trace, "--root", root, "--json").json()
            assert r["matched"] == len(calls), (seed, r["mismatches"])
            same_tree(tree(work + "/w"), tree(root + "/w"))


def test_directories_stay_open_while_others_come_and_go():
    if shutil.which("strace") is None or sanitized():
        raise Skip("strace is not installed, or would see a sanitizer's own calls")
    calls = ['mkdir("/w", 0755) = 0', *(f'mkdir("/w/d{i}", 0755) = 0' for i in range(10))]
    for i in range(100):
        calls += [f'mkdir("/w/t{i}", 0755) = 0', f'rename("/w/t{i}", "/w/u{i}") = 0', f'rmdir("/w/u{i}") = 0',
                  f'access("/w/d{i % 10}/f", F_OK) = -1 ENOENT (No such file or directory)']
    with Tmp() as tmp:
        trace, log, root = os.path.join(tmp, "t.strace"), os.path.join(tmp, "log"), fresh(tmp, "root")
        with open(trace, "w", encoding="ascii") as f:
            f.writelines(f"7 1000.{i:06d} {call} <0.000001>\n" for i, call in enumerate(calls))
        done = subprocess.run(["strace", "-f", "-qq", "-o", log, "-e", "trace=openat,openat2", FEIGN, "replay", trace, "--root", root, "--require", "1"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if b"ptrace" in done.stdout or b"PTRACE" in done.stdout:
            raise Skip("no process may be traced here")
        assert done.returncode == 0, done.stdout
        with open(log, encoding="utf-8") as f:
            opened = sum("O_PATH|O_DIRECTORY" in line and "= -1" not in line for line in f)
        assert opened < 60, opened


def test_what_is_no_directory_leads_nowhere():
    for fd in ("1<pipe:[77]>", "0</dev/null>", "5<socket:[78]>"):
        with Tmp() as tmp:
            trace = os.path.join(tmp, "t.strace")
            with open(trace, "w", encoding="ascii") as f:
                f.write(f'7 1000.000000 newfstatat({fd}, "a/b", 0x1, 0) = -1 ENOTDIR (Not a directory) <0.000001>\n'
                        f'7 1000.000001 linkat({fd}, "a", AT_FDCWD, "/b", 0) = -1 ENOTDIR (Not a directory) <0.000001>\n')
            r = feign("replay", trace, "--root", fresh(tmp, "root"), "--json").json()
            assert r["mismatched"] == 0, (fd, r["mismatches"])


def test_a_descriptor_of_a_link_is_no_directory():
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.strace")
        with open(trace, "w", encoding="ascii") as f:
            f.writelines(f"7 1000.{i:06d} {call} <0.000001>\n" for i, call in enumerate(
                ('mkdir("/d", 0755) = 0', 'creat("/d/y", 0644) = 3', 'symlink("d", "/l") = 0', 'openat(AT_FDCWD, "/l", O_PATH|O_NOFOLLOW) = 7', 'openat(7, "y", O_RDONLY) = -1 ENOTDIR (Not a directory)',
                 'unlinkat(7, "y", 0) = -1 ENOTDIR (Not a directory)')))
        r = feign("replay", trace, "--root", fresh(tmp, "root"), "--json").json()
        assert r["mismatched"] == 0 and os.path.exists(os.path.join(tmp, "root/d/y")), r["mismatches"]


def test_a_file_without_a_name_is_used_by_its_descriptors():
    all_as_recorded(('openat(AT_FDCWD, "/f", O_RDWR|O_CREAT|O_EXCL, 0600) = 3', 'write(3, "abc", 3) = 3', 'unlink("/f") = 0', 'openat(AT_FDCWD, "/proc/self/fd/3", O_RDONLY) = 4',
                     'truncate("/proc/self/fd/3", 10) = 0', 'lseek(3, 0, SEEK_END) = 10', 'truncate("/dev/fd/4", 5) = 0', 'lseek(4, 0, SEEK_END) = 5', 'access("/proc/self/fd/3", R_OK|W_OK) = 0',
                     'faccessat2(AT_FDCWD, "/proc/self/fd/3", F_OK, 0) = 0', 'setxattr("/proc/self/fd/3", "user.a", "1", 1, 0) = 0', 'getxattr("/proc/self/fd/3", "user.a", "1", 100) = 1',
                     'listxattr("/proc/self/fd/4", "user.a", 100) = 7', 'removexattr("/proc/self/fd/4", "user.a") = 0'))


def test_names_go_on_from_names_below_proc():
    """Of calls, too, that make, move or remove the last name, or use it itself."""
    all_as_recorded(('mkdir("/d", 0755) = 0', 'openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = 3', 'mkdir("/proc/self/fd/3/e", 0755) = 0', 'symlink("e", "/dev/fd/3/l") = 0',
                     'readlink("/d/l", "e", 10) = 1', 'chdir("/d") = 0', 'lstat("/proc/self/cwd/l", {st_mode=S_IFLNK|0777, st_size=1, ...}) = 0',
                     'rename("/d/e", "/proc/self/cwd/f") = 0', 'rename("/proc/7/cwd/f", "/d/g") = 0', 'unlink("/proc/self/fd/3/l") = 0',
                     'openat(AT_FDCWD, "/proc/self/cwd/h", O_WRONLY|O_CREAT|O_EXCL, 0600) = 4', 'openat(AT_FDCWD, "/proc/self/fd/3/h", O_RDONLY|O_NOFOLLOW) = 5',
                     'link("/proc/self/cwd/h", "/proc/self/fd/3/i") = 0', 'unlink("/d/h") = 0', 'unlink("/d/i") = 0', 'rmdir("/d/g") = 0', 'rmdir("/d") = 0'))


def test_names_go_on_from_a_directory_that_no_flag_told():
    all_as_recorded(('openat(AT_FDCWD, "/d", O_RDONLY) = 3', 'openat(AT_FDCWD, "/proc/self/fd/3/f", O_RDONLY) = 4', 'read(4, "x"..., 10) = 10',
                     'mkdir("/proc/self/fd/3/e", 0755) = 0', 'unlink("/d/f") = 0', 'rmdir("/d/e") = 0', 'rmdir("/d") = 0'))


def test_names_do_not_go_on_from_a_file_without_a_name():
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.strace")
        with open(trace, "w", encoding="ascii") as f:
            f.write('mkdir("/d", 0755) = 0\nopenat(AT_FDCWD, "/d", O_RDWR|O_TMPFILE, 0600) = 3\n'
                    'openat(AT_FDCWD, "/proc/self/fd/3/f", O_WRONLY|O_CREAT, 0600) = -1 ENOTDIR (Not a directory)\n'
                    'mkdir("/proc/self/fd/3/f", 0755) = -1 ENOTDIR (Not a directory)\n')
        r = feign("replay", trace, "--root", fresh(tmp, "root"), "--json").json()
        assert r["mismatched"] == 0 and not os.path.exists(os.path.join(tmp, "root/d/f")), r["mismatches"]


def test_a_descriptor_of_a_file_is_read_as_a_link():
    all_as_recorded(('mkdir("/d", 0755) = 0', 'openat(AT_FDCWD, "/d/f", O_RDWR|O_CREAT, 0600) = 3', 'readlinkat(3, "", 0x1, 100) = -1 ENOENT (No such file or directory)',
                     'symlink("f", "/d/l") = 0', 'openat(AT_FDCWD, "/d/l", O_PATH|O_NOFOLLOW) = 4', 'readlinkat(4, "", "f", 100) = 1',
                     'unlink("/d/l") = 0', 'readlinkat(4, "", "f", 100) = 1', 'symlink("other", "/d/l") = 0', 'readlinkat(4, "", "f", 100) = 1',
                     'openat(AT_FDCWD, "/there", O_RDONLY) = 5', 'readlinkat(5, "", 0x1, 100) = -1 ENOENT (No such file or directory)', 'openat(AT_FDCWD, "/there", O_RDONLY) = 6'))


def test_a_slash_behind_a_link_that_leads_to_itself():
    """It is gone on from by calls, too, that follow no links."""
    calls = ['symlink("d", "/d") = 0', 'creat("/x", 0600) = 3', 'creat("/g", 0600) = 4'] + [
        f"{call}) = -1 ELOOP (x)" for call in ('lstat("/d/", 0x7f', 'lstat("/d/.", 0x7f', 'link("/d/", "/x"', 'link("/d/", "/y"', 'readlink("/d/", 0x7f, 99', 'lchown("/d/", 0, 0',
                                               'lgetxattr("/d/", "user.a", 0x7f, 9', 'stat("/d/", 0x7f', 'openat(AT_FDCWD, "/d/", O_RDONLY|O_NOFOLLOW', 'rename("/d/x", "/x"')]
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.strace")
        with open(trace, "w", encoding="ascii") as f:
            f.writelines(f"7 1000.{i:06d} {call} <0.000001>\n" for i, call in enumerate(calls))
        r = feign("replay", trace, "--root", fresh(tmp, "root"), "--json").json()
        assert r["mismatched"] == 0 and set(tree(os.path.join(tmp, "root"))) - {".feign"} == {"d", "x", "g"}, r["mismatches"]


def test_a_root_of_one_call_is_where_its_names_begin():
    how = "{flags=O_RDWR|O_CREAT, mode=0644, resolve=RESOLVE_IN_ROOT}, 24"
    all_as_recorded(('mkdir("/w", 0755) = 0', 'mkdir("/w/d", 0755) = 0', 'openat(AT_FDCWD, "/w", O_RDONLY|O_DIRECTORY) = 3', 'symlink("/d", "/w/l") = 0', f'openat2(3, "../../x", {how}) = 4', 'stat("/w/x", 0x1) = 0',
                     f'openat2(3, "/l/y", {how}) = 5', 'stat("/w/d/y", 0x1) = 0', f'openat2(3, "/l/../z", {how}) = 6', 'stat("/w/z", 0x1) = 0', 'stat("/w/l/y", 0x1) = -1 ENOENT (No such file or directory)'))


def test_who_leaves_its_root_behind_stays_where_it_is():
    all_as_recorded(('mkdir("/w", 0755) = 0', 'mkdir("/w/r", 0755) = 0', 'chdir("/w") = 0', 'chroot("r") = 0', 'getcwd("(unreachable)/w", 1024) = 16', 'mkdir("d", 0755) = 0', 'rmdir("d") = 0',
                     'chdir("..") = 0', 'rmdir("w/r") = 0'))


def test_a_long_trace_goes_on_where_what_was_read_ahead_ends():
    with Tmp() as tmp:
        trace = os.path.join(tmp, "long.strace")
        with open(trace, "w", encoding="ascii") as f:
            for pid in (7, 8):
                f.write(f'{pid} 1000.00000{pid} openat(AT_FDCWD, "/{pid}", O_RDWR|O_CREAT, 0644) = 3 <0.000001>\n')
            at = 0
            for i in range(20_000):  # each position tells what was written before it
                vector = ", ".join(f'{{iov_base="x", iov_len={n}}}' for n in range(i % 4 + 1))
                at += sum(range(i % 4 + 1))
                for pid in (7, 8):
                    f.write(f"{pid} 1001.{i * 40 + pid:06d} writev(3, [{vector}], {i % 4 + 1}) = {sum(range(i % 4 + 1))} <0.000001>\n")
                    f.write(f"{pid} 1001.{i * 40 + 20 + pid:06d} lseek(3, 0, SEEK_CUR) = {at} <0.000001>\n")
        for order in ("trace", "stream"):
            r = feign("replay", trace, "--root", fresh(tmp, order), "--json", "--order", order).json()
            assert r["matched"] == r["replayed"] == 80_002, r


def test_what_is_written_over_and_over_needs_no_more_room():
    """Unless --max-bytes says how many bytes may be written."""
    with Tmp() as tmp:
        root, trace = fresh(tmp, "small"), os.path.join(tmp, "again.strace")
        with open(trace, "w") as f:
            f.write('1000.000000 openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0644) = 3 <0.000010>\n')
            for i in range(500):
                f.write(f'1000.{i * 2 + 1:06d} pwrite64(3, "x"..., 65536, 0) = 65536 <0.000001>\n')
                f.write(f'1000.{i * 2 + 2:06d} fallocate(3, 0, 0, 65536) = 0 <0.000001>\n')
        assert feign("replay", trace, "--root", root, "--max-bytes", "1m").status == 1
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", root], stderr=subprocess.DEVNULL).returncode:
            raise Skip("mounting a small tmpfs is not permitted")
        try:
            r = feign("replay", trace, "--root", root, "--json", "--require", "1")
            assert r.status == 0 and r.json()["replayed"] == 1001, r.err
        finally:
            subprocess.run(["umount", root], check=True)


def test_what_an_earlier_replay_left_is_room_for_the_next_one():
    """What it prepared is written anew, what it made goes: both may take more than half of the root."""
    with Tmp() as tmp:
        root, reads, writes = fresh(tmp, "small"), os.path.join(tmp, "reads.strace"), os.path.join(tmp, "writes.strace")
        with open(reads, "w") as f:
            f.write('1000.000000 openat(AT_FDCWD, "/f", O_RDWR) = 3 <0.000010>\n'
                    '1000.000100 pread64(3, ""..., 600000, 0) = 600000 <0.000010>\n1000.000200 pwrite64(3, ""..., 9, 0) = 9 <0.000010>\n')
        with open(writes, "w") as f:
            f.write('1000.000000 openat(AT_FDCWD, "/g", O_RDWR|O_CREAT, 0644) = 3 <0.000010>\n')
            for i in range(12):
                f.write(f'1000.{i + 1:06d} write(3, ""..., 65536) = 65536 <0.000001>\n')
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", root], stderr=subprocess.DEVNULL).returncode:
            raise Skip("mounting a small tmpfs is not permitted")
        try:
            for trace, content in ((reads, "random"), (reads, "random"), (writes, "sparse"), (writes, "sparse"), (reads, "random")):
                r = feign("replay", trace, "--root", root, "--content", content, "--require", "1", "-q")
                assert r.status == 0, (trace, r.err)
            with open(os.path.join(root, "mine"), "wb") as f:
                f.write(bytes(400_000))
            r = feign("replay", writes, "--root", root, "--content", "random", "-q")
            assert r.status == 1 and "95 % of what was free" in r.err, (r.status, r.err)
            with open(reads) as f, open(writes, "w") as more:
                more.write(f.read().replace("600000", "700000"))
            r = feign("replay", writes, "--root", root, "--content", "random", "-q")
            assert r.status == 2 and "have 700000 bytes, and 95 % of what is free are " in r.err, (r.status, r.err)
            own = os.path.join(root, "own")  # where nothing is removed, nothing is begun
            os.makedirs(os.path.join(own, "mine"))
            with open(writes, "w") as f:
                f.write('openat(AT_FDCWD, "/a/f", O_RDONLY) = 3\nfstat(3, {st_mode=S_IFREG|0644, st_size=700000, ...}) = 0\n')
            r = feign("replay", writes, "--root", own, "--content", "random", "-q")
            assert r.status == 2 and "have 700000 bytes" in r.err and os.listdir(own) == ["mine"], (r.status, r.err, os.listdir(own))
        finally:
            subprocess.run(["umount", root], check=True)


def test_full_root_is_reported_with_how_far_it_came():
    with Tmp() as tmp:
        root = fresh(tmp, "small")
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", root], stderr=subprocess.DEVNULL).returncode:
            raise Skip("mounting a small tmpfs is not permitted")
        try:
            trace = os.path.join(tmp, "big.strace")
            with open(trace, "w") as f:
                f.write('1000.000000 openat(AT_FDCWD, "/big", O_RDWR|O_CREAT, 0644) = 3 <0.000010>\n')
                for i in range(1000):
                    f.write(f'1000.{i + 1:06d} write(3, "x"..., 65536) = 65536 <0.000001>\n')
            r = feign("replay", trace, "--root", root, "--json")
            assert r.status == 1, r.err
            assert re.search("no space left|--max-bytes", r.err) and "big.strace:" in r.err, r.err
            report = r.json()
            assert report["interrupted"] and 0 < report["bytes_written"] < 1 << 20
        finally:
            subprocess.run(["umount", root], check=True)


def test_a_root_in_which_a_replay_goes_on_is_not_prepared():
    """Its files would be removed under it."""
    with Tmp() as tmp:
        root, trace = fresh(tmp, "root"), os.path.join(tmp, "t.strace")
        with open(trace, "w") as f:
            f.write('1000.000000 openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0644) = 3 <0.000010>\n')
        meanwhile = f"{FEIGN} replay {trace} -q --root "
        r = feign("replay", trace, "--root", root, "-q", "--before", meanwhile + '"$FEIGN_ROOT"')
        assert r.status == 2 and f"prepare {root}: another replay is going on in it" in r.err, (r.status, r.err)
        r = feign("replay", trace, "--root", root, "-q", "--before", "sleep 5 >/dev/null 2>&1 &")  # which does not hold it
        assert r.status == 0, r.err
        r = feign("replay", trace, "--root", root, "-q", "--require", "1")
        assert r.status == 0, r.err
        # Who locks the directory itself has purposes of his own; who died as he made the mark has made nothing else.
        with open(os.path.join(fresh(tmp, "other"), ".feign"), "w"):
            pass
        for _ in range(2):
            done = subprocess.run(["flock", os.path.join(tmp, "other"), FEIGN, "replay", trace, "--root", os.path.join(tmp, "other"), "-q", "--require", "1"], stderr=subprocess.PIPE)
            assert done.returncode == 0, done.stderr


def test_a_root_that_was_not_empty_is_not_cleaned():
    with Tmp() as tmp:
        root = fresh(tmp, "root")
        os.makedirs(os.path.join(root, "srv/lab/w/r"))
        with open(os.path.join(root, "srv/lab/w/r/mine"), "w") as f:
            f.write("x")
        refuses("replay", SHIPPED, "--root", root, text="/srv/lab/w/r is there and must not be")
        assert os.path.exists(os.path.join(root, "srv/lab/w/r/mine"))


LOCKS = '''
import ctypes, os, struct, sys
from fcntl import fcntl, F_SETLK, F_GETLK, F_RDLCK, F_WRLCK, F_UNLCK
def lock(fd, kind, start=0, length=0, how=F_SETLK, whence=0):
    try: fcntl(fd, how, struct.pack("hhqqi", kind, whence, start, length, 0))
    except OSError as e: return e.errno
    return 0
def child(what):
    pid = os.fork()
    if pid == 0: os._exit(0 if what() else 1)
    assert os.waitpid(pid, 0)[1] == 0
m = os.open("f", os.O_RDWR | os.O_CREAT)
ctypes.CDLL(None).mmap(None, ctypes.c_size_t(4096), 1, 1, m, ctypes.c_long(0))
assert lock(m, F_WRLCK) == 0; os.close(m)
child(lambda: lock(os.open("f", os.O_RDWR), F_WRLCK) == 0)  # what is mapped keeps none
a = os.open("f", os.O_RDWR | os.O_CREAT); b = os.open("f", os.O_RDWR); r = os.open("f", os.O_RDONLY)
assert lock(a, F_WRLCK, 0, 10) == 0 and lock(b, F_WRLCK, 5, 10) == 0 and lock(b, F_UNLCK, 0, 5) == 0   # one process, two descriptors
assert lock(r, F_WRLCK) == 9 and lock(r, F_RDLCK, 100, 1) == 0
os.lseek(b, 50, os.SEEK_SET); assert lock(b, F_WRLCK, 0, 1, whence=1) == 0
child(lambda: lock(a, F_WRLCK, 7, 1) == 11 and lock(b, F_RDLCK, 50, 1) == 11 and lock(a, F_WRLCK, 0, 1) == 0 and lock(a, F_WRLCK, 0, 1, F_GETLK) == 0)
assert lock(a, F_WRLCK, 0, 1) == 0    # the child's went with it, though its descriptors were ours
os.close(r)                           # and all of ours with that
child(lambda: lock(b, F_WRLCK) == 0 and os.close(a) is None and lock(b, F_WRLCK) == 0)
assert lock(b, F_WRLCK) == 0
up, down, d = os.pipe(), os.pipe(), os.dup(b)
if os.fork() == 0:                    # keeps all of them open meanwhile
    assert lock(a, F_WRLCK) == 11
    os.write(up[1], b"1"); os.read(down[0], 1); os._exit(0)
os.read(up[0], 1)
os.close(d)                           # a copy does it, too
child(lambda: lock(b, F_WRLCK) == 0)
os.write(down[1], b"1"); os.wait()
assert lock(a, F_RDLCK) == 0
child(lambda: lock(b, F_RDLCK) == 0 and lock(b, F_WRLCK) == 11)
OFD = 37                              # F_OFD_SETLK: of the open file, also where a process has locks by the same descriptor
assert lock(a, F_WRLCK, 9, 1, OFD) == 11 and lock(a, F_UNLCK) == 0 and lock(a, F_WRLCK, 9, 1, OFD) == 0 and lock(a, F_WRLCK, 9, 1) == 11
assert lock(a, F_WRLCK, 0, 5) == 0 and lock(b, F_WRLCK, 0, 1, OFD) == 11 and lock(b, F_WRLCK, 20, 1, OFD) == 0 and lock(b, F_WRLCK, 20, 1) == 11
child(lambda: lock(a, F_RDLCK, 9, 1) == 11 and lock(a, F_UNLCK, 9, 1, OFD) == 0 and lock(a, F_RDLCK, 9, 1) == 0)  # a fork's, too
os.close(b)
assert lock(a, F_WRLCK, 20, 1, OFD) == 0
g = os.open("g", os.O_RDWR | os.O_CREAT); r = os.open("g", os.O_RDONLY); p = os.open("g", os.O_PATH)
assert lock(p, F_RDLCK) == 9 and lock(r, F_RDLCK) == 0 and lock(g, F_WRLCK) == 0 and lock(p, F_UNLCK) == 9  # each as its descriptor may
child(lambda: lock(g, F_RDLCK) == 11)
os.dup2(a, r)                         # closes what is there
child(lambda: lock(g, F_WRLCK) == 0)
d = os.dup(g); assert lock(g, F_WRLCK) == 0
os.dup2(g, d)                         # though it is a copy of the same
child(lambda: lock(g, F_WRLCK) == 0)
'''


def test_record_locks_are_of_processes():
    """fcntl's: not of descriptors, not inherited, gone when any descriptor of the file is closed; they conflict with those of open files."""
    if shutil.which("strace") is None:
        raise Skip("strace is not installed")
    with Tmp() as tmp:
        work = os.path.join(tmp, "w")
        os.mkdir(work)
        trace = os.path.join(tmp, "t.strace")
        done = subprocess.run(["strace", "-f", "-ttt", "-T", "-y", "-o", trace, sys.executable, "-c", LOCKS], cwd=work,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout
        for how in ("--order", "trace"), ("--pace", "think,scale=0.01"), ("--order", "depend"):
            with Tmp() as root:
                r = feign("replay", trace, "--root", root, "--cwd", work, *how, "--with", "filter,preset=workload", "--json", "--require", "1")
                report = r.json()
                assert r.status == 0 and report["ops"]["fcntl"]["matched"] >= 20, str(how) + r.err + json.dumps(report["mismatches"])


if __name__ == "__main__":
    main(globals())
