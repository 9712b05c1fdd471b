#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Provider strace: which files names and descriptors are, and what a trace tells of what is not in it."""
import itertools
import json
import os
import re
import shutil
import stat
import subprocess

from harness import FEIGN, Skip, Tmp, bounded, feign, main, tree
from strace_text import OPEN, OVER, calls, notes_of, order_of, replayed, same, text_of


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


def test_both_names_of_a_call_are_after_the_directory():
    same(calls(['renameat2(AT_FDCWD</w>, "a", AT_FDCWD</w>, "b", RENAME_NOREPLACE) = 0']), ['renameat2(oldpath="/w/a", newpath="/w/b", flags=RENAME_NOREPLACE) = 0'])
    same(calls(['rename("/tmp/a", "b") = 0'], "--cwd", "/w"), ['rename(oldpath="/tmp/a", newpath="/w/b") = 0'])
    same(calls(['linkat(AT_FDCWD</w>, "/tmp/a", AT_FDCWD</w>, "b", 0) = 0']), ['linkat(oldpath="/tmp/a", newpath="/w/b", flags=0) = 0'])
    same(calls(['openat(-100 /* AT_FDCWD */</w>, "a", 0 /* O_RDONLY */) = 3</w/a>']), ['openat(pathname="/w/a", flags=O_RDONLY, mode=00) = 3'])


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
    # Before 4.11 what a message brings has no name.
    for control in ("{cmsg_len=20, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, {%d}}", "[{cmsg_len=20, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, [%d]}]"):
        old = '{msg_name(0)=NULL, msg_iov(1)=[{"x", 1}], msg_controllen=24, ' + control + ", msg_flags=0}, 0) = 1"
        found = text_of(["7 socketpair(PF_LOCAL, SOCK_STREAM, 0, [5, 6]) = 0", '7 open("/f", O_RDWR) = 3', '7 write(3, "abc", 3) = 3', "7 fork() = 9", "9 close(3) = 0", "7 sendmsg(5, " + old % 3,
                         "9 recvmsg(6, " + old % 12, '9 write(12, "12345", 5) = 5'])[0]
        assert "at=3 " in found[-1] and 'path="/f"' in found[-1], found
    # What went to somebody who was not traced did not come from another one.
    one = rights % ("cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, ", "cmsg_data=[%d]")
    found = text_of(["7 socketpair(AF_UNIX, SOCK_STREAM, 0, [5, 6]) = 0", "7 socketpair(AF_UNIX, SOCK_STREAM, 0, [7, 8]) = 0", '7 openat(AT_FDCWD, "/f", O_RDWR) = 3', "7 fork() = 9",
                     "7 sendmsg(5, " + one % 3, "9 recvmsg(8, " + one % 11, "9 fsync(11) = 0"])[0]
    assert "[not a file]" in found[-1], found
    # What was only looked at comes once more: both are of the open file that was sent.
    sent = rights % ("cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, ", "cmsg_data=[%d]")
    for flags in ("MSG_PEEK", "MSG_PEEK|MSG_CMSG_CLOEXEC", "0x2", "0x2 /* MSG_PEEK */"):
        found = text_of(["7 socketpair(AF_UNIX, SOCK_STREAM, 0, [5, 6]) = 0", '7 openat(AT_FDCWD, "/f", O_RDWR) = 3', '7 write(3, "abc", 3) = 3', "7 fork() = 9", "9 close(3) = 0",
                         "7 sendmsg(5, " + sent % 3, "9 recvmsg(6, " + (sent % 11).replace(", 0) =", f", {flags}) ="), '9 write(11, "1", 1) = 1', "9 recvmsg(6, " + sent % 12, '9 write(12, "12345", 5) = 5'])[0]
        assert "at=3 " in found[-3] and "at=4 " in found[-1], (flags, found)
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


def test_a_filter_remembers_no_more_than_what_is_open():
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.strace")

        def write(count):
            with open(trace, "w", encoding="utf-8") as f:
                for _ in range(count):
                    f.write(f"{OPEN}\nclose(3) = 0\n")

        bounded(write, "convert", "-q", trace, os.path.join(tmp, "out.feign"), "--with", "filter,preset=workload", counts=(2000, 600000))


def test_descriptors_that_are_taken_from_a_process_share_its_offsets():
    lines = ('1 openat(AT_FDCWD, "/k", O_RDONLY) = 4', '1 pidfd_open(1, 0) = 3', '1 pidfd_getfd(3, 4, 0) = 5', '1 read(5, "abc", 3) = 3', '1 read(4, "de", 3) = 2', '1 read(5, "", 3) = 0',
             '1 clone(child_stack=NULL, flags=SIGCHLD) = 7', '7 openat(AT_FDCWD, "/o", O_RDWR|O_CREAT, 0600) = 8', '7 write(8, "1234", 4) = 4',
             '1 pidfd_open(7, 0) = 6<anon_inode:[pidfd]>', '1 pidfd_getfd(6<anon_inode:[pidfd]>, 8, 0) = 9</o>', '1 write(9</o>, "1234", 4) = 4')
    for order in ("trace", "depend"):
        report, made = replayed(lines, "--order", order)
        assert report["mismatched"] == 0, report["mismatches"]
        assert (made["/k"], made["/o"]) == (5, 8), made


