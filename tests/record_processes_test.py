#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""feign record: threads, processes, signals and ends."""
import collections
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from harness import FEIGN, Skip, Tmp, feign, main, same_tree, sanitized, tree
from recording import both, compile_text, compiled, needs_capture, needs_strace, plain, recorded_program, records_if_it_can, replays


def test_threads():
    plain("threads", least=2000)


def test_threads_that_share_no_longer():
    plain("unshares", least=30)
    needs_strace()
    with Tmp() as tmp:
        work, trace, root = (os.path.join(tmp, n) for n in ("w", "t.strace", "root"))
        os.mkdir(work)
        os.mkdir(root)
        subprocess.run(["strace", "-f", "-ttt", "-T", "-o", trace, compiled(tmp, "unshares")], cwd=work, check=True)
        r = feign("replay", trace, "--root", root, "--cwd", work, "--json").json()
        assert r["mismatched"] == 0, r["mismatches"]
        same_tree(tree(os.path.join(root, work[1:])), tree(work))


SHARES = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
static char stack[1 << 16] __attribute__((aligned(16)));
static int child(void* unused) {
  return unused == 0 && write(open("child", O_RDWR | O_CREAT, 0600), "1", 1) == 1 ? 0 : 1;
}
int main(void) {
  int status = 1;
  write(open("before", O_RDWR | O_CREAT, 0600), "12", 2);
  for (int i = 0; i < 2; ++i) {
    const pid_t made = clone(child, stack + sizeof stack, CLONE_VM, 0);
    if (made < 0 || waitpid(made, &status, __WALL) != made || status) return 1;
  }
  return write(open("after", O_RDWR | O_CREAT, 0600), "123", 3) == 3 ? 0 : 2;
}
"""


def test_who_shared_its_storage_is_recorded_again():
    """As of clang's LeakSanitizer, once the thread that looks for leaks has ended."""
    needs_capture()
    with Tmp() as tmp:
        program, trace, root = (os.path.join(tmp, n) for n in ("shares", "t.feign", "root"))
        compile_text(SHARES, program)
        os.mkdir(root)
        r = feign("record", "-o", trace, "--", program, cwd=tmp)
        assert r.status == 0 and "not recorded to their end" in r.err, (r.status, r.err)
        r = feign("replay", trace, "--root", root, "--json").json()
        assert r["mismatched"] == 0, r["mismatches"]
        assert [os.path.getsize(os.path.join(root + tmp, name)) for name in ("before", "after")] == [2, 3]


def test_processes():
    plain("processes", least=100)


def test_signals():
    plain("signals", least=300, exact=False)


def test_crash():
    plain("crash", status=139, least=15)


PASSES = """
import os, socket
a, b = socket.socketpair()
if os.fork() == 0:
    f = os.open("passed", os.O_RDWR | os.O_CREAT, 0o600)
    socket.send_fds(a, [b"x"], [f, os.open("/etc/passwd", os.O_RDONLY)])
    socket.send_fds(a, [b"x"], [os.open(".", os.O_RDONLY)])
    os._exit(0)
(f, other), (here,) = socket.recv_fds(b, 1, 2)[1], socket.recv_fds(b, 1, 2)[1]
os.write(f, b"1234567")
os.ftruncate(f, 3)
assert os.read(other, 1)
os.close(os.open("below", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=here))
os.wait()
"""
GETS = """
import ctypes, os
f = os.open("got", os.O_RDWR | os.O_CREAT, 0o600)
g = ctypes.CDLL(None).syscall(438, os.pidfd_open(os.getpid()), f, 0)  # pidfd_getfd
os.close(f)
os.write(g, b"1234567")
os.ftruncate(g, 3)
"Where the file system has handles, and one may open by them."
f = os.open("named", os.O_RDWR | os.O_CREAT, 0o600)
here = os.open(".", os.O_RDONLY)
handle = ctypes.create_string_buffer((128).to_bytes(4, "little"), 136)
if ctypes.CDLL(None).name_to_handle_at(f, b"", handle, ctypes.byref(ctypes.c_int()), 0x1000) == 0:
    g = ctypes.CDLL(None).open_by_handle_at(here, handle, os.O_RDWR)
    for written in (b"1234567", b"12"):   # by the same number, from the file's beginning
        if g >= 0:
            os.write(g, written)
            os.close(g)
            g = ctypes.CDLL(None).open_by_handle_at(here, handle, os.O_RDWR)
"""


def test_descriptors_that_come_from_others():
    both("passes", "python3", "-S", "-c", PASSES)
    both("gets", "python3", "-S", "-c", GETS)


