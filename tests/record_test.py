#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""feign record: what it keeps is what strace sees of the same run, call by call; and it replays."""
import collections
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

from harness import BUILD, FEIGN, TOP, Skip, Tmp, feign, main, refuses, sanitized, tree
from recording import PROGRAMS, both, compile_text, compiled, needs_capture, needs_strace, plain, recorded_program, records_if_it_can, replays


def needs_user(uid):
    """That this user can be changed to, and reads what is built here."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skip("there is no setpriv, or this is not root")
    library = os.path.join(BUILD, "capture", "libfeign-capture.so")
    if subprocess.run(["setpriv", "--reuid", str(uid), "--clear-groups", "test", "-r", library], check=False).returncode != 0:
        raise Skip(f"user {uid} may not read {library}")


def test_calls():
    plain("calls", least=40)


def test_a_command_that_began_is_recorded_without_a_thread_beside_it():
    """Its stack is larger than all memory."""
    needs_capture()
    with Tmp() as tmp:
        trace, stack = os.path.join(tmp, "t.feign"), 200 << 30
        if resource.getrlimit(resource.RLIMIT_STACK)[1] not in (-1, resource.RLIM_INFINITY):
            raise Skip("no stack may be that large here")
        done = subprocess.run([FEIGN, "record", "-o", trace, "--", "sh", "-c", "echo a > a; ls > b"], cwd=tmp, stderr=subprocess.PIPE, text=True, check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (stack, resource.RLIM_INFINITY)))
        assert done.returncode == 0 and not done.stderr, done.stderr
        assert "write" in feign("info", trace, "--json").json()["ops"]


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
  FAILS(readlink("link", b, -1), EINVAL); /* all of memory */
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


NOT_READ = r"""
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>
int main(void) {
  char* const bad = (char*)50;
  char* const pages = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(pages + 4096, 4096);
  return rename("none/x", bad) != -1 || link("none/x", bad) != -1 || symlink("", bad) != -1 || getxattr("none", bad, 0, 0) != -1 ||
         setxattr("none", "user.x", bad, 100, 0) != -1 || syscall(SYS_execve, "none", 0, pages + 4092) != -1;
}
"""


def test_what_a_call_that_failed_has_not_read_may_not_be_there():
    """A second path behind one that leads nowhere; a list of an exec that goes on where no memory is."""
    needs_capture()
    with Tmp() as tmp:
        trace = recorded_program(tmp, NOT_READ)[3]
        assert re.search(r"rename\(.*= -ENOENT", trace), trace


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


def test_a_table_of_headers_anywhere_in_a_program():
    """Far from its beginning, as patchelf puts it; or beyond its end, in a file that is none."""
    needs_capture()
    with Tmp() as tmp:
        trace, program = os.path.join(tmp, "t.feign"), os.path.join(tmp, "program")
        compile_text('const char room[4096] __attribute__((aligned(8))) = "ROOM FOR HEADERS"; int main(void) { return 0; }', program)
        with open(program, "rb") as f:
            whole = bytearray(f.read())
        at, (size, count), there = struct.unpack_from("<Q", whole, 32)[0], struct.unpack_from("<HH", whole, 54), whole.index(b"ROOM FOR HEADERS")
        headers = whole[at:at + size * count]
        for i in range(0, len(headers), size):
            if struct.unpack_from("<I", headers, i)[0] == 6:   # PT_PHDR: where the table is; what is before the data is as far apart in memory
                struct.pack_into("<QQQ", headers, i + 8, there, there, there)
        whole[there:there + len(headers)] = headers
        assert there > 4096
        for where in there, 2**64 - 48:
            struct.pack_into("<Q", whole, 32, where)
            with open(program, "wb") as f:
                f.write(whole)
            if where == there:
                if subprocess.run([program], check=False).returncode:
                    raise Skip("no such program here")
                r = feign("record", "-o", trace, "--", program)
                assert r.status == 0 and not r.err, r.err
            else:
                refuses("record", "-o", trace, "--", program, text="statically linked")


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
        refuses("record", "-o", "-", "--", "touch", trace, text="-o -: is no regular file, want a file's name")
        refuses("record", "-o", "", "--", "touch", trace, text="--output: want FILE.feign")
        refuses("record", "-o", trace, "--", "", text="'': no such program")
        refuses("record", "-o", trace, "--", tmp, text="Is a directory")
        refuses("record", "-o", os.path.join(tmp, "n" * 252), "--", "touch", trace, text="File name too long")  # that of its .raw
        # No memory: nothing is left that would be there already.
        limited = shutil.which("prlimit")
        r = subprocess.run([limited, "--data=9000000", FEIGN, "record", "-o", trace, "--", "touch", trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False) if limited else None
        assert r is None or not os.path.exists(trace + ".raw"), r
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


def test_a_size_that_is_no_limit():
    needs_capture()
    with Tmp() as tmp:
        r = feign("record", "-o", os.path.join(tmp, "t.feign"), "--max-size", str(2**64 - 1), "--", "sh", "-c", "echo a > a", cwd=tmp)
        assert r.status == 0 and not r.err, r.err


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
        # Of a program for which there is none any more, that may be why.
        r = feign("record", "-o", trace, "--max-size", "24k", "--", "sh", "-c", "dd if=/dev/zero of=/dev/null bs=1 count=20000 2> dd; exec ls", cwd=tmp)
        left_out = re.findall(r"not in the trace: (.*)", r.err)
        assert left_out and all(": there was no room (--max-size), or it ended at once" in line for line in left_out), r.err


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
            for gone in signal.SIGHUP, signal.SIGQUIT:  # nobody is left to get them
                p.send_signal(gone)
            p.terminate()
            err = p.communicate(timeout=60)[1]
        assert p.returncode == 2 and "interrupted by signal 15 before it was done" in err and "is kept in " + trace + ".raw" in err, (p.returncode, err)
        assert not os.path.exists(trace)
        assert feign("convert", trace + ".raw", trace).status == 0
        assert feign("info", trace, "--json").json()["ops"]["write"]["count"] >= 1000000


def test_a_command_that_ends_its_group_does_not_end_the_writing():
    """What is left of it sends the signal to the group once more, as soon as it has ended by that signal itself."""
    needs_capture()
    left = "trap 'while kill -0 $$ 2> /dev/null; do :; done; : > left; trap - TERM; kill -TERM 0' TERM; : > ready; sleep 9 & wait"
    shell = f"dd if=/dev/zero of=/dev/null bs=1 count=500000; ({left}) & while [ ! -e ready ]; do :; done; kill -TERM 0; sleep 9"
    for _ in range(5):  # a busy machine may take longer than what counts as at once
        with Tmp() as tmp:
            trace = os.path.join(tmp, "t.feign")
            p = subprocess.run([FEIGN, "record", "-o", trace, "--", "sh", "-c", shell], cwd=tmp, stderr=subprocess.PIPE, text=True, timeout=60,
                               check=False, start_new_session=True)
            assert os.path.exists(os.path.join(tmp, "left")), p.stderr
            if p.returncode == 143 and "interrupted" not in p.stderr and os.path.exists(trace):
                return
    raise AssertionError((p.returncode, p.stderr))


def test_by_strace():
    needs_strace()
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.feign")
        r = feign("record", "--tracer", "strace", "-o", trace, "--", "sh", "-c", "echo a > a; exit 3", cwd=tmp)
        assert r.status == 3, r.err
        assert feign("info", trace, "--json").status == 0 and sorted(os.listdir(tmp)) == ["a", "t.feign"]
        # It has the name that it was called by, wherever it is found.
        os.symlink("/bin/sh", os.path.join(tmp, "here"))
        for name, path, named in (("sh", os.environ["PATH"], "sh"), ("/bin/sh", os.environ["PATH"], "/bin/sh"), ("here", os.environ["PATH"] + ":", "./here")):
            r = feign("record", "--tracer", "strace", "-o", trace, "--", name, "-c", "echo $0", cwd=tmp, env=dict(os.environ, PATH=path))
            assert r.out == named + "\n", (name, path, r)
        os.remove(os.path.join(tmp, "here"))
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


SHARED_BY_MESSAGE = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  int pair[2], status;
  char byte = 0;
  union { struct cmsghdr head; char room[CMSG_SPACE(sizeof(int))]; } rights = {0};
  struct iovec one = {&byte, 1}, two[] = {{"abc", 3}, {"defgh", 5}};
  struct msghdr m = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof rights};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 1;
  if (fork() == 0)
    _exit(recvmsg(pair[1], &m, 0) != 1 || writev(*(int*)CMSG_DATA(&rights.head), two, 2) != 8);
  rights.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  const int f = *(int*)CMSG_DATA(&rights.head) = open("f", O_CREAT | O_RDWR, 0644);
  if (sendmsg(pair[0], &m, 0) != 1 || wait(&status) < 0 || status != 0) return 2;
  return lseek(f, 0, SEEK_CUR) != 8 || write(f, "i", 1) != 1;
}
"""


