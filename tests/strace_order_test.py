#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Provider strace: which of calls that overlap came first, and files that are merged."""
import itertools
import json
import os
import re
import resource
import shutil
import subprocess
import sys

from harness import FEIGN, Skip, Tmp, feign, main
from strace_text import OPEN, OVER, THREAD, calls, notes_of, order_of, replayed, same, text_of


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


def test_a_call_that_lasts_longer_than_its_place_is_kept():
    lines = calls(['1  openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0600) = 3', '1  write(1<pipe:[5]>, "x", 1 <unfinished ...>'] +
                  ['2  access("/g", F_OK) = -1 ENOENT (No such file or directory)'] * ((1 << 18) + 100) +
                  ['1  <... write resumed>) = 1', '2  mkdir("/h", 0700) = 0', '1  write(3, "ab", 2) = 2'])
    lines = [line for line in lines if not line.startswith("access(")]
    same(lines, ['openat(pathname="/f", flags=O_RDWR|O_CREAT, mode=0600) = 3', 'write(fd=#2, count=1) = 1',
                 'mkdir(pathname="/h", mode=0700) = 0', 'write(fd=#1, count=2) = 2'])


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


def test_what_a_thread_closes_while_another_forks_may_be_gone_in_the_child():
    """A fork counts from its start, the kernel copies descriptors later: what the child opens tells of no missing close, but where that began after the fork."""
    lacks = "the trace lacks calls that close descriptors"
    begins = [f"9 1700000005.000010 {OPEN} <0.000001>", f"9 1700000005.000020 {THREAD} <0.000001>", "9 1700000005.000100 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>"]
    over, opens = "9 1700000005.000900 <... clone resumed>) = 11 <0.000800>", f"11 1700000005.001000 {OPEN} <0.000001>"
    for close in "close(3)", "close_range(3, 5, 0)":
        assert lacks not in notes_of([*begins, f"10 1700000005.000500 {close} = 0 <0.000001>", over, opens]), close
        assert lacks in notes_of([*begins, over, f"10 1700000005.000950 {close} = 0 <0.000001>", opens]), close


def test_files_of_ff_whose_order_is_a_guess():
    for time, guess in (("", True), ("10:00:00 ", True), ("0.000010 ", True), ("1795464971 ", True), ("10:00:00.5 ", False), ("1795464971.5 ", False)):
        with Tmp() as tmp:
            for pid in (9, 11):
                with open(os.path.join(tmp, f"app.{pid}"), "w", encoding="utf-8") as f:
                    f.write(f"{time}{OPEN}\n{time}fsync(3) = 0\n")
            notes = feign("info", os.path.join(tmp, "app"), "--json").json()["notes"]
        assert sum("is a guess" in note for note in notes) == guess, (time, notes)


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
    # Without -y the call that made it tells that it is a pipe.
    for made, want in ("pipe2([3, 4], 0) = 0", ["write", "read"]), ('openat(AT_FDCWD, "/f", O_RDWR) = 4', ["read", "write"]):
        named, lines = order([(1, made), (1, "fork() = 2")] + [(pid, text.replace("%s", "")) for pid, text in by_pipe])
        assert named[2:] == want, lines
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
    # … or what it has open is: a directory that it opened from there, by whose descriptor it names it, or moves on.
    inside = ('1 mkdir("/w/d", 0777) = 0', '1 mkdir("/w/d/e", 0777) = 0', '1 chdir("d") = 0', '1 openat(AT_FDCWD, "e", O_RDONLY|O_DIRECTORY) = 3')
    finds = ('2 stat("/w/d/e/f", 0x1', "2) = 0", "1) = 0")
    assert race(*inside, '1 mkdirat(3, "f", 0777', *finds)[4:] == ["1 mkdirat 0", "2 stat 0"]
    assert race(*inside, "1 fchdir(3) = 0", '1 mkdir("f", 0777', *finds)[5:] == ["1 mkdir 0", "2 stat 0"]
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