SENDS = """
import ctypes, os, socket, struct, sys
a, b = socket.socketpair()
f = os.open("passed", os.O_RDWR | os.O_CREAT, 0o600)
others = [os.open(f"other{i}", os.O_RDWR | os.O_CREAT, 0o600) for i in range(100)]
call = ctypes.CDLL(None, use_errno=True)
if os.fork() == 0:
    os.closerange(f, others[-1] + 1)
    (seen,) = struct.unpack("i", b.recvmsg(1, socket.CMSG_SPACE(4), socket.MSG_PEEK)[1][0][2])   # once more with the message itself
    os.fdatasync(seen)
    (g,) = socket.recv_fds(b, 1, 1)[1]
    os.write(g, b"child")
    rest = socket.recv_fds(b, 1, 100)[1]
    os.write(rest[99], b"12345")
    (one,) = socket.recv_fds(b, 1, 1)[1]   # of two
    os.write(one, b"one")
    (kept,) = struct.unpack("i", b.recvmsg(1, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)[1][0][2])
    os.write(kept, b"kept")
    for there in (0, 8, 1 << 40):
        assert call.recvmsg(b.fileno(), ctypes.c_void_p(there), 0) == -1 and ctypes.get_errno() == 14
        assert call.sendmsg(b.fileno(), ctypes.c_void_p(there), 0) == -1 and ctypes.get_errno() == 14
    os.execv(sys.executable, ["python3", "-S", "-c", f"import ctypes; assert ctypes.CDLL(None).fsync({kept}) == -1"])   # it has gone
os.write(f, b"parent")
os.write(others[99], b"123")
socket.send_fds(a, [b"x"], [f])
socket.send_fds(a, [b"x"], others)
socket.send_fds(a, [b"x"], others[:2])
a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", fd)) for fd in others[2:3]])
os.wait()
assert os.lseek(f, 0, os.SEEK_CUR) == 11 and os.lseek(others[99], 0, os.SEEK_CUR) == 8
"""


def test_descriptors_that_a_message_brings_are_those_that_were_sent():
    both("sends", "python3", "-S", "-c", SENDS)
    with Tmp() as tmp:
        trace, text, root = (os.path.join(tmp, n) for n in ("t.feign", "t.txt", "root"))
        done = subprocess.run([FEIGN, "record", "-o", trace, "--", "python3", "-S", "-c", SENDS], cwd=tmp, check=False)
        assert done.returncode == 0
        feign("convert", trace, text)
        with open(text, encoding="utf-8") as f:
            lines = f.read()
        found = [(m[1], m[2]) for m in re.finditer(r"write\(fd=#(\d+), count=[56]\) = [56] <[^>]*> at=(\d+) .*/passed", lines)]
        one, closed = (re.search(pattern, lines) for pattern in (r"openat\(.*/other0\".* handle=(#\d+)", r"fsync\(.*"))
        assert f"write(fd={one[1]}, count=3)" in lines and "path=" not in closed[0], (one[0], closed[0])
        os.mkdir(root)
        only = ("--with", f"filter,path={tmp}/*", "--root", root)
        r = feign("replay", trace, *only, "--require", 1)
        assert r.status == 0, (r.err, found)
        assert [os.path.getsize(root + os.path.join(tmp, n)) for n in ("passed", "other99")] == [11, 8]
        assert len(found) == 2 and found[0][0] == found[1][0] and found[1][1] == "6" and f"fdatasync(fd=#{found[0][0]})" in lines, found


def test_who_goes_on_after_the_command_is_named():
    needs_capture()
    with Tmp() as tmp:
        os.mkfifo(f"{tmp}/go")
        r = feign("record", "-o", f"{tmp}/t.feign", "--", "sh", "-c", f"cd {tmp}; (: > up; read line < go; : > late) > /dev/null 2>&1 & until [ -e up ]; do :; done; echo $! > pid")
        with open(f"{tmp}/pid", encoding="ascii") as f:
            pid = f.read().strip()
        with open(f"{tmp}/go", "w", encoding="ascii") as f:
            f.write("\n")
        assert r.status == 0 and f"1 process goes on after the command (sh {pid})" in r.err, r.err
        assert "after the command" not in feign("record", "-o", f"{tmp}/u.feign", "--", "sh", "-c", ": & wait").err


def test_who_is_told_of_a_stop_is_told_of_no_end():
    """A tracer waits for every stop of those that it traces; they go on."""
    needs_capture()
    needs_strace()
    with Tmp() as tmp:
        work, trace = os.path.join(tmp, "w"), os.path.join(tmp, "t.feign")
        os.mkdir(work)
        r = feign("record", "-o", trace, "--", "strace", "-f", "-o", "s", "sh", "-c", "cat /etc/passwd > a; ls > b; echo x >> b", cwd=work)
        assert r.status == 0, r.err
        replays(trace, tmp, work)