def test_a_file_that_is_opened_by_its_handle_begins_at_0():
    """Each time, whatever one with that number did before; duplicates of it go on where it is."""
    def by_handle(flags):
        return f"1 open_by_handle_at(AT_FDCWD, {{handle_bytes=8, handle_type=1, f_handle=0x0102030405060708}}, {flags}) = 4</f>"
    lines = ['1 openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0600) = 3</f>', '1 write(3</f>, "abcdef", 6) = 6', "1 close(3</f>) = 0",
             by_handle("O_RDWR"), '1 read(4</f>, "abc", 3) = 3', "1 close(4</f>) = 0",
             by_handle("O_RDWR"), "1 dup(4</f>) = 5</f>", '1 read(4</f>, "abcdef", 9) = 6', '1 write(5</f>, "gh", 2) = 2', "1 close(4</f>) = 0", "1 close(5</f>) = 0",
             by_handle("O_WRONLY|O_APPEND"), '1 write(4</f>, "ijk", 3) = 3', "1 close(4</f>) = 0"]
    for order in ("trace", "depend"):
        report, made = replayed(lines, "--order", order)
        assert report["mismatched"] == 0, report["mismatches"]
        assert made["/f"] == 11, made
    # Gone before it was used.
    report, _ = replayed([*lines[:4], '1 read(4</f>(deleted), "abc", 3) = 3', '1 write(4</f>(deleted), "de", 2) = 2', '1 read(4</f>(deleted), "f", 3) = 1'])
    assert (report["mismatched"], report["skipped"]) == (0, 0), (report["mismatches"], report["skips"])


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


def test_descriptors_that_nothing_tells_are_said():
    """But not standard input and what is made of it, which are open in every trace."""
    used = "7 lseek(%d, 0, SEEK_CUR) = 0"
    for lines, said in (([used % 3], True), ([used % 0], False), (["7 fcntl(0, F_DUPFD_CLOEXEC, 3) = 5", used % 5, used % 5], False),
                        (["7 dup2(5, 0) = 0", used % 0], True), (["7 dup(0) = 5", used % 5, used % 6], True)):
        assert ("whose opening is not in the trace" in notes_of(lines)) == said, lines


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


def test_a_directory_that_nothing_tells_has_no_libraries_in_it():
    lines = ['openat(AT_FDCWD, "/lib/libc.so.6", O_RDONLY) = 3', "close(3) = 0", 'openat(AT_FDCWD, ".", O_RDONLY|O_DIRECTORY) = 3',
             "getdents64(3, 0x1 /* 3 entries */, 32768) = 72", "getdents64(3, 0x1 /* 0 entries */, 32768) = 0", 'openat(AT_FDCWD, "a", O_RDONLY) = 4']
    for how in (lines, [line.replace("AT_FDCWD", "-100") for line in lines], [line.replace("openat(AT_FDCWD, ", "open(") for line in lines],
                [line.replace("AT_FDCWD", "-100 /* AT_FDCWD */") for line in lines], [line.replace('"."', r'"\x2e"') for line in lines]):
        report, sizes = replayed(how)
        assert report["mismatched"] == 0 and "/cwd/a" in sizes and any("/cwd is taken (--cwd DIR" in note for note in report["notes"]), (report["mismatches"], sizes)


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


def test_what_is_done_with_a_file_is_chosen_by_the_name_that_opened_it():
    """Whatever the file is called by then, and where a link leads; and of a copy, the end that is chosen stays."""
    lines = ['1 symlink("a", "/l") = 0', '1 openat(AT_FDCWD, "/a", O_RDWR|O_CREAT, 0644) = 3', '1 write(3, "abc", 3) = 3',
             '1 openat(AT_FDCWD, "/l", O_RDONLY) = 4', '1 read(4, "", 9) = 3', '1 openat(AT_FDCWD, "/out", O_WRONLY|O_CREAT, 0644) = 5',
             '1 lseek(3, 0, SEEK_SET) = 0', '1 sendfile(5, 3, NULL, 9) = 3', '1 lseek(3, 0, SEEK_CUR) = 3', '1 rename("/a", "/b") = 0', '1 write(3, "abcd", 4) = 4',
             '1 lseek(4, 0, SEEK_CUR) = 3', '1 close(5) = 0', '1 close(4) = 0', '1 close(3) = 0']
    for chosen, count, want in (("path=/a", 8, {"/b": 7}), ("path=/l", 5, {"/a": 3, "/l": 1}), ("path=/out", 3, {"/out": 3}),
                                ("path=/out,drop=yes", 13, {"/b": 7, "/l": 1}), ("path=/l,drop=yes", 10, {"/b": 7, "/out": 3}), ("path=/a,drop=yes", 8, {"/out": 3})):
        report, sizes = replayed(lines, "--with", "filter," + chosen)
        assert (report["mismatches"], report["matched"]) == ([], count), (chosen, report["mismatches"], report["matched"], sizes)
        assert all(sizes.get(name) == size for name, size in want.items()), (chosen, sizes)
    # From a pipe: all that is known of the copy is where it goes.
    lines = ["1 pipe2([5, 6], 0) = 0", '1 openat(AT_FDCWD, "/a", O_RDWR|O_CREAT, 0644) = 3', '1 write(6, "abcdef", 6) = 6', '1 rename("/a", "/b") = 0',
             "1 splice(5, NULL, 3, NULL, 6, 0) = 6", "1 close(3) = 0"]
    for chosen, ops, want in (("path=/a", ["close", "openat", "rename", "splice"], {"/b": 6}), ("path=/a,drop=yes", [], {}), ("path=/b", ["rename"], {"/b": 0})):
        report, sizes = replayed(lines, "--with", "filter," + chosen)
        made = sorted(op for op in report["ops"] if op not in ("pipe2", "write"))
        assert (report["mismatches"], made, sizes) == ([], ops, want), (chosen, report["mismatches"], made, sizes)