def names_of(files, of="mkdir"):
    """What was made, in the order in which it was."""
    return re.findall(of + '\\(pathname="/([^"]*)"', "\n".join(text_of(files, name="t")[0]))


def test_files_without_times_are_in_the_order_of_messages():
    """Who has read something from a pipe or a socket came after whoever wrote that, also by duplicates, in threads and where all wait for messages of which nothing is seen."""
    fork, made, over = "clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD) = 8", 'mkdir("%s", 0700) = 0', "exit_group(0) = ?"
    thread = "clone(child_stack=0x1, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD) = 8"
    pipes = ["pipe([3, 4]) = 0", "pipe2([5, 6], O_CLOEXEC) = 0"]
    pair = ["socketpair(AF_UNIX, SOCK_STREAM, 0, [3, 5]) = 0", "dup2(3, 4) = 4", "dup(5) = 6"]
    events = ["eventfd2(0, EFD_CLOEXEC) = 3", "eventfd2(0, 0) = 5"]
    again = [*pipes, 'openat(AT_FDCWD, "/dev/fd/4", O_WRONLY) = 7', 'openat(AT_FDCWD, "/proc/self/fd/5", O_RDONLY) = 8']
    for begin, mine, its in ((pipes, (4, 5), (3, 6)), (again, (7, 8), (3, 6)), (pair, (4, 3), (5, 6)), (events, (3, 5), (3, 5))):
        for makes in fork, thread:
            first = [*begin, makes, made % "a", f'write({mine[0]}, "xy", 2) = 2', f'read({mine[1]}, "z", 1) = 1', made % "c", f'write({mine[0]}, "x", 1) = 1', f'read({mine[1]}, "z", 1) = 1', made % "e"]
            second = [f'read({its[0]}, "x", 1) = 1', f'read({its[0]}, "y", 1) = 1', made % "b", f'write({its[1]}, "z", 1) = 1', f"splice({its[0]}, NULL, 9, NULL, 1, 0) = 1", made % "d", f"sendfile({its[1]}, 9, NULL, 1) = 1", "exit(0) = ?"]
            for time in "", "     0.000011 ", "12:00:00 ":
                for numbers in (7, 8), (9, 8):
                    files = {f"t.{pid}": [time + line for line in of] for pid, of in zip(numbers, (first, second))}
                    assert names_of(files) == list("abcde"), files
    # Who has the other end is not known.
    assert names_of({"t.7": [*pipes, 'read(3, "x", 1) = 1', made % "a", over], "t.8": [made % "b", over]}) == ["a", "b"]
    # By address; what is looked at stays there; who connects to others, or has others' messages, waits for nobody.
    for at in '{sa_family=AF_UNIX, sun_path="%ss"}, 110', "{sa_family=AF_INET, sin_port=htons(77), sin_addr=inet_addr(\"%s127.0.0.1\")}, 16":
        address, relative = at % "/x/" if "/" not in at and "UNIX" in at else at % "", at % ""
        client = ["socket(AF_UNIX, SOCK_STREAM, 0) = 3", f"connect(3, {address}) = 0", made % "b", 'sendto(3, "x", 1, 0, NULL, 0) = 1', 'recvfrom(3, "y", 1, 0, NULL, NULL) = 1', made % "d", over]
        server = ['recvfrom(9, "x", 1, 0, NULL, NULL) = 1', "connect(8, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr(\"8.8.8.8\")}, 16) = 0", "socket(AF_UNIX, SOCK_STREAM, 0) = 3", made % "a",
                  f"bind(3, {relative}) = 0", "listen(3, 5) = 0", f"accept(3, NULL, NULL) = 4", 'recvfrom(4, "x", 1, MSG_PEEK, NULL, NULL) = 1', 'recvfrom(4, "x", 1, 0, NULL, NULL) = 1', made % "c", 'sendto(4, "y", 1, 0, NULL, 0) = 1', over]
        for numbers in (7, 8), (8, 7):
            files = {f"t.{pid}": of for pid, of in zip(numbers, (client, server))}
            assert names_of(files) == list("abcd"), (files, names_of(files))