DAEMON = r"""
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  int gone[2], over[2];
  char end;
  if (pipe(gone) != 0 || pipe(over) != 0) return 1;
  if (fork() == 0) {
    if (fork() != 0) _exit(0);
    close(over[0]);
    close(gone[1]);
    read(gone[0], &end, 1); /* its parent has ended */
    chdir(".");
    const int f = open("daemon", O_WRONLY | O_CREAT, 0666);
    _exit(write(f, "x", 1) != 1);
  }
  wait(NULL);
  close(gone[1]);
  close(over[1]);
  return read(over[0], &end, 1) != 0;
}
"""


def test_where_a_daemon_is_whose_parent_has_ended():
    with Tmp() as tmp:
        program, trace, work = os.path.join(tmp, "daemon"), os.path.join(tmp, "t.feign"), os.path.realpath(os.path.join(tmp, "w"))
        compile_text(DAEMON, program)
        needs_capture()
        os.mkdir(work)
        assert feign("record", "-o", trace, "--", program, cwd=work).status == 0
        replays(trace, tmp, work, 1)


def test_what_was_ignored_stays_so():
    """nohup, a shell's trap '', a job in its background. The status is the command's, also where its end is ignored."""
    needs_capture()

    def ignore():
        for s in signal.SIGHUP, signal.SIGPIPE, signal.SIGINT, signal.SIGCHLD:
            signal.signal(s, signal.SIG_IGN)

    with Tmp() as tmp:
        told = ["sh", "-c", "grep SigIgn /proc/$$/status; exit 3"]
        for preexec in None, ignore:
            how = {"stdout": subprocess.PIPE, "preexec_fn": preexec, "check": False}
            alone = subprocess.run(told, **how)
            for number, tracer in enumerate([(), ("--tracer", "strace")] if shutil.which("strace") else [()]):
                r = subprocess.run([FEIGN, "record", *tracer, "-o", os.path.join(tmp, f"t{number}.feign"), "--", *told], **how)
                assert (r.stdout, r.returncode) == (alone.stdout, 3), (tracer, r, alone)
                os.remove(os.path.join(tmp, f"t{number}.feign"))