def test_a_file_without_a_name_is_what_a_child_has_whose_making_was_not_traced():
    """As strace -f -y -e trace=file,desc has make -O: both write to the end of what make opened with O_TMPFILE."""
    report, _ = replayed(['1 openat(AT_FDCWD</>, "/tmp", O_RDWR|O_EXCL|O_TMPFILE, 0600) = 9</tmp/#7>(deleted)', "1 fcntl(9</tmp/#7>(deleted), F_SETFL, O_RDWR|O_APPEND|O_TMPFILE) = 0",
                          '1 write(9</tmp/#7>(deleted), "ar rv", 5) = 5', "2 dup2(9</tmp/#7>(deleted), 1<pipe:[8]>) = 1</tmp/#7>(deleted)",
                          '2 write(1</tmp/#7>(deleted), "a - o", 5) = 5', "1 lseek(9</tmp/#7>(deleted), 0, SEEK_END) = 10"])
    assert report["mismatched"] == 0, report["mismatches"]


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


def test_where_a_process_is_whose_making_was_not_traced():
    """As strace -f -y -e trace=file,desc has `cd r; (cd s; > f)`: AT_FDCWD tells it, but after the first call."""
    lines = ['1 execve("/bin/sh", ["sh"], 0x1 /* 1 var */) = 0', '1 openat(AT_FDCWD</w>, "/lib", O_RDONLY) = 3</lib>', '1 close(3</lib>) = 0', '1 mkdir("r", 0755) = 0', '1 chdir("r") = 0', '1 mkdir("s", 0755) = 0',
             '2 chdir("s") = 0', '2 openat(AT_FDCWD</w/r/s>, "f", O_WRONLY|O_CREAT, 0600) = 3</w/r/s/f>', "2 +++ exited with 0 +++", '3 mkdir("t", 0755) = 0', "3 +++ exited with 0 +++"]
    for order in "trace", "depend":
        report, sizes = replayed(lines, "--order", order)
        assert report["mismatched"] == 0 and set(sizes) == {"/lib", "/w", "/w/r", "/w/r/s", "/w/r/s/f", "/w/r/t"}, (order, report["mismatches"], sizes)


def test_a_process_is_where_it_is_said_to_be_and_not_where_the_last_one_was():
    """As strace -f -y -e trace=file,desc has a `mkdir -p d/e` that the shell began while another one was in d."""
    begin = ['1 execve("/bin/sh", ["sh"], 0x1 /* 1 var */) = 0', '1 mkdir("d", 0755) = 0', '2 openat(AT_FDCWD</w>, "/lib", O_RDONLY) = 3</lib>', '2 chdir("d") = 0']
    said = '3 openat(AT_FDCWD</w>, "/lib", O_RDONLY) = 3</lib>'
    for told in ([said], [said.replace("= 3</lib>", "= -1 EACCES (Permission denied)")], ['3 newfstatat(AT_FDCWD</w>, "d", {st_mode=S_IFDIR|0755, ...}, 0) = 0'],
                 ['3 chdir("e") = -1 ENOENT (No such file or directory)', said], ['2 rmdir("/w/d") = 0', said]):
        report, sizes = replayed([*begin, *told, '3 mkdir("f", 0755) = 0'])
        assert report["mismatched"] == 0 and "/w/f" in sizes, (told, report["mismatches"], sizes)
    # Where it went by itself it is, and what it is said to be in is another name of that.
    report, sizes = replayed([*begin, '3 chdir("/l") = 0', said, '3 mkdir("f", 0755) = 0'])
    assert report["mismatched"] == 0 and "/l/f" in sizes, (report["mismatches"], sizes)


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


def test_what_a_file_takes_the_place_of_was_no_directory_but_a_link():
    for shows, goes in (
            ('stat("/d/l", {st_mode=S_IFDIR|0755, st_size=4096, ...}) = 0', 'rename("/d/new", "/d/l") = 0'),
            ('openat(AT_FDCWD, "/d/l/f", O_RDONLY) = 3', 'renameat2(AT_FDCWD, "/d/new", AT_FDCWD, "/d/l", 0) = 0'),
            ('openat(AT_FDCWD, "/d/l", O_RDONLY|O_DIRECTORY) = 3', 'unlink("/d/l") = 0')):
        for makes in ('symlink("v2", "/d/new") = 0', 'openat(AT_FDCWD, "/d/new", O_WRONLY|O_CREAT|O_EXCL, 0666) = 4'):
            report, _ = replayed([shows, makes, goes, 'stat("/d", {st_mode=S_IFDIR|0755, st_size=4096, ...}) = 0'])
            assert (report["mismatched"], report["skipped"]) == (0, 0), (shows, makes, report)


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
    # Not those of who stays outside, in a directory whose name is as long; and from behind a link they go up from where it leads.
    lines = ['1 1.0 mkdir("/c", 0777) = 0', '1 1.1 mkdir("/d", 0777) = 0', '1 1.2 mkdir("/c/e", 0777) = 0', '1 1.3 mkdir("/c/e/f", 0777) = 0', '1 1.4 symlink("e/f", "/c/l") = 0', '1 1.5 chdir("/d") = 0',
             '1 1.6 chroot("/c") = 0', '1 1.7 creat("../y", 0644) = 3', '1 1.8 creat("/l/../z", 0644) = 4', '1 1.9 creat("/l/../../../x", 0644) = 5']
    assert {name for name, size in replayed(lines)[1].items() if size == 0} == {"/y", "/c/e/z", "/c/x"}


