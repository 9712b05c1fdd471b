#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""feign record: io_uring and asynchronous I/O, whose requests are no system calls."""
import json
import os
import re
import shutil

from harness import Skip, Tmp, feign, main
from recording import compile_text, compiled, needs_capture, records_if_it_can, replays


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


def test_io_uring_of_younger_kernels():
    """A file that is sent to another ring's table is the same one there; flags of a read or write go with it; a read that
    goes on has as many results as it says, and none where it is refused, of a regular file."""
    needs_capture()
    with Tmp() as tmp:
        program = compiled(tmp, "uring", "-luring")
        trace, work = os.path.join(tmp, "t.feign"), os.path.join(tmp, "w")
        os.mkdir(work)
        records_if_it_can(trace, program, "late", cwd=work, lacks="an older kernel")
        lines = feign("convert", trace, "-", "--to", "text").out.splitlines()
        about = [re.search(r"\] (\w+)\((.*)\) = (-?\w+)", line) for line in lines if f'{work}/a"' in line or f'{work}/f"' in line]
        told = [(m[1], re.sub(r"^(fd=#\d+|pathname=\S+), ", "", m[2]), m[3]) for m in about if m[1] not in ("openat", "fcntl", "close")]
        assert told == [("pwrite64", "count=700, offset=0", "700"), ("pwritev2", "iov=[700], offset=700, flags=RWF_APPEND", "700"),
                        ("preadv2", "iov=[4096], offset=0, flags=RWF_NOWAIT", "1400"), ("pread64", "count=0, offset=0", "-EBADFD"), ("mknodat", "mode=S_IFIFO|0x180", "0")] \
            + [("write", "count=5", "5"), ("read", "count=5", "5")] * 2, told
        replays(trace, tmp, work)


def test_a_descriptor_is_given_again_before_its_close_is_told():
    """A descriptor that an open gets was given up before, though the kernel tells of the close later."""
    needs_capture()
    with Tmp() as tmp:
        program = compiled(tmp, "reuse", "-luring")
        for mode, count in ((), 61), (("sqpoll",), 61), (("cut",), 2):
            trace, work = os.path.join(tmp, "t.feign"), os.path.join(tmp, "w")
            os.mkdir(work)
            records_if_it_can(trace, program, *mode, cwd=work, lacks="the kernel lets nobody use io_uring")
            lines = feign("convert", trace, "-", "--to", "text").out.splitlines()
            writes = [line for line in lines if "] write(" in line]
            assert len(writes) == count and all(f'{work}/' in line for line in writes), [line for line in writes if work not in line][:3]
            closed = [line for line in lines if "] close(" in line and "[opened before" in line and "path=" not in line]
            assert not closed, closed
            replays(trace, tmp, work)
            shutil.rmtree(work)
            shutil.rmtree(os.path.join(tmp, "root"))


def test_descriptors_that_other_threads_close():
    """What one thread's ring closes another one opens, by its own ring or by a system call: each write is to its file. A thread that is kept from
    the processor between what it sees and the time that it takes for it may still err: of three recordings two are right."""
    needs_capture()
    with Tmp() as tmp:
        program, wrong = compiled(tmp, "reuse", "-luring"), []
        for i in range(3):
            trace, work, at = os.path.join(tmp, "t.feign"), os.path.join(tmp, "w"), os.path.join(tmp, str(i))
            os.mkdir(work)
            os.mkdir(at)
            records_if_it_can(trace, program, "threads", cwd=work, lacks="the kernel lets nobody use io_uring")
            try:
                replays(trace, at, work)
            except AssertionError as e:
                wrong.append(e)
            shutil.rmtree(work)
        assert len(wrong) < 2, wrong


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