def test_files_without_times_are_in_the_order_of_signals():
    """Who has had a signal comes after whoever sent it; who is told that a child has ended, after that. Of others than these nothing is known."""
    made, over, came = 'mkdir("%s", 0700) = 0', "exit_group(0) = ?", "--- %s {si_signo=%s, si_code=%s, si_pid=%d, si_uid=0} ---"
    user = lambda pid, code="SI_USER": came % ("SIGUSR1", "SIGUSR1", code, pid)
    for kill, tells in ("kill(%d, SIGUSR1) = 0", "SI_USER"), ("tgkill(%d, %d, SIGUSR1) = 0", "SI_TKILL"):
        send = lambda to: kill % ((to,) * kill.count("%d"))
        files = {"t.7": ["fork() = 8", made % "a", send(8), user(8, tells), made % "c", send(8), user(8, tells), made % "e", over],
                 "t.8": [user(7, tells), made % "b", send(7), user(7, tells), made % "d", send(7), over]}
        assert names_of(files) == list("abcde"), files
    child = {"t.8": [made % "a", over]}
    for signal, order in ((came % ("SIGCHLD", "SIGCHLD", "CLD_EXITED", 8), "ab"), (user(8), "ab"), (user(99), "ba"), (came % ("SIGCHLD", "SIGCHLD", "CLD_STOPPED", 8), "ba")):
        assert names_of({"t.7": ["fork() = 8", signal, made % "b", over], **child}) == list(order), signal


def test_files_without_times_are_in_the_order_in_which_processes_were_numbered():
    made, over = 'mkdir("%s", 0700) = 0', "exit_group(0) = ?"
    for first, second, third in (8, 9, 10), (8, 4, 5):  # numbers begin again at some time
        files = {"t.7": [f"fork() = {first}", f"fork() = {third}", over], f"t.{first}": [made % "a", f"fork() = {second}", over], f"t.{second}": [made % "b", over], f"t.{third}": [made % "c", over]}
        order = re.findall(r"/(\d+)\] fork\(.* = (\d+) <", "\n".join(text_of(files, name="t")[0]))
        assert order == [("7", str(first)), (str(first), str(second)), ("7", str(third))], order


def test_files_without_times_are_in_an_order_in_which_locks_were_had_and_refused():
    lock, over = ['openat(AT_FDCWD, "lk", O_RDWR|O_CREAT, 0666) = 3'], "exit_group(0) = ?"
    for get, give_up in (("flock(3, LOCK_EX|LOCK_NB)", "flock(3, LOCK_UN)"), *((f"fcntl(3, F_SETLK, {{l_type=F_{how}LCK, l_whence=SEEK_SET, l_start=0, l_len=0}})" for how in ("WR", "UN")),)):
        had, given_up = f"{get} = 0", f"{give_up} = 0"
        files = {"t.7": ["fork() = 8", *lock, had, "pipe([4, 5]) = 0", "fork() = 9", 'read(4, "x", 1) = 1', 'mkdir("a", 0700) = 0', given_up, over],
                 "t.8": [*lock, f"{get} = -1 EAGAIN (Resource temporarily unavailable)", had, 'mkdir("b", 0700) = 0', over], "t.9": ['write(5, "x", 1) = 1', over]}
        assert names_of(files) == ["a", "b"], files