def test_a_socket_gets_no_name_behind_what_is_missing():
    bind = 'bind(3, {sa_family=AF_UNIX, sun_path="%s"}, 110) = -1 %s (x)'
    report, sizes = replayed(['mkdir("/w", 0755) = 0', 'creat("/w/f", 0644) = 4', "socket(AF_UNIX, SOCK_DGRAM, 0) = 3", bind % ("/w/none/../s", "ENOENT"), bind % ("/w/f/../s", "ENOTDIR"),
                              bind % ("/w/t/", "ENOENT"), 'stat("/w/s", 0x1) = -1 ENOENT (x)'])
    assert report["mismatched"] == 0 and set(sizes) == {"/w", "/w/f"}, (report["mismatches"], sizes)


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


def test_where_a_process_works_is_none_of_a_guessed_link():
    """/b is taken for a link to /l/e/b, since /b/x leads there: who works in /b, as the annotation says, reads /b/x, and not what that leads to."""
    opened = ['1 openat(AT_FDCWD</w>, "/b/x", O_RDONLY) = 3</l/e/b/x>', '1 read(3</l/e/b/x>, "x"..., 99) = 6', "1 close(3</l/e/b/x>) = 0"]
    shows = '1 newfstatat(AT_FDCWD</b>, "x", {st_mode=S_IFLNK|0777, st_size=10, ...}, AT_SYMLINK_NOFOLLOW) = 0'
    reads, opens = '1 readlink("x", "../l/e/b/x", 64) = 10', ['1 openat(AT_FDCWD</b>, "y", O_RDONLY) = 3</b/y>', "1 close(3</b/y>) = 0"]
    for there in ([shows, reads], [shows], [*opens, reads]):
        for order in ("trace", "depend"):
            report, sizes = replayed([*opened, '1 chdir("/b") = 0', *there, '1 chdir("/l/e/b") = 0',
                                      '1 newfstatat(AT_FDCWD</l/e/b>, "x", {st_mode=S_IFREG|0755, st_size=6, ...}, AT_SYMLINK_NOFOLLOW) = 0', '1 chdir("/w") = 0', *opened], "--order", order)
            assert report["mismatched"] == 0 and sizes["/l/e/b/x"] == 6, (there, report["mismatches"], sizes)


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


def test_one_text_below_two_directories_is_two_names():
    with Tmp() as tmp:
        begin = ['10 openat(AT_FDCWD, "/d1/x", O_RDWR|O_CREAT|O_EXCL, 0666) = 5</d1/x> <0.000001>', '10 openat(AT_FDCWD, "/d1", O_RDONLY|O_DIRECTORY) = 3</d1> <0.000001>',
                 '10 openat(AT_FDCWD, "/d2", O_RDONLY|O_DIRECTORY) = 4</d2> <0.000001>']
        for name in "xy":
            calls = [f'10 linkat(3</d1>, "x", 4</d2>, "{name}", 0 <unfinished ...>', '11 unlink("/d1/x") = 0 <0.000001>', "10 <... linkat resumed>) = 0 <0.000003>"]
            assert [pid for pid, _ in order_of(tmp, begin + calls)][-2:] == [10, 11], name
            calls = [f'10 renameat(3</d1>, "x", 4</d2>, "{name}" <unfinished ...>', '11 access("/d1/x", F_OK) = -1 ENOENT (x) <0.000001>', "10 <... renameat resumed>) = 0 <0.000003>"]
            assert [pid for pid, _ in order_of(tmp, begin + calls)][-2:] == [10, 11], name


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
                    f.writelines(line + "\n" for line in ['7 mkdir("/q", 0755) = 0', '7 bind(5, {sa_family=AF_INET, sin_port=htons(1), sin_addr=inet_addr("127.0.0.1")}, 16) = 0'] * bool(process) + [process + before[0], *(process + line for line in before[1:]), process + waits[0], *seen, *(process + line for line in waits[1:] + after)])
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


def test_a_link_that_is_refused_as_no_directory_is_no_file_of_others():
    """`ln -sfn` opens the name by O_NOFOLLOW: what is no directory may be the link that is known."""
    for refused in ('openat(AT_FDCWD, "/w/l", O_RDONLY|O_NOFOLLOW|O_PATH|O_DIRECTORY) = -1 ENOTDIR (Not a directory)', 'rmdir("/w/l") = -1 ENOTDIR (Not a directory)'):
        report, sizes = replayed([f"7 {line}" for line in ('mkdir("/w", 0755) = 0', *WAITS_FOR_OTHERS, 'symlink("x2", "/w/l") = 0', refused, 'readlink("/w/l", "x2", 64) = 2')])
        assert report["mismatched"] == 0 and sizes["/w/l"] == 2, (refused, report["mismatches"], sizes)


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


