#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hostile traces: whatever they say, nothing outside the root changes, and nothing waits for ever.

Each way out is a test, and each is tried three times: prepared, with the root as it is, and on a
kernel without openat2.
"""
import json
import os
import re
import resource
import shutil
import stat
import subprocess
import time

from harness import FEIGN, TOP, Skip, Tmp, feign, main, sanitized, tree

UP = "/.." * 12


def write_trace(path, lines):
    with open(path, "w", encoding="utf-8") as f:
        for i, line in enumerate(lines):
            f.write(f"7 100.{i:06d} {line} <0.000001>\n")


def without_openat2(tmp):
    """The command that runs another one as on a kernel without openat2."""
    tool = os.path.join(tmp, "no_openat2")
    if not os.path.exists(tool):
        compiler = shutil.which("cc") or shutil.which("gcc")
        if not compiler:
            raise Skip("there is no C compiler")
        subprocess.run([compiler, "-o", tool, os.path.join(TOP, "tests", "no_openat2.c")], check=True)
    if subprocess.run([tool, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("seccomp is not permitted")
    return [tool]


def tries(*lines):
    """Replays lines against a victim outside; OUT is its folder, UP leads up to the real root."""
    with Tmp() as tmp:
        outside = os.path.join(tmp, "outside")
        os.mkdir(outside)
        victim = os.path.join(outside, "victim")
        with open(victim, "w", encoding="utf-8") as f:
            f.write("safe")
        os.chmod(victim, 0o640)
        os.utime(victim, (1000, 1000))
        os.mkdir(os.path.join(outside, "folder"))

        def state():
            st = os.stat(victim)
            with open(victim, encoding="utf-8") as f:
                return (f.read(), st.st_mode, st.st_uid, st.st_gid, st.st_mtime, st.st_nlink, os.listxattr(victim), tree(outside),
                        os.stat(outside).st_mode)

        before = state()
        trace = os.path.join(tmp, "t.strace")
        write_trace(trace, [line.replace("OUT", outside).replace("UP", UP) for line in lines])
        for number, (wrap, options) in enumerate((([], ()), ([], ("--no-prepare",)), ([], ("--order", "stream")),
                                                  (without_openat2(tmp), ()))):
            root = os.path.join(tmp, f"root{number}")
            os.mkdir(root)
            if "--no-prepare" in options:
                os.symlink(outside, os.path.join(root, "link"))
                os.symlink("../" * 12 + outside[1:], os.path.join(root, "rel"))
            done = subprocess.run([*wrap, FEIGN, "replay", trace, "--root", root, "--json", *options], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=60)
            assert done.returncode in (0, 1, 2), (done.returncode, done.stderr)
            assert b"Sanitizer" not in done.stderr, done.stderr
            assert state() == before, (options, state(), before)
        return json.loads(done.stdout) if done.stdout else None


LINKS = ('symlink("OUT", "/link") = 0', 'symlink("../../../../../../../../../../../../OUT", "/rel") = 0')


def test_open_through_a_link():
    tries(*LINKS, 'openat(AT_FDCWD, "/link/victim", O_WRONLY|O_TRUNC) = 3', 'write(3, "x", 1) = 1', "close(3) = 0")


def test_open_through_a_relative_link():
    tries(*LINKS, 'openat(AT_FDCWD, "/rel/victim", O_WRONLY|O_TRUNC) = 3', 'write(3, "x", 1) = 1', "close(3) = 0")


def test_create_through_a_link():
    tries(*LINKS, 'openat(AT_FDCWD, "/link/new", O_WRONLY|O_CREAT, 0644) = 3', "close(3) = 0", 'creat("/rel/new2", 0644) = 4')


def test_create_through_a_dangling_link():
    tries('symlink("OUT/made", "/dangling") = 0', 'openat(AT_FDCWD, "/dangling", O_WRONLY|O_CREAT, 0644) = 3', 'write(3, "x", 1) = 1')


def test_dots_lead_up():
    tries('openat(AT_FDCWD, "UPOUT/victim", O_WRONLY|O_TRUNC) = 3', "close(3) = 0", 'unlink("UPOUT/victim") = 0',
          'chdir("/a") = 0', 'unlink("../../../../../../../../../../../..OUT/victim") = 0')


def test_dots_behind_a_directory_descriptor():
    tries('mkdir("/d", 0755) = 0', 'openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = 5', 'openat(5, "..UPOUT/victim", O_WRONLY|O_TRUNC) = 6',
          'unlinkat(5, "..UPOUT/victim", 0) = 0')


def test_a_directory_descriptor_behind_a_link():
    tries(*LINKS, 'openat(AT_FDCWD, "/link", O_RDONLY|O_DIRECTORY) = 5', 'openat(5, "victim", O_WRONLY|O_TRUNC) = 6',
          'unlinkat(5, "victim", 0) = 0', 'mkdirat(5, "new", 0755) = 0')


def test_openat2_without_its_own_wall():
    tries(*LINKS, 'openat2(AT_FDCWD, "/link/victim", {flags=O_WRONLY|O_TRUNC, resolve=0}, 24) = 3', 'write(3, "x", 1) = 1')


def test_proc_self_root():
    tries('openat(AT_FDCWD, "/proc/self/rootOUT/victim", O_WRONLY|O_TRUNC) = 3', 'write(3, "x", 1) = 1',
          'symlink("/proc/self/root", "/magic") = 0', 'openat(AT_FDCWD, "/magicOUT/victim", O_WRONLY|O_TRUNC) = 4', 'unlink("/magicOUT/victim") = 0')


def test_proc_self_cwd_and_fd():
    tries('openat(AT_FDCWD, "/proc/self/cwd/victim", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3', 'symlink("/proc/self/fd/3", "/three") = 0',
          'openat(AT_FDCWD, "/three", O_WRONLY|O_TRUNC) = 4', 'openat(AT_FDCWD, "/dev/fd/3", O_WRONLY|O_TRUNC) = 5')


def test_unlink_and_rmdir():
    tries(*LINKS, 'unlink("/link/victim") = 0', 'unlink("/rel/victim") = 0', 'rmdir("/link/folder") = 0')


def test_rename_out_and_in():
    tries(*LINKS, 'rename("/link/victim", "/got") = 0', 'openat(AT_FDCWD, "/mine", O_WRONLY|O_CREAT, 0644) = 3',
          'rename("/mine", "/link/victim") = 0', 'renameat2(AT_FDCWD, "/mine", AT_FDCWD, "/rel/victim", RENAME_EXCHANGE) = 0')


def test_hard_links():
    tries(*LINKS, 'link("/link/victim", "/hard") = 0', 'openat(AT_FDCWD, "/hard", O_WRONLY|O_TRUNC) = 3', 'link("/hard", "/link/second") = 0',
          'symlink("OUT/victim", "/v") = 0', 'linkat(AT_FDCWD, "/v", AT_FDCWD, "/hard2", AT_SYMLINK_FOLLOW) = 0')


def test_modes():
    tries(*LINKS, 'chmod("/link/victim", 0777) = 0', 'fchmodat(AT_FDCWD, "/rel/victim", 0777) = 0', 'chmod("/link", 0777) = 0')


def test_owners():
    tries(*LINKS, 'chown("/link/victim", 1234, 1234) = 0', 'lchown("/rel/victim", 1234, 1234) = 0',
          'fchownat(AT_FDCWD, "/link/victim", 1234, 1234, 0) = 0')


def test_times():
    tries(*LINKS, 'utimensat(AT_FDCWD, "/link/victim", [{tv_sec=5, tv_nsec=0}, {tv_sec=5, tv_nsec=0}], 0) = 0',
          'utime("/rel/victim", NULL) = 0', 'utimes("/link/victim", NULL) = 0')


def test_sizes():
    tries(*LINKS, 'truncate("/link/victim", 0) = 0', 'truncate("/rel/victim", 100000) = 0')


def test_extended_attributes():
    tries(*LINKS, 'setxattr("/link/victim", "user.x", "1", 1, 0) = 0', 'lsetxattr("/rel/victim", "user.y", "1", 1, 0) = 0',
          'removexattr("/link/victim", "user.z") = 0')


def test_directories_links_and_nodes_made():
    tries(*LINKS, 'mkdir("/link/dir", 0755) = 0', 'symlink("x", "/rel/sym") = 0', 'mknod("/link/fifo", S_IFIFO|0644) = 0',
          'bind(3, {sa_family=AF_UNIX, sun_path="/link/socket"}, 110) = 0')


def test_working_directory_behind_a_link():
    tries(*LINKS, 'chdir("/link") = 0', 'unlink("victim") = 0', 'openat(AT_FDCWD, "victim", O_WRONLY|O_TRUNC) = 3')


def test_chroot_out():
    tries(*LINKS, 'chroot("/link") = 0', 'unlink("/victim") = 0', 'openat(AT_FDCWD, "/victim", O_WRONLY|O_TRUNC) = 3')


def test_a_link_that_changes_while_its_directory_is_kept():
    tries('mkdir("/d", 0755) = 0', 'openat(AT_FDCWD, "/d/victim", O_WRONLY|O_CREAT, 0644) = 3', "close(3) = 0",
          'unlink("/d/victim") = 0', 'rmdir("/d") = 0', 'symlink("OUT", "/d") = 0', 'openat(AT_FDCWD, "/d/victim", O_WRONLY|O_TRUNC) = 3',
          'unlink("/d/victim") = 0')


def test_a_file_that_was_open_before_the_trace():
    tries('write(9<OUT/victim>, "x", 1) = 1', 'ftruncate(8<UPOUT/victim>, 0) = 0')


def test_what_prepare_makes():
    tries('readlink("/link", "OUT", 100) = 10', 'newfstatat(AT_FDCWD, "/link/inside", {st_mode=S_IFREG|0644, st_size=77, ...}, 0) = 0',
          'openat(AT_FDCWD, "/link/new/deeper", O_RDONLY) = 3', 'read(3, "x"..., 100) = 100')


def leaves(lines, options=()):
    """What is below the root afterwards, as lstat results by path."""
    with Tmp() as tmp:
        trace, root = os.path.join(tmp, "t.strace"), os.path.join(tmp, "root")
        os.mkdir(root)
        write_trace(trace, lines)
        r = feign("replay", trace, "--root", root, "--json", *options, timeout=30)
        found = {}
        for folder, dirs, files in os.walk(root):
            for name in dirs + files:
                full = os.path.join(folder, name)
                found["/" + os.path.relpath(full, root)] = os.lstat(full)
        return r, found


def test_no_device_nodes():
    r, found = leaves(['mknod("/zero", S_IFCHR|0666, makedev(0x1, 0x5)) = 0', 'mknodat(AT_FDCWD, "/sda", S_IFBLK|0666, makedev(0x8, 0)) = 0'])
    assert not any(stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode) for st in found.values()), found
    assert {p for p, st in found.items() if stat.S_ISSOCK(st.st_mode)} == {"/zero", "/sda"}, found
    assert r.json()["mismatched"] == 0, r.out


def test_no_setuid_bits():
    _, found = leaves(['openat(AT_FDCWD, "/a", O_WRONLY|O_CREAT, 06755) = 3', "fchmod(3, 06755) = 0", "close(3) = 0",
                       'chmod("/a", 04755) = 0', 'mkdir("/d", 06777) = 0', 'mknod("/m", S_IFREG|06755) = 0', 'creat("/c", 07777) = 3'])
    assert len([p for p in found if p != "/.feign"]) == 4, found
    assert not any(st.st_mode & 0o6000 for st in found.values()), found


def test_no_capabilities():
    r, _ = leaves(['openat(AT_FDCWD, "/a", O_WRONLY|O_CREAT, 0755) = 3', 'fsetxattr(3, "security.capability", "\\1\\0\\0\\2", 20, 0) = 0',
                   'fgetxattr(3, "security.capability", "\\1\\0\\0\\2", 100) = 20', 'fgetxattr(3, "user.none", 0x7ffd0000, 100) = 20'])
    assert any("user attributes" in s["why"] for s in r.json()["skips"]), r.out
    # The trace has seen it there. (An attribute of users that is not there is a difference.)
    got = r.json()["ops"]["fgetxattr"]
    assert got["emulated"] == 1, got


def test_a_fifo_never_waits():
    r, found = leaves(['mknod("/fifo", S_IFIFO|0644) = 0', 'openat(AT_FDCWD, "/fifo", O_RDONLY) = 3', 'read(3, "x", 1) = 1', "close(3) = 0"])
    assert stat.S_ISFIFO(found["/fifo"].st_mode) and r.status == 0
    with Tmp() as tmp:  # one that the trace does not know to be one
        trace, root = os.path.join(tmp, "t.strace"), os.path.join(tmp, "root")
        os.mkdir(root)
        os.mkfifo(os.path.join(root, "f"))
        write_trace(trace, ['openat(AT_FDCWD, "/f", O_RDONLY) = 3', 'read(3, "x", 1) = 1', 'openat(AT_FDCWD, "/f", O_WRONLY) = 4', 'truncate("/f", 0) = 0'])
        assert feign("replay", trace, "--root", root, "--no-prepare", timeout=20).status in (0, 1)


def test_a_lock_is_never_waited_for():
    r, _ = leaves(['openat(AT_FDCWD, "/l", O_RDWR|O_CREAT, 0644) = 3', 'openat(AT_FDCWD, "/l", O_RDWR) = 4',
                   "fcntl(3, F_SETLK, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=0}) = 0",
                   "fcntl(4, F_SETLKW, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=0}) = 0", "flock(3, LOCK_EX) = 0", "flock(4, LOCK_EX) = 0"])
    assert r.status == 0 and r.json()["mismatched"] == 0, r.out


def test_max_bytes_ends_what_writes_too_much():
    lines = ['openat(AT_FDCWD, "/big", O_RDWR|O_CREAT, 0644) = 3'] + ['write(3, "x"..., 65536) = 65536'] * 200
    r, found = leaves(lines, ("--max-bytes", "1m"))
    assert r.status == 1 and "--max-bytes" in r.err and "t.strace:" in r.err, r.err
    assert found["/big"].st_size <= 2 << 20
    r, _ = leaves(lines, ("--max-bytes", "100m"))
    assert r.status == 0 and r.json()["fidelity"] == 1
    r, found = leaves(['openat(AT_FDCWD, "/p", O_RDONLY) = 3', 'pread64(3, "x"..., 4096, 100000000) = 4096'],
                      ("--max-bytes", "1m", "--content", "zeros"))
    assert r.status == 2 and "--max-bytes" in r.err and "/p" not in found, r.err
    # What a trace tells to be no hole is written, whatever the content; holes are not.
    for begin, status in ((0, 2), (100000000, 0)):
        for content in "sparse", "zeros":
            r, found = leaves(['openat(AT_FDCWD, "/p", O_RDONLY) = 3', f"lseek(3, 0, SEEK_DATA) = {begin}", f"lseek(3, {begin}, SEEK_HOLE) = 100004096"], ("--max-bytes", "1m", "--content", content))
            assert r.status == status and ("/p" in found) == (status == 0), (begin, content, r.err)
            assert status == 0 or (("are no holes" if content == "sparse" else "--content sparse") in r.err or begin == 0), r.err


def test_fallocate_counts_as_bytes():
    r, found = leaves(['openat(AT_FDCWD, "/big", O_RDWR|O_CREAT, 0644) = 3', "fallocate(3, 0, 0, 1000000) = 0", "fallocate(3, 0, 1000000, 4000000000000) = 0",
                       'write(3, "x"..., 100) = 100'], ("--max-bytes", "500k"))
    assert r.status == 1 and "--max-bytes" in r.err and found["/big"].st_blocks * 512 < 4 << 20, r.err


def test_no_single_call_goes_beyond_max_bytes():
    opened = 'openat(AT_FDCWD, "/big", O_RDWR|O_CREAT|O_TRUNC, 0644) = 3'
    source = ['openat(AT_FDCWD, "/from", O_RDONLY) = 4', 'pread64(4, "x"..., 4096, 50000000) = 4096']
    mapped = ["ftruncate(3, 50000000) = 0", "mmap(NULL, 50000000, PROT_READ|PROT_WRITE, MAP_SHARED, 3, 0) = 0x7f0000000000"]
    for lines, options in ((["fallocate(3, 0, 0, 50000000) = 0"], ()), (['write(3, "x"..., 50000000) = 50000000'], ()),
                           (['pwritev(3, [{iov_base="x"..., iov_len=30000000}, {iov_base="x"..., iov_len=20000000}], 2, 0) = 50000000'], ()),
                           ([*source, "copy_file_range(4, [0], 3, [0], 50000000, 0) = 50000000"], ()),
                           (mapped, ("--replayer", "posix,touch=protection"))):
        r, found = leaves([opened, *lines], ("--max-bytes", "10m", *options))
        assert r.status == 1 and "--max-bytes" in r.err and "t.strace:" in r.err, (lines, r.err)
        assert found["/big"].st_blocks * 512 <= 10 << 20, (lines, found["/big"].st_blocks)
    # What it is asked to copy is more than it copies.
    r, _ = leaves([opened, 'openat(AT_FDCWD, "/from", O_RDONLY) = 4', 'pread64(4, "x"..., 4096, 0) = 4096', "copy_file_range(4, [0], 3, [0], 9223372035781033984, 0) = 4096"],
                  ("--max-bytes", "10m"))
    assert r.status == 0 and r.json()["mismatched"] == 0, r.out
    # Nor one whose count is larger than a file can be.
    r, found = leaves([opened, f'write(3, "out", {2**63}) = 3'], ("--max-bytes", "10m"))
    assert r.status == 0 and found["/big"].st_size == 3, (r.err, found["/big"].st_size)
    # Nor a fallocate that no file system makes, of numbers whose sum is none.
    for mode, number in (("FALLOC_FL_PUNCH_HOLE|FALLOC_FL_INSERT_RANGE", 2**40), ("FALLOC_FL_PUNCH_HOLE|0x8000", 2**62)):
        r, found = leaves([opened, f"fallocate(3, {mode}, {number}, {number}) = 0"], ("--max-bytes", "10m"))
        assert found["/big"].st_size == 0, (mode, found["/big"].st_size)


def test_a_trace_makes_no_directory_a_root_of_ours():
    # A file of the mark's name that a trace makes is no mark: what is in the directory stays.
    with Tmp() as tmp:
        root = os.path.join(tmp, "root")
        thesis = os.path.join(root, "precious", "thesis")
        os.makedirs(os.path.dirname(thesis))
        with open(thesis, "w") as f:
            f.write("important")
        removes, made = os.path.join(tmp, "removes.strace"), os.path.join(tmp, "makes.strace")
        write_trace(removes, ['mkdir("/precious", 0755) = 0'])
        for line in ('openat(AT_FDCWD, "/.feign", O_WRONLY|O_CREAT, 0644) = 3', 'rename("/.feign", "/x") = 0', 'mkdir("/.feign", 0755) = 0'):
            write_trace(made, [line])
            feign("replay", made, "--root", root)
            r = feign("replay", removes, "--root", root)
            assert r.status == 2 and "want an empty directory" in r.err, (line, r.status, r.err)
            assert os.path.exists(thesis), line


def test_more_files_than_a_process_may_open():
    """Those that cannot be opened are told, and what is said names the limit; the rest goes on, and nothing ends or waits for ever."""
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.strace")
        lines = []
        for i in range(300):
            lines += [f'openat(AT_FDCWD, "/f{i}", O_RDWR|O_CREAT, 0644) = {3 + i}', f'write({3 + i}, "x", 1) = 1']
        # And once more, when all are closed.
        write_trace(trace, [*lines, "close_range(3, 4294967295, 0) = 0", *lines[:20]])

        def limited():
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

        # Root may have more than its limit, if it is not kept from that.
        weak = ["setpriv", "--bounding-set", "-sys_resource"] if os.geteuid() == 0 else []
        if weak and not shutil.which("setpriv"):
            raise Skip("there is no setpriv")
        for order in "trace", "depend", "stream":
            root = os.path.join(tmp, order)
            os.mkdir(root)
            done = subprocess.run([*weak, FEIGN, "replay", trace, "--root", root, "--json", "--order", order], capture_output=True, preexec_fn=limited, timeout=60, check=False)
            assert done.returncode == 0 and b"files could not be opened" in done.stderr and b"ulimit -n" in done.stderr, (order, done)
            assert done.stderr.count(b"\n") == 1 and b"Sanitizer" not in done.stderr, (order, done.stderr)
            ops = json.loads(done.stdout)["ops"]
            assert 30 < ops["openat"]["matched"] == ops["write"]["matched"] < 84 and ops["openat"]["mismatched"] > 0, (order, ops)
            assert len([n for n in os.listdir(root) if os.path.getsize(os.path.join(root, n)) == 1]) == ops["write"]["matched"] - 10


def test_absurd_numbers():
    big = 2**63 - 1
    r, found = leaves([f'openat(AT_FDCWD, "/a", O_RDWR|O_CREAT, 0644) = 3', f'pwrite64(3, "x"..., 10, {big}) = 10', f'pread64(3, "x"..., {big}, 0) = 5',
                       f"ftruncate(3, {big}) = 0", f"lseek(3, {big}, SEEK_SET) = {big}", f"mmap(NULL, {big}, PROT_READ, MAP_SHARED, 3, 0) = 0x7f0000000000",
                       f"munmap(0x7f0000000000, {big}) = 0", f"copy_file_range(3, [{big}], 3, [{big}], {big}, 0) = {big}",
                       f"fallocate(3, 0, {big}, {big}) = 0", f"close_range(0, 4294967295, 0) = 0"])
    assert r.status in (0, 1, 2), r.err


def test_memory_stays_small_where_a_trace_reads_gigabytes_at_once():
    with Tmp() as tmp:
        trace, root = os.path.join(tmp, "t.strace"), os.path.join(tmp, "root")
        os.mkdir(root)
        write_trace(trace, ['openat(AT_FDCWD, "/a", O_RDONLY) = 3', 'read(3, "x"..., 1500000000) = 1500000000', 'openat(AT_FDCWD, "/b", O_WRONLY|O_CREAT, 0644) = 4',
                            'write(4, "x"..., 30000000) = 30000000'])
        running = subprocess.Popen([FEIGN, "replay", trace, "--root", root], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        most = looks = 0
        while running.poll() is None:
            try:  # pages that are mapped many times count once
                with open(f"/proc/{running.pid}/smaps_rollup", encoding="ascii") as f:
                    most = max([most] + [int(line.split()[1]) for line in f if line.startswith("Pss:")])
                    looks += 1
            except (OSError, ValueError):
                pass
            time.sleep(0.005)
        if sanitized():
            raise Skip("a sanitizer's own memory is counted, too")
        assert running.returncode == 0, running.stderr.read()
        assert looks and most < 200_000, (looks, most)


def test_the_second_wall():
    """Landlock: with it a replayer plug-in itself cannot write elsewhere."""
    with Tmp() as tmp:
        root = os.path.join(tmp, "root")
        os.mkdir(root)
        trace = os.path.join(tmp, "t.strace")
        write_trace(trace, ['openat(AT_FDCWD, "/a", O_RDWR|O_CREAT, 0644) = 3', 'write(3, "x", 1) = 1'])
        strace = shutil.which("strace")
        if not strace:
            raise Skip("there is no strace to see the calls with")
        log = os.path.join(tmp, "log")
        subprocess.run([strace, "-f", "-o", log, "-e", "trace=landlock_create_ruleset,landlock_restrict_self", FEIGN, "replay", trace, "--root", root],
                       stdout=subprocess.DEVNULL, check=True, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
        with open(log, encoding="utf-8") as f:
            text = f.read()
        if "landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) = -1" in text:
            raise Skip("the kernel has no Landlock")
        assert re.search(r"landlock_restrict_self\(\d+, 0\)\s+= 0", text), text


def test_as_another_user_than_root():
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skip("not root, or there is no setpriv: the other tests are run by an ordinary user already")
    with Tmp() as tmp:
        os.chmod(tmp, 0o755)
        root, trace = os.path.join(tmp, "root"), os.path.join(tmp, "t.strace")
        scratch = os.path.join(tmp, "scratch")
        for folder in (root, scratch):
            os.mkdir(folder)
            os.chown(folder, 65534, 65534)
        write_trace(trace, ['openat(AT_FDCWD, "/secret", O_RDONLY) = -1 EACCES (Permission denied)', 'access("/readable", W_OK) = -1 EACCES (Permission denied)',
                            'openat(AT_FDCWD, "/readable", O_RDONLY) = 3', 'read(3, "x"..., 10) = 10', 'openat(AT_FDCWD, "/mine", O_WRONLY|O_CREAT, 0600) = 4',
                            'unlink("/readable") = -1 EACCES (x)', 'rename("/readable", "/gone") = -1 EPERM (x)', 'mkdir("/made", 0777) = -1 EACCES (x)',
                            "fchown(4, 0, 0) = 0", 'mknod("/dev0", S_IFCHR|0666, makedev(0x1, 0x5)) = 0'])
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", FEIGN, "replay", trace, "--root", root, "--json"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/", env={**os.environ, "TMPDIR": scratch})
        if done.returncode in (126, 127):
            raise Skip("another user may not run this build: " + done.stderr.decode()[:100])
        r = json.loads(done.stdout)
        assert r["mismatched"] == 0, r["mismatches"]
        assert any("not permitted" in s["why"] for s in r["skips"]), r["skips"]
        # What was refused is not done by who owns it all here.
        assert sorted(os.listdir(root)) == [".feign", "dev0", "mine", "readable", "secret"], os.listdir(root)


if __name__ == "__main__":
    main(globals())
