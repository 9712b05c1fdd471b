#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Provider strace: threads, processes, who made them, and how they end."""
import os
import re

from harness import Tmp, feign, main
from strace_text import OPEN, SEEN, calls, notes_of, replayed, same, text_of


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


def test_a_call_that_a_signal_ended_is_not_waited_for():
    """However much comes behind it, it is told, and what comes is not held for it."""
    begin = ['20 openat(AT_FDCWD, "/x", O_RDONLY) = 3', "20 close(3 <unfinished ...>", "20 +++ killed by SIGKILL +++"]
    for behind in 1, (1 << 18) + 1:
        got = calls(begin + ["10 fsync(5) = 0"] * behind)
        same(got[1:4], ["close() = ?", "exit_group() = ?", "fsync(fd=#2) = 0"])


def test_who_is_killed_after_a_call_that_came_late():
    """It made a process that was seen before: there is no doubt of its result, nor, in its place, of the call that comes next."""
    lines = ['10 100000000.01 openat(AT_FDCWD, "/f", O_RDONLY) = 3 <0.0001>', "20 100000000.02 close(3 <unfinished ...>", "62 100000000.03 getpid() = 62 <0.0001>",
             "10 100000000.04 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD) = 62 <0.0001>", '62 100000000.05 openat(AT_FDCWD, "/g", O_RDONLY) = 4 <0.0001>',
             "10 100000000.06 +++ killed by SIGKILL +++", "20 100000000.07 <... close resumed>) = 0 <0.05>"]
    assert [re.search(r"\] (\w+)\(", line)[1] for line in text_of(lines)[0]] == ["openat", "close", "clone", "openat", "exit_group"]


def test_ends_of_processes():
    """By a call, by a signal, or unseen: each ends once."""
    lines = ['7 openat(AT_FDCWD, "/f", O_RDONLY) = 3', '7 exit_group(0) = ?', '7 +++ exited with 0 +++',
             '8 openat(AT_FDCWD, "/f", O_RDONLY) = 3', '8 +++ killed by SIGKILL +++',
             '9 +++ exited with 0 +++', '8 openat(AT_FDCWD, "/f", O_RDONLY) = 3']
    same(calls(lines), [SEEN, 'exit_group() = ?', SEEN, 'exit_group() = ?', SEEN])
    threads = ['5 openat(AT_FDCWD, "/f", O_RDONLY) = 3', '5 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD) = 6',
               '6 openat(AT_FDCWD, "/f", O_RDONLY) = 4', '6 +++ killed by SIGKILL +++', '5 +++ killed by SIGKILL +++']
    same(calls(threads)[3:], ['exit() = ?', 'exit_group() = ?'])


def test_who_was_killed_before_a_call_is_in_the_trace():
    """Its end is all that there is of it: there is nothing of it that a trace could lack."""
    made = "clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD) = 8"
    lines = [f"7 {made}", "7 kill(8, SIGKILL) = 0", "8 +++ killed by SIGKILL +++", "7 wait4(8, NULL, 0, NULL) = 8"]
    assert replayed(lines)[0]["notes"] == []
    assert len(replayed([line for line in lines if "+++" not in line])[0]["notes"]) == 1  # it was not traced
    started = lines[:1] + ['8 execve("/p", ["p"], 0x1) = 0'] + lines[1:]  # and before the first one of its program
    assert replayed(started)[0]["notes"] == []
    assert len(replayed([line for line in started if "+++" not in line])[0]["notes"]) == 1
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


def test_who_was_stopped_before_any_call_is_not_missing():
    """A wait that tells of stops is a sign of a process that is not in the trace only where no children are; a tracer's never."""
    stopped = [f"1 {at} fork() = 3" if i == 0 else f"1 {at} wait4(3, [{{WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP}}], %s, NULL) = 3" if i == 1 else f'3 {at} mkdir("/b", 0700) = 0' for i, at in enumerate((5, 6, 7))]
    child = ["1 1 fork() = 2", '2 2 mkdir("/a", 0700) = 0', "2 3 exit_group(0) = ?", "1 4 wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 2"]
    for lines, flags, missing in (child + stopped, "WUNTRACED", 0), (child + stopped, "WSTOPPED", 0), (child + stopped, "WUNTRACED|WCONTINUED", 0), (child + stopped, "0", 1), (stopped[:2], "WUNTRACED", 1), (stopped, "__WALL", 0):
        report, _ = replayed([line % flags if "%s" in line else line for line in lines])
        assert report["mismatched"] == 0 and str(report["notes"]).count("waited for") == missing, (flags, report["notes"])
    # A shell with job control waits so, too, for a program of whose calls there are none but those before it began.
    program = ["1 5 fork() = 3", '3 6 execve("/static", ["x"], 0x1) = 0', "1 7 wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], WUNTRACED|WCONTINUED, NULL) = 3", '1 8 open("/a/f", O_RDONLY) = 3']
    report, _ = replayed(child + program)
    assert report["mismatched"] == 0 and str(report["notes"]).count("waited for") == 1, (report["mismatches"], report["notes"])
    # gdb looks in that way after whom its program has forked.
    report, _ = replayed(["1 1 fork() = 2", "2 2 fork() = 3", "1 3 wait4(3, [{WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP}], 0, NULL) = 3", '3 4 mkdir("/b", 0700) = 0'])
    assert report["mismatched"] == 0 and "waited for" not in str(report["notes"]), report["notes"]


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


if __name__ == "__main__":
    main(globals())
