#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Provider strace: every form that strace's text has, and what a careless parser breaks on."""
import gzip
import json
import os
import re
import resource
import shutil
import subprocess

from harness import CORPUS, Skip, Tmp, feign, main, refuses
from strace_text import OPEN, OVER, SEEN, THREAD, calls, notes_of, replayed, same, text_of

VARIANTS = os.path.join(CORPUS, "strace-apps", "strace-variants")


def test_prefixes():
    for prefix in ("", "7 ", "7   ", "[pid     7] ", "02:50:01 ", "02:50:01.123456 ", "1795229401.204541 ", "7 1795229401.204541123 ", "     0.000219 ",
                   "7      0.000219 ", "1795229401.204541 (+     0.000010) ", "7 1795229401.153293 (+     0.000000) ", "7<python3> 1795229402.846590 ",
                   "7 1795229401.603323 [ 257] [00007fd2243eaad7] ", "[ 257] ", "7 [00007fd2243eaad7] ",
                   "7 1795229401.603323 (+     0.000010) [ 257] [00007fd2243eaad7] "):
        for suffix in ("", " <0.000012>", " <0.000119598>"):
            same(calls([prefix + OPEN + suffix]), [SEEN])


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
    # A terminal's, whose first process has no number at first; a time that is not strace's (ts) stands before it.
    lines = [OPEN, "vfork(strace: Process 8 attached", " <unfinished ...>", "[pid 8] fsync(3) = 0", "[pid 8] +++ exited with 0 +++", "<... vfork resumed>) = 8", "close(3) = 0"]
    for before in (" ", "    ", "\t", "20:00:00 ", "20:00:00 [ 257] "):
        same(re.sub(r"compute=\d+", "", "\n".join(text_of([before + line for line in lines])[0])), re.sub(r"compute=\d+", "", "\n".join(text_of(lines)[0])))
def test_keys_that_a_terminal_shows():
    """Pressed while the program computes, they stand before the next line."""
    signal, over = "--- SIGINT {si_signo=SIGINT, si_code=SI_KERNEL} ---", "+++ killed by SIGINT +++"
    plain = text_of([OPEN, signal, over])[0]
    for keys in ("^C", "^C^C", "^\\", "^Z"):
        same(text_of([OPEN, keys + signal, over])[0], plain)
        same(text_of([OPEN, signal, over, keys])[0], plain)


def test_lines_of_a_log_are_not_the_command_that_was_typed():
    with Tmp() as tmp:
        path = os.path.join(tmp, "t.strace")
        with open(path, "w", encoding="ascii") as f:
            f.write(f"Nov 30 10:00:00 host strace[7]: {OPEN}\n")
        refuses("info", path, "--provider", "strace", text=r't\.strace:1: "Nov 30 .*want')


def test_two_calls_in_a_line_are_an_error():
    """Somebody joined lines, or ends them by \\r alone."""
    with Tmp() as tmp:
        path = os.path.join(tmp, "t.strace")
        for between in (" ", "\r", "\t", " 7 ", " [pid 8] "):
            with open(path, "w", encoding="ascii", newline="") as f:
                f.write(f"{OPEN}\n{OPEN}{between}close(3) = 0\nclose(3) = 0\n")
            refuses("info", path, text=r"t\.strace:2: openat\(\): more text behind its result: a lost newline, or")
    # What strace itself says there, or somebody typed.
    same(calls([OPEN, 'open("/g", O_RDONLY) = 4</a -> song(1).mp3>', "brk(0) = 0x1 as it was", "--- SIGCHLD {si_signo=SIGCHLD,"])[1:2], calls([OPEN, 'open("/g", O_RDONLY) = 4</a ->'])[1:2])
    same(calls([OPEN, "fcntl(3, F_GETFL) = 0x8000 (flags O_RDONLY|O_LARGEFILE)", 'open("/g", O_RDONLY) = -1 ENOENT (No such file or directory)', 'open("/h", O_RDONLY) = 4</h>(deleted)'])[1:],
         calls([OPEN, "fcntl(3, F_GETFL) = 0x8000", 'open("/g", O_RDONLY) = -1 ENOENT', 'open("/h", O_RDONLY) = 4</h (deleted)>'])[1:])


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


