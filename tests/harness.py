# SPDX-License-Identifier: MIT
"""What the tests of whole commands share."""
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import traceback

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.abspath(os.environ.get("FEIGN_BUILD", os.path.join(TOP, "build")))
FEIGN = os.path.join(BUILD, "core", "feign")
CORPUS = os.path.join(TOP, "..", "shared", "corpus")
os.environ["PATH"] += ":/usr/sbin:/sbin"  # chroot, mkfs: an ordinary user's PATH lacks them


class Skip(Exception):
    """Raised by a test that cannot run here, with the reason."""


class Result:
    def __init__(self, done):
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr

    def json(self):
        return json.loads(self.out)


def feign(*args, timeout=120, env=None, cwd=None):
    done = subprocess.run([FEIGN, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout,
                          env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, cwd=cwd)
    done.stdout, done.stderr = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    if done.returncode < 0 or "Sanitizer" in done.stderr or "runtime error" in done.stderr:
        raise AssertionError(f"feign {' '.join(map(str, args))}: status {done.returncode}\n{done.stderr[-4000:]}")
    return Result(done)


def sanitized():
    """Whether the command is built with a sanitizer, which has memory, threads and calls of its own."""
    with open(os.path.join(BUILD, "build.ninja"), encoding="utf-8") as f:
        return "-fsanitize" in f.read()


def bounded(write, *args, counts=(2000, 200000)):
    """Memory does not grow with the trace: the peak of `feign args` after write(count) for a small and a large one.
    (What the test itself holds when it starts the command counts, too: write() keeps nothing.)"""
    if sanitized():
        raise Skip("a sanitizer's own memory is counted, too")
    peak = []
    for count in counts:
        write(count)
        child = subprocess.Popen([FEIGN, *args], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
        assert status == 0
        peak.append(usage.ru_maxrss)
    assert peak[1] < peak[0] + 8192, peak


def refuses(*args, text, status=2, **how):
    """The command exits with `status` and says something that matches `text`, in few lines."""
    r = feign(*args, **how)
    assert r.status == status, f"status {r.status}, want {status}: {r.err}"
    assert re.search(text, r.err), f"said {r.err!r}, want {text!r}"
    assert r.err.count("\n") <= 3, r.err
    return r


def refuses_to_write_nothing(name, kinds):
    """A writer has no place for the trace's only call, and leaves nothing."""
    with Tmp() as tmp:
        trace = os.path.join(tmp, "x.strace")
        with open(trace, "w", encoding="ascii") as f:
            f.write("100 1700000001.000000 fork() = 101 <0.000010>\n")
        refuses("convert", trace, os.path.join(tmp, name), text=f"calls of {kinds} alone, of which there are none.*: nothing is written")
        assert os.listdir(tmp) == ["x.strace"], os.listdir(tmp)


def tree(path):
    """Entries below a directory: {path: (type, size or None for directories, link target)}."""
    out = {}
    for folder, dirs, files in os.walk(path):
        for name in dirs + files:
            full = os.path.join(folder, name)
            st = os.lstat(full)
            kind = {stat.S_IFLNK: "l", stat.S_IFDIR: "d", stat.S_IFREG: "f", stat.S_IFIFO: "p", stat.S_IFSOCK: "s"}.get(stat.S_IFMT(st.st_mode), "?")
            out[os.path.relpath(full, path)] = (kind, None if kind == "d" else st.st_size)
    return out


def after(path):
    """The same of a .after file."""
    out = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            kind, size, name = line.rstrip("\n").split(" ", 2)
            if name != ".":
                out[name[2:]] = (kind, None if kind == "d" else int(size))
    return out


def same_tree(a, b):
    missing, extra = sorted(set(a) - set(b)), sorted(set(b) - set(a))
    differ = sorted(k for k in set(a) & set(b) if a[k] != b[k])
    assert not missing and not extra and not differ, f"missing {missing[:5]}, extra {extra[:5]}, differ {[(k, a[k], b[k]) for k in differ[:5]]}"


class Tmp(tempfile.TemporaryDirectory):
    def __init__(self):
        super().__init__(prefix="feign-test.")


def main(tests):
    """Runs functions test_* of a module; prints a line for each that fails or is skipped."""
    # What a shell starts in the background, or nohup does, ignores them, and so would all that is run here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    passed = failed = skipped = 0
    wanted = sys.argv[1:]
    if unknown := [name for name in wanted if not name.startswith("test_") or name not in tests]:
        sys.exit(f"no such test: {', '.join(unknown)}")
    for name, function in sorted(tests.items()):
        if not name.startswith("test_") or (wanted and name not in wanted):
            continue
        try:
            function()
            passed += 1
        except Skip as why:
            skipped += 1
            print(f"skipped: {name}: {why}")
        except Exception:
            failed += 1
            print(f"FAIL {name}\n{traceback.format_exc()}")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    sys.exit(1 if failed else 0)