def test_by_strace_vectors_and_descriptors_in_messages_are_whole():
    needs_strace()
    with Tmp() as tmp:
        program, trace, work, out = (os.path.join(os.path.realpath(tmp), name) for name in ("program", "t.feign", "w", "t.txt"))
        compile_text(SHARED_BY_MESSAGE, program)
        os.mkdir(work)
        assert feign("record", "--tracer", "strace", "-o", trace, "--", program, cwd=work).status == 0
        replays(trace, tmp, work, 1)
        assert feign("convert", trace, out).status == 0
        with open(out, encoding="utf-8") as f:
            assert re.search(r"writev\(fd=#\d+, iov=\[3 5\]\) = 8 ", f.read())


def test_what_strace_cannot_do_is_refused():
    for option in (("--mpi",), ("--sample", "10"), ("--max-size", "1m"), ("--cpu-time",), ("--paused",), ("--layer", "posix", "--layer", "stdio"), ("--with", "x.so")):
        refuses("record", "--tracer", "strace", *option, "--", "true", text=f"{option[0]}.*: --tracer strace puts no library into the program")


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


NAMES_NOWHERE = r"""
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
  static char longest[5000];
  char* const nowhere = (char*)8;
  memset(longest, 'x', sizeof longest - 1);
  if (rename("missing/x", nowhere) == 0 || errno != ENOENT) return 1;
  if (rename(longest, nowhere) == 0 || errno != ENAMETOOLONG) return 2;
  if (renameat(AT_FDCWD, "f/x", AT_FDCWD, nowhere) == 0 || errno != ENOTDIR) return 3;
  if (link("missing", nowhere) == 0 || errno != ENOENT) return 4;
  if (symlink("", nowhere) == 0 || errno != ENOENT) return 5;
  if (rename("missing", "second") == 0 || errno != ENOENT) return 6;
  return rename("f", nowhere) == 0 || errno != EFAULT ? 7 : 0;
}
"""