MOVED = r"""
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static struct io_uring ring;
static void put(int at, int file, int n) {
  for (int i = 0; i < n; ++i) {
    struct io_uring_sqe* const s = io_uring_get_sqe(&ring);
    struct io_uring_cqe* c;
    io_uring_prep_write(s, file, "moved", 5, 5 * i);
    ring.ring_fd = ring.enter_ring_fd = at;
    if (io_uring_submit(&ring) != 1 || io_uring_wait_cqe(&ring, &c) != 0 || c->res != 5) abort();
    io_uring_cqe_seen(&ring, c);
  }
}
int main(void) {
  if (io_uring_queue_init(4, &ring, 0) != 0) return 77;
  const int first = ring.ring_fd, file = open("a", O_CREAT | O_RDWR, 0600);
  const int high = fcntl(first, F_DUPFD_CLOEXEC, 50);
  put(high, file, 7);  /* by the one */
  put(first, file, 7); /* and the other */
  close(first);
  put(high, file, 7);
  const int second = dup2(high, 20), other = dup2(file, high); /* which closes it */
  put(second, other, 7);
  close(second);
  return 0;
}
"""


def test_a_ring_that_has_other_descriptors():
    """A ring is the same one by a duplicate of its descriptor, whichever of them is closed."""
    needs_capture()
    with Tmp() as tmp:
        program, trace, work = (os.path.join(tmp, n) for n in ("program", "t.feign", "w"))
        os.mkdir(work)
        compile_text(MOVED, program, "-luring")
        r = records_if_it_can(trace, program, cwd=work, lacks="the kernel lets nobody use io_uring")
        lines = [line for line in feign("convert", trace, "-", "--to", "text").out.splitlines() if "] pwrite64(" in line]
        assert r.err == "" and len(lines) == 28 and all('/w/a"' in line for line in lines), (r.err, len(lines))
        replays(trace, tmp, work)


