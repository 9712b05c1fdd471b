#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""//TRACE's annotated text: what WAIT, SIGNAL and COMPUTE come to, merging of raw traces, and there and back.

FEIGN_SEEDS=N makes N random traces instead of the few that are the default, FEIGN_SEED=N starts at that seed.
"""
import itertools
import os
import random
import re

from harness import Tmp, bounded, feign, main, refuses, refuses_to_write_nothing

PAPER = """\
/* barrier before opening output file */
WAIT(1)
WAIT(2)
SIGNAL(1)
SIGNAL(2)
/* open output file */
open64("/pvfs2/output/mesh.e", 578, 416) = 17
COMPUTE(0.000148622)
write(17, 4096) = 4096
COMPUTE(0.131106558)
_llseek(17, 8192, SEEK_SET) = 8192
COMPUTE(0.000000605)
"""


def put(tmp, name, text):
    path = os.path.join(tmp, name)
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as f:
        f.write(text)
    return path


def nodes(tmp, *texts, name="t"):
    for i, text in enumerate(texts):
        put(tmp, f"{name}.{i}", text)
    return os.path.join(tmp, name)


def read(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as f:
        return f.read()


def convert(source, to, *more):
    r = feign("convert", *(source if isinstance(source, list) else [source]), to, *more)
    assert r.status == 0, r.err
    return r


def back(tmp, source, *more, name="back"):
    """The files that the writer makes of a trace, by node: lines without the comment."""
    to = os.path.join(tmp, name + ".tracetext")
    convert(source, to, *more)
    out = {0: read(to).splitlines()[1:]} if os.path.exists(to) else {}
    for file in sorted(os.listdir(tmp)):
        if file.startswith(name + ".tracetext."):
            out[int(file.rsplit(".", 1)[1])] = read(os.path.join(tmp, file)).splitlines()[1:]
    return out


def text_of(tmp, source, *more):
    to = os.path.join(tmp, "out.txt")
    convert(source, to, *more)
    return read(to)


def test_the_papers_example():
    with Tmp() as tmp:
        others = "SIGNAL(0)\nWAIT(0)\nopen64(\"/pvfs2/output/other\", 66, 416) = 5\nclose(5) = 0\n"
        trace = nodes(tmp, PAPER, others, others.replace("other\"", "third\""))
        lines = text_of(tmp, trace).splitlines()
        assert len(lines) == 7
        opened = next(l for l in lines if "mesh.e" in l)
        assert 'open(pathname="/pvfs2/output/mesh.e", flags=O_RDWR|O_CREAT|O_TRUNC, mode=0640) = 17' in opened, opened
        assert "[1 rank 0 -1/0]" in opened
        seek = next(l for l in lines if "_llseek" in l)
        assert re.search(r" 0\.131255180 .*offset=8192, whence=SEEK_SET\) = 8192 .* compute=131106558$", seek), seek
        r = feign("replay", trace, "--root", tmp, "--json", "--require", "1")
        assert r.status == 0 and r.json()["bytes_written"] == 4096, r.err


def test_calls_alone_are_known_by_the_name():
    """Without their pauses they look as if strace had printed them, which has more arguments."""
    with Tmp() as tmp:
        calls = 'open("/f", 66, 420) = 3\nread(3, 100) = 50\n'
        put(tmp, "t.tracetext", calls)
        assert "read(fd=#1, count=100) = 50" in text_of(tmp, os.path.join(tmp, "t.tracetext"))
        put(tmp, "u.tracetext", '1.5 open("/f", O_RDWR|O_CREAT, 0644) = 3 <0.1>\n')
        assert feign("info", os.path.join(tmp, "u.tracetext"), "--json").json()["provider"] == "strace"


def test_a_wait_becomes_a_dependency_on_the_call_before_its_signal():
    with Tmp() as tmp:
        trace = nodes(tmp,
                      'COMPUTE(5)\nopen("/a", 66, 420) = 3\nSIGNAL(1)\nwrite(3, 10) = 10\nSIGNAL(1)\nclose(3) = 0\n',
                      'open("/b", 66, 420) = 3\nWAIT(0)\nwrite(3, 1) = 1\nCOMPUTE(2.5)\nWAIT(0)\nclose(3) = 0\n')
        files = back(tmp, trace)
        assert files[0] == ["COMPUTE(5.000000000)", 'open("/a", 66, 420) = 3', "SIGNAL(1)", "write(3, 10) = 10", "SIGNAL(1)", "close(3) = 0"]
        assert files[1] == ['open("/b", 66, 420) = 3', "WAIT(0)", "write(3, 1) = 1", "COMPUTE(2.500000000)", "WAIT(0)", "close(3) = 0"]
        # What waits comes later in the trace, and the time that it waited is not its own.
        text = text_of(tmp, trace)
        order = [re.search(r"rank (\d) .*\] (\w+)", l).groups() for l in text.splitlines()]
        assert order.index(("0", "open")) < order.index(("1", "write")) and order.index(("0", "write")) < order.index(("1", "close"))
        assert [re.search(r"compute=(\d+)", l)[1] for l in text.splitlines() if "compute" in l] == ["5000000000", "2500000000"]


def test_reduce_leaves_out_what_follows_from_others():
    with Tmp() as tmp:
        trace = nodes(tmp, 'mkdir("/a", 493) = 0\nSIGNAL(1)\nSIGNAL(2)\n', 'WAIT(0)\nmkdir("/b", 493) = 0\nSIGNAL(2)\n',
                      'WAIT(1)\nWAIT(0)\nmkdir("/c", 493) = 0\n')
        assert sum(l.startswith("WAIT") for lines in back(tmp, trace).values() for l in lines) == 3
        files = back(tmp, trace, "--provider", "tracetext,reduce=yes", name="less")
        assert files[2] == ["WAIT(1)", 'mkdir("/c", 493) = 0'] and "SIGNAL(2)" not in files[0], files
        assert files[1] == ["WAIT(0)", 'mkdir("/b", 493) = 0', "SIGNAL(2)"], files


def test_a_barrier_without_calls_passes_on_what_it_waited_for():
    with Tmp() as tmp:
        trace = nodes(tmp, "WAIT(1)\nWAIT(2)\nSIGNAL(1)\nSIGNAL(2)\n", 'mkdir("/b", 493) = 0\nSIGNAL(0)\nWAIT(0)\nmkdir("/d", 493) = 0\n',
                      'mkdir("/c", 493) = 0\nSIGNAL(0)\nWAIT(0)\nmkdir("/e", 493) = 0\n')
        files = back(tmp, trace)
        assert files[1] == ['mkdir("/b", 493) = 0', "SIGNAL(2)", "WAIT(2)", 'mkdir("/d", 493) = 0'], files
        assert files[2] == ['mkdir("/c", 493) = 0', "SIGNAL(1)", "WAIT(1)", 'mkdir("/e", 493) = 0'], files


def test_a_call_that_is_none_leaves_its_wait_to_the_next():
    with Tmp() as tmp:
        trace = nodes(tmp, 'mkdir("/a", 493) = 0\nmmap(4096, 3, 34, -1, 0) = 140000000000000\nSIGNAL(1)\n',
                      'WAIT(0)\nmmap(4096, 3, 34, -1, 0) = 140000000000000\ngetpid() = 7\nmkdir("/b", 493) = 0\n')
        files = back(tmp, trace)
        assert files == {0: ['mkdir("/a", 493) = 0', "SIGNAL(1)"], 1: ["WAIT(0)", 'mkdir("/b", 493) = 0']}, files
        left = {e["call"] for e in feign("info", trace, "--json").json()["left_out"]}
        assert left == {"mmap", "getpid"}, left


def test_forms_of_arguments():
    with Tmp() as tmp:
        trace = put(tmp, "x.trace", "/* all\n of it */\n"
                    'open("a \\"b\\"\\x41\\101/*no comment*/x", O_RDWR|O_CREAT, 0644) = 3;  /* yes */\n'
                    'write(3, "abc\\",) = "..., 3) = 3\n'
                    "COMPUTE( 1e-3 );\n"
                    "writev(3, [10, 20, 30]) = 60\nwritev(3, 5) = 5\n"
                    'open("/n", 0) = -1 ENOENT (No such file or directory)\nopen("/n", 0) = -1\n'
                    "lseek64(3, -4, SEEK_CUR) = 64\nfcntl(3, F_GETFL) = 2\nread(3, 0x10) = ?\n")
        lines = text_of(tmp, trace, "--cwd", "/w").splitlines()
        assert r'open(pathname="/w/a \"b\"AA/*no comment*/x", flags=O_RDWR|O_CREAT, mode=0644) = 3' in lines[0], lines[0]
        assert "write(fd=#1, count=3) = 3" in lines[1]
        assert "writev(fd=#1, iov=[10 20 30]) = 60" in lines[2] and "at=3" in lines[2] and "compute=1000000" in lines[2], lines[2]
        assert "at=63" in lines[3] and "= 5 " in lines[3], lines[3]
        assert "= -ENOENT" in lines[4] and "= ?" in lines[5], lines[5]
        assert "lseek(fd=#1, offset=-4, whence=SEEK_CUR) = 64" in lines[6]
        assert len(lines) == 9 and "count=16) = ?" in lines[8]


def test_errors_name_file_line_and_nodes():
    with Tmp() as tmp:
        def says(text, *texts):
            for file in os.listdir(tmp):
                os.unlink(os.path.join(tmp, file))
            refuses("convert", nodes(tmp, *texts), os.path.join(tmp, "out.txt"), "--provider", "tracetext", text=text)
            assert sorted(os.listdir(tmp)) == [f"t.{i}" for i in range(len(texts))]
        one = 'mkdir("/a", 493) = 0\n'
        says(r"t\.0:2: WAIT\(1\) of node 0 has no SIGNAL: node 1 \(.*t\.1\) ends before", one + "WAIT(1)\n" + one, one)
        says(r"t\.0:3: WAIT\(1\) of node 0 has no SIGNAL", "WAIT(1)\n" + one + "WAIT(1)\n" + one, one + "SIGNAL(0)\n")
        says(r"a cycle of WAITs.*t\.0:1: node 0 waits for node 1, .*t\.1:2: node 1 waits for node 2, .*t\.2:1: node 2 waits for node 0",
             "WAIT(1)\nSIGNAL(2)\n", one + "WAIT(2)\nSIGNAL(0)\n", "WAIT(0)\nSIGNAL(1)\n")
        says(r"t\.0:1: WAIT\(7\): there is no such node, the trace has 0 to 1", "WAIT(7)\n", one)
        says(r"t\.1:1: SIGNAL\(1\): is the node's own number", one, "SIGNAL(1)\n")
        says(r"t\.0:1: \"COMPUTE\(x\)\": want COMPUTE\(SECONDS\)", "COMPUTE(x)\n")
        says(r"t\.0:1: \"COMPUTE\(-1\)\"", "COMPUTE(-1)\n")
        says(r"t\.0:1: \"WAIT\(99999999999\)\": want a node's number", "WAIT(99999999999)\n")
        says(r"t\.0:2: \"hello\": want CALL", one + "hello\n")
        says(r"t\.0:1: .*ends in a comment", "/* for ever\n")
        says(r"t\.0:1: write\(\): 1 arguments, want 2: fd, count", "write(3) = 4\n")
        says(r"t\.0:1: write\(\): argument 1 \(fd\) is \"x\": want a descriptor", "write(x, 4) = 4\n")
        says(r"t\.0:1: open\(\): argument 2 \(flags\) is \"O_NO\": want a number or names of flags", 'open("/a", O_NO) = 4\n')
        says(r"t\.0:1: open\(\): argument 2 \(flags\) is \"4294967296\": want a number of at most 32 bits", 'open("/a", 4294967296) = 4\n')
        says(r't\.0:2: open\(\): argument 1 \(pathname\) is .*: want a text without a NUL', one + 'open("/a\\0b", 0) = 4\n')
        says(r"t\.0:1: write\(\): there is no result", "write(3, 4)\n")
        says(r"t\.0:2: write\(\): the arguments do not end.*cut short", one + "write(3, 4")
        says(r"t\.0:1: write\(\): the result is \"four\": want a number, -1 ENAME or \?", "write(3, 4) = four\n")
        says(r"t\.0:1: write\(\): \"<0\.1>\" after the result: want the end of the line", "write(3, 4) = 4 <0.1>\n")


def test_keep_going_counts_lines():
    with Tmp() as tmp:
        trace = put(tmp, "t", 'COMPUTE(1)\nhello\nmkdir("/a", 493) = 0\nwrite(x, 4) = 4\n/* cut\n')
        r = feign("info", trace, "--keep-going", "--json")
        assert r.status == 0 and r.json()["left_out"] == [{"call": "(line)", "why": "not understood", "count": 3, "seconds": 0.0}], r.out + r.err


def test_damage_ends_it_even_if_lines_may_be_skipped():
    with Tmp() as tmp:
        path = os.path.join(tmp, "t.zst")
        with open(path, "wb") as f:
            f.write(b"\x28\xb5\x2f\xfd" + b"%junk" * 20)
        refuses("info", path, "--keep-going", "--provider", "tracetext", text="zstd", timeout=20)


RAW = {(0, 0): 'open("/a", 66, 420) = 3\nSIGNAL(1)\nCOMPUTE(1)\nwrite(3, 5) = 5\n',
       (0, 1): 'open("/a", 66, 420) = 3\nWAIT(1)\nwrite(3, 5) = 5\n',
       (1, 0): 'WAIT(0)\nopen("/b", 66, 420) = 3\nread(3, 5) = 0\n',
       (1, 1): 'open("/b", 66, 420) = 3\nSIGNAL(0)\nCOMPUTE(2)\nread(3, 5) = 0\n'}


def test_raw_traces_of_all_runs_are_merged():
    with Tmp() as tmp:
        raw = [put(tmp, f"Trace.{i}.{j}", text) for (i, j), text in RAW.items()]
        files = back(tmp, raw)
        assert files == {0: ['open("/a", 66, 420) = 3', "SIGNAL(1)", "COMPUTE(1.000000000)", "WAIT(1)", "write(3, 5) = 5"],
                         1: ["WAIT(0)", 'open("/b", 66, 420) = 3', "SIGNAL(0)", "COMPUTE(2.000000000)", "read(3, 5) = 0"]}, files


def test_versions_in_names_are_no_runs():
    with Tmp() as tmp:
        files = [put(tmp, f"app-2.{i}", f'mkdir("/{i}", 493) = 0\nCOMPUTE(1)\n') for i in range(2)]
        assert sorted(back(tmp, files)) == [0, 1]
        refuses("info", *files, "--provider", "tracetext,merge=yes", text="non-deterministic")


def test_runs_that_differ_are_a_non_deterministic_application():
    with Tmp() as tmp:
        def raw(**other):
            texts = {**RAW, (1, 0): RAW[1, 0].replace(*other["change"])}
            return [put(tmp, f"Trace.{i}.{j}", text) for (i, j), text in texts.items()]
        refuses("info", *raw(change=("read(3, 5) = 0", "read(3, 6) = 0")),
                text=r'attempt to trace a non-deterministic application: call 2 of node 1 .*Trace\.1\.1:4 has "read\(3, 5\) = 0", .*Trace\.1\.0:3 has "read\(3, 6\) = 0"')
        refuses("info", *raw(change=("read(3, 5) = 0\n", "")), text=r"call 2 of node 1 .*Trace\.1\.0 has none")


def test_what_cannot_be_expressed_is_counted_and_named():
    with Tmp() as tmp:
        trace = put(tmp, "a.strace", '1 100.0 open("/f", O_RDWR|O_CREAT, 0644) = 3 <0.25>\n1 100.5 fork() = 2 <0.1>\n'
                    '2 100.7 write(3, "x", 1) = 1 <0.1>\n')
        r = convert(trace, os.path.join(tmp, "o.tracetext"))
        assert r.err.count("\n") == 1 and "not expressed in tracetext: " in r.err, r.err
        for part in ("2 durations of calls", "1 fork (the child waits", "1 descriptors that another process", "2 process numbers",
                     "2 processes' waits for each other, but for who made whom (--with depend finds them)"):
            assert part in r.err, (part, r.err)
        assert "WAIT(0)" in read(os.path.join(tmp, "o.tracetext.1")) and "SIGNAL(1)" in read(os.path.join(tmp, "o.tracetext.0"))
        r = convert(trace, os.path.join(tmp, "p.tracetext"), "--with", "depend")
        assert "waits for each other" not in r.err, r.err
        trace = put(tmp, "b.strace", '1 100.0 socket(AF_UNIX, SOCK_STREAM, 0) = 3 <0.25>\n1 100.5 mkdir("/d", 0777) = 0 <0.1>\n')
        assert "1 socket (of no file)" in convert(trace, os.path.join(tmp, "q.tracetext")).err


def test_a_trace_without_a_call_that_this_form_has_is_refused():
    refuses_to_write_nothing("x.tracetext", "posix")


def test_what_a_wait_returned_is_no_process_of_the_trace():
    """Its numbers are the nodes': that a process is not found by the system's says nothing."""
    with Tmp() as tmp:
        trace = nodes(tmp, 'fork() = 1207\nSIGNAL(1)\nWAIT(1)\nwait4(0) = 1207\nopen("/d/new", 0, 0) = 3\n',
                      'WAIT(0)\nopen("/d/new", 578, 416) = 3\nwrite(3, 100) = 100\nclose(3) = 0\nSIGNAL(0)\n')
        r = feign("replay", "-v", trace + ".0", trace + ".1", "--root", tmp, "--order", "stream", "--json", "--require", "100%")
        assert r.status == 0 and "not in the trace" not in r.out + r.err, (r.out, r.err)


def test_older_files_of_that_name_are_not_mixed_in():
    with Tmp() as tmp:
        trace = nodes(tmp, *['mkdir("/a", 493) = 0\nCOMPUTE(1)\n'] * 2)
        convert(trace, os.path.join(tmp, "o.tracetext"))
        convert(trace, os.path.join(tmp, "o.tracetext"))  # its own it replaces
        put(tmp, "o.tracetext.2", "")
        refuses("convert", trace, os.path.join(tmp, "o.tracetext"), text=r"o\.tracetext\.2: is left of an older trace")
        convert(trace + ".0", os.path.join(tmp, "p.tracetext"))  # one process: that file itself
        convert(trace + ".0", os.path.join(tmp, "p.tracetext"))
        refuses("convert", trace, os.path.join(tmp, "p.tracetext"), text=r"p\.tracetext: is left of an older trace")
        assert not [f for f in os.listdir(tmp) if ".part" in f]


class Made:
    """A random trace: what each node's calls come to is worked out, so that it can be replayed."""

    def __init__(self, seed):
        rng = self.rng = random.Random(seed)
        self.lines = [[] for _ in range(rng.randint(1, 5))]
        self.open = [{} for _ in self.lines]  # fd: [name, position]
        self.sizes = [{} for _ in self.lines]
        for n in [*range(len(self.lines)), *(rng.randrange(len(self.lines)) for _ in range(rng.randint(5, 120)))]:
            self.step(n)

    def step(self, n):
        rng, out, fds, sizes = self.rng, self.lines[n], self.open[n], self.sizes[n]
        if rng.random() < 0.3:
            out.append(f"COMPUTE({rng.randrange(10 ** rng.randint(1, 10)) / 1e9:.9f})")
        if len(self.lines) > 1 and rng.random() < 0.25:
            other = rng.choice([i for i in range(len(self.lines)) if i != n])
            out.append(f"SIGNAL({other})")
            self.lines[other].append(f"WAIT({n})")
        what = rng.random()
        if not fds or what < 0.2:
            name, fd = rng.choice(["f", "g", "ü", 'q"\\\\uote']), min(set(range(3, 40)) - set(fds))
            if rng.random() < 0.3:
                fd = rng.choice([f for f in range(3, 40) if f not in fds])
            flags = 66 | (512 if rng.random() < 0.3 else 0)
            shown = name.replace("\\\\", "\\").replace('"', '\\"').replace("\\u", "\\\\u")
            out.append(f'open("/{n}{shown}", {flags}, 420) = {fd}')
            if flags & 512:
                sizes[name] = 0
            sizes.setdefault(name, 0)
            fds[fd] = [name, 0]
            return
        fd = rng.choice(list(fds))
        at = fds[fd]
        size = sizes[at[0]]
        count = rng.randrange(5000)
        if what < 0.45:
            out.append(f"write({fd}, {count}) = {count}")
            at[1] += count
            if count:
                sizes[at[0]] = max(size, at[1])
        elif what < 0.6:
            got = max(0, min(count, size - at[1]))
            out.append(f"read({fd}, {count}) = {got}")
            at[1] += got
        elif what < 0.7:
            at[1] = rng.randrange(10000)
            out.append(f"lseek({fd}, {at[1]}, SEEK_SET) = {at[1]}")
        elif what < 0.78:
            where = rng.randrange(10000)
            out.append(f"pwrite64({fd}, {count}, {where}) = {count}")
            if count:
                sizes[at[0]] = max(size, where + count)
        elif what < 0.84:
            parts = [rng.randrange(100) for _ in range(rng.randint(1, 5))]
            out.append(f"writev({fd}, {parts}) = {sum(parts)}")
            at[1] += sum(parts)
            if sum(parts):
                sizes[at[0]] = max(size, at[1])
        elif what < 0.88:
            out.append(f"ftruncate({fd}, {count}) = 0")
            sizes[at[0]] = count
        elif what < 0.92:
            out.append('stat("/nowhere") = -1 ENOENT')
        else:
            out.append(f"close({fd}) = 0")
            del fds[fd]

    def files(self, tmp):
        return nodes(tmp, *("\n".join(lines) + "\n" for lines in self.lines))