def test_a_link_to_a_file_of_several_names_is_none_of_them():
    """Whichever comes first: that stat finds the file by each name, and that readlink tells which of them are links."""
    is_file = "{st_dev=makedev(0x8, 0x1), st_ino=77, st_mode=S_IFREG|0755, st_nlink=2, st_size=10}) = 0"
    calls = [f'1 stat("/u/file", {is_file}', f'1 stat("/u/link", {is_file}', '1 readlink("/u/link", "/e/link", 99) = 7', '1 readlink("/e/link", "/u/file", 99) = 7']
    more = [f'1 stat("/u/hard", {is_file}', '1 readlink("/u/hard", 0x7, 99) = -1 EINVAL (Invalid argument)', '1 readlink("/u/file", 0x7, 99) = -1 EINVAL (Invalid argument)',
            '1 open("/u/link", O_WRONLY|O_APPEND) = 3', '1 write(3, "x"..., 5) = 5', f'1 stat("/u/hard", {is_file}'.replace("size=10", "size=15")]
    for order in itertools.permutations(calls):
        for lines in (list(order), list(order) + more, more[:1] + list(order) + more[1:]):
            report, sizes = replayed(lines)
            assert report["mismatched"] == 0, (lines, report["mismatches"])
            assert sizes["/u/link"] == sizes["/e/link"] == 7 and sizes["/u/file"] == (10 if len(lines) == 4 else 15), (lines, sizes)


def test_a_file_of_several_names_by_way_of_a_link_that_is_told_later():
    """Each of its names is one, but two of which a link makes one; whatever of them was met, and wherever the link leads."""
    is_file = "{st_dev=makedev(0x8, 0x1), st_ino=77, st_mode=S_IFREG|0755, st_nlink=3, st_size=10}) = 0"
    other, by_link, own = (f'1 stat("{name}", {is_file}' for name in ("/a/f", "/l/s/f", "/u/l/s/f"))
    plain = ['1 open("/u/l/s/f", O_RDONLY) = 3', '1 read(3, "x"..., 99) = 10', "1 close(3) = 0"]
    reads = [line.replace("/u/l/s/f", "/l/s/f") for line in plain] + [line.replace("/u/l/s/f", "/a/f") for line in plain]
    link = ['1 readlink("/l", "u/l", 99) = 3']
    for met in ([other, by_link], [by_link, other], [other, by_link, own], [by_link, other, own], [other, by_link, *plain], [by_link, other, *plain], [own, other, by_link]):
        for told in (link, ['1 readlink("/l", "/u/l", 99) = 4'], ['1 readlink("/l", "m", 99) = 1', '1 readlink("/m", "u/l", 99) = 3'], ['1 chdir("/l") = 0', '1 getcwd("/u/l", 99) = 5'],
                     ['1 lstat("/l", {st_mode=S_IFLNK|0777, st_size=3, ...}) = 0', *link]):
            report, sizes = replayed(met + told + reads)
            assert report["mismatched"] == 0, (met, told, report["mismatches"])
            assert sizes["/a/f"] == sizes["/u/l/s/f"] == 10 and "/l" in sizes and sizes.get("/l/s/f") is None, (met, told, sizes)
    # What it leads to is no such name after all, but a link, too.
    for met in ([other, by_link], [by_link, other], [by_link, other, *plain]):
        for line in ('1 readlink("/u/l/s/f", "/a/f", 99) = 4', '1 readlink("/a/f", "/l/s/f", 99) = 6'):
            report, sizes = replayed(met + link + [line] + reads)
            assert report["mismatched"] == 0 and {sizes["/a/f"], sizes["/u/l/s/f"]} in ({4, 10}, {6, 10}), (met, line, report["mismatches"], sizes)


def test_what_left_by_way_of_a_link_that_is_told_later_was_there():
    """By its own name, whether it has several or not, and what the link was asked to be is all that tells of it."""
    read = ['1 open("/l/s/f", O_RDONLY) = 3', '1 read(3, "x"..., 99) = 10', "1 close(3) = 0"]
    leaves = {'1 unlink("/l/s/f") = 0': None, '1 rename("/l/s/f", "/l/s/g") = 0': "/u/l/s/g", '1 rename("/l/s/f", "/b") = 0': "/b", '1 rename("/l/s", "/l/t") = 0': "/u/l/t/f"}
    for line, there in leaves.items():
        for after in ([], ['1 open("/u/l/s/f", O_RDONLY) = -1 ENOENT (No such file or directory)']):
            report, sizes = replayed(read + [line, '1 readlink("/l", "u/l", 99) = 3'] + after)
            assert report["mismatched"] == 0, (line, report["mismatches"])
            assert "/u/l/s/f" not in sizes and (there is None or sizes[there] == 10), (line, sizes)


def test_a_link_that_came_where_a_directory_was_led_nowhere_before():
    """It was made by somebody whose calls are not in the trace."""
    for gone in (['rename("/l", "/old") = 0'], ['unlink("/l/f") = 0', 'rmdir("/l") = 0']):
        lines = ['1 open("/l/f", O_RDONLY) = 3', '1 read(3, "x"..., 99) = 10', "1 close(3) = 0", *("1 " + one for one in gone), '1 readlink("/l", "u", 99) = 1',
                 '1 open("/u/f", O_RDONLY) = 3', '1 read(3, "x"..., 99) = 3']
        report, _ = replayed(lines)
        assert [one["op"] for one in report["mismatches"]] == ["readlink"], (gone, report["mismatches"])


