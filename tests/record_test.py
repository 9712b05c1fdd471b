#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""feign record: what it keeps is what strace sees of the same run, call by call; and it replays."""
import collections
import itertools
import json
import os
import pty
import pwd
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time

from harness import BUILD, FEIGN, TOP, Skip, Tmp, feign, main, refuses, same_tree, sanitized, tree

PROGRAMS = os.path.join(TOP, "tests", "record")
# Not about files, or known to be a file's only by what came before; strace's and ours are compared without.
NOT_COMPARED = set("""munmap mremap madvise msync ioctl bind connect futex wait4 waitid recvfrom recvmsg sendto sendmsg socket socketpair accept
accept4 eventfd2 epoll_create1 timerfd_create signalfd4 inotify_init1 exit exit_group umask io_submit io_getevents
io_pgetevents semop semtimedop""".split())


def described():
    names = set()
    with open(os.path.join(TOP, "layers", "posix.h"), encoding="utf-8") as f:
        for line in f:
            if m := re.match(r"//@ op \d+ (\w+)", line):
                names.add(m[1])
    return names - NOT_COMPARED


def records_if_it_can(trace, *command, cwd, lacks):
    """A program that returns 77 where this machine lacks what it is about."""
    r = feign("record", "-o", trace, "--", *command, cwd=cwd)
    if r.status == 77:
        raise Skip(lacks)
    assert r.status == 0, (r.status, r.err)
    return r