def test_files_without_times_have_what_is_found_after_whoever_made_it():
    over = "exit_group(0) = ?"
    exists = "-1 EEXIST (File exists)"
    for makes, finds in (("openat(AT_FDCWD, \"x\", O_RDWR|O_CREAT|O_EXCL, 0600) = 3", "openat(AT_FDCWD, \"x\", O_RDONLY) = 3"), ('mkdir("x", 0700) = 0', f'mkdir("x", 0700) = {exists}'),
                         ('mkdir("x", 0700) = 0', 'openat(AT_FDCWD, "x/y", O_WRONLY|O_CREAT, 0600) = 3')):
        for made in ["fork() = 8"], ["fork() = 8", 'stat("x", 0x1) = -1 ENOENT (No such file or directory)']:
            files = {"t.7": [*made, finds, 'mkdir("b", 0700) = 0', over], "t.8": ['mkdir("a", 0700) = 0', makes, over]}
            assert [name for name in names_of(files) if name != "x"] == ["a", "b"], files
            # Seconds that are told decide first.
            timed = {name: [time + line for line in file] for (name, file), time in zip(files.items(), ("10:00:01 ", "10:00:59 "))}
            assert [name for name in names_of(timed) if name != "x"] == ["b", "a"], timed


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
        # Nothing else is known of the file: it did not end where a write that goes farther had ended.
        order = order_of(tmp, ["100 pwrite64(3</x/log>, \"12345\", 5, 100 <unfinished ...>", "101 pread64(4</x/log>,  <unfinished ...>", "100 <... pwrite64 resumed>) = 5 <0.000003>",
                               '101 <... pread64 resumed>"", 99, 100) = 0 <0.000003>'])
        assert order == [(101, "0"), (100, "5")], order
        # Nobody has been told where it was, and who finds less is seen to find it later.
        seeks = ["101 lseek(3</x/log>, 0, SEEK_END <unfinished ...>", "102 lseek(4</x/log>, 0, SEEK_END <unfinished ...>", f"100 {writes[0][0]} <unfinished ...>",
                 "102 <... lseek resumed>) = 105 <0.000003>", "101 <... lseek resumed>) = 100 <0.000003>", "100 <... write resumed>) = 5 <0.000003>"]
        order = order_of(tmp, begin[:2] + seeks)
        assert order[2:] == [(101, "100"), (100, "5"), (102, "105")], order


def test_a_seek_tells_where_others_have_brought_what_they_share():
    """As Python does at its start, of an output that several programs have."""
    with Tmp() as tmp:
        begin = ['100 openat(AT_FDCWD</x>, "log", O_RDWR|O_CREAT|O_TRUNC, 0666) = 3</x/log> <0.000001>',
                 "100 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD) = 101 <0.000001>",
                 '100 write(3</x/log>, "12345", 5) = 5 <0.000001>']
        for call, end in (('write(3</x/log>, "678", 3', ") = 3"), ("read(3</x/log>, ", '"678", 3) = 3')):
            ends = {100: f"100 <... {call[:call.index('(')]} resumed>{end} <0.000003>", 8: "101 <... lseek resumed>) = 8 <0.000003>", 5: "101 <... lseek resumed>) = 5 <0.000003>"}
            under_way = ["101 lseek(3</x/log>, 0, SEEK_CUR <unfinished ...>", f"100 {call} <unfinished ...>"]
            for last, first in (([8, 100], 100), ([100, 8], 100), ([100, 5], 101), ([5, 100], 101)):
                for lines in under_way, under_way[::-1]:
                    order = order_of(tmp, begin + lines + [ends[e] for e in last])
                    assert order[-2][0] == first, (call, lines, last, order)
        # A read is where its descriptor is, also of one that appends.
        appends = [begin[0].replace("O_TRUNC", "O_TRUNC|O_APPEND"), begin[1], begin[2], "100 lseek(3</x/log>, 2, SEEK_SET) = 2 <0.000001>"]
        order = order_of(tmp, appends + ["100 read(3</x/log>,  <unfinished ...>", "101 lseek(3</x/log>, 0, SEEK_CUR <unfinished ...>", "101 <... lseek resumed>) = 4 <0.000003>",
                                         '100 <... read resumed>"34", 2) = 2 <0.000003>'])
        assert order[-2][0] == 100, order
        # Of two that write, both did.
        writes = [f'{pid} write(3</x/log>, "678", 3 <unfinished ...>' for pid in (100, 102)]
        ended = [f"{pid} <... write resumed>) = 3 <0.000003>" for pid in (100, 102)]
        order = order_of(tmp, begin[:2] + [begin[1].replace("101", "102"), begin[2], *writes, under_way[0], "101 <... lseek resumed>) = 11 <0.000003>", *ended])
        assert order[-1] == (101, "11"), order


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