def test_a_guessed_link_on_the_way_by_one_that_calls_told():
    """An open by way of two links that readlink tells only later was taken to go by one: what that leads to is a directory, and what was opened is no link."""
    def opened(name):
        return [f'1 open("{name}", O_RDONLY) = 3</usr/lib/x/f>', '1 read(3</usr/lib/x/f>, "x"..., 99) = 6', "1 close(3</usr/lib/x/f>) = 0"]

    told = ['1 readlink("/lib64", "usr/lib64", 64) = 9', '1 readlink("/lib", "usr/lib", 64) = 7', '1 readlink("/lib64/f", "../../lib/x/f", 64) = 13']
    for first, second in itertools.permutations(("/lib64/f", "/lib/x/f")):
        report, sizes = replayed(opened(first) + opened(second) + told)
        assert report["mismatched"] == 0 and sizes["/usr/lib/x/f"] == 6 and sizes["/usr/lib64/f"] == 13, (first, report["mismatches"], sizes)


def test_a_link_that_turns_out_to_lead_nowhere():
    """lstat shows it, and a name below it that is not there may be in a directory: until it is not there for calls that follow links. One that is removed was no directory."""
    link, missing = '1 lstat("/a/l", {st_mode=S_IFLNK|0777, st_size=9, ...}) = 0', "-1 ENOENT (No such file or directory)"
    below, follows = f'1 stat("/a/l/x", 0x7) = {missing}', f'1 stat("/a/l", 0x7) = {missing}'
    opens, makes = f'1 open("/a/l", O_RDONLY) = {missing}', f'1 open("/a/l/x", O_WRONLY|O_CREAT, 0644) = {missing}'
    exists = '1 mkdir("/a/l", 0777) = -1 EEXIST (File exists)'
    for lines in ([link, below, follows], [below, link, opens], [link, makes], [link, below, makes, below], [exists, follows], [link, exists, below, follows]):
        for end in ([], ['1 rename("/a/l", "/a/m") = 0'], ['1 unlink("/a/l") = 0']):
            report, _ = replayed(lines + end)
            assert report["mismatched"] == 0, (lines + end, report["mismatches"])
    for lines in ([link, below], [below, link]):
        report, _ = replayed(lines + ['1 unlink("/a/l") = 0'])
        assert report["mismatched"] == 0, (lines, report["mismatches"])


def test_what_something_was_made_in_is_no_link_that_leads_nowhere():
    """What it led to went by a name that no call told: that it is not there later is all that comes back otherwise."""
    link, missing = '1 lstat("/a/l", {st_mode=S_IFLNK|0777, st_size=9, ...}) = 0', "-1 ENOENT (No such file or directory)"
    begins, made = [link, f'1 stat("/a/l/x", 0x7) = {missing}'], ['1 open("/a/l/x", O_WRONLY|O_CREAT, 0644) = 3', '1 write(3, "x"..., 3) = 3', "1 close(3) = 0"]
    for lines in (begins + made, begins + made + ['1 unlink("/a/l/x") = 0'], begins + ['1 mkdir("/a/l/x", 0755) = 0']):
        report, _ = replayed(lines + ['1 rename("/b/t", "/b/u") = 0', f'1 stat("/a/l", 0x7) = {missing}'])
        assert [m["op"] for m in report["mismatches"]] == ["stat"], (lines, report["mismatches"])


def test_a_link_that_an_open_refuses():
    """O_NOFOLLOW: whatever else tells what it leads to, before or after."""
    refused, missing = '1 open("/a/l", O_RDWR|O_NOFOLLOW) = -1 ELOOP (Too many levels of symbolic links)', "-1 ENOENT (No such file or directory)"
    link, reads = '1 lstat("/a/l", {st_mode=S_IFLNK|0777, st_size=9, ...}) = 0', '1 readlink("/a/l", "k", 99) = 1'
    for other in ('1 stat("/a/l", {st_mode=S_IFREG|0644, st_size=9, ...}) = 0', '1 stat("/a/l/x", {st_mode=S_IFREG|0644, st_size=9, ...}) = 0', f'1 stat("/a/l", 0x7) = {missing}',
                  '1 stat("/a/l", 0x7) = -1 ELOOP (Too many levels of symbolic links)', '1 open("/a/l", O_RDONLY) = 3', '1 mkdir("/a/l", 0777) = -1 EEXIST (File exists)', link):
        for lines in ([refused, other], [other, refused], [link, other, refused]):
            for end in ([], [reads], ['1 unlink("/a/l") = 0']):
                if end == [reads] and "= -1 ELOOP" in other:
                    continue  # /a/k is a link, then
                report, _ = replayed(lines + end)
                assert report["mismatched"] == 0, (lines + end, report["mismatches"])