def test_raw_positions_of_32_bits_are_two_words():
    """As -e raw shows them, in the kernel's order; of 64 bits, too, the kernel has two for preadv2, whose flags are behind them."""
    same(calls([OPEN, "ftruncate64(0x3, 0x18711a00, 0x2) = 0", "pwrite64(0x3, 0x811b3a0, 0x64, 0x65a0bc00, 0x1) = 0x64", "fallocate(0x3, 0x1, 0xe2cc3100, 0x1, 0x2000, 0) = 0",
                "sync_file_range(0x3, 0x2a05f200, 0x1, 0x65a0bc00, 0x1, 0x2) = 0", "fadvise64_64(0x3, 0x2a05f200, 0x1, 0x65a0bc00, 0x1, 0x4) = 0",
                "fadvise64(0x3, 0x2a05f200, 0x1, 0x1000, 0x4) = 0", "readahead(0x3, 0x2a05f200, 0x1, 0x2000) = 0", "pwritev2(0x3, 0xffb417fc, 0x2, 0xffffffff, 0xffffffff, 0x10) = 0x12c",
                "_llseek(0x3, 0x1, 0x2a05f200, 0xffff7be0, 0) = 0"])[1:],
         ["ftruncate(fd=#1, length=9000000000) = 0", "pwrite64(fd=#1, count=100, offset=6000000000) = 100", "fallocate(fd=#1, mode=FALLOC_FL_KEEP_SIZE, offset=8100000000, len=8192) = 0",
          "sync_file_range(fd=#1, offset=5000000000, nbytes=6000000000, flags=SYNC_FILE_RANGE_WRITE) = 0", "fadvise64(fd=#1, offset=5000000000, len=6000000000, advice=POSIX_FADV_DONTNEED) = 0",
          "fadvise64(fd=#1, offset=5000000000, len=4096, advice=POSIX_FADV_DONTNEED) = 0", "readahead(fd=#1, offset=5000000000, count=8192) = 0",
          "pwritev2(fd=#1, offset=9000000000, flags=RWF_APPEND) = 300", "_llseek(fd=#1, offset=5000000000, whence=SEEK_SET) = 5000000000"])


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


def test_a_change_of_mode_is_no_call_whatever_stands_before_it():
    for before in ("", "7 ", "[pid  7] ", "01:34:18.572644 ", "[pid  7] 01:34:18.572644 ", "[  59] ", "[pid  7] [  59] ", "     0.000010 ", "7 [00007f0000000001] "):
        # The first line may be one (strace -p), and does not tell when the trace began.
        same(calls([before + "[ Process PID=7 runs in 32 bit mode. ]", before + OPEN, before + "[ Process PID=7 runs in 64 bit mode. ]", before + "close(3) = 0"]), [SEEN, "close(fd=#1) = 0"])


def test_the_command_that_was_typed():
    same(calls(["me@there:~/x$ strace -f ./a.out", "\u276f strace ./a.out", OPEN, "_exit(0) = ?"], ), calls([OPEN, "exit(0) = ?"]))
    same(calls(["Script started on 2026-01-31 10:00:00+00:00 [<not executed on terminal>]", OPEN, "", 'Script done on 2026-01-31 10:00:01+00:00 [COMMAND_EXIT_CODE="0"]']), [SEEN])
    with Tmp() as tmp:
        path = os.path.join(tmp, "t.strace")
        for lines, line in (([OPEN, "$ strace ./a.out"], 2), (["$ ./a.out", OPEN], 1), ([OPEN, "[...]"], 2), ([OPEN, "7 [...] "], 2)):
            with open(path, "w", encoding="utf-8") as f:
                f.write("\n".join(lines) + "\n")
            refuses("info", path, "--provider", "strace", text=rf't\.strace:{line}: "{re.escape(lines[line - 1].rstrip())}": want .*CALL')