def test_a_number_that_a_thread_opens_was_free():
    """Files of threads without -y: whoever closed what had the number came before, and of two who open it one with a close after it."""
    clone = "clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD) = {}".format
    begin = [f"1700000000.{at} {call}" for at, call in (("000000", 'openat(AT_FDCWD, "/x/c", O_RDONLY) = 3'), ("000005", "close(3) = 0"), ("000010", clone(8)), ("000050", clone(9)))]
    opens = '1700000000.{:06d} openat(AT_FDCWD, "/x/{}", O_RDWR|O_CREAT, 0644) = 3'.format
    write, close, exits = "1700000000.{:06d} write(3, \"x\", 1) = 1".format, "1700000000.{:06d} close(3) = 0".format, "1700000000.{:06d} exit(0) = ?".format
    for one, two in (([opens(300, "a"), write(350), close(700)], [opens(200, "b"), close(320), exits(800)]),
                     ([opens(300, "a"), write(900), close(950)], [opens(400, "b"), close(600), exits(800)]),
                     ([opens(300, "a"), write(900), close(950)], ["1700000000.000400 pipe([3, 4]) = 0", close(600), exits(800)])):
        for took in ("", " <0.000005>"):
            first = ["1700000000.000100 set_robust_list(0x7f, 24) = 0"]
            files = {"t.7": begin, "t.8": first + one, "t.9": first + two}
            found, _ = text_of({name: [line + took * ("exit" not in line) for line in lines] for name, lines in files.items()}, name="t")
            calls = [(m[1], m[2]) for line in found if (m := re.search(r"/(8|9)\] (openat|pipe|write|close)\(", line))]
            assert calls == [("9", calls[0][1]), ("9", "close"), ("8", "openat"), ("8", "write"), ("8", "close")], (calls, took)
            assert all('path="/x/a"' in line for line in found if "] write(" in line), found


def test_what_a_thread_opens_comes_before_whoever_uses_it():
    """Who hands a descriptor on without a call computes on, and has its next line later than who got it; what was opened is what the name was when the call began."""
    line = "1700000000.{:06d} {}".format
    clone = "clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD) = {}".format
    opens = lambda at, name, flags="O_RDWR|O_CREAT, 0644": line(at, f'openat(AT_FDCWD, "/x/{name}", {flags}) = 3')
    close, write = (lambda at: line(at, "close(3) = 0")), (lambda at: line(at, 'write(3, "x", 1) = 1'))
    first, joined, begin = line(100, "set_robust_list(0x7f, 24) = 0"), line(3000, "wait4(1, NULL, 0, NULL) = -1 ECHILD (No child processes)"), [opens(0, "c"), close(5), line(10, clone(8))]
    threads = [line(50, clone(9)), line(60, clone(10))]
    idle = [line(700000, "exit(0) = ?")]
    for files, want in (
            # Another thread writes, and closes, before the one that opened goes on, and a third one has the number then.
            ({7: begin + threads, 8: [first, opens(1000, "a"), line(9000, "getpid() = 7"), *idle], 9: [first, write(2000), close(3000), *idle], 10: [first, opens(6000, "b"), write(6100), close(6200), *idle]},
             "8 openat a, 9 write a, 9 close a, 10 openat b, 10 write b, 10 close b"),
            # What threads opened, their process closes when it is alone; so a later one's number is free.
            ({7: [*begin, joined, write(4000), close(5000), line(5500, clone(9)), write(21000), close(21100)], 8: [first, opens(300, "a"), line(2000, "exit(0) = ?")],
              9: [line(6000, "set_robust_list(0x7f, 24) = 0"), opens(20000, "b"), line(29000, "getpid() = 7"), *idle]},
             "8 openat a, 7 write a, 7 close a, 9 openat b, 7 write b, 7 close b"),
            # Another file comes to the name later, …
            ({7: [*begin, opens(20, "f"), close(22), opens(24, "n"), close(26), *threads], 8: [first, opens(1000, "f", "O_RDONLY"), line(6000, "fsync(3) = 0"), close(6100), *idle], 9: [first, line(2000, 'rename("/x/n", "/x/f") = 0'), *idle]},
             "7 openat f, 7 close f, 7 openat n, 7 close n, 8 openat f, 9 rename n, 8 fsync f, 8 close f"),
            # … or it is asked for after it was emptied.
            ({7: begin + threads, 8: [first, opens(1000, "f", "O_WRONLY|O_CREAT|O_TRUNC, 0644"), write(6000), close(6100), *idle], 9: [first, line(2000, 'stat("/x/f", {st_mode=S_IFREG|0644, st_size=0, ...}) = 0'), *idle]},
             "8 openat f, 9 stat f, 8 write f, 8 close f")):
        for took in ("", " <0.000005>"):
            found, _ = text_of({f"t.{name}": [text + took * ("exit" not in text) for text in lines] for name, lines in files.items()}, name="t")
            calls = [(m[1], m[2], m[3]) for text in found if (m := re.search(r'/(\d+)\] (openat|write|close|fsync|rename|stat)\(.*?path(?:name)?="/x/(\w)"', text))]
            assert ", ".join(" ".join(c) for c in calls[2:]) == want, (calls, took)