def needs_strace():
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    done = subprocess.run(["strace", "-o", "/dev/null", "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if done.returncode:
        raise Skip("strace may not trace here")


def needs_capture():
    if not os.path.exists(os.path.join(BUILD, "capture", "libfeign-capture.so")):
        raise Skip("no capture library on this machine")


def needs_user(uid):
    """That this user can be changed to, and reads what is built here."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skip("there is no setpriv, or this is not root")
    library = os.path.join(BUILD, "capture", "libfeign-capture.so")
    if subprocess.run(["setpriv", "--reuid", str(uid), "--clear-groups", "test", "-r", library], check=False).returncode != 0:
        raise Skip(f"user {uid} may not read {library}")


def compiled(tmp, name, *flags):
    out = os.path.join(tmp, name)
    done = subprocess.run(["cc", "-O1", "-w", "-o", out, os.path.join(PROGRAMS, name + ".c"), "-lpthread", "-ldl", *flags],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Skip(f"{name}.c does not compile here: {done.stdout[-300:]}")
    return out


def seen_by_strace(path):
    """{thread: [(call, result)]} of all that a process did once the capture library was in it."""
    names, calls, begun = described(), collections.defaultdict(list), {}
    state = {}   # a thread: "on", "off", or the number of the library's own descriptor, which it closes last
    opened, gets = {}, set()
    with open(path, encoding="utf-8", errors="replace") as f:
        lines = f.readlines()
        own = int(lines[0].split()[0])
        # feign's threads, and the command: that may be seen to begin before it is seen to be made.
        for line in lines:
            if m := re.match(rf"{own} +(?:clone3?|v?fork|<\.\.\. (?:clone3?|v?fork) resumed>).* = (\d+)$", line):
                state[int(m[1])] = "off"
        for line in lines:
            m = re.match(r"(\d+) +(.*)\n", line)
            if not m:
                continue
            pid, text = int(m[1]), m[2]
            if text.endswith("<unfinished ...>"):
                begun[pid] = text[:-len("<unfinished ...>")]
                continue
            if r := re.match(r"<\.\.\. \w+ resumed>(.*)", text):
                text = begun.pop(pid, "") + r[1]
            call = re.match(r"(\w+)\((.*)\) += (0x[0-9a-f]+|-?\d+|\?)(?: ([A-Z]+))?", text)
            if not call:
                continue
            name, args, result, error = call.groups()
            if pid == own:
                # What feign recorded before, to see what that takes, is gone.
                if name == "openat" and '.raw/records"' in args and "O_CREAT" in args:
                    calls.clear()
                continue
            now = state.setdefault(pid, "on")
            if name == "execve" and result == "0":
                if now == "on":
                    calls[pid].append((name, "0"))
                state[pid] = "off"
                continue
            if now == "off":
                # What it says of itself comes last: of where it works, and, once, of its descriptors.
                if name == "getcwd" and ".raw/records" in opened.get(pid, ("",))[0]:
                    state[pid] = opened[pid][1]
                elif name == "openat":
                    opened[pid] = args, result
                continue
            if now not in ("on", "asking"):
                if name == "close" and args.strip() == now:
                    state[pid] = "on"
                continue
            # Which connection an accepted socket is an end of, the library asks.
            if name == "getsockopt" and ", SO_TYPE, " in args:
                state[pid] = "asking"
            elif now == "asking" and (name in ("accept", "accept4", "connect") or name not in ("getsockname", "getpeername", "fstat", "socket", "sendto", "recvfrom", "close")):
                now = state[pid] = "on"
            if now == "asking":
                continue
            # What a descriptor is that came from another process, too; it may need room to write that down first.
            if name == "readlinkat" and pid in gets and '"/proc/self/fd/' in args and args.endswith(", 4095"):
                continue
            # Nor whether there is a file that is to be started.
            if name == "readlinkat" and args.endswith(", 1"):
                continue
            if name in ("pidfd_getfd", "open_by_handle_at") or (name == "recvmsg" and "SCM_RIGHTS" in args):
                gets.add(pid)
            if name not in names or result == "?" or (name == "mmap" and "ANONYMOUS" in args):
                continue
            if result.startswith("0x") and name != "mmap":
                result = str(int(result, 16))
            calls[pid].append((name, "-" + error if error else "mapped" if name == "mmap" else result))
    return calls


def recorded(trace, tmp):
    text = os.path.join(tmp, "recorded.txt")
    feign("convert", trace, text)
    names, calls = described(), collections.defaultdict(list)
    with open(text, encoding="utf-8", errors="replace") as f:
        for line in f:
            m = re.match(r"\d+ [\d.]+ \[\d+ (?:rank \d+ )?\d+/(\d+)\] (\w+)\(.*\) = (-?\w+|\?) <", line)
            if m and m[2] in names and "depth=" not in line:
                calls[int(m[1])].append((m[2], "mapped" if m[2] == "mmap" and m[3][0] != "-" else m[3]))
    return calls


def both(name, *command, status=0, shell=None, compiled_from=None, exact=True, least=1, options=()):
    """Runs a command under strace and feign record at once, compares, and replays."""
    needs_strace()
    needs_capture()
    with Tmp() as tmp:
        work = os.path.join(tmp, "w")
        os.mkdir(work)
        if compiled_from:
            command = [compiled(tmp, compiled_from), *command]
        if shell:
            command = ["/bin/sh", "-c", shell]
        trace, seen = os.path.join(tmp, "t.feign"), os.path.join(tmp, "s.txt")
        done = subprocess.run(["strace", "-f", "-s", "4096", "-o", seen, FEIGN, "record", "-o", trace, *options, "--", *command], cwd=work,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
                              env={**os.environ, "LC_ALL": "C", "HOME": work, "ASAN_OPTIONS": "detect_leaks=0"})  # not below ptrace
        assert done.returncode == status, (done.returncode, done.stdout[-800:])
        want, got = seen_by_strace(seen), recorded(trace, tmp)
        total = sum(map(len, want.values()))
        assert total >= least, (total, done.stdout[-500:])
        for pid in sorted(set(want) | set(got)):
            a, b = want.get(pid, []), got.get(pid, [])
            if not exact:   # a signal came in between a call's end and its record
                a, b = sorted(a), sorted(b)
            if a != b:
                i = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
                raise AssertionError(f"{name}: thread {pid}: {len(a)} calls seen, {len(b)} recorded; at {i}: strace {a[max(0, i - 3):i + 4]}, recorded {b[max(0, i - 3):i + 4]}")
        replays(trace, tmp, work)


def replays(trace, tmp, work, fidelity=0.999):
    root = os.path.join(tmp, "root")
    os.mkdir(root)
    r = feign("replay", trace, "--root", root, "--json", "--require", fidelity)
    assert r.status == 0, r.err
    same_tree({k: v for k, v in tree(work).items()}, {os.path.relpath(k, work.lstrip("/")): v for k, v in tree(root).items()
                                                     if k.startswith(work.lstrip("/") + "/")} if work else {})


def plain(name, **how):
    both(name, compiled_from=name, **how)


def names_raced_for(tracer, again):
    """What came back otherwise of a recording of such a race, as a share, by the worse of two orders."""
    with Tmp() as tmp:
        work = os.path.join(tmp, "w")
        os.mkdir(work)
        program = [compiled(tmp, "race"), *again]
        trace = os.path.join(tmp, "t.feign" if tracer == "feign" else "t.strace")
        if tracer == "feign":
            feign("record", "-o", trace, "--", *program, cwd=work)
        else:
            subprocess.run(["strace", "-f", "-ttt", "-T", "-y", "-o", trace, *program], cwd=work, check=True)
        worst = 0
        for order in ("trace", "depend"):
            root = os.path.join(tmp, order)
            os.mkdir(root)
            r = feign("replay", trace, "--root", root, "--order", order, "--json", *(["--cwd", work] if tracer == "strace" else [])).json()
            total = r["matched"] + r["mismatched"]
            assert total > (7000 if again else 40000), (tracer, again, order, total)
            worst = max(worst, r["mismatched"] / total)
        return worst


def test_names_that_several_processes_are_after():
    """Which of calls that overlap took effect first, their results tell: of feign record's calls, and of strace's."""
    needs_capture()
    needs_strace()
    if sanitized():
        raise Skip("hundreds of thousands of calls, as elsewhere; what counts is how many of them came back as recorded")
    for tracer, again in itertools.product(("feign", "strace"), ([], ["names"], ["directories"])):
        # A race is now and then closer than its results tell: the best of three.
        worst = names_raced_for(tracer, again)
        for _ in range(2):
            if again and worst > 0.01:
                worst = min(worst, names_raced_for(tracer, again))
        assert worst <= (0.01 if again else 0), (tracer, again, worst)


def test_what_a_sandbox_has_opened_by_another_process():
    """It came in a message, within the open that returns it: no close of it is missing."""
    needs_capture()
    with Tmp() as tmp:
        work, trace, root = (os.path.join(tmp, n) for n in ("w", "t.feign", "root"))
        for folder in (work, root):
            os.mkdir(folder)
        assert feign("record", "-o", trace, "--", compiled(tmp, "broker"), cwd=work).status == 0
        r = feign("replay", trace, "--root", root, "--json").json()
        assert r["mismatched"] == 0 and not [n for n in r["notes"] if "close" in n], (r["mismatches"], r["notes"])


def test_threads():
    plain("threads", least=2000)


def test_calls_that_are_younger_than_libc():
    needs_capture()
    with Tmp() as tmp:
        work, trace, text, root = (os.path.join(tmp, n) for n in ("w", "t.feign", "t.txt", "root"))
        for folder in (work, root):
            os.mkdir(folder)
        program = compiled(tmp, "attributes")
        done = subprocess.run([FEIGN, "record", "-o", trace, "--", program], cwd=work, stdout=subprocess.PIPE, text=True, check=True)
        if done.stdout == "none\n":
            raise Skip("this kernel has no setxattrat")
        if done.stdout.split()[0] != "0":
            raise Skip("the file system of the temporary directory takes no attributes of users")
        assert feign("convert", trace, text).status == 0
        with open(text, encoding="utf-8") as f:
            said = re.findall(r"] (\w*(?:xattrat|getattr))\((.*?)\) = ", f.read())
        assert [op for op, _ in said] == ["listxattrat", *["setxattrat"] * 4, *["getxattrat"] * 2, "listxattrat", *["removexattrat"] * 2,
                                          "setxattrat", *["file_getattr"] * 2], said
        assert said[2][1] == f'path="{work}/d/link", at_flags=AT_SYMLINK_NOFOLLOW, name="user.refused", size=4, flags=1', said[2]
        r = feign("replay", trace, "--root", root, "--json").json()
        assert r["mismatched"] == 0 and not [s for s in r["skips"] if "attr" in s["op"]], (r["mismatches"], r["skips"])
        assert os.listxattr(os.path.join(root, work[1:], "d", "file")) == ["user.followed"]


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


def test_calls():
    plain("calls", least=40)


def test_crash():
    plain("crash", status=139, least=15)


def test_closes_all():
    plain("closes_all", least=10)


def test_shell():
    both("shell", shell="for i in 1 2 3; do echo $i | cat > f$i; done; (mkdir e; cd e; ls > /dev/null); cat f1 f2 > g; mkdir d; mv f1 d; rm f2; ls -l d > l", least=50)


def test_tar():
    both("tar", shell="mkdir a; for i in 1 2 3 4 5; do seq $i 3000 > a/$i; done; ln -s 1 a/l; tar cf a.tar a; mkdir o; tar xf a.tar -C o", least=100)


def test_git():
    if not shutil.which("git"):
        raise Skip("git is not installed")
    both("git", shell="g='git -c user.name=a -c user.email=a@b -c init.defaultBranch=main'; $g init -q r; cd r; echo x > x; $g add x; $g commit -qm x; cd ..; git clone -q r s", least=500)


def test_make():
    if not shutil.which("make"):
        raise Skip("make is not installed")
    both("make", shell="printf 'all: a b c\\n%%: %%.c\\n\\tcc -o $@ $<\\n' > Makefile; for i in a b c; do echo 'int main(void) { return 0; }' > $i.c; done; make -s -j2", least=500)


def test_sqlite():
    if not shutil.which("sqlite3"):
        raise Skip("sqlite3 is not installed")
    both("sqlite", shell="echo 'create table t(a); begin; insert into t values(1),(2); commit; select * from t; vacuum;' | sqlite3 d > out", least=50)


def test_python():
    both("python", shell="for i in 1 2 3; do echo x$i > $i; done; python3 -S -c 'import os, shutil, json; shutil.copytree(\".\", \"../w/c\", ignore=lambda *a: [\"c\"]); "
         "json.dump([1] * 9999, open(\"j\", \"w\")); os.rename(\"1\", \"4\"); print(open(\"2\").read(), file=open(\"p\", \"w\"))'", least=200)


def test_small_programs():
    """find, xargs, sort with its own threads and files, cp, dd, mv, rm: each in the way it asks for."""
    both("small", shell="mkdir a a/b; for i in 1 2 3 4; do seq $i 997 20000 > a/$i; cp a/$i a/b/x$i; done; find a -type f | xargs cat | sort -S 20k -T . -o s; cp -r a c; "
         "cp --sparse=always a/1 a/z; dd if=s of=d bs=4k count=9 conv=fsync 2> e; find c -name x1 -delete; mv c m; rm -r a/b; sort s | uniq -c | head -3 > u; touch -d @5 u; "
         "truncate -s 9999 t; ln s h; chmod 600 h; split -b 9k s p.; wc -l s > l; diff a/1 a/2 > f; tail -c 9 s > g; tee k < g > n", least=800)


def test_more_programs():
    """Copies with all attributes, pipelines and process substitution, processes and threads of one interpreter, mappings, archives."""
    both("cp -a", shell="mkdir a a/b; for i in 1 2 3; do seq $i 3000 > a/b/$i; ln -s $i a/b/l$i; done; cp -a a c; cp -l a/b/1 h; cp --reflink=auto a/b/2 k; mv c e; rm -r a; "
         "tar cf - e | tar xf - -C . --transform s/e/f/; tar czf e.tgz e; find . -newer e/b/1 -print0 > n; xargs -0 < n stat -c %s > s; md5sum e/b/? > m; md5sum -c m > c; chmod -R g+w e", least=500)
    if shutil.which("bash"):
        both("bash", shell="bash -c 'for i in 1 2 3; do seq $i 500 | sort -rn | tee f$i | grep 7 | wc -l >> n; done; cat <(cat f1) <(cat f2) > both; exec 5<> rw; echo a >&5; exec 5>&-; "
             "cat <<< hello > h; (cd /; pwd) > p'", least=200)
    if shutil.which("perl"):
        both("perl", shell="perl -e 'for (1..20) { open(F, \">\", \"f$_\") or die; print F \"x\" x ($_ * 100); close F } opendir(D, \".\"); my @l = readdir D; rename \"f1\", \"g1\"; "
             "unlink \"f2\"; open(P, \"ls|\"); my @x = <P>; truncate \"f3\", 7; my $p = fork; if (!$p) { open(Z, \">>z\"); print Z 1; exit 0 } waitpid $p, 0'", least=100)
    both("python", shell="python3 -S -c \"import multiprocessing as m, threading, mmap, os, subprocess\nopen('a', 'w').write('x' * 10000)\ndef f(i): open('p%d' % i, 'w').write('y' * i)\n"
         "ps = [m.get_context('fork').Process(target=f, args=(i,)) for i in range(3)] + [threading.Thread(target=f, args=(10 + i,)) for i in range(3)]\n[p.start() for p in ps]; [p.join() for p in ps]\n"
         "subprocess.run(['cp', 'a', 'b'])\nfd = os.open('a', os.O_RDWR)\nmm = mmap.mmap(fd, 10000); mm[5:8] = b'xxx'; mm.flush(); mm.close()\n"
         "os.sendfile(os.open('c', os.O_WRONLY | os.O_CREAT), fd, 0, 5000)\nos.copy_file_range(fd, os.open('d', os.O_WRONLY | os.O_CREAT), 5000)\"", least=100)
    if shutil.which("zip") and shutil.which("unzip"):
        both("zip", shell="mkdir a; for i in 1 2 3; do seq $i 9000 > a/$i; done; zip -q -r z.zip a; mkdir o; cd o; unzip -q ../z.zip; gzip -k a/1; xz -k -T2 a/3", least=100)


def test_rsync():
    if not shutil.which("rsync"):
        raise Skip("rsync is not installed")
    both("rsync", shell="mkdir a; for i in 1 2 3 4; do seq $i 3000 > a/$i; done; rsync -a a/ b; echo x >> a/1; touch -d @7 a/2; rsync -a --inplace a/ b", least=300)


def test_fio():
    if not shutil.which("fio"):
        raise Skip("fio is not installed")
    both("fio", shell="fio --name=x --thread --numjobs=3 --size=256k --bs=4k --rw=randrw --ioengine=psync --randseed=5 --output=o --filename_format='f.$jobnum'; rm -f o", least=300)


def test_redis():
    if not shutil.which("redis-server") or not shutil.which("redis-cli"):
        raise Skip("redis is not installed")
    both("redis", shell="redis-server --port 0 --unixsocket \"$PWD/s\" --appendonly yes --save 3600 1 --logfile log & while ! redis-cli -s s ping > p; do sleep 0.1; done 2> e; "
         "for i in 1 2 3 4 5 6; do redis-cli -s s set k$i $i > q; done; redis-cli -s s bgrewriteaof > r; sleep 0.5; redis-cli -s s set a b > t; redis-cli -s s save > u; "
         "redis-cli -s s shutdown; wait; rm -f p e", least=500)


def test_postgres():
    bins = sorted(f"/usr/lib/postgresql/{v}/bin" for v in (os.listdir("/usr/lib/postgresql") if os.path.isdir("/usr/lib/postgresql") else ()))
    try:
        who = pwd.getpwnam("postgres")
    except KeyError:
        who = None
    if not bins or who is None:
        raise Skip("postgresql is not installed")
    needs_user(who.pw_uid)
    both("postgres", shell=f"chown {who.pw_uid} .. .; exec setpriv --reuid {who.pw_uid} --regid {who.pw_gid} --clear-groups sh -c 'PATH={bins[-1]}:$PATH; export PGHOST=$PWD PGPORT=54329; "
         "initdb -D d -A trust -N > init; pg_ctl -D d -w -l log -o \"-k $PWD -h \\\"\\\"\" start > start; pgbench -q -i -s 1 postgres 2> i; pgbench -t 20 -c 2 postgres > b 2>&1; "
         "pg_ctl -D d -m fast -w stop > stop'", least=5000, exact=False, options=("--all-users",))


def test_other_users():
    """Who has changed its user cannot write into the recording; that is said, or asked for."""
    needs_capture()
    needs_user(65534)
    with Tmp() as tmp:
        os.chmod(tmp, 0o755)
        for options, seen in ((), 0), (("--all-users",), 1):
            trace = os.path.join(tmp, f"t{seen}.feign")
            r = feign("record", "-o", trace, *options, "--", "setpriv", "--reuid", "65534", "--clear-groups", "sh", "-c", "cat < /etc/hostname; exit 0")
            assert r.status == 0 and ("not in it: programs of another user" in r.err) == (not seen), r.err
            text = os.path.join(tmp, "t.txt")
            feign("convert", trace, text)
            with open(text, encoding="utf-8") as f:
                assert ("/etc/hostname" in f.read()) == bool(seen), seen


def test_who_has_another_number_in_a_namespace_is_recorded():
    needs_capture()
    command = ["unshare", "-U", "sh", "-c", "cat < /etc/hostname; exit 0"]
    if not shutil.which("unshare") or subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        raise Skip("no namespace of users can be made here")
    with Tmp() as tmp:
        trace, text = os.path.join(tmp, "t.feign"), os.path.join(tmp, "t.txt")
        r = feign("record", "-o", trace, "--", *command)
        assert r.status == 0 and r.err == "", r.err
        feign("convert", trace, text)
        with open(text, encoding="utf-8") as f:
            assert "/etc/hostname" in f.read()


def test_paths_of_failed_calls_cost_no_system_call():
    """Each path is made sure of by a readlink of each directory in it, which fails; what it was given must not be asked the kernel for."""
    needs_strace()
    needs_capture()
    with Tmp() as tmp:
        os.makedirs(os.path.join(tmp, "a/b/c"))
        seen = os.path.join(tmp, "s.txt")
        done = subprocess.run(["strace", "-f", "-e", "trace=readlink,readlinkat,process_vm_readv", "-o", seen, FEIGN, "record", "-o", os.path.join(tmp, "t.feign"), "--",
                               "realpath", os.path.join(tmp, "a/b/c")], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
                              env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})  # not below ptrace
        assert done.returncode == 0, done.stderr
        with open(seen, encoding="utf-8") as f:
            text = f.read()
        assert text.count("EINVAL") >= 3 and "process_vm_readv" not in text, text


def test_waits():
    """Waits that are no I/O are told from computing: here each is 20 ms of the other thread's computing."""
    needs_capture()
    with Tmp() as tmp:
        trace, text = os.path.join(tmp, "t.feign"), os.path.join(tmp, "t.txt")
        r = feign("record", "-o", trace, "--", compiled(tmp, "waits"))
        assert r.status == 0, r.err
        info = json.loads(feign("info", trace, "--json").out)
        left_out = {c["call"] for c in info["left_out"] if "waits" in c["why"]}
        assert {"poll", "epoll_wait"} <= left_out and left_out & {"select", "pselect6"}, left_out
        feign("convert", trace, text)
        with open(text, encoding="utf-8") as f:
            ops = collections.Counter(m[1] for m in (re.match(r"\d+ [\d.]+ \[.*?\] ([\w:]+)\(", line) for line in f) if m)
        assert ops["futex"] >= 6 and ops["recvfrom"] == 4 and ops["wait4"] == 1, ops
        assert info["sync_seconds"] > 0.05 and info["compute_seconds"] > 0.1, info


def test_connections():
    """What sockets bring, and that they are accepted, is order: here all order that files need follows from it."""
    needs_capture()
    with Tmp() as tmp:
        program = ("python3", "-S", os.path.join(PROGRAMS, "connections.py"))
        for kind in ("unix", "tcp", "mapped"):
            for by in ("capture", "strace"):
                if by == "strace" and not shutil.which("strace"):
                    continue
                trace, work = os.path.join(tmp, kind + by), os.path.join(tmp, "work")
                shutil.rmtree(work, ignore_errors=True)
                os.mkdir(work)
                start = ("strace", "-f", "-yy", "-ttt", "-T", "-o", trace) if by == "strace" else (FEIGN, "record", "-o", trace, "--")
                done = subprocess.run([*start, *program, kind], cwd=work, stderr=subprocess.PIPE, text=True, check=False)
                assert done.returncode == 0, done.stderr
                rules = feign("info", trace, "--dependencies", "--json").json()["dependencies"]["rules"]
                # By strace, connect's own connection is known only when it is used: nothing says who came to accept.
                left = 1 if by == "strace" and kind != "unix" else 0
                assert "path" in rules, (kind, by, rules)
                assert rules["path"]["found"] >= 5 and rules["path"]["kept"] <= left and rules["file"]["kept"] <= left, (kind, by, rules)
                none = feign("info", trace, "--dependencies", "--json", "--with", "depend,rules=handle+path+file+process").json()
                assert none["dependencies"]["rules"]["path"]["kept"] >= 3, (kind, by, none["dependencies"])


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
    if g >= 0:
        os.write(g, b"1234567")
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
    assert len(b.recvmsg(1, socket.CMSG_SPACE(4), socket.MSG_PEEK)[1]) == 1   # once more with the message itself
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
        assert len(found) == 2 and found[0][0] == found[1][0] and found[1][1] == "6", found


def test_cpu_time():
    """Two programs on one processor: half of each pause is waiting, which no call tells."""
    needs_capture()
    if not shutil.which("taskset"):
        raise Skip("taskset is not installed")
    with Tmp() as tmp:
        program, trace = os.path.join(tmp, "p"), os.path.join(tmp, "t.feign")
        with open(program + ".c", "w", encoding="utf-8") as f:
            f.write("#include <unistd.h>\n#include <time.h>\nint main(void) { for (int i = 0; i < 6; ++i) { volatile long n = 0; clock_t e = clock() + CLOCKS_PER_SEC / 12; "
                    "while (clock() < e) ++n; if (write(1, \"x\", 1) != 1) return 1; } return 0; }\n")
        if subprocess.run(["cc", "-O1", "-o", program, program + ".c"], stderr=subprocess.DEVNULL, check=False).returncode:
            raise Skip("no C compiler")
        got = {}
        for options in ((), ("--cpu-time",)):
            r = feign("record", "-o", trace, *options, "--", "taskset", "-c", str(min(os.sched_getaffinity(0))), "sh", "-c", f"{program} > a & {program} > b & wait", cwd=tmp)
            assert r.status == 0, r.err
            info = json.loads(feign("info", trace, "--json").out)
            got[options] = sum(l["seconds"] for l in info["left_out"] if l["call"] == "no call")
        assert got[()] == 0 and 0.2 < got["--cpu-time",] < 60, got


def test_sleeping_is_told_from_computing():
    needs_capture()
    program = "import os, time\nfor i in range(5):\n  os.write(1, b'x')\n  time.sleep(0.02)\n  os.write(1, b'y')\n  e = time.perf_counter() + 0.01\n  while time.perf_counter() < e: pass\n"
    with Tmp() as tmp:
        trace, text = os.path.join(tmp, "t.feign"), os.path.join(tmp, "t.txt")
        with open(os.path.join(tmp, "out"), "wb") as out:
            subprocess.run([FEIGN, "record", "-o", trace, "--", "python3", "-S", "-c", program], stdout=out, stderr=subprocess.PIPE, check=True)
        assert feign("convert", trace, text).status == 0
        with open(text, encoding="utf-8") as f:
            writes = [" [asleep]" in line for line in f if " write(" in line and '/out"' in line]
        assert writes == [False, True] * 5, writes


def test_what_starting_the_library_takes_is_in_no_pause():
    """Of every program that an exec starts, not of the first, whose exec is not in the trace; and no part of it is recorded as a call."""
    needs_capture()
    with Tmp() as tmp:
        for _ in range(5):  # on a busy machine it may not be known
            r = feign("record", "-o", f"{tmp}/t.feign", "--", "sh", "-c", "/bin/true; /bin/true; (exec /bin/true); exec /bin/true")
            assert r.status == 0, r.err
            info = feign("info", f"{tmp}/t.feign", "--json").json()
            own = [x for x in info["left_out"] if x["call"] == "start"]
            if own:
                break
        assert len(own) == 1 and own[0]["count"] == 4 and own[0]["seconds"] > 0, info["left_out"]
        assert info["ops"]["execve"]["count"] == 4 and len(info["streams"]) == 4, info


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


def test_io_uring():
    """Requests in memory that the kernel shares are the calls that they stand for; also where no call submits them, in a
    program that has liburing inside, and for files that only have places in the ring's table."""
    needs_capture()
    with Tmp() as tmp:
        for library, *mode in (("-luring",), ("-luring", "sqpoll"), ("-l:liburing.a",), ("-l:liburing.a", "sqpoll")):
            program = compiled(tmp, "uring", library)
            trace, text, work = os.path.join(tmp, "t.feign"), os.path.join(tmp, "t.txt"), os.path.realpath(os.path.join(tmp, "w"))
            os.mkdir(work)
            records_if_it_can(trace, program, *mode, cwd=work, lacks="the kernel lets nobody use io_uring")
            feign("convert", trace, text)
            with open(text, encoding="utf-8") as f:
                calls = [(m[1], m[2], m[3]) for m in (re.match(r"\d+ [\d.]+ \[.*?\] (\w+)\((.*)\) = (-?\w+)", line) for line in f) if m]
            calls = [(name, args.replace(work, ""), result) for name, args, result in calls if name != "mmap" and "uring" not in name]
            calls = [call for call in calls if (call[0], call[2]) != ("pipe2", "-EINVAL")]  # an older kernel
            at = next(i for i, call in enumerate(calls) if '"/a"' in call[1])
            calls = calls[at:]
            names = [name for name, _, _ in calls]
            want = ["openat"] + ["pwrite64"] * 8 + """pread64 pwritev preadv pwritev preadv fdatasync fcntl pread64 close openat pwrite64 fcntl pread64 close statx openat
                openat pipe2 splice splice fsetxattr getxattr close close close close mkdirat renameat2 openat fallocate close unlinkat
                openat pread64 pread64 preadv close pipe2 close close close close""".split()
            assert names == want, (library, mode, names)
            assert {args for name, args, _ in calls if name == "pwrite64"} == {f"fd=#2, count=4096, offset={4096 * i}" for i in range(8)} | {"fd=#3, count=700, offset=0"}
            results = [result for name, _, result in calls if name not in ("openat", "pwrite64", "fcntl", "fsetxattr", "getxattr")]
            assert results == "100 1500 1500 1999 1999 0 123 0 321 0 0 0 300 300 0 0 0 0 0 0 0 0 0 2000 2000 2000 0 0 0 0 0 0".split() and ("openat", 'pathname="/none", flags=O_RDONLY, mode=00', "-ENOENT") in calls, calls
            replays(trace, tmp, work)
            shutil.rmtree(work)
            shutil.rmtree(os.path.join(tmp, "root"))
            os.unlink(trace)


def test_rings_that_several_threads_have():
    """They come and go while others look at them, are shared, known by places in threads' tables, left by jumps out of signal
    handlers and by threads that are cancelled: the program ends as it would, and each request is in the trace, once."""
    needs_capture()
    with Tmp() as tmp:
        program = compiled(tmp, "rings")
        for how in ("own", "shared", "many 40", "late", "places", "vforks", "left"):
            trace, work, root = (os.path.join(os.path.realpath(tmp), n) for n in ("t.feign", "w", "root"))
            os.mkdir(work)
            r = feign("record", "-o", trace, "--", program, *how.split(), cwd=work)
            if r.status == 77 and how == "own":
                raise Skip("the kernel lets nobody use io_uring")
            if r.status == 77:  # it knows no such rings
                shutil.rmtree(work)
                continue
            assert r.status == 0 and r.err == "", (how, r.status, r.err)
            ops = feign("info", trace, "--json").json()["ops"]
            assert ops["pwrite64"]["count"] == int(r.out), (how, ops["pwrite64"], r.out)
            replays(trace, tmp, work)
            shutil.rmtree(work)
            shutil.rmtree(root)
        r = feign("record", "-o", trace, "--", program, "many", "300", cwd=tmp)
        missing = re.search(r"(\d+) requests of io_uring are not in the trace", r.err)
        there = feign("info", trace, "--json").json()["ops"]["pwrite64"]["count"]
        assert r.status == 0 and missing and there + int(missing[1]) == 300, (r.status, there, r.err)


def test_locks_that_come_and_go_by_chance():
    """Of processes and of open files, given up by whatever call closes a descriptor: each is had, or refused, as it was."""
    needs_capture()
    with Tmp() as tmp:
        program, first = compiled(tmp, "random_locks"), int(os.environ.get("FEIGN_SEED", 1))
        try:
            needs_strace()
            tracers_here = 2
        except Skip:
            tracers_here = 1
        for seed in range(first, first + 4):
            traces = [os.path.join(tmp, "t.feign"), os.path.join(tmp, "t.strace")][:tracers_here]
            tracers = [[FEIGN, "record", "-o", traces[0], "--"], ["strace", "-f", "-ttt", "-T", "-y", "-o", traces[1]]]
            for trace, tracer in zip(traces, tracers):
                work = os.path.join(tmp, "w")
                os.mkdir(work)
                subprocess.run([*tracer, program, str(seed)], cwd=work, check=True, timeout=120)
                shutil.rmtree(work)
                for order in "trace", "depend":
                    with Tmp() as root:
                        r = feign("replay", trace, "--root", root, "--order", order, "--json", "--require", "1")
                        assert r.status == 0, (seed, tracer[0], order, r.err, r.json()["mismatches"])


AIO = r"""
#include <aio.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>
static char data[9000];
static int by_kernel(int file) {
  aio_context_t ring = 0;
  struct iocb requests[3] = {0}, *all[3];
  struct io_event events[3];
  for (int i = 0; i < 3; ++i) {
    all[i] = &requests[i];
    requests[i].aio_lio_opcode = i < 2 ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD;
    requests[i].aio_fildes = (unsigned)file;
    requests[i].aio_buf = (unsigned long)data;
    requests[i].aio_nbytes = i < 2 ? 700 : 1000;
    requests[i].aio_offset = i < 2 ? 700 * i : 400;
  }
  if (syscall(SYS_io_setup, 8, &ring) != 0) return 77;
  if (syscall(SYS_io_submit, ring, 2, all) != 2 || syscall(SYS_io_getevents, ring, 2, 3, events, 0) != 2) return 1;
  if (syscall(SYS_io_submit, ring, 1, all + 2) != 1 || syscall(SYS_io_getevents, ring, 1, 3, events, 0) != 1) return 1;
  return events[0].res != 1000 || syscall(SYS_io_destroy, ring) != 0;
}
static int by_libc(int file) {
  struct aiocb requests[3] = {0}, *two[2] = {requests, requests + 1};
  const struct aiocb* last[1] = {requests + 2};
  for (int i = 0; i < 3; ++i) {
    requests[i].aio_lio_opcode = LIO_WRITE;
    requests[i].aio_fildes = file;
    requests[i].aio_buf = data;
    requests[i].aio_nbytes = i < 2 ? 700 : 1000;
    requests[i].aio_offset = i < 2 ? 700 * i : 400;
  }
  if (lio_listio(LIO_WAIT, two, 2, 0) != 0 || aio_return(two[0]) != 700 || aio_return(two[1]) != 700) return 1;
  if (aio_read(requests + 2) != 0 || aio_suspend(last, 1, 0) != 0) return 1;
  return aio_return(requests + 2) != 1000;
}
int main(int argc, char** argv) {
  const int file = open("f", O_CREAT | O_RDWR, 0600);
  return argc > 1 ? by_kernel(file) : by_libc(file);
}
"""


def test_asynchronous_io():
    """The kernel's, by its calls, each request a call of its own; and libc's, whose threads make them."""
    needs_capture()
    with Tmp() as tmp:
        program, trace, text, work = (os.path.join(tmp, n) for n in ("aio", "t.feign", "t.txt", "w"))
        compile_text(AIO, program, "-lrt")
        os.mkdir(work)
        for how, want in (["kernel"], [("io_submit", "1")] * 3), ([], [("pread64", "1000"), ("pwrite64", "700"), ("pwrite64", "700")]):
            records_if_it_can(trace, program, *how, cwd=work, lacks="this kernel has no asynchronous I/O")
            assert feign("convert", trace, text).status == 0
            with open(text, encoding="utf-8") as f:
                calls = re.findall(r"] (io_submit|pwrite64|pread64)\(.*\) = (-?\w+) <.*/f\"", f.read())
            assert sorted(calls) == want, calls
            replays(trace, tmp, work, fidelity=1)
            shutil.rmtree(os.path.join(tmp, "root"))


def compile_text(text, program, *libraries):
    with open(program + ".c", "w", encoding="ascii") as f:
        f.write(text)
    if subprocess.run(["cc", "-w", "-D_GNU_SOURCE", "-o", program, program + ".c", *libraries], stderr=subprocess.DEVNULL, check=False).returncode:
        raise Skip("no C compiler, or none of " + " ".join(libraries))


def recorded_program(tmp, source, *arguments, libraries=()):
    """A program in C, recorded where it works: the program, that place, the trace, and the trace as text."""
    needs_capture()
    program, work, trace, text = (os.path.join(tmp, n) for n in ("program", "w", "t.feign", "t.txt"))
    os.makedirs(work, exist_ok=True)
    compile_text(source, program, *libraries)
    r = feign("record", "-q", "-o", trace, "--", program, *arguments, cwd=work)
    assert r.status == 0, r.err
    assert feign("convert", "-q", trace, text).status == 0
    with open(text, encoding="utf-8") as f:
        return program, work, trace, f.read()


UNENDED = r"""
#include <fcntl.h>
#include <liburing.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static char data[1 << 20];
int main(int argc, char** argv) {
  struct io_uring ring;
  int way[2], empty[2];
  if (io_uring_queue_init(8, &ring, 0) != 0) return 77;
  if (pipe(way) != 0 || pipe(empty) != 0) return 1;
  int file = open("f", O_CREAT | O_WRONLY, 0600);
  io_uring_prep_write(io_uring_get_sqe(&ring), file, data, 700, 0);
  if (io_uring_submit_and_wait(&ring, 1) < 0) return 1; /* it ends, and nobody takes its result */
  if (vfork() == 0) { /* it closes nothing of its parent's */
    close(ring.ring_fd);
    _exit(0);
  }
  io_uring_prep_write(io_uring_get_sqe(&ring), file, data, 900, 700);
  if (io_uring_submit_and_wait(&ring, 2) < 0) return 1;
  io_uring_prep_write(io_uring_get_sqe(&ring), way[1], data, sizeof data, 0); /* more than it has room for */
  io_uring_prep_write(io_uring_get_sqe(&ring), way[1], data, sizeof data, 0);
  io_uring_prep_read(io_uring_get_sqe(&ring), empty[0], data, 1, 0);
  if (io_uring_submit(&ring) < 0) return 1;
  if (argc > 1) io_uring_queue_exit(&ring);
  return 0;
}
"""


def test_io_uring_of_which_nobody_takes_the_results():
    """What had ended is there all the same; of what had not it is said how much."""
    needs_capture()
    with Tmp() as tmp:
        program, trace, text = (os.path.join(tmp, n) for n in ("unended", "t.feign", "t.txt"))
        compile_text(UNENDED, program, "-luring")
        for closes in ([], ["closes"]):
            r = records_if_it_can(trace, program, *closes, cwd=tmp, lacks="the kernel lets nobody use io_uring")
            assert "not in it: 1 request of io_uring that had not ended" in r.err, (closes, r.err)
            assert feign("convert", "-q", trace, text).status == 0
            with open(text, encoding="utf-8") as f:
                got = re.findall(r" pwrite64\(.*count=(\d{3}), offset=(\d+)\) = (\d+)", f.read())
            assert got == [("700", "0", "700"), ("900", "700", "900")], (closes, got)


WAITS_FOR_MANY = r"""
#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static struct io_uring ring;
static double own_time(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}
static int writes(int file, int count) {
  struct io_uring_cqe* c;
  for (int i = 0; i < count; ++i) {
    struct io_uring_sqe* const s = io_uring_get_sqe(&ring);
    io_uring_prep_write(s, file, "abcd", 4, 0);
    s->user_data = 0;
    if (io_uring_submit_and_wait(&ring, 1) != 1 || io_uring_peek_cqe(&ring, &c) != 0 || c->res != 4) return 0;
    io_uring_cqe_seen(&ring, c);
  }
  return 1;
}
int main(int argc, char** argv) {
  const int many = atoi(argv[1]), file = open("f", O_RDWR | O_CREAT, 0644);
  int way[2];
  if (io_uring_queue_init(64, &ring, 0) != 0) return 77;
  if (pipe(way) != 0) return 1;
  const double begun = own_time();
  if (!writes(file, 2000)) return 2;
  const double few = own_time() - begun;
  for (int i = 1; i <= many; ++i) {
    struct io_uring_sqe* const s = io_uring_get_sqe(&ring);
    io_uring_prep_poll_add(s, way[0], POLLIN);
    s->user_data = i;
    if (i % 64 == 0 && io_uring_submit(&ring) != 64) return 3;
  }
  const double then = own_time();
  if (!writes(file, 2000)) return 4;
  printf("%.0f %.0f\n", few, own_time() - then);
  return 0;
}
"""


def test_io_uring_of_a_server_that_waits_for_many():
    """What ends is found at once, however many requests are under way; those on no files, of which there are too many to keep, are no calls that are missing."""
    needs_capture()
    with Tmp() as tmp:
        program, trace, text = (os.path.join(tmp, n) for n in ("many", "t.feign", "t.txt"))
        compile_text(WAITS_FOR_MANY, program, "-luring")
        for many in (16384, 65536 + 64):
            r = records_if_it_can(trace, program, str(many), cwd=tmp, lacks="the kernel lets nobody use io_uring")
            few, then = map(float, r.out.split())
            assert then < 8 * few, (many, few, then)
            assert "found no room" not in r.err, r.err
            assert feign("convert", "-q", trace, text).status == 0
            with open(text, encoding="utf-8") as f:
                assert len(re.findall(r" pwrite64\(.*count=4, offset=0\) = 4 ", f.read())) == 4000, many


SILENT = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>
static struct io_uring ring;
static int ends(unsigned count, const int* wanted) {
  if (io_uring_submit_and_wait(&ring, count) < 0) return 0;
  for (unsigned i = 0; i < count; ++i) {
    struct io_uring_cqe* c;
    if (io_uring_wait_cqe(&ring, &c) != 0 || c->res != wanted[i]) return 0;
    io_uring_cqe_seen(&ring, c);
  }
  return 1;
}
static struct io_uring_sqe* next(unsigned flags) {
  struct io_uring_sqe* const s = io_uring_get_sqe(&ring);
  s->flags = (unsigned char)flags;
  return s;
}
#define PREPARED(s, flag, call) { struct io_uring_sqe* s = next(0); call; s->flags |= (flag); }
int main(void) {
  static char data[4096];
  const int silent = 1 << 6, link = IOSQE_IO_LINK, file = open("a", O_RDWR | O_CREAT, 0644);
  struct iovec pieces[2] = {{data, 1500}, {data, 500}};
  if (io_uring_queue_init(8, &ring, 0) != 0 || (ring.features & 1u << 11) == 0) return 77;
  /* A chain of which only the last one says anything, and that is written to one after the other. */
  PREPARED(s, silent | link, io_uring_prep_writev(s, file, pieces, 2, 0));
  PREPARED(s, silent | link, io_uring_prep_write(s, file, data, 300, 2000));
  PREPARED(s, 0, io_uring_prep_read(s, file, data, 40, -1));
  if (!ends(1, (const int[]){40})) return 1;
  /* Its head fails: nothing else of it is made, and if the head says no more than that, nothing else is said. */
  PREPARED(s, silent | link, io_uring_prep_openat(s, AT_FDCWD, "none", O_RDONLY, 0));
  PREPARED(s, silent | link, io_uring_prep_write(s, file, data, 700, 1 << 20));
  PREPARED(s, 0, io_uring_prep_write(s, file, data, 800, 1 << 20));
  if (!ends(1, (const int[]){-2})) return 2;
  PREPARED(s, link, io_uring_prep_openat(s, AT_FDCWD, "none", O_RDONLY, 0));
  PREPARED(s, silent, io_uring_prep_write(s, file, data, 900, 1 << 20));
  if (!ends(2, (const int[]){-2, -125})) return 4;
  /* One that falls short says so, and nothing that is behind it is made. */
  PREPARED(s, silent | link, io_uring_prep_read(s, file, data, 4096, 2000));
  PREPARED(s, silent, io_uring_prep_write(s, file, data, 600, 1 << 20));
  if (!ends(1, (const int[]){300})) return 5;
  /* A place of the ring's table, of which nothing tells that it was filled. */
  const int none[4] = {-1, -1, -1, -1};
  if (io_uring_register_files(&ring, none, 4) != 0) return 6;
  PREPARED(s, silent | link, io_uring_prep_files_update(s, (int*)&file, 1, 2));
  PREPARED(s, IOSQE_FIXED_FILE, io_uring_prep_write(s, 2, data, 50, 0));
  if (!ends(1, (const int[]){50})) return 7;
  /* No buffer is left to choose. */
  PREPARED(s, IOSQE_BUFFER_SELECT, (io_uring_prep_read(s, file, 0, 1000, 0), s->buf_group = 9));
  if (!ends(1, (const int[]){-105})) return 3;
  return lseek(file, 0, SEEK_END) != 2300 || lseek(file, 0, SEEK_CUR) != 2300;
}
"""


def test_io_uring_of_which_only_failures_are_said():
    """What was linked behind one that failed was not made; a read from where the file is moves it."""
    needs_capture()
    with Tmp() as tmp:
        program, trace, text, work = (os.path.join(os.path.realpath(tmp), name) for name in ("silent", "t.feign", "t.txt", "w"))
        compile_text(SILENT, program, "-luring")
        os.mkdir(work)
        records_if_it_can(trace, program, cwd=work, lacks="the kernel lets nobody use io_uring, or it says all")
        assert feign("convert", "-q", trace, text).status == 0
        with open(text, encoding="utf-8") as f:
            got = [re.search(r" (\w+)\(.*\) = (-?\w+) ", line).groups() for line in f if "/a\"" in line or "/none\"" in line]
        assert got == [("openat", "3"), ("pwritev", "2000"), ("pwrite64", "300"), ("read", "40"), ("openat", "-ENOENT"), ("openat", "-ENOENT"),
                       ("pread64", "300"), ("fcntl", "1073741826"), ("pwrite64", "50"), ("lseek", "2300"), ("lseek", "2300")], got
        replays(trace, tmp, work)


REFUSED_AT_ONCE = r"""
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#define FAILS(call, error) \
  if ((call) != -1 || errno != error) return __LINE__
int main(void) {
  char b[10];
  int way[2], f = open("f", O_CREAT | O_RDWR, 0644), named = open("f", O_PATH);
  struct open_how how = {.flags = O_RDONLY, .resolve = RESOLVE_IN_ROOT};
  if (pipe(way) != 0 || splice(named, 0, way[1], 0, 0, 0) != 0) return 1; /* it cannot be read: nothing looks whether */
  long none = syscall(SYS_openat2, AT_FDCWD, "", &how, sizeof how);
  if (none != -1 || errno != ENOENT) return errno == ENOSYS ? 77 : 2;
  FAILS(symlink("", "f/x"), ENOENT);
  FAILS(symlink("", "none/x"), ENOENT);
  FAILS(symlink("", "f"), ENOENT);
  FAILS(syscall(SYS_readlink, "none", b, 0), EINVAL); /* which is no file for that */
  FAILS(syscall(SYS_readlink, "f/x", b, 0), EINVAL);
  if (symlink("f", "link") != 0) return 3;
  FAILS(syscall(SYS_readlink, "link", b, -1), EINVAL);
  return mkdir("none", 0755) != 0 || close(f) != 0;
}
"""


def test_calls_that_are_refused_before_a_path_is_looked_at():
    """What they name is not known from them, nor that it is not there (the working directory)."""
    needs_capture()
    with Tmp() as tmp:
        program, trace, work = (os.path.join(os.path.realpath(tmp), name) for name in ("program", "t.feign", "w"))
        compile_text(REFUSED_AT_ONCE, program)
        os.mkdir(work)
        records_if_it_can(trace, program, cwd=work, lacks="no openat2")
        replays(trace, tmp, work, 1)


LOCKS_STAY = r"""
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  struct flock whole = {.l_type = F_WRLCK};
  int f = open("f", O_CREAT | O_RDWR, 0644), status;
  if (fcntl(f, F_SETLK, &whole) != 0) return 1;
  close(open("f", O_PATH));
  if (fork() == 0) _exit(fcntl(f, F_SETLK, &whole) != -1 || errno != EAGAIN);
  if (wait(&status) < 0 || status != 0) return 2;
  close(open("f", O_RDONLY));
  if (fork() == 0) _exit(fcntl(f, F_SETLK, &whole) != 0);
  return wait(&status) < 0 || status != 0;
}
"""


def test_closing_a_descriptor_of_a_name_leaves_locks():
    needs_capture()
    with Tmp() as tmp:
        program, trace, work = (os.path.join(os.path.realpath(tmp), name) for name in ("program", "t.feign", "w"))
        compile_text(LOCKS_STAY, program)
        os.mkdir(work)
        r = feign("record", "-o", trace, "--", program, cwd=work)
        assert r.status == 0, (r.status, r.err)
        replays(trace, tmp, work, 1)


RESIZED = r"""
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static struct io_uring_params p;
static int ring, array;
static char* queues;
static struct io_uring_sqe* entries;
static void map(void) {
  unsigned size = p.cq_off.cqes + p.cq_entries * 16 + p.sq_off.array + p.sq_entries * 4;
  queues = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
  entries = mmap(0, p.sq_entries * 64, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
}
static int writes(int fd, unsigned count) {
  unsigned* tail = (unsigned*)(queues + p.sq_off.tail);
  unsigned* order = (unsigned*)(queues + array);
  for (unsigned i = 0; i < count; ++i, ++*tail) {
    unsigned at = *tail % p.sq_entries;
    entries[at] = (struct io_uring_sqe){.opcode = IORING_OP_WRITE, .fd = fd, .addr = (unsigned long)queues, .len = 10, .off = *tail * 10};
    if (array != 0) order[at] = at;
  }
  if (syscall(SYS_io_uring_enter, ring, count, count, IORING_ENTER_GETEVENTS, 0, 0) != count) return 1;
  *(unsigned*)(queues + p.cq_off.head) += count;
  return 0;
}
int main(int argc, char** argv) {
  p.flags = 1 << 12 | 1 << 13; /* IORING_SETUP_SINGLE_ISSUER, _DEFER_TASKRUN */
  if (argc == 1) p.flags |= 1 << 16; /* _NO_SQARRAY */
  ring = syscall(SYS_io_uring_setup, 4, &p);
  if (ring < 0) return 77;
  map();
  array = p.sq_off.array;
  int fd = open("f", O_CREAT | O_WRONLY, 0600);
  if (writes(fd, 3)) return 1;
  struct io_uring_params more = {.sq_entries = 16, .cq_entries = 32, .flags = IORING_SETUP_CQSIZE};
  if (syscall(SYS_io_uring_register, ring, 33 /* IORING_REGISTER_RESIZE_RINGS */, &more, 1) != 0) return 77;
  p = more;
  map();
  if (array != 0) array = (p.cq_off.cqes + p.cq_entries * 16 + 63) / 64 * 64; /* the kernel does not say */
  return writes(fd, 13) || writes(fd, 5);
}
"""


def test_io_uring_whose_queues_are_resized():
    """What is submitted to the new ones is there; where the kernel does not say where their order is, it is counted."""
    needs_capture()
    with Tmp() as tmp:
        program, trace = os.path.join(tmp, "resized"), os.path.join(tmp, "t.feign")
        compile_text(RESIZED, program)
        for arguments, seen in ((), 21), (("ordered",), 3):
            r = records_if_it_can(trace, program, *arguments, cwd=tmp, lacks="the kernel lets nobody resize an io_uring")
            assert feign("info", trace, "--json").json()["ops"]["pwrite64"]["count"] == seen, (arguments, r.err)
            assert ("18 requests of io_uring are not in the trace" in r.err) == (seen == 3), (arguments, r.err)


def test_io_uring_of_a_program_that_enters_the_kernel_by_itself():
    """fio has the instruction in its own text. Named in the command, all its requests are there; else it is said how many are not."""
    needs_capture()
    if not shutil.which("fio"):
        raise Skip("there is no fio")
    job = ["fio", "--name=j", "--size=2m", "--rw=randrw", "--ioengine=io_uring", "--iodepth=8", "--filename=f", "--output-format=json", "--output=said"]
    for shell in (False, True):
        with Tmp() as tmp:
            trace = os.path.join(tmp, "t.feign")
            r = feign("record", "-o", trace, "--", *(["sh", "-c", " ".join(job)] if shell else job), cwd=tmp)
            with open(os.path.join(tmp, "said"), encoding="utf-8") as f:
                text = f.read()
            if r.status != 0 or "{" not in text:
                raise Skip(f"no io_uring for fio here: {r.err[-200:]}{text[-200:]}")
            said = json.loads(text[text.index("{"):])["jobs"][0]
            ops = feign("info", trace, "--json").json()["ops"]
            got = [ops.get(name, {"count": 0})["count"] for name in ("pread64", "pwrite64")]
            want = [said["read"]["total_ios"], said["write"]["total_ios"]]
            missing = re.search(r"(\d+) requests of io_uring are not in the trace", r.err)
            if shell:
                assert missing and 500 < sum(got) + int(missing[1]) <= sum(want) == 512, (got, want, r.err)
            else:
                assert got == want and sum(want) == 512 and not missing, (got, want, r.err)


ITS_OWN = r"""
#include <fcntl.h>
#include <unistd.h>
static long own_write(long fd, const void *b, long n) {
  long r;
  __asm__ volatile("movl $1, %%eax\n syscall" : "=a"(r) : "D"(fd), "S"(b), "d"(n) : "rcx", "r11", "memory");
  return r;
}
/* What lies behind the instruction may not move: a function of its own jumps there, from afar. */
long joins(void), writes(long fd, const void *b, long n), reads(long fd, void *b, long n), pushes(long fd, const void *b, long n), keeps(long fd, const void *b, long n);
__asm__(".text\n writes: .cfi_startproc\n mov $1, %eax\n syscall\n behind: inc %rax\n ret\n .cfi_endproc\n"
        "pushes: .cfi_startproc\n .rept 9\n nop\n .endr\n push $1\n pop %rax\n syscall\n ret\n .cfi_endproc\n" /* where code is to be small */
        "keeps: .cfi_startproc\n movq $1, -8(%rsp)\n .rept 9\n nop\n .endr\n mov -8(%rsp), %rax\n syscall\n mov %rax, -8(%rsp)\n ret\n .cfi_endproc\n" /* where it is not optimized */
        "reads: .cfi_startproc\n .rept 9\n nop\n .endr\n xor %eax, %eax\n syscall\n ret\n .cfi_endproc\n" /* 0, as compilers load it */
        ".skip 70000, 0x90\n joins: .cfi_startproc\n mov $41, %eax\n jmp behind\n .cfi_endproc\n");
#ifdef LARGE
const char large[70 << 20] = {1};
#endif
int main(void) {
  int fd = open("f", O_CREAT | O_RDWR, 0600);
  for (int i = 0; i < 9; i++) own_write(fd, "abc", 3);
  char b[3];
  return writes(fd, "abc", 3) != 4 || joins() != 42 || pushes(fd, b, 3) != 3 || keeps(fd, b, 3) != 3 || reads(fd, b, 3) != 0;
}
"""


def test_system_calls_of_the_programs_own():
    """Of a program at any address or at a fixed, low one, of any size; what cannot be told apart by a build id is said."""
    needs_capture()
    with Tmp() as tmp:
        source, trace, text = (os.path.join(tmp, n) for n in ("own.c", "t.feign", "t.txt"))
        with open(source, "w", encoding="ascii") as f:
            f.write(ITS_OWN)
        for flags, recorded in (["-pie", "-fPIE"], 12), (["-no-pie"], 12), (["-DLARGE"], 12), (["-Wl,--no-eh-frame-hdr"], 12), (["-Wl,--build-id=none"], 0):
            program = os.path.join(tmp, "own")
            subprocess.run(["cc", "-O1", *flags, "-Wl,--build-id" if recorded else flags[0], "-o", program, source], check=True)
            r = feign("record", "-o", trace, "--", program, cwd=tmp)
            assert r.status == 0 and ("not through libc" in r.err) == (recorded == 0), (flags, r.status, r.err)
            assert feign("convert", "-q", trace, text).status == 0
            with open(text, encoding="utf-8") as f:
                calls = re.findall(r"\] (read|write)\(", f.read())
            assert (calls.count("write"), calls.count("read")) == (recorded, recorded and 1), flags


NO_ROOM = r"""
long reads(long fd, void *b, long n), after(void);
__asm__(".text\n.skip 64, 0x90\n reads: .cfi_startproc\n xor %eax, %eax\n syscall\n ret\n .cfi_endproc\n"
        " after: .cfi_startproc\n ret\n .cfi_endproc\n");
int main(void) {
  char b[3];
  after();
  return reads(-1, b, 3) != -9;
}
"""


def test_a_system_call_without_room_for_a_jump_is_said():
    """Of a program's own: a function of five bytes, and the next one right behind."""
    needs_capture()
    with Tmp() as tmp:
        program = os.path.join(tmp, "own")
        compile_text(NO_ROOM, program, "-Wl,--build-id")
        r = feign("record", "-o", os.path.join(tmp, "t.feign"), "--", program, cwd=tmp)
        assert r.status == 0 and "not in it: 1 of 1 system calls that a program makes by itself" in r.err, (r.status, r.err)
        for command, said in (("env", program), True), (("cp", program, os.path.join(tmp, "copy")), False):
            r = feign("record", "-o", os.path.join(tmp, "t.feign"), "--", *command, cwd=tmp)
            assert r.status == 0 and (f"not in the trace: 1 of 1 system calls that {os.path.realpath(program)} makes" in r.err) == said, r.err
            assert said or not r.err, r.err


WITHOUT_UNWINDING = r"""
#include <fcntl.h>
long writes(long fd, const void *b, long n);
/* Wherever a part of it ends: between a number and its call, or within one of them. */
__asm__(".text\n.skip 20 << 20, 0x90\n.skip OFF, 0x90\nwrites:\n.rept 1200\nmov $1, %eax\nsyscall\nxor %r8d, %r8d\ntest %rax, %rax\n.endr\nret\n.skip 20 << 20, 0x90\n");
int main(void) { return writes(open("f", O_CREAT | O_RDWR, 0600), "abc", 3) != 3; }
"""


def test_large_programs_without_unwinding():
    """Of a program of which nobody knows where functions begin, what is near a system call is taken apart, and not all of it."""
    needs_capture()
    with Tmp() as tmp:
        source, trace, text, program = (os.path.join(tmp, n) for n in ("large.c", "t.feign", "t.txt", "large"))
        for off in range(1, 14, 4):
            with open(source, "w", encoding="ascii") as f:
                f.write(WITHOUT_UNWINDING.replace("OFF", str(off)))
            subprocess.run(["cc", "-O1", "-fno-asynchronous-unwind-tables", "-Wl,--build-id", "-o", program, source], check=True)
            with open(trace + ".time", "w", encoding="ascii") as f:
                subprocess.run([sys.executable, "-c", "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:]); "
                                "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(done.returncode)",
                                FEIGN, "record", "-o", trace, "--", program], cwd=tmp, stdout=f, check=True)
            assert feign("convert", "-q", trace, text).status == 0
            with open(text, encoding="utf-8") as f:
                assert sum(" write(" in line for line in f) == 1200, off
        with open(trace + ".time", encoding="ascii") as f:
            most = int(f.read())
        assert most < 500_000 or sanitized(), f"{most} KiB"


LOOP = """
import os
file = os.open("f", os.O_RDWR | os.O_CREAT)
for i in range(50000):
    os.pwrite(file, b"y", i % 4096)
    os.pread(file, 1, i % 4096)
with open("/proc/self/status") as f:
    print(next(line.split()[1] for line in f if line.startswith("VmHWM")))
"""


def test_what_a_recording_costs_in_memory_and_on_disk():
    needs_capture()
    if sanitized():
        raise Skip("a sanitizer's own memory is counted, too")
    with Tmp() as tmp:
        trace, command = os.path.join(tmp, "t.feign"), [os.path.realpath(sys.executable), "-c", LOOP]
        alone = subprocess.run(command, cwd=tmp, stdout=subprocess.PIPE, text=True, check=True).stdout
        with_it = feign("record", "-q", "-o", trace, "--", *command, cwd=tmp)
        assert with_it.status == 0 and int(with_it.out) - int(alone) <= 8 << 10, (with_it.out, alone, with_it.err)
        activities = feign("info", trace, "--json").json()["activities"]
        assert activities >= 100_000 and os.path.getsize(trace) <= 16 * activities, (activities, os.path.getsize(trace))


SECOND = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>
int main(void) {
  for (int i = 0; i < 2; ++i) { /* loaded once more, it lies where it was */
    void* other = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
    if (other == NULL) return 77;
    int (*opens)(const char*, int, ...) = (int (*)(const char*, int, ...))dlsym(other, "open");
    ssize_t (*writes)(int, const void*, size_t) = (ssize_t (*)(int, const void*, size_t))dlsym(other, "write");
    int (*closes)(int) = (int (*)(int))dlsym(other, "close");
    int fd = opens("second", O_CREAT | O_WRONLY | O_APPEND, 0600);
    if (writes(fd, "second", 6) != 6 || closes(fd) != 0 || dlclose(other) != 0) return 1;
  }
  return 0;
}
"""


def test_a_second_libc():
    """What dlmopen loads into a namespace of its own."""
    needs_capture()
    with Tmp() as tmp:
        program, trace, text = (os.path.join(tmp, n) for n in ("second-libc", "t.feign", "t.txt"))
        compile_text(SECOND, program, "-ldl")
        r = records_if_it_can(trace, program, cwd=tmp, lacks="libc cannot be loaded twice here")
        assert not r.err, r.err
        assert feign("convert", "-q", trace, text).status == 0
        with open(text, encoding="utf-8") as f:
            calls = [m[1] for m in re.finditer(r"\] (\w+)\([^\n]*/second\"", f.read())]
        assert calls == ["openat", "write", "close"] * 2, calls


SEALED = r"""
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(void) {
  const long page = 4096, most = 1024, hole = 2048;
  const int fd = open("code", O_RDWR | O_CREAT, 0755);
  if (fd < 0 || ftruncate(fd, most * page)) return 1;
  struct sock_filter all = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
  struct sock_fprog filter = {1, &all};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) return 77;
  char* m = mmap(0, (hole + most) * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(m, hole * page);
  for (long n = 1; n <= most; ++n)
    if (mmap(m + hole * page, n * page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED) return 1;
  return 0;
}
"""


def test_code_of_any_length_is_mapped_where_nothing_may_be_asked():
    """A text as long as a library's, with nothing where the headers of that would be, under seccomp."""
    needs_capture()
    with Tmp() as tmp:
        program = os.path.join(tmp, "sealed")
        compile_text(SEALED, program)
        r = feign("record", "-q", "-o", os.path.join(tmp, "t.feign"), "--", program, cwd=tmp)
        if r.status == 77:
            raise Skip("no seccomp here")
        assert r.status == 0, (r.status, r.err)


def test_programs_in_another_root():
    """The library is not to be had there: its loader must not say so to the program's user, nor lose what else is preloaded."""
    needs_capture()
    with Tmp() as tmp:
        trace, root = os.path.join(tmp, "t.feign"), os.path.join(tmp, "root")
        libraries = re.findall(r"(/\S+\.so\S*)", subprocess.run(["ldd", "/bin/sh"], stdout=subprocess.PIPE, text=True, check=True).stdout)
        for file in ("/bin/sh", "/bin/cat", "/usr/bin/env", *libraries):
            os.makedirs(root + os.path.dirname(file), exist_ok=True)
            shutil.copy(file, root + file)
        if subprocess.run(["chroot", root, "/bin/sh", "-c", ":"], stderr=subprocess.DEVNULL, check=False).returncode:
            raise Skip("no chroot here")
        script = f"LD_PRELOAD=$LD_PRELOAD:{libraries[0]} chroot {root} /bin/sh -c '/bin/cat /bin/cat > /copy; /usr/bin/env; :'"
        r = feign("record", "-o", trace, "--", "sh", "-c", script)
        assert r.status == 0 and "ld.so" not in r.err and "not in the trace: /bin/sh" in r.err, r.err
        assert "libfeign" not in r.out and f"LD_PRELOAD={libraries[0]}\n" in r.out, r.out


SANDBOX = r"""
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static long landlock(const char* const* paths) {
  const unsigned long read_file = 4;
  struct { unsigned long access; int at; } __attribute__((packed)) beneath = {read_file, 0};
  const long set = syscall(444, &read_file, 8, 0);
  if (set < 0) _exit(77);
  for (; *paths; ++paths)
    if ((beneath.at = open(*paths, O_PATH)) >= 0) syscall(445, set, 1, &beneath, 0);
  return syscall(446, set, 0);
}
int main(int count, char** words) {
  static const char* const paths[] = {"/usr", "/lib", "/lib64", "/bin", "/etc", "/dev", 0};
  struct sock_filter all[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
    BPF_STMT(BPF_ST, 1),
    BPF_STMT(BPF_ALU | BPF_SUB | BPF_K, 1000),
    BPF_STMT(BPF_LD | BPF_W | BPF_MEM, 1),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, words[1][0] == 'k' ? SYS_remap_file_pages : SYS_acct, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {sizeof all / sizeof *all, all};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (words[1][0] == 'l' ? landlock(paths) : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) return 77;
  execvp(words[2], words + 2);
  return 1;
}
"""


def test_what_a_sandbox_starts():
    """It runs as it does without: recorded, or without the library, where that could not be there."""
    needs_capture()
    with Tmp() as tmp:
        program, trace = os.path.join(tmp, "sandbox"), os.path.join(tmp, "t.feign")
        compile_text(SANDBOX, program)
        for kind, there in ("kills", False), ("mild", True), ("landlock", False):
            command = [program, kind, "sh", "-c", "echo said"]
            alone = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
            if alone.returncode == 77:
                continue
            r = feign("record", "-o", trace, "--", *command)
            assert alone.returncode == r.status == 0 and r.out == alone.stdout == "said\n" and "ld.so" not in r.err, (kind, r.status, r.out, r.err)
            assert ("not in the trace" in r.err) != there, (kind, r.err)


RESTRICTED = r"""
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char** words) {
  struct sock_filter all[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, words[1][0] == 'k' ? SYS_gettid : SYS_acct, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {sizeof all / sizeof *all, all};
  const unsigned action = SECCOMP_RET_ALLOW;
  char* const shell[] = {"sh", "-c", "echo x >&3", 0};
  char both[16] = "link";
  int status;
  pid_t child;
  posix_spawn_file_actions_t actions;
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (words[1][0] == 'a') {
    syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 0) == 0) return 1;
  } else if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
    return 77;
  }
  if (symlink("kept", "link") || readlink(both, both, sizeof both) != 4) return 2;
  if (open("kept", O_RDWR | O_CREAT, 0600) != 3) return 3;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 3, "given", O_RDWR | O_CREAT, 0600);
  for (int i = 0; i < 300; ++i) posix_spawn_file_actions_addclose(&actions, 500 + i);
  if (posix_spawn(&child, "/bin/sh", &actions, 0, shell, 0) || waitpid(child, &status, 0) != child || status) return 4;
  return write(3, "1234", 4) == 4 ? 0 : 5;
}
"""


def test_what_a_process_starts_whose_system_calls_are_restricted():
    """What lies between vfork and exec is the child's. Who only asks for a filter, or is refused one, is not restricted. Nobody asks
    for a thread's number where that would be the program's end."""
    needs_capture()
    for how in "asks", "filters", "kills":
        with Tmp() as tmp:
            program, trace, text = (os.path.join(tmp, n) for n in ("restricted", "t.feign", "t.txt"))
            compile_text(RESTRICTED, program)
            r = feign("record", "-o", trace, "--", program, how, cwd=tmp)
            if r.status == 77:
                continue
            assert r.status == 0 and (not r.err) == (how != "kills"), (how, r.status, r.err)
            assert feign("convert", "-q", trace, text, "--to", "text").status == 0
            with open(text, encoding="utf-8") as f:
                lines = f.readlines()
            def who(what):
                return [re.search(r"\[(\d+) ", line)[1] for line in lines if re.search(what, line)]
            parent, child = who("clone3|vfork")[0], who("/given.*O_CREAT")[0]
            assert child != parent and set(who(r"close\(.*EBADF")) == {child} and who("execve")[-1] == child
            assert [len(who(rf"write\(.*= {n} .*/{name}\"")) for n, name in ((4, "kept"), (2, "given"))] == [1, how != "kills"]
            assert how != "asks" or who(r"readlink\(.*/link\"")


LOCKED = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
static long locked(void) {
  char text[4096];
  const int file = open("/proc/self/status", O_RDONLY);
  text[read(file, text, sizeof text - 1)] = 0;
  close(file);
  long kilobytes = -1;
  sscanf(strstr(text, "VmLck:"), "VmLck: %ld", &kilobytes);
  return kilobytes >> 20;
}
int main(void) {
  struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog filter = {1, all};
  const int file = open("file", O_CREAT | O_WRONLY, 0600);
  struct rlimit most;
  if (geteuid() != 0 && (getrlimit(RLIMIT_MEMLOCK, &most) != 0 || most.rlim_cur != RLIM_INFINITY)) return 77;
  if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0) return 77;
  if (write(file, "before", 6) != 6 || locked() != 0) return 1;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) return 77;
  if (write(file, "filtered", 8) != 8 || locked() != 0) return 2;
  alarm(20);
  if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0 || mlockall(8) == 0) return 3;
  return write(file, "locked again", 12) == 12 ? 0 : 4;
}
"""


def test_memory_that_is_locked_where_calls_are_restricted():
    """All of the records is mapped there, 64 GiB, of which the program locks no more than is written to."""
    needs_capture()
    with Tmp() as tmp:
        program, trace, text = (os.path.join(tmp, n) for n in ("locked", "t.feign", "t.txt"))
        compile_text(LOCKED, program)
        r = records_if_it_can(trace, program, cwd=tmp, lacks="no locking or no seccomp here")
        assert not r.err, r.err
        assert feign("convert", "-q", trace, text, "--to", "text").status == 0
        with open(text, encoding="utf-8") as f:
            assert re.findall(r"write\(.*= (\d+) .*/file\"", f.read()) == ["6", "8", "12"]


NOT_BOTH = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char** words) {
  struct sock_filter all[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {sizeof all / sizeof *all, all};
  struct rlimit little = {512, 512};
  if (words[1][0] == 'l' && setrlimit(RLIMIT_FSIZE, &little)) return 1;
  if (words[1][0] == 'm') {
    if (prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0)) return 77;
  } else {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) return 77;
  }
  execvp(words[2], words + 2);
  return 1;
}
"""