def test_lines_that_are_numbered():
    """As cat -n, nl and grep -n do, and editors; strace -f may well have processes that follow each other."""
    lines = ['7 getcwd("/d", 4096) = 3', '7 openat(AT_FDCWD, "f", O_RDONLY) = 3', "7 pread64(3,  <unfinished ...>", '8 chdir("/") = 0', '7 <... pread64 resumed>"x", 1, 0) = 1',
             " > /lib/libc.so.6(read+0x1) [0x2]", "7 close(3) = 0"]
    for form in "{:6}\t{}", "{:6}  {}", "{} {}", "{}:{}":
        numbered = [form.format(at, line) for at, line in enumerate(lines, 1)]
        for changed in (numbered, ["\ufeff" + numbered[0], *numbered[1:]], [*numbered[:2], "       ", *numbered[2:]]):
            same(text_of(changed)[0], text_of(lines)[0])
    hours = [f'{hour:02}:00:00 mkdir("/{hour}", 0777) = 0' for hour in range(1, 8)]
    assert len(text_of(hours)[0]) == 7
    for first, streams in ((2, 8), (1, 1)):
        found, _ = text_of([f'{pid} mkdir("/{pid}", 0777) = 0' for pid in range(first, first + 8)])
        assert len({line.split("]")[0] for line in found}) == streams, found
    # Processes that are called as lines are, but go on.
    found, _ = text_of([f'{pid} mkdir("/{pid}{more}", 0777) = 0' for more in "ab" for pid in range(1, 7)])
    assert len({line.split("]")[0] for line in found}) == 6, found


def test_what_is_no_call():
    found, r = text_of(["strace: Process 7 attached", OPEN, " > /usr/lib/libc.so.6(open+0x1) [0x2]", " | 00000  61 62   ab |", " * 100 bytes in buffer 0",
                        "--- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---", "--- stopped by SIGTTOU ---", "+++ exited with 0 +++", "+++ killed by SIGKILL (core dumped) +++", "",
                        "% time     seconds  usecs/call     calls    errors syscall", "------ ----------- ----------- --------- --------- ----------------",
                        " 20.46    0.000239           0       364        30 newfstatat"])
    assert len(found) == 2 and " exit_group() = ?" in found[1], found


def test_a_stack_behind_a_call_that_is_under_way():
    """strace -k writes the stack of one process's exit over the end of another's line."""
    begun, frames = '7 newfstatat(AT_FDCWD, "/d > e]",  ', ["> /usr/lib/libc.so.6(_exit+0x29) [0xd4409]", " > /usr/bin/a b() [0x4781]", " > unexpected_backtracing_error [0x0]"]
    rest = ['8 mkdir("/m", 0777) = 0', "7 <... newfstatat resumed>0x7ffc, 0) = -1 ENOENT (No such file or directory)", " > /usr/bin/dash() [0x5]", "7 close(3) = 0"]
    for frame in frames:
        found = calls([OPEN, begun + frame.lstrip(), " > /usr/bin/dash() [0x1]", *rest])
        same(found, calls([OPEN, begun + "<unfinished ...>", *rest]))
        assert len(found) == 4, found


def test_a_table_of_counts_is_no_trace():
    with Tmp() as tmp:
        path = os.path.join(tmp, "c.strace")
        with open(path, "w", encoding="ascii") as f:
            f.write("% time     seconds  usecs/call     calls    errors syscall\n------ ----------- ----------- --------- --------- ----------------\n"
                    " 20.46    0.000239           0       364        30 newfstatat\n")
        refuses("info", path, text=r"c\.strace:1: .*strace without -c")


def test_another_system_s_trace_is_none():
    """dtruss of macOS looks like strace at first, but its flags and errors are other numbers."""
    with Tmp() as tmp:
        path = os.path.join(tmp, "d.txt")
        with open(path, "w", encoding="ascii") as f:
            f.write('SYSCALL(args) \t\t = return\nopen("/etc/passwd\\0", 0x200, 0x1B6)\t\t = 3 0\nclose(0x3)\t\t = 0 0\nstat64("/none\\0", 0x7FF, 0x1)\t\t = -1 Err#2\n')
        refuses("info", path, text=r"d\.txt:2: open\(\): more text behind its result: .*another system's trace")
        with open(path, "w", encoding="ascii") as f:
            f.write('SYSCALL(args) \t\t = return\nstat64("/none\\0", 0x7FF, 0x1)\t\t = -1 Err#2\n')
        refuses("info", path, text=r"d\.txt:2: stat64\(\): the error is told by another system's number")


def test_a_trace_that_is_given_twice_is_said():
    with Tmp() as tmp:
        one, other = (os.path.join(tmp, name) for name in ("a.st", "b.st"))
        for path in (one, other):
            with open(path, "w", encoding="ascii") as f:
                f.write("1 1.0 " + OPEN + "\n")
        for files, times in (([one, other], 0), ([one, other, one, one], 1)):
            r = feign("info", *files)
            assert r.status == 0 and r.err.count("a.st: is given twice") == times and "b.st: is" not in r.err, r.err