def test_who_waited_for_bytes_had_them_when_it_says():
    """With -T a wait that has no descriptors in it is over then, however long the process computes after it."""
    pipe = "<pipe:[72]>"
    writes = [f'1700000001.{at} write(8{pipe}, "k", 1) = 1 <0.000010>' for at in ("200000", "201000")]
    reads = [f'1700000001.{at} read(7{pipe}, "k", 1) = 1 <{took}>' for at, took in (("100000", "0.100050"), ("208000", "0.000010"))]
    found, _ = text_of({"t.7": [f"1700000001.000000 pipe([7{pipe}, 8{pipe}]) = 0 <0.000010>", "1700000001.000020 fork() = 8 <0.000010>", *writes], "t.8": reads}, name="t")
    assert [re.search(r"\] (\w+)\(", line)[1] for line in found] == ["pipe", "fork", "write", "read", "write", "read"], found


def test_who_waited_for_a_message_has_it_after_it_was_sent():
    """Without -T, too: each file says when calls began, and a call was over when the next one did. With -T one that has descriptors may be over later than it says."""
    rights = "{msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base=\"x\", iov_len=1}], msg_iovlen=1, msg_control=[{cmsg_len=20, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data=[5%s]}], msg_controllen=24, msg_flags=0}, 0) = 1"
    for y, timed in itertools.product((True, False), (True, False)):
        took = lambda seconds: f" <{seconds}>" if timed else ""
        at, f, pair, other, pipe = ("</x>", "</x/f>", "<socket:[70]>", "<socket:[71]>", "<pipe:[72]>") if y else [""] * 5
        make = [f"1700000001.000000 socketpair(AF_UNIX, SOCK_STREAM, 0, [3{pair}, 4{other}]) = 0", f"1700000001.000010 pipe([7{pipe}, 8{pipe}]) = 0", "1700000001.000020 fork() = 8"]
        sends = [f'1700000001.200000 openat(AT_FDCWD{at}, "/x/f", O_RDWR|O_CREAT|O_EXCL, 0644) = 5{f}', f"1700000001.300000 sendmsg(3{pair}, " + rights % f,
                 f'1700000001.400000 read(7{pipe}, "k", 1) = 1', f"1700000001.500000 lseek(5{f}, 0, SEEK_CUR) = 3"]
        gets = [f"1700000001.100000 recvmsg(4{other}, " + rights % f, f'1700000001.310000 write(5{f}, "abc", 3) = 3', f'1700000001.405000 write(8{pipe}, "k", 1) = 1', "1700000001.510000 exit_group(0) = ?"]
        make, sends = ([line + took("0.000005") for line in lines] for lines in (make, sends))
        gets = [line + took("0.199990" if "recvmsg" in line else "0.000005") if "exit" not in line else line for line in gets]
        with Tmp() as tmp:
            for name, lines in (("7", make + sends), ("8", gets)):
                with open(os.path.join(tmp, f"t.{name}"), "w", encoding="utf-8") as out:
                    out.write("\n".join(lines) + "\n")
            root = os.path.join(tmp, "root")
            os.mkdir(root)
            r = feign("replay", os.path.join(tmp, "t"), "--root", root, "--cwd", "/x", "--json", "--require", "1")
            assert r.status == 0, (y, timed, r.err, r.json()["mismatches"])
            assert os.path.getsize(os.path.join(root, "x/f")) == 3
            found, _ = text_of({"t.7": make + sends, "t.8": gets}, "--cwd", "/x", name="t")
            calls = [re.search(r"\] (\w+)\(", line)[1] for line in found]
            assert calls.index("sendmsg") < calls.index("recvmsg"), calls
            if y and not timed:
                assert max(i for i, c in enumerate(calls) if c == "write") < calls.index("read"), calls


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