CLOSED = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char** argv) {
  struct io_uring ring;
  int ends[2];
  char end;
  if (io_uring_queue_init(8, &ring, 0) != 0) return 77;
  if (pipe(ends) != 0 || io_uring_register_files(&ring, &ends[1], 1) != 0) abort();
  close(ends[1]);
  munmap(ring.sq.sqes, 8 * sizeof *ring.sq.sqes);
  munmap(ring.sq.ring_ptr, ring.sq.ring_sz);
  alarm(30);
  if (argv[1][0] == 'r') {
    if (close_range(ring.ring_fd, ring.ring_fd, 0) != 0) return 77;
  } else {
    dup2(0, ring.ring_fd);
  }
  return read(ends[0], &end, 1) != 0; /* nobody has the other end any more */
}
"""


def test_a_ring_that_is_closed_by_other_calls():
    """A ring that is closed by a close_range or dup2 is gone, and with it the files in its table."""
    needs_capture()
    with Tmp() as tmp:
        program, trace = os.path.join(tmp, "program"), os.path.join(tmp, "t.feign")
        compile_text(CLOSED, program, "-luring")
        for how in ("range", "dup2"):
            records_if_it_can(trace, program, how, cwd=tmp, lacks="the kernel lets nobody use io_uring")


TWO_SIZES = r"""
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <unistd.h>
static struct io_uring ring;
static struct io_uring_cqe* next(int flag) {
  struct io_uring_cqe* c;
  while (io_uring_wait_cqe(&ring, &c) == 0 && (c->flags & 1u << 5)) io_uring_cq_advance(&ring, 1);
  if ((c->flags & 1u << 15) != flag) exit(77);
  return c;
}
static void took(int result) {
  if (next(0)->res != result) abort();
  io_uring_cq_advance(&ring, 1);
}
int main(void) {
  struct io_uring_params p = {.flags = 1u << 18}; /* IORING_SETUP_CQE_MIXED */
  if (io_uring_queue_init_params(8, &ring, &p) != 0) return 77;
  const int file = open("a", O_CREAT | O_RDWR, 0600);
  int ends[2];
  char data[9];
  if (pipe(ends) != 0) abort();
  for (int i = 0; i < 12; ++i) {
    struct io_uring_sqe* s = io_uring_get_sqe(&ring);
    io_uring_prep_read(s, ends[0], data, 9, -1);
    s = io_uring_get_sqe(&ring);
    io_uring_prep_nop(s);
    s->user_data = 1;
    s->rw_flags = 1 << 5; /* IORING_NOP_CQE32, whose second half is these two: */
    s->off = s->addr = 0;
    if (io_uring_submit(&ring) != 2) abort();
    (void)next(1 << 15);
    io_uring_cq_advance(&ring, 2);
    if (write(ends[1], "hello", 5) != 5) abort();
    took(5);
    for (int k = 0; k < 2; ++k) {
      io_uring_prep_write(io_uring_get_sqe(&ring), file, data, 5, 10 * i + 5 * k);
      if (io_uring_submit(&ring) != 1) abort();
      took(5);
    }
  }
  return 0;
}
"""


def test_results_of_two_sizes():
    """The second half of a longer result, and the place that is left free where one would not be in one piece, are results of no request."""
    needs_capture()
    with Tmp() as tmp:
        program, trace, work = (os.path.join(tmp, n) for n in ("program", "t.feign", "w"))
        os.mkdir(work)
        compile_text(TWO_SIZES, program, "-luring")
        records_if_it_can(trace, program, cwd=work, lacks="an older kernel")
        lines = feign("convert", trace, "-", "--to", "text").out.splitlines()
        calls = [(m[1], m[2]) for m in (re.search(r"\] (read|pwrite64)\(.*?\) = (-?\d+)", line) for line in lines) if m]
        assert calls == [("read", "5"), ("pwrite64", "5"), ("pwrite64", "5")] * 12, calls
        replays(trace, tmp, work)


POLLED = r"""
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
enum { kRounds = 5, kPage = 4096 };
/* Shared with the process that gives the page, which has no rings. */
static volatile struct shared { int wanted, passed, over; } *shared;
static char* page;
static volatile int rounds;
static void* looks(void* none) {
  for (int seen = 0; seen != kRounds; ++seen) {
    while (rounds == seen) continue;
    lseek(-1, 0, SEEK_CUR);
  }
  return NULL;
}
static void gives(int faults) {
  static char text[kPage] = "first";
  struct uffd_msg said;
  while (!shared->over) {
    struct pollfd some = {faults, POLLIN, 0};
    if (poll(&some, 1, 10) != 1 || read(faults, &said, sizeof said) != sizeof said) continue;
    shared->wanted = 1;
    for (int i = 0; i < 20 && !shared->passed; ++i) usleep(1000);
    struct uffdio_copy copy = {(uintptr_t)page, (uintptr_t)text, kPage, 0, 0};
    ioctl(faults, UFFDIO_COPY, &copy);
  }
  _exit(0);
}
int main(void) {
  static char path[8];
  struct io_uring_params p = {.flags = IORING_SETUP_SQPOLL};
  const int ring = syscall(SYS_io_uring_setup, 8, &p);
  const int faults = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
  struct uffdio_api api = {.api = UFFD_API};
  if (ring < 0 || faults < 0 || ioctl(faults, UFFDIO_API, &api) != 0) return 77;
  char* const queues = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
  struct io_uring_sqe* const entries = mmap(0, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
  uint32_t *const tail = (void*)(queues + p.sq_off.tail), *const done = (void*)(queues + p.cq_off.tail);
  for (int i = 0; i < 8; ++i) ((uint32_t*)(void*)(queues + p.sq_off.array))[i] = i;
  page = mmap(0, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  shared = mmap(0, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  struct uffdio_register missing = {{(uintptr_t)page, kPage}, UFFDIO_REGISTER_MODE_MISSING};
  if (ioctl(faults, UFFDIO_REGISTER, &missing) != 0) return 77;
  const pid_t giver = fork();
  if (giver == 0) gives(faults);
  pthread_t other;
  pthread_create(&other, NULL, looks, NULL);
  for (int i = 0; i < kRounds; ++i) {
    madvise(page, kPage, MADV_DONTNEED);
    shared->wanted = shared->passed = 0;
    /* Whoever reads this name has to wait; the kernel refuses the request before it does. */
    entries[*tail % 8] = (struct io_uring_sqe){.opcode = IORING_OP_STATX, .fd = AT_FDCWD, .addr = (uintptr_t)page, .splice_fd_in = 1};
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    ++rounds;
    for (long turns = 0; !shared->wanted && turns < 1 << 28; ++turns) continue;
    strcpy(path, "second");
    entries[*tail % 8] = (struct io_uring_sqe){.opcode = IORING_OP_OPENAT, .fd = AT_FDCWD, .addr = (uintptr_t)path, .user_data = 1};
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    lseek(-1, 0, SEEK_CUR); /* in the place of one that waits for results */
    strcpy(path, "gone"); /* as it may be once the request has been taken */
    shared->passed = 1;
    while (__atomic_load_n(done, __ATOMIC_ACQUIRE) != *tail) syscall(SYS_io_uring_enter, ring, 0, 0, IORING_ENTER_SQ_WAKEUP, NULL, 8);
    *(uint32_t*)(void*)(queues + p.cq_off.head) = *done;
  }
  pthread_join(other, NULL);
  shared->over = 1;
  waitpid(giver, NULL, 0);
  return 0;
}
"""


def test_names_of_requests_that_a_thread_of_the_kernel_takes_are_read_before_the_program_goes_on():
    """Another thread looks at the ring, and waits for memory there: the one that submitted waits for it (not for ever, where the
    machine is that busy: in one round of five)."""
    needs_capture()
    with Tmp() as tmp:
        program, trace, text = (os.path.join(tmp, n) for n in ("polled", "t.feign", "t.txt"))
        compile_text(POLLED, program, "-lpthread")
        records_if_it_can(trace, program, cwd=tmp, lacks="the kernel lets nobody use io_uring, or userfaultfd")
        assert feign("convert", "-q", trace, text).status == 0
        with open(text, encoding="utf-8") as f:
            opened = re.findall(r'openat\(pathname="[^"]*/(second|gone)"', f.read())
        assert len(opened) == 5 and "second" in opened, opened


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
    requests[i].aio_offset = i < 2 ? 0 : 400;
    requests[i].aio_rw_flags = i == 1 ? 0x10 : 0;  /* RWF_APPEND */
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
  const int file = open("f", O_CREAT | O_TRUNC | O_RDWR, 0600);
  const int failed = argc > 1 ? by_kernel(file) : by_libc(file);
  return failed ? failed : lseek(file, 0, SEEK_END) != 1400;
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


CONTEXTS = r"""
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>
int main() {
  aio_context_t at[2] = {0, 0};
  for (int i = 0; i < 2; ++i)
    if (syscall(SYS_io_setup, 7 + i, &at[i]) != 0) return 77;
  for (int i = 0; i < 2; ++i) syscall(SYS_io_destroy, at[i]);
  return 0;
}
"""


def test_contexts_of_requests_have_their_places_and_sizes():
    needs_capture()
    with Tmp() as tmp:
        program, trace, text = (os.path.join(tmp, n) for n in ("contexts", "t.feign", "t.txt"))
        compile_text(CONTEXTS, program)
        records_if_it_can(trace, program, cwd=tmp, lacks="this kernel has no asynchronous I/O")
        assert feign("convert", trace, text).status == 0
        with open(text, encoding="utf-8") as f:
            made = re.findall(r"io_setup\(nr_events=(\d+), ctx=(\d+)\)|io_destroy\(ctx=(\d+)\)", f.read())
        (seven, one, _), (eight, other, _), *ends = made
        assert (seven, eight) == ("7", "8") and one not in (other, "0") and [e[2] for e in ends] == [one, other], made


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


if __name__ == "__main__":
    main(globals())