def test_where_nothing_that_was_written_may_be_run():
    """As services are run that are to be hard to attack."""
    needs_capture()
    with Tmp() as tmp:
        program, trace = os.path.join(tmp, "notboth"), os.path.join(tmp, "t.feign")
        compile_text(NOT_BOTH, program)
        for kind, there in ("memory", True), ("filter", True), ("little", False):  # no room in a file for the jumps: no signal comes
            r = feign("record", "-o", trace, "--", program, kind, "sh", "-c", "cat /etc/passwd > /dev/null; echo said")
            if r.status == 77:
                continue
            assert r.status == 0 and r.out == "said\n" and (r.err == "") == there, (kind, r.status, r.out, r.err)
            assert ("/etc/passwd" in feign("info", trace).out) == there, kind


ENTERS = """
import ctypes, os
here = os.getcwd()[1:]
if ctypes.CDLL(None).setns(os.open("/proc/self/ns/mnt", os.O_RDONLY), 0x20000) != 0:   # CLONE_NEWNS
    os._exit(77)
os.close(os.open(here + "/a", os.O_WRONLY | os.O_CREAT, 0o600))
os.chdir(here)
os.close(os.open("b", os.O_WRONLY | os.O_CREAT, 0o600))
"""


def test_who_enters_a_mount_namespace_is_at_its_root():
    needs_capture()
    with Tmp() as tmp:
        trace, work = os.path.join(tmp, "t.feign"), os.path.join(os.path.realpath(tmp), "w")
        os.mkdir(work)
        records_if_it_can(trace, "python3", "-S", "-c", ENTERS, cwd=work, lacks="no namespace can be entered here")
        replays(trace, tmp, work)
        assert sorted(os.listdir(work)) == ["a", "b"]