def test_a_second_name_that_is_not_read_need_not_be_there():
    """The kernel says that the first one leads nowhere, and does not look."""
    with Tmp() as tmp:
        os.mkdir(os.path.join(tmp, "w"))
        with open(os.path.join(tmp, "w", "f"), "w", encoding="ascii"):
            pass
        _, _, _, text = recorded_program(tmp, NAMES_NOWHERE)
        assert len(re.findall(r" (?:rename(?:at)?|link|symlink)\(.*= -E", text)) == 7, text
        assert re.search(r' rename\(.*/missing", .*/second"\) = -ENOENT', text), text


BINDS = r"""
#include <sys/socket.h>
#include <sys/un.h>
int main(void) {
  struct sockaddr_un at = {AF_UNIX, "name"};
  return bind(socket(AF_UNIX, SOCK_STREAM, 0), (void*)&at, sizeof at) != 0;
}
"""


def test_a_socket_gets_its_name_where_the_program_works():
    """Though that is the only name in the trace."""
    with Tmp() as tmp:
        _, work, trace, _ = recorded_program(tmp, BINDS)
        replays(trace, tmp, os.path.realpath(work), 1)


BINDS_AGAIN = r"""
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
int main(void) {
  struct sockaddr_un at = {AF_UNIX, "name"};
  for (int i = 0; i < 2; ++i)
    if (bind(socket(AF_UNIX, SOCK_STREAM, 0), (void*)&at, sizeof at) == 0 || errno != EADDRINUSE) return 1;
  return 0;
}
"""


