#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Provider strace: every form that strace's text has, and what a careless parser breaks on."""
import gzip
import json
import os
import re
import resource
import shutil
import stat
import subprocess
import sys
import zlib

from harness import CORPUS, FEIGN, Skip, Tmp, bounded, feign, main, refuses, tree

VARIANTS = os.path.join(CORPUS, "strace-apps", "strace-variants")


def text_of(trace, *options, name="t.strace"):
    """The activities of a trace, as lines of the writer text without number and time, and what was said."""
    with Tmp() as tmp:
        path = os.path.join(tmp, name)
        if isinstance(trace, dict):
            for file, lines in trace.items():
                with open(os.path.join(tmp, file), "w", encoding="utf-8") as f:
                    f.write("\n".join(lines) + "\n")
            path = os.path.join(tmp, name)
        else:
            with open(path, "w", encoding="utf-8", errors="surrogateescape") as f:
                f.write("\n".join(trace) + "\n")
        out = os.path.join(tmp, "out.txt")
        r = feign("convert", path, out, *options)
        assert r.status == 0, r.err
        with open(out, encoding="utf-8", errors="surrogateescape") as f:
            return [re.sub(r"^\d+ [\d.]+ ", "", line.rstrip("\n")) for line in f], r


def calls(trace, *options, **how):
    """Only the calls: name, arguments and result."""
    return [re.sub(r"^\[.*?\] (.*) <\d+\.\d+>.*$", r"\1", line) for line in text_of(trace, *options, **how)[0]]


def same(got, want):
    assert got == want, "\n".join(["got"] + got + ["want"] + want)


def notes_of(trace, *options):
    with Tmp() as tmp:
        path = os.path.join(tmp, "t.strace")
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(trace) + "\n")
        return "\n".join(feign("info", path, *options, "--json").json()["notes"])


OPEN = 'openat(AT_FDCWD, "/f", O_RDONLY) = 3'
THREAD = "clone(child_stack=0x1, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD) = 10"
OVER = "+++ exited with 0 +++"
SEEN = 'openat(pathname="/f", flags=O_RDONLY, mode=00) = 3'


def test_a_lock_is_free_when_giving_it_up_starts():
    with Tmp() as tmp:
        for give_up, get in (("flock(3</x/lk>, LOCK_UN", "flock(3</x/lk>, LOCK_EX|LOCK_NB"),
                             ("fcntl(3</x/lk>, F_SETLK, {l_type=F_UNLCK, l_whence=SEEK_SET, l_start=0, l_len=0}",
                              "fcntl(3</x/lk>, F_SETLK, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=0}")):
            path = os.path.join(tmp, "t.strace")
            with open(path, "w", encoding="utf-8") as f:
                f.write('100 1700000000.000000 openat(AT_FDCWD</x>, "lk", O_RDWR|O_CREAT, 0666) = 3</x/lk> <0.000010>\n'
                        '101 1700000000.000500 openat(AT_FDCWD</x>, "lk", O_RDWR|O_CREAT, 0666) = 3</x/lk> <0.000010>\n'
                        f"100 1700000000.001000 {get}) = 0 <0.000010>\n100 1700000000.002000 {give_up} <unfinished ...>\n"
                        f"101 1700000000.002010 {get}) = 0 <0.000010>\n100 1700000000.002100 <... {give_up[:5]} resumed>) = 0 <0.000100>\n")
            out = os.path.join(tmp, "t.txt")
            assert feign("convert", "-q", path, out).status == 0
            with open(out, encoding="utf-8") as f:
                lines = f.read().splitlines()
            assert re.search("LOCK_UN|l_type=2", lines[3]) and "[2 101/101]" in lines[4], lines


NUMBERS = {"AT_FDCWD": "-100", "SEEK_SET": "0", "SEEK_CUR": "0x1", "SEEK_END": "0x2", "LOCK_EX": "0x2", "LOCK_NB": "0x4", "LOCK_SH": "0x1", "LOCK_UN": "0x8",
           "F_SETLK": "0x6", "F_SETLKW": "0x7", "F_OFD_SETLK": "0x25", "F_RDLCK": "0", "F_WRLCK": "0x1", "F_UNLCK": "0x2", "O_RDONLY": "0", "O_WRONLY": "0x1", "O_RDWR": "0x2",
           "O_CREAT": "0x40", "O_EXCL": "0x80", "O_TRUNC": "0x200", "O_APPEND": "0x400", "O_DIRECTORY": "0x10000"}


def raw(line):
    """As strace -X raw prints it."""
    flags = "|".join(NUMBERS)
    return re.sub(rf"\b(?:{flags})(?:\|(?:{flags}))*\b", lambda m: hex(sum({int(NUMBERS[n], 16) if n != "AT_FDCWD" else -100 for n in m[0].split("|")}))
                  if m[0] != "AT_FDCWD" else "-100", line)


def order_of(tmp, lines):
    """Processes and results of the calls, in the order in which they count: the same with names of flags and with numbers."""
    path, out = os.path.join(tmp, "t.strace"), os.path.join(tmp, "t.txt")
    found = []
    for form in (str, raw):
        with open(path, "w", encoding="utf-8") as f:
            for i, line in enumerate(lines):
                pid, call = line.split(" ", 1)
                f.write(f"{pid} 1700000000.{i:06d} {form(call)}\n")
        assert feign("convert", "-q", path, out).status == 0
        with open(out, encoding="utf-8") as f:
            found.append([(int(m[1]), m[2]) for m in re.finditer(r"/(\d+)\] .*\) = (\S+)", f.read())])
    assert found[0] == found[1], found
    return found[0]


def test_locks_were_had_and_refused_in_an_order_that_fits():
    with Tmp() as tmp:
        opens = [f'{pid} openat(AT_FDCWD</x>, "lk", O_RDWR|O_CREAT, 0666) = 3</x/lk> <0.000001>' for pid in (100, 101)]
        record = ["fcntl(3</x/lk>, F_%sSETLK, {l_type=F_%sLCK, l_whence=SEEK_SET, l_start=%d, l_len=%d}" % (of, *what)
                  for of in ("", "OFD_") for what in (("WR", 9, 1), ("UN", 0, 0))]
        # Locks of processes and of open files (OFD) are in each other's way.
        for get, give_up, ask in (("flock(3</x/lk>, LOCK_EX|LOCK_NB", "flock(3</x/lk>, LOCK_UN", "flock(3</x/lk>, LOCK_EX|LOCK_NB"),
                                  (*record[:2], record[0]), (*record[2:], record[2]), (*record[:2], record[2]), (*record[2:], record[0])):
            name = get[:5]
            busy = "-1 EAGAIN (Resource temporarily unavailable) <0.000003>"
            # Asked for before it was given up, or while it was, it may have been there still …
            before = [f"100 {get}) = 0 <0.000001>", f"101 {ask} <unfinished ...>", f"100 {give_up} <unfinished ...>",
                      f"101 <... {name} resumed>) = {busy}", f"100 <... {name} resumed>) = 0 <0.000003>"]
            during = [before[0], before[2], before[1], before[4], before[3]]
            # … or was had by one who is seen to have got it later only.
            late = [f"100 {get} <unfinished ...>", f"101 {ask} <unfinished ...>", f"101 <... {name} resumed>) = {busy}",
                    f"100 <... {name} resumed>) = 0 <0.000003>"]
            for calls, want in ((before, [(101, "-EAGAIN"), (100, "0")]), (during, [(101, "-EAGAIN"), (100, "0")]),
                                (late, [(100, "0"), (101, "-EAGAIN")])):
                assert order_of(tmp, opens + calls)[-2:] == want, calls


def test_who_is_refused_a_lock_did_before_what_he_did_before():
    """Others' calls while a lock is given up, or had for the last time, are behind it until one shows that it was there still."""
    ask = "101 flock(3</x/lk>, LOCK_EX|LOCK_NB) = -1 EAGAIN (Resource temporarily unavailable) <0.000001>"
    with Tmp() as tmp:
        for give_up, gave_up in ("flock(3</x/lk>, LOCK_UN", "flock"), ("close(3</x/lk>", "close"):
            order = order_of(tmp, [*(f'{pid} openat(AT_FDCWD</x>, "lk", O_RDWR|O_CREAT, 0666) = 3</x/lk> <0.000001>' for pid in (100, 101)),
                                   "100 flock(3</x/lk>, LOCK_EX|LOCK_NB) = 0 <0.000001>", f"100 {give_up} <unfinished ...>",
                                   '101 lseek(3</x/lk>, 1, SEEK_SET) = 1 <0.000001>', ask, '101 lseek(3</x/lk>, 2, SEEK_SET) = 2 <0.000001>', ask, '101 lseek(3</x/lk>, 3, SEEK_SET) = 3 <0.000001>',
                                   ask.replace("-1 EAGAIN (Resource temporarily unavailable)", "0"), ask.replace("LOCK_EX|LOCK_NB) = -1 EAGAIN (Resource temporarily unavailable)", "LOCK_UN) = 0"),
                                   f"100 <... {gave_up} resumed>) = 0 <0.000009>"])
            assert [call for call in order[3:] if call[0] == 101] == [(101, result) for result in ("1", "-EAGAIN", "2", "-EAGAIN", "3", "0", "0")], order
            assert order[7:9] == [(100, "0"), (101, "3")], order
        # What he got elsewhere may have been before it, too.
        lock = "fcntl(3</x/lk>, F_SETLK, {l_type=F_%sLCK, l_whence=SEEK_SET, l_start=%d, l_len=1}"
        order = order_of(tmp, [*(f'{pid} openat(AT_FDCWD</x>, "lk", O_RDWR|O_CREAT, 0666) = 3</x/lk> <0.000001>' for pid in (100, 101)),
                               f"100 {lock % ('WR', 9)}) = 0 <0.000001>", f"100 {lock % ('UN', 9)} <unfinished ...>", f"101 {lock % ('WR', 20)}) = 0 <0.000001>",
                               f"101 {lock % ('WR', 9)}) = -1 EAGAIN (Resource temporarily unavailable) <0.000001>", "100 <... fcntl resumed>) = 0 <0.000009>"])
        assert order[3:] == [(101, "0"), (101, "-EAGAIN"), (100, "0")], order


def test_locks_from_where_a_descriptor_is():
    """As lockf(3) asks for them: its position is told by the calls on it since its open."""
    def call(kind, whence, start, length):
        return f"fcntl(3</x/lk>, F_SETLK, {{l_type=F_{kind}LCK, l_whence=SEEK_{whence}, l_start={start}, l_len={length}}}"
    moves = {"seeks": ["lseek(3</x/lk>, 9, SEEK_SET) = 9"], "reads": ['read(3</x/lk>, "123456789", 9) = 9'], "writes": ['write(3</x/lk>, "123456789", 9) = 9'],
             "goes to the end": ["lseek(3</x/lk>, -1, SEEK_END) = 9"], "is where it was": ['pread64(3</x/lk>, "1", 1, 4) = 1', "lseek(3</x/lk>, 9, SEEK_SET) = 9", 'pwrite64(3</x/lk>, "1", 1, 4) = 1']}
    with Tmp() as tmp:
        opens = ['100 openat(AT_FDCWD</x>, "lk", O_RDWR|O_CREAT, 0666) = 3</x/lk> <0.000001>', '101 openat(AT_FDCWD</x>, "lk", O_RDWR%s) = 3</x/lk> <0.000001>']

        def order(get, give_up, ask, result, move=(), flags=""):
            """Asked for while it was given up, and seen to be answered later."""
            return order_of(tmp, [opens[0], opens[1] % flags, *(f"101 {m} <0.000001>" for m in move), f"100 {get}) = 0 <0.000001>", f"100 {give_up} <unfinished ...>", f"101 {ask} <unfinished ...>",
                                  "100 <... fcntl resumed>) = 0 <0.000003>", f"101 <... fcntl resumed>) = {result} <0.000003>"])[-2:]
        refused, busy = [(101, "-EAGAIN"), (100, "0")], "-1 EAGAIN (Resource temporarily unavailable)"
        here = [call(kind, "CUR", 0, 0) for kind in ("WR", "UN", "WR")]
        assert order(*here, busy) == refused
        ninth = [call(kind, "SET", 9, 1) for kind in ("WR", "UN")]
        for how, move in moves.items():
            for ask in (0, 1), (-2, 3), (1, -1):
                assert order(*ninth, call("WR", "CUR", *ask), busy, move) == refused, (how, ask)
            for ask in (1, 1), (0, -1), (-9, 9):  # they are another one's: the order is what is seen
                assert order(*ninth, call("WR", "CUR", *ask), busy, move) == refused[::-1], (how, ask)
        # It is not known where that is.
        for move, flags in (moves["writes"], "|O_APPEND"), (["lseek(3</x/lk>, 9, SEEK_SET) = 9", 'write(3</x/lk>, "1", 1) = 1'], "|O_APPEND"):
            assert order(*ninth, here[0], busy, move, flags) == refused[::-1], move


def test_closes_and_ends_give_locks_up_as_they_end():
    calls = ["flock(3</x/lk>, LOCK_EX|LOCK_NB", *(f"fcntl(3</x/lk>, F_{of}SETLK, {{l_type=F_WRLCK, l_whence=SEEK_SET, l_start=9, l_len=1}}" for of in ("", "OFD_"))]
    opens = [f'{pid} openat(AT_FDCWD</x>, "lk", O_RDWR|O_CREAT, 0666) = 3</x/lk> <0.000001>' for pid in (100, 101)]
    with Tmp() as tmp:
        for get in calls:
            name = get[:5]

            def asks(result):
                return [f"101 {get} <unfinished ...>", f"101 <... {name} resumed>) = {result} <0.000003>"]
            ask, refused = asks("-1 EAGAIN (Resource temporarily unavailable)")
            again, got = asks("0")
            has = [*opens, f"100 {get}) = 0 <0.000001>"]
            close, closed = "100 close(3</x/lk> <unfinished ...>", "100 <... close resumed>) = 0 <0.000003>"
            end, going, gone = "100 exit_group(0 <unfinished ...>", "100 <... exit_group resumed>) = ?", "100 +++ exited with 0 +++"
            at_once = "100 exit_group(0) = ?"
            for gives_up in ([close, ask, refused, closed], [close, ask, closed, refused], [ask, close, closed, refused], [ask, "100 close(3</x/lk>) = 0 <0.000001>", refused],
                             [end, ask, refused, going, gone], [end, going, ask, refused, gone], [end, ask, going, gone, refused],
                             [ask, end, going, gone, refused], [at_once, ask, refused, gone], [ask, at_once, refused, gone], [at_once, ask, gone, refused]):
                order = order_of(tmp, [*has, *gives_up, again, got])
                assert [(pid, result) for pid, result in order[3:] if pid == 101] == [(101, "-EAGAIN"), (101, "0")], (gives_up, order)
                assert order[3][0] == 101, (gives_up, order)
            # Whoever has it by then came behind it; and strace -qq does not tell the end.
            for gives_up in ([close, again, got, closed], [end, again, got, going, gone], [at_once, again, got, gone], [at_once, again, got]):
                assert order_of(tmp, [*has, *gives_up])[-1] == (101, "0"), gives_up
            calls_after = ['101 stat("/x", {st_mode=S_IFDIR|0755, st_size=40, ...}) = 0 <0.000001>'] * 5000
            assert [pid for pid, _ in order_of(tmp, [*has, at_once, *calls_after, again, got])][3:5] == [100, 101]


def test_the_end_of_a_file_was_where_readers_met_it():
    with Tmp() as tmp:
        begin = ['100 openat(AT_FDCWD</x>, "log", O_WRONLY|O_CREAT|O_APPEND, 0666) = 3</x/log> <0.000001>',
                 '101 openat(AT_FDCWD</x>, "log", O_RDONLY) = 3</x/log> <0.000001>', '100 write(3</x/log>, "abc", 3) = 3 <0.000001>',
                 '101 read(3</x/log>, "abc", 99) = 3 <0.000001>']
        read, write = "101 read(3</x/log>,  <unfinished ...>", '100 write(3</x/log>, "12345", 5 <unfinished ...>'
        wrote = "100 <... write resumed>) = 5 <0.000003>"
        # It ended before the write did, and has its bytes; or after it, and has not.
        has, has_not = '101 <... read resumed>"12345", 99) = 5 <0.000003>', '101 <... read resumed>"", 99) = 0 <0.000003>'
        rest = '101 read(3</x/log>, "12345", 99) = 5 <0.000001>'
        for calls, want in (([read, write, has, wrote], [(100, "5"), (101, "5")]), ([read, write, wrote, has], [(100, "5"), (101, "5")]),
                            ([read, write, wrote, has_not, rest], [(101, "0"), (100, "5"), (101, "5")]),
                            ([read, write, has_not, wrote, rest], [(101, "0"), (100, "5"), (101, "5")])):
            # It has read until there, or was moved there.
            for at_end in begin[3], "101 lseek(3</x/log>, 0, SEEK_END) = 3 <0.000001>":
                assert order_of(tmp, [*begin[:3], at_end, *calls])[4:] == want, (at_end, calls)


def test_prefixes():
    for prefix in ("", "7 ", "7   ", "[pid     7] ", "02:50:01 ", "02:50:01.123456 ", "1795229401.204541 ", "7 1795229401.204541123 ", "     0.000219 ",
                   "7      0.000219 ", "1795229401.204541 (+     0.000010) ", "7 1795229401.153293 (+     0.000000) ", "7<python3> 1795229402.846590 ",
                   "7 1795229401.603323 [ 257] [00007fd2243eaad7] ", "[ 257] ", "7 [00007fd2243eaad7] ",
                   "7 1795229401.603323 (+     0.000010) [ 257] [00007fd2243eaad7] "):
        for suffix in ("", " <0.000012>", " <0.000119598>"):
            same(calls([prefix + OPEN + suffix]), [SEEN])


def test_what_tells_the_working_directory():
    """--cwd, or the first getcwd or annotation, less where its process had moved by then; else the root's, and that is said."""
    unlink = '7 unlink("a") = 0'
    for lines, options, want in (
            ([unlink], [], None), ([unlink], ["--cwd", "/else"], "/else"),
            ([unlink, '8 getcwd("/home/m\\303\\251", 4096) = 9'], [], "/home/mé"),
            ([unlink, "8 getcwd( <unfinished ...>", '7 close(3) = 0', '8 <... getcwd resumed>"/home", 4096) = 6'], [], "/home"),
            ([unlink, '8 getcwd("/home", 4096) = 6'], ["--cwd", "/else"], "/else"),
            ([unlink, '8 getcwd(NULL, 1) = -1 ERANGE (x)', '8 getcwd("/home", 4096) = 6'], [], "/home"),
            ([unlink, '8 getcwd("(unreachable)/", 4096) = 15', '8 getcwd("/home", 4096) = 6'], [], "/home"),
            ([unlink, '8 chdir("/tmp") = 0', '8 getcwd("/home", 4096) = 6'], [], None),
            ([unlink, '8 write(1, "getcwd(\\"/home\\")", 15) = 15'], [], None),
            ([unlink, '8 openat(AT_FDCWD</home/m\\303\\251>, "/lib/x", O_RDONLY) = 3</lib/x>'], [], "/home/mé"),
            ([unlink, '8 openat(-100</home>, "/lib/x", 0) = 3</lib/x>'], [], "/home"),
            ([unlink, '8 openat(-100 /* AT_FDCWD */</home>, "/lib/x", 0 /* O_RDONLY */) = 3</lib/x>'], [], "/home"),
            ([unlink, '8 renameat2(3, "a", AT_FDCWD</home>, "b", 0) = 0'], [], "/home"),
            ([unlink, '7 chdir("d/e") = 0', '7 openat(AT_FDCWD</home/d/e>, "/x", O_RDONLY) = 3</x>'], [], "/home"),
            ([unlink, '7 chdir("d") = -1 ENOENT (x)', '7 openat(AT_FDCWD</home>, "/x", O_RDONLY) = 3</x>'], [], "/home"),
            ([unlink, '8 chdir("d") = 0', '7 openat(AT_FDCWD</home/d>, "/x", O_RDONLY) = 3</x>'], [], None),
            ([unlink, '7 chdir("d") = 0', '7 openat(AT_FDCWD</home>, "/x", O_RDONLY) = 3</x>'], [], None),
            ([unlink, '8 write(1, "cd AT_FDCWD</home>", 18) = 18'], [], None),
            ([unlink, '8 openat(AT_FDCWD, "/lib/x", O_RDONLY) = 3</lib/x>', '8 openat(AT_FDCWD, "d/\\303\\251", O_RDONLY) = 3</home/d/\\303\\251>'], [], "/home"),
            ([unlink, '8 open("x", O_RDWR|O_CREAT, 0644) = 3</x>', '8 getcwd("/home", 4096) = 6'], [], "/home"),
            ([unlink, '8 open("x", O_RDONLY) = 3</home/x>', '8 chdir("/tmp") = 0'], [], "/home"),
            ([unlink, '8 stat("/w", {st_mode=S_IFDIR|0755, ...}) = 0 <0.000011>', '8 stat(".", {st_mode=S_IFDIR|0755, ...}) = 0 <0.000012>', '8 chdir("/tmp") = 0'], [], "/w"),
            (['7 newfstatat(-100, "/w", {st_mode=040755, ...}, 0) = 0', '7 newfstatat(-100, ".", {st_mode=040755, ...}, 0) = 0', unlink], [], "/w"),
            ([unlink, '8 stat("/w", {st_size=9, ...}) = 0', " > /usr/bin/dash(main+0x18a) [0x53fa]", " > /usr/bin/dash() [0x7]", '8 stat(".", {st_size=9, ...}) = 0'], [], "/w"),
            ([unlink, '8 stat("/w", {st_size=9, ...}) = 0\r', '8 stat(".", {st_size=9, ...}) = 0\r'], [], "/w"),
            ([unlink, r'8 stat("\x2f\x77", {st_size=9, ...}) = 0', r'8 stat("\x2e", {st_size=9, ...}) = 0'], [], "/w"),
            ([unlink, '8 stat("/w", {st_size=9, ...}) = 0', '8 stat(".", {st_size=9, ...}) = 0', '8 getcwd("/home", 4096) = 6'], [], "/home"),
            ([unlink, '8 stat("/w", {st_size=9, ...}) = 0', '8 stat(".", {st_size=8, ...}) = 0'], [], None),
            ([unlink, '8 stat("/w", {st_size=9, ...}) = 0', '9 stat(".", {st_size=9, ...}) = 0'], [], None),
            ([unlink, '8 stat("/w", 0x1) = -1 ENOENT (x)', '8 stat(".", 0x1) = -1 ENOENT (x)'], [], None),
            ([unlink, '8 statfs("/w", {f_type=TMPFS_MAGIC, ...}) = 0', '8 statfs(".", {f_type=TMPFS_MAGIC, ...}) = 0'], [], None),
            ([unlink, '8 execve("/bin/ls", ["ls", "/w", "."], 0x1) = 0', '8 stat("/w", {st_size=9, ...}) = 0', '8 stat(".", {st_size=9, ...}) = 0'], [], None),
            ([unlink, '8 open("link", O_RDONLY) = 3</home/x>', '8 open("../x", O_RDONLY) = 3</home/x>', '8 open("x", O_RDONLY) = -1 ENOENT (x)', '8 chdir("d") = 0',
              '8 open("x", O_RDONLY) = 3</home/d/x>'], [], None)):
        text, r = text_of(lines, *options)
        assert any(f'unlink(pathname="{want or ""}/a")' in line for line in text), (lines, options, text)
        notes = notes_of(lines, *options)
        assert ("--cwd DIR" in notes) == (want is None), (lines, options, notes)


def test_calls_in_two_pieces_of_which_the_second_names_nobody():
    """As -z, -Z and --status= have it."""
    for begun, rest in (("read(3, ", '"x\\n", 8192) = 2 <0.000002>'), ("read(3, ", "0x7ffd, 8192) = 2"), ("read(3, ", "NULL, 8192) = 2"), ('read(3, "x\\n", ', "8192) = 2"),
                        ('read(3, "x\\n", 8192', ") = 2")):
        for before in ("7 ", "7 1.000000 ", "[pid  7] "):
            same(calls([before + begun + " <unfinished ...>", rest, before + "fsync(3) = 0"]), ["read(fd=#1, count=8192) = 2", "fsync(fd=#1) = 0"])


def test_a_text_that_is_indented():
    lines = [OPEN, "vfork( <unfinished ...>", "8 fsync(3) = 0", "7 <... vfork resumed>) = 8", "7 close(3) = 0"]
    plain = ["7 " + line if line[0] not in "78" else line for line in lines]
    for blanks in (" ", "    "):
        same(text_of([blanks + line for line in plain])[0], text_of(plain)[0])


def test_times_in_whole_seconds():
    """No process has such a number, and none has two."""
    for before in ("1795464971 ", "7 1795464971 ", "[pid 7] 1795464971 ", "     0 ", "7      0 "):
        lines, _ = text_of([before + 'openat(AT_FDCWD, "/f", O_RDONLY) = 3', before.replace("971", "972").replace("0 ", "1 ") + 'read(3, "x", 1) = 1'])
        assert len({line.split("]")[0] for line in lines}) == 1 and 'path="/f" compute=1000000000' in lines[1], lines


def test_statx_with_raw_flags():
    got = calls(['statx(AT_FDCWD, "/l", AT_STATX_SYNC_AS_STAT|AT_SYMLINK_NOFOLLOW|AT_NO_AUTOMOUNT, STATX_TYPE|STATX_MODE, {stx_mode=S_IFLNK|0777, stx_size=7, ...}) = 0'])
    same(calls(['statx(-100, "/l", |0x900, 0x3, {stx_mode=0120777, stx_size=7, ...}) = 0']), got)
    same(calls(['statx(-100 /* AT_FDCWD */, "/l", 0 /* AT_STATX_SYNC_AS_STAT */|0x900 /* AT_SYMLINK_NOFOLLOW|AT_NO_AUTOMOUNT */, '
                '0x3 /* STATX_TYPE|STATX_MODE */, {stx_mode=0120777 /* S_IFLNK|0777 */, stx_size=7, ...}) = 0']), got)
    assert "NOFOLLOW" in got[0], got


def test_both_names_of_a_call_are_after_the_directory():
    same(calls(['renameat2(AT_FDCWD</w>, "a", AT_FDCWD</w>, "b", RENAME_NOREPLACE) = 0']), ['renameat2(oldpath="/w/a", newpath="/w/b", flags=RENAME_NOREPLACE) = 0'])
    same(calls(['rename("/tmp/a", "b") = 0'], "--cwd", "/w"), ['rename(oldpath="/tmp/a", newpath="/w/b") = 0'])
    same(calls(['linkat(AT_FDCWD</w>, "/tmp/a", AT_FDCWD</w>, "b", 0) = 0']), ['linkat(oldpath="/tmp/a", newpath="/w/b", flags=0) = 0'])
    same(calls(['openat(-100 /* AT_FDCWD */</w>, "a", 0 /* O_RDONLY */) = 3</w/a>']), ['openat(pathname="/w/a", flags=O_RDONLY, mode=00) = 3'])


def test_results():
    same(calls(['openat(AT_FDCWD, "/f", O_RDONLY) = -1 ENOENT (No such file or directory)', 'lseek(3, 0, SEEK_CUR) = 0x10',
                  'fcntl(3, F_GETFL) = 0x8000 (flags O_RDONLY|O_LARGEFILE)', "exit_group(1) = ?", 'read(3, "", 1) = ? ERESTARTSYS (To be restarted)']), [
        SEEN[:-1] + "-ENOENT", "lseek(fd=#1, offset=0, whence=SEEK_CUR) = 16", "fcntl(fd=#1, cmd=F_GETFL) = 32768", "exit_group() = ?"])


def test_blanks_that_were_made_tabs():
    same(calls([OPEN, "getuid()\t\t= 0", "umask(022)\t\t= 022", "close(3)\t\t= 0"]), [SEEN, "umask(mask=022) = 18", "close(fd=#1) = 0"])


def test_calls_in_two_pieces():
    same(calls(["1 10.000001 read(3,  <unfinished ...>", '2 10.000002 openat(AT_FDCWD, "/x, <y>", O_RDONLY <unfinished ...>',
                  '1 10.000003 <... read resumed>"a\\")= 5", 10) = 10 <0.000002>', "2 10.000004 <... openat resumed>) = -1 ENOENT (No such file or directory) <0.000002>",
                  "1 10.000005 fsync( <unfinished ...>", "1 10.000006 <... fsync resumed> 3) = 0", "1 10.000007 <... write resumed>) = 5"]), [
        "read(fd=#1, count=10) = 10", 'openat(pathname="/x, <y>", flags=O_RDONLY, mode=00) = -ENOENT', "fsync(fd=#1) = 0"])
    # A whole call, whatever it ends with (-e raw), is not the rest of another.
    same(calls(["1 fsync(3 <unfinished ...>", "2 read(0x3, 0x7f00, 0x2000) = 0x2cd", "1 <... fsync resumed>) = 0"]),
         ["read(fd=#1, count=8192) = 717", "fsync(fd=#2) = 0"])


def test_a_process_that_is_gone_before_its_call_has_a_name():
    for none in "???", "????":
        lines, r = text_of(['7 1.000000 openat(AT_FDCWD, "/f", O_RDONLY) = 3', f"8 1.000100 {none}( <unfinished ...>", "7 1.000200 exit_group(0 <unfinished ...>",
                            f"8 1.000300 <... {none} resumed>) = ?", f"9 1.000350 {none}() = ?", "7 1.000400 <... exit_group resumed>) = ?"])
        assert [line.split("(")[0].split()[-1] for line in lines] == ["openat", "exit_group"], lines


def test_what_execve_closes():
    """Sockets and the like, too: what their number is after it, was another file's."""
    made = ["socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0) = 3", "accept4(9, NULL, NULL, SOCK_CLOEXEC|SOCK_NONBLOCK) = 3", "eventfd2(0, EFD_CLOEXEC) = 3",
            "epoll_create1(EPOLL_CLOEXEC) = 3", "timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC) = 3", "signalfd4(-1, [], 8, SFD_CLOEXEC) = 3",
            "inotify_init1(IN_CLOEXEC) = 3"]
    for one in made:
        rest = ['execve("/bin/a", ["a"], []) = 0', 'read(3, "x", 1) = 1']
        assert "#2" in calls([one, *rest])[2], one
        kept = re.sub(r"[\w|]*CLOEXEC[\w|]*", "0", one)
        assert "#1" in calls([kept, *rest])[2], kept
    for flags, request, left in (("O_RDONLY|O_CLOEXEC", "FIONCLEX", True), ("O_RDONLY", "FIOCLEX", False), ("O_RDONLY", "0x5451 /* FIOCLEX */", False)):
        found = text_of([f'openat(AT_FDCWD, "/f", {flags}) = 3', f"ioctl(3, {request}) = 0", 'execve("/bin/a", ["a"], []) = 0', "fsync(3) = 0"])[0]
        assert ('path="/f"' in found[2]) == left, found