def test_calls_that_were_over_when_a_lock_was_refused_are_before():
    """4 asked after 3 had written, and was refused what 2 was about to give up. But who got that was behind."""
    def lock(kind, start=124):
        return f"fcntl(3, F_SETLK, {{l_type=F_{kind}, l_whence=SEEK_SET, l_start={start}, l_len=1}}"
    busy = "-1 EAGAIN (Resource temporarily unavailable)"
    begins = ["1 fork() = 2", "1 fork() = 3", "1 fork() = 4", *(f'{pid} open("/f", O_RDWR|O_CREAT, 0644) = 3' for pid in (2, 3, 4)), f"2 {lock('RDLCK')}) = 0",
              f"2 {lock('UNLCK')} <unfinished ...>"]
    before = [f"3 {lock('WRLCK')}) = {busy}", f"3 {lock('WRLCK', 120)}) = 0", '3 pwrite64(3, "x"..., 100, 0) = 100', f"3 {lock('UNLCK', 120)}) = 0"]
    meanwhile = [f"4 {lock('WRLCK', 120)}) = 0", '4 pread64(3, "x"..., 100, 0) = 100', f"4 {lock('WRLCK')}) = {busy}"]
    # 3 can have what 2 has, too.
    shares = [f"3 {lock('RDLCK', 120)}) = 0", f"3 {lock('RDLCK')}) = 0", f"3 {lock('UNLCK', 120)}) = 0", f"4 {lock('WRLCK', 120)}) = 0", f"4 {lock('WRLCK')}) = {busy}"]
    for lines in (before + meanwhile, before[1:] + meanwhile, meanwhile[-1:] + [f"3 {lock('WRLCK')}) = 0"], shares):
        report, _ = replayed(begins + lines + ["2 <... fcntl resumed>) = 0"])
        assert report["mismatched"] == 0, (lines, report["mismatches"])
    # 3 has the same lock as 2, and got it again.
    file = 'open("/f", O_RDWR|O_CREAT, 0644) = 3'
    report, _ = replayed([f"1 {file}", *begins[:3], "4 close(3) = 0", f"4 {file}", "2 flock(3, LOCK_EX) = 0", "2 flock(3, LOCK_UN <unfinished ...>",
                          "3 flock(3, LOCK_EX) = 0", f"4 flock(3, LOCK_EX|LOCK_NB) = {busy}", "2 <... flock resumed>) = 0", f"4 flock(3, LOCK_EX|LOCK_NB) = {busy}"])
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


def test_what_waits_for_a_call_that_never_returns_costs_no_more_at_the_end():
    """A limit of processor time, that is no matter: before, it took a thousand times as much."""
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.strace")
        with open(trace, "w", encoding="utf-8") as f:
            f.write("10 1700000000.000000 close(3 <unfinished ...>\n")
            f.writelines(f"11 1700000001.{i:06} close(4) = -1 EBADF (Bad file descriptor) <0.000001>\n" for i in range(200000))
        done = subprocess.run([FEIGN, "info", trace], stdout=subprocess.DEVNULL, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (10, 10)))
        assert done.returncode == 0, done.returncode


if __name__ == "__main__":
    main(globals())