def test_tabs_between_fields_are_blanks():
    lines = ["1  1700000100.000001 " + OPEN + " <0.000001>", "2  1700000100.000002 fsync(3) = -1 EBADF (Bad file descriptor) <0.000001>", "1  1700000100.000003 close(3)      = 0 <0.000001>"]
    want = text_of(lines)[0]
    for change in (r"^(\d+) +", "\\1\t"), (r" (\w+\()", "\t\\1"), (r" +=", "\t="), ("= ", "=\t"), (" <", "\t<"), (", ", ",\t"), ("^", "\t"), (" +", "\t"):
        got = [re.sub(*change, line) for line in lines]
        assert got != lines and text_of([*got, "\t"])[0] == want, (change, text_of(got)[0])
    assert len(want) == 3, want


def test_ltrace_s_trace_is_none():
    """Calls of libraries look like those of the system; how a process ended tells, or that of none the name is known."""
    with Tmp() as tmp:
        path = os.path.join(tmp, "l.txt")
        for lines, said in ((['1 malloc(12) = 0x1', '1 +++ exited (status 0) +++'], None), (['1 malloc(12) = 0x1', '1 free(0x1) = <void>', '1 strlen("a") = 1'], "malloc"),
                            (['1 malloc(12) = 0x1', '1 futex(0x1, FUTEX_WAKE, 1) = 0'], ""), (['1 futex(0x1, FUTEX_WAKE, 1) = 0', '1 ???( <unfinished ...>', '1 +++ killed by SIGKILL +++'], "")):
            with open(path, "w", encoding="ascii") as f:
                f.write("\n".join(lines) + "\n")
            if said is None:
                refuses("info", path, text=r"l\.txt:2: this is how ltrace tells that a process ended")
                continue
            r = feign("info", path, "--keep-going")
            assert r.status == 0 and re.findall(r"of no call in the trace is the name known.* is (\w+)\(\)", r.err) == ([said] if said else []), r.err


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


def test_a_thread_takes_over_in_the_middle_of_the_first_ones_line():
    """As strace before 4.20 may show it when a thread calls execve while the first one waits."""
    for who in ("%d  ", "[pid  %d] ", "%d  1.000000 ", "[pid  %d] 1.000000 "):
        first, thread = who % 7, who % 8
        found, _ = text_of([first + "mkdir(\"/d\", 0700) = 0", first + "clone(child_stack=0x1, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD) = 8", thread + 'execve("/x", ["x"], [/* 3 vars */] <unfinished ...>',
                            first + "futex(0x7f, FUTEX_WAIT_BITSET|FUTEX_CLOCK_REALTIME, 8, NULL, ffffffff" + first + "+++ superseded by execve in pid 8 +++",
                            first + "<... execve resumed> ) = 0", first + 'chdir("/d") = 0'])
        same([re.sub(r"^\[(\d) .*?\] (\w+)\(.*\) = (\S+) <.*$", r"\1 \2 \3", f) for f in found], ["1 mkdir 0", "1 clone 8", "1 execve 0", "1 chdir 0"])
    for time in ("", "1.000000 "):   # -ff
        found, _ = text_of({"t.7": [time + "clone(child_stack=0x1, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD) = 8", time + "futex(0x7f, FUTEX_WAIT_BITSET|FUTEX_CLOCK_REALTIME, 8, NULL, ffffffff" + time +
                                    "+++ superseded by execve in pid 8 +++", time + "<... execve resumed> ) = 0", time + 'chdir("/d") = 0'],
                            "t.8": [time + 'execve("/x", ["x"], [/* 3 vars */] <pid changed to 7 ...>']}, name="t")
        assert found[-1].startswith("[1 ") and " chdir(" in found[-1], found