def test_processes_without_numbers_have_locks_of_their_own():
    lock = "fcntl(3, F_SETLK, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=10}) = "
    opens = 'openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0644) = 3'
    with Tmp() as tmp:
        trace, text, root = (os.path.join(tmp, name) for name in ("t.strace", "t.tracetext", "root"))
        os.mkdir(root)
        with open(trace, "w", encoding="utf-8") as f:
            for i, line in enumerate((f"1 {opens}", f"1 {lock}0", f"2 {opens}", f"2 {lock}-1 EAGAIN (x)", "2 close(3) = 0", f"2 {opens}", f"2 {lock}-1 EAGAIN (x)")):
                f.write(f"{line[:2]}10:00:00.{i + 1}00000 {line[2:]} <0.000010>\n")
        assert feign("convert", trace, text, "--with", "depend").status == 0
        r = feign("replay", text + ".0", text + ".1", "--root", root, "--json").json()
        assert r["mismatched"] == 0 and r["matched"] == 7, r["mismatches"]


def test_native_to_text_to_native_is_the_identity():
    first = int(os.environ.get("FEIGN_SEED", 1))
    for seed in range(first, first + int(os.environ.get("FEIGN_SEEDS", 25))):
        with Tmp() as tmp:
            a, b, x = (os.path.join(tmp, n) for n in ("a.feign", "b.feign", "x.tracetext"))
            convert(Made(seed).files(tmp), a, "--provider", "tracetext")
            r = convert(a, x)
            assert r.err == "", f"seed {seed}: {r.err}"
            convert(x, b)
            texts = [text_of(tmp, t) for t in (a, b)]
            for one, other in zip(*(t.splitlines() for t in texts)):
                assert one == other, f"seed {seed}:\n  {one}\n  {other}"
            assert back(tmp, a, name="first") == back(tmp, b, name="second"), f"seed {seed}"
            root = os.path.join(tmp, "root")
            os.mkdir(root)
            r = feign("replay", b, "--root", root, "--json", "--require", "1")
            assert r.status == 0, f"seed {seed}: {r.err} {r.json()['mismatches']}"


def test_memory_does_not_grow_with_the_trace():
    with Tmp() as tmp:
        def write(count):
            # The second node waits for each call of the first.
            for node, line in enumerate(("write(3, 7) = 7\nSIGNAL(1)\n", "WAIT(0)\nwrite(3, 7) = 7\n")):
                with open(os.path.join(tmp, f"t.{node}"), "w", encoding="ascii") as f:
                    f.write(f'open("/{node}", 66, 420) = 3\n')
                    f.writelines(itertools.repeat(line, count))
        bounded(write, "info", os.path.join(tmp, "t"))


if __name__ == "__main__":
    main(globals())