NAMESPACE = """
import ctypes, os
f = os.open("inherited", os.O_RDWR | os.O_CREAT, 0o600)
assert ctypes.CDLL(None).unshare(0x20000000) == 0   # CLONE_NEWPID
if os.fork() == 0:
    os.write(f, b"123")
    if os.fork() == 0:
        os.close(os.open("made", os.O_WRONLY | os.O_CREAT, 0o600))
        os._exit(0)
    os.wait()
    os._exit(0)
os.wait()
"""


def test_processes_of_another_pid_namespace_are_told():
    needs_capture()
    if subprocess.run(["unshare", "-fp", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        raise Skip("no PID namespace can be made here")
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.feign")
        for command, told in (["unshare", "-fp", "sh", "-c", "(echo a > a); (echo b > b)"], 1), (["sh", "-c", "(echo a > a)"], 0):
            r = feign("record", "-o", trace, "--", *command, cwd=tmp)
            left = [x["call"] for x in feign("info", trace, "--json").json()["left_out"]]
            assert r.status == 0 and r.err.count("in a PID namespace") == left.count("(namespace)") == told, (command, r.err, left)
        work = os.path.join(tmp, "w")
        os.mkdir(work)
        assert feign("record", "-o", trace, "--", "python3", "-S", "-c", NAMESPACE, cwd=work).status == 0
        replays(trace, tmp, work)
        assert sorted(os.listdir(work)) == ["inherited", "made"]


# The first process of a namespace ends before its child, which the kernel kills then.
NAMESPACES_IN_TURN = """
for d in a b c; do
  mkdir $d
  unshare -fp sh -c "cd $d; sh -c 'echo x > f; sleep 60' & until test -s f; do :; done" || exit
done
"""


def test_pid_namespaces_one_after_the_other():
    """The second process of each is number 2, and another one: it is where its own parent is."""
    needs_capture()
    if subprocess.run(["unshare", "-fp", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        raise Skip("no PID namespace can be made here")
    with Tmp() as tmp:
        trace, work = os.path.join(tmp, "t.feign"), os.path.realpath(os.path.join(tmp, "w"))
        os.mkdir(work)
        assert feign("record", "-o", trace, "--", "sh", "-c", NAMESPACES_IN_TURN, cwd=work).status == 0
        assert sorted(tree(work)) == ["a", "a/f", "b", "b/f", "c", "c/f"]
        replays(trace, tmp, work)


def test_a_program_with_a_sanitizer():
    """Its runtime wants to come first, if it is not told that another may; so also without the environment."""
    needs_capture()
    with Tmp() as tmp:
        program, trace = os.path.join(tmp, "sane"), os.path.join(tmp, "t.feign")
        with open(program + ".c", "w", encoding="ascii") as f:
            f.write('#include <stdio.h>\nint main(void) { FILE* f = fopen("f", "a"); return fputs("x", f) < 0 || fclose(f) != 0; }\n')
        if subprocess.run(["cc", "-fsanitize=address", "-o", program, program + ".c"], stderr=subprocess.DEVNULL, check=False).returncode:
            raise Skip("no AddressSanitizer")
        options = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
        if subprocess.run([program], cwd=tmp, env=options, stderr=subprocess.DEVNULL, check=False).returncode:
            raise Skip("AddressSanitizer does not run here")
        command = [FEIGN, "record", "-o", trace, "--", "sh", "-c", "echo $ASAN_OPTIONS; ./sane && env -i ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 ./sane && env -i ./sane"]
        done = subprocess.run(command, cwd=tmp, env=options, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        assert done.returncode == 0 and "detect_leaks=0\n" in done.stdout, done.stdout
        ops = feign("info", trace, "--json").json()["ops"]
        assert ops["write"]["count"] == 4, (ops, done.stdout)


def test_what_a_program_was_preloaded_with_is_not_put_into_others():
    """A program that is started without a library of LD_PRELOAD, which who starts it had, has none of it; but feign's."""
    needs_capture()
    with Tmp() as tmp:
        library, trace = os.path.join(tmp, "libsays.so"), os.path.join(tmp, "t.feign")
        done = subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", library, "-"], text=True, check=False, input="""
#include <unistd.h>
static __attribute__((constructor)) void says(void) { if (write(1, "here\\n", 5) != 5) _exit(1); }
""")
        if done.returncode:
            raise Skip("no compiler")
        for with_it in "env", "env --unset=LD_PRELOAD", "env -i", "env LD_PRELOAD=":
            command = ["env", "LD_PRELOAD=" + library, "sh", "-c", f"{with_it} /bin/cat /etc/passwd > a; {with_it} /bin/cat a > b"]
            subprocess.run(command, cwd=tmp, stdout=subprocess.DEVNULL, check=True)
            with open(os.path.join(tmp, "b"), encoding="utf-8") as f:
                want = f.read()
            r = feign("record", "-o", trace, "--", *command, cwd=tmp)
            with open(os.path.join(tmp, "b"), encoding="utf-8") as f:
                assert f.read() == want, with_it
            assert r.status == 0 and "not in the trace" not in r.err and "/etc/passwd" in feign("info", trace).out, (with_it, r.err)


def test_what_libraries_do_before_main():
    needs_capture()
    with Tmp() as tmp:
        library = compiled(tmp, "constructor", "-shared", "-fPIC")
        trace, work = os.path.join(tmp, "t.feign"), os.path.join(tmp, "w")
        os.mkdir(work)
        r = feign("record", "-o", trace, "--", "env", f"LD_PRELOAD={library}", "sh", "-c", "echo b > b", cwd=work)
        assert r.status == 0, r.err
        replays(trace, tmp, work)
        assert sorted(os.listdir(work)) == ["a", "b"]


def test_a_program_that_is_audited():
    needs_capture()
    with Tmp() as tmp:
        audit = compiled(tmp, "audit", "-shared", "-fPIC")
        both("audit", "env", f"LD_AUDIT={audit}", "sh", "-c", "echo a > a; cat a > b", least=20)


def test_a_program_below_valgrind():
    """It is not recorded; nor does valgrind say anything of the library."""
    needs_capture()
    if not shutil.which("valgrind"):
        raise Skip("valgrind is not installed")
    with Tmp() as tmp:
        command = ["valgrind", "-q", "cat", "/dev/null"]
        if subprocess.run(command, check=False).returncode:
            raise Skip("valgrind does not run here")
        r = feign("record", "-o", os.path.join(tmp, "t.feign"), "--", "sh", "-c", " ".join(command))
        assert r.status == 0 and "another libc" in r.err and "sigprocmask" not in r.err, (r.status, r.err)


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


def test_programs_that_are_not_recorded_are_named():
    """Those that a recorded program starts: which, how often, why; the trace knows it, too."""
    needs_capture()
    with Tmp() as tmp:
        tmp = os.path.realpath(tmp)
        source, trace = os.path.join(tmp, "own.c"), os.path.join(tmp, "t.feign")
        with open(source, "w", encoding="ascii") as f:
            f.write(ITS_OWN)
        if subprocess.run(["cc", "-static", "-o", f"{tmp}/static", source], stderr=subprocess.DEVNULL, check=False).returncode:
            raise Skip("no static libc")
        subprocess.run(["cc", "-o", f"{tmp}/own", source, "-Wl,--build-id"], check=True)
        os.mkdir(f"{tmp}/sub")
        with open(f"{tmp}/script", "w", encoding="ascii") as f:
            f.write(f"#!{tmp}/static\n")
        os.chmod(f"{tmp}/script", 0o755)
        own, static = "system calls that {}/own makes by itself".format(tmp), "is statically linked: no library can be put into it"
        r = feign("record", "-o", trace, "--", "sh", "-c", "./static; ./own; cd sub; ../static; ../static; ../script; true", cwd=tmp)
        assert r.status == 0, r.err
        said = [line.split("not in the trace: ", 1)[1] for line in r.err.splitlines() if "not in the trace: " in line]
        assert len(said) == 3 and own in said[0] and "(started once)" in said[0] and "name it in the command" in said[0], said
        assert said[1].startswith(f"{tmp}/script: {tmp}/static {static}") and "(started once)" in said[1], said
        assert said[2].startswith(f"{tmp}/static {static}") and "--tracer strace" in said[2] and "(started 3 times)" in said[2], said
        known = [(x["count"], x["why"]) for x in feign("info", trace, "--json").json()["left_out"] if x["call"] == "(program)"]
        assert sorted(count for count, _ in known) == [1, 1, 3] and sum(static in why for _, why in known) == 2, known
        # Named, it is hooked.
        r = feign("record", "-o", trace, "--", "env", f"{tmp}/own", cwd=tmp)
        assert r.status == 0 and not r.err and feign("info", trace, "--json").json()["ops"]["write"]["count"] == 12, r.err


OPENS_AND_STARTS = r"""
#include <fcntl.h>
#include <unistd.h>
int main(void) {
  dup2(open("seven", O_WRONLY | O_CREAT | O_APPEND, 0600), 7);
  execl("/bin/sh", "sh", "-c", "echo x >&7", (char*)0);
  return 1;
}
"""


def test_what_a_static_program_hands_on():
    """One that is not recorded lies between two that are, in one process: what it opened is known."""
    needs_capture()
    with Tmp() as tmp:
        work, trace, static = (os.path.join(tmp, n) for n in ("w", "t.feign", "static"))
        os.mkdir(work)
        compile_text(OPENS_AND_STARTS, static, "-static")
        r = feign("record", "-o", trace, "--", "sh", "-c", f"{static}; exec {static}", cwd=work)
        assert r.status == 0, r.err
        replays(trace, tmp, work, 1)


def recorded_streams(tmp, *command, fine=(0,)):
    """A trace with libc's streams, and where the command ran; the files in there may be made before."""
    needs_capture()
    trace, work = os.path.join(tmp, "t.feign"), os.path.realpath(os.path.join(tmp, "w"))
    os.makedirs(work, exist_ok=True)
    r = feign("record", "-o", trace, "--layer", "stdio", "--layer", "posix", "--", *command, cwd=work)
    if r.status == 77:
        raise Skip("no locale C.UTF-8")
    assert r.status in fine, (r.status, r.err)
    return trace, work


def streams_replay(source, *flags):
    """A program of C replays as it was recorded, with libc's streams."""
    with Tmp() as tmp:
        program = os.path.join(tmp, "program")
        compile_text(source, program, *flags)
        trace, work = recorded_streams(tmp, program)
        replays(trace, tmp, work, 1)


def test_streams():
    """libc's streams at their own layer: the system calls lie in them, and a replay does one of the two."""
    with Tmp() as tmp:
        trace, work = recorded_streams(tmp, compiled(tmp, "streams"))
        text = os.path.join(tmp, "t.txt")
        feign("convert", trace, text)
        with open(text, encoding="utf-8") as f:
            lines = f.read().splitlines()
        ops = collections.Counter(m[1] for m in (re.match(r"\d+ [\d.]+ \[.*?\] ([\w:]+)\(", line) for line in lines) if m)
        assert ops["stdio:fprintf"] == 3000 and ops["stdio:getline"] > 3000 and ops["stdio:fopen"] == 10, ops
        for line in lines:
            if re.search(r"\] (read|write|lseek|openat)\(", line):
                assert "depth=1" in line or "[1 " not in line, line
        replays(trace, tmp, work, 1)


def test_streams_of_wide_characters():
    """And of calls that are seldom made: fsetpos, scanf, fdopen to append."""
    with Tmp() as tmp:
        trace, work = recorded_streams(tmp, compiled(tmp, "wide"))
        replays(trace, tmp, work, 1)


TEXTS = """cut -f2 a > cut; fmt -w 30 a > fmt; od -c a > od; join a b > join; paste a b > paste; nl a > nl; expand a > expand; pr a > pr
base64 a > base64; cksum a > cksum; ls -l a > ls; diff a b > diff; getent passwd root > passwd; (echo one; echo two) > echo"""


def test_modes_are_those_of_the_umask_that_the_command_began_with():
    needs_capture()
    for mask in (0o002, 0o022, 0o077):
        with Tmp() as tmp, Tmp() as root:
            trace, there = os.path.join(tmp, "t.feign"), os.path.join(tmp, "there")
            os.mkdir(there)
            before = os.umask(mask)
            try:
                r = feign("record", "-q", "-o", trace, "--", "sh", "-c", "(umask 027; touch g); mkdir d; touch f d/f", cwd=there)
            finally:
                os.umask(before)
            assert r.status == 0, r.err
            for more in ((), ("--with", "filter,preset=workload")):
                assert feign("replay", trace, "--root", root, "--require", "100%", *more).status == 0
                for name in ("d", "f", "d/f", "g"):
                    was, made = (os.stat(os.path.join(top, name)).st_mode for top in (there, root + there))
                    assert oct(was) == oct(made), (oct(mask), name)


MOVES_FIRST = r"""
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char** argv) {
  if (chdir("d") != 0) return 1; /* the first call that is recorded */
  if (fork() == 0) {
    for (int i = 0; i < 500;) i += rmdir(argv[1]) == 0;
    _exit(0);
  }
  for (int i = 0; i < 500;) i += mkdir("x", 0700) == 0;
  wait(0);
}
"""


def test_what_comes_before_the_first_call_does_not_make_it_count_twice():
    """The umask that the command began with; the call moves names that others meet in."""
    with Tmp() as tmp:
        os.makedirs(os.path.join(tmp, "w", "d"))
        before = os.umask(0o002)
        try:
            _, work, trace, _ = recorded_program(tmp, MOVES_FIRST, os.path.join(tmp, "w", "d/x"))
        finally:
            os.umask(before)
        replays(trace, tmp, work, 1)


def test_streams_by_macros():
    """What is put into a stream's buffer without a call, by programs of ours and by others; and by a fork's child."""
    for program in ("macros", "printf"):
        with Tmp() as tmp:
            trace, work = recorded_streams(tmp, compiled(tmp, program))
            replays(trace, tmp, work, 1)
    with Tmp() as tmp:
        os.mkdir(os.path.join(tmp, "w"))
        for name in "ab":
            with open(os.path.join(tmp, "w", name), "w", encoding="ascii") as f:
                f.writelines(f"{i:05} {name}\tof a line {i % 7}\n" for i in range(2000))
        trace, work = recorded_streams(tmp, "sh", "-c", TEXTS, fine=(0, 1))
        replays(trace, tmp, work, 1)


FLUSHES = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void* reads(void* pipe) { getc(pipe); return NULL; }
int main(void) {
  int ends[2];
  char bytes[8];
  FILE* a = fopen("a", "w");
  fputs("four", a), fflush(NULL);
  const int fd = open("a", O_RDONLY);
  if (read(fd, bytes, sizeof bytes) != 4) return 1;
  fputs(".", a);
  pthread_t t;
  if (pipe(ends) != 0) return 2;
  pthread_create(&t, NULL, reads, fdopen(ends[0], "r"));
  usleep(50000);
  return 0;
}
"""


GIVES_BACK = r"""
#include <stdio.h>
#include <unistd.h>
int main(void) {
  FILE* f = fopen("f", "w+");
  fputs("abcd", f);
  rewind(f);
  ungetc(getc(f), f);
  setvbuf(f, NULL, _IONBF, 0);
  fputc('e', f);
  return fclose(f);
}
"""


def test_what_was_read_is_given_back():
    """As Lua does, which looks at a byte. In a replay it is another one, which libc must not take for one that it has to keep."""
    with Tmp() as tmp:
        compile_text(GIVES_BACK, os.path.join(tmp, "gives-back"))
        trace, work = recorded_streams(tmp, os.path.join(tmp, "gives-back"))
        replays(trace, tmp, work, 1)


def test_flushes_of_all_streams():
    """They are flushes of each; and the one at the end waits for no thread that is in a call."""
    with Tmp() as tmp:
        program = os.path.join(tmp, "flushes")
        compile_text(FLUSHES, program, "-lpthread")
        trace, work = recorded_streams(tmp, "timeout", "-s", "KILL", "20", program)
        replays(trace, tmp, work, 1)


def test_streams_that_cannot_be_written():
    """What libc gives up of a buffer, a replay does not write; and the program is told as if it were not recorded."""
    with Tmp() as tmp:
        trace, work = recorded_streams(tmp, compiled(tmp, "full"))
        replays(trace, tmp, work, 1)


TELLS = r"""
#include <stdio.h>
int main(void) { return ftell(stdout) != 4 || puts("told") < 0; }
"""


def test_where_a_stream_is_that_was_open_before():
    with Tmp() as tmp:
        program = os.path.join(tmp, "tells")
        compile_text(TELLS, program)
        needs_capture()
        trace, work = os.path.join(tmp, "t.feign"), os.path.join(tmp, "w")
        os.mkdir(work)
        with open(os.path.join(work, "out"), "wb", buffering=0) as out:
            out.write(b"1234")
            done = subprocess.run([FEIGN, "record", "-o", trace, "--layer", "stdio", "--layer", "posix", "--", program], cwd=work, stdout=out)
        assert done.returncode == 0, done
        replays(trace, tmp, work, 1)


GOES_ON = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(void) {
  const char* const how[] = {"open", "fopen", "dup", "dup2", "flushed", "fcntl"};
  for (int i = 0; i < 6; ++i) {
    char one[20], other[20];
    sprintf(one, "%s.1", how[i]);
    sprintf(other, "%s.2", how[i]);
    FILE *f = fopen(one, "w"), *again = NULL;
    const int number = fileno(f), there = open(other, O_WRONLY | O_CREAT, 0666);
    fputs("hello", f);
    if (i == 4) fflush(f);
    if (close(number) != 0) return 1;
    if (i == 1 && ((again = fopen("second", "w")) == NULL || fileno(again) != number)) return 1;
    if ((i == 0 || i == 4) && open(other, O_WRONLY) != number) return 1;
    if (i == 2 && dup(there) != number) return 1;
    if (i == 3 && dup2(there, number) != number) return 1;
    if (i == 5 && fcntl(there, F_DUPFD, number) != number) return 1;
    fputs(" world", f);
    if (fclose(f) != 0 || close(there) != 0) return 1;
    if (again != NULL) fclose(again);
  }
  return 0;
}
"""


LIKE_LIBCS = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static char bytes[6000], buffer[100];
static FILE* at_end(const char* name, int flags, const char* mode) {
  FILE* f = flags >= 0 ? fdopen(open(name, flags, 0600), mode) : fopen(name, mode);
  return fseek(f, 0, SEEK_END) == 0 ? f : NULL;
}
int main(void) {
  memset(bytes, 'x', sizeof bytes);
  FILE* f = fopen("f", "w+");
  fwrite(bytes, 1, sizeof bytes, f);
  fclose(f);
  // Who has met the end stays there, though there is more by now: not fread() of more than its buffer.
  f = at_end("f", -1, "r");
  if (getc(f) != EOF || truncate("f", 9000) != 0 || getc(f) != EOF || getline(&(char*){NULL}, &(size_t){0}, f) != -1) return 1;
  if (fread(bytes, 1, 5000, f) != 3000 || truncate("f", 9100) != 0 || getc(f) != EOF) return 2;
  clearerr(f);
  if (getc(f) == EOF) return 3;
  fclose(f);
  // A descriptor that appends makes no stream that does.
  f = at_end("f", O_RDWR | O_APPEND, "r+");
  fseek(f, -50, SEEK_CUR);
  fputs("hello", f);
  if (ftell(f) != 9055) return 4;
  fclose(f);
  // A buffer of the program's own has its size, libc's has not.
  f = fopen("f", "r");
  setvbuf(f, buffer, _IOFBF, sizeof buffer);
  if (getc(f) == EOF || lseek(fileno(f), 0, SEEK_CUR) != sizeof buffer) return 5;
  fclose(f);
  f = fopen("f", "r");
  setvbuf(f, NULL, _IOFBF, sizeof buffer);
  return getc(f) == EOF || lseek(fileno(f), 0, SEEK_CUR) < 1024 ? 6 : 0;
}
"""


def test_streams_are_as_libc_has_them():
    with Tmp() as tmp:
        compile_text(LIKE_LIBCS, os.path.join(tmp, "like-libcs"))
        trace, work = recorded_streams(tmp, os.path.join(tmp, "like-libcs"))
        replays(trace, tmp, work, 1)


def streams_of(text, tmp):
    """What a program of that text did with streams, where it was, and how long the files are that it left there."""
    program = os.path.join(tmp, "program")
    compile_text(text, program)
    trace, work = recorded_streams(tmp, program)
    return trace, work, {name: os.path.getsize(os.path.join(work, name)) for name in os.listdir(work)}


def test_a_stream_whose_descriptor_is_closed_under_it_goes_on():
    """With what has the number next: its bytes are there, those of before, too."""
    with Tmp() as tmp:
        trace, work, sizes = streams_of(GOES_ON, tmp)
        assert sizes == {"open.1": 0, "open.2": 11, "fopen.1": 0, "fopen.2": 0, "second": 11, "dup.1": 0, "dup.2": 11, "dup2.1": 0, "dup2.2": 11,
                         "flushed.1": 5, "flushed.2": 6, "fcntl.1": 0, "fcntl.2": 11}, sizes
        replays(trace, tmp, work, 1)


GOES_BEFORE = r"""
#include <stdio.h>
#include <unistd.h>
int main(void) {
  FILE* f = fopen("closed", "w");
  fputs("lost", f), close(fileno(f));
  if (fclose(f) != EOF) return 1;
  f = fopen("next", "w"); /* has its number */
  return fputs("next", f) == EOF || fclose(f) != 0;
}
"""


def test_a_stream_whose_descriptor_was_closed_is_closed_with_its_bytes():
    needs_capture()
    for layers in ("stdio", "posix"), ("stdio",):
        with Tmp() as tmp:
            program, trace, root, work = (os.path.join(tmp, n) for n in ("program", "t.feign", "root", "w"))
            compile_text(GOES_BEFORE, program)
            os.mkdir(root)
            os.mkdir(work)
            assert feign("record", "-o", trace, *(w for layer in layers for w in ("--layer", layer)), "--", program, cwd=work).status == 0
            assert feign("replay", trace, "--root", root, "--require", 1).status == 0
            same_tree(tree(root + work), tree(work))


DUPLICATE_STAYS = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static char bytes[10000];
static int last;
static FILE* next(FILE* f, const char* mode, off_t at) {
  last = dup(fileno(f));
  if (fclose(f) != 0 || (at != 0 && lseek(last, at, SEEK_SET) != at)) exit(1);
  return fdopen(last, mode);
}
static void reads(FILE* f, size_t count) {
  if (fread(bytes, 1, count, f) == 0 || ftell(f) < 0) exit(1);
}
int main(void) {
  FILE *f = fopen("source", "w"), *g;
  fwrite(bytes, 1, sizeof bytes, f), fclose(f);
  f = fopen("goes-on", "w"), fputs("hello", f), ftell(f);
  g = next(f, "w", 100), ftell(g), fputs("more", g), fclose(g);
  f = fopen("source", "r"), reads(f, 100); /* how far the file was read stays, not how far the stream */
  g = next(f, "r", 0), reads(g, 50), fclose(g);
  f = fopen("source", "r"), reads(f, 4096);
  g = next(f, "r", 9000), reads(g, 5000), fclose(g);
  f = fopen("source", "r+"), reads(f, 10), fseek(f, 20, SEEK_SET), fputs("zz", f);
  g = next(f, "r", 0), reads(g, 24), fclose(g);
  f = fopen("source", "r"), reads(f, 100); /* two at once */
  g = fdopen(dup(fileno(f)), "r"), fclose(g), reads(f, 100), fclose(f);
  f = fopen("both", "w"), g = fdopen(dup(fileno(f)), "w");
  fputs("first", f), fputs("second", g), fclose(g), fputs("third", f), fclose(f);
  f = fopen("lost", "w"), last = dup(fileno(f)); /* what another file does not get */
  fputs("abc", f), close(fileno(f)), fclose(f), close(last);
  f = fopen("other", "w"), fputs("abc", f), last = dup(fileno(f)), close(last), fputs("def", f);
  return fclose(f);
}
"""


def test_a_stream_that_is_closed_while_a_duplicate_of_its_descriptor_stays():
    with Tmp() as tmp:
        trace, work, sizes = streams_of(DUPLICATE_STAYS, tmp)
        assert sizes == {"source": 10000, "goes-on": 104, "both": 16, "lost": 0, "other": 6}, sizes
        replays(trace, tmp, work, 1)


CLOSED_BY_CHILD = r"""
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static char bytes[10000];
int main(void) {
  FILE* f = fopen("source", "w");
  fwrite(bytes, 1, sizeof bytes, f), fclose(f);
  f = fopen("source", "r");
  const int kept = dup(fileno(f));
  int status = 1;
  if (fread(bytes, 1, 100, f) != 100) return 1;
  const pid_t child = fork();
  if (child == 0) _exit(fclose(f) != 0);
  if (waitpid(child, &status, 0) != child || status != 0) return 1;
  if (fread(bytes, 1, 4000, f) != 4000) return 1;
  return lseek(kept, 0, SEEK_CUR) != 8192;
}
"""


def test_what_was_read_stays_in_a_stream_that_a_child_closes():
    with Tmp() as tmp:
        trace, work, _ = streams_of(CLOSED_BY_CHILD, tmp)
        replays(trace, tmp, work, 1)


DUPLICATES = r"""
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  const int f = open("f", O_WRONLY | O_CREAT, 0666);
  for (int i = 0; i < 400; ++i) {
    int status = 1;
    const pid_t child = fork();
    if (child == 0) _exit(dup(f) < 0);
    if (waitpid(child, &status, 0) != child || status != 0) return 1;
  }
  return close(f);
}
"""


def test_duplicates_end_with_their_process():
    """As a shell's children duplicate what it has, and leave it to their end to close that."""
    with Tmp() as tmp:
        trace, work, _ = streams_of(DUPLICATES, tmp)
        root = os.path.join(tmp, "root")
        os.mkdir(root)
        done = subprocess.run(["sh", "-c", f"ulimit -n 200; exec {FEIGN} replay {trace} --root {root} --require 1"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
        assert done.returncode == 0, done.stderr
        # Of processes that share their descriptors, any may close what another one has duplicated.
        with open(trace := os.path.join(tmp, "t.strace"), "w", encoding="ascii") as f:
            f.write('10 openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0644) = 3\n10 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FS|CLONE_FILES|SIGCHLD) = 11\n'
                    + 400 * "10 dup(3) = 4\n11 close(4) = 0\n")
        done = subprocess.run(["sh", "-c", f"ulimit -n 200; exec {FEIGN} replay {trace} --root {root} --require 1"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
        assert done.returncode == 0, done.stderr


FAILS_TO_CLOSE = r"""
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
int main(void) {
  const struct rlimit none = {0, 0};
  signal(SIGXFSZ, SIG_IGN);
  if (setrlimit(RLIMIT_FSIZE, &none) != 0) return 1;
  for (int i = 0; i < 400; ++i) {
    FILE* const f = fopen("f", "w");
    if (f == NULL || fputs("bytes", f) < 0 || fclose(f) == 0) return 1;
  }
  return 0;
}
"""


def test_streams_that_fail_as_they_are_closed_leave_no_descriptor():
    """Also where no system calls in fclose tell a replay that it closed the file all the same."""
    needs_capture()
    with Tmp() as tmp:
        program, trace, root = (os.path.join(tmp, name) for name in ("fails", "t.feign", "root"))
        compile_text(FAILS_TO_CLOSE, program)
        os.mkdir(root)
        r = feign("record", "-o", trace, "--layer", "stdio", "--", program, cwd=tmp)
        assert r.status == 0, (r.status, r.err)
        done = subprocess.run(["sh", "-c", f"ulimit -n 200; exec {FEIGN} replay {trace} --root {root} --require 1"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
        assert done.returncode == 0, done.stderr


REOPENS = r"""
#include <stdio.h>
int main(void) {
  char bytes[100];
  FILE* f = fopen("text", "r");
  if (getc(f) == EOF || (f = freopen("text", "rb", f)) == NULL) return 1;
  return getc(f) == EOF || fread(bytes, 1, sizeof bytes, f) != 9 || fclose(f) != 0;
}
"""


def test_a_file_that_is_reopened_is_as_long_as_it_was():
    """What the stream before it sought is not where the new one reads."""
    with Tmp() as tmp:
        program, work = os.path.join(tmp, "reopens"), os.path.join(tmp, "w")
        compile_text(REOPENS, program)
        os.mkdir(work)
        with open(os.path.join(work, "text"), "w", encoding="ascii") as f:
            f.write("0123456789")
        trace, work = recorded_streams(tmp, program)
        replays(trace, tmp, work, 1)


ERRORS = r"""
#include <error.h>
#include <stdio.h>
int main(void) {
  printf("one\n");
  error(0, 2, "%s %g %d %d %d %d %d %g", "text", 1.5, 1, 2, 3, 4, 5, 2.5);
  printf("two\n");
  error_at_line(0, 0, "file", 7, "%s %g", "text", 2.5);
  printf("three\n");
  error(3, 0, "%s", "the end");
  return 0;
}
"""
ERRORS_SAY = """one
errors: text 1.5 1 2 3 4 5 2.5: No such file or directory
two
errors:file:7: text 2.5
three
errors: the end
"""


def test_error_flushes_standard_output_once():
    with Tmp() as tmp:
        program = os.path.join(tmp, "errors")
        compile_text(ERRORS, program)
        trace, work = recorded_streams(tmp, "sh", "-c", f"PATH={tmp} exec errors > out 2>&1", fine=(3,))
        with open(os.path.join(work, "out"), encoding="utf-8") as f:
            assert f.read() == ERRORS_SAY
        replays(trace, tmp, work, 1)


CHILDREN_WRITE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  FILE* f = fopen("f", "w+");
  for (int i = 0; i < 500; ++i) fprintf(f, "line %d\n", i);
  rewind(f);
  char line[100];
  for (int i = 0; i < 10; ++i) fgets(line, sizeof line, f);
  fseek(f, 0, SEEK_CUR);
  fputs("parent", f); /* not written yet: the child has it, too */
  if (fork() == 0) {
    fputs("child", f);
    const long at = ftell(f);
    fclose(f);
    _exit(at != 81);
  }
  int status;
  wait(&status);
  if (status != 0 || ftell(f) < 0) return 2;
  if (fork() == 0) _exit(fputs("never written", f) < 0);
  wait(NULL);
  fputs("more", f);
  fclose(f);
  f = fopen("g", "w+");
  for (int i = 0; i < 500; ++i) fprintf(f, "line %d\n", i);
  rewind(f);
  fgets(line, sizeof line, f);
  if (fork() == 0) { /* goes on in what the parent has read */
    for (int i = 0; i < 9; ++i) fgets(line, sizeof line, f);
    _exit(ftell(f) != 70);
  }
  wait(&status);
  fgets(line, sizeof line, f);
  if (status != 0 || ftell(f) != 14) return 3;
  if (fork() == 0) execlp("sh", "sh", "-c", "echo shell >> g", NULL);
  wait(NULL);
  return fclose(f);
}
"""


def test_streams_of_children():
    """A fork has a stream of its own, as its parent's was; on the file both are at one place."""
    streams_replay(CHILDREN_WRITE)


MEETS_END = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
  char line[100], *more = NULL;
  size_t room = 0;
  for (int how = 0; how < 3; ++how) {
    FILE *w = fopen("f", "w"), *r;
    fputs("one\ntwo", w);
    fflush(w);
    r = fopen("f", "r");
    fgets(line, sizeof line, r);
    if (how == 0) fgets(line, sizeof line, r);
    if (how == 1) getline(&more, &room, r);
    if (how == 2) fscanf(r, "%s", line);
    fputs(" three\n", w); /* who has met the end does not see it */
    fclose(w);
    if (fgetc(r) != EOF || fgets(line, sizeof line, r) != NULL || ftell(r) != 7) return 1 + how;
    clearerr(r);
    if (fgets(line, sizeof line, r) == NULL || strcmp(line, " three\n") != 0) return 5 + how;
    fclose(r);
  }
  return 0;
}
"""


def test_a_line_that_the_end_of_the_file_ends():
    streams_replay(MEETS_END)


NOT_READ = r"""
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  FILE* f = fopen("f", "w");
  int number;
  if (fscanf(f, "%d", &number) != EOF || ferror(f)) return 1; /* it may not be read, and nothing but errno says so */
  f = freopen("f", "w+", f);
  fputs("one\ntwo\n", f);
  rewind(f);
  close(fileno(f));
  if (fgetc(f) != EOF || !ferror(f)) return 2;
  char* line = NULL;
  size_t room = 0;
  errno = 0;
  return getline(&line, &room, f) != -1 || errno != 0 || fscanf(f, "%d", &number) != EOF;
}
"""


def test_who_reads_nothing_from_a_stream_has_met_an_error_or_the_end():
    streams_replay(NOT_READ)


COOKIES = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
static ssize_t put(void* fd, const char* bytes, size_t size) { return write(*(int*)fd, bytes, size); }
static int leave(void* fd) { return close(*(int*)fd); }
int main(void) {
  const cookie_io_functions_t calls = {.write = put, .close = leave};
  close(open("before", O_RDWR | O_CREAT, 0600));
  int fd = open("through", O_RDWR | O_CREAT, 0600);
  FILE* f = fopencookie(&fd, "w", calls);
  fputs("cookie", f), fflush(f), fputs("more", f), fclose(f);
  fd = open("as it ends", O_RDWR | O_CREAT, 0600);
  fputs("no more", fopencookie(&fd, "w", calls));
  return 0;
}
"""


def test_a_stream_without_a_descriptor_makes_calls_on_what_it_likes():
    """Neither are they done by the stream's calls, nor are they on what those were on before."""
    with Tmp() as tmp:
        compile_text(COOKIES, os.path.join(tmp, "program"))
        trace, work = recorded_streams(tmp, os.path.join(tmp, "program"))
        replays(trace, tmp, work, 1)
        r = feign("info", trace)
        assert r.status == 0 and "lacks calls that close" not in r.out + r.err, (r.out, r.err)


ASKS = r"""
#include <stdio.h>
int main(void) {
  FILE* f = fopen("f", "w+");
  char nothing[1];
  fpos_t there;
  fputs("text", f);
  if (fgetpos(f, &there) != 0) return 1;
  rewind(f);
  return fgetpos(f, &there) != 0 || fgets(nothing, sizeof nothing, f) != nothing || fgetc(f) != 't' || fclose(f) != 0;
}
"""


def test_who_asks_where_a_stream_is_or_for_no_characters_of_it():
    """By fgetpos(): what libc asks the kernel for then lies in that call. And no characters are not the file's end."""
    with Tmp() as tmp:
        compile_text(ASKS, os.path.join(tmp, "program"))
        trace, work = recorded_streams(tmp, os.path.join(tmp, "program"))
        text = os.path.join(tmp, "t.txt")
        feign("convert", trace, text)
        with open(text, encoding="utf-8") as f:
            lines = f.read().splitlines()
        assert sum("stdio:ftell" in line for line in lines) == 2 and all("depth=1" in line for line in lines if "lseek(" in line), lines
        replays(trace, tmp, work, 1)


KEEPS = r"""
#include <stdio.h>
#include <unistd.h>
int main(void) {
  static char small[2][16];
  FILE *one = fopen("one", "w"), *more = fopen("more", "w");
  setvbuf(one, small[0], _IOFBF, sizeof small[0]), fputc('k', one);
  setvbuf(more, small[1], _IOFBF, sizeof small[1]), fputs("written", more), fputc('k', more);
  _exit(0);
}
"""


def test_a_small_buffer_keeps_characters_alone():
    """And is lost with them."""
    streams_replay(KEEPS)


NAMES_A_SET = r"""
#include <stdio.h>
int main(void) { return fopen("f", "w,ccs=utf-16le") == NULL || fopen("g", "wbe") == NULL; }
"""


def test_what_names_a_streams_characters_is_no_mode_of_its_file():
    with Tmp() as tmp:
        trace, _, _ = streams_of(NAMES_A_SET, tmp)
        text = os.path.join(tmp, "t.txt")
        assert feign("convert", "-q", trace, text).status == 0
        with open(text, encoding="utf-8") as f:
            flags = re.findall(r" stdio:fopen\(.*/(\w)\", mode=([A-Z_|]+)", f.read())
        assert flags == [("f", "O_WRONLY|O_CREAT|O_TRUNC"), ("g", "O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC")], flags


GIVES_BACK_APART = r"""
#include <stdio.h>
#include <unistd.h>
int main(void) {
  FILE* f = fopen("f", "w+");
  fseek(f, 4, SEEK_SET);
  if (fgetc(f) != EOF || ungetc('k', f) != 'k' || setvbuf(f, NULL, _IONBF, 0) != 0) return 1;
  _exit(0); /* not in libc's: it would free what it has not allocated */
}
"""


def test_a_character_that_was_given_back_goes_with_the_buffer():
    """A replay closes what the program left open."""
    streams_replay(GIVES_BACK_APART)


KNOWS_WHERE = r"""
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(void) {
  static char bytes[6000];
  FILE* f = fopen("f", "w+");
  fwrite(bytes, 1, sizeof bytes, f);
  fseek(f, 5000, SEEK_SET);
  fwrite(bytes, 1, 100, f);
  fflush(NULL);
  if (fseek(f, -10, SEEK_CUR) != 0 || fseek(f, -500, SEEK_CUR) != 0) return 1;
  return lseek(fileno(f), 0, SEEK_CUR) != 5090; /* the first one has read what is there: it knew where it was */
}
"""


def test_a_flush_of_all_streams_leaves_them_knowing_where_they_are():
    """As libc's does, not as that of one."""
    streams_replay(KNOWS_WHERE)


FORKS = r"""
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  static char bytes[200];
  FILE* f = fopen("f", "w+");
#ifdef UNUSED
  if (setvbuf(f, NULL, _IOFBF, 0) != 0) return 1; /* it has a buffer now */
#else
  fwrite(bytes, 1, 10, f);
  fseek(f, 0, SEEK_CUR);
  fwrite(bytes, 1, 132, f);
  fflush(NULL);
#endif
  if (fork() == 0) {
    fwrite(bytes, 1, 10, f);
    fseek(f, -56, SEEK_CUR); /* reads what is there, to its end */
    _exit(0);
  }
  wait(NULL);
  fwrite(bytes, 1, 10, f);
  return fclose(f);
}
"""


def test_a_copy_of_a_stream_knows_where_it_is():
    """Where a fork's child leaves a descriptor, its parent goes on."""
    streams_replay(FORKS)


def test_a_copy_of_a_stream_whose_buffer_nothing_was_in():
    """The replay wrote wherever the difference of two buffers led."""
    streams_replay(FORKS, "-DUNUSED")


REOPENS_NOTHING = r"""
#include <errno.h>
#include <stdio.h>
int main(void) {
  FILE* f = fopen("f", "w+");
  fputs("0123456789", f);
  return freopen(NULL, "wx", f) != NULL || errno != EEXIST;
}
"""


def test_a_stream_that_is_not_reopened_as_its_file_is_there():
    """It is as long as it was."""
    streams_replay(REOPENS_NOTHING)


ITEMS = r"""
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
int main(void) {
  static char bytes[7000];
  FILE* f = fopen("f", "w+");
  if (fwrite(bytes, 10, 0, f) != 0 || fwrite(bytes, 0, 10, f) != 0 || fwrite(bytes, 5, 2, f) != 2) return 1;
  rewind(f);
  if (fread(bytes, 4, 0, f) != 0 || fread(bytes, 0, 4, f) != 0 || fread(bytes, 4, 3, f) != 2 || ftell(f) != 10) return 2;
  rewind(f);
  if (fread(bytes, 20, 3, f) != 0 || !feof(f) || ftell(f) != 10) return 3; /* none, but all that there is */
  clearerr(f);
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &(struct rlimit){5001, 5001});
  setvbuf(f, NULL, _IONBF, 0);
  return fwrite(bytes, 7, 1000, f) != (5001 - 10) / 7 || ftell(f) != 5001;
}
"""


def test_a_last_item_that_is_moved_in_part():
    streams_replay(ITEMS)


LINES = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  FILE *f = fdopen(open("f", O_RDWR | O_CREAT | O_APPEND, 0666), "r+"), *other = fopen("f", "a");
  static char text[3000];
  memset(text, 'x', sizeof text);
  setvbuf(f, NULL, _IOLBF, 0);
  setvbuf(other, NULL, _IONBF, 0);
  for (int i = 0; i < 50; ++i) {
    fwrite(text, 1, sizeof text, f); /* stays in the buffer, up to the line's end */
    fputs("other", other);
    fprintf(f, "%d\npart", i);
    fputs("other\n", other);
    fseek(f, 0, SEEK_END);
    printf("%ld\n", ftell(f));
  }
  fclose(other);
  other = fopen("g", "w");
  setvbuf(other, NULL, _IONBF, 0);
  fseek(other, 0, SEEK_SET);
  fputs("parent", other);
  if (fork() == 0) _exit(fputs("child", other) < 0);
  wait(NULL);
  /* libc knows where it was */
  return fclose(f) != 0 || ftell(other) != 6 || fclose(other) != 0;
}
"""


def test_streams_that_a_line_ends_in():
    """A replay writes when libc did, and as much: what comes after a line's end stays."""
    streams_replay(LINES)


APPENDS = r"""
#include <stdio.h>
int main(void) {
  FILE *f = fopen("f", "w"), *g;
  fputs("0123456789", f);
  fclose(f);
  f = fopen("f", "a");
  g = fopen("f", "a+");
  for (int i = 0; i < 3; ++i) {
    fputs("four", f);
    fputs("seven..", g);
    fflush(g);
    fflush(f);
  }
  return fclose(f) | fclose(g);
}
"""


def test_where_a_stream_appends():
    """The system calls in its calls, too, say where in the file they wrote."""
    with Tmp() as tmp:
        program = os.path.join(tmp, "appends")
        compile_text(APPENDS, program)
        trace, work = recorded_streams(tmp, program)
        text = os.path.join(tmp, "t.txt")
        feign("convert", trace, text)
        with open(text, encoding="utf-8") as file:
            wrote = re.findall(r"\] write\(.*?\) = (\d+) .*? at=(\d+)", file.read())
        at = 0
        for count, where in wrote[1:]:
            at = at or 10
            assert int(where) == at, wrote
            at += int(count)
        assert at == 10 + 3 * 11, wrote
        replays(trace, tmp, work, 1)
        os.mkdir(other := os.path.join(tmp, "other"))
        r = feign("replay", trace, "--root", other, "--layer", "posix", "--require", 1)
        assert r.status == 0, r.err


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


LEFT_OUT = r"""
#include <stdio.h>
int main(void) {
  FILE* f = fopen("kept", "w");
  FILE* g = fopen("left", "w");
  fputs("text", f);
  fputs("text", g);
  return fclose(g) | fclose(f);
}
"""


def test_a_stream_that_is_left_out():
    """… is left out with the system calls in its calls."""
    with Tmp() as tmp:
        program, trace, work = os.path.join(tmp, "left-out"), os.path.join(tmp, "t.feign"), os.path.realpath(os.path.join(tmp, "w"))
        compile_text(LEFT_OUT, program)
        needs_capture()
        os.mkdir(work)
        r = feign("record", "-o", trace, "--layer", "stdio", "--layer", "posix", "--exclude", "left", "--", program, cwd=work)
        assert r.status == 0, r.err
        feign("convert", trace, text := os.path.join(tmp, "t.txt"))
        with open(text, encoding="utf-8") as f:
            calls = re.findall(r"\] (stdio:fopen|openat|stdio:fclose|write|close)\(", f.read())
        assert calls == ["stdio:fopen", "openat", "stdio:fclose", "write", "close"], calls
        os.remove(os.path.join(work, "left"))
        replays(trace, tmp, work, 1)


GOES_ON_AFTER_CHILD = r"""
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  char line[4000];
  FILE* f = fopen("f", "w");
  for (int i = 0; i < 500; ++i) fprintf(f, "line %d\n", i);
  fclose(f);
  f = fopen("f", "r");
  fgets(line, sizeof line, f);
  if (fork() == 0) _exit(fgets(line, sizeof line, f) == NULL || fread(line, 1, sizeof line, f) == 0);
  int status;
  wait(&status);
  return status != 0 || fgets(line, sizeof line, f) == NULL;
}
"""


def test_copies_of_a_trace_have_streams_of_their_own_children():
    """Whose file is as long as it was, though parent and child have read more of it than there is."""
    with Tmp() as tmp:
        program = os.path.join(tmp, "goes-on")
        compile_text(GOES_ON_AFTER_CHILD, program)
        trace, work = recorded_streams(tmp, program)
        size = os.path.getsize(os.path.join(work, "f"))
        for with_, top in ((), ""), (("--with", "replicate,copies=2"), "copy-1"):
            root = os.path.join(tmp, "root" + top)
            os.mkdir(root)
            r = feign("replay", trace, "--root", root, "--require", 1, *with_)
            assert r.status == 0, r.out + r.err
            assert os.path.getsize(os.path.join(root, top, work.lstrip("/"), "f")) == size


LINES_IN_UPDATES = r"""
#include <pthread.h>
#include <stdio.h>
static void* lines(void* of) {
  for (int i = 0; i < 20000; ++i) fprintf(of, "line %d\n", i);
  return NULL;
}
int main(void) {
  char line[100];
  FILE* f = fopen("f", "w");
  for (int i = 0; i < 500; ++i) fprintf(f, "line %d\n", i);
  fclose(f);
  f = fopen("f", "r+");
  setvbuf(f, NULL, _IOLBF, 0);
  fgets(line, sizeof line, f);
  fseek(f, 14, SEEK_SET);
  fgets(line, sizeof line, f);
  fseek(f, 0, SEEK_CUR);
  fputs("FGHIJ\n", f); /* where libc has to go back from the end of its buffer */
  fseek(f, 100, SEEK_CUR);
  fputs("KLMNO\n", f);
  if (ftell(f) != 133) return 2;
  fclose(f);
  f = fopen("g", "w");
  setvbuf(f, NULL, _IOLBF, 0);
  pthread_t all[4];
  for (int i = 0; i < 4; ++i) pthread_create(&all[i], NULL, lines, f);
  for (int i = 0; i < 4; ++i) pthread_join(all[i], NULL);
  return fclose(f);
}
"""


def test_lines_in_a_stream_that_is_read_too_and_one_that_threads_share():
    with Tmp() as tmp:
        program = os.path.join(tmp, "lines")
        compile_text(LINES_IN_UPDATES, program, "-lpthread")
        trace, work = recorded_streams(tmp, program)
        replays(trace, tmp, work, 1)
        for n in range(3):  # by nobody's order, what was closed may just be written to: no crash, no hang
            root = os.path.join(tmp, f"root{n}")
            os.mkdir(root)
            assert feign("replay", trace, "--root", root, "-q", "--order", "stream", timeout=60).status == 0


MANY_COPIES = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  FILE* f = fopen("f", "w");
  fseek(f, (1 << 20) - 1, SEEK_SET);
  putc('x', f);
  fclose(f);
  for (int i = 0; i < 60; ++i) {
    f = fopen("f", "r");
    setvbuf(f, malloc(1 << 20), _IOFBF, 1 << 20);
    getc(f);
  }
  int all[2];
  if (pipe(all) != 0) return 1;
  for (int i = 0; i < 30; ++i)
    if (fork() == 0) {
      char end;
      close(all[1]);
      getc(f);
      _exit(read(all[0], &end, 1) != 0); /* until all are there */
    }
  close(all[1]);
  while (wait(NULL) > 0) continue;
  return getc(f) != 0;
}
"""


def test_streams_of_children_take_no_more_memory_than_some():
    if sanitized():
        raise Skip("a sanitizer's own memory is counted, too")
    with Tmp() as tmp:
        program, root = os.path.join(tmp, "copies"), os.path.join(tmp, "root")
        compile_text(MANY_COPIES, program)
        trace, _ = recorded_streams(tmp, program)
        os.mkdir(root)
        child = subprocess.Popen([FEIGN, "replay", trace, "--root", root, "-q"], stdout=subprocess.DEVNULL)
        _, child.returncode, usage = os.wait4(child.pid, 0)
        assert child.returncode == 0 and usage.ru_maxrss < 700 << 10, (child.returncode, usage.ru_maxrss)


MAKES = r"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  const int f = open("made", O_WRONLY | O_CREAT, 0666);
  return unlink("old") != 0 || write(f, "text", 4) != 4;
}
"""


def test_what_a_program_did_that_cannot_be_recorded():
    """Made up for as the calls after it tell, once it has been waited for."""
    with Tmp() as tmp:
        trace, work = os.path.join(tmp, "t.feign"), os.path.realpath(os.path.join(tmp, "w"))
        compile_text(MAKES, program := os.path.join(tmp, "makes"), "-static")
        needs_capture()
        os.mkdir(work)
        r = feign("record", "-o", trace, "--", "sh", "-c", f"mkdir d; echo > old; cat made; {program}; cat made; cat old; ls > list", cwd=work)
        assert r.status == 0, r.err
        replays(trace, tmp, work, 1)


def test_status_is_the_commands():
    needs_capture()
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.feign")
        assert feign("record", "-o", trace, "--", "sh", "-c", "exit 7").status == 7
        assert feign("record", "-o", trace, "--", "sh", "-c", "kill -9 $$").status == 137
        assert os.path.exists(trace) and not os.path.exists(trace + ".raw")
        # Scripts without an interpreter's name are the shell's, as they are for a shell; what cannot be run is said.
        for text, status, said in ("echo x > made; exit 4\n", 4, ""), ("", 0, ""), (f"#!{tmp}/none\n", 127, "run .*/script: No such file"):
            script = os.path.join(tmp, "script")
            with open(script, "w", encoding="utf-8") as f:
                f.write(text)
            os.chmod(script, 0o755)
            r = feign("record", "-o", trace, "--", script, cwd=tmp)
            assert r.status == status and (re.search(said, r.err) if said else not r.err), (text, r.status, r.err)
        assert os.path.exists(os.path.join(tmp, "made"))


def test_without_descriptors_or_proc():
    """What cannot begin leaves nothing; /proc is not needed."""
    needs_capture()
    with Tmp() as tmp:
        done = subprocess.run(["sh", "-c", f"ulimit -n 4; exec {FEIGN} record -o t.feign -- true"], cwd=tmp, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 2 and "Too many open files" in done.stderr and not os.listdir(tmp), (done, os.listdir(tmp))
        if sanitized():
            raise Skip("a sanitizer needs /proc itself")
        without = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
        if subprocess.run([*without, "true"], stderr=subprocess.DEVNULL).returncode:
            raise Skip("/proc cannot be hidden here")
        trace, work = os.path.join(tmp, "t.feign"), os.path.join(tmp, "w")
        os.mkdir(work)
        done = subprocess.run([*without, FEIGN, "record", "-o", trace, "--", "sh", "-c", "mkdir d; echo x > d/f; cat d/f"], cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0 and done.stdout == "x\n", done.stdout
        os.mkdir(root := os.path.join(tmp, "hidden"))
        done = subprocess.run([*without, FEIGN, "replay", trace, "--root", root, "--require", "100%"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout
        replays(trace, tmp, work, 1)


LIFE_HINTS = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
int main(void) {
  const int f = open("f", O_RDWR | O_CREAT, 0666);
  uint64_t hint = RWH_WRITE_LIFE_LONG, told = 0;
  if (fcntl(f, F_SET_RW_HINT, &hint) != 0) return 77;
  return fcntl(f, F_GET_RW_HINT, &told) != 0 || told != hint;
}
"""


def test_hints_of_how_long_data_lives():
    """They lie behind a pointer, and are made again."""
    needs_capture()
    with Tmp() as tmp:
        program, trace, root = (os.path.join(tmp, name) for name in ("program", "t.feign", "root"))
        compile_text(LIFE_HINTS, program)
        records_if_it_can(trace, program, cwd=tmp, lacks="no such hints here")
        text = os.path.join(tmp, "t.txt")
        assert feign("convert", trace, text).status == 0
        with open(text, encoding="utf-8") as f:
            told = [line for line in f if "RW_HINT" in line]
        assert len(told) == 2 and all("arg=RWH_WRITE_LIFE_LONG" in line or "arg=4" in line for line in told), told
        os.mkdir(root)
        skips = feign("replay", trace, "--root", root, "--json", "--require", 1).json()["skips"]
        assert not any(s["op"] == "fcntl" and "hint" in s["why"] for s in skips), skips


MOUNT_BY_DESCRIPTOR = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
  const int tree = (int)syscall(SYS_open_tree, AT_FDCWD, ".", O_CLOEXEC);
  if (tree < 0) return 77;
  const int f = openat(tree, "f", O_WRONLY | O_CREAT, 0666);
  return write(f, "abc", 3) != 3 || close(f) != 0 || close(tree) != 0;
}
"""


def test_files_of_a_mount_that_only_has_a_descriptor():
    """Which they are no call tells: that is why they are not made, and no pipe is."""
    needs_capture()
    with Tmp() as tmp:
        program, trace, root = (os.path.join(tmp, name) for name in ("program", "t.feign", "root"))
        compile_text(MOUNT_BY_DESCRIPTOR, program)
        records_if_it_can(trace, program, cwd=tmp, lacks="no open_tree here")
        os.mkdir(root)
        why = {s["op"]: s["why"] for s in feign("replay", trace, "--root", root, "--json").json()["skips"]}
        assert "opened from a directory that nothing tells" in why["openat"], why


def test_mounts_are_counted():
    """They are not followed, and whoever looks at a trace is told so."""
    needs_capture()
    with Tmp() as tmp:
        trace, work = os.path.join(tmp, "t.feign"), os.path.join(tmp, "w")
        os.mkdir(work)
        hidden = ["unshare", "-m", "sh", "-c", "mkdir m; mount -t tmpfs none m || exit 77; echo x > m/f; umount m"]
        r = feign("record", "-o", trace, "--", *hidden, cwd=work)
        if r.status:
            raise Skip("nothing may be mounted here")
        told = {x["call"]: x["count"] for x in feign("info", trace, "--json").json()["left_out"] if x["why"].startswith("mounts are not followed")}
        assert told.get("umount2") == 1 and told.get("mount", 0) >= 1, told   # unshare mounts, too


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


INTERRUPTED = """
import os, select, signal, sys
came, told = os.pipe()
os.set_blocking(told, False)
signal.signal(signal.SIGINT, lambda *_: None)
signal.set_wakeup_fd(told)
print("ready", flush=True)
select.select([came], [], [], 20)
select.select([], [], [], 0.3)
print("interrupts:", len(os.read(came, 9)), flush=True)
"""


def test_a_terminal_interrupts_once():
    """Whatever its input is: the command has it from the terminal, or from feign."""
    needs_capture()
    with Tmp() as tmp:
        for redirected, key in (True, True), (False, True), (False, False):
            child, terminal = pty.fork()
            if child == 0:
                if redirected:
                    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
                os.execv(FEIGN, ["feign", "record", "-o", os.path.join(tmp, "t.feign"), "--", sys.executable, "-c", INTERRUPTED])
            with open(terminal, encoding="utf-8") as screen:
                assert screen.readline() == "ready\n"
                if key:
                    os.write(terminal, b"\x03")
                else:
                    os.kill(child, signal.SIGINT)
                said = screen.readline()
            assert os.waitpid(child, 0)[1] == 0 and said.endswith("interrupts: 1\n"), (redirected, key, said)


def test_refusals():
    needs_capture()
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.feign")
        refuses("record", "-o", trace, "--", "no-such-program", text="no such program")
        static = os.path.join(tmp, "static")
        with open(static + ".c", "w", encoding="utf-8") as f:
            f.write("int main(void) { return 0; }")
        if subprocess.run(["cc", "-static", "-o", static, static + ".c"], stderr=subprocess.DEVNULL).returncode == 0:
            refuses("record", "-o", trace, "--", static, text="statically linked.*strace")
        if os.geteuid() == 0:  # who may give a program to another user
            other = os.path.join(tmp, "other")
            shutil.copy("/bin/true", other)
            os.chown(other, 65534, 65534)
            for mode in (0o4755, 0o2755):
                os.chmod(other, mode)
                refuses("record", "-o", trace, "--", other, text=re.escape(other) + r" runs as another user \(setuid\).*; record as that user, or what it starts")
            r = feign("record", "-o", trace, "--", "sh", "-c", other)
            assert r.status == 0 and f"not in the trace: {other} runs as another user" in r.err, r.err
            os.unlink(trace)
        loader = "/lib64/ld-linux-x86-64.so.2"  # no static program, though it has no loader
        if os.path.exists(loader):
            r = feign("record", "-o", trace, "--", loader, "/bin/cat", "/etc/passwd")
            assert r.status == 0 and not r.err and "/etc/passwd" in feign("info", trace).out, r.err
            os.unlink(trace)
        refuses("record", "-o", tmp, "--", "touch", trace, text="is a directory, want a file's name")
        os.mkfifo(fifo := os.path.join(tmp, "fifo"))
        os.symlink("/dev/full", link := os.path.join(tmp, "link"))  # what would be left is here, not in /dev
        for device in link, fifo:
            refuses("record", "-o", device, "--", "touch", trace, text=f"-o {device}: is no regular file, want a file's name")
            assert not os.path.exists(device + ".raw")
        refuses("record", "-o", "", "--", "touch", trace, text="--output: want FILE.feign")
        refuses("record", "-o", trace, "--", "", text="'': no such program")
        refuses("record", "-o", trace, "--", tmp, text="Is a directory")
        refuses("record", "-o", os.path.join(tmp, "n" * 250), "--", "touch", trace, text="File name too long")  # that of its .part
        os.mkdir(trace + ".raw")
        refuses("record", "-o", trace, "--", "true", text="is there already")
        assert not os.path.exists(trace)


def test_a_command_that_cuts_its_recording_short():
    needs_capture()
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.feign")
        r = feign("record", "-o", trace, "--", "sh", "-c", f": > {trace}.raw/records; for i in 1 2 3; do cat /etc/passwd; done")
        assert r.status == 2 and f"the command overwrote or cut short {trace}.raw/records" in r.err, (r.status, r.err)
        assert not os.listdir(tmp), os.listdir(tmp)


def test_selection():
    """Paths, layers, samples, sizes, and a program that pauses its recording."""
    needs_capture()
    with Tmp() as tmp:
        trace, text = os.path.join(tmp, "t.feign"), os.path.join(tmp, "t.txt")

        def ops(*options, command=("sh", "-c", "cat /etc/passwd > a; cat a > b")):
            r = feign("record", "-o", trace, *options, "--", *command, cwd=tmp)
            assert r.status == 0, r.err
            feign("convert", trace, text)
            with open(text, encoding="utf-8") as f:
                return f.read()

        assert '/etc/passwd"' in ops() and '/etc/passwd"' not in ops("--exclude", "/etc/**")
        only = ops("--include", "**/a")
        assert '/a"' in only and '/b"' not in only
        program = compiled(tmp, "pauses", "-I", os.path.join(TOP, "include"))
        got = ops(command=(program,))
        assert got.count("write(") == 2 and "count=3" not in got and '"%s/late"' % os.path.realpath(tmp) in got, got
        assert ops("--paused", command=(program,)).count("write(") == 1
        loop = ("sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; done > a")
        assert ops("--sample", "5", command=loop).count("write(") < ops(command=loop).count("write(") == 10
        # Reads and writes in turn: of both, about half.
        copy = ("dd", "if=/dev/zero", "of=z", "bs=100", "count=400", "status=none")
        got = ops("--sample", "2", command=copy)
        assert all(100 < got.count(op + "(") < 300 for op in ("read", "write")), got
        # What a trace has not, it says.
        for options, command, want in ((("--sample", "2"), copy, "reads and writes but for one in 2"),
                                       (("--paused",), (program,), r"what was done while it was paused \(1 time\)"),
                                       (("--include", "**/a", "--include", "/b"), loop, r"calls on all paths but \*\*/a /b \(--include\)"),
                                       (("--exclude", "**/a"), loop, r"calls on \*\*/a \(--exclude\)"),
                                       (("--sizes", "1k-"), loop, r"reads and writes of other sizes than 1k- bytes \(--sizes\)"),
                                       (("--max-size", "4k"), copy, r"calls found no room \(--max-size\): the trace ends before the command did")):
            ops(*options, command=command)
            assert re.search(want, str(feign("info", trace, "--json").json()["notes"])), (options, feign("info", trace).out)
        for layer in (("--layer", "stdio"), ("--mpi",)):
            refuses("record", "--sample", "2", *layer, "--", "true", text="--sample 2: takes of system calls, want no layer but posix with it")
        sizes = ("sh", "-c", "dd if=/dev/zero of=z bs=100 count=3 2> e; dd if=/dev/zero of=z bs=5000 count=2 2> e; dd if=/dev/zero of=z bs=70000 count=1 2> e")
        for given, want in (("1k-8k", [5000, 5000]), ("6k-", [70000]), ("100-100", [100, 100, 100])):
            kept = [int(n) for n in re.findall(r'write\(fd=\S+ count=(\d+)\).*/z"', ops("--sizes", given, command=sizes))]
            assert kept == want, (given, kept)
        assert "openat(" in ops("--sizes", "1g-", command=sizes)
        for bad in ("4k", "-", "x-", "9-3"):
            refuses("record", "--sizes", bad, "--", "true", text="--sizes " + bad + ": want MIN-MAX")
        refuses("record", "--max-size", "x", "--", "true", text="--max-size x: want bytes")
        r = feign("record", "-o", trace, "--max-size", "1", "--", "true", cwd=tmp)
        assert "max-size" in r.err, r.err


def asleep(pid):
    """Waits until all threads of a process sleep, and have no signal before them."""
    while True:
        states = []
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/status", encoding="ascii") as f:
                said = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
            states.append(said["State"][0] == "S" and int(said["SigPnd"], 16) == int(said["ShdPnd"], 16) == 0)
        if all(states):
            return
        time.sleep(0.001)


def test_a_signal_pauses_the_recording_and_the_next_one_goes_on():
    needs_capture()
    with Tmp() as tmp:
        trace, text, work, root = (os.path.join(tmp, n) for n in ("t.feign", "t.txt", "w", "root"))
        os.mkdir(work)
        os.mkdir(root)
        # Only built-in commands: no process of which something could be recorded after it is told.
        steps = "echo 1 > before; echo ready; read x; echo 22 > between; echo ready; read x; echo 333 > after"
        with subprocess.Popen([FEIGN, "record", "-o", trace, "--", "sh", "-c", steps], cwd=work, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, bufsize=1) as p:
            for _ in range(2):
                assert p.stdout.readline() == "ready\n"
                p.send_signal(signal.SIGUSR1)
                asleep(p.pid)
                p.stdin.write("go on\n")
            said = p.communicate(timeout=60)[1]
        assert p.returncode == 0 and not said, (p.returncode, said)
        assert feign("convert", trace, text).status == 0
        with open(text, encoding="utf-8") as f:
            assert re.findall(r'write\(fd=\S+ count=(\d+)\) = .*/(before|between|after)"', f.read()) == [("2", "before"), ("4", "after")]
        r = feign("replay", trace, "--root", root, "--json")
        assert r.status == 0 and r.json()["mismatched"] == 0, (r.err, r.out)
        assert {n: s for n, (_, s) in tree(root + os.path.realpath(work)).items()} == {"before": 2, "between": 0, "after": 4}


def test_a_recording_has_a_largest_size():
    """What there is room for is recorded, readable and replays; that more was done is said."""
    needs_capture()
    with Tmp() as tmp:
        trace, root = os.path.join(tmp, "t.feign"), os.path.join(tmp, "root")
        os.mkdir(root)
        many = "import os\nf = os.open('f', os.O_CREAT | os.O_WRONLY)\nfor i in range(50000): os.pwrite(f, b'x' * (i % 90), i * i % 7777)"
        r = feign("record", "-o", trace, "--max-size", "300k", "--", sys.executable, "-S", "-c", many, cwd=tmp)
        lost = re.search(r"(\d+) calls found no room \(--max-size\)", r.err)
        assert r.status == 0 and lost, r.err
        kept = feign("info", trace, "--json").json()["ops"]["pwrite64"]["count"]
        # A call takes 20 bytes.
        assert 5000 < kept < 20000 and kept + int(lost[1]) >= 50000, (kept, lost[0])
        r = feign("replay", trace, "--root", root, "--json")
        assert r.status == 0 and r.json()["mismatched"] == 0 and r.json()["ops"]["pwrite64"]["matched"] == kept, (r.err, r.out)


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


def test_the_writing_of_a_trace_can_be_ended():
    """Signals are the command's as long as it runs, feign's afterwards; what was recorded stays."""
    needs_capture()
    with Tmp() as tmp:
        trace, done = os.path.join(tmp, "t.feign"), os.path.join(tmp, "done")
        command = ["sh", "-c", "dd if=/dev/zero of=/dev/null bs=1 count=1000000 2> done"]
        with subprocess.Popen([FEIGN, "record", "-o", trace, "--", *command], cwd=tmp, stderr=subprocess.PIPE, text=True) as p:
            while not os.path.exists(done) or os.path.getsize(done) == 0:
                time.sleep(0.01)
            with open(f"/proc/{p.pid}/task/{p.pid}/children", encoding="ascii") as children:
                while children.seek(0) == 0 and children.read():
                    time.sleep(0.01)
            p.terminate()
            err = p.communicate(timeout=60)[1]
        assert p.returncode == 2 and "interrupted by signal 15 before it was done" in err and "is kept in " + trace + ".raw" in err, (p.returncode, err)
        assert not os.path.exists(trace)
        assert feign("convert", trace + ".raw", trace).status == 0
        assert feign("info", trace, "--json").json()["ops"]["write"]["count"] >= 1000000


def test_by_strace():
    needs_strace()
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.feign")
        r = feign("record", "--tracer", "strace", "-o", trace, "--", "sh", "-c", "echo a > a; exit 3", cwd=tmp)
        assert r.status == 3, r.err
        assert feign("info", trace, "--json").status == 0 and sorted(os.listdir(tmp)) == ["a", "t.feign"]
        # What is there already is somebody's.
        with open(trace + ".strace", "w", encoding="utf-8") as f:
            f.write("mine")
        refuses("record", "--tracer", "strace", "-o", trace, "--", "true", text="t.feign.strace: is there already")
        with open(trace + ".strace", encoding="utf-8") as f:
            assert f.read() == "mine"
        os.remove(trace + ".strace")
        # Who is killed has no call that ends it.
        out = os.path.join(tmp, "t.txt")
        assert feign("record", "--tracer", "strace", "-o", trace, "--", "sh", "-c", "kill -9 $$", cwd=tmp).status == 137
        assert feign("convert", trace, out).status == 0
        with open(out, encoding="utf-8") as f:
            assert re.search(r"\] exit_group\(\) = \? ", f.read())
        # What a directory holds is there by its names.
        root, there = os.path.join(tmp, "root"), os.path.join(tmp, "there")
        os.makedirs(os.path.join(there, "sub"))
        os.mkdir(root)
        os.symlink("a", os.path.join(there, "link"))
        assert feign("record", "--tracer", "strace", "-o", trace, "--", "ls", there).status == 0
        assert feign("replay", trace, "--root", root).status == 0
        assert sorted(os.listdir(root + there)) == ["link", "sub"] and os.path.islink(f"{root}{there}/link") and os.path.isdir(f"{root}{there}/sub"), os.listdir(root + there)


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


def records_delayed(trace, script, work):
    """Records what a shell does, some of whose calls strace makes late."""
    r = feign("record", "-q", "-o", trace, "--", "sh", "-c", script, cwd=work)
    if "invalid" in r.err:
        raise Skip(r.err)  # this strace cannot
    assert r.status == 0, (r.status, r.err)


OPENS_LONG = r"""
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
int main(void) { return open("lock", O_RDWR | O_CREAT, 0600) < 0 || unlink("lock") == 0 || errno != ENOENT; }
"""


def test_who_does_not_find_what_it_has_opened_had_opened_it_before_it_was_removed():
    """Open MPI's ranks make and remove one name all at a time: an open that ended after another one's unlink had made what that removed."""
    needs_capture()
    needs_strace()
    with Tmp() as tmp:
        program, trace, text = (os.path.join(tmp, name) for name in ("opens", "t.feign", "t.txt"))
        compile_text(OPENS_LONG, program)
        delayed = f"strace -o /dev/null -P lock -e inject=openat:delay_exit=2s {program}"
        records_delayed(trace, f": > lock; {delayed} & sleep 1; unlink lock; wait $!", tmp)
        r = feign("convert", "-q", trace, text)
        with open(text, encoding="utf-8") as f:
            calls = re.findall(r'(openat|unlink)\(pathname="[^"]*/lock".*? = (\S+)(.*)', f.read())
        assert [name for name, _, _ in calls] == ["openat", "openat", "unlink", "unlink"] and calls[3][1] == "-ENOENT", calls
        assert not any("injected" in rest for _, _, rest in calls), calls


LISTS = r"""
#include <dirent.h>
#include <unistd.h>
static int names(void) {
  DIR* d = opendir("q");
  int n = -2;
  while (readdir(d) != NULL) ++n;
  closedir(d);
  return n;
}
int main(void) { return names() != 1 || rmdir("q/b") != 0 || names() != 0; }
"""


def test_of_two_names_that_a_listing_may_have_shown_it_had_the_one_that_is_used_next():
    """Two are made for long, the one that ends first had not been made when the listing was taken."""
    needs_capture()
    needs_strace()
    with Tmp() as tmp:
        program, trace, work = (os.path.join(tmp, name) for name in ("lists", "t.feign", "w"))
        compile_text(LISTS, program)
        os.mkdir(work)
        made = "strace -o /dev/null -e inject=mkdir:delay_%s mkdir q/%s &"
        both = " ".join(made % one for one in (("exit=4s", "b"), ("enter=3s", "a")))
        records_delayed(trace, f"mkdir q; {both} sleep 1.5; {program} && wait", work)
        assert os.listdir(os.path.join(work, "q")) == ["a"]
        replays(trace, tmp, work, fidelity=1)


def test_what_strace_cannot_do_is_refused():
    for option in (("--mpi",), ("--sample", "10"), ("--max-size", "1m"), ("--cpu-time",), ("--paused",), ("--layer", "posix", "--layer", "stdio"), ("--with", "x.so")):
        refuses("record", "--tracer", "strace", *option, "--", "true", text=f"{option[0]}.*: --tracer strace puts no library into the program")


def test_small_stacks():
    """feign itself needs little of it."""
    needs_capture()
    if sanitized():
        raise Skip("a sanitizer's frames are larger")
    with Tmp() as tmp:
        for words in "record -q -o t.feign -- true", "record -q --layer stdio --layer posix -o u.feign -- cat /etc/passwd", "info t.feign", "replay -q --root root u.feign":
            os.makedirs(os.path.join(tmp, "root"), exist_ok=True)
            done = subprocess.run(["sh", "-c", f"ulimit -s 64; exec {FEIGN} {words}"], cwd=tmp, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            assert done.returncode == 0, (words, done)
        assert sorted(os.listdir(tmp)) == ["root", "t.feign", "u.feign"], os.listdir(tmp)


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


def test_a_chunk_of_four_gigabytes_is_read_and_passed():
    """What a broken raw folder says is not believed: the end of such a chunk, of 32 bits, is its beginning."""
    needs_capture()
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.feign")
        assert feign("record", "-q", "--keep-raw", "-o", trace, "--", "true", cwd=tmp).status == 0
        with open(trace + ".raw/records", "r+b") as f:
            head = f.read(64 << 20)   # what is hooked comes before the first chunk
            first = next((at for at in range(0, len(head), 4096) if head[at:at + 4] == struct.pack("<I", 0x4b4e4843)), 0)
            assert first > 0
            f.truncate(8 << 30)
            f.seek(first + 4)   # its size
            f.write(struct.pack("<I", 0xFFFFFFFF))
        assert feign("info", trace + ".raw", timeout=60).status == 0


FAILS_OFTEN = r"""
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char** arguments) {
  int ends[2];
  char byte;
  if (pipe2(ends, O_NONBLOCK) != 0) return 1;
  const int again = atoi(arguments[count - 1]) != 0, fd = again ? ends[0] : ends[1];
  for (int i = 0; i < 200000; ++i)
    if (read(fd, &byte, 1) != -1 || errno != (again ? EAGAIN : EBADF)) return 2;
  return 0;
}
"""


def test_all_errors_take_as_little_room():
    """An error is a small number, not a result of eight bytes: EAGAIN, which the path of a call is known for, too."""
    needs_capture()
    with Tmp() as tmp:
        compile_text(FAILS_OFTEN, program := os.path.join(tmp, "program"))
        used = []
        for again in "0", "1":
            trace = os.path.join(tmp, again + ".feign")
            r = feign("record", "-q", "--keep-raw", "-o", trace, "--", program, again, cwd=tmp)
            assert r.status == 0, (r.status, r.err)
            with open(trace + ".raw/records", "rb") as f:
                used.append(struct.unpack_from("<Q", f.read(80), 72)[0])   # feign_control.bytes
        assert abs(used[0] - used[1]) < 400000, used


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


def test_limits():
    """A file system that nothing may be run from; little address space, small files."""
    needs_capture()
    with Tmp() as tmp:
        mount, trace = os.path.join(tmp, "m"), os.path.join(tmp, "t.feign")
        if not sanitized():  # whose shadow is larger than that
            for limit in "-v 4000000", "-v 60000", "-f 10000":
                done = subprocess.run(["sh", "-c", f"ulimit {limit}; exec {FEIGN} record -o {trace} -- cat /etc/passwd"], stdout=subprocess.DEVNULL)
                assert done.returncode == 0 and "/etc/passwd" in feign("info", trace).out, (limit, done.returncode)
        os.mkdir(mount)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec", "none", mount], stderr=subprocess.DEVNULL).returncode:
            raise Skip("no mounting here")
        try:
            r = feign("record", "-o", mount + "/t.feign", "--", "sh", "-c", "cat /etc/passwd > " + mount + "/a")
            assert r.status == 0 and not r.err, r.err
            assert mount + "/a" in feign("info", mount + "/t.feign").out
        finally:
            subprocess.run(["umount", mount])


FULL = r"""
#include <stdio.h>
#include <unistd.h>
int main(void) {
  int lines = 0;
  for (int i = 0; i < 50000; ++i) access("none", F_OK);
  FILE* const f = fopen("/proc/self/maps", "r");
  for (int c; (c = getc(f)) != EOF;) lines += c == '\n';
  return lines > 200;
}
"""


def test_a_full_disk_leaves_the_program_its_address_space():
    needs_capture()
    with Tmp() as tmp:
        mount, program = os.path.join(tmp, "m"), os.path.join(tmp, "full")
        compile_text(FULL, program)
        os.mkdir(mount)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3800k", "none", mount], stderr=subprocess.DEVNULL).returncode:
            raise Skip("no mounting here")
        try:
            r = feign("record", "-o", mount + "/t.feign", "--", "sh", "-c", program + "; echo $?")
            assert r.out == "0\n" and "found no room (a full disk" in r.err, (r.status, r.out, r.err)
        finally:
            subprocess.run(["umount", mount])


def test_what_a_recording_must_not_change():
    """Also: of a process's records no more is mapped than it writes to."""
    needs_capture()
    with Tmp() as tmp:
        program, trace, text = compiled(tmp, "corners", "-lpthread"), os.path.join(tmp, "t.feign"), os.path.join(tmp, "t.txt")
        plain, work = os.path.join(tmp, "plain"), os.path.join(tmp, "work")
        for folder in (plain, work):
            os.mkdir(folder)
        alone = subprocess.run([program], cwd=plain, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, text=True, timeout=60)
        r = feign("record", "-q", "-o", trace, "--", program, cwd=work)
        assert r.status == 0 and r.out == alone.stdout, (r.status, r.out, r.err)
        # The control page, hooks, and pieces of one thread: nothing is left of 50 threads and 20 children.
        assert 0 < int(r.err) < 12, r.err
        assert feign("convert", "-q", trace, text).status == 0
        with open(text, encoding="utf-8") as f:
            lines = f.read().splitlines()
        assert sum(' write(' in line and '"' + work + '/thread"' in line for line in lines) == 50 + 20 + 3000
        assert sum(' write(' in line and '"' + work + '/child"' in line for line in lines) == 3
        assert sum(bool(re.search(r" (clone3|execve)\(.*= -EFAULT", line)) for line in lines) == 8


KILLED = """
import fcntl, os, signal, time
child = os.fork()
if child == 0:
    held = open("lock", "w")
    fcntl.lockf(held, fcntl.LOCK_EX)
    fcntl.flock(os.open("flock", os.O_CREAT | os.O_RDWR), fcntl.LOCK_EX)
    open("ready", "w").close()
    signal.pause()
while not os.path.exists("ready"):
    time.sleep(0.01)
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


def test_a_command_may_remove_what_it_is_recorded_into():
    """As rm -r * and git clean do where the trace lies: what was recorded before is there, and what the running programs do."""
    needs_capture()
    with Tmp() as tmp:
        r = feign("record", "--", "sh", "-c", "echo x > before; rm -r trace.feign.raw; echo x > after; cat after > copy; exit 3", cwd=tmp)
        assert r.status == 3 and "removed" in r.err and "afterwards" in r.err, (r.status, r.err)
        assert sorted(os.listdir(tmp)) == ["after", "before", "copy", "trace.feign"]
        text = feign("info", os.path.join(tmp, "trace.feign"), "--json").json()
        assert text["ops"]["write"]["count"] == 2, text["ops"]


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
  const pid_t child = fork();
  if (child == 0) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, goes, NULL) != 0 || pthread_join(thread, NULL) != 0 ||
        pthread_create(&thread, NULL, computes, NULL) != 0 || lock() != 0)
      abort();
    mkdir("ready", 0755);
    while (1) pause();
  }
  while (access("ready", F_OK) != 0) usleep(1000);
  if (lock() == 0) return 1;
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


def test_calls_that_are_left_and_little_room():
    """Cancelled threads, jumps out of signal handlers, small stacks, and hardly a system call allowed: the program does
    as it does without, and what came back is in the trace."""
    needs_capture()
    with Tmp() as tmp:
        program = compiled(tmp, "left")
        # How many of a call are there at least, of which file.
        for mode, call, file in ("cancel", "write", "main"), ("jump", "pwrite64", "file"), ("vfork", "write", "file"), ("spawn", "execve", ""), ("seal", "write", "file"):
            work, trace, text = (os.path.join(tmp, mode + end) for end in ("", ".feign", ".txt"))
            os.mkdir(work)
            alone = subprocess.run([program, mode], cwd=work, stdout=subprocess.PIPE, check=True, text=True, timeout=60)
            for left in os.listdir(work):
                os.unlink(os.path.join(work, left))
            r = feign("record", "-o", trace, "--", program, mode, cwd=work)
            assert r.status == 0 and r.out == alone.stdout, (mode, r.status, r.out, r.err)
            assert "are not in the trace" not in r.err and "no room" not in r.err, r.err
            assert feign("convert", "-q", trace, text).status == 0
            with open(text, encoding="utf-8") as f:
                found = sum(f" {call}(" in line and " = -" not in line and (not file or f'"{work}/{file}"' in line) for line in f)
            assert found >= int(alone.stdout), (mode, found, alone.stdout)
            if mode != "jump":  # which of a handler's calls comes first is as signals came
                os.mkdir(root := os.path.join(tmp, "root-" + mode))
                report = feign("replay", trace, "--root", root, "--json").json()
                assert report["mismatched"] == 0, (mode, report["mismatches"])


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


LEAVES_ROOM_FOR_ONE = r"""
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
int main(int count, char** arguments) {
  if (count == 1) return write(3, "123", 3) != 3;
  const struct rlimit few = {5, 5};
  if (open("file", O_RDWR | O_CREAT, 0600) != 3 || setrlimit(RLIMIT_NOFILE, &few) != 0) return 2;
  return execv(arguments[1], arguments + 1);
}
"""


def test_descriptors_are_known_where_there_is_room_for_one_more():
    """Of a program that was not followed there, since what started it is not recorded."""
    needs_capture()
    with Tmp() as tmp:
        compile_text(LEAVES_ROOM_FOR_ONE, static := os.path.join(tmp, "static"), "-static")
        compile_text(LEAVES_ROOM_FOR_ONE, program := os.path.join(tmp, "program"))
        trace, text = os.path.join(tmp, "t.feign"), os.path.join(tmp, "t.txt")
        r = feign("record", "-o", trace, "--", "sh", "-c", f"{static} {program}; exit $?", cwd=tmp)
        assert r.status == 0, (r.status, r.err)
        assert feign("convert", "-q", trace, text).status == 0
        with open(text, encoding="utf-8") as f:
            assert re.search(rf'write\(.* = 3 .*path="{tmp}/file"', said := f.read()), said


def test_what_was_refused_is_not_done():
    """Made again, such calls would succeed, and the files would be others."""
    needs_capture()
    with Tmp() as tmp:
        program, plain = compiled(tmp, "refused"), os.path.join(tmp, "plain")
        os.mkdir(plain)
        subprocess.run([program], cwd=plain, check=True)
        left = {name: os.lstat(os.path.join(plain, name)).st_size for name in os.listdir(plain)}
        for by in "feign", "strace":
            if by == "strace" and shutil.which("strace") is None:
                continue
            work, trace = os.path.join(tmp, by), os.path.join(tmp, by + ".trace")
            os.mkdir(work)
            start = ("strace", "-f", "-y", "-ttt", "-T", "-o", trace) if by == "strace" else (FEIGN, "record", "-q", "-o", trace, "--")
            subprocess.run([*start, program], cwd=work, check=True)
            for order in "trace", "depend":
                root = os.path.join(tmp, "root")
                os.mkdir(root)
                r = feign("replay", trace, "--root", root, "--cwd", work, "--order", order, "--json") if by == "strace" else \
                    feign("replay", trace, "--root", root, "--order", order, "--json")
                report = r.json()
                assert r.status == 0 and report["mismatched"] == 0, report["mismatches"]
                assert {name: os.lstat(root + work + "/" + name).st_size for name in os.listdir(root + work)} == left
                shutil.rmtree(root)


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


def test_where_no_library_can_be_preloaded_from():
    needs_capture()
    with Tmp() as tmp:
        other = os.path.join(tmp, "a b")
        for part in "core/feign", "capture/libfeign-capture.so":
            os.makedirs(os.path.join(other, os.path.dirname(part)))
            shutil.copy(os.path.join(BUILD, part), os.path.join(other, part))
        done = subprocess.run([os.path.join(other, "core/feign"), "record", "-o", os.path.join(tmp, "t.feign"), "--", "touch", os.path.join(tmp, "made")],
                              stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 2 and "a colon or blank" in done.stderr, (done.returncode, done.stderr)
        assert os.listdir(tmp) == ["a b"]


def test_a_recording_names_itself_where_something_is_wrong():
    """Not the raw folder, which is gone."""
    needs_capture()
    with Tmp() as tmp:
        trace, root = os.path.join(tmp, "t.feign"), os.path.join(tmp, "root")
        os.mkdir(root)
        assert feign("record", "-o", trace, "--", "cat", "/etc/passwd").status == 0
        report = feign("replay", trace, "--root", root, "--no-prepare", "--json").json()
        assert {m["first"]["source"] for m in report["mismatches"]} == {trace}, report["mismatches"]
        text = feign("replay", trace, "--root", root, "--no-prepare").out
        assert f"first {trace} /etc/passwd" in text, text


def test_who_makes_pages_sleeps():
    """A thread that looks every few milliseconds is felt by the program. Counted are its sleeps while the program takes no pages."""
    needs_capture()
    with Tmp() as tmp:
        script = ("import glob, os, time\n"
                  "def sleeps(): return sum(int(line.split()[1]) for t in glob.glob(f'/proc/{os.getppid()}/task/*/status')\n"
                  "                         for line in open(t) if line.startswith('voluntary'))\n"
                  "before = sleeps(); time.sleep(1); print(sleeps() - before)\n")
        r = feign("record", "-o", os.path.join(tmp, "t.feign"), "--", sys.executable, "-c", script)
        assert r.status == 0, r.err
        assert int(r.out) < 50, r.out   # 200 when it looked every 5 ms


WAITERS = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];
static void* waiter(void* reads) {
  char byte;
  if (reads) return read(ends[0], &byte, 1) == 1 ? 0 : reads;
  pthread_mutex_lock(&held);
  pthread_mutex_unlock(&held);
  return 0;
}
int main(int count, char** words) {
  const int many = atoi(words[1]), together = count == 3;
  void* const reads = strcmp(words[2], "read") ? 0 : ends;
  if (pipe(ends)) return 1;
  pthread_t* const all = calloc(many, sizeof *all);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 1 << 16);
  if (together) pthread_mutex_lock(&held);
  for (int i = 0; i < many; ++i) {
    if (!together && reads && write(ends[1], "x", 1) != 1) return 1;
    if (pthread_create(&all[i], &small, waiter, reads)) return 77;
    if (!together) pthread_join(all[i], 0);
  }
  if (together) usleep(300000);
  for (int i = 0; i < 10000; ++i) close(open("file", O_RDWR | O_CREAT, 0600));
  if (!together) return 0;
  pthread_mutex_unlock(&held);
  for (int i = 0; reads && i < many; ++i)
    if (write(ends[1], "x", 1) != 1) return 1;
  for (int i = 0; i < many; ++i) pthread_join(all[i], 0);
  return 0;
}
"""


def processor_time(*words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    r = feign(*words)
    assert r.status == 0, r.err
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_threads_that_wait_cost_little_as_the_trace_is_written():
    """Their calls overlap all others, and tell nothing of files, or of none that the others are on."""
    needs_capture()
    with Tmp() as tmp:
        program = os.path.join(tmp, "waiters")
        compile_text(WAITERS, program, "-lpthread")
        for how, many, times in (("lock", 1000, 7), ("read", 2000, 16)):
            took = []
            for singly in ["singly"], []:   # as many threads, that nobody lets wait; that all wait together
                trace = os.path.join(tmp, f"{how}{len(took)}.feign")
                r = feign("record", "-q", "--keep-raw", "-o", trace, "--", program, str(many), how, *singly, cwd=tmp)
                if r.status == 77:
                    raise Skip("no room for so many threads")
                assert r.status == 0, r.err
                took.append(min(processor_time("convert", "-q", trace + ".raw", trace + ".again.feign") for _ in range(3)))
            assert took[1] < times * took[0], (how, took)


def test_damaged_recording():
    """Whatever the raw folder holds, reading it ends with a trace or an error."""
    needs_capture()
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.feign")
        r = feign("record", "--keep-raw", "-o", trace, "--", "sh", "-c", "for i in 1 2 3; do echo $i | cat > f$i; done", cwd=tmp)
        assert r.status == 0, r.err
        with open(trace + ".raw/records", "rb") as f:
            control = f.read(4096)
            first = int.from_bytes(control[2648:2656], "little")  # behind what is hooked
            f.seek(first)
            good = f.read(300_000)
        assert good[:4] == b"CHNK"
        rest = random.Random(7)
        for i in range(25):
            bad = bytearray(good)
            for _ in range(rest.choice((1, 10, 300))):
                bad[rest.randrange(len(bad)) if i % 2 else rest.randrange(0, len(bad), 4096) + rest.randrange(200)] = rest.randrange(256)
            with open(trace + ".raw/records", "r+b") as f:
                f.truncate(first + rest.choice((len(bad), len(bad), 900)))
                f.seek(first)
                f.write(bad)
            assert feign("info", trace + ".raw").status in (0, 2)
        # Another host's file, whose clocks may be said to be anything.
        for i in range(20):
            bad = bytearray(control)
            for _ in range(1 + i % 5):
                bad[rest.choice((rest.randrange(16, 72), rest.randrange(2648, 2784)))] = rest.randrange(256)
            bad[176:240] = b"other".ljust(64, b"\0")
            bad[2656:2720] = control[176:240]
            with open(trace + ".raw/records.other", "wb") as f:
                f.write(bytes(bad) + bytes(first - 4096) + good)
            assert feign("info", trace + ".raw").status in (0, 2)
        for bad in (control[:20], b"x" * len(control), control[:8] + b"\xff" * 4 + control[12:]):
            with open(trace + ".raw/records", "wb") as f:
                f.write(bad)
            assert feign("info", trace + ".raw").status == 2


SHARED = """
import fcntl, multiprocessing, os
def lock(i):
    records, whole = os.open("records", os.O_RDWR | os.O_CREAT), os.open("whole", os.O_RDWR | os.O_CREAT)
    here = os.open("here", os.O_RDWR | os.O_CREAT)
    for j in range(1000):
        try:
            fcntl.lockf(records, fcntl.LOCK_EX | fcntl.LOCK_NB, i, 10)
            fcntl.lockf(records, fcntl.LOCK_UN, i, 10)
            os.lseek(here, i, os.SEEK_SET)
            os.lockf(here, os.F_TLOCK, 10)
            os.lockf(here, os.F_ULOCK, 10)
            fcntl.flock(whole, fcntl.LOCK_SH if j % 3 else fcntl.LOCK_EX | fcntl.LOCK_NB)
            if j % 5 == 0:
                fcntl.flock(whole, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(whole, fcntl.LOCK_UN)
        except OSError:
            pass
def write(i):
    log = os.open("log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for j in range(3000):
        os.write(log, b"x" * (j % 100 + 1))
def read(i):
    log, length = os.open("log", os.O_RDONLY | os.O_CREAT), 0
    for _ in range(9000):
        length += len(os.read(log, 65536))
        if length == 2 * 30 * 5050:
            break
all = [multiprocessing.Process(target=f, args=(i,)) for f, count in ((lock, 4), (write, 2), (read, 2)) for i in range(count)]
for p in all:
    p.start()
for p in all:
    p.join()
"""


def test_locks_and_ends_of_files_that_processes_are_at_together():
    with Tmp() as tmp:
        trace, script = os.path.join(tmp, "t.feign"), os.path.join(tmp, "shared.py")
        with open(script, "w", encoding="utf-8") as f:
            f.write(SHARED)
        r = feign("record", "-q", "-o", trace, "--", "python3", script, cwd=tmp)
        assert r.status == 0, r.err
        with Tmp() as root:
            report = feign("replay", trace, "--root", root, "--json").json()
            assert report["fidelity"] >= 0.97, (report["fidelity"], len(report["mismatches"]))


GIVES_UP = r"""
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
int main(int argc, char** argv) {
  const int records = argc > 2 && strcmp(argv[2], "fcntl") == 0, file = open("lock", O_RDWR | O_CREAT, 0600);
  if (strcmp(argv[1], "has") == 0) {
    if ((records ? lockf(file, F_LOCK, 0) : flock(file, LOCK_EX)) != 0 || close(creat("had", 0600)) != 0) return 1;
    return records ? lockf(file, F_ULOCK, 0) : flock(file, LOCK_UN);
  }
  while (access("had", F_OK) != 0) usleep(1000);
  usleep(300000);
  if (access("had", F_OK) != 0) return 2;
  return (records ? lockf(file, F_TLOCK, 0) : flock(file, LOCK_EX | LOCK_NB)) == 0 ? 3 : 0;
}
"""


def test_who_is_refused_a_lock_while_it_is_given_up_was_before_that():
    """He came to it from another call meanwhile."""
    needs_capture()
    needs_strace()
    with Tmp() as tmp:
        program = os.path.join(tmp, "gives-up")
        compile_text(GIVES_UP, program)
        for call in "flock", "fcntl":
            os.mkdir(work := os.path.join(tmp, call))
            trace = os.path.join(tmp, call + ".feign")
            delayed = f"strace -o /dev/null -e inject={call}:delay_enter=1s:when=2 {program} has {call}"
            records_delayed(trace, f"{delayed} & {program} asks {call} && wait $!", work)
            with Tmp() as root:
                report = feign("replay", trace, "--root", root, "--json").json()
                assert report["mismatched"] == 0, (call, report["mismatches"])


APPEND = """
import multiprocessing, os
def append(i):
    for j in range(100):
        with open("log", "a") as f:  # which seeks to its end
            f.write("x" * (1 + (i * 7 + j) % 50))
        with open("log", "rb") as f:
            f.seek(-9 if f.seek(0, 2) > 9 else 0, 2)
            f.read(100)
    log, pages = os.open("log", os.O_RDWR | os.O_APPEND), os.open("pages", os.O_RDWR | os.O_CREAT)
    for j in range(300):
        os.write(log, b"x" * (1 + (i * 7 + j) % 50))
        end = os.lseek(log, 0, 2)
        os.pread(log, 100, max(end - 70, 0))
        os.pwrite(pages, b"y" * 100, 100 * (4 * j + i))
        os.pread(pages, 1000, max(400 * j - 500, 0))
for name in ("log", "pages"):
    open(name, "w").close()
all = [multiprocessing.get_context("fork").Process(target=append, args=(i,)) for i in range(4)]
for p in all:
    p.start()
for p in all:
    p.join()
"""


def comes_back(program, least):
    """Both tracers: at most 1 of 500 calls comes out otherwise. Once in a while more do: a process that is off its processor in the middle of a call
    leaves little to tell its place."""
    needs_capture()
    needs_strace()
    for tracer in ("feign", "strace"):
        for attempt in range(3):
            with Tmp() as tmp:
                trace, script = os.path.join(tmp, "t"), os.path.join(tmp, "program.py")
                with open(script, "w", encoding="utf-8") as f:
                    f.write(program)
                subprocess.run([*([FEIGN, "record", "-q", "-o", trace, "--"] if tracer == "feign" else ["strace", "-f", "-ttt", "-T", *(["-y"] if attempt == 0 else []), "-o", trace]),
                                "python3", "-S", script], cwd=tmp, check=True)
                with Tmp() as root:
                    r = feign("replay", trace, "--root", root, "--json", *(["--cwd", tmp] if tracer == "strace" else [])).json()
            assert r["matched"] > least, r["matched"]
            if r["mismatched"] <= r["matched"] / 500:
                break
        else:
            raise AssertionError((tracer, r["matched"], r["mismatches"][:9]))


def test_what_is_found_at_the_end_tells_which_writes_came_before():
    comes_back(APPEND, 9000)


STATUS = """
import multiprocessing, os
def tell(i):
    for j in range(400):
        with open("status", "w") as f:
            f.write("x" * (1 + (i * 7 + j) % 50))
def ask(i):
    for j in range(800):
        f = os.open("status", os.O_RDONLY)
        os.read(f, 100)
        os.close(f)
open("status", "w").close()
all = [multiprocessing.get_context("fork").Process(target=f, args=(i,)) for f, count in ((tell, 2), (ask, 2)) for i in range(count)]
for p in all:
    p.start()
for p in all:
    p.join()
"""


def test_a_file_is_written_anew_while_others_read_it():
    comes_back(STATUS, 9000)


SPOOL = """
import multiprocessing, os
def work(k):
    for i in range(200):
        name = "spool/d%d.%d" % (k, i)
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
        if i % 3 == 0:
            os.listdir("spool")
        os.unlink(name)
os.mkdir("spool")
all = [multiprocessing.get_context("fork").Process(target=work, args=(k,)) for k in range(4)]
for p in all:
    p.start()
for p in all:
    p.join()
"""


def test_a_directory_is_listed_while_others_make_and_remove_files_in_it():
    needs_capture()
    with Tmp() as tmp:
        trace, script, work = (os.path.join(tmp, name) for name in ("t.feign", "spool.py", "work"))
        os.mkdir(work)
        with open(script, "w", encoding="utf-8") as f:
            f.write(SPOOL)
        others = []
        for _ in range(6):  # a process that is off its processor in the middle of a call leaves little to tell its place
            shutil.rmtree(os.path.join(work, "spool"), ignore_errors=True)
            subprocess.run([FEIGN, "record", "-q", "-o", trace, "--", "python3", "-S", script], cwd=work, check=True)
            with Tmp() as root:
                r = feign("replay", trace, "--root", root, "--json").json()
                assert r["matched"] > 3000, r["matched"]
                others.append(sum(m["count"] for m in r["mismatches"] if m["op"] == "getdents64"))
            if others[-1] < 60:
                return
        raise AssertionError(others)


if __name__ == "__main__":
    main(globals())
