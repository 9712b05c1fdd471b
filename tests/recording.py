# SPDX-License-Identifier: MIT
"""What the tests of feign record share: what strace sees of the same run, call by call."""
import collections
import os
import re
import shutil
import subprocess

from harness import BUILD, FEIGN, TOP, Skip, Tmp, feign, same_tree, tree

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