def test_a_link_that_openat2_refuses():
    """RESOLVE_NO_SYMLINKS, where no other name on the way can be the link."""
    base = '1 openat(AT_FDCWD, "/a", O_RDONLY|O_DIRECTORY) = 3'
    no_link, made = '1 lstat("/a/d", {st_mode=S_IFDIR|0755, st_size=9, ...}) = 0', '1 mkdir("/a/d", 0777) = 0'

    def refused(name, flags="O_RDONLY"):
        return f'1 openat2(3, "{name}", {{flags={flags}, resolve=RESOLVE_NO_SYMLINKS}}, 24) = -1 ELOOP (Too many levels of symbolic links)'
    for flags in ("O_RDONLY", "O_RDONLY|O_NOFOLLOW", "O_PATH", "O_RDONLY|O_DIRECTORY", "O_RDWR|O_CREAT"):
        for other in ('1 readlink("/a/l", "k", 99) = 1', '1 open("/a/l", O_RDONLY) = 4', '1 stat("/a/l", 0x7) = -1 ENOENT (No such file or directory)',
                      '1 stat("/a/l/x", {st_mode=S_IFREG|0644, st_size=9, ...}) = 0', '1 unlink("/a/l") = 0'):
            for lines in ([refused("l", flags), other], [refused("l", flags)] * 2 + [other], [other, refused("l", flags)]):
                if lines[0] == other and "unlink" in other:
                    continue
                report, _ = replayed([base] + lines)
                assert report["mismatched"] == 0, (lines, report["mismatches"])
    for lines in ([no_link, refused("d/l")], [made, '1 symlink("k", "/a/d/l") = 0', refused("d/l")], ['1 symlink("e", "/a/d") = 0', refused("d/l")],
                  [no_link, refused("d/l"), '1 stat("/a/d/l", {st_mode=S_IFREG|0644, st_size=9, ...}) = 0'],
                  # One above may be the link: it leads nowhere, or to itself.
                  ['1 access("/a/n", F_OK) = -1 ENOENT (No such file or directory)', refused("n/l"), '1 readlink("/a/n", "zz", 99) = 2'],
                  ['1 open("/a/n/q", O_WRONLY|O_CREAT, 0644) = -1 ENOENT (No such file or directory)', refused("n/l"), '1 readlink("/a/n", "zz", 99) = 2'],
                  ['1 stat("/a/n", 0x7) = -1 ELOOP (Too many levels of symbolic links)', refused("n/l"), '1 unlink("/a/n") = 0'],
                  ['1 readlink("/a/n", "n", 9) = 1', refused("n/l"), '1 unlink("/a/n") = 0']):
        report, _ = replayed([base] + lines)
        assert report["mismatched"] == 0, (lines, report["mismatches"])
    # Known not to be there: a call that has not come back yet is making it.
    loop, began = "-1 ELOOP (Too many levels of symbolic links)", ['1 lstat("/a/l", 0x7) = -1 ENOENT (No such file or directory)', '2 symlink("k", "/a/l" <unfinished ...>']
    for open_ in (refused("l"), f'1 open("/a/l", O_RDONLY|O_NOFOLLOW) = {loop}'):
        report, _ = replayed([base, *began, open_, "2 <... symlink resumed>) = 0"])
        assert not {"lstat", "symlink"} & {m["op"] for m in report["mismatches"]}, (open_, report["mismatches"])


def test_what_may_be_a_directory_or_a_link_to_one_and_is_removed_as_a_file():
    for look in ("stat", "unlink"):
        more = ", 0x7" if look == "stat" else ""
        report, _ = replayed([f'1 {look}("/a/l/x"{more}) = -1 ENOENT (No such file or directory)', '1 unlink("/a/l") = 0'])
        assert report["mismatched"] == 0, (look, report["mismatches"])
    report, _ = replayed(['1 rename("/a/l", "/a/m") = 0', '1 stat("/a/m/x", 0x7) = -1 ENOENT (No such file or directory)', '1 unlink("/a/m") = 0'])
    assert report["mismatched"] == 0, report["mismatches"]


def test_what_is_a_directory_to_others_and_gets_a_second_name():
    """A link to one."""
    missing, linked = "-1 ENOENT (No such file or directory)", '1 link("/a/l", "/a/m") = 0'
    for look in ('1 stat("/a/l", {st_mode=S_IFDIR|0755, st_size=9, ...}) = 0', '1 stat("/a/l/x", {st_mode=S_IFREG|0644, st_size=9, ...}) = 0',
                 '1 open("/a/l", O_RDONLY|O_DIRECTORY) = 3', f'1 stat("/a/l/x", 0x7) = {missing}'):
        for more in ([], ['1 unlink("/a/m") = 0'], ['1 lstat("/a/m", {st_mode=S_IFLNK|0777, st_size=9, ...}) = 0', '1 unlink("/a/l") = 0']):
            report, _ = replayed([look, linked] + more)
            assert report["mismatched"] == 0, ([look, linked] + more, report["mismatches"])
    for name in ("l", "m"):
        for gone in (f'1 access("/a/{name}", F_OK) = {missing}', f'1 open("/a/{name}/y", O_WRONLY|O_CREAT, 0600) = {missing}'):
            lines = [f'1 stat("/a/l/x", 0x7) = {missing}', linked, gone, f'1 stat("/a/{name}/x", 0x7) = {missing}', f'1 unlink("/a/{name}") = 0']
            report, _ = replayed(lines)
            assert report["mismatched"] == 0, (lines, report["mismatches"])
    # A link that was told before keeps where it leads.
    for lines in (['1 stat("/a/l/x", {st_mode=S_IFREG|0644, st_size=9, ...}) = 0', '1 stat("/a/t/x", {st_mode=S_IFREG|0644, st_size=9, ...}) = 0', '1 readlink("/a/l", "t", 99) = 1'],
                  ['1 stat("/a/l/y", 0x7) = -1 ELOOP (Too many levels of symbolic links)', '1 readlink("/a/l", "l", 9) = 1']):
        for end in (linked, '1 unlink("/a/l") = 0'):
            report, _ = replayed([*lines, end])
            assert report["mismatched"] == 0, (lines, end, report["mismatches"])
    for end in (['1 stat("/a/l", 0x7) = ' + missing], ['1 unlink("/a/l") = 0'], ['1 unlink("/a/m") = 0']):
        report, _ = replayed([linked, f'1 stat("/a/l/x", 0x7) = {missing}'] + end)
        assert report["mismatched"] == 0, (end, report["mismatches"])