def test_who_is_interrupted_as_it_begins_leaves_nothing():
    needs_capture()
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.feign")
        for s in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            with subprocess.Popen([FEIGN, "record", "-o", trace, "--", "sleep", "60"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
                while not os.path.exists(trace + ".raw"):
                    time.sleep(0.0005)
                p.send_signal(s)
                said = p.communicate(timeout=30)[1]
            begun = p.returncode == 128 + s   # on a busy machine
            assert begun or p.returncode == -s or (p.returncode == 2 and "before the command began" in said), (s, p.returncode, said)
            assert os.listdir(tmp) == (["t.feign"] if begun else []), os.listdir(tmp)
            if begun:
                os.unlink(trace)


def test_what_a_process_inherits_is_where_it_wrote():
    """Standard output was a file when the command began: what its pipelines make of it is told by calls."""
    needs_capture()
    with Tmp() as tmp:
        trace, out = os.path.join(tmp, "t.feign"), os.path.join(tmp, "out")
        with open(out, "wb") as f:
            subprocess.run([FEIGN, "record", "-q", "-o", trace, "--", "sh", "-c", "echo a; ls / | xargs echo > v"], cwd=tmp, stdout=f, check=True)
        root = os.path.join(tmp, "root")
        os.mkdir(root)
        r = feign("replay", trace, "--root", root, "--json").json()
        assert r["fidelity"] == 1 and os.path.getsize(root + out) == 2 and "lacks calls" not in str(r["notes"]), r


def test_who_is_killed_while_it_looks_for_a_program_started_none():
    """As GNU parallel's are: exec was called for a file that is not there, and did not come back to say so."""
    needs_capture()
    needs_strace()
    with Tmp() as tmp:
        trace, text = os.path.join(tmp, "t.feign"), os.path.join(tmp, "t.txt")
        search = ["sh", "-c", "exec /nowhere/sleep 0"]
        r = feign("record", "-o", trace, "--", "strace", "-o", "/dev/null", "-e", "inject=execve:signal=KILL:when=1", *search, cwd=tmp)
        assert r.status == 137 and "not in the trace: /nowhere" not in r.err, (r.status, r.err)
        r = feign("convert", trace, text)
        with open(text, encoding="utf-8") as f:
            assert r.status == 0 and "/nowhere/sleep" not in f.read()   # nor did it end


def test_killed_recording_is_readable():
    """Whoever is killed, the command or feign itself: what was done until then is there."""
    needs_capture()
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.feign")
        p = subprocess.Popen([FEIGN, "record", "-o", trace, "--", "sh", "-c", "echo $$ > pid; echo a > a; echo b > b; exec sleep 60"], cwd=tmp)
        for _ in range(200):
            if os.path.exists(os.path.join(tmp, "b")):
                break
            time.sleep(0.05)
        time.sleep(0.2)
        p.send_signal(signal.SIGKILL)
        p.wait()
        with open(os.path.join(tmp, "pid"), encoding="utf-8") as f:
            os.kill(int(f.read()), signal.SIGKILL)
        info = feign("info", trace + ".raw", "--json")
        assert info.status == 0, info.err
        assert feign("convert", trace + ".raw", trace).status == 0
        text = os.path.join(tmp, "t.txt")
        feign("convert", trace, text)
        with open(text, encoding="utf-8") as f:
            assert '/b"' in f.read()


SEALED = r"""
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog filter = {1, all};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) return 77;
  const int fd = open("f", O_WRONLY | O_CREAT, 0666);
  usleep(300000);
  if (fork() == 0) return write(fd, "abc", 3) != 3;
  wait(0);
  kill(getppid(), SIGKILL);
  close(open("over", O_WRONLY | O_CREAT, 0666));
  return 0;
}
"""


def test_a_recording_that_was_cut_off_knows_its_clock():
    """Under a filter of system calls a fork's child cannot read the one that tells how fast the processor's counter is."""
    needs_capture()
    with Tmp() as tmp:
        program, trace = os.path.join(tmp, "sealed"), os.path.join(tmp, "t.feign")
        compile_text(SEALED, program)
        if subprocess.run([FEIGN, "record", "-o", trace, "--", program], cwd=tmp, check=False).returncode == 77:
            raise Skip("no seccomp here")
        until = time.monotonic() + 60
        while not os.path.exists(os.path.join(tmp, "over")):
            assert time.monotonic() < until
            time.sleep(0.01)
        streams = feign("info", trace + ".raw", "--json").json()["streams"]
        assert max(s["last_seconds"] for s in streams) > 0.29, streams


def test_a_handler_comes_in_after_any_instruction():
    """Of a call, and of a process's first one. It records; or it forks, and the child records, and returns into what its parent was recording."""
    needs_capture()
    if sanitized():
        raise Skip("the library that records is built without sanitizers, and is the same")
    with Tmp() as tmp:
        program = compiled(tmp, "steps")
        for steps in ["fork", "w"], ["fork", "r"], ["fork", "o"], ["forks", "w"], ["forks", "v"], ["fork", "v"], ["write", "v"], ["write", "w", "fresh"]:
            r = feign("record", "-q", "-o", os.path.join(tmp, "t.feign"), "--", program, *steps, cwd=tmp)
            assert r.status == 0 and not r.err and int(r.out) > 100, (steps, r.status, r.out, r.err[:1000])


KILLED = """
import fcntl, os, signal
ready, told = os.pipe()  # no file: the call in which a process is killed is lost
child = os.fork()
if child == 0:
    held = open("lock", "w")
    fcntl.lockf(held, fcntl.LOCK_EX)
    fcntl.flock(os.open("flock", os.O_CREAT | os.O_RDWR), fcntl.LOCK_EX)
    os.write(told, b"1")
    signal.pause()
os.read(ready, 1)
for at in "before", "after":
    for name, take in ("lock", fcntl.lockf), ("flock", fcntl.flock):
        try:
            take(open(name, "a"), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            assert at == "before"
        else:
            assert at == "after"
    if at == "before":
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
"""


def test_what_a_killed_process_held_is_free():
    """Its end is in no record of its own: whoever waits for it is told."""
    needs_capture()
    with Tmp() as tmp:
        work, trace = os.path.join(tmp, "work"), os.path.join(tmp, "t.feign")
        os.mkdir(work)
        r = feign("record", "-q", "-o", trace, "--", "python3", "-c", KILLED, cwd=work)
        assert r.status == 0, r.err
        for order in "trace", "depend":
            os.mkdir(root := os.path.join(tmp, order))
            report = feign("replay", trace, "--root", root, "--order", order, "--json").json()
            assert report["mismatched"] == 0, (order, report["mismatches"])


SILENT_THREAD = r"""
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int goes_on = 1;
static void *computes(void *none) {
  while (goes_on) ;
  return none;
}
static void *goes(void *none) { return none; }
static int lock(void) {
  struct flock whole = {.l_type = F_WRLCK};
  return fcntl(open("lock", O_RDWR | O_CREAT, 0644), F_SETLK, &whole);
}
int main(void) {
  int ready[2];  /* what a process was killed right after may be lost: it is no change of the tree */
  char byte = 0;
  if (pipe(ready) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, goes, NULL) != 0 || pthread_join(thread, NULL) != 0 ||
        pthread_create(&thread, NULL, computes, NULL) != 0 || lock() != 0)
      abort();
    mkdir("made", 0755);
    if (write(ready[1], &byte, 1) != 1) abort();
    while (1) pause();
  }
  if (read(ready[0], &byte, 1) != 1 || lock() == 0) return 1;
  kill(child, SIGTERM);
  waitpid(child, NULL, 0);
  return lock() != 0;
}
"""


def test_threads_that_made_no_call_end_with_the_process_that_is_killed():
    """A thread that computes is in no record; it kept its process, and what that had locked, for ever."""
    needs_capture()
    with Tmp() as tmp:
        work, trace, program = (os.path.join(tmp, name) for name in ("work", "t.feign", "p"))
        os.mkdir(work)
        compile_text(SILENT_THREAD, program, "-pthread")
        r = feign("record", "-q", "-o", trace, "--", program, cwd=work)
        assert r.status == 0, r.err
        replays(trace, tmp, work)


NO_NEW_DESCRIPTOR = r"""
#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
  enum { kRulesets = 444, kVersion = 1 };
  sigset_t none;
  sigemptyset(&none);
  const int signals = signalfd(-1, &none, 0);
  if (signals < 0 || signalfd(signals, &none, SFD_CLOEXEC) != signals) return 1;
  const int file = open("a", O_CREAT | O_WRONLY, 0600);
  const long version = syscall(kRulesets, 0, 0, kVersion);
  if (version > 0 && version < 100 && version != file) {  /* the number is one that is open */
    if (dup2(file, version) != version) return 2;
    if (syscall(kRulesets, 0, 0, kVersion) != version || write(version, "abc", 3) != 3) return 3;
    close(version);
  }
  close(file);
  close(signals);
  return 0;
}
"""


def test_what_returns_no_new_descriptor_leaves_those_that_are_open():
    """A ruleset's version, and a signalfd that is given other signals, are no descriptors that were made."""
    needs_capture()
    with Tmp() as tmp:
        work, trace = os.path.join(tmp, "work"), os.path.join(tmp, "t.feign")
        os.mkdir(work)
        program = os.path.join(tmp, "p")
        compile_text(NO_NEW_DESCRIPTOR, program)
        r = feign("record", "-o", trace, "--", program, cwd=work)
        assert r.status == 0 and r.err == "", r.err
        notes = [line for line in feign("info", trace).out.splitlines() if line.startswith("note ")]
        assert not notes, notes
        replays(trace, tmp, work)


NOTHING_DONE = """
import os, signal
os.mkdir("d")
child = os.fork()
if child == 0:
    while True:
        signal.pause()
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
child = os.fork()
if child == 0:
    os.kill(os.getpid(), signal.SIGSTOP)
    os.mkdir("e")
    os._exit(0)
os.waitpid(child, os.WUNTRACED)
os.kill(child, signal.SIGCONT)
os.waitpid(child, 0)
"""


def test_who_did_nothing_is_not_missing():
    """Of who is killed, or stopped, before any call that is recorded there is nothing that could be in the trace."""
    needs_capture()
    with Tmp() as tmp:
        work, trace = os.path.join(tmp, "work"), os.path.join(tmp, "t.feign")
        os.mkdir(work)
        r = feign("record", "-o", trace, "--", sys.executable, "-S", "-c", NOTHING_DONE, cwd=work)
        assert r.status == 0 and r.err == "", r.err
        notes = [line for line in feign("info", trace).out.splitlines() if line.startswith("note ")]
        assert not notes, notes
        replays(trace, tmp, work)


def test_signals_in_a_vfork_are_the_parents():
    """The child has its parent's storage, and a handler may run in the parent before the child is there, or before the parent goes on."""
    needs_capture()
    with Tmp() as tmp:
        work, trace, text = (os.path.join(tmp, n) for n in ("w", "t.feign", "t.txt"))
        os.mkdir(work)
        program = compiled(tmp, "interrupted")
        r = feign("record", "-q", "-o", trace, "--", program, "nested", cwd=work)
        assert r.status == 0, (r.status, r.err)
        r = feign("record", "-q", "-o", trace, "--", program, cwd=work)
        assert r.status == 0, r.err
        assert feign("convert", "-q", trace, text).status == 0
        makers = collections.defaultdict(list)
        with open(text, encoding="utf-8") as f:
            for thread, name in re.findall(r" \[\d+ \d+/(\d+)\] write\(.* path=\".*/(\w+)\"", f.read()):
                makers[name].append(thread)
        assert len(makers["handled"]) == os.path.getsize(os.path.join(work, "handled")) > 20
        assert len(set(makers["handled"] + makers["own"])) == 1 and len(makers["own"]) == 200, makers
        assert set(collections.Counter(makers["made"]).values()) == {2} and len(makers["made"]) == 400, makers["made"]
        replays(trace, tmp, work, 1)


FORK_AND_SIGNAL = r"""
#include <fcntl.h>
#include <signal.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static int file;
static void handle(int signal) { write(file, "handler", 7); }
int main(void) {
  file = open("file", O_CREAT | O_WRONLY, 0600);
  signal(SIGUSR1, handle);
  for (int i = 0; i < 3; ++i)
    if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) == 0) {
      write(file, "child", 5);
      kill(getppid(), SIGUSR1); /* which goes on when this one has ended */
      _exit(0);
    }
  while (wait(0) > 0) {}
  return 0;
}
"""


def test_a_handler_that_comes_in_as_a_fork_returns_is_after_the_fork():
    with Tmp() as tmp:
        _, work, trace, text = recorded_program(tmp, FORK_AND_SIGNAL)
        calls = re.findall(r" (clone|write)\((?:fd=.*count=(\d+))?", text)
        assert calls == [("clone", ""), ("write", "5"), ("write", "7")] * 3, calls
        replays(trace, tmp, work, 1)


THREAD_THAT_EXECUTES = r"""
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
static void* execute(void* none) {
  write(3, "thread", 6);
  execl("/bin/sh", "sh", "-c", "echo program >&3; echo more >other", (char*)0);
  return 0;
}
static int once(int seeks) {
  const pid_t child = fork();
  if (child == 0) {
    pthread_t thread;
    open("file", O_CREAT | O_RDWR, 0600);
    while (seeks-- > 0) lseek(3, 0, SEEK_SET);
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    pthread_create(&thread, 0, execute, 0);
    pause();
  }
  int status;
  unsigned long thread = 0;
  waitpid(child, &status, 0);
  ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
  ptrace(PTRACE_CONT, child, 0, 0);
  while (waitpid(child, &status, __WALL) == child && status >> 8 != (SIGTRAP | PTRACE_EVENT_CLONE << 8)) ptrace(PTRACE_CONT, child, 0, 0);
  ptrace(PTRACE_GETEVENTMSG, child, 0, &thread); /* who made it stays where it is */
  waitpid(thread, &status, __WALL);
  ptrace(PTRACE_CONT, thread, 0, 0);
  while (waitpid(child, &status, __WALL) == child && status >> 8 != (SIGTRAP | PTRACE_EVENT_EXEC << 8)) {}
  ptrace(PTRACE_DETACH, child, 0, 0);
  waitpid(child, &status, 0);
  return status != 0;
}
int main(int argc, char** argv) {
  for (int i = argc > 1 ? atoi(argv[1]) : 1, half = i / 2; i-- > 0;)
    if (once(i < half) != 0) return 1;
  return 0;
}
"""


def test_a_thread_whose_exec_ends_who_made_it_has_what_its_process_has():
    with Tmp() as tmp:
        program, work, trace, text = recorded_program(tmp, THREAD_THAT_EXECUTES, libraries=("-lpthread",))
        written = re.findall(r" write\(.*count=(\d+).* path=\".*/(\w+)\"", text)
        assert written == [("6", "file"), ("8", "file"), ("5", "other")], written
        replays(trace, tmp, work, 1)
        # Wherever it is in what is asked for at a time: 256 activities. One of two numbers a process is odd.
        r = feign("record", "-q", "-o", trace, "--", program, "512", cwd=work)
        assert r.status == 0, r.err


HAS_ITS_OWN_AND_EXECUTES = r"""
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
static void* execute(void* ready) {
#ifdef BY_CLOSING
  syscall(436, 100, ~0u, 2); /* close_range, CLOSE_RANGE_UNSHARE */
#else
  if (unshare(CLONE_FILES | CLONE_FS) != 0 || chdir("sub") != 0) _exit(1);
#endif
  dup2(open("own", O_CREAT | O_WRONLY, 0600), 9);
  *(volatile int*)ready = 1;
  usleep(20000);
  execl("/bin/sh", "sh", "-c", "echo program >&9; echo more >other; exec sh -c 'echo most >&9; ! echo none >&8'", (char*)0);
  return 0;
}
int main(void) {
  pthread_t thread;
  volatile int ready = 0;
  mkdir("sub", 0700);
  pthread_create(&thread, 0, execute, (void*)&ready);
  while (!ready) usleep(100);
  dup2(open("mine", O_CREAT | O_WRONLY, 0600), 8);
  for (;;) pause();
}
"""


def test_a_thread_that_calls_exec_goes_on_with_what_it_has_alone():
    """Its descriptors, and its directory; what the first thread opened meanwhile is gone."""
    for how in (), ("-DBY_CLOSING",):
        with Tmp() as tmp:
            _, work, trace, text = recorded_program(tmp, HAS_ITS_OWN_AND_EXECUTES, libraries=("-lpthread", *how))
            written = re.findall(r" write\(.*count=(\d+).* path=\".*/(\w+)\"", text)
            assert [one for one in written if one[1] in ("own", "other", "mine")] == [("8", "own"), ("5", "other"), ("5", "own")], written
            replays(trace, tmp, work, 1)


SIGNALS_AS_IT_RETURNS = r"""
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
static const char* name;
static void comes_in(int signal) {
  close(open(name, O_WRONLY | O_APPEND)); /* it is there */
}
int main(void) {
  signal(SIGIO, comes_in);
  mkdir("d", 0700);
  if (fcntl(open("d", O_RDONLY), F_NOTIFY, DN_CREATE | DN_RENAME | DN_MULTISHOT) != 0) return 77;
  close(open(name = "d/a", O_CREAT | O_WRONLY, 0600));
  name = "d/b";
  rename("d/a", name);
  name = "d/c";
  link("d/b", name);
  name = "d/d";
  symlink("c", name);
  return 0;
}
"""


def test_a_handler_that_comes_in_as_a_call_returns_comes_behind_it():
    """The kernel lets a signal that it is sent meanwhile wait until the call is over."""
    needs_capture()
    with Tmp() as tmp:
        work, trace, program = (os.path.join(tmp, n) for n in ("w", "t.feign", "program"))
        os.mkdir(work)
        compile_text(SIGNALS_AS_IT_RETURNS, program)
        records_if_it_can(trace, program, cwd=work, lacks="no notes of directories here (F_NOTIFY)")
        replays(trace, tmp, work, 1)


SIGNALS_AS_IT_WAITS = r"""
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static void comes_in(int signal) {
  int fd = open("noted", O_WRONLY | O_CREAT | O_APPEND, 0600);
  write(fd, "x", 1);
  close(fd);
}
int main(void) {
  struct sigaction action = {.sa_handler = comes_in, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, 0);
  mkfifo("fifo", 0600);
  if (fork() == 0) {
    struct stat st;
    while (stat("noted", &st) != 0 || st.st_size == 0) {
      usleep(1000);
      kill(getppid(), SIGUSR1);
    }
    usleep(10000);
    write(open("fifo", O_WRONLY), "abc", 3);
    _exit(0);
  }
  char bytes[3];
  int fd = open("fifo", O_RDONLY);
  if (read(fd, bytes, 3) != 3) return 1;
  close(fd);
  wait(0);
  return 0;
}
"""


def test_what_is_made_anew_once_a_handler_is_over_comes_behind_it():
    with Tmp() as tmp:
        _, work, trace, text = recorded_program(tmp, SIGNALS_AS_IT_WAITS)
        reads = re.findall(r" read\(.*count=3\).*", text)
        assert len(reads) == 1 and "/fifo" in reads[0], reads
        replays(trace, tmp, work, 1)


FORK_THAT_IS_NOT_OVER = r"""
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int* made;
static const char* how;
static void* ends_it(void* none) {
  while (*made == 0) {}
  if (*how == 'e') execl("/bin/sh", "sh", "-c", "echo program >&3; : >there", (char*)0);
  if (*how == 'k') kill(getpid(), SIGKILL);
  _exit(0);
}
static void child(void) {
  pthread_t thread;
  open("file", O_CREAT | O_RDWR | O_APPEND, 0600);
  dup2(open("closed", O_CREAT | O_RDWR | O_CLOEXEC, 0600), 9);
  fcntl(9, F_SETFD, FD_CLOEXEC);
  ptrace(PTRACE_TRACEME, 0, 0, 0);
  raise(SIGSTOP);
  pthread_create(&thread, 0, ends_it, 0);
  if (fork() == 0) {
    access("there", F_OK);
    *made = 1;
    if (how[1] == 'l') while (access("there", F_OK) != 0) usleep(1000); /* later */
    write(3, "child", 5);
    write(9, "x", 1);
    _exit(0);
  }
  pause();
}
int main(int argc, char** argv) {
  how = argv[1];
  made = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const pid_t maker = fork();
  if (maker == 0) child();
  int status;
  waitpid(maker, &status, 0);
  ptrace(PTRACE_SETOPTIONS, maker, 0, PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
  ptrace(PTRACE_CONT, maker, 0, 0);
  for (pid_t who; (who = waitpid(-1, &status, __WALL)) > 0;) {
    if (!WIFSTOPPED(status)) continue;
    if (status >> 8 == (SIGTRAP | PTRACE_EVENT_FORK << 8)) continue; /* who makes it stays where it is */
    if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8)) ptrace(PTRACE_DETACH, who, 0, 0);
    else ptrace(PTRACE_CONT, who, 0, 0);
  }
  return 0;
}
"""


def test_a_child_whose_maker_was_ended_before_the_fork_was_over():
    """By another thread's exec or exit, or by a signal: the child has what that one had."""
    for how in ("e", "el", "x", "k"):
        with Tmp() as tmp:
            _, work, trace, text = recorded_program(tmp, FORK_THAT_IS_NOT_OVER, how, libraries=("-lpthread",))
            written = re.findall(r" write\(.*count=(\d+).* path=\".*/(\w+)\"", text)
            assert ("5", "file") in written and ("1", "closed") in written, (how, written)
            for order in ("trace", "depend"):
                root = os.path.join(tmp, order)
                os.mkdir(root)
                r = feign("replay", trace, "--root", root, "--order", order, "--json", "--require", 1)
                assert r.status == 0, (how, order, r.err)
                same_tree(tree(work), {os.path.relpath(k, work.lstrip("/")): v for k, v in tree(root).items() if k.startswith(work.lstrip("/") + "/")})


ENDS_AMONG_THREADS = r"""
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static int file;
static void* write_on(void* none) {
  for (;;) write(file, "x", 1);
}
int main(void) {
  for (int i = 0; i < 20; ++i) {
    if (fork() == 0) {
      pthread_t thread;
      file = open("file", O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
      for (int n = 0; n < 3; ++n) pthread_create(&thread, 0, write_on, 0);
      usleep(1000);
      if (i % 2) execl("/bin/true", "true", (char*)0);
      _exit(0);
    }
    wait(0);
  }
  return 0;
}
"""


def test_threads_go_on_until_exec_or_exit_ends_them():
    """Both are recorded before they are made."""
    with Tmp() as tmp:
        writes = re.findall(r" write\(.* = 1 <.*", recorded_program(tmp, ENDS_AMONG_THREADS)[-1])
        assert len(writes) > 100 and all("/file\"" in one for one in writes), [one for one in writes if "/file\"" not in one][:5]


def test_what_a_handlers_child_does_breaks_no_record():
    """A vfork's child has the storage of the record that the handler came in, and a fork's has its memory."""
    needs_capture()
    with Tmp() as tmp:
        program = compiled(tmp, "handlers")
        for mode in "vfork", "fork":
            work, trace, text = (os.path.join(tmp, mode + end) for end in ("", ".feign", ".txt"))
            os.mkdir(work)
            r = feign("record", "-o", trace, "--", program, mode, cwd=work)
            assert r.status == 0 and not r.err, (mode, r.status, r.err)
            assert feign("convert", "-q", trace, text).status == 0
            calls, first = collections.Counter(), 0
            with open(text, encoding="utf-8") as f:
                for pid, call in re.findall(r"^\d+ [\d.]+ \[\d+ \d+/(\d+)\] (\w+)\(.* = 1 <.*/file\"", f.read(), re.M):
                    first = first or pid
                    calls[call] += pid == first
            assert calls == {"pwrite64": int(r.out), "pread64": int(r.out)}, (mode, calls, r.out)


WRAPS = """
import os, sys
def next_is(pid):
    with open("/proc/sys/kernel/ns_last_pid", "w") as f:
        f.write(str(pid - 1))
for i in range(5):
    if sys.argv[1] == "lower":
        next_is(max(300, os.getpid() - 2000 + 50 * i))
    pid = os.fork()
    if pid == 0:
        with open("file%d" % i, "w") as f:
            f.write("x")
        os._exit(0)
    assert sys.argv[1] != "lower" or pid < os.getpid()
    os.waitpid(pid, 0)
"""


def test_a_child_may_have_a_lower_number_than_its_parent():
    """Numbers begin anew at some time; who forked whom stays known."""
    needs_capture()
    try:
        with open("/proc/sys/kernel/ns_last_pid", "r+", encoding="ascii") as last:
            last.write(last.read())
    except OSError as e:
        raise Skip("the next process's number cannot be chosen here") from e
    with Tmp() as tmp:
        edges = []
        for how in "higher", "lower":
            trace = os.path.join(tmp, how + ".feign")
            command = [sys.executable, "-c", WRAPS, how]
            # A number that leaves room for lower ones.
            start = "echo 20000 > /proc/sys/kernel/ns_last_pid; exec \"$@\""
            done = subprocess.run(["sh", "-c", start, "sh", FEIGN, "record", "-q", "-o", trace, "--", *command], cwd=tmp, stderr=subprocess.PIPE, text=True)
            if done.returncode != 0 and "AssertionError" in done.stderr:
                raise Skip("another process had that number")
            assert done.returncode == 0, done.stderr
            out = feign("info", trace, "--dependencies").out
            edges.append(re.search(r"process +(\d+)", out)[1])
        assert edges[0] == edges[1] and int(edges[0]) >= 10, edges


if __name__ == "__main__":
    main(globals())
