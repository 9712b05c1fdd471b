#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random programs (tests/random_calls.c) traced here: what resolve says of each call, and what the kernel said.

FEIGN_SEEDS=N runs N programs a test instead of the few that are the default, FEIGN_SEED=N starts at that seed,
FEIGN_CALLS=N makes each that long, FEIGN_FEATURES chooses what test_everything uses, FEIGN_KEEP=DIRECTORY keeps the trace of a
failure there.
"""
import concurrent.futures
import json
import os
import random
import re
import resource
import shutil
import subprocess
import tempfile

from harness import BUILD, TOP, Skip, Tmp, feign, main, tree

# The features of random_calls.c, by bit.
FEATURES = ("link-middle link-dotdot copy-offsets fallocate-modes range-cloexec link-end slash-end odd-names gone-base set-flags "
            "exec threads forks shared-forks tmpfile exchange empty-path path-only holes vectors2 range-unshare "
            "dot-end dot-missing bad-base bad-arguments").split()
BIT = {name: 1 << i for i, name in enumerate(FEATURES)}
ALL = (1 << len(FEATURES)) - 1
CALLS = int(os.environ.get("FEIGN_CALLS", 150))
FIRST = int(os.environ.get("FEIGN_SEED", 1))

TRACED = ("open openat creat read write pread64 pwrite64 readv writev preadv pwritev preadv2 pwritev2 lseek dup dup2 dup3 fcntl close "
          "close_range unshare ftruncate truncate fallocate rename renameat renameat2 link linkat symlink symlinkat unlink unlinkat rmdir mkdir "
          "mkdirat chdir fchdir sendfile copy_file_range clone clone3 fork vfork stat lstat fstat newfstatat access faccessat readlink "
          "readlinkat execve exit exit_group").split()
STRACE = ["strace", "-f", "--seccomp-bpf", "-ttt", "-T", "-y", "-e", "trace=" + ",".join("?" + c for c in TRACED), "-e", "signal=none"]
O_ACCMODE, O_APPEND = 3, os.O_APPEND
CLONE_FILES = 0x400
READS = {"read", "readv", "preadv", "preadv2", "pread64"}
WRITES = {"write", "writev", "pwritev", "pwritev2", "pwrite64"}
COPIES = {"sendfile", "copy_file_range"}
MAKES = {"mkdirat", "symlinkat"}
NO_FOLLOW = {"lstat", "readlinkat", "unlink", "unlinkat", "rmdir", "rename", "renameat2"}

LINE = re.compile(r"(\d+) [\d.]+ \[\d+ (?:rank \d+ )?-?\d+/(-?\d+)\] (\w+)\((.*)\) = (\S+) <[\d.]+>(.*)$")
HANDLE = re.compile(r"\b(?:fd|oldfd|in_fd|fd_in|dirfd|olddirfd)=#(\d+)")
HANDLE2 = re.compile(r"\b(?:out_fd|fd_out)=#(\d+)")
PATH = re.compile(r' path="((?:[^"\\]|\\.)*)"')

program = None


def compiled():
    """The program; built once, and Skip if this cannot be done here."""
    global program
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    if program is None:
        cc = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if cc is None:
            raise Skip("no C compiler")
        program = tempfile.TemporaryDirectory(prefix="feign-test.")
        # Static: a dynamic one starts with calls of its own.
        done = subprocess.run([cc, "-O1", "-static", "-pthread", "-o", os.path.join(program.name, "random-calls"),
                               os.path.join(TOP, "tests", "random_calls.c")], stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise AssertionError(done.stderr[-2000:])
    return os.path.join(program.name, "random-calls")


class Fd:
    def __init__(self, row):
        self.fd, self.position, self.flags, self.file, self.size, self.links, self.path = row


def unescape(text):
    return re.sub(r"\\(x[0-9a-f]{2}|.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], chr(int(m[1][1:], 16)) if len(m[1]) == 3 else m[1]), text)


class Said:
    """A line of the text writer."""

    def __init__(self, line):
        m = LINE.match(line)
        assert m, f"not understood: {line!r}"
        self.line, self.tid, self.op, self.arguments, self.tail = line, int(m[2]), m[3], m[4], m[6]
        self.result = m[5]
        number = lambda found: int(found[1]) if found else None
        self.handle, self.handle2 = number(HANDLE.search(self.arguments)), number(HANDLE2.search(self.arguments))
        self.made = number(re.search(r" handle=#(\d+)", self.tail))
        self.at = number(re.search(r" at=(\d+)", self.tail))
        self.file = number(re.search(r" file=(\d+)", self.tail))
        path = PATH.search(self.tail)
        self.path = unescape(path[1]) if path else None
        self.no_file = "[not a file]" in self.tail


class Pairs:
    """One to one, or it says with whom each was paired before."""

    def __init__(self):
        self.there, self.back = {}, {}

    def wrong(self, kernel, said):
        if self.there.setdefault(kernel, said) == said and self.back.setdefault(said, kernel) == kernel:
            return None
        return f"{said}, which was {self.back.get(said)}; {kernel} was {self.there[kernel]}"


class Check:
    """Goes over the calls with what the kernel said of each, and keeps the tables of descriptions."""

    def __init__(self):
        self.files, self.descriptions = Pairs(), Pairs()
        self.tables, self.last, self.renamed, self.by_link = {}, 0, set(), set()
        self.problems = []

    def problem(self, kind, call, said, text, want):
        self.problems.append({"kind": kind, "n": call["n"], "call": call["call"], "tid": call["tid"], "said": said.line,
                              "text": text, "want": want, "log": call})

    def call(self, call, said):
        before = {row[0]: Fd(row) for row in call["before"]}
        after = {row[0]: Fd(row) for row in call["after"]}
        table = self.tables.setdefault(call["tid"], {})  # a thread may have its own
        for fd in [fd for fd in table if fd not in before]:
            del table[fd]  # closed by an exec
        fd, result, name = before.get(call["fd"]), call["result"], call["call"]
        assert all(f in table for f in before), ("a descriptor came from nowhere", call)
        tell = lambda kind, text, want: self.problem(kind, call, said, text, want)

        # The description, the file and the path behind the descriptor.
        if call["fd"] >= -1 and "fd" in call and (call["fd"] >= 0 or not call["paths"]) and name not in ("close_range", "unshare", "clone", "execve", "exit", "exit_group"):
            if fd is None:
                if said.handle is not None and not said.no_file and result == -9:
                    tell("handle", f"handle {said.handle}", "none: EBADF")
            elif said.handle is None or said.no_file:
                tell("handle", "no handle" if said.handle is None else "no file", f"description {table[fd.fd]} of {fd.path}")
            else:
                if wrong := self.descriptions.wrong(table[fd.fd], said.handle):
                    tell("handle", wrong, f"description {table[fd.fd]}")
                if said.file is None:
                    tell("file", "no file", fd.file)
                elif wrong := self.files.wrong(fd.file, said.file):
                    tell("file", wrong, fd.file)
                if name not in COPIES and said.path != fd.path and fd.links > 0 and fd.file not in self.renamed | self.by_link and not fd.path.endswith(" (deleted)"):
                    tell("path", said.path, fd.path)
            if name in COPIES and (to := before.get(call["fd2"])) is not None and said.handle2 is not None:
                if wrong := self.descriptions.wrong(table[to.fd], said.handle2):
                    tell("handle", wrong, f"description {table[to.fd]}")

        # The offset.
        if fd is not None and result >= 0 and name in READS | WRITES | COPIES:
            append = name in WRITES and (fd.flags & O_APPEND or (name == "pwritev2" and call["flags"] & 16))
            want = fd.size if append else call["at"] if call["at"] >= 0 else fd.position
            if said.at != want and not (append and result == 0):
                tell("offset", said.at, want)

        # The file behind the path.
        if call["paths"] and call["fd"] < 0 and result >= 0:
            first = call["paths"][0]
            if name in ("open", "openat", "creat"):
                want = after[result].file
            elif name in MAKES:
                want = first["now"]
            elif name in NO_FOLLOW:
                want = first["name"]
            else:
                want = first["file"]
            if said.file is None:
                tell("file", "no file", want)
            elif wrong := self.files.wrong(want, said.file):
                tell("file", wrong, want)
            if name in ("rename", "renameat2", "linkat", "unlink", "unlinkat"):
                self.renamed.add(first["name"])
                if name in ("rename", "renameat2"):
                    self.renamed.add(call["paths"][1]["name"])

        # What it does to descriptors.
        if name in ("open", "openat", "creat") and result >= 0:
            self.last += 1
            table[result] = self.last
            if said.made is None:
                tell("handle", "none made", result)
            elif wrong := self.descriptions.wrong(self.last, said.made):
                tell("handle", wrong, self.last)
            if call["paths"][0]["uses"] & (BIT["link-end"] | BIT["link-middle"]) or (call["flags"] & 0o20200000) == 0o20200000:
                self.by_link.add(after[result].file)
        elif (name in ("dup", "dup2", "dup3") or (name == "fcntl" and call["flags"] in (0, 1030))) and result >= 0:
            if fd is not None:
                table[result] = table[fd.fd]
            else:
                table.pop(result, None)
        elif name == "clone" and result >= 0:
            self.tables[result] = table if call["flags"] & CLONE_FILES else dict(table)
        elif name == "execve":
            table = self.tables[call["pid"]] = dict(table)
        elif result >= 0 and ((name == "close_range" and call["flags"] & 2) or (name == "unshare" and call["flags"] & CLONE_FILES)):
            table = self.tables[call["tid"]] = dict(table)
        if name not in ("execve", "exit", "exit_group"):
            for gone in [f for f in table if f not in after]:
                del table[gone]
        elif name != "execve":
            self.tables.pop(call["tid"])


OPS = {"clone": {"clone", "clone3", "fork", "vfork"}}


def ask(*args):
    """What feign says; in text if it cannot even do that."""
    try:
        return feign(*args, timeout=60), ""
    except (AssertionError, subprocess.TimeoutExpired) as why:
        return None, str(why)


def other(kind, n, text, want):
    return {"kind": kind, "n": n, "call": "", "said": "", "text": text, "want": want, "line": ""}


def make_tree(work, seed):
    """What a program finds: directories and files by names that it uses."""
    some = random.Random(seed)
    folders = [""]
    for name in "d0", "d1", "d0/d1", "d0/d2", "d1/d0":
        if os.path.dirname(name) in folders and some.random() < 0.6:
            os.mkdir(os.path.join(work, name))
            folders.append(name)
    for folder in folders:
        for i in range(5):
            if some.random() < 0.3:
                with open(os.path.join(work, folder, f"f{i}"), "wb") as f:
                    f.write(b"x" * some.choice((0, 10, 5000)))


def run(tmp, seed, count, features, prior=False):
    """The problems of one program, each as text; none is the aim."""
    work, root, trace, log, text = (os.path.join(tmp, n) for n in ("w", "root", "t.strace", "log", "t.txt"))
    for path in (work, root):
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
    if prior:
        make_tree(work, seed)
    done = subprocess.run([compiled(), str(seed), str(count), log, str(features), *STRACE, "-o", trace], cwd=work, timeout=60,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if done.returncode != 0:
        if not os.path.exists(trace) or os.path.getsize(trace) == 0:
            raise Skip("strace does not work here")
        raise AssertionError(f"seed {seed}, {count} calls: random-calls ended with {done.returncode}")
    with open(log, encoding="utf-8", errors="surrogateescape") as f:
        calls = [json.loads(line, strict=False) for line in f]
    out = []
    r, died = ask("convert", trace, text, "--cwd", work)
    if died or r.status != 0:
        return [other("convert", -1, died or r.err.strip(), "a resolved trace")]
    with open(text, encoding="utf-8", errors="surrogateescape") as f:
        said = [Said(line.rstrip("\n")) for line in f]
    lines = {}
    with open(trace, encoding="utf-8", errors="surrogateescape") as f:
        for line in f:
            tid, _, rest = line.rstrip("\n").split(maxsplit=2)
            if rest[0] not in "+-<":
                lines.setdefault(int(tid), []).append(rest)
    # Of each thread, one after the other; a program's start asks for its own name.
    check, nth, at, becomes = Check(), {}, 0, {}
    for call in calls:
        while at < len(said) and (said[at].arguments.startswith('path="/proc/self/exe"') or '"/proc/self/exe"' in said[at].arguments and said[at].op == "readlink"
                                  or (at == 0 and said[at].op == "execve")):
            nth[said[at].tid] = nth.get(said[at].tid, 0) + 1
            at += 1
        name = call["call"]
        # A thread that another's execve ended called nothing.
        while at < len(said) and said[at].op == "exit" and (name, call["tid"]) != ("exit", becomes.get(said[at].tid, said[at].tid)):
            at += 1
        s = said[at] if at < len(said) else None
        # A thread that calls execve goes on under the process's id; as what it was itself, if that was not all the same.
        by = becomes.get(s.tid, s.tid) if s is not None else None
        mine = by == call["tid"] or (name == "execve" and by == call["pid"])
        if mine and name == "execve" and by != call["pid"]:
            becomes = {**{tid: now for tid, now in becomes.items() if now != call["pid"]}, s.tid: call["pid"]}
        if not mine or s.op not in OPS.get(name, {name}):
            out.append({**other("order", call["n"], s and f"{s.op} by {s.tid}", f"{name} by {call['tid']}"), "call": name,
                        "said": s.line if s else "nothing"})
            break
        known = len(check.problems)
        check.call(call, s)
        i = nth.get(s.tid, 0)
        for p in check.problems[known:]:
            p["line"] = lines.get(s.tid, [])[i] if i < len(lines.get(s.tid, [])) else "?"
        nth[s.tid] = i + 1
        at += 1
    # How long a file was that nobody asked for is not told: nor, then, where an append goes.
    out += [p for p in check.problems if not (prior and p["kind"] == "offset")]
    r, died = ask("replay", trace, "--root", root, "--json", "--cwd", work)
    if died or r.status not in (0, 1) or not r.out:
        return out + [other("replay", count, died or r.err.strip(), "a report")]
    report = r.json()
    if report["mismatched"] != 0:
        first = report["mismatches"][0]["first"]
        with open(trace, encoding="utf-8", errors="surrogateescape") as f:
            line = f.read().split("\n")[first["line"] - 1]
        out.append({**other("replay", count, json.dumps(report["mismatches"][:3]), "no mismatch"), "line": line})
    a, b = tree(work), tree(root + work)
    if a != b and not prior:  # what a program did not look into is not known
        text = {k: (b.get(k), a.get(k)) for k in sorted(set(a) | set(b)) if a.get(k) != b.get(k)}
        out.append(other("tree", count, f"(replayed, program's) {text}", "the same tree"))
    return out


def holds(features, seeds, prior=False):
    """All programs of these features come out as the kernel said; else the shortest of the first that does not."""
    seeds = int(os.environ.get("FEIGN_SEEDS", seeds))
    with Tmp() as tmp:
        def one(seed):
            with Tmp() as own:
                return seed, run(own, seed, CALLS, features, prior)
        compiled()
        with concurrent.futures.ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            bad = [(seed, found) for seed, found in pool.map(one, range(FIRST, FIRST + seeds)) if found]
        if not bad:
            return
        seed, found = bad[0]
        count = CALLS
        while count > 1 and (shorter := run(tmp, seed, count // 2, features, prior)):
            count, found = count // 2, shorter
        good = count // 2  # a program's beginning is the program of fewer calls
        while good + 1 < count:
            middle = (good + count) // 2
            if shorter := run(tmp, seed, middle, features, prior):
                count, found = middle, shorter
            else:
                good = middle
        if keep := os.environ.get("FEIGN_KEEP"):
            run(tmp, seed, count, features, prior)
            shutil.copytree(tmp, os.path.join(keep, f"{seed}-{count}-{features:x}"), dirs_exist_ok=True, symlinks=True)
    p = found[0]
    raise AssertionError(f"{len(bad)} of {seeds} programs: seeds {[s for s, _ in bad[:20]]}\n"
                         f"seed {seed}, {count} calls, features {features:#x}: {p['kind']} of call {p['n']} {p['call']}\n"
                         f"  trace: {p['line']}\n  feign: {p['said']}\n  said {p['text']}, want {p['want']}"
                         + "".join(f"\n  then {q['kind']}: {q['text']}" for q in found[1:4]))


# What a feature cannot be had without.
NEEDS = {"link-dotdot": ("link-middle",), "range-cloexec": ("exec",), "range-unshare": ("threads", "shared-forks")}


def chosen():
    """All features, or FEIGN_FEATURES: names with commas; "-name" is all but that."""
    mask = None
    for name in filter(None, os.environ.get("FEIGN_FEATURES", "").split(",")):
        if name.startswith("-"):
            mask = (ALL if mask is None else mask) & ~BIT[name[1:]]
        else:
            mask = (mask or 0) | BIT[name]
    return ALL if mask is None else mask


def test_everything():
    holds(chosen(), 40)


def test_calls_without_any_feature():
    holds(0, 10)


def test_what_was_there_before():
    holds(sum(BIT[name] for name in ("forks", "exec", "tmpfile", "exchange", "slash-end", "copy-offsets", "link-end", "empty-path", "path-only")), 10, prior=True)


def test_threads_and_processes():
    holds(sum(BIT[name] for name in ("threads", "forks", "shared-forks", "exec", "tmpfile", "odd-names")), 5)


# Each feature alone, so that what fails says which it is.
for feature in FEATURES:
    mask = BIT[feature] | sum(BIT[name] for name in NEEDS.get(feature, ()))
    globals()["test_" + feature.replace("-", "_")] = lambda mask=mask: holds(mask, 2)


if __name__ == "__main__":
    if not re.search("asan|tsan", BUILD):  # a bookkeeper that runs away is to fail alone
        most = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30 if most < 0 else min(8 << 30, most), most))
    main(globals())
