#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Modifiers that change how data is moved change nothing of what is there: random programs (tests/random_calls.c) traced
here and made-up traces with many small calls, replayed with and without them; the tree, every byte and every result are the same.

Bytes depend on file and position (replayer posix, verify=yes), so that one in the wrong place shows.
FEIGN_SEEDS=N runs N programs a test instead of the few that are the default, FEIGN_SEED=N starts at that seed, FEIGN_KEEP=DIRECTORY
keeps the trace of a failure there.
"""
import hashlib
import json
import os
import random
import shutil
import subprocess
import tempfile

from harness import CORPUS, Skip, Tmp, feign, main, tree
from property_test import ALL, BIT, STRACE, compiled

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # these programs call fsync and sync a lot
FIRST = int(os.environ.get("FEIGN_SEED", 1))
# What random_calls.c does that makes no traffic for these modifiers is left out, so that there is more of the rest.
FEATURES = ALL & ~(BIT["exec"] | BIT["range-unshare"] | BIT["link-dotdot"] | BIT["odd-names"] | BIT["dot-end"] | BIT["dot-missing"] | BIT["bad-base"])


def contents(root):
    """The tree, with what the files hold."""
    out = tree(root)
    for name, entry in out.items():
        if entry[0] == "f":
            path = os.path.join(root, name)
            os.chmod(path, 0o600)
            with open(path, "rb") as f:
                out[name] = (*entry, hashlib.sha256(f.read()).hexdigest()[:16])
    return out


def open_up(root):
    for folder, dirs, _ in os.walk(root):
        for d in dirs:
            if not os.path.islink(os.path.join(folder, d)):
                os.chmod(os.path.join(folder, d), 0o700)


def replayed(trace, root, with_, *more):
    """What a replay leaves, and what it says."""
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(root)
    args = [x for w in with_ for x in ("--with", w)]
    r = feign("replay", trace, "--root", root, "--json", "--replayer", "posix,verify=yes", *args, *more)
    assert r.status in (0, 1) and r.out, (with_, r.err)
    open_up(root)
    return contents(root), r.json()


unsure = []  # what could not be compared, since a replay without them does not always come to the same


def compare(trace, tmp, with_, *more, base=()):
    """Raises if a replay with these modifiers leaves anything else, or gets other results. Returns (calls without, with)."""
    before, plain = replayed(trace, os.path.join(tmp, "a"), base, *more)
    after, report = replayed(trace, os.path.join(tmp, "b"), with_, *more)
    differ = {k: (before.get(k), after.get(k)) for k in sorted(set(before) | set(after)) if before.get(k) != after.get(k)}
    if differ or report["mismatched"] != plain["mismatched"]:
        # Side by side, the replay alone must come to one end for this to mean anything.
        for _ in range(20 if "trace" not in more else 0):
            again, said = replayed(trace, os.path.join(tmp, "a"), base, *more)
            if again != before or said["mismatched"] != plain["mismatched"] or said["mismatched"] != 0:
                unsure.append((with_, trace, more))
                return plain["activities"], report["activities"]
        assert not differ, f"{with_} {more}: (without, with) {list(differ.items())[:5]}"
        assert report["mismatched"] == plain["mismatched"], f"{with_} {more}: {json.dumps(report['mismatches'][:3])}, without {json.dumps(plain['mismatches'][:3])}"
    return plain["activities"], report["activities"]


# ---- traces ------------------------------------------------------------------------------------------


def traced(tmp, seed, count):
    """A random program's trace, by strace."""
    work, trace = os.path.join(tmp, "w"), os.path.join(tmp, "t.strace")
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    done = subprocess.run([compiled(), str(seed), str(count), os.path.join(tmp, "log"), str(FEATURES), *STRACE, "-o", trace], cwd=work, timeout=60,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Skip("strace does not work here")
    open_up(work)
    return trace, ["--cwd", work]


class MadeUp:
    """Processes and threads that share few files, and mostly go on where they were: what there is to merge, and all that forbids it.

    A little file system tells the results; what comes out is text as strace writes it."""

    def __init__(self, seed, count):
        self.random, self.lines, self.clock = random.Random(seed), [], 1.7e9
        self.files = {f"/d/f{i}": bytearray() for i in range(3)}  # by name: what it holds (sizes are what matters)
        self.fds, self.next = {}, 3  # (process, fd) -> [file, flags, position, name]; forks share the lists
        self.tables = {100: 100}  # by thread: the process whose descriptors it has
        self.say(100, 'mkdir("/d", 0777)', 0)
        for _ in range(count):
            self.step()

    def say(self, process, call, result, errno=""):
        self.clock += self.random.choice((0.00001, 0.0001, 0.002))
        self.lines.append(f"{process} {self.clock:.6f} {call} = {result}{errno} <0.000005>")

    def open(self, p):
        name = self.random.choice(sorted(self.files))
        flags = self.random.choice(["O_RDWR"] * 4 + ["O_RDWR|O_APPEND", "O_RDWR|O_DSYNC", "O_RDWR|O_TRUNC"])
        if "O_TRUNC" in flags:
            del self.files[name][:]
        self.next += 1
        self.fds[self.tables[p], self.next] = [self.files[name], flags, 0, name]
        self.say(p, f'openat(AT_FDCWD, "{name}", {flags}|O_CREAT, 0666)', self.next)

    def data(self, p, fd, d, how):
        r, size = self.random, self.random.choice((1, 3, 10, 10, 100, 512, 4096))
        content, flags, at = d[:3]
        writes = how in ("write", "writev", "pwrite64", "pwritev")
        at_own = how in ("read", "write", "readv", "writev")
        if not at_own:
            at = d[4] if len(d) > 4 and r.random() < 0.8 else r.randrange(0, 3000)
        where = at
        if writes:
            if "O_APPEND" in flags:
                where = len(content)
            if where > len(content):
                content.extend(bytes(where - len(content)))
            content[where:where + size] = bytes(size)
            n = size
        else:
            n = max(0, min(size, len(content) - where))
        if at_own:
            d[2] = where + n
        d[4:] = [where + n]
        if "v" in how:
            cut = r.randrange(0, size + 1)
            vector = f'[{{iov_base="", iov_len={cut}}}, {{iov_base="", iov_len={size - cut}}}], 2'
        else:
            vector = f'""..., {size}'
        self.say(p, f"{how}({fd}, {vector}" + ("" if at_own else f", {at}") + ")", n)

    def step(self):
        r, p = self.random, self.random.choice(sorted(self.tables))
        q = self.tables[p]
        mine = [fd for (process, fd) in self.fds if process == q]
        if not mine or r.random() < 0.03:
            return self.open(p)
        fd = r.choice(mine)
        d = self.fds[q, fd]
        if r.random() < 0.8:  # goes on for a while
            how = r.choice(["read", "write", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev"])
            for _ in range(r.choice((1, 2, 3, 8, 20))):
                if r.random() < 0.2:
                    where = d[2] if r.random() < 0.7 else r.randrange(0, 2000)
                    d[2] = where
                    self.say(p, f"lseek({fd}, {where}, SEEK_SET)", where)
                self.data(p, fd, d, how)
                if r.random() < 0.1 and len(self.tables) > 1:
                    break
            return None
        what = r.choice(["fsync", "fstat", "stat", "close", "dup", "fork", "thread", "end", "rename", "ftruncate", "truncate", "sync", "unlink", "read-all", "fadvise", "copy"])
        if what == "fsync":
            self.say(p, f"{r.choice(('fsync', 'fdatasync'))}({fd})", 0)
        elif what == "fstat":
            self.say(p, f"fstat({fd}, {{st_mode=S_IFREG|0644, st_size={len(d[0])}, ...}})", 0)
        elif what == "stat" and self.files.get(d[3]) is d[0]:
            self.say(p, f'stat("{d[3]}", {{st_mode=S_IFREG|0644, st_size={len(d[0])}, ...}})', 0)
        elif what == "close":
            del self.fds[q, fd]
            self.say(p, f"close({fd})", 0)
        elif what == "dup":
            self.next += 1
            self.fds[q, self.next] = d
            self.say(p, f"dup({fd})", self.next)
        elif what == "thread" and len(self.tables) < 5:
            child = 100 + len(self.lines) + 1
            self.say(p, "clone(child_stack=0x7f0000000000, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM)", child)
            self.tables[child] = q
        elif what == "fork" and len(self.tables) < 5:
            child = 100 + len(self.lines) + 1
            self.say(p, "fork()", child)
            for (process, number), shared in list(self.fds.items()):
                if process == q:
                    self.fds[child, number] = shared
            self.tables[child] = child
        elif what == "end":
            self.say(p, f"lseek({fd}, 0, SEEK_END)", len(d[0]))
            d[2] = len(d[0])
        elif what == "rename" and self.files.get(d[3]) is d[0]:
            old, new = d[3], "/d/n%d" % len(self.lines)
            self.files[new] = self.files.pop(old)
            for other in self.fds.values():
                if other[0] is d[0]:
                    other[3] = new
            self.say(p, f'rename("{old}", "{new}")', 0)
        elif what in ("ftruncate", "truncate") and self.files.get(d[3]) is d[0]:
            size = r.randrange(0, 2 * len(d[0]) + 10)
            d[0][:] = bytes(size)
            self.say(p, f"ftruncate({fd}, {size})" if what == "ftruncate" else f'truncate("{d[3]}", {size})', 0)
        elif what == "sync":
            self.say(p, "sync()", 0)
        elif what == "unlink" and len(self.files) > 2 and self.files.get(d[3]) is d[0]:
            del self.files[d[3]]
            self.say(p, f'unlink("{d[3]}")', 0)
        elif what == "read-all":
            self.say(p, f'pread64({fd}, ""..., 100000, 0)', min(100000, len(d[0])))
        elif what == "fadvise":
            self.say(p, f"fadvise64({fd}, 0, 0, {r.choice(('POSIX_FADV_DONTNEED', 'POSIX_FADV_SEQUENTIAL'))})", 0)
        elif what == "copy":
            other = self.fds[q, r.choice(mine)]
            if other[0] is not d[0] and "O_APPEND" not in other[1] and d[2] < len(d[0]):
                n = min(500, len(d[0]) - d[2])
                number = next(k[1] for k, v in self.fds.items() if v is other and k[0] == q)
                if other[2] > len(other[0]):
                    other[0].extend(bytes(other[2] - len(other[0])))
                other[0][other[2]:other[2] + n] = bytes(n)
                d[2] += n
                other[2] += n
                self.say(p, f"copy_file_range({fd}, NULL, {number}, NULL, 500, 0)", n)
        return None


def made_up(tmp, seed, count):
    trace = os.path.join(tmp, "t.strace")
    with open(trace, "w", encoding="utf-8") as f:
        f.write("\n".join(MadeUp(seed, count).lines) + "\n")
    return trace, ["--cwd", "/"]


def holds(make, count, seeds, *pipelines, order=("trace", "depend"), base=()):
    seeds = int(os.environ.get("FEIGN_SEEDS", seeds))
    calls = [0, 0]
    unsure.clear()
    for seed in range(FIRST, FIRST + seeds):
        with tempfile.TemporaryDirectory(prefix="feign-test.", dir=MEMORY) as tmp:
            trace, more = make(tmp, seed, count)
            try:
                for with_ in (p(seed) if callable(p) else p for p in pipelines):
                    for o in order:
                        without, changed = compare(trace, tmp, with_, "--order", o, *more, base=base)
                        calls[0] += without
                        calls[1] += changed
            except AssertionError as why:
                if keep := os.environ.get("FEIGN_KEEP"):
                    shutil.copy(trace, os.path.join(keep, f"{make.__name__}-{seed}.strace"))
                raise AssertionError(f"seed {seed}: {why}") from None
    compared = seeds * len(pipelines) * len(order)
    assert len(unsure) <= 1 + compared // 10, f"{len(unsure)} of {compared} could not be compared: {unsure[:3]}"
    return calls


def test_coalesce_of_made_up_traces():
    without, merged = holds(made_up, 150, 12, ["coalesce"], ["coalesce,max=64"], ["coalesce,window=7,max=2k"])
    assert merged < 0.8 * without, (without, merged)


def test_coalesce_of_random_programs():
    holds(traced, 200, 4, ["coalesce"], ["coalesce,max=100"])


def test_depend_before_coalesce():
    holds(made_up, 150, 6, ["depend", "coalesce"], order=("stream",), base=["depend"])


def test_prefetch():
    """Alone, and on either side of coalesce."""
    for make in (made_up, traced):
        without, more = holds(make, 150, 3, ["prefetch,fresh=0"], ["prefetch,lead=3ms", "coalesce"], ["coalesce", "prefetch,call=readahead,distance=5"])
        assert more != without


def test_hints():
    for make in (made_up, traced):
        without, more = holds(make, 150, 2, ["hints,advice=random,allocate=4k"], ["hints,fsync=fdatasync,sync=remove", "coalesce"], ["coalesce", "prefetch", "hints,advice=sequential,pattern=sequential,sync=add"], ["hints,align=4k,buffer=1"])
        assert more != without


def any_order(r):
    """Modifiers with random options, in a random order, depend among them."""
    some = [f"coalesce,max={r.choice(('64', '4k', '1m'))},window={r.choice((3, 64, 1024))},what={r.choice(('both', 'both', 'reads', 'writes'))}",
            f"prefetch,distance={r.choice((1, 2, 9))},lead={r.choice(('0s', '3ms'))},fresh={r.choice(('0', '1m'))},call={r.choice(('fadvise', 'readahead'))}",
            f"hints,window={r.choice((2, 1024))},min-size={r.choice(('0', '3000'))},advice={r.choice(('random', 'dontneed', 'noreuse'))},allocate={r.choice(('0', '4k'))},"
            f"fsync={r.choice(('keep', 'fdatasync', 'drop'))},sync={r.choice(('keep', 'remove', 'add'))},buffer={r.choice(('1', '512'))}", "depend"]
    if r.random() < 0.3:
        some.append("coalesce,max=512")
    r.shuffle(some)
    return some


def test_all_of_them_in_any_order():
    for make, seeds in ((made_up, 3), (traced, 2)):
        holds(make, 150, seeds, lambda seed: any_order(random.Random(seed)), lambda seed: any_order(random.Random(-seed)), order=("stream",), base=["depend"])


def test_flash_io():
    """782 writes become fewer than 60 at 1 MiB, and the files are the same at every buffer size."""
    trace = os.path.join(CORPUS, "siox", "flash-io", "activities.dat1743")
    if not os.path.exists(trace):
        raise Skip("there is no corpus here")
    with Tmp() as tmp:
        base, plain = replayed(trace, os.path.join(tmp, "a"), [])
        assert plain["ops"]["write"]["activities"] == 782
        last = 782
        for size in ("1", "2", "64", "512", "4k", "64k", "512k", "1m", "10m"):
            changed, report = replayed(trace, os.path.join(tmp, "b"), [f"coalesce,max={size}"])
            assert changed == base, size
            assert report["mismatched"] == plain["mismatched"], size
            assert report["bytes_written"] == plain["bytes_written"], size
            writes = report["ops"]["write"]["activities"]
            assert writes <= last, (size, writes, last)
            last = writes
            assert size != "1" or writes == 782
            assert size != "1m" or writes < 60, writes


if __name__ == "__main__":
    main(globals())
