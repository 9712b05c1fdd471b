#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""feign record: how the library comes into a program and to its system calls, and what is not recorded, and is said."""
import os
import re
import shutil
import subprocess
import sys

from harness import BUILD, FEIGN, Skip, Tmp, feign, main, sanitized, tree
from recording import both, compile_text, compiled, needs_capture, records_if_it_can, replays


def sandboxed(*arguments):
    needs_capture()
    with Tmp() as tmp:
        work, trace, root = (os.path.join(tmp, n) for n in ("w", "t.feign", "root"))
        for folder in (work, root):
            os.mkdir(folder)
        assert feign("record", "-o", trace, "--", compiled(tmp, "broker"), *arguments, cwd=work).status == 0
        r = feign("replay", trace, "--root", root, "--json").json()
        assert r["mismatched"] == 0 and not [n for n in r["notes"] if "close" in n], (r["mismatches"], r["notes"])


def test_what_a_sandbox_has_opened_by_another_process():
    """It came in a message, within the open that returns it: no close of it is missing."""
    sandboxed()


def test_what_a_sandbox_opens_in_the_handler_of_the_open():
    """Nor of what an open within that open got."""
    sandboxed("alone")


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


FAR = r"""
volatile char large[1800000000];
extern long kept;
__asm__(".section .bss.behind, \"aw\", @nobits\nkept: .skip 8\n.text\n");
static long process(void) {
  long number;
  __asm__ volatile("mov $39, %%eax\n syscall\n mov %%rax, kept(%%rip)" : "=a"(number) : : "rcx", "r11", "memory");
  return number;
}
int main(void) {
  large[5] = 1;
  return process() != kept;
}
"""


def test_what_cannot_be_reached_from_where_a_jump_leads_stays():
    """An access behind the system call to data that lies further away than its 32 bits say from there; or data that lies there itself."""
    needs_capture()
    with Tmp() as tmp:
        program = os.path.join(tmp, "far")
        for flags, said in (("-fPIE", "-pie"), "1 of 1 system calls that a program makes by itself"), (("-no-pie",), "data of more than 1 GiB at a fixed address"):
            compile_text(FAR, program, *flags, "-Wl,--build-id")
            if subprocess.run([program], check=False).returncode:
                raise Skip("no room for 1.8 GB of nothing")
            r = feign("record", "-o", os.path.join(tmp, "t.feign"), "--", program, cwd=tmp)
            assert r.status == 0 and said in r.err, (r.status, r.err)


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
        command = [FEIGN, "record", "-o", trace, "--", "sh", "-c", "echo $ASAN_OPTIONS; ./sane && env -i ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 ./sane && env -i ./sane && "
                   "ASAN_OPTIONS=detect_leaks=0 ./sane && env -u ASAN_OPTIONS ./sane && env -i ASAN_OPTIONS=detect_leaks=0:help=0 env | grep '^ASAN'"]
        done = subprocess.run(command, cwd=tmp, env=options, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        assert done.returncode == 0 and "detect_leaks=0\n" in done.stdout, done.stdout
        assert done.stdout.endswith("\nASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0:help=0\n"), done.stdout
        ops = feign("info", trace, "--json").json()["ops"]
        assert ops["write"]["count"] == 8, (ops, done.stdout)


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


MANY = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char** words) {
  const char* const there = getenv("LD_PRELOAD");
  const size_t length = there != NULL ? strlen(there) : 0;
  if (count == 1) return length < 9000 || strcmp(there + length - 3, "end") != 0;
  char* const large = malloc(9100);
  sprintf(large, "LD_PRELOAD=%9000s", "end");
  for (char* at = large + 11; *at == ' '; ++at) *at = ':';
  char** const environment = calloc(20002, sizeof(char*));
  for (int i = 0; i < 20000; ++i) environment[i] = "LD_PRELOAD=";
  environment[20000] = large;
  char *alone[] = {words[0], NULL}, *one[] = {large, NULL};
  /* It fails: what else is in memory is as it was. */
  execve("/", alone, environment);
  execve(words[0], alone, one);
  return 1;
}
"""


def test_a_preload_of_any_length_goes_on():
    """And several of them, which fill no memory but their own."""
    needs_capture()
    with Tmp() as tmp:
        program = os.path.join(tmp, "many")
        compile_text(MANY, program)
        assert subprocess.run([program, "more"], stderr=subprocess.DEVNULL, check=False).returncode == 0
        r = feign("record", "-o", os.path.join(tmp, "t.feign"), "--", program, "more")
        assert r.status == 0, (r.status, r.err[-300:])


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


if __name__ == "__main__":
    main(globals())