def test_descriptors_that_came_over_a_socket_are_of_the_files_that_were_sent():
    rights = "{msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base=\"msg_control=[{\", iov_len=1}], msg_iovlen=1, msg_control=[{cmsg_len=20, %s%s}], msg_controllen=24, msg_flags=0}, 0) = 1"
    for how, data in (("cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, ", "cmsg_data=[%s]"), ("cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, ", "{%s}"),
                      ("cmsg_level=0x1, cmsg_type=0x1, ", "cmsg_data=[%s]"), ("cmsg_level=0x1 /* SOL_SOCKET */, cmsg_type=0x1 /* SCM_RIGHTS */, ", "cmsg_data=[%s]")):
        for f, g in (("", ""), ("</f>", "</g>")):
            found = text_of(["7 socketpair(AF_UNIX, SOCK_STREAM, 0, [5, 6]) = 0", "7 socketpair(AF_UNIX, SOCK_STREAM, 0, [7, 8]) = 0", '7 openat(AT_FDCWD, "/f", O_RDWR) = 3',
                             '7 write(3, "abc", 3) = 3', '7 openat(AT_FDCWD, "/g", O_RDWR) = 4', "7 fork() = 9", "9 close(3) = 0", "9 close(4) = 0",
                             "7 sendmsg(5, " + rights % (how, data % ("3" + f)), "7 sendmsg(7, " + rights % (how, data % ("4" + g)), "7 close(4) = 0",
                             "9 recvmsg(8, " + rights % (how, data % ("11" + g)), "9 recvmsg(6, " + rights % (how, data % ("12" + f)),
                             f'9 write(12{f}, "12345", 5) = 5', f'9 write(11{g}, "1", 1) = 1'])[0]
            assert "at=3 " in found[-2] and 'path="/f"' in found[-2] and "at=0 " in found[-1] and 'path="/g"' in found[-1], found
    # What went to somebody who was not traced did not come from another one.
    one = rights % ("cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, ", "cmsg_data=[%d]")
    found = text_of(["7 socketpair(AF_UNIX, SOCK_STREAM, 0, [5, 6]) = 0", "7 socketpair(AF_UNIX, SOCK_STREAM, 0, [7, 8]) = 0", '7 openat(AT_FDCWD, "/f", O_RDWR) = 3', "7 fork() = 9",
                     "7 sendmsg(5, " + one % 3, "9 recvmsg(8, " + one % 11, "9 fsync(11) = 0"])[0]
    assert "[not a file]" in found[-1], found
    # What was only looked at comes once more.
    sent = rights % ("cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, ", "cmsg_data=[%d]")
    for flags in ("MSG_PEEK", "MSG_PEEK|MSG_CMSG_CLOEXEC", "0x2", "0x2 /* MSG_PEEK */"):
        found = text_of(["7 socketpair(AF_UNIX, SOCK_STREAM, 0, [5, 6]) = 0", '7 openat(AT_FDCWD, "/f", O_RDWR) = 3', '7 write(3, "abc", 3) = 3', "7 fork() = 9", "9 close(3) = 0",
                         "7 sendmsg(5, " + sent % 3, "9 recvmsg(6, " + (sent % 11).replace(", 0) =", f", {flags}) ="), "9 recvmsg(6, " + sent % 12, '9 write(12, "12345", 5) = 5'])[0]
        assert "at=3 " in found[-1], (flags, found)
    # A message may have several lists of them, and whoever gets it less room (MSG_CTRUNC); it is not the next message then.
    begin = ["7 socketpair(AF_UNIX, SOCK_STREAM, 0, [5, 6]) = 0", '7 openat(AT_FDCWD, "/f", O_RDWR) = 3', '7 openat(AT_FDCWD, "/g", O_RDWR) = 4', '7 write(4, "abc", 3) = 3', "7 fork() = 9"]
    two = sent.replace("}], msg_controllen", "}, {cmsg_len=20, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data=[%d]}], msg_controllen")
    found = text_of(begin + ["7 sendmsg(5, " + two % (3, 4), "9 recvmsg(6, " + sent.replace("%d", "%d, %d") % (11, 12), '9 write(12, "1", 1) = 1'])[0]
    assert "at=3 " in found[-1], found
    found = text_of(begin + ["7 sendmsg(5, " + sent.replace("%d", "4, %d") % 3, "7 sendmsg(5, " + sent % 3, "9 recvmsg(6, " + (sent % 11).replace("msg_flags=0", "msg_flags=MSG_CTRUNC"),
                             "9 recvmsg(6, " + sent % 12, '9 write(11, "1", 1) = 1', "9 fsync(12) = 0"])[0]
    assert 'path="/g"' in found[-2] and 'path="/f"' in found[-1], found
    # Files without a name, several in a message.
    found = text_of(begin + ["7 sendmsg(5, " + sent.replace("%d", "3</f>(deleted), 4</g>(deleted)"), "9 recvmsg(6, " + sent.replace("%d", "11</f>(deleted), 12</g>(deleted)"), '9 write(12</g>(deleted), "1", 1) = 1'])[0]
    assert "at=3 " in found[-1], found
    # What one end has given, it does not get itself.
    found = text_of(begin + ["7 sendmsg(5, " + sent % 3, "9 sendmsg(6, " + sent % 4, "7 recvmsg(5, " + sent % 11, "9 recvmsg(6, " + sent % 12, "7 fsync(11) = 0", "9 fsync(12) = 0"])[0]
    assert 'path="/g"' in found[-2] and 'path="/f"' in found[-1], found
    # An exec closes what came with MSG_CMSG_CLOEXEC.
    for flags, still in ("MSG_CMSG_CLOEXEC", False), ("0x40000000", False), ("0", True):
        found = text_of(begin + ["9 close(3) = 0", "7 sendmsg(5, " + sent % 3, "9 recvmsg(6, " + (sent % 3).replace(", 0) =", f", {flags}) ="), '9 execve("/bin/x", ["x"], 0x1) = 0',
                                 "9 fsync(3) = 0" if still else "9 fsync(3) = -1 EBADF (Bad file descriptor)"])[0]
        assert ('path="/f"' in found[-1]) == still, (flags, found)
    # Other calls' values are no descriptors.
    found = text_of(['openat(AT_FDCWD, "/f", O_RDWR) = 3', "sendmsg(5, " + sent % 3, 'vmsplice(6, [{iov_base="1234567", iov_len=7}], 1, 0) = 7', "fsync(7) = 0"])[0]
    assert "7" in found[-2].partition("[")[2] and "[not a file]" in found[-1], found
    # The call that brings several names them in order; -s cut this one.
    found = text_of(['openat(AT_FDCWD, "/f", O_RDWR) = 3', "sendmsg(5, " + rights % ("cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, ", "cmsg_data=[3, ...]"), "fsync(4) = 0"])[0]
    assert "[not a file]" in found[-1], found


def test_a_thread_that_calls_execve_becomes_the_process():
    for second in (["8 1.3 execve(\"/bin/x\", [\"x\"], 0x7ff <unfinished ...>", "7 1.4 +++ superseded by execve in pid 8 +++"],
                   ["8 1.3 execve(\"/bin/x\", [\"x\"], 0x7ff <pid changed to 7 ...>", "7 1.4 +++ superseded by execve in pid 8 +++"]):
        for result in (") = 0 <0.1>", ") = -1 (errno 18446744073709551527) <0.000900>"):
            lines = ["7 1.0 " + OPEN, '7 1.1 openat(AT_FDCWD, "/g", O_RDONLY|O_CLOEXEC) = 4',
                     "7 1.2 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD} => {parent_tid=[8]}, 88) = 8", *second,
                     "7 1.5 <... execve resumed>" + result, "7 1.6 fsync(3) = 0", "7 1.7 fsync(4) = -1 EBADF (Bad file descriptor)"]
            found, _ = text_of(lines)
            assert found[3].startswith('[1 7/7] execve(pathname="/bin/x") = 0'), found
            assert 'path="/f"' in found[4] and "-EBADF" in found[5], found
            # With what it has alone.
            found, _ = text_of([*lines[:3], "8 1.21 unshare(CLONE_FILES) = 0", "8 1.22 dup2(3, 5) = 5", "7 1.23 close(3) = 0", *lines[3:], "7 1.8 fsync(5) = 0"])
            assert all('path="/f"' in found[i] for i in (-3, -1)) and "-EBADF" in found[-2], found


def test_what_a_thread_was_ended_in_has_no_result():
    """strace knows of none then, and shows a number that is no error's."""
    for result in ("?", "-1 (errno 18446744073709551615)"):
        lines = ["7 1.0 " + OPEN, "7 1.1 clone(child_stack=0x7, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD) = 8",
                 '8 1.2 write(3, "x", 1 <unfinished ...>', "7 1.3 exit_group(0) = ?", "8 1.4 <... write resumed>) = " + result]
        found, _ = text_of(lines)
        assert [re.search(r"\] (\w+)", one)[1] for one in found] == ["openat", "clone", "exit_group"], (result, found)


def test_the_number_of_a_thread_that_called_execve_is_anothers_later():
    """And it was where its process was."""
    begins = ['1 100.01 mkdir("/b", 0700) = 0', '1 100.02 creat("/b/x", 0600) = 3', "1 100.03 fork() = 9"]
    moves, made = '1 100.04 chdir("/b") = 0', "1 100.05 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD} => {parent_tid=[2]}, 88) = 2"
    executes = ['2 100.20 execve("/bin/x", ["x"], 0x1 /* 1 var */ <pid changed to 1 ...>', "1 100.21 +++ superseded by execve in pid 2 +++", "1 100.22 <... execve resumed>) = 0"]
    goes_on = ['1 100.30 unlink("x" <unfinished ...>', '9 100.31 open("/b/x", O_WRONLY|O_CREAT|O_EXCL, 0600) = 4', "1 100.32 <... unlink resumed>) = 0",
               '1 100.40 creat("/y", 0600) = 4', "1 100.41 fork() = 2", '2 100.42 write(4, "abc", 3) = 3', "2 100.43 exit_group(0) = ?", "1 100.44 lseek(4, 0, SEEK_CUR) = 3"]
    for lines in ([moves, made], [made, '2 100.1 getcwd("/", 4096) = 2', moves]):
        r, sizes = replayed([*begins, *lines, *executes, *goes_on])
        assert r["mismatched"] == 0 and sizes == {"/b": None, "/b/x": 0, "/y": 3}, (r["mismatches"], sizes)


def test_execve_closes_what_the_other_threads_had_for_themselves():
    """A lock that one of them holds is given up with its descriptors."""
    with Tmp() as tmp:
        path = os.path.join(tmp, "t.strace")
        with open(path, "w", encoding="utf-8") as f:
            f.write("7 1.0 clone(child_stack=0x7, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD) = 8\n"
                    "8 1.1 unshare(CLONE_FILES) = 0\n8 1.2 openat(AT_FDCWD, \"/f\", O_RDWR) = 3\n8 1.3 flock(3, LOCK_EX) = 0\n"
                    '7 1.4 execve("/bin/x", ["x"], 0x7ff) = 0\n7 1.5 openat(AT_FDCWD, "/f", O_RDWR) = 3\n7 1.6 flock(3, LOCK_EX|LOCK_NB) = 0\n')
        for order in ("trace", "depend"):
            report = feign("replay", path, "--root", tmp, "--order", order, "--json").json()
            assert report["mismatched"] == 0, (order, report["mismatches"])


def test_locks_of_threads_that_strace_was_attached_to_are_their_process():
    with Tmp() as tmp:
        path, root = os.path.join(tmp, "t.strace"), os.path.join(tmp, "root")
        os.mkdir(root)
        lock = "{l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=8}"
        with open(path, "w", encoding="utf-8") as f:
            f.write('7 1.0 openat(AT_FDCWD</>, "/f", O_RDWR|O_CREAT, 0666) = 3</f>\n8 1.1 openat(AT_FDCWD</>, "/f", O_RDWR) = 4</f>\n'
                    '7 1.2 pread64(4</f>, "", 1, 0) = 0\n'
                    f"7 1.3 fcntl(3</f>, F_SETLK, {lock}) = 0\n8 1.4 fcntl(4</f>, F_SETLK, {lock}) = 0\n")
        report = feign("replay", path, "--root", root, "--json").json()
        assert report["mismatched"] == 0, report["mismatches"]


def test_what_a_duplicate_of_was_closed_stays_open_where_threads_are_found():
    lines = ['100 1.0 read(3, "x", 1) = 1', '101 1.1 openat(AT_FDCWD, "/d/log", O_WRONLY|O_CREAT|O_APPEND, 0666) = 4', "101 1.2 fcntl(4, F_DUPFD_CLOEXEC, 10) = 10",
             "101 1.3 close(4) = 0", '101 1.4 write(10, "abcdefgh", 8) = 8', '100 1.5 openat(AT_FDCWD, "/d/b", O_RDWR|O_CREAT, 0666) = 7', "101 1.6 close(7) = 0",
             '100 1.7 openat(AT_FDCWD, "/d/c", O_RDWR|O_CREAT, 0666) = 7', '101 1.8 write(10, "abcdefgh", 8) = 8']
    assert ' path="/d/log"' in text_of(lines)[0][-1], text_of(lines)[0]


def test_a_filter_remembers_no_more_than_what_is_open():
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.strace")

        def write(count):
            with open(trace, "w", encoding="utf-8") as f:
                for _ in range(count):
                    f.write(f"{OPEN}\nclose(3) = 0\n")

        bounded(write, "convert", "-q", trace, os.path.join(tmp, "out.feign"), "--with", "filter,preset=workload", counts=(2000, 600000))


def test_paths_and_what_is_in_them():
    name = 'a\\"b), = 1 <c>\\n\\303\\251\\t\\\\'
    want = 'a\\"b), = 1 <c>\\né\\t\\\\'
    same(calls([f'openat(AT_FDCWD</tmp/x<y>>, "{name}", O_RDONLY) = 3</tmp/x<y>/{name}>']), [f'openat(pathname="/tmp/x<y>/{want}", flags=O_RDONLY, mode=00) = 3'])
    assert calls(['openat(AT_FDCWD, "\\x2f\\x66", O_RDONLY) = 3', 'openat(3</f<char 1:3>>, "", O_RDONLY) = -1 ENOENT (x)'])[0] == SEEN
    for end in ("-", "-\\76", "->x", "->"):   # no arrow: those are between brackets
        same(calls([f'openat(AT_FDCWD</tmp/a{end}>, "f", O_RDONLY) = 3</tmp/a{end}/f>', f'read(3</tmp/a{end}/f>, "", 10) = 0']),
             [f'openat(pathname="/tmp/a{end.replace(chr(92) + "76", ">")}/f", flags=O_RDONLY, mode=00) = 3', "read(fd=#1, count=10) = 0"])
    for socket in ("TCP:[127.0.0.1:4->127.0.0.1:5]", 'UNIX-STREAM:[4->5,"/tmp/so]>-"]', "TCPv6:[[::1]:4->[::1]:5]"):
        same(calls([f'read(3<{socket}>, "r", 1) = 1', 'openat(AT_FDCWD, "/f", O_RDONLY) = 4'])[-1:], [SEEN.replace("3", "4")])
    same(calls(['readlink("/l", "half of it"..., 10) = 10']), ['readlink(pathname="/l", buf="", bufsiz=10) = 10'])


def test_raw_and_verbose_arguments():
    same(calls(['openat(-100, "/f", 0, 000) = 3', 'openat(0xffffff9c, "/f", 0x0) = 3', 'openat(-100 /* AT_FDCWD */</w>, "/f", 0 /* O_RDONLY */) = 3']), [SEEN] * 3)
    found = calls(["openat(0xffffff9c, 0x7ffe1234, 0x80000) = 0x3", "read(0x3, 0x7ffe1234, 0x10) = 0x10", "close(0x3) = 0"])
    assert found[1].startswith("read(") and found[1].endswith("count=16) = 16"), found


def test_vectors_that_are_cut():
    same(calls([OPEN, 'writev(3, [{iov_base="a"..., iov_len=100}, {iov_base="b", iov_len=20}], 2) = 120', "writev(3, [...], 40) = 640",
                  'writev(3, [{iov_base="a", iov_len=1}, ...], 40) = 40'])[1:], ["writev(fd=#1, iov=[100 20]) = 120", "writev(fd=#1) = 640", "writev(fd=#1) = 40"])


def test_flags_say_where_a_vector_goes():
    at = []
    for flags in ("0", "RWF_APPEND", "RWF_NOAPPEND", "0x20 /* RWF_??? */"):
        lines, _ = text_of(['open("/f", O_WRONLY|O_APPEND) = 3', 'write(3, "12345", 5) = 5', f'pwritev2(3, [{{iov_base="x", iov_len=1}}], 1, 2, {flags}) = 1'])
        at.append(re.search(r" at=(\d+)", lines[-1])[1])
    assert at == ["5", "5", "2", "2"], at


def test_other_architectures_and_old_text():
    same(calls(['open("/f", O_RDONLY) = 3', "_llseek(3, 4294967296, [4294967306], SEEK_SET) = 0", 'fstat64(3, {st_mode=S_IFREG|0644, st_size=5, ...}) = 0',
                  'stat64("/f", {st_mode=S_IFREG|0644, st_size=5, ...}) = 0', 'fstatat64(AT_FDCWD, "/f", {st_mode=S_IFREG|0644, st_size=5, ...}, 0) = 0',
                  "ftruncate64(3, 10) = 0", "mmap2(NULL, 4096, PROT_READ, MAP_PRIVATE, 3, 0) = 0xb7700000", "mmap2(NULL, 4096, PROT_READ, MAP_PRIVATE, 3, 0x13e) = 0xb7700000", "fcntl64(3, F_GETFD) = 0",
                  'execve("/bin/x", ["x"], [/* 15 vars */]) = 0', "[ Process PID=7 runs in 32 bit mode. ]", 'pread(3, "x", 1, 5) = 1']), [
        'open(pathname="/f", flags=O_RDONLY, mode=00) = 3', "_llseek(fd=#1, offset=4294967296, whence=SEEK_SET) = 4294967306", "fstat(fd=#1) = 0",
        'stat(pathname="/f") = 0', 'newfstatat(pathname="/f", flags=0) = 0', "ftruncate(fd=#1, length=10) = 0",
        "mmap(length=4096, prot=1, flags=MAP_PRIVATE, fd=#1, offset=0) = 3077570560", "mmap(length=4096, prot=1, flags=MAP_PRIVATE, fd=#1, offset=1302528) = 3077570560", "fcntl(fd=#1, cmd=F_GETFD) = 0",
        'execve(pathname="/bin/x") = 0', "pread64(fd=#1, count=1, offset=5) = 1"])


def test_the_command_that_was_typed():
    same(calls(["me@there:~/x$ strace -f ./a.out", "\u276f strace ./a.out", OPEN, "_exit(0) = ?"], ), calls([OPEN, "exit(0) = ?"]))
    same(calls(["Script started on 2026-01-31 10:00:00+00:00 [<not executed on terminal>]", OPEN, "", 'Script done on 2026-01-31 10:00:01+00:00 [COMMAND_EXIT_CODE="0"]']), [SEEN])
    with Tmp() as tmp:
        path = os.path.join(tmp, "t.strace")
        for lines, line in (([OPEN, "$ strace ./a.out"], 2), (["$ ./a.out", OPEN], 1)):
            with open(path, "w", encoding="utf-8") as f:
                f.write("\n".join(lines) + "\n")
            refuses("info", path, "--provider", "strace", text=rf't\.strace:{line}: "\$ .*want CALL')


def test_what_is_no_call():
    found, r = text_of(["strace: Process 7 attached", OPEN, " > /usr/lib/libc.so.6(open+0x1) [0x2]", " | 00000  61 62   ab |", " * 100 bytes in buffer 0",
                        "--- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---", "--- stopped by SIGTTOU ---", "+++ exited with 0 +++", "+++ killed by SIGKILL (core dumped) +++", "",
                        "% time     seconds  usecs/call     calls    errors syscall", "------ ----------- ----------- --------- --------- ----------------",
                        " 20.46    0.000239           0       364        30 newfstatat"])
    assert len(found) == 2 and " exit_group() = ?" in found[1], found


def test_a_table_of_counts_is_no_trace():
    with Tmp() as tmp:
        path = os.path.join(tmp, "c.strace")
        with open(path, "w", encoding="ascii") as f:
            f.write("% time     seconds  usecs/call     calls    errors syscall\n------ ----------- ----------- --------- --------- ----------------\n"
                    " 20.46    0.000239           0       364        30 newfstatat\n")
        refuses("info", path, text=r"c\.strace:1: .*strace without -c")


def test_tables_of_other_columns():
    for head in ("syscall             errors", "   calls syscall", "% time     seconds    longest  shortest"):
        same(calls([OPEN, head, "------------------- ---------", "           364        30"]), [SEEN])


def test_calls_whose_results_strace_made_up():
    """They were not made: the file is still there, the descriptor open, and no child began."""
    for behind in ("", " <0.000010>"):
        found, r = text_of([f'1 unlink("/f") = 0 (INJECTED){behind}', f'1 open("/f", O_RDONLY) = -1 ENOENT (No such file or directory) (INJECTED) (DELAYED){behind}', f'1 open("/f", O_RDONLY) = 3{behind}',
                            f'1 close(3) = -1 EIO (Input/output error) (INJECTED){behind}', "1 close(3 <unfinished ...>", f'2 read(3, "", 1) = 0{behind}', f"1 <... close resumed>) = 0 (INJECTED){behind}",
                            f'1 unlink("/x (INJECTED)") = 0 (DELAYED){behind}', f'1 read(3, "", 1) = 0 (INJECTED: args){behind}'])
        assert [re.sub(r".*\] (\w+)\(.*", r"\1", line) for line in found] == ["open", "read", "unlink", "read"], found
    with Tmp() as tmp:
        path = os.path.join(tmp, "t.strace")
        with open(path, "w", encoding="utf-8") as f:
            f.write('unlink("/f") = 0 (INJECTED)\nopen("/f", O_RDONLY) = -1 ENOENT (No such file or directory) (INJECTED)\n'
                    'open("/f", O_RDONLY) = 3\nclose(3) = 0 (INJECTED)\nread(3, "x", 1) = 1\n')
        report = feign("replay", path, "--root", tmp, "--json").json()
        assert report["matched"] == 2 and report["mismatched"] == report["skipped"] == 0, report
        assert [(c["call"], c["count"]) for c in report["left_out"]] == [("close", 1), ("open", 1), ("unlink", 1)], report["left_out"]


def test_colours():
    same(calls(["\x1b[34m7\x1b[0m \x1b[1;33mopenat\x1b[0m(AT_FDCWD, \"/f\", O_RDONLY) = \x1b[31m3\x1b[0m"]), [SEEN])
    # Whole lines, also beside a call that is under way, and before the end of a line that was broken.
    lines = ["7 " + OPEN, "7 fsync(3 <unfinished ...>", "8 fsync(4) = -1 EBADF (Bad file descriptor)", "7 <... fsync resumed>) = 0", '7 write(1, "a\\n", 2a', ") = 2"]
    same(text_of([f"\x1b[33m{line}\x1b[0m" for line in lines])[0], text_of(lines)[0])


def test_a_terminal_names_processes_only_while_there_are_several():
    found, _ = text_of([OPEN, "clone(child_stack=NULL, flags=SIGCHLDstrace: Process 8 attached", ") = 8", "[pid     7] fsync(3) = 0",
                        "[pid     8] openat(AT_FDCWD, \"/g\", O_RDONLY <unfinished ...>", "[pid     7] exit_group(0) = ?", "[pid     7] +++ exited with 0 +++",
                        "<... openat resumed>) = 4", "fsync(4) = 0"])
    assert 'path="/f"' in found[2] and found[2].startswith("[1 "), found
    assert 'path="/g"' in found[-1] and found[-1].startswith("[2 "), found


def test_a_program_writes_to_the_terminal_that_it_is_traced_on():
    same(calls([OPEN, 'write(1, "one\\ntwo \\"(\\n"..., 129one', "two \"(", "f(x) = 3 <", ') = 129 <0.000010>', 'write(2, "$ (\\"", 4$ (") = 4', 'write(1, "5\\n", 25', ") = 2",
                'read(0, ls', '"ls\\n", 1024) = 3', 'writev(1, [{iov_base="a", iov_len=1}, {iov_base="\\n", iov_len=1}], 2a', ") = 2", "fsync(3hello", "", ") = 0",
                'wait4(-1, of a child', '[{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 8', "poll([{fd=3}], 1, -1two", "lines", ") = 1"])[1:],
         ["write(fd=#2, count=129) = 129", "write(fd=#3, count=4) = 4", "write(fd=#2, count=2) = 2", "read(fd=#4, count=1024) = 3", "writev(fd=#2, iov=[1 1]) = 2", "fsync(fd=#1) = 0",
          "wait4(options=0) = 8"])
    found, _ = text_of(["[pid     7] " + OPEN, '[pid     7] write(1, "a\\n", 2a', " <unfinished ...>", "[pid     8] fsync(3) = 0", "[pid     7] <... write resumed>) = 2"])
    assert " fsync(" in found[1] and " write(fd=#3, count=2) = 2 " in found[2], found
    found = text_of(["[pid     7] " + OPEN, '[pid     7] write(1, "ab", 2 <unfinished ...>', '[pid     8] openat(AT_FDCWD, "/g", O_WRONLY|O_CREAT, 0640ab <unfinished ...>',
                     "[pid     7] <... write resumed>) = 2", "[pid     8] <... openat resumed>) = 4"])[0]
    assert "mode=0640) = 4 " in found[-1], found
    found, _ = text_of(["20:00:00 " + OPEN, '20:00:01 write(1, "x\\n01:00:00 y\\n", 13x', "01:00:00 y", ") = 13", "20:00:02 fsync(3) = 0"])
    assert [f.split("compute=")[1].split()[0] for f in found[1:]] == ["1000000000"] * 2, found
    writes = ["[pid     7] " + OPEN, '[pid     7] write(1, "a\\nb", 3 <unfinished ...>', "[pid     8] fsync(3) = 0", "a", "b[pid     8] read(3,  <unfinished ...>", "[pid     7] <... write resumed>) = 3",
              '[pid     8] <... read resumed>"", 2) = 0']
    assert [f.split("(")[0].split()[-1] for f in text_of(writes)[0]] == ["openat", "fsync", "write", "read"], text_of(writes)
    with Tmp() as tmp:
        path = os.path.join(tmp, "t.strace")
        with open(path, "w", encoding="ascii") as f:
            f.write("\n".join([*writes[:3], writes[5], "a", ""]))
        refuses("info", path, text=r't\.strace:5: "a": want CALL')
    same(calls(["poll([{fd=3, events=POLLIN}], 1", OPEN]), [SEEN])   # no activity: its end does not matter
    # What does not end is an error in its own line, whatever comes after it.
    for rest in (["fsync(3) = 0"], ["+++ exited with 0 +++"], ["x" * 1000] * 1100, ["x"], []):
        with Tmp() as tmp:
            path = os.path.join(tmp, "t.strace")
            with open(path, "w", encoding="ascii") as f:
                f.write("\n".join([OPEN, 'write(3, "ab", 2', *rest, ""]))
            refuses("info", path, text=r"t\.strace:2: write\(\): the arguments do not end.*--keep-going")
            r = feign("info", path, "--provider", "strace,keep-going=yes")
            assert r.status == 0 and re.search(r"\(line\) +\d", r.out), r


def test_strace_leaves_a_process_and_says_so():
    for by in ("strace: ", "/usr/bin/strace: ", "strace-4.26: ", "./strace-6.8/src/strace_new: ", ""):
        found, r = text_of([by + "Process 7 attached", OPEN, "clone(child_stack=NULL, flags=SIGCHLD" + by + "Process 8 attached (waiting for parent)", ") = 8", "[pid     7] fsync(3) = 0",
                            by + "Process 7 suspended", by + "Process 7 resumed (parent 6 ready)", "[pid     8] fsync(3) = 0",
                            "[pid     7] read(0, " + by + "Process 7 detached", by + "Process 8 detached", " <detached ...>"])
        assert r.status == 0 and [f[1] for f in found] == ["1", "1", "1", "2"], found
        same(calls([f'execve("/f", ["f"], 0x5 /* 40 vars */{by}Process 8 attached', ") = 0"]), calls(['execve("/f", ["f"], 0x5 /* 40 vars */) = 0']))
        same(calls([OPEN, f'write(3, "ab"...{by}Process 8 attached', ", 20) = 20"]), calls([OPEN, 'write(3, "ab"..., 20) = 20']))
    same(calls([OPEN, "read(0,  <detached ...>"]), calls([OPEN]))
    same(calls(["strace: Process 7 attached with 3 threads", "Process 7 attached - interrupt to quit", OPEN, "<detached ...>"]), calls([OPEN]))


def test_commands_of_fcntl():
    new = [OPEN, "fcntl(3, F_SETLKW, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=7, l_len=5}) = 0"]
    same(calls([OPEN, "fcntl(3, F_SETLKW, {type=F_WRLCK, whence=SEEK_SET, start=7, len=5}) = 0"]), calls(new))      # before 4.11
    same(calls([OPEN, "fcntl64(3, F_SETLKW64, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=7, l_len=5}) = 0"]), calls(new))   # of 32 bits
    # One that nobody knows is not F_DUPFD, which is 0.
    found = calls([OPEN, 'openat(AT_FDCWD, "/g", O_RDONLY) = 4', "fcntl(3, F_NEWER, 0) = 4", "fsync(4) = 0", "fcntl(3, 0, 5) = 5", "fsync(5) = 0"])
    assert "fsync(fd=#2)" in found[3] and "fsync(fd=#1)" in found[5], found


def test_listings_of_32_bits_are_not_compared():
    lines = ['openat(AT_FDCWD, "/l", O_RDONLY|O_DIRECTORY) = 3', "getdents(3, /* 3 entries */, 32768) = 52", "getdents(3, /* 0 entries */, 32768) = 0", 'open("/l/known", O_RDONLY) = 4']
    for wide, lines in ((True, lines), (False, ['fstat64(0, {st_mode=S_IFCHR|0620, ...}) = 0', *lines])):
        with Tmp() as tmp:
            path, root = os.path.join(tmp, "t.strace"), os.path.join(tmp, "root")
            os.mkdir(root)
            with open(path, "w", encoding="ascii") as f:
                f.write("\n".join(lines) + "\n")
            r = feign("replay", path, "--root", root, "--json")
            assert (json.loads(r.out)["mismatched"] == 0) != wide, r.out


def test_arguments_with_their_names():
    plain = [OPEN, 'newfstatat(3, "", {st_mode=S_IFREG|0644, st_size=3, ...}, AT_EMPTY_PATH) = 0', 'writev(3, [{iov_base="a", iov_len=1}], 1) = 1', "pipe2([4, 5], O_CLOEXEC) = 0",
             'pwrite64(3, "ab", 2, 7) = 2', "copy_file_range(3, NULL, 4, [5], 10, 0) = 3", "clone3({flags=CLONE_VM|CLONE_FILES, exit_signal=0} => {parent_tid=[8]}, 88) = 8",
             'write(4<pipe:[77]>, "a", 1) = 1', 'read(3</f>, "a", 1) = 1']
    named = ['openat(dirfd=AT_FDCWD, pathname="/f", flags=O_RDONLY) = 3', 'newfstatat(dirfd=3, pathname="", statbuf={st_mode=S_IFREG|0644, st_size=3, ...}, flags=AT_EMPTY_PATH) = 0',
             'writev(fd=3, iov=[{iov_base="a", iov_len=1}], iovcnt=1) = 1', "pipe2(pipefd=[4, 5], flags=O_CLOEXEC) = 0", 'pwrite64(fd=3, buf="ab", count=2, offset=7) = 2',
             "copy_file_range(fd_in=3, off_in=NULL, fd_out=4, off_out=[5], len=10, flags=0) = 3", "clone3(cl_args={flags=CLONE_VM|CLONE_FILES, exit_signal=0} => {parent_tid=[8]}, size=88) = 8",
             'write(fd=4<pipe:[77]>, buf="a", count=1) = 1', 'read(fd=3</f>, buf="a", count=1) = 1']
    same(calls(named), calls(plain))
    # What takes effect at its start, and who may be waited for, is told by the beginning.
    begun = ['7 write({}4<pipe:[77]>, {}"a", {}1 <unfinished ...>', '8 read({}5<pipe:[77]>, {}"a", {}1) = 1', "7 <... write resumed>) = 1"]
    same([line.format(*[""] * 3) for line in calls([b.format("fd=", "buf=", "count=") for b in begun])], calls([b.format("", "", "") for b in begun]))


def test_names_on_mips():
    same(calls(['o32_open("/f", O_RDONLY) = 3', 'n32_read(3, "", 10) = 0', "n64_close(3) = 0"]), calls(['open("/f", O_RDONLY) = 3', 'read(3, "", 10) = 0', "close(3) = 0"]))


def test_mounts_are_counted():
    with Tmp() as tmp:
        path = os.path.join(tmp, "t.strace")
        with open(path, "w", encoding="ascii") as f:
            f.write('7 1.0 mount("none", "/d", "tmpfs", 0, NULL) = 0\n7 1.1 open("/d/f", O_RDWR|O_CREAT, 0644) = 3\n7 1.2 close(3) = 0\n7 1.3 umount2("/d", 0) = 0\n')
        left_out = feign("info", path, "--json").json()["left_out"]
        assert [(x["call"], x["count"]) for x in left_out] == [("mount", 1), ("umount2", 1)] and all(x["why"].startswith("mounts are not followed") for x in left_out), left_out
        assert feign("replay", path, "--root", tmp, "--json").json()["mismatched"] == 0 and os.path.exists(os.path.join(tmp, "d", "f"))