def test_sockets_that_calls_bound_which_were_not_traced():
    """strace -e trace=file,desc: nothing else makes what a stat says is a socket."""
    begin, missing, sock = '1 execve("/bin/a", ["a"], 0x1) = 0', "-1 ENOENT (No such file or directory)", '1 stat("/d/s", {st_mode=S_IFSOCK|0755, st_size=0, ...}) = 0'
    made, fork = ['1 mkdir("/d", 0700) = 0', f'1 unlink("/d/s") = {missing}'], "1 fork() = 2"
    for found in ([sock, '1 chmod("/d/s", 0600) = 0', '1 unlink("/d/s") = 0'], [sock, '1 rename("/d/s", "/d/t") = 0'], [sock, '1 unlink("/d/s") = 0', f'1 access("/d/s", F_OK) = {missing}'] * 2):
        lines = [begin, *made, *found]
        report, _ = replayed(lines)
        assert report["mismatched"] == 0 and any("has no bind" in note for note in report["notes"]), (lines, report["mismatches"])
    assert "has no bind" in notes_of([begin, fork, *made, sock])
    # What was bound is known; and what else is found may be a file, which somebody made whom the trace lacks.
    bound = ['1 socket(AF_UNIX, SOCK_STREAM, 0) = 3', '1 bind(3, {sa_family=AF_UNIX, sun_path="/d/t"}, 7) = 0']
    bound_elsewhere = '1 bind(3, {sa_family=AF_INET, sin_port=htons(1), sin_addr=inet_addr("127.0.0.1")}, 16) = 0'
    for lines in ([begin, bound_elsewhere, *made, sock], [begin, *made, *bound, sock], [begin, *made, '1 open("/d/s", O_RDONLY) = 3'],
                  [begin, *made, '1 access("/d/s", F_OK) = 0', '1 open("/d/s", O_WRONLY) = 3', '1 write(3, "", 9) = 9'],
                  [begin, *made, '1 stat("/d/s", {st_mode=S_IFREG|0755, st_size=0, ...}) = 0']):
        assert "has no bind" not in notes_of(lines), lines


def test_names_that_binds_made_which_no_call_and_no_stat_tells():
    """A daemon by strace -y -e trace=file,desc: that network calls are missing, sockets tell that no call made."""
    begin, missing, socket = '1 execve("/bin/a", ["a"], 0x1) = 0', "-1 ENOENT (No such file or directory)", "1 close(3<socket:[7]>) = 0"
    free, chmod, unlink = f'1 unlink("/d/s") = {missing}', '1 chmod("/d/s", 0600) = 0', '1 unlink("/d/s") = 0'
    begin = [begin, '1 mkdir("/d", 0700) = 0']
    for lines in ([socket, free, chmod, unlink], [free, socket, chmod, unlink, free], [socket, free, unlink, unlink, chmod, unlink], ["1 close(3<UNIX-STREAM:[7]>) = 0", free, chmod], [free, socket, chmod, '1 rename("/d/s", "/d/t") = 0'], [socket, chmod, unlink], [socket, chmod.replace("1", "2", 1)]):
        report, _ = replayed([*begin, *lines])
        assert report["mismatched"] == 0 and any("has no bind" in note for note in report["notes"]), (lines, report["mismatches"])
    # Nothing tells that binds are missing, or another may have made the name, or removed it.
    for lines in ([free, chmod], ["1 close(3<pipe:[7]>) = 0", free, chmod], ["1 read(0<socket:[7]>, \"\", 9) = 0", free, chmod], [socket, free.replace("1", "2", 1), chmod],
                  ["1 connect(3<socket:[7]>, {sa_family=AF_UNIX, sun_path=\"/a\"}, 110) = 0", free, chmod], [socket, free, '1 open("/d/s", O_RDONLY) = 3'],
                  [socket, free, '1 mknod("/d/s", S_IFREG|0600) = 0', '2 unlink("/d/s") = 0', chmod]):
        assert "has no bind" not in notes_of([*begin, *lines]), lines
    # What others have made may be a directory.
    for found in ('mkdir("/d/s", 0700) = -1 EEXIST (File exists)', 'access("/d/s", F_OK) = 0', 'chdir("/d/s") = 0', 'readlink("/d/s", 0x7, 9) = -1 EINVAL (Invalid argument)', 'symlink("a", "/d/s") = -1 EEXIST (File exists)'):
        report, _ = replayed([*begin, socket, "1 " + found, '1 open("/d/s/f", O_WRONLY|O_CREAT, 0600) = 3', '1 write(3, "x", 1) = 1'])
        assert not any("has no bind" in note for note in report["notes"]), (found, report["notes"])
    moved = [*begin, socket, '1 mkdir("/d/a", 0700) = 0', '1 mknod("/d/a/x", S_IFREG|0600) = 0', '1 rename("/d/a", "/d/b") = 0', '2 chmod("/d/a/x", 0600) = 0', '1 mkdir("/d/a", 0700) = 0']
    assert "has no bind" not in notes_of(moved)


def test_a_circle_of_links_that_only_the_second_name_leads_to():
    """The first one was found before that."""
    report, _ = replayed(['1 stat("/a/d/x", 0x7) = -1 ENOENT (No such file or directory)', '1 link("/a/f", "/a/l/x") = -1 ELOOP (Too many levels of symbolic links)'])
    assert report["mismatched"] == 0, report["mismatches"]


if __name__ == "__main__":
    main(globals())