def test_a_terminal_on_which_nobody_is_said_to_join():
    """As strace -q has it: who the first one is tells the call that it goes on with, or that it is nobody's child."""
    made, work, end = "clone(child_stack=NULL, flags=SIGCHLD", ["[pid     8] fsync(3) = 0", "[pid     8] exit_group(0) = ?"], "[pid     8] +++ exited with 0 +++"
    for begin in ([made + " <unfinished ...>", work[0], "[pid     7] <... clone resumed>) = 8", "[pid     7] wait4(-1,  <unfinished ...>"], [made + ") = 8", "[pid     7] wait4(-1,  <unfinished ...>", work[0]],
                  [made + ") = 8", "wait4(-1,  <unfinished ...>", work[0]], [made + " <unfinished ...>", work[0], "[pid     7] <... clone resumed>) = 8", "[pid     7] wait4(-1,  <unfinished ...>", "[pid     8] fsync(3 <unfinished ...>", "[pid     8] <... fsync resumed>) = 0"]):
        for ends in ([work[1], end], [work[1]], ["[pid     8] +++ killed by SIGKILL +++"]):   # in the middle: -qq
            found, _ = text_of([OPEN, *begin, *ends, "<... wait4 resumed>NULL, 0, NULL) = 8", "fsync(3) = 0"])
            assert [f[1] for f in found if " fsync" in f] == ["2"] * (len(begin) // 6 + 1) + ["1"] and [f[1] for f in found if " wait4" in f] == ["1"], found
            assert all('path="/f"' in f for f in found if " fsync" in f), found
    # The first one has no number again, though -qq does not tell that the other one was killed.
    found, _ = text_of([OPEN, made + ") = 8", "wait4(-1,  <unfinished ...>", work[0], "<... wait4 resumed>NULL, 0, NULL) = 8", "close(3) = 0"])
    assert [f[1] for f in found] == ["1", "1", "2", "1", "1"], found
    # Its child's child may be seen before the call that made it has ended.
    found, _ = text_of([OPEN, made + ") = 8", "[pid     8] " + made + " <unfinished ...>", "[pid     9] fsync(3) = 0", "[pid     8] <... clone resumed>) = 9", "[pid     7] fsync(3) = 0"])
    assert [f[1] for f in found if " fsync" in f] == ["3", "1"], found
    # The first one ends first.
    found, _ = text_of([OPEN, made + ") = 8", work[0], "[pid     7] exit_group(0) = ?", "close(3) = 0"])
    assert [f[1] for f in found] == ["1", "1", "2", "1", "2"], found
    # Two to which strace was attached: whoever is left has no number.
    found, _ = text_of(["[pid     7] " + OPEN, "[pid     8] fsync(4) = 0", "[pid     8] exit_group(0) = ?", "close(3) = 0"])
    assert [f[1] for f in found if "exit" not in f] == ["1", "2", "1"], found


def test_a_program_writes_to_the_terminal_that_it_is_traced_on():
    same(calls([OPEN, 'write(1, "one\\ntwo \\"(\\n"..., 129one', "two \"(", "f(x) = 3 <", ') = 129 <0.000010>', 'write(2, "$ (\\"", 4$ (") = 4', 'write(1, "5\\n", 25', ") = 2",
                'read(0, ls', '"ls\\n", 1024) = 3', 'writev(1, [{iov_base="a", iov_len=1}, {iov_base="\\n", iov_len=1}], 2a', ") = 2", "fsync(3hello", "", ") = 0",
                'wait4(-1, of a child', '[{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 8', "poll([{fd=3}], 1, -1two", "lines", ") = 1"])[1:],
         ["write(fd=#2, count=129) = 129", "write(fd=#3, count=4) = 4", "write(fd=#2, count=2) = 2", "read(fd=#4, count=1024) = 3", "writev(fd=#2, iov=[1 1]) = 2", "fsync(fd=#1) = 0",
          "wait4(options=0) = 8"])
    # What looks like calls' ends, in what is written.
    same(calls([OPEN, 'write(1, "f(2) = 4\\n", 9f(2) = 4', ") = 9", 'write(1, "f(1) = 1\\nf(3) = 9\\n", 18f(1) = 1', "f(3) = 9", ") = 18", 'write(1, "5(x) = 1\\n", 95(x) = 1', ") = 9",
                'write(1, "\\x35\\x0a", 25', ") = 2", "fsync(3) = 0"]),
         [SEEN, "write(fd=#2, count=9) = 9", "write(fd=#2, count=18) = 18", "write(fd=#2, count=9) = 9", "write(fd=#2, count=2) = 2", "fsync(fd=#1) = 0"])
    # Another thread's line behind a number: its end is seen later.
    for end in ([" <unfinished ...>", "[pid     7] <... write resumed>) = 9", "[pid     8] <... openat resumed>) = 4"], [") = 4", "[pid     7] <... write resumed>) = 9"]):
        found = text_of(["[pid     7] " + OPEN, '[pid     7] write(1, "thread 8\\n", 9 <unfinished ...>', '[pid     8] openat(AT_FDCWD, "/g", O_WRONLY|O_CREAT, 0640thread 8', *end])[0]
        assert [f for f in found if "mode=0640) = 4 " in f], found
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
    # What another writes without a newline has not ended the line.
    found = text_of(["[pid     7] " + OPEN, '[pid     8] write(1, "4", 1 <unfinished ...>', '[pid     7] pread64(3, "", 16, 104', '[pid     9] write(1, "hello\\n", 6hello', ") = 0",
                     "[pid     8] <... write resumed>) = 1"])[0]
    assert "pread64" in found[1] and "offset=104)" in found[1], found
    # What git diff writes looks like signals and ends at first.
    diff = ['write(1, "--- a\\n+++ b\\n", 12--- a', "+++ b"]
    same(calls([OPEN, *diff, ") = 12", "fsync(3) = 0"]), [SEEN, "write(fd=#2, count=12) = 12", "fsync(fd=#1) = 0"])
    found, _ = text_of(["[pid     7] " + OPEN, "[pid     7] " + diff[0].replace("--- a", " <unfinished ...>"), "[pid     8] fsync(4) = 0", "--- a", "+++ b", "[pid     7] <... write resumed>) = 12", "[pid     7] fsync(3) = 0"])
    assert not any("exit" in f for f in found) and 'fsync(fd=#1' in found[-1], found
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


def test_what_strace_says_of_itself_by_any_name():
    for by in ("strace", "/usr/bin/strace", "strace-4.26", "./strace-6.8/src/strace_new"):
        said = by + ": WARNING: Proper structure decoding for this personality is not supported"
        same(calls([said, OPEN, said, "close(3) = 0", said]), [SEEN, "close(fd=#1) = 0"])
    with Tmp() as tmp:
        path = os.path.join(tmp, "t.strace")
        with open(os.path.join(tmp, "many.log"), "w", encoding="ascii") as f:
            f.writelines([f"/usr/bin/strace: Process {n} attached\n" for n in range(7, 40)] + [f"[pid 7] {OPEN}\n"])
        r = feign("info", os.path.join(tmp, "many.log"))
        assert r.status == 0, r  # known to be a trace by what it says
        for by in ("tracer", "stracebacks"):
            with open(path, "w", encoding="ascii") as f:
                f.write(OPEN + f"\n{by}: a message of another program\n")
            refuses("info", path, text=rf"t\.strace:2: \"{by}: a message.*want")


def test_commands_of_fcntl():
    new = [OPEN, "fcntl(3, F_SETLKW, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=7, l_len=5}) = 0"]
    same(calls([OPEN, "fcntl(3, F_SETLKW, {type=F_WRLCK, whence=SEEK_SET, start=7, len=5}) = 0"]), calls(new))      # before 4.11
    same(calls([OPEN, "fcntl64(3, F_SETLKW64, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=7, l_len=5}) = 0"]), calls(new))   # of 32 bits
    # One that nobody knows is not F_DUPFD, which is 0.
    found = calls([OPEN, 'openat(AT_FDCWD, "/g", O_RDONLY) = 4', "fcntl(3, F_NEWER, 0) = 4", "fsync(4) = 0", "fcntl(3, 0, 5) = 5", "fsync(5) = 0"])
    assert "fsync(fd=#2)" in found[3] and "fsync(fd=#1)" in found[5], found


def test_an_open_for_neither_reading_nor_writing():
    """open(2), Linux-specific: access mode 3, which asks for both rights."""
    report, sizes = replayed(['mkdir("/d", 0700) = 0', 'open("/d", O_ACCMODE) = -1 EISDIR (x)', 'open("/f", O_ACCMODE|O_CREAT|O_EXCL, 0600) = 3', 'read(3, 0x1, 1) = -1 EBADF (x)'])
    assert (report["mismatched"], sizes) == (0, {"/d": None, "/f": 0}), (report["mismatches"], sizes)
    same(calls(['open("/f", O_ACCMODE|O_CLOEXEC) = 3']), ['open(pathname="/f", flags=O_ACCMODE|O_CLOEXEC, mode=00) = 3'])


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


def test_a_file_without_a_name_has_a_mode_where_none_is_shown():
    same(calls(['openat(AT_FDCWD, "/", O_RDWR|O_DIRECTORY|0x400000) = 3', 'openat(AT_FDCWD, "/", O_RDWR|O_TMPFILE, 0644) = 4',
                'open("/", O_RDWR|O_TMPFILE) = 5']),
         ['openat(pathname="/", flags=O_TMPFILE|O_RDWR, mode=0600) = 3', 'openat(pathname="/", flags=O_TMPFILE|O_RDWR, mode=0644) = 4',
          'open(pathname="/", flags=O_TMPFILE|O_RDWR, mode=0600) = 5'])


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
    lines, _ = text_of(['openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = 3', "syscall_0x1c4(0x3, 0x7fd5, 0x180, 0, 0, 0x6) = 0", "syscall_0x1c4(0x3, 0x7fd5, 0x180, 0x1000, 0, 0x6) = 0",
                         "syscall_0x1c4(0x3, 0x7fd5, 0x180, 0, 0, 0x6) = -1 ENOENT (No such file or directory)"])
    assert '"/d"' not in lines[1] + lines[3] and 'dirfd=#1, pathname="/d", mode=0600, flags=AT_EMPTY_PATH' in lines[2], lines
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


def test_seeks_that_are_not_in_the_trace_are_said_to_lack():
    end = ['read(3, "", 4096) = 9', 'read(3, "", 4096) = 9']
    for lines, note in (([OPEN, *end], True), ([OPEN, end[0], 'read(3, "", 4096) = 0'], False), ([OPEN, end[0], 'write(3, "", 9) = 9'], False),
                        ([OPEN, end[0], "lseek(3, 0, SEEK_SET) = 0", end[1]], False), (['execve("/x", ["x"], 0x1) = 0', OPEN, *end], False),
                        ([OPEN.replace("/f", "/proc/self/maps"), *end], False)):
        assert ("the trace lacks calls that move offsets" in notes_of(lines)) == note, lines


def test_paths_that_are_no_strings_are_said():
    for line, note in (("openat(0xffffff9c, 0x7f54f0cbb0b1, 0x80000, 0) = 0x3", True), ("openat(AT_FDCWD, &quot;/f&quot;, O_RDONLY) = 3", True), ('rename("/a", 0x7ffe) = 0', True),
                       ("openat(AT_FDCWD, 0x10, O_RDONLY) = -1 EFAULT (Bad address)", False), ("utimensat(3, NULL, NULL, 0) = 0", False),
                       ('bind(4, {sa_family=AF_UNIX, sun_path=@"x"}, 4) = 0', False)):
        assert ("calls whose path is an address (strace -e raw=…) or no string, and whose files are not known for that: 1" in notes_of([OPEN, line])) == note, line


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


def test_output_and_errors_that_go_to_one_file():
    """It was open before, by "> log 2>&1": one position, not two."""
    lines = ['1 1.0 write(1</w/log>, "one\\n", 4) = 4', '1 1.1 write(2</w/log>, "two\\n", 4) = 4', '1 1.2 fork() = 2', '2 1.3 write(2</w/log>, "three\\n", 6) = 6',
             '2 1.4 exit_group(0) = ?', '1 1.5 lseek(1</w/log>, 0, SEEK_CUR) = 14']
    report, sizes = replayed(lines)
    assert report["mismatched"] == 0 and sizes == {"/w": None, "/w/log": 14}, (sizes, report["mismatches"])


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


def test_controls_are_no_disks():
    report, _ = replayed(['1 1.0 openat(AT_FDCWD, "/dev/mapper/control", O_RDWR) = -1 ENODEV (No such device)', '1 1.1 openat(AT_FDCWD, "/dev/loop-control", O_RDWR) = 3',
                          '1 1.2 openat(AT_FDCWD, "/dev/loop0", O_RDWR) = 4'])
    assert report["mismatched"] == 0 and report["skipped"] == 2, report


def test_damaged_arrays_of_entries_take_no_longer_than_their_length_tells():
    """Names that no brace goes before, or comes after, were looked for in all that is before them, or after."""
    opened, entries = 'openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = 3', 'd_name="x", ' * 100_000
    for damaged in (entries, "{" + entries + "}", '{d_ino=1, d_type=DT_REG, d_name="x"}, ' * 30_000 + entries):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        _, left = replayed([opened, f"getdents64(3, [{damaged}], 32768) = 48"])
        assert "/d/x" in left and resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 10, left


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