def test_attributes_by_a_directory():
    same(calls([OPEN, 'setxattrat(AT_FDCWD, "/f", AT_SYMLINK_NOFOLLOW, "user.x", {value="size=9, flags=3", size=15, flags=XATTR_CREATE}, 16) = 0',
                'setxattrat(AT_FDCWD, "/f", 0, "user.y", {value=NULL, size=0, flags=0}, 16) = 0',
                'getxattrat(3</f>, "", AT_EMPTY_PATH, "user.x", {value="si"..., size=64, flags=0}, 16) = 15',
                'listxattrat(AT_FDCWD, "/f", 0, "user.x\\0", 256) = 7', 'removexattrat(AT_FDCWD, "/f", 0, "user.x") = 0',
                'file_getattr(AT_FDCWD, "/f", {fa_xflags=0, fa_extsize=0, fa_nextents=1, fa_projid=0, fa_cowextsize=0}, 24, 0) = 0',
                'setxattrat(AT_FDCWD, "/f", 0, "user.z", 0x7ffe1234, 16) = -1 EFAULT (Bad address)'])[1:],
         ['setxattrat(path="/f", at_flags=AT_SYMLINK_NOFOLLOW, name="user.x", size=15, flags=1) = 0',
          'setxattrat(path="/f", at_flags=0, name="user.y", size=0, flags=0) = 0',
          'getxattrat(dirfd=#1, path="/f", at_flags=AT_EMPTY_PATH, name="user.x", size=64) = 15',
          'listxattrat(path="/f", at_flags=0, size=256) = 7', 'removexattrat(path="/f", at_flags=0, name="user.x") = 0',
          'file_getattr(path="/f", at_flags=0) = 0', 'setxattrat(path="/f", at_flags=0, name="user.z", size=0) = -EFAULT'])



def test_a_thread_whose_maker_is_told_no_end_of_the_call_that_made_it():
    clone = ('1  clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM, child_tid=0x7f, '
             'parent_tid=0x7f, exit_signal=0, stack=0x7f, stack_size=0x7f} <unfinished ...>')
    begin = ['1  openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0600) = 3', clone, '2  write(3, "abc", 3) = 3']
    for end in [['2  execve("/bin/cp", ["cp"], 0x7ff /* 3 vars */ <unfinished ...>',
                 '1  +++ superseded by execve in pid 2 +++', '1  <... execve resumed>) = 0', '1  exit_group(0) = ?'],
                ['2  exit_group(0 <unfinished ...>', '1  <... clone3 resumed>) = ?', '2  <... exit_group resumed>) = ?'],
                ['2  exit_group(0) = ?', '1  +++ exited with 0 +++'], ['1  +++ killed by SIGKILL +++']]:
        lines, _ = text_of(begin + end)
        assert lines[1].startswith("[1 1/1] clone3(flags=CLONE_VM") and ") = 2 <" in lines[1], lines[1]
        assert lines[2].startswith("[2 1/2] write(fd=#1, count=3) = 3 ") and 'path="/f"' in lines[2], lines[2]


def test_a_call_that_lasts_longer_than_its_place_is_kept():
    lines = calls(['1  openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0600) = 3', '1  write(1<pipe:[5]>, "x", 1 <unfinished ...>'] +
                  ['2  access("/g", F_OK) = -1 ENOENT (No such file or directory)'] * ((1 << 18) + 100) +
                  ['1  <... write resumed>) = 1', '2  mkdir("/h", 0700) = 0', '1  write(3, "ab", 2) = 2'])
    lines = [line for line in lines if not line.startswith("access(")]
    same(lines, ['openat(pathname="/f", flags=O_RDWR|O_CREAT, mode=0600) = 3', 'write(fd=#2, count=1) = 1',
                 'mkdir(pathname="/h", mode=0700) = 0', 'write(fd=#1, count=2) = 2'])


def test_a_file_without_a_name_has_a_mode_where_none_is_shown():
    same(calls(['openat(AT_FDCWD, "/", O_RDWR|O_DIRECTORY|0x400000) = 3', 'openat(AT_FDCWD, "/", O_RDWR|O_TMPFILE, 0644) = 4',
                'open("/", O_RDWR|O_TMPFILE) = 5']),
         ['openat(pathname="/", flags=O_TMPFILE|O_RDWR, mode=0600) = 3', 'openat(pathname="/", flags=O_TMPFILE|O_RDWR, mode=0644) = 4',
          'open(pathname="/", flags=O_TMPFILE|O_RDWR, mode=0600) = 5'])


def test_an_exit_that_is_not_waited_for_is_no_other_call_later():
    """Its process had locks: what it holds up goes on before it is over, and others' calls wait in the meantime."""
    missing = " = -1 ENOENT (No such file or directory)"
    lines = calls(['1  access("/none", F_OK)' + missing, '1  openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0600) = 3',
                   '1  flock(3, LOCK_EX) = 0', '1  exit_group(0 <unfinished ...>'] +
                  [f'2  access("/a{n}", F_OK)' + missing for n in range(4200)] +
                  ['3  write(1<pipe:[5]>, "x", 1 <unfinished ...>'] +
                  [f'2  access("/b{n}", F_OK)' + missing for n in range(8000)] +
                  ['1  <... exit_group resumed>) = ?', '1  +++ exited with 0 +++', '3  <... write resumed>) = 1'])
    assert sum(line.startswith("access(") for line in lines) == 12201, len(lines)
    assert sum(line.startswith("exit_group(") for line in lines) == 1, [line for line in lines if "exit" in line]


def test_quotes_in_the_values_of_attributes_of_old():
    same(calls(['setxattr("/f", "user.a", "{"k": "v, 2) = 7"}", 17, XATTR_CREATE) = 0',
                'getxattr("/f", "user.a", "{"k": "v, 2) = 7"}", 256) = 17',
                'fgetxattr(3, "user.b", "(""..., 64) = 40'])[:2],
         ['setxattr(path="/f", name="user.a", size=17, flags=XATTR_CREATE) = 0', 'getxattr(path="/f", name="user.a", size=256) = 17'])

def test_calls_that_strace_is_too_old_for():
    same(calls([OPEN, "syscall_326(0x3, 0, 0x4, 0, 0x7fffffffc0000000, 0) = 0x5d55", "syscall_0x146(0x3, 0, 0x4, 0, 0x10, 0) = 0x10", "syscall_436(0x3, 0xffffffff, 0, 0, 0, 0) = 0"])[1:],
         ["copy_file_range(fd_in=#1, off_in=NULL, off_out=NULL, len=9223372035781033984, flags=0) = 23893", "copy_file_range(fd_in=#1, off_in=NULL, off_out=NULL, len=16, flags=0) = 16",
          "close_range(first=3, last=4294967295, flags=0) = 0"])
    # A path that is lost is not that of the directory: another file's mode is no business of its.
    lines, _ = text_of(['openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = 3', "syscall_0x1c4(0x3, 0x7fd5, 0x180, 0, 0, 0x6) = 0", "syscall_0x1c4(0x3, 0x7fd5, 0x180, 0x1000, 0, 0x6) = 0"])
    assert '"/d"' not in lines[1] and 'dirfd=#1, pathname="/d", mode=0600, flags=AT_EMPTY_PATH' in lines[2], lines
    with Tmp() as tmp:
        path = os.path.join(tmp, "t.strace")
        with open(path, "w", encoding="ascii") as f:
            f.write("syscall_0x1cf(0xffffff9c, 0x7fba, 0, 0x7fbb, 0x7fbc, 0x10) = 0\nsyscall_0x1d4(0x3, 0x7fba, 0x7fbb, 0x18, 0x1000, 0) = 0\n"
                    "syscall_318(0x7fba, 0x8, 0x1, 0, 0, 0) = 0x8\nsyscall_9999(0, 0, 0, 0, 0, 0) = -1 ENOSYS (Function not implemented)\n")
        r = feign("info", path)
        assert r.status == 0 and re.search(r"getrandom .*who and when\n.*syscall_9999 .*no description", r.out), r.out


def test_a_day_passes():
    found, _ = text_of(["23:59:59.900000 " + OPEN + " <0.000001>", "00:00:00.100000 fsync(3) = 0 <0.000001>"], "--provider", "strace,overhead=none")
    assert "compute=199999000" in found[1], found


def test_a_clock_that_is_set_back_is_said_and_gone_on_with():
    with Tmp() as tmp:
        path, out = os.path.join(tmp, "t.strace"), os.path.join(tmp, "o.txt")
        with open(path, "w", encoding="ascii") as f:
            f.write(f"7 1795229500.5 {OPEN} <0.1>\n7 1795229400.0 fsync(3) = 0 <0.1>\n7 1795229400.5 fsync(3) = 0 <0.1>\n")
        r = feign("convert", path, out)
        assert r.status == 0 and re.search(r"t\.strace:2: the clock was set back by 100\.500 s", r.err), r.err
        with open(out, encoding="utf-8") as f:
            starts = [float(line.split()[1]) for line in f]
        assert starts == sorted(starts) and starts[2] - starts[1] == 0.5, starts


def test_descriptors_that_are_taken_from_a_process_share_its_offsets():
    lines = ('1 openat(AT_FDCWD, "/k", O_RDONLY) = 4', '1 pidfd_open(1, 0) = 3', '1 pidfd_getfd(3, 4, 0) = 5', '1 read(5, "abc", 3) = 3', '1 read(4, "de", 3) = 2', '1 read(5, "", 3) = 0',
             '1 clone(child_stack=NULL, flags=SIGCHLD) = 7', '7 openat(AT_FDCWD, "/o", O_RDWR|O_CREAT, 0600) = 8', '7 write(8, "1234", 4) = 4',
             '1 pidfd_open(7, 0) = 6<anon_inode:[pidfd]>', '1 pidfd_getfd(6<anon_inode:[pidfd]>, 8, 0) = 9</o>', '1 write(9</o>, "1234", 4) = 4')
    with Tmp() as tmp:
        trace, root = os.path.join(tmp, "t.strace"), os.path.join(tmp, "root")
        with open(trace, "w") as f:
            f.write("\n".join(lines) + "\n")
        for order in ("trace", "depend"):
            shutil.rmtree(root, ignore_errors=True)
            os.mkdir(root)
            report = feign("replay", trace, "--root", root, "--order", order, "--json").json()
            assert report["mismatched"] == 0, report["mismatches"]
            assert [os.path.getsize(os.path.join(root, n)) for n in "ko"] == [5, 8]


def test_seeks_that_are_not_in_the_trace_are_said_to_lack():
    end = ['read(3, "", 4096) = 9', 'read(3, "", 4096) = 9']
    for lines, note in (([OPEN, *end], True), ([OPEN, end[0], 'read(3, "", 4096) = 0'], False), ([OPEN, end[0], 'write(3, "", 9) = 9'], False),
                        ([OPEN, end[0], "lseek(3, 0, SEEK_SET) = 0", end[1]], False), (['execve("/x", ["x"], 0x1) = 0', OPEN, *end], False),
                        ([OPEN.replace("/f", "/proc/self/maps"), *end], False)):
        assert ("the trace lacks calls that move offsets" in notes_of(lines)) == note, lines


def test_a_trace_that_lacks_its_threads_or_all_that_succeeded_says_so():
    process = "clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD) = 10"
    for lines, note in (([THREAD, OVER], True), ([process, OVER], False), ([f"9 {THREAD}", "9 " + OVER], False)):
        assert ("threads were made that the trace has no call of" in notes_of(lines)) == note, lines
    failed = ['access("/f", F_OK) = -1 ENOENT (No such file or directory)', 'ioctl(3, TCGETS, 0x1) = -1 ENOTTY (Inappropriate ioctl for device)'] * 4
    for lines, note in ((failed, True), (failed[:7], False), ([*failed, "brk(NULL) = 0x1"], False), ([*failed, OPEN], False), ([*failed, "exit_group(0) = ?"], True)):
        assert ("no call in the trace succeeded" in notes_of(lines)) == note, lines
    failed = ["io_uring_enter(4, 1, 1, 0, NULL, 8) = -1 EBADF (Bad file descriptor)"]
    ring = ["io_uring_setup(8, {flags=0, sq_thread_cpu=0, sq_thread_idle=0}) = 4", "io_uring_enter(4, 1, 1, IORING_ENTER_GETEVENTS, NULL, 8) = 1"]
    for lines, note in ((ring[:1] + failed, False), (ring, True)):
        assert ("io_uring_enter was called" in notes_of([OPEN, *lines])) == note, lines


def test_descriptors_whose_close_is_not_in_the_trace():
    """An open that returns one tells it; a process that ends closes what it had, whether a call says so or not."""
    close = "close(3) = 0"
    for lines, note in (([OPEN, OPEN], True), ([OPEN, close, OPEN], False), ([OPEN + "</f>"] * 2, False),
                        (['memfd_create("m", MFD_CLOEXEC) = 3', 'execve("/x", ["x"], 0x1) = 0', OPEN], False)):
        assert ("the trace lacks calls that close descriptors" in notes_of(lines)) == note, lines
    # Gone with an exec, however that was asked for.
    program = 'execve("/p", ["p"], 0x7f /* 0 vars */) = 0'
    for made, note in (('memfd_create("m", MFD_CLOEXEC) = 3', False), ('memfd_create("m", 0) = 3', True), ("pidfd_open(7, 0) = 3", False),
                       ("fanotify_init(FAN_CLOEXEC, O_RDONLY) = 3", False), ("eventfd2(0, EFD_CLOEXEC) = 3", False),
                       ("epoll_create1(0) = 3", True), ("read(3<pipe:[7]>, \"\", 9) = 0", False), ("pipe2([...], O_CLOEXEC) = 0", False)):
        assert ("the trace lacks calls that close descriptors" in notes_of([made, program, OPEN])) == note, made
    for found in 'read(3<pipe:[7]>, "", 9) = 0', 'read(3</g>, "", 9) = 0':  # -y tells what has the number next, too
        assert "lacks calls that close" not in notes_of([found, OPEN]), found
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t")
        some = ['7 openat(AT_FDCWD, "/d/%d", O_WRONLY|O_CREAT, 0666) = 3', '7 write(3, "x", 1) = 1']
        ends = ['%d openat(AT_FDCWD, "/d/%d", O_WRONLY|O_CREAT, 0666) = 3', '%d +++ exited with 0 +++']
        for lines in ([line % n if "%" in line else line for n in range(1500) for line in some],
                      [ends[0] % (n, n) if "open" in line else line % n for n in range(10, 1510) for line in ends]):
            with open(trace, "w", encoding="utf-8") as f:
                f.write("\n".join(lines) + "\n")
            for order in ("trace", "depend", "stream"):
                root = os.path.join(tmp, order)
                os.mkdir(root)
                # On few threads: 1,500 processes that nothing orders may all have a file open at once.
                r = json.loads(subprocess.run(["prlimit", "--nofile=400:400", FEIGN, "replay", trace, "--root", root, "--order", order, "--json", "--streams-per-core", "20"],
                                              stdout=subprocess.PIPE, check=True, timeout=120).stdout)
                assert r["fidelity"] == 1 and len(os.listdir(os.path.join(root, "d"))) == 1500, (order, r["mismatches"])
                shutil.rmtree(root)


def test_ends_of_processes():
    """By a call, by a signal, or unseen: each ends once."""
    lines = ['7 openat(AT_FDCWD, "/f", O_RDONLY) = 3', '7 exit_group(0) = ?', '7 +++ exited with 0 +++',
             '8 openat(AT_FDCWD, "/f", O_RDONLY) = 3', '8 +++ killed by SIGKILL +++',
             '9 +++ exited with 0 +++', '8 openat(AT_FDCWD, "/f", O_RDONLY) = 3']
    same(calls(lines), [SEEN, 'exit_group() = ?', SEEN, 'exit_group() = ?', SEEN])
    threads = ['5 openat(AT_FDCWD, "/f", O_RDONLY) = 3', '5 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD) = 6',
               '6 openat(AT_FDCWD, "/f", O_RDONLY) = 4', '6 +++ killed by SIGKILL +++', '5 +++ killed by SIGKILL +++']
    same(calls(threads)[3:], ['exit() = ?', 'exit_group() = ?'])


def test_descriptors_that_nothing_tells_are_said():
    """But not standard input and what is made of it, which are open in every trace."""
    used = "7 lseek(%d, 0, SEEK_CUR) = 0"
    for lines, said in (([used % 3], True), ([used % 0], False), (["7 fcntl(0, F_DUPFD_CLOEXEC, 3) = 5", used % 5, used % 5], False),
                        (["7 dup2(5, 0) = 0", used % 0], True), (["7 dup(0) = 5", used % 5, used % 6], True)):
        assert ("whose opening is not in the trace" in notes_of(lines)) == said, lines


def test_who_was_killed_before_a_call_is_in_the_trace():
    """Its end is all that there is of it: there is nothing of it that a trace could lack."""
    made = "clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD) = 8"
    lines = [f"7 {made}", "7 kill(8, SIGKILL) = 0", "8 +++ killed by SIGKILL +++", "7 wait4(8, NULL, 0, NULL) = 8"]
    assert replayed(lines)[0]["notes"] == []
    assert len(replayed([line for line in lines if "+++" not in line])[0]["notes"]) == 1  # it was not traced
    with Tmp() as tmp:
        for name, text in ("7", [f"1.000000 {made}", "1.200000 wait4(8, NULL, 0, NULL) = 8"]), ("8", ["1.100000 +++ killed by SIGKILL +++"]):
            with open(os.path.join(tmp, "t." + name), "w", encoding="utf-8") as f:
                f.write("\n".join(text) + "\n")
        notes = feign("info", os.path.join(tmp, "t"), "--json").json()["notes"]
        assert not any("processes are not in the trace" in note for note in notes), notes


def test_what_sigkill_ended_has_no_result():
    """strace shows what was left in a register: the call's own number."""
    other, more = '8 openat(AT_FDCWD, "/f", O_RDONLY) = 3', '7 openat(AT_FDCWD, "/f", O_RDONLY) = 3'
    for call in (["7 close(3) = 3"], ["7 fsync(3) = 74"], ["7 close(3 <unfinished ...>", other, "7 <... close resumed>) = 3"],
                 ["7 fsync(3 <unfinished ...>", other, "7 <... fsync resumed>) = 74"]):
        others = [SEEN] * (other in call)
        name = call[0][2:7]
        same(calls([more, *call, "7 +++ killed by SIGKILL +++"]), [SEEN, *others, "exit_group() = ?"])
        same(calls([more, *call, "8 +++ exited with 0 +++", "7 +++ killed by SIGKILL +++"])[-1:], ["exit_group() = ?"])
        # Whatever that is: it went on.
        for after in ([more], ["7 +++ exited with 1 +++"], []):
            got = calls([more, *call, *after])
            assert sum(line.startswith(f"{name}(fd=#1) = ") for line in got) == 1, got
    # Or 0, as if it had opened what it was refused: who goes on had closed that.
    opened = '7 openat(AT_FDCWD, "/g", O_RDONLY) = 0'
    refused = '8 openat(AT_FDCWD, "/g", O_RDONLY) = -1 ENOENT (No such file or directory)'
    for call in ([opened], ['7 openat(AT_FDCWD, "/g", O_RDONLY <unfinished ...>', other, "7 <... openat resumed>) = 0"]):
        report, _ = replayed([refused, more, *call, "7 +++ killed by SIGKILL +++", refused])
        assert report["mismatched"] == 0, report["mismatches"]
        assert sum('"/g"' in line for line in calls([more, *call, "7 close(0) = 0"])) == 1


def test_what_sigkill_ended_shows_what_another_stop_told():
    """The last result in the text, or the number of the kill. Whatever others say of the file then, it was not opened."""
    refused = '8 openat(AT_FDCWD, "/g", O_RDONLY) = -1 ENOENT (No such file or directory)'
    begin = [refused, '7 openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0600) = 3', '7 write(3, "x", 9999) = 9999', '7 mkdir("/d", 0700) = 0']
    before = ("8 getpid() = 832", "832"), ('8 read(0, "", 832) = 832', "832"), ("8 kill(0, SIGKILL <unfinished ...>", "62"), ("8 lseek(9, 0, SEEK_SET) = -1 EBADF (Bad file descriptor)", "-1 EBADF (Bad file descriptor)")
    for line, result in before:
        for text in ('openat(AT_FDCWD, "/g", O_RDONLY', "lseek(3, 0, SEEK_END", 'read(3, "", 1000', 'rename("/d", "/e"', 'pwrite64(3, "y", 1000, 9999'):
            name = text[:text.index("(")]
            ended = [*begin, f"7 {text} <unfinished ...>", line, f"7 <... {name} resumed>) = {result}"]
            report, tree = replayed([*ended, "7 +++ killed by SIGKILL +++"])
            assert report["mismatched"] == 0, (line, text, report["mismatches"])
            assert tree == {"/f": 9999 + int(result) if name == "pwrite64" and result.isdigit() else 9999, "/d": None}, (line, text, tree)
            if name != "rename" or result != "62":
                got = calls([*ended, "7 fsync(3) = 0", "7 +++ killed by SIGKILL +++"])
                assert sum(one.startswith(name + "(") and not one.endswith("= ?") for one in got) == 1 + (name == "openat") * 2 + (line.split("(")[0][2:] == name), (line, got)
    # Nothing else says so of who was ended by another one's exec, if strace leaves out ends (-qq).
    shared = "7 clone(child_stack=0x7, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD) = 9"
    lines = [*begin, shared, '9 write(3, "y", 2 <unfinished ...>', '7 execve("/bin/true", ["true"], 0x7 /* 35 vars */ <unfinished ...>', "9 <... write resumed>) = 4", "7 <... execve resumed>) = 0"]
    assert replayed(lines)[0]["mismatched"] == 0


def test_a_process_whose_end_no_call_tells_has_no_locks_any_more():
    """strace -e without exit_group, or it was killed: its record locks are free for the next one."""
    lock = 'fcntl(3, F_SETLK, {l_type=F_%sLCK, l_whence=SEEK_SET, l_start=0, l_len=9}) = %s'
    for first, shared in (("7", []), ("6", ['7 fork() = 6'])):  # by a descriptor of its own, or of its parent
        lines = ['7 openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0666) = 3', *shared]
        for n in range(20):
            one, other = f"{first if n == 0 else 100 + 2 * n}", f"{101 + 2 * n}"
            if n:
                lines += [f'7 fork() = {one}'] if shared else [f'{one} openat(AT_FDCWD, "/f", O_RDWR) = 3']
            lines += [f'{one} ' + lock % ("WR", 0), f'{one} ' + lock % ("RD", 0), f'{other} openat(AT_FDCWD, "/f", O_RDWR) = 3',
                      f'{other} ' + lock % ("WR", "-1 EAGAIN (x)"), f'{one} +++ exited with 0 +++' if n % 2 else f'{one} +++ killed by SIGKILL +++',
                      f'{other} ' + lock % ("WR", 0), f'{other} +++ exited with 0 +++']
        with Tmp() as tmp:
            trace, root = os.path.join(tmp, "t"), os.path.join(tmp, "root")
            with open(trace, "w", encoding="utf-8") as f:
                f.write("\n".join(lines) + "\n")
            os.mkdir(root)
            for order in ("trace", "depend"):
                report = feign("replay", trace, "--root", root, "--order", order, "--json").json()
                assert report["mismatched"] == 0, (first, order, report["mismatches"])


def test_annotations_tell_what_the_trace_leaves_out():
    at = '7 openat(AT_FDCWD</>, "%s", %s, 0666) = %s'
    some = [at % ("/f", "O_WRONLY|O_CREAT|O_APPEND", "3</f>"), at % ("/g", "O_WRONLY|O_CREAT", "4</g>")]
    with Tmp() as tmp:
        def replayed(*lines):
            trace, root = os.path.join(tmp, "t"), os.path.join(tmp, "root")
            with open(trace, "w", encoding="utf-8") as f:
                f.write("\n".join([*some, *lines]) + "\n")
            os.mkdir(root)
            r = feign("replay", trace, "--root", root, "--json").json()
            assert r["fidelity"] == 1, r["mismatches"]
            sizes = tuple(os.path.getsize(os.path.join(root, name)) for name in "fg")
            shutil.rmtree(root)
            return *sizes, r["skipped"]
        # dup2(3, 4): what was opened as 4 is not what is written to, and the end is where O_APPEND writes.
        assert replayed('7 write(3</f>, "ab", 2) = 2', '7 write(4</f>, "cd", 2) = 2', '7 write(5</g>, "x", 1) = 1', '7 write(5</g>, "y", 1) = 1') == (4, 2, 0)
        # Another process inherits what it writes on.
        assert replayed('7 write(1</g>, "ab", 2) = 2', '8 write(1</g>, "cd", 2) = 2', '7 write(1</g>, "e", 1) = 1') == (0, 5, 0)
        # No file any more, and one again.
        assert replayed('7 write(3<socket:[99]>, "ab", 2) = 2', '7 write(3</dev/null>, "ab", 2) = 2', '7 write(3</f>, "ab", 2) = 2') == (2, 0, 2)
        # One that is gone, whose name another one has.
        assert replayed('7 rename("/g", "/f") = 0', at % ("/n", "O_WRONLY|O_CREAT", "5</n>"), '7 rename("/n", "/f") = 0', '7 rename("/f", "/k") = 0',
                        at % ("/f", "O_WRONLY|O_CREAT", "6</f>"), at % ("/g", "O_WRONLY|O_CREAT", "7</g>"),
                        '7 write(4</f>(deleted), "abc", 3) = 3', '7 write(6</f>, "c", 1) = 1') == (1, 0, 0)
        # A name that was moved is the same file's.
        assert replayed('7 rename("/f", "/h") = 0', '7 write(3</h>, "ab", 2) = 2', '7 rename("/h", "/f") = 0', '7 write(3</f>, "c", 1) = 1') == (3, 0, 0)


def test_files_of_ff_by_their_prefix():
    files = {"app.11": ["10.0 " + OPEN, "10.2 fsync(3) = 0"], "app.9": ['10.1 openat(AT_FDCWD, "/g", O_RDONLY) = 3'], "app.txt": ["no trace"]}
    found, _ = text_of(files, name="app")
    assert [re.match(r"\[\d+ (?:rank \d+ )?(\d+)/", line)[1] for line in found] == ["11", "9", "11"], found


def test_a_close_of_another_thread_may_be_known_at_another_place():
    """Where the order of files is a guess, an open that returns what is open tells of no missing close, if later or before one closes what is not."""
    lacks, late, end = "the trace lacks calls that close descriptors", "close(3) = 0", "exit_group(0) = ?"
    for first, second, note in (([OPEN, OPEN, late], [late], False), ([late, OPEN, OPEN], [late], False), ([OPEN, OPEN], [late], True), ([OPEN, OPEN, late], ["fsync(1) = 0"], True)):
        for over in [end, OVER], [OVER]:
            _, r = text_of({"t.9": [THREAD, *first, *over], "t.10": [*second, OVER]}, name="t")
            assert (lacks in r.err) == note, (first, second, over, r.err)
            assert (lacks in notes_of(["9 " + THREAD, *(f"9 {line}" for line in first), *(f"10 {line}" for line in second), "9 " + over[0], "10 " + OVER])) == note, (first, second, over)


def test_files_of_ff_whose_order_is_a_guess():
    for time, guess in (("", True), ("10:00:00 ", True), ("0.000010 ", True), ("1795464971 ", True), ("10:00:00.5 ", False), ("1795464971.5 ", False)):
        with Tmp() as tmp:
            for pid in (9, 11):
                with open(os.path.join(tmp, f"app.{pid}"), "w", encoding="utf-8") as f:
                    f.write(f"{time}{OPEN}\n{time}fsync(3) = 0\n")
            notes = feign("info", os.path.join(tmp, "app"), "--json").json()["notes"]
        assert sum("is a guess" in note for note in notes) == guess, (time, notes)


def test_compressed():
    with Tmp() as tmp:
        plain = ("7 10.0 " + OPEN + "\n").encode()
        for name, data in (("a.gz", gzip.compress(plain)), ("b.gz", gzip.compress(plain) + gzip.compress(b"7 10.1 fsync(3) = 0\n"))):
            with open(os.path.join(tmp, name), "wb") as f:
                f.write(data)
            assert feign("info", os.path.join(tmp, name)).status == 0
        if shutil.which("zstd"):
            path = os.path.join(tmp, "c")
            with open(path, "wb") as f:
                f.write(plain)
            subprocess.run(["zstd", "-q", path], check=True)
            assert feign("info", path + ".zst").status == 0


def test_asynchronous_requests_are_one_activity_each():
    found = calls([OPEN, "io_setup(128, [0x7f2b5c0a7000]) = 0",
                   'io_submit(0x7f2b5c0a7000, 2, [{aio_data=0x55, aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=3</f>, aio_buf=0x7f, aio_nbytes=4096, aio_offset=8192}, '
                   '{aio_data=0x56, aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=3</f>, aio_buf="a, b}"..., aio_nbytes=512, aio_offset=0}]) = 2',
                   "io_submit(0x7f2b5c0a7000, 1, [{data=0, pread, fildes=3, str=\"...\", nbytes=1024, offset=4096}]) = 1",
                   "io_getevents(0x7f2b5c0a7000, 1, 2, [{data=0x55, obj=0x7ff, res=4096, res2=0}], NULL) = 1"])
    assert len(found) == 6 and found[2].startswith("io_submit(") and found[3].startswith("io_submit("), found
    full, _ = text_of([OPEN, 'io_submit(0x1, 2, [{aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=3, aio_nbytes=1, aio_offset=2}, {aio_lio_opcode=IOCB_CMD_FSYNC, aio_fildes=3}]) = 1'])
    assert len(full) == 2, full  # the second was not taken


def test_requests_that_the_text_does_not_tell_are_not_waited_for():
    with Tmp() as tmp:
        trace, root = os.path.join(tmp, "t.strace"), os.path.join(tmp, "root")
        os.mkdir(root)
        with open(trace, "w", encoding="ascii") as f:
            f.write("7 1.0 io_setup(8, [0x7f00]) = 0\n" +
                    "".join(f"7 1.{i + 1} io_submit(0x7f00, 1, [...]) = 1\n7 1.{i + 1}5 io_getevents(0x7f00, 1, 1, [...], NULL) = 1\n" for i in range(5)))
        r = feign("replay", trace, "--root", root, "--json", timeout=30)
        report = r.json()
        assert r.status == 0 and report["mismatched"] == 0, report["mismatches"]
        assert [(o["call"], o["count"]) for o in report["left_out"]] == [("io_submit", 5)], report["left_out"]
    # Of a long array strace shows the beginning (-s).
    write = "{aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=3, aio_nbytes=512, aio_offset=%d}"
    lines = ['7 1.0 openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0644) = 3', "7 1.1 io_setup(8, [0x7f00]) = 0"]
    for i in range(3):
        lines += [f"7 2.{i} io_submit(0x7f00, 3, [{write % (1024 * i)}, {write % (1024 * i + 512)}, ...]) = 3", f"7 2.{i}5 io_getevents(0x7f00, 1, 8, [{{data=0, obj=0x1, res=512, res2=0}}, ...], NULL) = 3"]
    report, sizes = replayed(lines)
    assert (report["mismatched"], sizes) == (0, {"/f": 3072}), (report["mismatches"], sizes)
    assert [(o["call"], o["count"]) for o in report["left_out"]] == [("io_submit", 3)], report["left_out"]


def test_a_thread_that_waits_for_anothers_requests_waits_for_them():
    with Tmp() as tmp:
        trace, root = os.path.join(tmp, "t.strace"), os.path.join(tmp, "root")
        os.mkdir(root)
        n = 6000  # more than a context holds
        lines = ['7 1.000000 openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0644) = 3', "7 1.000001 io_setup(128, [0x7f00]) = 0",
                 "7 1.000002 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD) = 8"]
        for i in range(n):
            lines += [f"7 2.{20 * i:06} io_submit(0x7f00, 1, [{{aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=3, aio_nbytes=512, aio_offset={512 * i}}}]) = 1",
                      f"8 2.{20 * i + 9:06} io_getevents(0x7f00, 1, 1, [...], NULL) = 1"]
        with open(trace, "w", encoding="ascii") as f:
            f.write("\n".join(lines) + "\n")
        for order in ("trace", "depend", "stream"):
            r = feign("replay", trace, "--root", root, "--json", "--order", order, timeout=60)
            assert r.status == 0 and r.json()["mismatched"] == 0, (order, r.json()["mismatches"])
        assert os.path.getsize(root + "/f") == 512 * n