def test_a_name_that_a_socket_could_not_get_as_it_is_in_use():
    """What has it was there before, and is for the replay."""
    with Tmp() as tmp:
        work = os.path.realpath(os.path.join(tmp, "w"))
        os.mkdir(work)
        with open(os.path.join(work, "name"), "w", encoding="ascii"):
            pass
        _, _, trace, text = recorded_program(tmp, BINDS_AGAIN)
        assert len(re.findall(r' bind\(.*/name"\) = -EADDRINUSE', text)) == 2, text
        replays(trace, tmp, work, 1)


def test_a_command_may_remove_what_it_is_recorded_into():
    """As rm -r * and git clean do where the trace lies: what was recorded before is there, and what the running programs do."""
    needs_capture()
    with Tmp() as tmp:
        r = feign("record", "--", "sh", "-c", "echo x > before; rm -r trace.feign.raw; echo x > after; cat after > copy; exit 3", cwd=tmp)
        assert r.status == 3 and "removed" in r.err and "afterwards" in r.err, (r.status, r.err)
        assert sorted(os.listdir(tmp)) == ["after", "before", "copy", "trace.feign"]
        text = feign("info", os.path.join(tmp, "trace.feign"), "--json").json()
        assert text["ops"]["write"]["count"] == 2, text["ops"]


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


def test_what_was_never_given_out_is_no_record_where_no_holes_are_told():
    """As of FUSE: a file without any, with what look like chunks where none can be."""
    needs_capture()
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.feign")
        assert feign("record", "--keep-raw", "-o", trace, "--", "sh", "-c", "echo a > f; cat f", cwd=tmp).status == 0
        with open(trace + ".raw/records", "r+b") as f:
            f.seek(72)
            given = int.from_bytes(f.read(8), "little")
            f.seek(2648)
            first = int.from_bytes(f.read(8), "little")
            f.seek(0)
            whole = f.read(given)
            chunks = bytearray(whole[first:])
            for at in range(0, len(chunks), 4096):
                if chunks[at:at + 4] == b"CHNK":
                    chunks[at + 8] += 9   # other lanes
            f.seek(0)
            f.write(whole + chunks)
            f.truncate()
        counts = [feign("info", name, "--json").json()["activities"] for name in (trace, trace + ".raw")]
        assert counts[0] == counts[1], counts


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


def test_an_executable_that_is_opened_by_way_of_proc():
    """Its name does not tell which file that is: the trace does, unless the file has no name any more."""
    source = r"""
#include <fcntl.h>
#include <unistd.h>
int main(int argc, char** argv) {
  char data[100];
  int fd = open("/proc/self/exe", O_RDONLY);
  if (read(fd, data, sizeof data) != sizeof data || close(fd) != 0) return 1;
  if (unlink(argv[0]) != 0) return 2;
  fd = open("/proc/self/exe", O_RDONLY);
  return read(fd, data, 50) == 50 && open("/proc/self/status", O_RDONLY) >= 0 ? 0 : 3;
}
"""
    with Tmp() as tmp:
        program, work, trace, text = recorded_program(tmp, source)
        lines = [line for line in text.splitlines() if "] read(" in line]
        of = {size: line for line in lines for size in ("= 100 ", "= 50 ") if size in line}
        assert f'path="{program}"' in of["= 100 "] and "[not a file]" not in of["= 100 "], lines
        assert "(deleted)" not in text and "[not a file]" in of["= 50 "], lines
        replays(trace, tmp, work)


if __name__ == "__main__":
    main(globals())