def test_more_requests_than_a_context_holds_may_be_under_way():
    with Tmp() as tmp:
        trace, root = os.path.join(tmp, "t.strace"), os.path.join(tmp, "root")
        os.mkdir(root)
        n = 9000
        lines = ['7 1.000000 openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0644) = 3', "7 1.000001 io_setup(16384, [0x7f00]) = 0"]
        lines += [f"7 2.{i:06} io_submit(0x7f00, 1, [{{aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=3, aio_nbytes=512, aio_offset={512 * i}}}]) = 1" for i in range(n)]
        lines += [f"7 3.{i:06} io_getevents(0x7f00, 1, 90, [...], NULL) = 90" for i in range(n // 90)]
        with open(trace, "w", encoding="ascii") as f:
            f.write("\n".join(lines) + "\n")
        r = feign("replay", trace, "--root", root, "--json", timeout=60)
        assert r.status == 0 and r.json()["mismatched"] == 0, r.json()["mismatches"]
        assert os.path.getsize(root + "/f") == 512 * n


def test_contexts_of_requests_are_as_large_as_recorded():
    """All of a system's share a limit, 65536 requests."""
    lines = ['7 1.000000 openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0644) = 3']
    for i in range(1, 101):
        lines += [f"7 1.{i:06} io_setup(1, [{i:#x}]) = 0", f"7 2.{i:06} io_submit({i:#x}, 1, [{{aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=3, aio_nbytes=512, aio_offset={512 * i}}}]) = 1",
                  f"7 3.{i:06} io_getevents({i:#x}, 1, 1, [...], NULL) = 1"]
    report, sizes = replayed(sorted(lines))
    assert (report["mismatched"], sizes) == (0, {"/f": 512 * 101}), (report["mismatches"], sizes)


def test_times_of_every_form():
    forms = ("[{tv_sec=5, tv_nsec=6} /* 1970-01-01T00:00:05+0000 */, {tv_sec=7, tv_nsec=8}]", "[{5, 6}, {7, 8}]", "{{5, 6}, {7, 8}}")
    for form in forms:
        same(calls([f'utimensat(AT_FDCWD, "/f", {form}, 0) = 0']), ['utimensat(pathname="/f", times=[5 6 7 8], flags=0) = 0'])
    same(calls(['utimensat(AT_FDCWD, "/f", [UTIME_NOW, UTIME_OMIT], 0) = 0', 'utimes("/f", [{tv_sec=5, tv_usec=6}, {tv_sec=7, tv_usec=8}]) = 0',
                  'utime("/f", {actime=5 /* x */, modtime=7}) = 0', 'utimensat(3, NULL, NULL, 0) = 0'])[:3], [
        f'utimensat(pathname="/f", times=[0 {(1 << 30) - 1} 0 {(1 << 30) - 2}], flags=0) = 0', 'utimes(filename="/f", times=[5 6000 7 8000]) = 0', 'utime(filename="/f", times=[5 0 7 0]) = 0'])


def test_the_tracers_own_time():
    lines = []
    for i in range(200):  # 20 us between calls that compute nothing, and 5 ms before every tenth
        t = 1795229400 + i * 0.000030 + (i // 10) * 0.005
        lines.append(f"7 {t:.6f} getpid() = 7 <0.000010>" if i % 2 else f"7 {t:.6f} fsync(9) = 0 <0.000010>")

    def compute(option):
        found, r = text_of(lines, "--provider", "strace," + option)
        return sum(int(m[1]) for line in found for m in [re.search(r"compute=(\d+)", line)] if m), r

    none, _ = compute("overhead=none")
    auto, _ = compute("overhead=auto")
    given, _ = compute("overhead=20us")
    assert abs(none - (19 * 5_000_000 + 199 * 20_000 + 100 * 10_000)) < 100_000, none
    # A time that is given is taken off pauses; the estimate also knows what the calls between took.
    assert 0.97 * 19 * 5_000_000 < auto < given < 1.02 * 19 * 5_000_000, (none, auto, given)
    with Tmp() as tmp:
        path = os.path.join(tmp, "t.strace")
        with open(path, "w", encoding="ascii") as f:
            f.write("\n".join(lines) + "\n")
        assert re.search(r"note .*20\.0 us a call", feign("info", path).out)
        # Where nobody asks for pauses, there is no need to know.
        for pace, said in (("afap", False), ("think", True)):
            notes = feign("replay", path, "--replayer", "null", "--pace", pace, "--json").json().get("notes", [])
            assert any("20.0 us a call" in note for note in notes) == said, (pace, notes)
        refuses("info", path, "--provider", "strace,overhead=often", text="overhead=often: want auto, none or a time")
        refuses("info", path, "--provider", "strace,overhead=5", text="overhead=5: want")


def test_the_tracers_own_time_changes_and_is_not_taken_for_computing():
    # Calls of 10 us with 25 us between them, then of 60 with 90, as where processors fall asleep; in between the program computes.
    def computed(computing, every):
        lines, t, wanted = [], 1795229400.0, 0
        for i in range(2000):
            call, pause = (10, 25) if i // 250 % 2 == 0 else (60, 90)
            if i % every == 0 and i:
                t += computing / 1e6
                wanted += computing
            lines.append(f"7 {t:.6f} fsync(9) = 0 <{call / 1e6:.6f}>")
            t += (call + pause) / 1e6
        found, _ = text_of(lines)
        return sum(int(m[1]) for line in found for m in [re.search(r"compute=(\d+)", line)] if m) / 1000 / wanted

    for computing, every, least, most in ((300, 7, 0.95, 1.05), (50, 3, 0.9, 1.1), (100, 1, 0.75, 1.25), (1000, 1, 0.97, 1.03)):
        assert least < computed(computing, every) < most, (computing, every, computed(computing, every))


def test_every_call_is_accounted_for():
    lines = ["7 1.0 " + OPEN, "7 1.05 poll([{fd=4, events=POLLIN}], 1, -1) = 1 <0.01>", "7 1.1 futex(0x1, FUTEX_WAIT, 1, NULL) = 0 <0.05>", "7 1.2 brk(NULL) = 0x1", "7 1.3 some_new_call(1, 2) = 0", "7 1.4 mmap(NULL, 10, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f00",
             "7 1.5 munmap(0x7f00, 10) = 0", "7 1.6 io_uring_enter(4, 1, 1, 0, NULL, 8) = 1", "7 1.7 ioctl(0, TCGETS, {}) = 0"]
    with Tmp() as tmp:
        path = os.path.join(tmp, "t.strace")
        with open(path, "w", encoding="ascii") as f:
            f.write("\n".join(lines) + "\n")
        info = feign("info", path, "--json").json()
        said = {e["call"]: (e["count"], e["why"]) for e in info["left_out"]}
        assert info["ops"]["futex"]["count"] == 1 and info["ops"]["futex"]["seconds"] == 0.05, info
        assert abs(info["sync_seconds"] - 0.06) < 1e-9, info  # both waited
        assert said["poll"] == (1, "waits for others") and said["brk"][1] == "memory", said
        assert said["some_new_call"] == (1, "no description of this call") and said["mmap"][1] == said["munmap"][1] == "memory", said
        assert "strace cannot see them" in said["io_uring_enter"][1] and "storage" in said["ioctl"][1], said
        found, _ = text_of(lines + ["7 1.8 fsync(3) = 0"])
        futex = next(line for line in found if " futex(" in line)
        assert "sync=10000000" in futex and "<0.050000000>" in futex and "sync=" not in found[-1], found


def test_the_workload_keeps_the_time_of_what_is_left_out():
    def workload(*lines):
        return text_of(["7 1700000001." + line for line in lines], "--provider", "strace,overhead=none", "--with", "filter,preset=workload")[0]

    lines = workload('000000 openat(AT_FDCWD, "/w/a", O_RDONLY) = 3 <0.000100>',
                     '000300 openat(AT_FDCWD, "/etc/passwd", O_RDONLY) = 4 <0.005000>',
                     '006000 close(3) = 0 <0.000100>')
    assert len(lines) == 2 and lines[1].endswith("compute=5900000"), lines
    # Storage is what is no memory that processes share, wherever it lies.
    lines = workload('000000 openat(AT_FDCWD, "/dev/shm/w/a", O_RDONLY) = 3 <0.000100>',
                     '000300 openat(AT_FDCWD, "/dev/shm/vader_segment.node.7.1", O_RDWR|O_CREAT, 0600) = 4 <0.000100>',
                     '000500 openat(AT_FDCWD, "/dev/shm/sem.x", O_RDWR) = 5 <0.000100>',
                     '000700 openat(AT_FDCWD, "/dev/null", O_RDWR) = 6 <0.000100>')
    assert len(lines) == 1 and "/dev/shm/w/a" in lines[0], lines
    # At a pipe it waits for others.
    lines = workload('000000 openat(AT_FDCWD, "/w/a", O_RDONLY) = 3 <0.000100>',
                     "000300 pipe2([4, 5], 0) = 0 <0.000100>",
                     '001000 read(4, "x", 1) = 1 <0.005000>',
                     "006000 close(3) = 0 <0.000100>")
    assert len(lines) == 3 and lines[2].endswith("compute=600000 sync=5000000"), lines


def test_what_wakes_others_takes_place_when_it_starts():
    def order(lines):
        found, _ = text_of([f"{pid} 1700000000.{us:06} {text}" for us, (pid, text) in enumerate(lines)])
        return [line.split("] ")[1].split("(")[0] for line in found], found
    # The reader is quicker to return than the writer.
    by_pipe = [(1, "write(4%s,  <unfinished ...>"), (2, 'read(3%s, "x", 1) = 1 <0.000001>'), (1, '<... write resumed>"x", 1) = 1 <0.000002>')]
    named, lines = order([(pid, text.replace("%s", "<pipe:[77]>")) for pid, text in by_pipe])
    assert named == ["write", "read"], named
    assert len({re.search(r"file=(\d+)", line)[1] for line in lines}) == 1, lines  # one pipe
    assert order([(pid, text.replace("%s", "</f>")) for pid, text in by_pipe])[0] == ["read", "write"]
    wake = [(1, "futex(0x10, FUTEX_WAKE_PRIVATE, 1 <unfinished ...>"), (2, "futex(0x10, FUTEX_WAIT_PRIVATE, 5, NULL) = 0 <0.000001>"),
            (1, "<... futex resumed>) = 1 <0.000002>")]
    lines = order(wake)[1]
    assert "FUTEX_WAKE_PRIVATE" in lines[0] and "FUTEX_WAIT_PRIVATE" in lines[1] and "uaddr=16" in lines[0], lines


def test_of_calls_that_overlap_the_one_that_came_late_comes_after():
    at = "17000000%02d.000000"
    same(calls([f"1 {at % 0} mkdir(\"/d\", 0777 <unfinished ...>", f"2 {at % 1} mkdir(\"/d\", 0777) = -1 EEXIST (File exists) <0.000010>",
                f"1 {at % 2} <... mkdir resumed>) = 0 <2.000000>",
                # Its own process may have gone on since.
                f"1 {at % 3} mkdir(\"/e\", 0777 <unfinished ...>", f"2 {at % 4} mkdir(\"/d\", 0777) = -1 EEXIST (File exists) <0.000010>",
                f"2 {at % 5} mkdir(\"/e\", 0777) = -1 EEXIST (File exists) <0.000010>", f"2 {at % 6} rmdir(\"/d\") = 0 <0.000010>",
                f"1 {at % 7} <... mkdir resumed>) = 0 <4.000000>"]),
         ['mkdir(pathname="/d", mode=0755) = 0', 'mkdir(pathname="/d", mode=0755) = -EEXIST', 'mkdir(pathname="/d", mode=0755) = -EEXIST',
          'mkdir(pathname="/e", mode=0755) = 0', 'mkdir(pathname="/e", mode=0755) = -EEXIST', 'rmdir(pathname="/d") = 0'])
    # Who read to the end of a file read after those who got all they wanted; who never sees its call end is let go.
    got = calls([f"1 {at % 0} open(\"/f\", O_RDONLY) = 3 <0.000010>", f"1 {at % 1} fork() = 2 <0.000010>", f"1 {at % 2} read(3,  <unfinished ...>",
                 f"2 {at % 3} read(3, \"\", 10) = 0 <0.000010>", f"1 {at % 4} <... read resumed>\"0123456789\", 10) = 10 <2.000000>",
                 f"1 {at % 5} read(3,  <unfinished ...>", f"2 {at % 6} read(3, \"\", 10) = 0 <0.000010>"])
    same([c[c.index(") = "):] for c in got if c.startswith("read")], [") = 10", ") = 0", ") = 0"])


def race(*lines):
    """Lines of processes 1 to 3: "1 call(" begins a call, "1) = result" ends it, "1 call(...) = result" is whole. What the calls become: process and result."""
    out, under_way = ["1 1700000000.000000 chdir(\"/w\") = 0 <0.000001>"], {}
    for i, line in enumerate(lines):
        pid, text = line[0], line[1:].strip()
        if text.startswith(")"):
            text = f"<... {under_way.pop(pid)} resumed>{text} <1.000000>"
        elif " = " not in text:
            under_way[pid] = text.split("(")[0]
            text += " <unfinished ...>"
        else:
            text += " <0.000001>"
        out.append(f"{pid} 17000000{i + 1:02}.000000 {text}")
    found, _ = text_of(out)
    return [re.sub(r"^\[\d+ (\d+)/\S+\] (\w+)\(.*\) = (\S+).*", r"\1 \2 \3", line) for line in found[1:]]


def test_of_calls_that_overlap_results_tell_the_order():
    missing, there = ") = -1 ENOENT (No such file or directory)", ") = -1 EEXIST (File exists)"
    # Who did not find it was before who made it, who found it was behind.
    assert race('1 mkdir("d", 0777', '2 stat("d", 0x1', "1) = 0", "2" + missing) == ["2 stat -ENOENT", "1 mkdir 0"]
    assert race('1 mkdir("d", 0777', '2 access("d", F_OK', "2) = 0", "1) = 0") == ["1 mkdir 0", "2 access 0"]
    # The same of one that is removed or moved.
    assert race('1 unlink("f"', '2 access("f", F_OK', "1) = 0", "2) = 0") == ["2 access 0", "1 unlink 0"]
    assert race('1 rename("f", "g"', '2 open("f", O_RDONLY', '3 access("g", F_OK', "2" + missing, "3) = 0", "1) = 0") == ["1 rename 0", "2 open -ENOENT", "3 access 0"]
    # A listing, too: of a directory that is removed.
    assert race('1 open("/d", O_RDONLY|O_DIRECTORY) = 3', '1 getdents64(3, 0x1, 32768', '2 rmdir("/d"', "1" + missing, "2) = 0")[1:] == ["2 rmdir 0", "1 getdents64 -ENOENT"]
    opened = '1 open("/d", O_RDONLY|O_DIRECTORY) = 3'
    assert race(opened, '1 getdents64(3, 0x1, 32768', '2 rmdir("/d"', "2) = 0", "1) = 48")[1:] == ["1 getdents64 48", "2 rmdir 0"]
    assert race(opened, "1 getdents64(3, 0x1, 32768) = 48", '1 getdents64(3, 0x1, 32768', '2 rmdir("/d"', "2) = 0", "1) = 0")[2:] == ["1 getdents64 0", "2 rmdir 0"]
    # Who closes a directory before its end, and opens it again, lists all of it, however long the close took.
    begun = [opened, "1 getdents64(3, 0x1, 32768) = 80", "1 close(3", "1) = 0", opened, "1 getdents64(3, 0x1, 32768"]
    assert race(*begun, '2 unlink("/d/f"', "2) = 0", "1) = 80")[4:] == ["1 getdents64 80", "2 unlink 0"]
    # A directory that is moved takes along what is in it, and does not take the place of one with something in it.
    assert race('1 rename("d", "e"', '2 open("e/f", O_RDONLY', "2) = 3", "1) = 0") == ["1 rename 0", "2 open 3"]
    assert race('1 open("/d/f", O_RDONLY) = 3', '1 rename("/d", "/e"', '2 open("/d/f", O_RDONLY', "2" + missing, "1) = 0")[1:] == ["1 rename 0", "2 open -ENOENT"]
    assert race('1 stat("/d/f", 0x1) = 0', '1 rename("/d", "/e") = 0', '2 stat("/d/f", 0x1' + missing, '1 rename("/e", "/d") = 0', '1 rename("/d", "/e"', '2 stat("/d/f", 0x1', "2" + missing,
                "1) = 0")[4:] == ["1 rename 0", "2 stat -ENOENT"]
    assert race('1 rename("d", "e"', '2 open("f", O_RDONLY', "2) = 3", "1) = 0") == ["2 open 3", "1 rename 0"]
    # What was no link, or a directory, was there.
    for call, failed in (('readlink("d", 0x1, 99', "-EINVAL"), ('open("d", O_RDWR', "-EISDIR"), ('unlink("d"', "-EISDIR"), ('getxattr("d", "user.a", 0x1, 9', "-ENODATA"),
                         ('getxattr("d", "user.a", 0x1, 1', "-ERANGE"), ('removexattr("d", "user.a"', "-ENODATA")):
        assert race('1 mkdir("d", 0777', f"2 {call}", f"2) = -1 {failed[1:]} (x)", "1) = 0") == ["1 mkdir 0", f"2 {call.split('(')[0]} {failed}"], call
    # … and no directory, unless what it is below may be none.
    for call in 'rmdir("f"', 'chdir("f"', 'open("f", O_RDONLY|O_DIRECTORY', 'unlinkat(AT_FDCWD, "f", AT_REMOVEDIR':
        assert race('1 mknod("f", S_IFREG|0600', f"2 {call}", "2) = -1 ENOTDIR (x)", "1) = 0") == ["1 mknod 0", f"2 {call.split('(')[0]} -ENOTDIR"], call
    assert race('1 mknod("f", S_IFIFO|0600', '2 open("f", O_WRONLY|O_NONBLOCK', "2) = -1 ENXIO (x)", "1) = 0") == ["1 mknod 0", "2 open -ENXIO"]
    assert race('1 mknod("e/f", S_IFREG|0600', '2 rmdir("e/f"', "2) = -1 ENOTDIR (x)", "1) = 0") == ["2 rmdir -ENOTDIR", "1 mknod 0"]
    # One before the other before the third, which ended first.
    assert race('3 mkdir("d", 0777', '2 mkdir("d", 0777', '1 stat("d", 0x1', "2" + there, "1" + missing, "3) = 0") == ["1 stat -ENOENT", "3 mkdir 0", "2 mkdir -EEXIST"]
    # A lock that its owner had, looked at and gave up while another was after it: as they ended.
    assert race('1 open("/w/l", O_CREAT|O_EXCL, 0600) = 3', '2 open("/w/l", O_CREAT|O_EXCL, 0600', '1 stat("/w/l", {st_mode=S_IFREG|0600, st_size=0, ...}) = 0', '1 unlink("/w/l") = 0',
                "2) = 3") == ["1 open 3", "1 stat 0", "1 unlink 0", "2 open 3"]
    # A name is another one where its process has moved to.
    assert race('1 mkdir("d", 0777) = 0', '1 chdir("d") = 0', '1 mkdir("d", 0777', '2 mkdir("d", 0777', "2" + there, "1) = 0")[2:] == ["1 mkdir 0", "2 mkdir -EEXIST"]
    # A process begins where its maker is.
    assert race("1 fork() = 2", '2 stat("f", 0x1) = -1 ENOENT (x)', '1 creat("f", 0666', '2 rename("f", "g") = 0', "1) = 3")[2:] == ["1 creat 3", "2 rename 0"]
    # What is found in a directory that was made empty was made there, also where somebody has moved since.
    opens = ('1 open("f", O_WRONLY|O_CREAT|O_TRUNC, 0600', '2 stat("/d/f", 0x1', "2) = 0", "1) = 3")
    assert race('1 mkdir("/d", 0777) = 0', '1 chdir("/d") = 0', *opens)[2:] == ["1 open 3", "2 stat 0"]
    assert race('1 mkdir("/d", 0777) = -1 EEXIST (x)', '1 chdir("/d") = 0', *opens)[2:] == ["2 stat 0", "1 open 3"]
    # Nothing is said of another name, of what did not overlap, nor of what never ended.
    assert race('1 mkdir("d", 0777', '2 stat("e", 0x1', "1) = 0", "2" + missing) == ["1 mkdir 0", "2 stat -ENOENT"]
    assert race('1 mkdir("d", 0777) = 0', '2 stat("d", 0x1) = -1 ENOENT (No such file or directory)') == ["1 mkdir 0", "2 stat -ENOENT"]
    assert race('1 mkdir("d", 0777', '2 stat("d", 0x1', "1) = 0", '3 access("d", F_OK) = 0') == ["1 mkdir 0", "3 access 0"]


def test_the_first_process_is_where_the_trace_begins():
    """Though another one moves, and no annotation tells."""
    lines = ['1 1700000001.0 fork() = 2 <0.01>', '2 1700000002.0 chdir("/v") = 0 <0.01>', '1 1700000003.0 fork() = 3 <0.01>', '1 1700000004.0 mkdir("d", 0777 <unfinished ...>',
             '3 1700000005.0 stat("d", 0x1 <unfinished ...>', '1 1700000006.0 <... mkdir resumed>) = 0 <2.0>', '3 1700000007.0 <... stat resumed>) = -1 ENOENT (x) <2.0>']
    with Tmp() as tmp:
        path, text = os.path.join(tmp, "t.strace"), os.path.join(tmp, "t.txt")
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        assert feign("convert", path, text, "--cwd", "/w").status == 0
        with open(text, encoding="utf-8") as f:
            order = re.findall(r"\] (\w+)\(", f.read())
    assert order == ["fork", "chdir", "fork", "stat", "mkdir"], order


def test_of_files_that_are_merged_too():
    at = "17000000%02d.000000"
    trace = {"t.1": [f"{at % 0} mkdir(\"/d\", 0777) = 0 <3.000000>"], "t.2": [f"{at % 1} mkdir(\"/d\", 0777) = -1 EEXIST (File exists) <0.500000>"],
             "t.3": [f"{at % 2} mkdir(\"/e\", 0777) = -1 EEXIST (File exists) <0.000010>"],
             "t.4": [f"{at % 1} access(\"/d\", F_OK) = -1 ENOENT (No such file or directory) <3.000000>"]}
    same(calls(trace, name="t"), ['access(pathname="/d", mode=F_OK) = -ENOENT', 'mkdir(pathname="/d", mode=0755) = 0', 'mkdir(pathname="/d", mode=0755) = -EEXIST',
                                  'mkdir(pathname="/e", mode=0755) = -EEXIST'])
    # Of two writes, each of which may be what was found, the one that ended first.
    open_log, write = 'open("/log", O_WRONLY|O_CREAT|O_APPEND|O_TRUNC, 0666) = 3 <0.000001>', "write(3</log>, \"x\"..., 15) = 15"
    trace = {"t.1": [f"{at % 0} {open_log}", f"{at % 1} {write} <8.000000>"], "t.2": [f"{at % 1} {write} <3.000000>"], "t.3": [f"{at % 2} lseek(3</log>, 0, SEEK_END) = 15 <1.000000>"]}
    with Tmp() as tmp:
        for name, lines in trace.items():
            with open(os.path.join(tmp, name), "w", encoding="utf-8") as f:
                f.write("\n".join(lines) + "\n")
        assert feign("convert", "-q", os.path.join(tmp, "t"), os.path.join(tmp, "o.txt")).status == 0
        with open(os.path.join(tmp, "o.txt"), encoding="utf-8") as f:
            order = re.findall(r"/(\d)\] (\w+)", f.read())
    assert order == [("1", "open"), ("2", "write"), ("3", "lseek"), ("1", "write")], order


def replayed(lines, *options):
    """The report of a replay of these lines, and the tree that it left: {path: content size or None}."""
    with Tmp() as tmp:
        path, root = os.path.join(tmp, "t.strace"), os.path.join(tmp, "root")
        os.mkdir(root)
        with open(path, "w", encoding="utf-8") as f:
            f.write("".join(line + "\n" for line in lines))
        r = feign("replay", path, "--root", root, "--json", *options)
        assert r.status == 0, r.err
        sizes = {}
        for folder, folders, files in os.walk(root):
            for name in folders:
                sizes[os.path.join(folder, name)[len(root):]] = None
            for name in set(files) - {".feign"}:
                sizes[os.path.join(folder, name)[len(root):]] = os.lstat(os.path.join(folder, name)).st_size
        return r.json(), sizes


def test_who_was_stopped_before_any_call_is_not_missing():
    """A wait that tells of stops is a sign of a process that is not in the trace only where no children are; a tracer's never."""
    stopped = [f"1 {at} fork() = 3" if i == 0 else f"1 {at} wait4(3, [{{WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP}}], %s, NULL) = 3" if i == 1 else f'3 {at} mkdir("/b", 0700) = 0' for i, at in enumerate((5, 6, 7))]
    child = ["1 1 fork() = 2", '2 2 mkdir("/a", 0700) = 0', "2 3 exit_group(0) = ?", "1 4 wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 2"]
    for lines, flags, missing in (child + stopped, "WUNTRACED", 0), (child + stopped, "WUNTRACED|WCONTINUED", 0), (child + stopped, "0", 1), (stopped[:2], "WUNTRACED", 1), (stopped, "__WALL", 0):
        report, _ = replayed([line % flags if "%s" in line else line for line in lines])
        assert report["mismatched"] == 0 and str(report["notes"]).count("waited for") == missing, (flags, report["notes"])
    # A shell with job control waits so, too, for a program of whose calls there are none but those before it began.
    program = ["1 5 fork() = 3", '3 6 execve("/static", ["x"], 0x1) = 0', "1 7 wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], WUNTRACED|WCONTINUED, NULL) = 3", '1 8 open("/a/f", O_RDONLY) = 3']
    report, _ = replayed(child + program)
    assert report["mismatched"] == 0 and str(report["notes"]).count("waited for") == 1, (report["mismatches"], report["notes"])
    # gdb looks in that way after whom its program has forked.
    report, _ = replayed(["1 1 fork() = 2", "2 2 fork() = 3", "1 3 wait4(3, [{WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP}], 0, NULL) = 3", '3 4 mkdir("/b", 0700) = 0'])
    assert report["mismatched"] == 0 and "waited for" not in str(report["notes"]), report["notes"]


def test_a_directory_that_nothing_tells_has_no_libraries_in_it():
    lines = ['openat(AT_FDCWD, "/lib/libc.so.6", O_RDONLY) = 3', "close(3) = 0", 'openat(AT_FDCWD, ".", O_RDONLY|O_DIRECTORY) = 3',
             "getdents64(3, 0x1 /* 3 entries */, 32768) = 72", "getdents64(3, 0x1 /* 0 entries */, 32768) = 0", 'openat(AT_FDCWD, "a", O_RDONLY) = 4']
    for how in (lines, [line.replace("AT_FDCWD", "-100") for line in lines], [line.replace("openat(AT_FDCWD, ", "open(") for line in lines],
                [line.replace("AT_FDCWD", "-100 /* AT_FDCWD */") for line in lines], [line.replace('"."', r'"\x2e"') for line in lines]):
        report, sizes = replayed(how)
        assert report["mismatched"] == 0 and "/cwd/a" in sizes and any("/cwd is taken (--cwd DIR" in note for note in report["notes"]), (report["mismatches"], sizes)


def test_who_shares_an_offset_met_the_end_after_all_was_read():
    """Also where a process is seen before the call that made it has ended."""
    with Tmp() as tmp:
        begin = ['100 openat(AT_FDCWD</x>, "f", O_RDWR|O_CREAT|O_TRUNC, 0666) = 3</x/f> <0.000001>', '100 write(3</x/f>, "123456", 6) = 6 <0.000001>', '100 lseek(3</x/f>, 0, SEEK_SET) = 0 <0.000001>']
        asks, gets = "%d read(3</x/f>,  <unfinished ...>", '%d <... read resumed>"%s", 2) = %d <0.000003>'
        for makes in ("clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD", "clone(child_stack=0x7, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD", "fork("):
            lines = begin + [f"100 {makes} <unfinished ...>", '101 read(3</x/f>, "12", 2) = 2 <0.000001>', f"100 <... {makes[:makes.index('(')]} resumed>) = 101 <0.000003>",
                             asks % 101, asks % 100, gets % (100, "34", 2), asks % 100, gets % (101, "", 0), gets % (100, "56", 2)]
            assert order_of(tmp, lines)[-3:] == [(100, "2"), (100, "2"), (101, "0")], makes
            lines[6:] = ['100 read(3</x/f>, "3456", 4) = 4 <0.000001>', '100 openat(AT_FDCWD</x>, "f", O_WRONLY|O_APPEND) = 4</x/f> <0.000001>', asks % 101,
                         '100 write(4</x/f>, "7", 1) = 1 <0.000001>', gets % (101, "", 0)]
            assert order_of(tmp, lines)[-2:] == [(101, "0"), (100, "1")], makes


def test_a_file_that_has_lost_its_name_is_what_it_was():
    """Who shares its offset, and who lists a directory that is gone; as strace says so since 5.19, and before."""
    for gone in ("</x/f>(deleted)", "</x/f (deleted)>"):
        begin = ['7 openat(AT_FDCWD</x>, "f", O_RDWR|O_CREAT|O_EXCL, 0600) = 3</x/f> <0.000001>', '7 write(3</x/f>, "123456", 6) = 6 <0.000001>',
                 '7 unlink("/x/f") = 0 <0.000001>', f"7 lseek(3{gone}, 0, SEEK_SET) = 0 <0.000001>", "7 fork() = 8 <0.000001>"]
        reads = [f"7 read(3{gone},  <unfinished ...>", f'8 read(3{gone}, "", 6) = 0 <0.000001>', '7 <... read resumed>"123456", 6) = 6 <0.000003>']
        lists = ['7 openat(AT_FDCWD</x>, "f", O_RDONLY|O_DIRECTORY) = 3</x/f> <0.000001>', '8 rmdir("/x/f" <unfinished ...>',
                 f"7 getdents64(3{gone}, 0x1, 32768) = -1 ENOENT (No such file or directory) <0.000001>", "8 <... rmdir resumed>) = 0 <0.000003>"]
        with Tmp() as tmp:
            assert order_of(tmp, begin + reads)[-2:] == [(7, "6"), (8, "0")], gone
            assert order_of(tmp, lists)[-2:] == [(8, "0"), (7, "-ENOENT")], gone


def test_the_directory_of_a_second_name_is_what_strace_says():
    """Of link and rename, if its open is not in the trace."""
    lines = ['1 renameat(4</x>, "f", 5</y>, "g") = 0', '1 linkat(4</x>, "h", 5</y>, "i", 0) = 0', '1 linkat(3</in>, "", 5</y>, "j", AT_EMPTY_PATH) = 0',
             '1 renameat(4</x>, "k", AT_FDCWD</z>, "l") = 0']
    want = {"/in": 0, "/x": None, "/x/h": 0, "/y": None, "/y/g": 0, "/y/i": 0, "/y/j": 0, "/z": None, "/z/l": 0}
    for order in "trace", "depend":
        report, sizes = replayed(lines, "--order", order)
        assert (report["mismatched"], report["skipped"], sizes) == (0, 0, want), (report["mismatches"], report["skipped"], sizes)


def test_the_target_of_a_copy_is_what_strace_says():
    """`cat in > out`: nothing else may tell of standard output, which the shell had opened."""
    lines = ['1 openat(AT_FDCWD, "/in", O_RDONLY) = 3</in>', '1 sendfile(1</out>, 3</in>, NULL, 16777216) = 6', '1 sendfile(1</out>, 3</in>, NULL, 16777216) = 0',
             '1 copy_file_range(3</in>, [0], 4</x>, [2], 5, 0) = 5', '1 splice(5<pipe:[7]>, NULL, 6</y>, NULL, 100, 0) = 100', '1 splice(5<pipe:[7]>, NULL, 6</y>, NULL, 100, 0) = 50',
             '1 write(1</out>, "z", 1) = 1', '1 lseek(6</y>, 0, SEEK_CUR) = 150', '1 close(4</x>) = 0']
    want = {"/in": 6, "/out": 7, "/x": 7, "/y": 150}
    for order in "trace", "depend":
        report, sizes = replayed(lines, "--order", order)
        assert (report["mismatched"], report["skipped"], sizes) == (0, 0, want), (report["mismatches"], report["skipped"], sizes)
    assert replayed(lines, "--with", "filter,path=/out")[1] == {"/out": 7} and replayed(lines, "--with", "filter,path=/in")[1] == {"/in": 6}
    assert replayed(lines, "--with", "rebase,map=/out:/in2")[1]["/in2"] == 7


def test_threads_that_strace_attached_to_share_descriptors():
    """Nothing tells that they are threads of one process; that both have the same file by the same number does."""
    lines = ['1 write(7</f>, "ab", 2) = 2', '2 write(7</f>, "cd", 2) = 2', '1 write(7</f>, "e", 1) = 1', '2 fsync(7</f>) = 0', '2 close(7</f>) = 0', '1 openat(AT_FDCWD, "/f", O_RDONLY) = 7</f>',
             '1 read(7</f>, "abcde", 9) = 5', '1 unlink("/f") = 0', '2 close(7</f>(deleted)) = 0', '1 openat(AT_FDCWD, "/g", O_WRONLY|O_CREAT, 0600) = 7</g>', '2 write(7</g>, "abc", 3) = 3',
             '1 write(7</g>, "d", 1) = 1']
    for order in "trace", "depend":
        report, sizes = replayed(lines, "--order", order)
        assert (report["mismatched"], report["skipped"], sizes) == (0, 0, {"/g": 4}), (report["mismatches"], sizes)
    # So may threads that those make, of two processes that have it from each other.
    thread = "clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD, child_tid=0x1}, 88) = "
    lines = ['1 write(8</g>, "x", 1) = 1', '5 write(8</g>, "y", 1) = 1', f"1 {thread}2", f"5 {thread}6", '2 read(7</f>, "ab", 2) = 2', '6 read(7</f>, "cde", 9) = 3', '2 read(7</f>, "", 9) = 0']
    for order in "trace", "depend":
        report, sizes = replayed(lines, "--order", order)
        assert (report["mismatched"], report["skipped"], sizes) == (0, 0, {"/f": 5, "/g": 2}), (report["mismatches"], sizes)
    # Other files of the same number are other files; and what a call opened, nobody else has by it.
    report, sizes = replayed(['1 write(7</f>, "ab", 2) = 2', '2 write(7</g>, "cd", 2) = 2', '2 write(8</f>, "c", 1) = 1'])
    assert (report["mismatched"], report["skipped"]) == (0, 0) and sizes["/f"] == sizes["/g"] == 2, sizes


def test_a_file_without_a_name_is_what_a_child_has_whose_making_was_not_traced():
    """As strace -f -y -e trace=file,desc has make -O: both write to the end of what make opened with O_TMPFILE."""
    report, _ = replayed(['1 openat(AT_FDCWD</>, "/tmp", O_RDWR|O_EXCL|O_TMPFILE, 0600) = 9</tmp/#7>(deleted)', "1 fcntl(9</tmp/#7>(deleted), F_SETFL, O_RDWR|O_APPEND|O_TMPFILE) = 0",
                          '1 write(9</tmp/#7>(deleted), "ar rv", 5) = 5', "2 dup2(9</tmp/#7>(deleted), 1<pipe:[8]>) = 1</tmp/#7>(deleted)",
                          '2 write(1</tmp/#7>(deleted), "a - o", 5) = 5', "1 lseek(9</tmp/#7>(deleted), 0, SEEK_END) = 10"])
    assert report["mismatched"] == 0, report["mismatches"]


def test_who_closes_a_descriptor_that_another_one_opens_anew_is_its_thread():
    """Of threads that strace attached to (-p): without -y, too, and so that no close is said to be missing."""
    lacks = "the trace lacks calls that close descriptors"
    opens = ['1 openat(AT_FDCWD, "/f", O_WRONLY|O_CREAT, 0600) = 7', '1 write(7, "ab", 2) = 2']
    anew = ['1 openat(AT_FDCWD, "/g", O_WRONLY|O_CREAT, 0600) = 7', '2 write(7, "abc", 3) = 3']
    for close, mine in ((["2 close(7) = 0"], True), (["2 close(7) = 0", "1 clone(child_stack=NULL, flags=SIGCHLD) = 9", '9 openat(AT_FDCWD, "/f", O_RDONLY) = 8', "9 dup2(8, 7) = 7"], True),
                        (["2 close(7) = 0", "3 close(7) = 0"], False), (["2 fsync(7) = 0"], False), ([], False)):
        report, sizes = replayed([*opens, *close, *anew])
        assert (sizes["/g"], lacks in str(report["notes"])) == (3 if mine else 0, not mine), (close, sizes, report["notes"])
    # What one has closed, another thread of the same process, which that becomes known of later, has not.
    known = ['1 write(7</f>, "ab", 2) = 2', "3 fsync(7</f>) = 0", "2 close(7</f>) = 0", '1 openat(AT_FDCWD, "/g", O_WRONLY|O_CREAT, 0600) = 7</g>', "1 close(7</g>) = 0",
             '1 openat(AT_FDCWD, "/h", O_WRONLY|O_CREAT, 0600) = 8</h>', "3 fsync(8</h>) = 0", '1 openat(AT_FDCWD, "/g", O_RDONLY) = 7']
    for lines in known, known[:-1] + [known[-1] + "</g>"], known[:3] + known[5:]:
        report, _ = replayed(lines)
        assert report["mismatched"] == 0 and lacks not in str(report["notes"]), (lines, report["mismatches"], report["notes"])


def test_a_file_that_had_no_name_any_more_when_the_trace_began():
    """Another file may have the name that it had. Old versions of strace show it as the kernel does."""
    for gone in ("3</w/a>(deleted)", "3</w/a (deleted)>"):
        lines = [f'7 read({gone}, "hello", 5) = 5', '7 openat(AT_FDCWD</w>, "/w", O_RDONLY|O_DIRECTORY) = 4</w>', "7 getdents64(4</w>, 0x1 /* 2 entries */, 32768) = 48",
                 "7 getdents64(4</w>, 0x1 /* 0 entries */, 32768) = 0", '7 openat(AT_FDCWD</w>, "/w/a", O_RDWR|O_CREAT|O_EXCL, 0600) = 5</w/a>', '7 write(5</w/a>, "abc", 3) = 3',
                 f'8 read({gone}, " you", 4) = 4', f"8 close({gone}) = 0",
                 f'7 openat({gone.replace("3", "9").replace("/a", "/d")}, "x", O_WRONLY|O_CREAT, 0666) = -1 ENOENT (No such file or directory)']
        for order in "trace", "depend":
            report, sizes = replayed(lines, "--order", order)
            assert (report["mismatched"], report["skipped"]) == (0, 0), (gone, report["mismatches"], report["skips"])
            assert (sizes["/w/a"], sizes["/.deleted/w/a"]) == (3, 9), sizes
        # Opened once more by its descriptor, it is the same file.
        again = "10" + gone[1:]
        report, sizes = replayed([f'7 read({gone}, "hello", 5) = 5', f'7 openat(AT_FDCWD</w>, "/proc/self/fd/3", O_RDWR) = {again}', f"7 ftruncate({again}, 3) = 0", f"7 lseek({gone}, 0, SEEK_END) = 3"])
        assert (report["mismatched"], sizes["/.deleted/w/a"], "/w/a" in sizes) == (0, 3, False), (gone, report["mismatches"], sizes)


def test_what_is_read_where_no_opens_are_traced():
    """strace -f -y -e trace=read,write: who met the end of a file and reads on has opened it again; a name that is new is another file's."""
    lines = ['7 read(3</lib>, "ELF", 832) = 832', '8 read(3</lib>, "ELF", 832) = 832', '8 read(3</f>, "abc", 64) = 3', '8 read(3</f>, "", 64) = 0', '8 read(3</f>, "abc", 64) = 3', '8 read(3</f>, "", 64) = 0',
             '9 read(3</f>, "abc", 64) = 3', '9 read(3</f>, "", 64) = 0', '9 read(3</proc/self/stat>, "1", 64) = 1', '9 read(3</g>, "ab", 64) = 2', '9 read(3</g>, "", 64) = 0',
             '10 read(0</f>, "abc", 64) = 3', '10 read(0</f>, "", 64) = 0', '10 +++ exited with 0 +++', '11 read(0</f>, "abc", 64) = 3', '11 read(0</f>, "", 64) = 0']
    for order in "trace", "depend":
        report, sizes = replayed(lines, "--order", order)
        assert (report["mismatched"], sizes["/f"], sizes["/g"]) == (0, 3, 2), (report["mismatches"], sizes)
    # What another one writes meanwhile is read on.
    report, sizes = replayed(['7 read(3</f>, "", 64) = 0', '8 write(1</f>, "abc", 3) = 3', '7 read(3</f>, "abc", 64) = 3', '7 read(3</f>, "", 64) = 0'])
    assert (report["mismatched"], sizes) == (0, {"/f": 3}), (report["mismatches"], sizes)


def test_threads_whose_making_was_not_traced_share_descriptors():
    """As strace -f -e trace=file,desc has them: what one of them opens, those that had begun have, too, until another closes it."""
    once = ['openat(AT_FDCWD, "/f", O_RDONLY) = 7</f>', 'read(7</f>, "abcde", 9) = 5', 'close(7</f>) = 0']
    lines = [f'{pid} access("/", F_OK) = 0' for pid in (1, 2, 3)] + [f"{pid} {call}" for order in ((1, 2, 3), (3, 2, 1), (2, 2, 3)) for pid, call in zip(order, once)]
    ended = [f"{pid} {call}" for pid in range(4, 404) for call in ('access("/", F_OK) = 0', "+++ exited with 0 +++")]
    for order in "trace", "depend":
        for before in [], ended:  # as many processes as there may be
            report, sizes = replayed(before + lines, "--order", order)
            assert (report["mismatched"], report["skipped"], sizes) == (0, 0, {"/f": 5}), (report["mismatches"], sizes)


def test_who_made_whom_where_no_call_tells():
    """As strace -f -e trace=file,desc has it: what is there, and where, is from whoever was there before."""
    begin = ['1 execve("/bin/sh", ["sh"], 0x1 /* 1 var */) = 0', "1 pipe2([4, 5], 0) = 0", "1 close(4) = 0", "1 close(5) = 0"]
    child = ['1 chdir("/d") = 0', '1 openat(AT_FDCWD, "log", O_WRONLY|O_CREAT, 0600) = 3', "2 dup2(3, 1) = 1", "2 close(3) = 0", '2 execve("/bin/c", ["c"], 0x1 /* 1 var */) = 0',
             '2 write(1, "ab", 2) = 2', '2 openat(AT_FDCWD, "made", O_WRONLY|O_CREAT, 0600) = 3', "2 +++ exited with 0 +++", '1 write(3, "c", 1) = 1']
    looks = [f'{pid} access("/", F_OK) = 0' for pid in (2, 3)]
    threads = looks + ['1 openat(AT_FDCWD, "/f", O_WRONLY|O_CREAT, 0600) = 7', '2 write(7, "ab", 2) = 2', "3 close(7) = 0", '2 openat(AT_FDCWD, "/g", O_WRONLY|O_CREAT, 0600) = 7', '1 write(7, "abc", 3) = 3',
                       "3 close(7) = 0", '1 openat(AT_FDCWD, "/h", O_WRONLY|O_CREAT, 0600) = 7', '3 write(7, "a", 1) = 1']
    # Where sockets are not traced it may be one of those, but for what no socket does; what is read is nothing that is open for writing.
    sockets = looks + ["2 close(9) = 0", '1 openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0600) = 7', '2 write(7, "ab", 2) = 2', '1 write(7, "abc", 3) = 3']
    files = looks + ["2 close(9) = 0", '1 openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0600) = 7', "2 fstat(7, {st_mode=S_IFREG|0600, st_size=0, ...}) = 0", '2 write(7, "ab", 2) = 2', '1 write(7, "abc", 3) = 3']
    other = looks + ['1 openat(AT_FDCWD, "/f", O_WRONLY|O_CREAT, 0600) = 7', '2 read(7, "ab", 9) = 2', '1 write(7, "abc", 3) = 3']
    # A thread was not seen to close what it wrote: then that is not what it reads.
    closed = looks + ['2 openat(AT_FDCWD, "/f", O_WRONLY|O_CREAT, 0600) = 7', '3 write(7, "ab", 2) = 2', '1 openat(AT_FDCWD, "/f", O_RDONLY) = 7', '3 read(7, "ab", 9) = 2', "1 close(7) = 0"]
    # What cannot be sought in, has nothing yet, or is a pipe, is no file that somebody else has by that number.
    pipes = [['1 openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0600) = 8', "2 dup2(8, 1) = 1", call, '1 write(8, "ab", 2) = 2'] for call in
             ("2 lseek(1, 0, SEEK_CUR) = -1 ESPIPE (Illegal seek)", "2 read(1, 0x7, 9) = -1 EAGAIN (Resource temporarily unavailable)", "2 fstat(1, {st_mode=S_IFIFO|0600, st_size=0, ...}) = 0",
              '2 newfstatat(1, "", {st_mode=S_IFIFO|0600, st_size=0, ...}, AT_EMPTY_PATH) = 0')]
    # What a thread cuts or makes longer is nothing that was opened for reading alone.
    cuts = ['1 openat(AT_FDCWD, "/f", O_RDONLY) = 7', '2 pread64(7, "ab", 2, 0) = 2', "1 close(7) = 0", '1 openat(AT_FDCWD, "/g", O_RDWR|O_CREAT, 0600) = 7', "2 %s = 0", "1 ftruncate(7, 4) = 0"]
    cut, longer = ([line % call if "%" in line else line for line in cuts] for call in ("ftruncate(7, 3)", "fallocate(7, 0, 0, 3)"))
    for lines, skipped, want in (*((one, 1, {"/f": 2}) for one in pipes), (cut, 0, {"/f": 2, "/g": 4}), (longer, 0, {"/f": 2, "/g": 4}), (closed, 0, {"/f": 2}), (child, 0, {"/d/log": 3, "/d/made": 0}), (threads, 0, {"/f": 2, "/g": 3, "/h": 1}), (sockets, 2, {"/f": 3}), (files, 1, {"/f": 5}), (other, 1, {"/f": 3})):
        for order in "trace", "depend":
            report, sizes = replayed(begin + lines, "--order", order)
            sizes = {name: size for name, size in sizes.items() if size is not None}
            # Ends of pipes are not closed, either.
            assert (report["mismatched"], report["skipped"] - 2, sizes) == (0, skipped, want), (lines, report["mismatches"], report["skips"], sizes)
    assert "who made them" in notes_of(begin + threads) and "who made them" not in notes_of(begin + ["1 clone(child_stack=NULL, flags=SIGCHLD) = 2"] + looks[:1])


def test_whose_thread_one_is_that_began_with_memory_or_asked_for_flags():
    """As strace -f -e trace=file,desc has Go's threads: what a call tells of a descriptor tells who has it, not that others were seen last."""
    begin = ['1 execve("/bin/go", ["go"], 0x1 /* 1 var */) = 0', "1 dup2(0, 9) = 9", '2 chdir("/w") = 0']
    opens = '2 openat(AT_FDCWD, "f", O_RDONLY|O_CLOEXEC) = 10'
    reads = ['3 read(10, "abc", 9) = 3', '3 openat(AT_FDCWD, "made", O_WRONLY|O_CREAT, 0600) = 11']
    flags = "3 fcntl(10, F_GETFL) = %s"
    memory = "3 mmap(NULL, 4096, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f9720000000"
    pipes, other = "1 pipe2([10, 11], 0) = 0", '1 openat(AT_FDCWD, "/g", O_WRONLY|O_CREAT, 0600) = 10'
    seen = '1 access("/", F_OK) = 0'
    # A pipe is not opened by a name, and what was opened for writing is not what is open for reading.
    for lines in ([pipes, opens, flags % "0x8000 (flags O_RDONLY|O_LARGEFILE)"], [opens, other, flags % "0x8000 (flags O_RDONLY|O_LARGEFILE)"],
                  # Of two that may be meant, the one that was opened last.
                  ['1 openat(AT_FDCWD, "/g", O_RDONLY|O_CREAT, 0600) = 10', opens, seen],
                  # What it did to memory alone tells nothing of its maker; what was opened since then is its process's.
                  [seen, memory, opens, seen], [seen, opens, seen, memory]):
        for order in "trace", "depend":
            report, sizes = replayed([*begin, *lines, *reads], "--order", order)
            assert (report["mismatched"], sizes["/w/f"], sizes.get("/w/made")) == (0, 3, 0), (lines, report["mismatches"], sizes)
    # A thread's close closes it for all of them.
    report, sizes = replayed([*begin, seen, memory, opens, *reads, "3 close(10) = 0", '2 openat(AT_FDCWD, "h", O_RDONLY) = 10', '3 read(10, "ab", 9) = 2'])
    assert (report["mismatched"], sizes["/w/f"], sizes["/w/h"]) == (0, 3, 2), (report["mismatches"], sizes)
    # A pipe may be what it seems to be.
    report, sizes = replayed([*begin, opens, pipes, flags % "0 (flags O_RDONLY)", *reads])
    assert (report["mismatched"], sizes["/w/f"], sizes["/made"]) == (0, 0, 0), (report["mismatches"], sizes)


def test_threads_of_a_program_that_duplicates_no_descriptor():
    """As strace -f -e trace=file,desc has unsquashfs, whose threads write what the first one opens: that it maps its libraries tells that duplicates would be told."""
    begin = ['1 execve("/bin/u", ["u"], 0x1 /* 1 var */) = 0', '1 openat(AT_FDCWD, "/lib", O_RDONLY) = 3']
    maps, reads = ("1 mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 3, 0) = 0x7f9720000000", "1 read(3, \"\\177ELF\", 4) = 4")
    lines = ["1 close(3) = 0", '1 openat(AT_FDCWD, "/f", O_WRONLY|O_CREAT, 0600) = 3', '2 write(3, "ab", 2) = 2', "2 close(3) = 0", '1 openat(AT_FDCWD, "/g", O_WRONLY|O_CREAT, 0600) = 4', '2 write(4, "abc", 3) = 3', "2 close(4) = 0"]
    for first, skipped in ((maps, 0), (reads, 2)):
        for order in "trace", "depend":
            report, sizes = replayed([*begin, first, *lines], "--order", order)
            assert (report["mismatched"], report["skipped"], sizes["/f"], sizes["/g"]) == (0, skipped, 2, 0 if skipped else 3), (first, report["mismatches"], report["skips"], sizes)


def test_where_a_process_is_whose_making_was_not_traced():
    """As strace -f -y -e trace=file,desc has `cd r; (cd s; > f)`: AT_FDCWD tells it, but after the first call."""
    lines = ['1 execve("/bin/sh", ["sh"], 0x1 /* 1 var */) = 0', '1 openat(AT_FDCWD</w>, "/lib", O_RDONLY) = 3</lib>', '1 close(3</lib>) = 0', '1 mkdir("r", 0755) = 0', '1 chdir("r") = 0', '1 mkdir("s", 0755) = 0',
             '2 chdir("s") = 0', '2 openat(AT_FDCWD</w/r/s>, "f", O_WRONLY|O_CREAT, 0600) = 3</w/r/s/f>', "2 +++ exited with 0 +++", '3 mkdir("t", 0755) = 0', "3 +++ exited with 0 +++"]
    for order in "trace", "depend":
        report, sizes = replayed(lines, "--order", order)
        assert report["mismatched"] == 0 and set(sizes) == {"/lib", "/w", "/w/r", "/w/r/s", "/w/r/s/f", "/w/r/t"}, (order, report["mismatches"], sizes)


def test_a_directory_whose_close_was_not_traced_is_what_it_is_said_to_be():
    """As strace -y -e trace=%file has them: a number that dup gave to another one."""
    lines = ['7 openat(AT_FDCWD</w>, "a", O_RDONLY|O_DIRECTORY) = 6</w/a>', '7 openat(AT_FDCWD</w>, "b", O_RDONLY|O_DIRECTORY) = 5</w/b>',
             '7 openat(6</w/b>, "f", O_WRONLY|O_CREAT, 0600) = 7</w/b/f>', '7 mkdirat(6</w/b>, "d", 0700) = 0']
    report, sizes = replayed(lines)
    assert report["mismatched"] == 0 and set(sizes) == {"/w", "/w/a", "/w/b", "/w/b/f", "/w/b/d"}, (report["mismatches"], sizes)
    # Not if it was moved, by its name or unseen.
    for moved in (['7 rename("/w/a", "/w/c") = 0'], []):
        report, sizes = replayed([lines[0], *moved, '7 mkdirat(6</w/c>, "d", 0700) = 0'])
        assert report["mismatched"] == 0 and set(sizes) == {"/w", *(("/w/c", "/w/c/d") if moved else ("/w/a", "/w/a/d"))}, (report["mismatches"], sizes)


def test_what_is_written_is_no_file_that_was_opened_for_reading_alone():
    """strace -y -e trace=openat,write: a number that creat gave to a new file, unless another file was moved to that name."""
    lines = ['7 openat(AT_FDCWD</w>, "/w/f", O_RDONLY) = 3</w/f>', '7 write(3</w/new>, "abc", 3) = 3', '7 openat(AT_FDCWD</w>, "/w/f", O_RDONLY) = 4</w/f>']
    report, sizes = replayed(lines)
    assert (report["mismatched"], report["skipped"], sizes) == (0, 0, {"/w": None, "/w/f": 0, "/w/new": 3}), (report["mismatches"], sizes)
    lines[0] = lines[0].replace("O_RDONLY", "O_WRONLY|O_CREAT")
    report, sizes = replayed(lines[:2])
    assert (report["mismatched"], report["skipped"], sizes) == (0, 0, {"/w": None, "/w/f": 3}), (report["mismatches"], sizes)


def test_locks_of_32_bits_by_number():
    """fcntl64's F_SETLK64 is 13 there, as strace -X raw has it."""
    lock = ["openat(AT_FDCWD, \"/f\", O_RDWR|O_CREAT, 0600) = 3", "fcntl64(3, 0xd, {l_type=0x1, l_whence=0, l_start=0, l_len=10}) = 0", "fcntl64(3, 0xe, {l_type=0x2, l_whence=0, l_start=0, l_len=10}) = 0",
            "fcntl64(3, 0xc, {l_type=0x2, l_whence=0, l_start=0, l_len=10}) = 0"]
    report, _ = replayed(lock)
    assert (report["mismatched"], report["skipped"], report["replayed"]) == (0, 0, 4), report["skips"]
    assert [re.search("cmd=(\\w+)", line)[1] for line in calls(lock)[1:]] == ["F_SETLK", "F_SETLKW", "F_GETLK"], calls(lock)


def test_files_without_times_are_in_the_order_of_forks_and_waits():
    child = ['rmdir("/d/n") = -1 ENOENT (No such file or directory)', 'execve("/bin/c", ["c"], 0x1 /* 1 var */) = 0', 'openat(AT_FDCWD, "/d/c", O_WRONLY|O_CREAT, 0600) = 3', "exit_group(0) = ?", "+++ exited with 0 +++"]
    for makes in ("fork() = %d", "clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7) = %d", "vfork() = %d",
                  "clone(child_stack=0x7, flags=CLONE_VM|CLONE_VFORK|SIGCHLD) = %d"):
        for waits in "wait4(-1, NULL, 0, NULL) = %d", "waitid(P_ALL, -1, {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=%d, si_uid=0, si_status=0, si_utime=0, si_stime=0}, WEXITED, NULL) = 0":
            for times in "", "     0.000011 ", "12:00:00 ", "1700000000 ":
                for parents, childs in (7, 8), (9, 8):  # numbers begin again at some time
                    parent = ['execve("/bin/sh", ["sh"], 0x1 /* 1 var */) = 0', 'mkdir("/d", 0700) = 0', makes % childs, 'symlink("c", "/d/l") = 0', waits % childs, 'rename("/d/c", "/d/e") = 0']
                    lines = {f"t.{pid}": [times + line for line in of] for pid, of in ((parents, parent), (childs, child))}
                    found = re.findall("(mkdir|rmdir|openat|symlink|rename)[(]", "\n".join(text_of(lines, name="t")[0]))
                    assert found[0] == "mkdir" and found[-1] == "rename" and len(found) == 5 and found.index("rmdir") < found.index("openat"), (lines, found)
                    assert "VFORK" not in makes and "vfork" not in makes or found[1] == "rmdir", (lines, found)


def test_files_without_times_of_threads_that_another_ends_come_before():
    """exit_group() comes when the other threads of its process have made their calls, and not when those of others have."""
    files = {"t.9": ["clone(child_stack=NULL, flags=SIGCHLD) = 11", THREAD, "exit_group(0) = ?", OVER], "t.10": [OPEN, "fsync(3) = 0", OVER], "t.11": ["fsync(1) = 0", "exit_group(0) = ?", OVER]}
    for time in "", "10:00:00 ":
        lines, _ = text_of({name: [time + line for line in file] for name, file in files.items()}, name="t")
        order = [re.match(r"\[.*/(\d+)\] (\w+)", line).groups() for line in lines]
        assert order == [("9", "clone")] * 2 + [("10", "openat"), ("10", "fsync"), ("9", "exit_group"), ("11", "fsync"), ("11", "exit_group")], order


def test_files_without_times_of_a_thread_that_was_joined_come_before():
    clone = "clone(child_stack=0x7, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD, child_tidptr=0x9) = 8"
    thread = ['openat(AT_FDCWD, "/t", O_WRONLY|O_CREAT, 0600) = 3', "close(3) = 0", "exit(0) = ?", "+++ exited with 0 +++"]
    for joins in ("futex(0x9, FUTEX_WAIT_BITSET|FUTEX_CLOCK_REALTIME, 8, NULL, FUTEX_BITSET_MATCH_ANY) = 0", "futex(0x9, FUTEX_WAIT, 8, NULL) = 0",
                  "futex(0x9, FUTEX_WAIT, 8, NULL) = -1 EAGAIN (Resource temporarily unavailable)"):
        first = ['execve("/bin/p", ["p"], 0x1 /* 1 var */) = 0', clone, joins, 'openat(AT_FDCWD, "/p", O_WRONLY|O_CREAT, 0600) = 3', "close(3) = 0"]
        found = text_of({"t.7": first, "t.8": thread}, name="t")[0]
        assert re.findall("/[tp]\\b(?=\", flags)", "\n".join(found)) == ["/t", "/p"], (joins, found)


def test_a_process_whose_maker_is_shown_later():
    """As strace -z has it, which shows calls when they have ended."""
    begin = ['1 execve("/bin/sh", ["sh"], 0x1 /* 1 var */) = 0', '1 openat(AT_FDCWD, "/f", O_WRONLY|O_CREAT, 0600) = 3']
    made, wrote = {"/f": 3}, '2 write(1, "abc", 3) = 3'
    for makes in ("1 vfork() = 2", "1 clone(child_stack=NULL, flags=SIGCHLD) = 2"):
        for rest in (["2 dup2(3, 1) = 1", makes, "1 close(3) = 0", wrote, "2 +++ exited with 0 +++"],
                     ["2 dup2(3, 1) = 1", wrote, "2 +++ exited with 127 +++", makes, "1 close(3) = 0"]):
            report, sizes = replayed(begin + rest)
            assert (report["skipped"], sizes) == (0, made), (rest, report["skips"], sizes)
    report, sizes = replayed(begin + ["2 dup2(3, 1) = 1", "3 dup2(3, 2) = 2", "3 write(2, \"abcdef\", 6) = 6", "2 clone(child_stack=NULL, flags=SIGCHLD) = 3", makes])
    assert (report["skipped"], sizes) == (0, {"/f": 6}), (report["skips"], sizes)
    with_cwd = [line.replace("AT_FDCWD", "AT_FDCWD</>") for line in begin]
    report, sizes = replayed(with_cwd + ["2 dup2(3, 1) = 1", wrote, makes])
    assert (report["skipped"], sizes) == (0, made), (report["skips"], sizes)
    # Whoever was there before the trace began waits for nobody for long.
    others = [f'{pid} openat(AT_FDCWD, "/o{pid}", O_WRONLY|O_CREAT, 0600) = 3' for pid in range(20, 30)]
    report, sizes = replayed(begin + others + ['1 write(3, "abc", 3) = 3'] * 6000)
    assert report["mismatched"] == 0 and sizes["/f"] == 18000 and sizes["/o29"] == 0, sizes


def test_a_call_that_is_shown_when_it_has_ended_sets_no_clock_back():
    lines = ['1 1700000100.0 fork() = 2 <0.1>', '2 1700000109.0 mkdir("/a", 0700) = 0 <0.1>', '2 1700000109.5 +++ exited with 0 +++',
             '1 1700000101.0 wait4(-1, NULL, 0, NULL) = 2 <8.6>', '1 1700000110.0 mkdir("/b", 0700) = 0 <0.1>']
    for how in lines, [re.sub(" <.*", "", line) for line in lines]:
        with Tmp() as tmp:
            path, out = os.path.join(tmp, "t.strace"), os.path.join(tmp, "o.txt")
            with open(path, "w", encoding="ascii") as f:
                f.write("\n".join(how) + "\n")
            r = feign("convert", path, out)
            assert r.status == 0 and "set back" not in r.err, r.err
            with open(out, encoding="utf-8") as f:
                made = [float(line.split()[1]) for line in f if "mkdir" in line]
        assert made == [9, 10], made


def test_what_a_file_takes_the_place_of_was_no_directory_but_a_link():
    for shows, goes in (
            ('stat("/d/l", {st_mode=S_IFDIR|0755, st_size=4096, ...}) = 0', 'rename("/d/new", "/d/l") = 0'),
            ('openat(AT_FDCWD, "/d/l/f", O_RDONLY) = 3', 'renameat2(AT_FDCWD, "/d/new", AT_FDCWD, "/d/l", 0) = 0'),
            ('openat(AT_FDCWD, "/d/l", O_RDONLY|O_DIRECTORY) = 3', 'unlink("/d/l") = 0')):
        for makes in ('symlink("v2", "/d/new") = 0', 'openat(AT_FDCWD, "/d/new", O_WRONLY|O_CREAT|O_EXCL, 0666) = 4'):
            report, _ = replayed([shows, makes, goes, 'stat("/d", {st_mode=S_IFDIR|0755, st_size=4096, ...}) = 0'])
            assert (report["mismatched"], report["skipped"]) == (0, 0), (shows, makes, report)


def test_a_process_whose_maker_is_told_its_number_in_a_namespace():
    """unshare --pid, without -y: whoever begins while one process makes another is that one, if nobody else can be."""
    begins = ['1 openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0600) = 3', '1 unshare(CLONE_NEWUSER|CLONE_NEWPID) = 0', "1 fork() = 7", '7 mkdir("/d", 0700) = 0', '7 chdir("/d") = 0']
    makes, made = "7 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>", "7 <... clone resumed>) = 2"
    works = ['8 write(3, "ab", 2) = 2', '8 creat("x", 0600) = 4']
    ends = ["1 lseek(3, 0, SEEK_CUR) = 2", '7 open("/d/x", O_RDONLY) = 4']
    report, sizes = replayed([*begins, makes, *works, made, *ends])
    assert (report["mismatched"], sizes) == (0, {"/d": None, "/d/x": 0, "/f": 2}), (report["mismatches"], sizes)
    # It may be another one's, of whom 9 was told already.
    got = calls([*begins, "1 fork() = 9", "9 fork() = 3", makes, *works, made])
    assert "clone(flags=SIGCHLD) = 2" in got, got
    # --pidns-translation says who it is.
    report, sizes = replayed([*begins, "7 fork() = 2 /* 8 in strace's PID NS */", *works, *ends])
    assert (report["mismatched"], sizes) == (0, {"/d": None, "/d/x": 0, "/f": 2}), (report["mismatches"], sizes)


def test_a_process_number_that_comes_again():
    """What is made under it has what its maker had."""
    lines = ['1 1.0 fork() = 7', '7 1.1 exit_group(0) = ?', '1 1.2 wait4(7, NULL, 0, NULL) = 7', '1 1.3 fork() = 7',
             '7 1.4 mkdir("/w", 0777) = 0', '7 1.5 chdir("/w") = 0', '7 1.6 openat(AT_FDCWD, "f", O_WRONLY|O_CREAT, 0666) = 3', '7 1.7 write(3, "abc", 3) = 3', '7 1.8 fork() = 8',
             '8 1.9 write(3, "child", 5) = 5', '8 2.0 creat("made", 0666) = 4', '8 2.1 exit_group(0) = ?', '7 2.2 write(3, "end", 3) = 3', '7 2.3 exit_group(0) = ?']
    for order in "trace", "depend":
        report, sizes = replayed(lines, "--order", order)
        assert report["mismatched"] == 0 and sizes == {"/w": None, "/w/f": 11, "/w/made": 0}, (order, sizes, report["mismatches"])


def test_a_file_is_opened_again_by_its_descriptor():
    """It has no name by then, or another one has it."""
    lines = ['1 1.0 openat(AT_FDCWD, "/n", O_RDWR|O_CREAT, 0666) = 3', '1 1.1 write(3, "hello", 5) = 5', '1 1.2 unlink("/n") = 0',
             '1 1.3 openat(AT_FDCWD, "/n", O_WRONLY|O_CREAT, 0666) = 4', '1 1.4 write(4, "0123456789", 10) = 10', '1 1.5 openat(AT_FDCWD, "%s", O_RDWR|O_TRUNC) = 5',
             '1 1.6 write(5, "zz", 2) = 2', '1 1.7 pread64(3, "zz", 10, 0) = 2', '1 1.8 fstat(3, {st_mode=S_IFREG|0644, st_size=2, ...}) = 0', '1 1.9 exit_group(0) = ?']
    for name in "/proc/self/fd/3", "/dev/fd/3":
        for order in "trace", "depend":
            report, sizes = replayed([line.replace("%s", name) for line in lines], "--order", order)
            assert report["mismatched"] == 0 and sizes == {"/n": 10}, (name, sizes, report["mismatches"])
    standard = [line.replace("%s", "/dev/stdin").replace("(3,", "(0,").replace("= 3", "= 0") for line in lines]
    assert replayed(standard)[1] == {"/n": 10}


def test_names_below_proc_mean_what_any_process_has():
    lines, _ = text_of(['10 open("/d/f", O_RDWR|O_CREAT|O_TRUNC, 0600) = 3', '10 chdir("/d") = 0', "10 fork() = 11", "11 close(3) = 0", '11 chdir("/e") = 0',
                        '11 open("/proc/10/fd/3", O_WRONLY|O_APPEND) = 5', '11 open("/proc/10/cwd/g", O_RDONLY) = 6', '10 open("/proc/11/cwd/h", O_RDONLY) = 7',
                        '10 open("/proc/self/task/11/fd/5", O_RDONLY) = 8', '10 open("/proc/self/fd/5", O_RDONLY) = -1 ENOENT (No such file or directory)',
                        '10 open("/proc/99/fd/3", O_RDONLY) = 9',
                        '10 openat2(AT_FDCWD, "/proc/self/fd/3", {flags=O_RDONLY, resolve=RESOLVE_NO_MAGICLINKS}, 24) = -1 ELOOP (Too many levels of symbolic links)'])
    got = [line.split('"')[1] for line in lines if "open" in line and "[not a file]" not in line]
    assert got == ["/d/f", "/d/f", "/d/g", "/e/h", "/d/f"], lines
    # A slash behind them leads on to the directory, for calls, too, that follow no links.
    lines, _ = text_of(['10 open("/d", O_RDONLY|O_DIRECTORY) = 3', '10 lstat("/proc/self/fd/3/", {st_mode=S_IFDIR|0755, ...}) = 0', '10 open("/dev/fd/3/.", O_RDONLY|O_NOFOLLOW) = 4',
                        '10 lstat("/proc/self/fd/3", {st_mode=S_IFLNK|0777, ...}) = 0'])
    assert ['"/d"' in line for line in lines] == [True, True, True, False], lines
    # Names that go up from there go up from the file, not from the name below /proc.
    lines, _ = text_of(['10 open("/d/to", O_RDONLY|O_DIRECTORY) = 3', '10 readlink("/d/to", "/e/f", 99) = 4', '10 stat("/proc/self/fd/3/../g", {st_mode=S_IFREG|0644, ...}) = 0',
                        '10 fchdir(3) = 0', '10 open("/proc/10/cwd/../../h", O_RDONLY) = 4', '10 open("/dev/fd/3/i/../../j", O_RDONLY) = 5', '10 stat("/proc/self/fd/../fd/3/k", 0) = 0'])
    got = [line.split('"')[1] for line in lines if "stat" in line or "open" in line]
    assert got == ["/d/to", "/e/g", "/h", "/e/j", "/d/to/k"], lines
    # Of what it had before the trace began, the tracer tells the name.
    lines, _ = text_of(['open("/dev/stdin", O_RDONLY) = 3</d/in>', 'open("/proc/self/exe", O_RDONLY) = 4</bin/x>', 'open("/dev/stderr", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 5</d/log>',
                        'open("/dev/fd/9", O_RDWR) = 6</memfd:m>(deleted)', 'open("/dev/stdout", O_RDWR) = 7</dev/pts/0>', 'open("/dev/fd/8", O_RDWR) = 8<pipe:[7]>'])
    got = [line.split('"')[1] for line in lines if "[not a file]" not in line]
    assert got == ["/d/in", "/bin/x", "/d/log"] and "O_CREAT" not in lines[2], lines


def test_output_and_errors_that_go_to_one_file():
    """It was open before, by "> log 2>&1": one position, not two."""
    lines = ['1 1.0 write(1</w/log>, "one\\n", 4) = 4', '1 1.1 write(2</w/log>, "two\\n", 4) = 4', '1 1.2 fork() = 2', '2 1.3 write(2</w/log>, "three\\n", 6) = 6',
             '2 1.4 exit_group(0) = ?', '1 1.5 lseek(1</w/log>, 0, SEEK_CUR) = 14']
    report, sizes = replayed(lines)
    assert report["mismatched"] == 0 and sizes == {"/w": None, "/w/log": 14}, (sizes, report["mismatches"])


def test_a_directory_that_nothing_tells():
    """What is named from it is not made, and not below / either."""
    report, sizes = replayed(['1 1.0 openat(7, "sub/x", O_WRONLY|O_CREAT, 0666) = 3', '1 1.1 write(3, "x", 1) = 1', '1 1.2 unlinkat(8, "y", 0) = 0',
                              '1 1.3 mkdirat(9, "z", 0777) = 0', '1 1.4 creat("/a", 0666) = 4'])
    assert sizes == {"/a": 0} and report["mismatched"] == 0 and report["skipped"] == 4, (sizes, report)


def test_the_annotation_of_an_absolute_name_tells_where_a_process_is():
    report, sizes = replayed(['1 1.0 openat(AT_FDCWD</w>, "/x", O_RDONLY) = 3</x>', '2 1.1 openat(AT_FDCWD</w/d>, "/x", O_RDONLY) = 3</x>', '2 1.2 creat("t", 0644) = 4</w/d/t>'],
                             "--provider", "strace")
    assert report["mismatched"] == 0 and "/w/d/t" in sizes, sizes


def test_a_root_holds_names_that_go_up():
    lines = ['1 1.0 mkdir("/c", 0777) = 0', '1 1.1 mkdir("/c/x", 0777) = 0', '1 1.2 chroot("/c") = 0', '1 1.3 chdir("/x") = 0', '1 1.4 creat("../../z", 0644) = 3', '1 1.5 creat("../y", 0644) = 4']
    assert replayed(lines)[1] == {"/c": None, "/c/x": None, "/c/z": 0, "/c/y": 0}


def test_a_root_may_be_renamed():
    report, sizes = replayed(['1 1.0 mkdir("/jail", 0755) = 0', "1 1.1 fork() = 2", '2 1.2 chroot("/jail") = 0', '2 1.3 chdir("/") = 0', '1 1.4 mkdir("/top", 0755) = 0',
                              '1 1.5 rename("/jail", "/top/cell") = 0', '2 1.6 creat("/a", 0644) = 3', '2 1.7 creat("b", 0644) = 4', '2 1.8 rename("/a", "c") = 0'])
    assert report["mismatched"] == 0 and sizes == {"/top": None, "/top/cell": None, "/top/cell/b": 0, "/top/cell/c": 0}, (sizes, report["mismatches"])


def test_links_in_a_root_lead_from_it():
    lines = ['1 1.0 mkdir("/c", 0777) = 0', '1 1.1 mkdir("/c/d", 0777) = 0', '1 1.2 symlink("/e", "/l") = 0', '2 1.3 chroot("/c") = 0', '2 1.4 symlink("/d", "/l") = 0', '2 1.5 symlink("../../d", "/up") = 0',
             '2 1.6 creat("/l/f", 0644) = 3', '2 1.7 creat("/up/g", 0644) = 4', '2 1.8 rename("/up/g", "/l/h") = 0', '2 1.9 stat("/l", {st_mode=S_IFDIR|0755, ...}) = 0', '1 2.0 mkdir("/e", 0777) = 0',
             '1 2.1 creat("/l/x", 0644) = 3', '1 2.2 stat("/c/up/f", 0x1) = -1 ENOENT (No such file or directory)', '2 2.3 open("/l/f", O_RDONLY) = 5']
    report, sizes = replayed(lines)
    assert report["mismatched"] == 0, report["mismatches"]
    assert {name for name, size in sizes.items() if size == 0} == {"/e/x", "/c/d/h", "/c/d/f"}, sizes


def test_a_link_that_later_opens_contradict_is_none():
    """/s/t is taken for a link to /s/l/d, since /s/t/w/c leads there; but /s/t/R and /s/l/d/R are links to two files: each has its own size."""
    def opens(name, there, size):
        return [f'1 openat(AT_FDCWD, "{name}", O_RDONLY) = 3<{there}>', f'1 read(3<{there}>, "x"..., 4096) = {size}', f'1 read(3<{there}>, "", 4096) = 0', f"1 close(3<{there}>) = 0"]
    stats = [f'1 stat("{name}", {{st_mode=S_IFREG|0644, st_size={size}, ...}}) = 0' for name, size in (("/s/t/R", 20), ("/s/l/d/R", 70))]
    first, one, two = opens("/s/t/w/c", "/s/l/d/w/c", 10), opens("/s/t/R", "/v/R-one", 20), opens("/s/l/d/R", "/v/R-two", 70)
    for lines in (one + two, two + one, stats + one + two, stats + two + one):
        for order in ("trace", "depend"):
            report, sizes = replayed([*first, *lines, *first, *lines], "--order", order)
            assert report["mismatched"] == 0, (lines, report["mismatches"])
            links = {"/s/t/R": len("/v/R-one"), "/s/l/d/R": len("/v/R-two"), "/s/t/w": len("/s/l/d/w")}
            assert {**sizes, **links, "/v/R-one": 20, "/v/R-two": 70} == sizes, sizes
    # What shows that a directory is none, by a name in it, is itself where it is.
    report, sizes = replayed([*opens("/e/d/z", "/e/o/z", 10), '1 stat("/e/d/q", {st_mode=S_IFREG|0644, st_size=5, ...}) = 0', *opens("/e/d/q", "/e/d/q", 5)])
    assert report["mismatched"] == 0 and sizes["/e/d/q"] == 5, sizes
    # A file that the trace made and somebody else renamed contradicts nothing.
    report, sizes = replayed([*opens("/w/link/x", "/real/x", 10), '1 openat(AT_FDCWD, "/w/link/f", O_WRONLY|O_CREAT, 0600) = 3</real/f>', "1 close(3</real/f>) = 0", *opens("/w/link/f", "/real/g", 10)[:1]])
    assert "/real/f" in sizes and "/w/link/x" not in sizes, sizes


def test_a_working_directory_that_no_call_in_the_trace_tells():
    """unshare is none of strace's %process: a thread's chdir is not that of the others, as the annotation shows."""
    lines = ['1 1.0 mkdir("/w", 0777) = 0', '1 1.1 chdir("/w") = 0', '1 1.2 mkdir("sub", 0777) = 0', '1 1.3 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD) = 2', '2 1.4 chdir("sub") = 0',
             '2 1.5 openat(AT_FDCWD</w/sub>, "a", O_WRONLY|O_CREAT, 0666) = 3</w/sub/a>', '1 1.6 openat(AT_FDCWD</w>, "b", O_WRONLY|O_CREAT, 0666) = 4</w/b>', '1 1.7 mkdir("d", 0777) = 0', '2 1.8 mkdir("e", 0777) = 0']
    report, sizes = replayed(lines)
    assert report["mismatched"] == 0 and set(sizes) == {"/w", "/w/sub", "/w/sub/a", "/w/b", "/w/d", "/w/sub/e"}, sizes
    # A name that the directory had is none of another.
    lines = ['1 1.0 mkdir("/w", 0777) = 0', '1 1.1 chdir("/w") = 0', '2 1.2 rename("/w", "/v") = 0', '1 1.3 openat(AT_FDCWD</w>, "a", O_WRONLY|O_CREAT, 0666) = 3</v/a>']
    assert set(replayed(lines)[1]) == {"/v", "/v/a"}


def test_a_file_of_unknown_origin_waits_for_its_name():
    """Its process was handed a descriptor that nobody saw opened there; by dependencies, too."""
    lines = ['1 1.1 openat(AT_FDCWD</w>, "c", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3</w/c> <0.01>', '2 1.2 write(1</w/c>, "abc", 3) = 3 <0.01>', '2 1.3 close(1</w/c>) = 0 <0.01>',
             '1 1.4 close(3</w/c>) = 0 <0.01>', '1 1.5 unlink("/w/c") = 0 <0.01>']
    for _ in range(5):
        report, sizes = replayed(lines, "--order", "depend")
        assert report["mismatched"] == 0 and sizes == {"/w": None}, (sizes, report["mismatches"])


def test_clones_of_ranges():
    """What they are of must be there, as much as they say, or as their copy shows; whether the file system here has them is another matter."""
    opens = ['1 1.0 openat(AT_FDCWD, "/a", O_RDONLY) = 3', '1 1.1 openat(AT_FDCWD, "/b", O_RDWR|O_CREAT|O_TRUNC, 0666) = 4']
    to_end = "{src_fd=3, src_offset=4096, src_length=0, dest_offset=8192}) = 0"
    for how, size in ((["BTRFS_IOC_CLONE_RANGE or FICLONERANGE, {src_fd=3, src_offset=8192, src_length=4096, dest_offset=65536}) = 0"], 12288),
                      (["0x4020940d, {src_fd=3</a>, src_offset=8192, src_length=4097, dest_offset=0}) = 0"], 12289),
                      (["0x4020940d /* BTRFS_IOC_CLONE_RANGE or FICLONERANGE */, " + to_end], 4096), (["FICLONERANGE, " + to_end, 8292], 4196),
                      (["BTRFS_IOC_CLONE or FICLONE, 3) = 0", 777], 777), (["FICLONERANGE, 0x7ffe) = -1 EFAULT (Bad address)"], 0)):
        lines = opens + ["1 1.2 ioctl(4, " + how[0]] + [f"1 1.3 lseek(4, 0, SEEK_END) = {end}" for end in how[1:]]
        report, sizes = replayed(lines)
        assert sizes["/a"] == size, (how, sizes)
        assert len(report["mismatches"]) <= len(how), report
    lines = [*opens, "1 1.2 ioctl(4, FICLONERANGE, " + to_end, "1 1.3 lseek(4, 0, SEEK_END) = 9000",
             "1 1.4 ioctl(4, BTRFS_IOC_FILE_EXTENT_SAME or FIDEDUPERANGE, {src_offset=0, src_length=4096, dest_count=1, info=[{dest_fd=3, dest_offset=0}]} => {info=[{bytes_deduped=4096, status=0}]}) = 0"]
    found = calls(lines)
    assert len(found) == 4 and found[2].endswith("src_offset=4096, src_length=0, dest_offset=8192) = 0"), found
    assert "changes no" in replayed(lines)[0]["left_out"][0]["why"]


def test_a_copy_of_which_one_file_is_left_out():
    """It is as if the other end were a pipe."""
    lines = ['1 1.0 openat(AT_FDCWD, "/in/a", O_RDONLY) = 3', '1 1.1 openat(AT_FDCWD, "/out/b", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 4',
             '1 1.2 copy_file_range(3, NULL, 4, NULL, 9223372035781033984, 0) = 5000', '1 1.3 copy_file_range(3, NULL, 4, NULL, 9223372035781033984, 0) = 0',
             '1 1.4 fstat(4, {st_mode=S_IFREG|0644, st_size=5000, ...}) = 0', '1 1.5 lseek(3, 0, SEEK_CUR) = 5000']
    report, sizes = replayed(lines, "--with", "filter,path=/out/**")
    assert report["mismatched"] == 0 and report["activities"] == 4 and sizes == {"/out": None, "/out/b": 5000}, (report, sizes)
    report, sizes = replayed(lines, "--with", "filter,path=/in/**")
    assert report["mismatched"] == 0 and report["activities"] == 4 and sizes == {"/in": None, "/in/a": 5000}, (report, sizes)
    # What the preset leaves out, as cp does of a file of /usr/share, or of one into it.
    noise = [line.replace("/in/a", "/usr/share/a") for line in lines]
    report, sizes = replayed(noise, "--with", "filter,preset=workload")
    assert report["mismatched"] == 0 and report["activities"] == 4 and sizes == {"/out": None, "/out/b": 5000}, (report, sizes)
    noise = [line.replace("/out/b", "/usr/share/b") for line in lines]
    report, sizes = replayed(noise, "--with", "filter,preset=workload")
    assert report["mismatched"] == 0 and report["activities"] == 4 and sizes == {"/in": None, "/in/a": 5000}, (report, sizes)
    report, _ = replayed(noise, "--with", "filter,preset=workload,drop=yes,op=copy_file_range")
    assert report["activities"] == 2, report


def test_controls_are_no_disks():
    report, _ = replayed(['1 1.0 openat(AT_FDCWD, "/dev/mapper/control", O_RDWR) = -1 ENODEV (No such device)', '1 1.1 openat(AT_FDCWD, "/dev/loop-control", O_RDWR) = 3',
                          '1 1.2 openat(AT_FDCWD, "/dev/loop0", O_RDWR) = 4'])
    assert report["mismatched"] == 0 and report["skipped"] == 2, report


def test_one_text_below_two_directories_is_two_names():
    with Tmp() as tmp:
        begin = ['10 openat(AT_FDCWD, "/d1/x", O_RDWR|O_CREAT|O_EXCL, 0666) = 5</d1/x> <0.000001>', '10 openat(AT_FDCWD, "/d1", O_RDONLY|O_DIRECTORY) = 3</d1> <0.000001>',
                 '10 openat(AT_FDCWD, "/d2", O_RDONLY|O_DIRECTORY) = 4</d2> <0.000001>']
        for name in "xy":
            calls = [f'10 linkat(3</d1>, "x", 4</d2>, "{name}", 0 <unfinished ...>', '11 unlink("/d1/x") = 0 <0.000001>', "10 <... linkat resumed>) = 0 <0.000003>"]
            assert [pid for pid, _ in order_of(tmp, begin + calls)][-2:] == [10, 11], name
            calls = [f'10 renameat(3</d1>, "x", 4</d2>, "{name}" <unfinished ...>', '11 access("/d1/x", F_OK) = -1 ENOENT (x) <0.000001>', "10 <... renameat resumed>) = 0 <0.000003>"]
            assert [pid for pid, _ in order_of(tmp, begin + calls)][-2:] == [10, 11], name


def test_the_end_of_a_file_was_where_seeks_and_placed_reads_met_it():
    with Tmp() as tmp:
        begin = ['100 openat(AT_FDCWD</x>, "log", O_WRONLY|O_CREAT|O_APPEND, 0666) = 3</x/log> <0.000001>',
                 '101 openat(AT_FDCWD</x>, "log", O_RDONLY) = 3</x/log> <0.000001>', "101 lseek(3</x/log>, 0, SEEK_END) = 100 <0.000001>"]
        writes = [('write(3</x/log>, "12345", 5', "5"), ('pwrite64(3</x/log>, "12345", 5, 100', "5")]
        finds = [("lseek", "lseek(3</x/log>, -1, SEEK_END", ") = 104", ") = 99"), ("pread64", "pread64(3</x/log>, ", '"12345", 99, 100) = 5', '"", 99, 100) = 0'),
                 ("sendfile", "sendfile(4</x/o>, 3</x/log>, [100]", " => [105], 99) = 5", ", 99) = 0")]
        for write, wrote in writes:
            for name, find, has, has_not in finds:
                name_of_write = write[:write.index("(")]
                ends = {100: f"100 <... {name_of_write} resumed>) = {wrote} <0.000003>", "has": f"101 <... {name} resumed>{has} <0.000003>",
                        "has not": f"101 <... {name} resumed>{has_not} <0.000003>"}
                under_way = [f"101 {find} <unfinished ...>", f"100 {write} <unfinished ...>"]
                for last, first in ((["has", 100], 100), ([100, "has not"], 101)):
                    order = order_of(tmp, begin + under_way + [ends[e] for e in last])
                    assert order[-2][0] == first, (write, find, last, order)
        # Nobody has been told where it was, and who finds less is seen to find it later.
        seeks = ["101 lseek(3</x/log>, 0, SEEK_END <unfinished ...>", "102 lseek(4</x/log>, 0, SEEK_END <unfinished ...>", f"100 {writes[0][0]} <unfinished ...>",
                 "102 <... lseek resumed>) = 105 <0.000003>", "101 <... lseek resumed>) = 100 <0.000003>", "100 <... write resumed>) = 5 <0.000003>"]
        order = order_of(tmp, begin[:2] + seeks)
        assert order[2:] == [(101, "100"), (100, "5"), (102, "105")], order


def test_who_opened_a_file_reads_from_its_beginning():
    opens = ['100 openat(AT_FDCWD{cwd}, "log", O_WRONLY|O_CREAT|O_APPEND|O_TRUNC, 0666) = 3{f} <0.000001>', "100 write(3{f}, \"x\"..., 10) = 10 <0.000001>",
             '101 openat(AT_FDCWD{cwd}, "log", O_RDONLY) = 4{f} <0.000001>']
    # It found what was written by a call that ended later, and nothing more the second time.
    found = ["100 write(3{f}, \"y\"..., 5 <unfinished ...>", "101 read(4{f}, \"xy\"..., 8192) = 15 <0.000001>", "100 <... write resumed>) = 5 <0.000003>",
             "101 read(4{f}, \"\", 8192) = 0 <0.000001>"]
    # … or had not, though that ended before.
    missed = ["101 read(4{f},  <unfinished ...>", "100 write(3{f}, \"y\"..., 5) = 5 <0.000001>", "101 <... read resumed>\"x\"..., 8192) = 10 <0.000003>"]
    for names in ({"cwd": "</x>", "f": "</x/log>"}, {"cwd": "", "f": ""}):
        def order(lines):
            with Tmp() as tmp:
                return [result for pid, result in order_of(tmp, [line.format(**names) for line in lines])]
        assert order(opens + found) == ["3", "10", "4", "5", "15", "0"], names
        assert order(opens + missed) == ["3", "10", "4", "10", "5"], names
        # A seek is as good; a file that was cut has its end there.
        assert order(opens + ["101 lseek(4{f}, 8, SEEK_SET) = 8 <0.000001>", *found[:1], "101 read(4{f}, \"xy\"..., 8192) = 7 <0.000001>", found[2]]) == ["3", "10", "4", "8", "5", "7"]
        assert order(opens + ["100 ftruncate(3{f}, 2) = 0 <0.000001>", *found[:1], "101 read(4{f}, \"xy\"..., 8192) = 7 <0.000001>", found[2]]) == ["3", "10", "4", "0", "5", "7"]
        # Who cuts it took effect after who found it as it was, and before who found it so.
        for cut, ends in (("ftruncate(3{f}, 0", "ftruncate"), ('openat(AT_FDCWD{cwd}, "log", O_WRONLY|O_TRUNC', "openat")):
            done = f"100 <... {ends} resumed>) = 0 <0.000003>" if ends == "ftruncate" else "100 <... openat resumed>) = 6{f} <0.000003>"
            result = "0" if ends == "ftruncate" else "6"
            begin = [*opens, "101 read(4{f}, \"x\"..., 8192) = 10 <0.000001>", "101 lseek(4{f}, 0, SEEK_SET) = 0 <0.000001>"]
            under_way = ["101 read(4{f},  <unfinished ...>", f"100 {cut} <unfinished ...>"]
            assert order([*begin, *under_way, done, "101 <... read resumed>\"x\"..., 8192) = 10 <0.000003>"])[-2:] == ["10", result], (names, cut)
            assert order([*begin, *under_way, "101 <... read resumed>\"\", 8192) = 0 <0.000003>", done])[-2:] == [result, "0"], (names, cut)
        # Who does not append writes over what is there: the file was as long before.
        over = ['100 openat(AT_FDCWD{cwd}, "log", O_RDWR) = 5{f} <0.000001>', "100 write(5{f}, \"z\"..., 8 <unfinished ...>", "101 read(4{f}, \"zx\"..., 8192) = 10 <0.000001>",
                "100 <... write resumed>) = 8 <0.000003>"]
        assert order(opens + over) == ["3", "10", "4", "5", "10", "8"]


def test_a_write_over_the_end_of_a_page_is_seen_in_two_steps():
    with Tmp() as tmp:
        begin = ['100 openat(AT_FDCWD</x>, "log", O_WRONLY|O_CREAT|O_APPEND|O_TRUNC, 0666) = 3</x/log> <0.000001>', "100 write(3</x/log>, \"x\"..., 4061) = 4061 <0.000001>"]
        # The end of the first page is neither's: that of process 101, of which that was seen, came then, and the other one last.
        got = order_of(tmp, [*begin, "100 write(3</x/log>, \"y\"..., 15 <unfinished ...>", "101 write(4</x/log>, \"z\"..., 44 <unfinished ...>",
                             "102 lseek(5</x/log>, 0, SEEK_END) = 4096 <0.000001>", "101 <... write resumed>) = 44 <0.000003>", "102 lseek(5</x/log>, 0, SEEK_END) = 4105 <0.000001>",
                             "100 <... write resumed>) = 15 <0.000009>"])
    assert [pid for pid, _ in got][2:] == [102, 101, 102, 100], got


def test_what_is_opened_to_append_does_wherever_it_is_told_to_write():
    begin = ['100 openat(AT_FDCWD, "/x/log", O_RDWR|O_CREAT|O_APPEND|O_TRUNC, 0666) = 3 <0.000001>', '100 write(3, "x"..., 100) = 100 <0.000001>',
             '101 openat(AT_FDCWD, "/x/log", O_RDONLY) = 4 <0.000001>', "101 lseek(4, 0, SEEK_END <unfinished ...>", '100 pwrite64(3, "x"..., 50, 10) = 50 <0.000001>']
    # … but for one that is told not to, and once it is not.
    written, = begin[4:]
    stays = ['100 pwritev2(3, [{iov_base="x"..., iov_len=50}], 1, 10, RWF_NOAPPEND) = 50 <0.000001>', f"100 fcntl(3, F_SETFL, O_RDWR) = 0 <0.000001>\n{written}"]
    for more, found in ([], (100, 150)), *(([call], (100, 130)) for call in stays):
        for end, first in zip(found, (101, 100)):
            lines = [*begin[:3], *more, begin[3], written.replace("50", "30").replace("pwrite64", "write").replace(", 10)", ")") if more else written]
            with Tmp() as tmp:
                order = order_of(tmp, [*"\n".join(lines).split("\n"), f"101 <... lseek resumed>) = {end} <0.000009>"])
            assert [who for who, _ in order][-2:] == [first, 201 - first], (lines, order)


def test_what_a_directory_holds_stays_known():
    made, opens = '100 mkdir("/d", 0777) = 0 <0.000001>', '100 openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = 4 <0.000001>'
    listing = ["100 getdents64(4, 0x1 /* {} entries */, 32768) = {} <0.000001>", "100 getdents64(4, 0x1 /* 0 entries */, 32768) = 0 <0.000001>", "100 close(4) = 0 <0.000001>"]
    shows = lambda size: [opens, *(line.format(size // 24, size) for line in listing)]
    begun, over = '101 openat(AT_FDCWD, "/d/b", O_WRONLY|O_CREAT|O_TRUNC, 0666 <unfinished ...>', "101 <... openat resumed>) = 3 <0.000009>"
    # A name that nothing told of is made, mostly; and a listing that shows more than was made may only have been taken too early.
    for before in ([made, '100 openat(AT_FDCWD, "/d/a", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 5 <0.000001>'],
                   [made, '100 openat(AT_FDCWD, "/d/a", O_WRONLY|O_CREAT|O_EXCL, 0666) = 5 <0.000001>', *shows(96)]):
        with Tmp() as tmp:
            order = order_of(tmp, [*before, begun, *shows(96), over])
        assert order[-4:-2] == [(101, "3"), (100, "96")], order
    # … but not if several do.
    with Tmp() as tmp:
        order = order_of(tmp, [*before[:2], *10 * shows(96), begun, *shows(96), over])
    assert order[-1] == (101, "3"), order
    # A name that becomes another one in it, or takes that one's place, goes and comes at once.
    made = [made, *(f'100 openat(AT_FDCWD, "/d/{name}", O_WRONLY|O_CREAT|O_EXCL, 0666) = 5 <0.000001>' for name in ("a", "longer-name"))]
    begun, over = '101 rename("/d/a", "/d/longer-name" <unfinished ...>', "101 <... rename resumed>) = 0 <0.000009>"
    asks, told = "100 getdents64(4,  <unfinished ...>", "100 <... getdents64 resumed>0x1, 32768) = {} <0.000005>"
    for before, were in ((made[:2], 72), (made, 104)):
        for shown, first in ((were, 100), (80, 101)):
            for lines in ([begun, asks, told, over], [asks, begun, over, told]):
                with Tmp() as tmp:
                    order = order_of(tmp, [*before, opens, *(line.format(shown) for line in lines)])
                assert order[-2][0] == first, (were, shown, lines, order)
    # It may be the same one.
    with Tmp() as tmp:
        order = order_of(tmp, [*made[:2], '100 chdir("/d") = 0 <0.000001>', '100 rename("a", "/d/a") = 0 <0.000001>', opens, asks, '101 openat(AT_FDCWD, "/d/z", O_CREAT|O_EXCL, 0666) = 3 <0.000001>', told.format(72)])
    assert order[-2:] == [(100, "72"), (101, "3")], order
    # What it shows comes about only later.
    more = [f'101 openat(AT_FDCWD, "/d/{name}", O_WRONLY|O_CREAT|O_EXCL, 0666) = 6 <0.000001>' for name in ("longer-name", "c")]
    with Tmp() as tmp:
        order = order_of(tmp, [*made[:2], opens, asks, '101 unlink("/d/a") = 0 <0.000001>', *more, told.format(104)])
    assert [who for who, _ in order] == [100, 100, 100, 101, 101, 101, 100], order


def test_descriptors_without_names_are_what_their_processes_opened():
    opens = ['100 openat(AT_FDCWD, "/x/log", O_RDWR|O_CREAT|O_TRUNC, 0666) = 3 <0.000001>']
    race_of = ["100 write(3, \"y\"..., 5 <unfinished ...>", "101 pread64({fd}, \"y\"..., 8192, 0) = 5 <0.000001>", "100 <... write resumed>) = 5 <0.000003>"]

    def first(*lines, fd):
        """Who took effect first: the write, which ended last, only if both are one file."""
        with Tmp() as tmp:
            got = order_of(tmp, [*opens, *lines, *(line.format(fd=fd) for line in race_of)])
            return [pid for pid, result in got if result == "5"][0]
    fork, thread = "clone(child_stack=NULL, flags=SIGCHLD", "clone(child_stack=0x1, flags=CLONE_VM|CLONE_FILES|CLONE_THREAD|CLONE_SIGHAND"
    other = 'openat(AT_FDCWD, "/x/other", O_RDONLY|O_CREAT, 0666)'
    for made in (fork, thread):
        assert first(f"100 {made}) = 101 <0.000001>", fd=3) == 100
        # It goes on before whoever made it does, and has another descriptor of it.
        early = [f"100 {made} <unfinished ...>", f"101 {other} = 4 <0.000001>", "100 <... clone resumed>) = 101 <0.000003>", "101 dup2(3, 9) = 9 <0.000001>"]
        assert [first(*early, fd=fd) for fd in (3, 9, 4)] == [100, 100, 101]
    # A descriptor that another file has by now; threads have what one of them opens, and close is over when it begins.
    assert first(f"100 {fork}) = 101 <0.000001>", "101 close(3) = 0 <0.000001>", f"101 {other} = 3 <0.000001>", fd=3) == 101
    assert first(f"100 {fork}) = 101 <0.000001>", "101 close_range(3, 4294967295, 0) = 0 <0.000001>", f"101 {other} = 4 <0.000001>", fd=3) == 101
    assert first(f"100 {thread}) = 101 <0.000001>", '100 openat(AT_FDCWD, "/x/log", O_RDONLY) = 7 <0.000001>', fd=7) == 100
    assert first(f"100 {thread}) = 101 <0.000001>", f"100 {other} = 7 <0.000001>", "101 close(7 <unfinished ...>",
                 '100 openat(AT_FDCWD, "/x/log", O_RDONLY) = 7 <0.000001>', "101 <... close resumed>) = 0 <0.000003>", fd=7) == 100


def test_a_lock_is_its_descriptions_until_the_last_descriptor_closes():
    # A shell opens the file, and a command that it starts locks it.
    lines = ['100 openat(AT_FDCWD, "/x/lk", O_RDWR|O_CREAT, 0666) = 9 <0.000001>', "100 vfork() = 101 <0.000001>", "101 flock(9, LOCK_EX) = 0 <0.000001>",
             "101 close(9) = 0 <0.000001>", '102 openat(AT_FDCWD, "/x/lk", O_RDWR) = 3 <0.000001>']
    with Tmp() as tmp:
        got = order_of(tmp, [*lines, "100 flock(9, LOCK_UN <unfinished ...>", "102 flock(3, LOCK_EX|LOCK_NB <unfinished ...>", "100 <... flock resumed>) = 0 <0.000003>",
                             "102 <... flock resumed>) = -1 EAGAIN (Resource temporarily unavailable) <0.000003>"])
    assert [pid for pid, _ in got][-2:] == [102, 100], got


def test_locks_that_closes_and_ends_give_up():
    if shutil.which("strace") is None:
        raise Skip("there is no strace")
    script = """
import fcntl, os
for n in range(4):
    if os.fork() == 0:
        for i in range(30):
            f = os.open("lk", os.O_RDWR | os.O_CREAT)
            try:
                HOW(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.write(f, b"x")
            except OSError:
                pass
            if i == 29:
                os._exit(0)
            os.close(f)
for n in range(4):
    os.wait()
"""
    for how in ("fcntl.flock", "fcntl.lockf"):
        with Tmp() as tmp:
            trace, root = os.path.join(tmp, "t.strace"), os.path.join(tmp, "root")
            os.mkdir(root)
            for option in ("-f", "-ff"):
                subprocess.run(["strace", option, "-ttt", "-T", "-o", trace, sys.executable, "-c", script.replace("HOW", how)], cwd=tmp, check=True)
                for order in ("trace", "depend"):
                    report = feign("replay", trace, "--root", root, "--cwd", tmp, "--order", order, "--json").json()
                    assert report["mismatched"] == 0, (how, option, order, report["mismatches"])
                if option == "-f":
                    os.remove(trace)
                    os.remove(os.path.join(tmp, "lk"))


def order_of_files(files, calls):
    """Processes of those calls, in the order in which they count; `files`: lines by the number that the file's name ends with."""
    with Tmp() as tmp:
        for number, lines in files.items():
            with open(os.path.join(tmp, f"t.{number}"), "w", encoding="utf-8") as f:
                f.writelines(line + "\n" for line in lines)
        out = os.path.join(tmp, "t.txt")
        assert feign("convert", "-q", os.path.join(tmp, "t"), out).status == 0
        with open(out, encoding="utf-8") as f:
            return [int(pid) for pid in re.findall(rf"/(\d+)\] (?:{calls})", f.read())]


def test_a_call_in_a_file_of_its_own_may_end_late():
    # strace was not given a processor between the time that it showed for a call, and that from which it counted how long it took.
    refused = "-1 EAGAIN (Resource temporarily unavailable)"
    opened = '1700000000.000000 openat(AT_FDCWD, "/x/lk", O_RDWR|O_CREAT, 0666) = 3 <0.000001>'
    flock = "1700000000.{:06d} flock(3, LOCK_EX|LOCK_NB) = {} <0.000020>".format
    close = "1700000000.{:06d} close(3) = 0 <0.000020>".format
    write = '1700000000.{:06d} write(3, "x", 1) = 1 <0.000020>'.format
    mkdir = '1700000000.{:06d} mkdir("/w/d", 0777) = {} <0.000020>'.format
    rmdir = '1700000000.{:06d} rmdir("/w/d") = {} <0.000020>'.format
    exists, missing = "-1 EEXIST (File exists)", "-1 ENOENT (No such file or directory)"
    for one, two, want in (
            # Who was refused it asked when the other one had it, …
            ([flock(100, refused), close(200)], [flock(124, "0"), close(300)], [102, 101]),
            # … who had it, when another one had given it up for the last time, …
            ([flock(100, "0"), write(900), close(950)],
             [flock(200, "0"), flock(300, "0"), close(400), opened.replace(".000000", ".000450"), flock(500, refused)], [102, 102, 101, 102]),
            # … and who gave it up did so when the other one had been refused it.
            ([flock(100, "0"), close(200), write(300)], [flock(240, refused), close(400)], [101, 102]),
            # So it is with names.
            ([mkdir(100, "0"), write(900)], [mkdir(200, "0"), rmdir(300, "0"), rmdir(400, missing), mkdir(500, exists)], [102, 102, 102, 101, 102]),
            ([mkdir(50, "0"), rmdir(100, "0"), write(300)], [mkdir(140, exists)], [101, 102, 101]),
            # A process that is made is where its maker is by then, though its file is read beside the maker's.
            (['1700000000.000050 chdir("/w") = 0 <0.000001>', "1700000000.000100 clone(child_stack=NULL, flags=SIGCHLD) = 102 <0.000300>",
              mkdir(410, "0"), write(900)], ['1700000000.000415 mkdir("d", 0777) = -1 EEXIST (File exists) <0.000010>'], [101, 102])):
        begin = [opened] * ("clone" not in str(one))
        # Of 100 no call was traced, which tells nothing of the others.
        found = order_of_files({100: [], 101: begin + one, 102: begin + two}, "flock|mkdir|rmdir")
        assert found == want, (found, want)


def test_files_of_which_one_begins_after_midnight():
    line = '{} openat(AT_FDCWD, "/x", O_RDWR|O_CREAT, 0666) = 3 <0.000001>'.format
    for files, want in (({101: "23:59:59.900000", 102: "00:00:00.100000", 103: "00:00:00.200000"}, [101, 102, 103]),
                        ({101: "23:59:59", 102: "00:00:02"}, [101, 102]),
                        ({101: "02:00:00.000000", 102: "20:00:00.000000"}, [101, 102]),   # something that runs all day
                        ({0: "7 00:00:00.100000", 1: "8 23:59:59.900000"}, [8, 7])):
        found = order_of_files({number: [line(time)] for number, time in files.items()}, "openat")
        assert found == want, (found, want)


def test_files_without_a_call():
    """strace -ff -qqq -e trace=… leaves them of processes that made no such call; a rank's trace is lost."""
    line = '1700000000.000000 openat(AT_FDCWD, "/x", O_RDWR|O_CREAT, 0666) = 3 <0.000001>\n'
    for text, status, says in ((line, 0, ""), ("77 " + line, 2, "t.102: is empty"), ("", 2, "t.101: is empty"), ("%d, %s\n", 2, "no provider")):
        with Tmp() as tmp:
            for pid, content in ((101, text), (102, "")):
                with open(os.path.join(tmp, f"t.{pid}"), "w", encoding="utf-8") as f:
                    f.write(content)
            r = feign("convert", "-q", os.path.join(tmp, "t"), os.path.join(tmp, "t.txt"))
            assert r.status == status and says in r.err, r


def test_files_without_times_of_which_one_has_no_call():
    for time in "", "12:00:00 ", "     0.000011 ":
        found, _ = text_of({"t.7": [time + OPEN], "t.8": [time + "+++ exited with 0 +++"]}, name="t")
        assert len(found) == 1, (time, found)


def test_more_files_than_a_process_may_have_open():
    with Tmp() as tmp:
        root = os.path.join(tmp, "root")
        os.mkdir(root)
        for limit, time in (("-n", "1700000000.{:06d} "), ("-Sn", "")):  # those with times are opened as they begin; of others all are
            for i in range(100):
                with open(os.path.join(tmp, f"t.{100 + i}"), "w", encoding="utf-8") as f:
                    f.write(f'{time.format(100 * i)}openat(AT_FDCWD, "/f{i}", O_RDWR|O_CREAT, 0600) = 3 <0.000010>\n')
            done = subprocess.run(["bash", "-c", f'ulimit {limit} 64; exec "$0" info "$1" --json', FEIGN, os.path.join(tmp, "t")], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            assert done.returncode == 0, (limit, done.stderr)
            assert json.loads(done.stdout)["activities"] == 100
        report = feign("replay", os.path.join(tmp, "t"), "--root", root)
        assert re.search(r"^trace      \S+/t\.100 … \S+/t\.199 \(100 files\)$", report.out, re.M), report.out


def test_a_size_that_fstat_tells_is_in_order_with_writes():
    lines = ['7 100.000000 openat(AT_FDCWD, "/log", O_WRONLY|O_CREAT|O_APPEND, 0666) = 3 <0.000010>', "7 100.000100 fstat(3, {st_mode=S_IFREG|0644, st_size=0, ...}) = 0 <0.000010>",
             "7 100.000200 fork() = 8 <0.000010>", '7 100.000300 write(3, "1234", 4 <unfinished ...>', "8 100.000310 fstat(3, {st_mode=S_IFREG|0644, st_size=4, ...}) = 0 <0.000010>",
             "7 100.000350 <... write resumed>) = 4 <0.000050>", '8 100.000400 openat(AT_FDCWD, "/log", O_RDONLY) = 4 <0.000010>', '8 100.000500 read(4, "1234", 100) = 4 <0.000010>',
             '8 100.000600 read(4, "", 100) = 0 <0.000010>']
    with Tmp() as tmp:
        trace, root = os.path.join(tmp, "t.strace"), os.path.join(tmp, "root")
        with open(trace, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        os.mkdir(root)
        report = feign("replay", trace, "--root", root, "--json").json()
        assert report["mismatched"] == 0 and os.path.getsize(root + "/log") == 4, report["mismatches"]


def test_a_size_that_fstat_told_before_a_write_that_ended_earlier():
    begin = ['7 openat(AT_FDCWD, "/log", O_WRONLY|O_CREAT|O_TRUNC|O_APPEND, 0666) = 3 <0.000010>', "7 fork() = 8 <0.000010>"]
    for stat, rest in (("fstat(3", ""), ('newfstatat(3, ""', ", AT_EMPTY_PATH"), ('statx(3, "", AT_STATX_SYNC_AS_STAT|AT_EMPTY_PATH, STATX_ALL', "")):
        shows = "{stx_mask=STATX_ALL, stx_mode=S_IFREG|0644, stx_size=0, ...}" if "statx" in stat else "{st_mode=S_IFREG|0644, st_size=0, ...}"
        with Tmp() as tmp:
            path, out = os.path.join(tmp, "t.strace"), os.path.join(tmp, "t.txt")
            with open(path, "w", encoding="utf-8") as f:
                f.write("\n".join([*begin, f"8 {stat},  <unfinished ...>", '7 write(3, "1234", 4) = 4 <0.000010>', f"8 <... {stat.split('(')[0]} resumed>{shows}{rest}) = 0 <0.000030>"]) + "\n")
            assert feign("convert", "-q", path, out).status == 0
            with open(out, encoding="utf-8") as f:
                text = f.read()
            assert re.findall(r"/(\d)\]", text)[-2:] == ["8", "7"], text


def test_who_shares_an_offset_met_the_end_last_if_nothing_tells_where_it_is():
    lines = ['7 openat(AT_FDCWD, "/log", O_RDWR|O_CREAT|O_APPEND, 0666) = 3 <0.000010>', '7 write(3, "1234567890", 10) = 10 <0.000010>', "7 lseek(3, 0, SEEK_SET) = 0 <0.000010>",
             "7 fork() = 8 <0.000010>", "7 read(3,  <unfinished ...>", "8 read(3,  <unfinished ...>", '7 <... read resumed>"890", 7) = 3 <0.000030>', '8 <... read resumed>"1234567", 7) = 7 <0.000030>']
    with Tmp() as tmp:
        assert order_of(tmp, lines)[-2:] == [(8, "7"), (7, "3")]


def test_who_is_behind_the_end_met_it_before_the_write_that_reached_him():
    """ar by `make -j`: one reads the archive that another cuts and writes anew."""
    lines = ['7 openat(AT_FDCWD, "/a", O_RDWR|O_CREAT|O_TRUNC, 0666) = 3 <0.000010>', '7 write(3, "x"..., 900) = 900 <0.000010>', "7 lseek(3, 800, SEEK_SET) = 800 <0.000010>",
             '8 openat(AT_FDCWD, "/a", O_WRONLY|O_TRUNC) = 3 <0.000010>', "7 read(3,  <unfinished ...>", '8 write(3, "x"..., 1000 <unfinished ...>', "8 <... write resumed>) = 1000 <0.000030>",
             '7 <... read resumed>"", 60) = 0 <0.000040>']
    with Tmp() as tmp:
        assert order_of(tmp, lines)[-2:] == [(7, "0"), (8, "1000")]
        # He is behind the end all the same.
        assert order_of(tmp, [line.replace("1000", "700") for line in lines])[-2:] == [(8, "700"), (7, "0")]


def test_who_met_an_end_that_nobody_told_met_it_before_a_write_that_goes_farther():
    """A program's ranks read at the same place what one of them begins to write behind it."""
    lines = ['7 openat(AT_FDCWD, "/a", O_RDWR) = 3 <0.000010>', '8 openat(AT_FDCWD, "/a", O_RDWR) = 3 <0.000010>', '7 pwrite64(3, "x"..., 30, 53 <unfinished ...>', "8 pread64(3,  <unfinished ...>",
             "7 <... pwrite64 resumed>) = 30 <0.000030>", '8 <... pread64 resumed>"", 30, 43) = 0 <0.000040>']
    with Tmp() as tmp:
        assert order_of(tmp, lines)[-2:] == [(8, "0"), (7, "30")]
        # It wrote what is before that.
        assert order_of(tmp, [line.replace(", 53", ", 10") for line in lines])[-2:] == [(7, "30"), (8, "0")]


def test_many_that_append_and_read_on_without_names_of_descriptors():
    if shutil.which("strace") is None:
        raise Skip("there is no strace")
    script = 'for k in 1 2 3 4; do (for i in $(seq 40); do echo "$k $i" >> log; tail -c 9 log > out$k; done) & done; wait'
    with Tmp() as tmp:
        for options in ([], ["-y"]):
            work, trace, root = (os.path.join(tmp, name + "".join(options)) for name in ("work", "t.strace", "root"))
            os.mkdir(work)
            os.mkdir(root)
            subprocess.run(["strace", "-f", "-ttt", "-T", *options, "-o", trace, "bash", "-c", script], cwd=work, check=True)
            report = feign("replay", trace, "--root", root, "--cwd", work, "--json").json()
            assert report["mismatched"] == 0, report["mismatches"]
            assert os.path.getsize(root + work + "/log") == os.path.getsize(work + "/log")


def test_failures_say_no_more_than_they_do():
    missing = "-1 ENOENT (No such file or directory)"
    for lines in (
            # Something above the first name: the second is not there.
            [f'unlink("/w/f") = {missing}', 'rename("/w/d/d", "/w/f") = -1 ENOTDIR (Not a directory)'],
            # The second name's form alone.
            [f'access("/w/a", F_OK) = {missing}', 'renameat2(AT_FDCWD, "/w/a", AT_FDCWD, "/w/.", RENAME_NOREPLACE) = -1 EEXIST (File exists)',
             'renameat2(AT_FDCWD, "/w/a", AT_FDCWD, "/w/d/..//", RENAME_NOREPLACE) = -1 EEXIST (File exists)'],
            # Up from a link that leads nowhere.
            ['symlink("l/x", "/w/l") = 0', 'open("/w/l/../f", O_RDWR|O_CREAT, 0644) = -1 ELOOP (Too many levels of symbolic links)'],
            ['symlink("l", "/w/l") = 0', 'symlink("x", "/w/m") = 0',
             'renameat2(AT_FDCWD, "/w/m", AT_FDCWD, "/w/l/../n", RENAME_EXCHANGE) = -1 ELOOP (Too many levels of symbolic links)'],
            # A link to what is no file's name, whether it is there or not.
            ['symlink("d/", "/w/l") = 0', 'open("/w/l", O_WRONLY|O_CREAT, 0644) = -1 EISDIR (Is a directory)', 'mkdir("/w/d", 0755) = 0'],
            # A name ends at a zero byte, as for the kernel.
            [r'open("/w/f\0x", O_RDWR|O_CREAT, 0644) = 3', r'openat(4</w/d\0d>, "g", O_RDWR|O_CREAT, 0644) = 5', 'unlink("/w/f") = 0', 'unlink("/w/d/g") = 0'],
            # A file that grows while it is copied to itself.
            ['open("/w/f", O_RDWR|O_CREAT, 0644) = 3', 'write(3, "x"..., 100) = 100', 'pread64(3, "", 9, 5135) = 0', "sendfile(3, 3, [10] => [7790], 7780) = 7780"]):
        with Tmp() as tmp:
            trace = os.path.join(tmp, "t.strace")
            with open(trace, "w", encoding="utf-8") as f:
                f.writelines(f"1 1700000000.{i:06} {line} <0.000001>\n" for i, line in enumerate(lines))
            os.mkdir(os.path.join(tmp, "root"))
            report = feign("replay", trace, "--root", os.path.join(tmp, "root"), "--json").json()
            assert report["mismatched"] == 0, (lines, report["mismatches"])


def test_a_name_is_new_though_its_directory_was_listed_many_times_before():
    """Each listing has a name that no call tells; the one after says that the file was not it."""
    def listing(size):
        return ['open("/d", O_RDONLY|O_DIRECTORY) = 3', f"getdents64(3, 0x1 /* n entries */, 32768) = {size}", "getdents64(3, 0x1 /* 0 entries */, 32768) = 0", "close(3) = 0"]
    for times in 1, 23, 24, 60:
        report, sizes = replayed([*listing(72) * times, 'open("/d/new", O_WRONLY|O_CREAT, 0644) = 3', "close(3) = 0", *listing(96)])
        assert report["mismatched"] == 0, (times, report["mismatches"])
        assert {"/d/new", "/d/~0~~"} <= set(sizes), (times, sizes)
        # Those that nothing was listed after had been there.
        report, sizes = replayed([*listing(72) * times, 'open("/d/old", O_WRONLY|O_CREAT, 0644) = 3', "close(3) = 0"])
        assert report["mismatched"] == 0 and "/d/~0~~" not in sizes, (times, sizes)
    left = [listing(72)[0], listing(72)[1], listing(72)[3]]   # before its end
    report, sizes = replayed([*listing(72) * 23, *left, *listing(72) * 9, 'open("/d/new", O_WRONLY|O_CREAT, 0644) = 3', "close(3) = 0", *listing(96)])
    assert report["mismatched"] == 0 and {"/d/new", "/d/~0~~"} <= set(sizes), (report["mismatches"], sizes)


def test_what_a_descriptor_of_a_link_says_is_where_it_leads():
    """An open had told that it leads there (-y), not in which words."""
    for says in '4</u/it>, ""', 'AT_FDCWD</d>, "/u/it"':
        report, _ = replayed(['1 openat(AT_FDCWD</d>, "/u/it", O_RDONLY|O_PATH|O_DIRECTORY) = 4</u/it-14>', "1 close(4</u/it-14>) = 0",
                                  '1 openat(AT_FDCWD</d>, "/u/it", O_RDONLY|O_NOFOLLOW|O_PATH) = 4</u/it>', f'1 readlinkat({says}, "it-14", 1024) = 5'])
        assert report["mismatched"] == 0, (says, report["mismatches"])


def test_locks_of_who_was_killed_are_in_nobodys_way():
    """3 was refused what 4 had, before 4 gave it up, and not what 2 had had, whose end is no call."""
    def lock(kind):
        return f"fcntl(5, F_SETLK, {{l_type=F_{kind}, l_whence=SEEK_SET, l_start=124, l_len=1}}"
    opens = [f"1 10.{i} fork() = {i} <0.000001>" for i in (2, 3, 4)] + [f'{i} 11.{i} open("/f", O_RDWR|O_CREAT, 0644) = 5 <0.000001>' for i in (2, 3, 4)]
    meet = [f"4 14.0 {lock('WRLCK')}) = 0 <0.000001>", f"3 14.500020 {lock('WRLCK')} <unfinished ...>", f"4 14.500064 {lock('UNLCK')} <unfinished ...>",
            "3 14.500089 <... fcntl resumed>) = -1 EAGAIN (Resource temporarily unavailable) <0.000050>", "4 14.500121 <... fcntl resumed>) = 0 <0.000044>"]
    thread = ["2 11.9 clone(child_stack=0x1, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD) = 9 <0.000001>"]
    got = [f"2 12.0 {lock('RDLCK')}) = 0 <0.000001>"]
    for lines in (got + ["2 13.0 +++ killed by SIGKILL +++"], got + ["2 13.0 exit_group(0) = ?", "2 13.1 +++ exited with 0 +++"],
                  thread + got + ["9 13.0 +++ killed by SIGKILL +++", "2 13.0 +++ killed by SIGKILL +++"]):
        report, _ = replayed(opens + lines + meet)
        assert report["mismatched"] == 0, (lines, report["mismatches"])
    # A thread that ends alone gives up nothing.
    refused = f"4 14.0 {lock('WRLCK')}) = -1 EAGAIN (Resource temporarily unavailable) <0.000001>"
    report, _ = replayed(opens + thread + got + ["9 13.0 exit(0) = ?", "9 13.0 +++ exited with 0 +++", refused])
    assert report["mismatched"] == 0, report["mismatches"]


def test_a_descriptor_for_names_alone_gives_up_no_locks():
    """Those that it leaves go with the next descriptor."""
    lock = "fcntl(3, F_SETLK, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=1}) = "
    r, _ = replayed(['1 open("/f", O_RDWR|O_CREAT, 0600) = 3', "1 dup(3) = 4", "1 fork() = 2", f"1 {lock}0", '1 open("/f", O_RDONLY|O_PATH) = 6', "1 close(6) = 0",
                     f"2 {lock}-1 EAGAIN (Resource temporarily unavailable)", "1 close_range(4, 4, 0) = 0", f"2 {lock}0"])
    assert r["mismatched"] == 0, r["mismatches"]


def test_locks_that_close_range_and_exec_give_up():
    """With a descriptor that is not the last of its open file, too; not those of others, nor by one that stays open."""
    def lock(pid, fd, result):
        return f"{pid} fcntl({fd}, F_SETLK, {{l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=1}}) = {result}"
    begins = ['1 open("/f", O_RDWR|O_CREAT, 0600) = 3', "1 dup(3) = 4", "1 dup(3) = 5", "1 fcntl(4, F_SETFD, FD_CLOEXEC) = 0", "1 fork() = 2", lock(1, 3, 0)]
    refused, exec = "-1 EAGAIN (Resource temporarily unavailable)", 'execve("/bin/x", ["x"], 0x1 /* 1 var */) = 0'
    for closes, ends in (("1 close_range(4, 4, 0) = 0", True), (f"1 {exec}", True), ("1 close_range(4, 4, CLOSE_RANGE_CLOEXEC) = 0", False), ("2 close_range(4, 4, 0) = 0", False), (f"2 {exec}", False)):
        for order in "trace", "depend":
            report, _ = replayed([*begins, lock(2, 5, refused), closes, lock(2, 5, 0 if ends else refused)], "--order", order)
            assert (report["mismatched"], report["injected"]) == (0, int(ends)), (closes, order, report["mismatches"])


def test_a_fifo_that_was_unlinked_is_not_what_has_its_name():
    """/proc/self/fd/N leads to it still: what is asked and opened there makes no name, and the file that is made by that name is one."""
    for ask in ('stat("/proc/self/fd/3", {st_mode=S_IFIFO|0640, st_size=0, ...}) = 0', 'chmod("/dev/fd/3", 0600) = 0', 'openat(AT_FDCWD, "/proc/self/fd/3", O_RDONLY|O_NONBLOCK) = 4'):
        report, _ = replayed(['mknod("/f", S_IFIFO|0644) = 0', 'openat(AT_FDCWD, "/f", O_RDONLY|O_NONBLOCK) = 3', 'unlink("/f") = 0', ask,
                              'openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0644) = 5', ask, 'pwrite64(5, "x", 1, 0) = 1', 'mknod("/f", S_IFIFO|0644) = -1 EEXIST (File exists)'])
        assert report["mismatched"] == 0, (ask, report["mismatches"])


def test_who_opened_a_fifo_found_it_when_it_began():
    """O_CREAT makes no file in its place, though the other end unlinks or renames it before the open is over."""
    forks = ["1 1.000001 fork() = 2 <0.000001>", "1 1.000002 fork() = 3 <0.000001>"]
    makes = ['1 1.1 mknod("/f", S_IFIFO|0600) = 0 <0.000001>', '1 1.1 link("/f", "/g") = 0 <0.000001>', '1 1.2 rename("/g", "/h") = 0 <0.000001>']
    for name in ("/f", "/h"):
        for goes in (f'unlink("{name}")', f'rename("{name}", "/other")'):
            report, _ = replayed(forks + makes + [
                f'2 1.844678 openat(AT_FDCWD, "{name}", O_WRONLY|O_CREAT|O_TRUNC, 0644 <unfinished ...>', f'3 1.858386 openat(AT_FDCWD, "{name}", O_RDONLY) = 3 <0.000008>',
                f"3 1.860236 {goes} = 0 <0.000012>", "2 1.860414 <... openat resumed>) = 3 <0.015735>", f'1 1.883340 lstat("{name}", 0x7f) = -1 ENOENT (No such file or directory) <0.000003>'])
            assert report["mismatched"] == 0, (name, goes, report["mismatches"])
    # Where there is a file by then, it is that one.
    report, _ = replayed(forks + makes[:1] + [
        '1 1.2 unlink("/f") = 0 <0.000001>', '1 1.3 openat(AT_FDCWD, "/f", O_RDONLY|O_CREAT, 0644) = 3 <0.000001>', '2 1.5 openat(AT_FDCWD, "/f", O_WRONLY|O_CREAT, 0644 <unfinished ...>',
        '3 1.6 unlink("/f") = 0 <0.000001>', "2 1.7 <... openat resumed>) = 3 <0.200000>", '1 1.8 lstat("/f", {st_mode=S_IFREG|0644, st_size=0, ...}) = 0 <0.000003>'])
    assert report["mismatched"] == 0, report["mismatches"]


def test_times_that_stay_as_they_are_say_nothing_of_the_name():
    """The kernel does not look whether it is there."""
    report, left = replayed(['utimensat(AT_FDCWD, "/f", [UTIME_OMIT, UTIME_OMIT], 0) = 0', 'utimensat(AT_FDCWD, "/d/f", [UTIME_OMIT, UTIME_OMIT], 0) = 0', 'unlink("/f") = -1 ENOENT (No such file or directory)',
                             'mkdir("/d", 0700) = 0', 'utimensat(AT_FDCWD, "/g", [UTIME_OMIT, UTIME_NOW], 0) = 0'])
    assert report["mismatched"] == 0 and left == {"/d": None, "/g": 0}, (report["mismatches"], left)


def test_an_open_that_refuses_a_link_is_made():
    """Whatever its name leads up from: the link is at its end."""
    report, _ = replayed(['mkdir("/w", 0755) = 0', 'mkdir("/w/d", 0755) = 0', 'symlink("x", "/w/m") = 0',
                          'open("/w/d/../m", O_RDONLY|O_NOFOLLOW) = -1 ELOOP (Too many levels of symbolic links)'])
    assert (report["mismatched"], report["ops"]["open"]["matched"]) == (0, 1), report


def test_what_waits_for_a_call_that_never_returns_costs_no_more_at_the_end():
    """A limit of processor time, that is no matter: before, it took a thousand times as much."""
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.strace")
        with open(trace, "w", encoding="utf-8") as f:
            f.write("10 1700000000.000000 close(3 <unfinished ...>\n")
            f.writelines(f"11 1700000001.{i:06} close(4) = -1 EBADF (Bad file descriptor) <0.000001>\n" for i in range(200000))
        done = subprocess.run([FEIGN, "info", trace], stdout=subprocess.DEVNULL, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (10, 10)))
        assert done.returncode == 0, done.returncode


def test_what_processes_did_that_were_not_traced():
    missing = "-1 ENOENT (No such file or directory)"
    waits = ["vfork() = 8", "wait4(8, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 8"]
    regular, directory = "{st_mode=S_IFREG|0600, st_size=%d, ...}", "{st_mode=S_IFDIR|0700, st_size=40, ...}"
    for before, after, others in (
            # made, with what it is in
            ([f'stat("/w/f", 0x7f) = {missing}'], ['stat("/w/f", %s) = 0' % (regular % 7)], ["mknod", "truncate"]),
            ([f'stat("/w/d", 0x7f) = {missing}'], ['stat("/w/d/e", %s) = 0' % directory], ["mkdir", "mkdir"]),
            ([f'stat("/w/d", 0x7f) = {missing}'], ['open("/w/d/f", O_WRONLY|O_CREAT, 0644) = 3'], ["mkdir"]),
            ([f'lstat("/w/l", 0x7f) = {missing}'], ['readlink("/w/l", "to/it", 99) = 5'], ["symlink"]),
            ([f'lstat("/w/l", 0x7f) = {missing}'], ['lstat("/w/l", {st_mode=S_IFLNK|0777, st_size=18446744073709551615, ...}) = 0'], ["symlink"]),
            ([f'access("/w/f", F_OK) = {missing}'], ['mkdir("/w/f", 0777) = -1 EEXIST (File exists)'], ["mknod"]),
            # removed, with what is in it
            (['open("/w/f", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3'], [f'unlink("/w/f") = {missing}'], ["unlink"]),
            (['mkdir("/w/d", 0755) = 0', 'mkdir("/w/d/e", 0755) = 0', 'symlink("x", "/w/d/e/l") = 0'], ['mkdir("/w/d", 0755) = 0'], ["unlink", "rmdir", "rmdir"]),
            (['mkdir("/w/d", 0755) = 0', 'mkdir("/w/d/e", 0755) = 0'], ['rmdir("/w/d") = 0'], ["rmdir"]),
            (['mkdir("/w/d", 0755) = 0', 'open("/w/d", O_RDONLY|O_DIRECTORY) = 3'], ['mkdir("/w/d", 0755) = 0', f'openat(3, "f", O_WRONLY|O_CREAT, 0600) = {missing}', 'rmdir("/w/d") = 0'], ["rmdir"]),
            # another thing by that name, but not what a link leads to that no call tells
            (['lstat("/w/l", {st_mode=S_IFLNK|0777, st_size=3, ...}) = 0'], [f'lstat("/w/l/x", 0x7f) = {missing}', f'lstat("/w/l/y", {regular % 0}) = 0'], []),
            (['symlink("x", "/w/l") = 0'], ['readlink("/w/l", "yy", 99) = 2'], ["unlink", "symlink"]),
            (['mkdir("/w/x", 0755) = 0'], ['open("/w/x", O_WRONLY) = 3'], ["rmdir", "mknod"]),
            (['open("/w/x", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3'], ['open("/w/x/y", O_RDWR|O_CREAT, 0644) = 4'], ["unlink", "mkdir"]),
            # a FIFO and a socket
            ([f'stat("/w/p", 0x7f) = {missing}'], ['stat("/w/p", {st_mode=S_IFIFO|0644, st_size=0, ...}) = 0', 'open("/w/p", O_WRONLY|O_NONBLOCK) = -1 ENXIO (No such device or address)'], ["mknod"]),
            ([f'stat("/w/s", 0x7f) = {missing}'], ['stat("/w/s", {st_mode=S_IFSOCK|0777, st_size=0, ...}) = 0', f'stat("/w/s", {directory}) = 0'], ["mknod", "unlink", "mkdir"]),
            (['mkdir("/w/s", 0755) = 0'], ['lstat("/w/s", {st_mode=S_IFSOCK|0777, st_size=0, ...}) = 0', f'lstat("/w/s", {regular % 0}) = 0'], ["rmdir", "mknod", "unlink", "mknod"]),
            # longer and shorter
            (['open("/w/f", O_RDWR|O_CREAT|O_TRUNC, 0644) = 3', 'write(3, "abc", 3) = 3'], ['read(3, "defg", 9) = 4', 'read(3, "", 9) = 0', f"fstat(3, {regular % 5}) = 0"], ["truncate", "truncate"]),
            # not in a directory that was listed, until a call finds it
            (['open("/w", O_RDONLY|O_DIRECTORY) = 3', "getdents64(3, 0x7f /* 2 entries */, 32768) = 48", "getdents64(3, 0x7f /* 0 entries */, 32768) = 0", "close(3) = 0"],
             ['open("/w/f", O_RDONLY) = 3'], ["mknod"])):
        with Tmp() as tmp:
            trace, root, out = (os.path.join(tmp, name) for name in ("t.strace", "root", "out.txt"))
            for process in ("7 ", ""):  # -f, whose other processes and calls are in the trace, and not
                seen = ["8 exit_group(0) = ?", "8 +++ exited with 0 +++"] if process else []
                with open(trace, "w", encoding="utf-8") as f:
                    f.writelines(line + "\n" for line in ['7 mkdir("/q", 0755) = 0'] * bool(process) + [process + before[0], *(process + line for line in before[1:]), process + waits[0], *seen, *(process + line for line in waits[1:] + after)])
                r = feign("convert", "-q", trace, out)
                with open(out, encoding="utf-8") as f:
                    made = [re.search(r"\] (\w+)\(", line).group(1) for line in f if line.rstrip().endswith("[injected]")]
                assert made == ([] if process else others), (before, after, made)
            assert feign("info", trace, "--json").json()["injected"] == len(others)
            os.mkdir(root)
            r = feign("replay", trace, "--root", root, "--json").json()
            assert r["mismatched"] == 0 and any("not in the trace" in note for note in r["notes"]), (before, after, r["mismatches"], r["notes"])


def test_mounts_of_a_process_tell_nothing_of_others():
    """They hide what is there (bwrap, containers): a replay removed it, once a process had not been traced."""
    missing = "-1 ENOENT (No such file or directory)"
    before = ['7 mkdir("/w", 0755) = 0', '7 mkdir("/w/d", 0755) = 0', '7 open("/w/d/f", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3', '7 write(3, "abc", 3) = 3', '7 mkdir("/w/e", 0755) = 0', "7 vfork() = 8",
              "7 wait4(8, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 8"]
    for own in (["7 clone(child_stack=NULL, flags=CLONE_NEWNS|SIGCHLD) = 9"], ["7 fork() = 9", "9 unshare(CLONE_NEWNS) = 0"], ["7 fork() = 9", "9 setns(5, CLONE_NEWNS) = 0"]):
        # What it starts has the same mounts; who has none of its own tells as before.
        _, left = replayed(before + own + [f'9 stat("/w/d", 0x7f) = {missing}', "9 fork() = 10", f'10 open("/w/d/f", O_RDONLY) = {missing}',
                                           '10 open("/w", O_RDONLY|O_DIRECTORY) = 4', "10 getdents64(4, 0x7f /* 2 entries */, 32768) = 48", f'7 rmdir("/w/e") = {missing}'])
        assert left == {"/w": None, "/w/d": None, "/w/d/f": 3}, (own, left)


def test_names_that_calls_changed_which_were_not_traced():
    """strace -e trace=open,read,write,close: what must have been renamed, removed or made."""
    missing, lock = "-1 ENOENT (No such file or directory)", 'open("/w/lock", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3'
    for lines, others in (
            ([lock, "close(3) = 0", lock], ["unlink"]),
            ([f'open("/w/f", O_RDONLY) = {missing}', lock, 'write(3, "abc", 3) = 3', "close(3) = 0", 'open("/w/f", O_RDONLY) = 3', 'read(3, "abc", 9) = 3'], ["mknod", "truncate"]),
            ([f'open("/w/d/f", O_WRONLY|O_CREAT, 0644) = {missing}', 'open("/w/d/g", O_WRONLY|O_CREAT, 0644) = 3'], ["mkdir"]),
            ([lock, "exit_group(0) = ?", "+++ exited with 0 +++", f'8 open("/w/lock", O_RDONLY) = {missing}'], ["unlink"]),
            ([lock, f'8 open("/w/lock", O_RDONLY) = {missing}'], []),  # the order, perhaps
            ([lock.replace("EXCL", "NOFOLLOW"), f'stat("/w/lock", 0x7f) = {missing}', f'stat("/w/lock", 0x7f) = {missing}'], ["unlink"]),  # sqlite's
            ([lock.replace("EXCL", "TRUNC"), f'lstat("/w/lock", 0x7f) = {missing}'], ["unlink"]),
            ([f'lstat("/w/f", 0x7f) = {missing}', 'stat("/w/f", {st_mode=S_IFREG|0644, st_size=3, ...}) = 0'], ["mknod", "truncate"]),
            (['lstat("/w/f", {st_mode=S_IFLNK|0777, st_size=3, ...}) = 0', f'stat("/w/f", 0x7f) = {missing}', 'lstat("/w/f", {st_mode=S_IFLNK|0777, st_size=3, ...}) = 0'], []),
            ([lock.replace("EXCL", "PATH|O_NOFOLLOW"), f'stat("/w/lock", 0x7f) = {missing}'], []),  # a link, perhaps
            (['unlink("/w/x") = 0', lock, f'open("/w/lock", O_RDONLY) = {missing}'], []),
            # A mount hides it, as bwrap's do.
            *(([make, lock, f'{then}open("/w/lock", O_RDONLY) = {missing}'], []) for make, then in (
                ("unshare(CLONE_NEWNS) = 0", ""), ("setns(5, CLONE_NEWNS) = 0", ""), ("clone(child_stack=NULL, flags=CLONE_NEWNS|SIGCHLD) = 8", "8 ")))):
        with Tmp() as tmp:
            trace, root, out = (os.path.join(tmp, name) for name in ("t.strace", "root", "out.txt"))
            with open(trace, "w", encoding="utf-8") as f:
                f.writelines(line + "\n" if line[0] == "8" else f"7 {line}\n" for line in lines)
            assert feign("convert", "-q", trace, out).status == 0
            with open(out, encoding="utf-8") as f:
                made = [re.search(r"\] (\w+)\(", line).group(1) for line in f if line.rstrip().endswith("[injected]")]
            assert made == others, (lines, made)
            os.mkdir(root)
            r = feign("replay", trace, "--root", root, "--json").json()
            assert not others or r["mismatched"] == 0 and any("found otherwise" in note for note in r["notes"]), (lines, r["mismatches"], r["notes"])


def test_opens_and_calls_in_a_given_directory_do_not_tell_that_names_are_told():
    """strace -e trace=desc has unlinkat and renameat2, which are given a descriptor, but no unlink and no rename."""
    made = ['openat(AT_FDCWD, "/w/lock", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3', "close(3) = 0"]
    lines = ['mkdirat(AT_FDCWD, "/w", 0755) = 0', *made, 'unlinkat(AT_FDCWD, "/w/x", 0) = -1 ENOENT (No such file or directory)', *made]
    for more, others in ((lines, 1), (['access("/f", R_OK) = 0', *lines], 0), (['execve("/bin/sh", ["sh"], 0x1 /* 1 var */) = 0', *lines], 0),
                         (['open("/f", O_RDONLY) = 3', "mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 3, 0) = 0x7f0000000000", "close(3) = 0", *lines], 1), (['mkdir("/d", 0755) = 0', *lines], 0)):
        assert "\n".join(text_of(more)[0]).count("[injected]") == others, more


def test_both_names_are_in_the_working_directory():
    """Of the first call that is given relative names, too: strace mv."""
    given, first = ("--cwd", "/w"), 'rename{0}({1}"a", {1}"b"{2}) = 0'
    for lines in ([first.format("", "", "")], [first.format("at", "AT_FDCWD, ", "")], [first.format("at2", "AT_FDCWD, ", ", RENAME_NOREPLACE")], [first.format("at2", "-100, ", ", 0x1")],
                  ['linkat(AT_FDCWD, "a", AT_FDCWD, "b", 0) = 0']):
        assert re.search('"/w/a".*"/w/b"', calls(lines, *given)[0]), calls(lines, *given)
        assert "--cwd" in notes_of(lines), lines


def test_a_wait_without_its_duration_is_over_after_whoever_is_waited_for():
    """strace -ff -ttt: its line tells when it began. It is over before the process's next line."""
    lines = {"t.100": ["1700000000.000100 clone(child_stack=NULL, flags=SIGCHLD) = 101", "1700000000.000200 wait4(101, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 101",
                       "1700000000.000900 --- SIGCHLD {si_signo=SIGCHLD, si_pid=101} ---", "1700000000.001900 fsync(3) = -1 EBADF (Bad file descriptor)"],
             "t.101": ["1700000000.000300 " + OPEN, "1700000000.000400 exit_group(0) = ?", "1700000000.000500 +++ exited with 0 +++"]}
    want = ["clone", "openat", "exit_group", "wait4", "fsync"]
    same([line.split("(")[0] for line in calls(lines, name="t")], want)
    with Tmp() as tmp:
        for file, text in lines.items():
            with open(os.path.join(tmp, file), "w", encoding="utf-8") as f:
                f.writelines(line + "\n" for line in text)
        assert "not in the trace" not in str(feign("info", os.path.join(tmp, "t"), "--json").json()["notes"])


WAITS_FOR_OTHERS = ["vfork() = 8", "wait4(8, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 8"]


def test_who_has_a_file_by_another_number_opened_it():
    """strace -P FILE shows no open of it by another name: writers have it as standard output, readers by what their open returned."""
    for fd in 3, 0:
        lines = ['7 write(1</w/f>, "abcdef", 6) = 6', "7 close(1</w/f>) = 0", f"7 {OVER}", f'8 read({fd}</w/f>, "abcdef", 9) = 6', f"8 close({fd}</w/f>) = 0", f"8 {OVER}"]
        assert replayed(lines)[1]["/w/f"] == 6, fd
    lines = ['7 write(1</w/f>, "abc", 3) = 3', f"7 {OVER}", '8 write(1</w/f>, "def", 3) = 3', f"8 {OVER}"]
    assert replayed(lines)[1]["/w/f"] == 6


def test_files_that_were_open_before_are_told_to_be_unknown():
    """strace -p, without -y; standard input may be a file in any trace."""
    file = "{st_mode=S_IFREG|0600, st_size=3, ...}"
    for lines, notes in (([f"fstat(5, {file}) = 0"], 1), (['read(5, "abc", 9) = 3', "lseek(5, 0, SEEK_SET) = 0"], 1), (["lseek(5, 0, SEEK_SET) = -1 ESPIPE (Illegal seek)"], 0),
                         ([f"fstat(0, {file}) = 0"], 0), ([f"fstat(5</f>, {file}) = 0"], 0), (['read(5, "abc", 9) = 3'], 0), ([OPEN, f"fstat(3, {file}) = 0"], 0), (["pipe([5, 6]) = 0", "fstat(5, {st_mode=S_IFIFO|0600, st_size=0, ...}) = 0"], 0)):
        assert notes_of(["7 " + line for line in lines]).count("is not known, and such calls are skipped") == notes, lines


def beside_others(lines):
    """The replay of a program that works in /w/d and has waited for a process that is not in the trace: its report, and what is there afterwards."""
    with Tmp() as tmp:
        trace, root = os.path.join(tmp, "t.strace"), os.path.join(tmp, "root")
        with open(trace, "w", encoding="utf-8") as f:
            f.writelines(line + "\n" for line in ['mkdir("/w/d", 0755) = 0', *WAITS_FOR_OTHERS, *lines])
        os.mkdir(root)
        report = feign("replay", trace, "--root", root, "--json").json()
        return report, sorted(os.listdir(root + "/w/d")) if os.path.isdir(root + "/w/d") else None


def test_a_listing_shows_what_processes_made_that_were_not_traced():
    """Under names of their own, until a call tells the name; names of up to four letters have entries of 24 bytes, of up to twelve 32."""
    def listing(*result):
        return ['open("/w/d", O_RDONLY|O_DIRECTORY) = 3', *(f"getdents64(3, 0x7f, 32768) = {n}" for n in (*result, 0)), "close(3) = 0"]
    for lines, left in (
            ([*listing(48 + 32 + 24), 'stat("/w/d/f", {st_mode=S_IFREG|0600, st_size=7, ...}) = 0', 'mkdir("/w/d/abcdefgh", 0755) = -1 EEXIST (File exists)', *listing(48 + 32 + 24)], ["abcdefgh", "f"]),
            ([*listing(48 + 24), 'open("/w/d/f", O_RDONLY) = 3', "close(3) = 0", 'open("/w/d/g", O_WRONLY|O_CREAT, 0600) = 3', "close(3) = 0", *listing(48 + 48)], ["f", "g"]),
            ([*listing(48 + 48), *WAITS_FOR_OTHERS, *listing(48 + 24), *listing(48), 'rmdir("/w/d") = 0'], None),
            ([*listing(48 + 24), 'rename("/w/d", "/w/e") = 0', 'unlink("/w/e/f") = 0', 'rename("/w/e", "/w/d") = 0', *listing(48)], []),
            ([*listing(48 + 320), 'stat("/w/d", {st_mode=S_IFDIR|0755, st_size=4096, ...}) = 0', *WAITS_FOR_OTHERS, 'rmdir("/w/d") = 0'], None),
            ([*listing(48 + 1000 * 32), *WAITS_FOR_OTHERS, *listing(48)], []),
            (['mkdir("/w/d/e", 0755) = 0', 'open("/w/d/e/f", O_WRONLY|O_CREAT, 0600) = 3', "close(3) = 0", *WAITS_FOR_OTHERS, *listing(48), *listing(48 + 24)], ["~0~~"])):
        r, there = beside_others(lines)
        assert r["mismatched"] == 0 and there == left, (lines, r["mismatches"], there)


def test_what_processes_that_were_not_traced_did_not_do():
    """Who lists a part of a directory, or removes what he lists, shows nothing of others; nor does what a disk or FIFO is."""
    def made(*names):
        return [line for name in names for line in ('open("/w/d/%s", O_WRONLY|O_CREAT, 0600) = 3' % name, "close(3) = 0")]
    def listing(size, *calls):
        return ['open("/w/d", O_RDONLY|O_DIRECTORY) = 3', *(c if isinstance(c, str) else f"getdents64(3, 0x7f, {size}) = {c}" for c in calls), "close(3) = 0"]
    long = "abcdefghijklmnopqrstuvwx"
    for lines, left in (
            ([*made("a", "b", "c", "d"), *listing(100, 96, 'unlink("/w/d/a") = 0', 'unlink("/w/d/b") = 0', 48, 0)], ["c", "d"]),
            ([*made("a", "b", "c"), *listing(32768, 120, "lseek(3, 3, SEEK_SET) = 3", 48, 0)], ["a", "b", "c"]),
            ([*made("a"), *listing(32768, 72, 0, 'open("/w/d/%s", O_WRONLY|O_CREAT, 0600) = 4' % long, "close(4) = 0", 48, 0)], ["a", long]),
            ([*made("a"), *listing(9223372036854775807, 9223372036854775800)], ["a"]),
            ([*made("f"), 'unlink("/w/d/f/a/b") = -1 ENOTDIR (Not a directory)'], ["f"]),
            (['open("/w/d/p", O_WRONLY|O_CREAT|O_TRUNC, 0600) = 3', 'write(3, "x", 1) = 1', "close(3) = 0",
              'stat("/w/d/p", {st_mode=S_IFIFO|0600, st_size=0, ...}) = 0'], ["p"]),
            (['open("/dev/sda", O_RDWR) = 3', "lseek(3, 0, SEEK_END) = 1000000", "close(3) = 0", 'stat("/dev/sda", {st_mode=S_IFBLK|0660, st_rdev=makedev(8, 0), ...}) = 0'], [])):
        r, there = beside_others(lines)
        assert r["injected"] == 0 and there == left, (lines, r["injected"], there)


def test_a_descriptor_for_names_alone_cuts_and_makes_nothing():
    """Whatever else is asked for with O_PATH."""
    r, sizes = replayed(['1 1.1 openat(AT_FDCWD</w>, "f", O_RDWR|O_CREAT, 0644) = 3</w/f>', '1 1.2 write(3</w/f>, "hello", 5) = 5',
                         '1 1.3 openat(AT_FDCWD</w>, "f", O_RDWR|O_PATH|O_TRUNC) = 4</w/f>',
                         '1 1.4 newfstatat(3</w/f>, "", {st_mode=S_IFREG|0644, st_size=5, ...}, AT_EMPTY_PATH) = 0', '1 1.5 pread64(3</w/f>, "hello", 10, 0) = 5',
                         '1 1.6 openat(AT_FDCWD</w>, "g", O_PATH|O_CREAT, 0600) = -1 ENOENT (No such file or directory)'])
    assert r["mismatched"] == r["injected"] == 0 and sizes == {"/w": None, "/w/f": 5}, (r["mismatches"], r["injected"], sizes)


def test_what_a_rename_does_not_find_may_be_what_it_would_move():
    """In a trace of whose calls on names all are given a directory (Go's), a directory that it is in was taken to be gone."""
    lines = ['mkdirat(AT_FDCWD, "/w/d", 0755) = 0', 'openat(AT_FDCWD, "/w/d/f", O_WRONLY|O_CREAT, 0600) = 3',
             'renameat(AT_FDCWD, "/w/d/g", AT_FDCWD, "/w/d/h") = -1 ENOENT (No such file or directory)',
             'linkat(AT_FDCWD, "/w/d/g", AT_FDCWD, "/w/d/h", 0) = -1 ENOENT (No such file or directory)',
             'symlinkat("", AT_FDCWD, "/w/d/l") = -1 ENOENT (No such file or directory)']
    assert "found otherwise" not in notes_of(lines), notes_of(lines)


def test_names_of_each_process_of_its_own_tell_nothing_of_others():
    """What /proc/self/fd/3 is to one process, another may lack."""
    at = lambda *lines: [f"1700000000.{n:06d} {line}" for n, line in lines]
    named = 'linkat(AT_FDCWD, "/proc/self/fd/3", AT_FDCWD, "/d/b", AT_SYMLINK_FOLLOW) = 0 <0.000010>'
    files = {"t.7": at((100, 'mkdir("/d", 0700) = 0 <0.000010>'), (130, "fork() = 8 <0.000010>"), (200, 'open("/proc/self/fd/3", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000010>'),
                       (400, 'unlink("/d/b/x") = -1 ENOTDIR (Not a directory) <0.000010>')),
             "t.8": at((250, 'openat(AT_FDCWD, "/d", O_RDWR|O_TMPFILE, 0600) = 3 <0.000010>'), (300, named), (900, "fsync(3) = 0 <0.000010>"))}
    lines, _ = text_of(files, name="t")
    assert [name for name in re.findall(r"\] (\w+)", "\n".join(lines)) if "link" in name] == ["linkat", "unlink"], lines


def test_a_name_that_goes_back_over_what_is_missing_tells_nothing_of_the_directory():
    at = lambda *lines: [f"1700000000.{n:06d} {line}" for n, line in lines]
    missing = ' = -1 ENOENT (No such file or directory) <0.000010>'
    files = {"t.7": at((100, 'mkdir("/w", 0700) = 0 <0.000010>'), (120, 'chdir("/w") = 0 <0.000010>'), (130, "fork() = 8 <0.000010>"), (200, 'symlink("a", "./d/../a")' + missing),
                       (400, 'unlink("/w/b/x") = -1 ENOTDIR (Not a directory) <0.000010>')),
             "t.8": at((250, "fsync(1) = 0 <0.000010>"), (300, 'open("b", O_RDWR|O_CREAT, 0600) = 3 <0.000010>'), (900, "fsync(3) = 0 <0.000010>"))}
    lines, _ = text_of(files, name="t")
    assert [name for name in re.findall(r"\] (\w+)", "\n".join(lines)) if name in ("open", "unlink")] == ["open", "unlink"], lines


def test_what_is_found_by_who_has_a_number_for_the_second_time():
    """Where the trace lacks a process."""
    def again(t):
        return [f"7 {t}1 fork() = 9", f'9 {t}2 stat("/w/f", {{st_mode=S_IFREG|0644, st_size=0, ...}}) = 0', f"9 {t}3 exit_group(0) = ?", f"9 {t}4 +++ exited with 0 +++",
                f"7 {t}5 wait4(9, [{{WIFEXITED(s) && WEXITSTATUS(s) == 0}}], 0, NULL) = 9"]
    r, sizes = replayed(['7 1.1 mkdir("/w", 0755) = 0', '7 1.2 open("/w/f", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3', "7 1.3 vfork() = 8",
                         "7 1.4 wait4(8, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 8", *again("2."), *again("3."), *again("4.")])
    assert r["mismatched"] == 0 and sizes == {"/w": None, "/w/f": 0}, (r["mismatches"], sizes)


def test_what_threads_call_until_exit_group_ends_them_comes_before_it():
    """It closes what they are at. What other processes call meanwhile stays where it was."""
    lines, _ = text_of(['7 1.0 openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0600) = 3', "7 1.1 clone(child_stack=0x7, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD) = 8",
                        "7 1.2 fork() = 9", "7 1.3 exit_group(0 <unfinished ...>", '8 1.4 write(3, "x", 1) = 1', '8 1.5 write(3, "y", 1 <unfinished ...>', "9 1.6 fsync(3) = 0",
                        "8 1.7 <... write resumed>) = 1", "8 1.8 close(3 <unfinished ...>", "9 1.9 fdatasync(3) = 0", "8 2.0 <... close resumed>) = 0",
                        '8 2.1 write(1, "z", 1 <unfinished ...>', "9 2.2 fsync(3) = 0", "8 2.3 <... write resumed>) = ?", "7 2.4 <... exit_group resumed>) = ?",
                        "8 2.5 +++ exited with 0 +++", "7 2.6 +++ exited with 0 +++"])
    order = [re.search(r"/(\d)\] (\w+)\((fd=#\d+)?", line).groups()[:2] for line in lines]
    assert order == [("7", "openat"), ("7", "clone"), ("7", "fork"), ("8", "write"), ("9", "fsync"), ("8", "write"), ("8", "close"), ("7", "exit_group"), ("9", "fdatasync"), ("9", "fsync")], order
    # Nothing else is known of the process by then; both say that they end all; nobody says that they have.
    lines, _ = text_of(["7 1.0 clone(child_stack=0x7, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD) = 8", "8 1.1 exit_group(0 <unfinished ...>",
                        "7 1.2 exit_group(0 <unfinished ...>", "5 1.3 exit_group(0 <unfinished ...>", '7 1.4 chdir("/")   = 0', '5 1.5 chdir("/") = 0', '8 1.6 chdir("/") = 0'])
    assert [re.search(r"/(\d)\] (\w+)", line).groups() for line in lines] == [
        ("7", "clone"), ("7", "exit"), ("5", "exit_group"), ("7", "chdir"), ("5", "chdir"), ("8", "chdir"), ("8", "exit_group")], lines


def test_what_another_threads_exit_group_or_exec_ended_has_no_result():
    """strace shows what the kernel told it of another stop: that call's number, its result, or that call."""
    shared = "clone(child_stack=0x7, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD)"
    begun = ['7 openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0600) = 3', *(f"7 {shared} = {number}" for number in (8, 9)), '8 pwrite64(3, "x", 1, 0 <unfinished ...>', "9 fstat(3,  <unfinished ...>"]
    for last in 'exit_group(0 <unfinished ...>', 'execve("/bin/true", ["true"], 0x7 /* 35 vars */ <unfinished ...>':
        for first, second in ("231", "231"), ("2", "1"):
            trace = [*begun, "7 " + last, f"8 <... pwrite64 resumed>) = {first}", f"9 <... fstat resumed>{{st_mode=S_IFREG|0644, st_size=0, ...}}) = {second}"]
            got = calls([*trace, "8 +++ exited with 0 +++", "9 +++ exited with 0 +++"])
            assert not any(line.startswith(("pwrite64(", "fstat(")) for line in got), got
            # Whatever that is: they went on.
            assert sum(line.startswith(("pwrite64(", "fstat(")) for line in calls([*trace, "8 fsync(3) = 0", "9 fsync(3) = 0"])) == 2
    lines, _ = text_of([*begun, "7 exit_group(0 <unfinished ...>", "9 <... fstat resumed>{st_mode=S_IFREG|0644, st_size=0, ...}) = 0", "9 exit_group(0 <unfinished ...>",
                        "8 <... pwrite64 resumed>) = 1", "7 <... exit_group resumed>) = ?", "9 +++ exited with 0 +++", "8 +++ exited with 0 +++", "7 +++ exited with 0 +++"])
    assert [re.search(r"/(\d)\] (\w+)", line).groups() for line in lines[3:]] == [
        ("9", "fstat"), ("9", "exit"), ("8", "pwrite64"), ("7", "exit_group")], lines


def test_verbose_traces_tell_what_directories_hold():
    """By name and type (-v); also of old strace's getdents, raw numbers, and names that have to be escaped."""
    entry = '{d_ino=1, d_off=2, d_reclen=24, d_type=%s, d_name="%s"}'
    shown = [entry % one for one in (("DT_DIR", "."), ("DT_DIR", ".."), ("DT_REG", "file"), ("DT_DIR", "sub"), ("DT_LNK", "link"), ("DT_FIFO", "fifo"), ("DT_SOCK", "sock"), ("0x4", "raw"), ("8", "number"),
                                     ("DT_UNKNOWN", "any"), ("DT_REG", r'a \"{d_name=\303\244\n'), ("DT_REG", "made"), ("DT_REG", "removed"))]
    late = entry % ("DT_REG", "unlinked")
    opened = 'openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = 3'
    _, left = replayed(['openat(AT_FDCWD, "/d/made", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3', "close(3) = 0", 'unlink("/d/unlinked") = 0', opened, f"getdents64(3, [{', '.join(shown)}], 32768) = 400",
                          "getdents64(3, [], 32768) = 0", "close(3) = 0", 'unlink("/d/removed") = 0', 'openat(AT_FDCWD, "/d/sub", O_RDONLY|O_DIRECTORY) = 3',
                          'getdents(3, [{d_ino=1, d_off=2, d_reclen=24, d_name="old", d_type=DT_DIR}, {d_ino=1, d_off=2, d_reclen=24, d_name="older"}, ...], 32768) = 48'])
    assert {"/d/made", "/d/sub/old", "/d/sub/older", "/d/file"} <= left.keys() and not {"/d/removed", "/d/unlinked"} & left.keys(), left
    # Who makes, or uses, one of them tells more; also who was in the middle of that.
    dots = [entry % ("DT_DIR", name) for name in (".", "..")]
    for kind, first, then in (("DT_REG", 'openat(AT_FDCWD, "/d/x", O_WRONLY|O_CREAT|O_EXCL, 0600', "4"), ("DT_DIR", 'mkdir("/d/x", 0700', "0"), ("DT_LNK", 'symlink("a", "/d/x"', "0")):
        lines = ["7 fork() = 8", "7 " + opened, f"8 {first} <unfinished ...>", f"7 getdents64(3, [{', '.join([*dots, entry % (kind, 'x')])}], 32768) = 72",
                 f"8 <... {first.split('(')[0]} resumed>) = {then}", "7 getdents64(3, [], 32768) = 0"]
        report, _ = replayed(lines)
        assert report["mismatched"] == 0, (kind, report["mismatches"])
    for after in (['mkdir("/d/x/new", 0700) = 0'], ['stat("/d/x", {st_mode=S_IFDIR|0755, st_size=1, ...}) = 0', 'unlink("/d/x") = 0'], ['openat(AT_FDCWD, "/d/x/y", O_RDONLY) = -1 ENOTDIR (x)'],
                  ['rename("/d/x", "/d/z") = 0', 'mkdir("/d/z/new", 0700) = 0']):
        report, _ = replayed([opened, f"getdents64(3, [{', '.join([*dots, entry % ('DT_LNK', 'x')])}], 32768) = 72", *after])
        assert report["mismatched"] == 0, (after, report["mismatches"])
    # They are no paths of the call.
    listing = [opened, f"getdents64(3, [{', '.join([*dots, entry % ('DT_REG', 'x.txt')])}], 32768) = 80"]
    assert len(text_of(listing)[0]) == 2 and text_of(listing, "--with", "filter,path=*.txt")[0] == []
    with Tmp() as tmp:
        trace, root = os.path.join(tmp, "t"), os.path.join(tmp, "root")
        os.mkdir(root)
        with open(trace, "w", encoding="utf-8") as f:
            f.write("\n".join([opened, f"getdents64(3, [{', '.join(shown + [late])}], 32768) = 400"]) + "\n")
        feign("convert", trace, os.path.join(tmp, "t.feign"))
        feign("replay", os.path.join(tmp, "t.feign"), "--root", root)
        kinds = {name: stat.S_IFMT(os.lstat(os.path.join(root, "d", name)).st_mode) for name in os.listdir(os.path.join(root, "d")) if not name.startswith("~")}
        regular = dict.fromkeys(("file", "number", "any", 'a "{d_name=ä\n', "made", "removed", "unlinked"), stat.S_IFREG)
        assert kinds == {**regular, "sub": stat.S_IFDIR, "raw": stat.S_IFDIR, "link": stat.S_IFLNK, "fifo": stat.S_IFIFO, "sock": stat.S_IFSOCK}, kinds
        shutil.rmtree(root)
    # A real directory, listed by a real program.
    with Tmp() as tmp:
        if shutil.which("strace") is None:
            raise Skip("strace is not installed")
        work, root, trace = (os.path.join(tmp, name) for name in ("work", "root", "t"))
        for name in (work, root, os.path.join(work, "sub")):
            os.mkdir(name)
        for name in ("a", "b ö", 'c"', "sub/d"):
            open(os.path.join(work, name), "w", encoding="utf-8").close()
        os.symlink("nowhere/that/is", os.path.join(work, "link"))
        if subprocess.run(["strace", "-f", "-v", "-s", "0", "-o", trace, "find", work, "-name", "x"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL).returncode != 0:
            raise Skip("strace does not work here")
        report = feign("replay", trace, "--root", root, "--json").json()
        assert report["mismatched"] == 0, report["mismatches"]
        trees = [sorted((os.path.relpath(os.path.join(at, name), top), stat.S_IFMT(os.lstat(os.path.join(at, name)).st_mode)) for at, folders, files in os.walk(top) for name in folders + files)
                 for top in (work, root + work)]
        assert trees[0] == trees[1], trees


def test_damaged_arrays_of_entries_take_no_longer_than_their_length_tells():
    """Names that no brace goes before, or comes after, were looked for in all that is before them, or after."""
    opened, entries = 'openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = 3', 'd_name="x", ' * 100_000
    for damaged in (entries, "{" + entries + "}", '{d_ino=1, d_type=DT_REG, d_name="x"}, ' * 30_000 + entries):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        _, left = replayed([opened, f"getdents64(3, [{damaged}], 32768) = 48"])
        assert "/d/x" in left and resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 10, left


def test_programs_whose_children_are_not_traced():
    if shutil.which("strace") is None or subprocess.run(["strace", "-o", os.devnull, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("strace does not work here")
    script = """for i in 1 2 3; do cp a b$i; mv b$i c$i; [ -f c$i ] && echo ok >> log; rm c$i; [ -f c$i ] || echo gone >> log; done
        [ -e d ] || mkdir -p d/e/f; cd d/e; touch g; : > f/h; [ -L l ] || ln -s g l; [ -L l ]; rm -r f; [ -d f ] || : > f; cd ../..; [ -e z ] || cp log z; read line < z; test -s z"""
    with Tmp() as tmp:
        work, trace, root = (os.path.join(tmp, name) for name in ("work", "t.strace", "root"))
        os.mkdir(work)
        os.mkdir(root)
        with open(os.path.join(work, "a"), "w", encoding="utf-8") as f:
            f.write("a\n" * 100)
        subprocess.run(["strace", "-o", trace, "bash", "-c", script], cwd=work, check=True)
        report = feign("replay", trace, "--root", root, "--cwd", work, "--json").json()
        assert report["mismatched"] == 0, report["mismatches"]
        there = tree(root + work)
        assert there["d/e/l"][0] == "l" and there["d/e/f"][:2] == ("f", 0) and "c3" not in there, there


def test_variants():
    """Thirty captures of one program, with other options each."""
    if not os.path.isdir(VARIANTS):
        raise Skip("../shared/corpus is not here")
    counts = {}
    for name in sorted(os.listdir(VARIANTS)):
        if not name.endswith(".txt.gz") or name == "f_c.txt.gz":
            continue
        for order in ("depend", "trace"):
            with Tmp() as tmp:
                r = feign("replay", os.path.join(VARIANTS, name), "--root", tmp, "--cwd", "/tmp/sn", "--order", order, "--json").json()
            # Two captures lack the calls that made files which a listing shows.
            assert r["mismatched"] == {"f_ttt_T_y_ewriteall.txt.gz": 2, "f_ttt_T_y_stderr.txt.gz": 1}.get(name, 0), (name, order, r["mismatches"])
            assert counts.setdefault(name[:-7], r["matched"] + r["mismatched"]) == r["matched"] + r["mismatched"] > 0, (name, order)
    same = {n: counts[n] for n in ("f_ttt_T_y_v", "f_ttt_T_y_x", "f_ttt_T_y_xx", "f_ttt_T_y_Xraw", "f_ttt_T_y_Xverbose", "f_ttt_T_yy_s256", "f_ttt_T_y_s0", "f_ttt_T_y_n_i", "f_ttt_T_Y",
                                   "f_ttt-ns_T-ns_y", "f_ttt_T_y_stderr")}
    assert len(set(same.values())) == 1, same
    assert len({counts[n] for n in ("f", "f_C", "f_r", "f_r_ttt_T", "f_t_T", "f_tt")}) == 1, counts
    assert counts["appended"] == 2 * counts["f_ttt_T_y_v"], counts
    with Tmp() as tmp:
        r = feign("replay", os.path.join(VARIANTS, "ff.trace"), "--root", tmp, "--cwd", "/tmp/sn", "--json").json()
        assert r["fidelity"] == 1 and r["matched"] == counts["f_ttt_T_y_v"], r["mismatches"]


if __name__ == "__main__":
    main(globals())
