#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""feign record: the layer stdio, streams and the system calls below them."""
import collections
import os
import re
import subprocess

from harness import FEIGN, TOP, Skip, Tmp, feign, main, same_tree, sanitized, tree
from recording import compile_text, compiled, needs_capture, replays


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


def test_what_malloc_opens_in_a_call_on_a_stream_it_closes():
    """As mimalloc does when it is first called, be that in the opening of a stream by the same number, or in a write to one that is no file."""
    streams_replay("""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
extern void* __libc_malloc(size_t);
static volatile int looks;
void* malloc(size_t size) {
  if (looks) {
    char text[8];
    looks = 0;
    int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY);
    if (fd < 0 || read(fd, text, sizeof text) < 1 || close(fd) != 0) _exit(7);
  }
  return __libc_malloc(size);
}
int main(void) {
  looks = 1;
  FILE* kernel = fopen("/proc/filesystems", "r");
  if (kernel == NULL || looks) return 1;
  looks = 1;
  if (fgetc(kernel) == EOF || looks || fclose(kernel) != 0) return 2;
  looks = 1;
  FILE* mine = fopen("mine", "w");
  if (mine == NULL || looks || fputs("text", mine) < 0 || fclose(mine) != 0) return 3;
  looks = 1;
  return printf("text\\n") != 5 || looks;
}
""")


def test_streams_of_wide_characters():
    """And of calls that are seldom made: fsetpos, scanf, fdopen to append."""
    with Tmp() as tmp:
        trace, work = recorded_streams(tmp, compiled(tmp, "wide"))
        replays(trace, tmp, work, 1)


TEXTS = """cut -f2 a > cut; fmt -w 30 a > fmt; od -c a > od; join a b > join; paste a b > paste; nl a > nl; expand a > expand; pr a > pr
base64 a > base64; cksum a > cksum; ls -l a > ls; diff a b > diff; getent passwd root > passwd; (echo one; echo two) > echo"""


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


MOVES = r"""
#include <stdio.h>
int main(void) {
  static char bytes[50000], line[100];
  FILE *f = fopen("f", "w+");
  for (int i = 0; i < 3; ++i) fwrite(bytes, 1, sizeof bytes, f);
  fputs("the end\n", f);
  fseek(f, -8, SEEK_END);
  if (fgets(line, sizeof line, f) == NULL) return 1;
  fclose(f);
  f = fopen("small", "w");
  fputs("ten bytes\n", f);
  return fclose(f);
}
"""


def test_bytes_of_a_stream_count_once():
    """Those of its own calls: what the calls in them move, also as it is flushed or closed, is the same bytes."""
    with Tmp() as tmp:
        compile_text(MOVES, os.path.join(tmp, "moves"))
        trace, work = recorded_streams(tmp, os.path.join(tmp, "moves"))
        info = feign("info", trace, "--json", "--with", f"filter,path={work}/**").json()
        files = {os.path.basename(f["path"]): (f["bytes_read"], f["bytes_written"]) for f in info["files"]}
        assert files == {"f": (8, 150008), "small": (0, 10)}, files
        assert (info["bytes_read"], info["bytes_written"]) == (8, 150018), info
        assert info["ops"]["write"]["bytes"] == 150018, info["ops"]


def test_system_calls_in_streams_do_all_of_the_work():
    """Without the layer around them: what a stream flushes as it is closed is on its descriptor, and where that is."""
    with Tmp() as tmp:
        compile_text(MOVES, os.path.join(tmp, "moves"))
        trace, work = recorded_streams(tmp, os.path.join(tmp, "moves"))
        form = os.path.join(tmp, "t.tracetext")
        assert feign("convert", trace, form).status == 0
        streams = "+".join(f"stdio:{call}" for call in ("fopen", "fwrite", "fputs", "fgets", "fseek", "fclose"))
        for what in ((form,), (trace, "--with", f"filter,op={streams},drop=yes,state=drop")):
            root = os.path.join(tmp, f"root{len(what)}")
            os.makedirs(root)
            j = feign("replay", *what, "--root", root, "--json").json()
            assert j["mismatched"] == 0 and j["bytes_written"] == 150018, (what, j["mismatches"], j["skips"])
            same_tree(tree(work), tree(root + work))


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


def test_lines_of_wide_characters():
    """What comes after the last line stays, as many bytes as it will be."""
    streams_replay(r"""
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <unistd.h>
#include <wchar.h>
int main(void) {
  char bytes[100];
  if (setlocale(LC_ALL, "C.UTF-8") == NULL) return 77;
  FILE* f = fopen("f", "w");
  const int fd = open("f", O_RDONLY);
  setlinebuf(f);
  if (fputws(L"\u00e9 line\nf\u00e9w", f) < 0 || read(fd, bytes, sizeof bytes) != 8) return 1;
  if (fputws(L"er\nn", f) < 0 || read(fd, bytes, sizeof bytes) < 7) return 2;
  if (fwprintf(f, L"%ls\n%d", L"\u20ac", 7) < 0 || read(fd, bytes, sizeof bytes) < 4) return 3;
  return fclose(f) | close(fd);
}
""")


def test_wide_characters_that_are_appended():
    """libc says where the file's end is only once something waits to be written there."""
    streams_replay(r"""
#include <locale.h>
#include <stdio.h>
#include <wchar.h>
int main(void) {
  if (setlocale(LC_ALL, "C.UTF-8") == NULL) return 77;
  FILE* f = fopen("f", "w");
  fputs("what was there\n", f);
  fclose(f);
  f = fopen("f", "a");
  rewind(f);
  if (fwprintf(f, L"%ls %d\n", L"\u20ac", 7) < 0 || fwprintf(f, L"%d\n", 8) < 0) return 1;
  return fclose(f);
}
""")


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


APPENDS_TO_WHAT_WAS_THERE = r"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
static int appends(FILE* f) {
  char line[100];
  if (f == NULL) return 1;
  for (int i = 0; i < 100; ++i) fputs("some more\n", f);
  if (ftell(f) != 1600) return 2;
  rewind(f);
  return fgets(line, sizeof line, f) == NULL;
}
int main(void) {
  int failed = appends(fopen("a", "a+"));
  failed |= appends(fdopen(open("b", O_RDWR | O_CREAT | O_APPEND, 0666), "a+"));
  return failed;
}
"""


def test_what_a_stream_holds_back_is_not_in_its_file():
    """Its first write asks how long the file is, which that does not have yet."""
    with Tmp() as tmp:
        program = os.path.join(tmp, "appends")
        compile_text(APPENDS_TO_WHAT_WAS_THERE, program)
        os.mkdir(os.path.join(tmp, "w"))
        for name in "ab":
            with open(os.path.join(tmp, "w", name), "w", encoding="ascii") as f:
                f.write("a line\n" * 85 + "last\n")
        trace, work = recorded_streams(tmp, program)
        replays(trace, tmp, work, 1)


def test_a_descriptor_that_appends_already_stays_where_it_is():
    """fdopen() goes to the end of the file only if nothing went there so far."""
    streams_replay(r"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  FILE* f = fopen("f", "w");
  if (fputs("text", f) < 0 || fclose(f) != 0) return 1;
  f = fdopen(open("f", O_WRONLY | O_APPEND), "a");
  if (f == NULL || ftell(f) != 0 || fputs(" and more", f) < 0 || fflush(f) != 0 || ftell(f) != 13 || fclose(f) != 0) return 2;
  f = fdopen(open("f", O_WRONLY), "a");
  return f == NULL || ftell(f) != 13 || fclose(f) != 0;
}
""")


LOSES_ITS_OUTPUT = r"""
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  int status = 1;
  const pid_t child = fork();
  if (child == 0) {
    printf("written"), fflush(stdout);
    printf("lost");
    _exit(0);
  }
  if (waitpid(child, &status, 0) != child || status != 0) return 1;
  return printf(" kept") != 5;
}
"""


def test_output_that_a_child_lost_leaves_no_gap():
    """Its parent goes on where the child's system calls had come to."""
    with Tmp() as tmp:
        program = os.path.join(tmp, "loses")
        compile_text(LOSES_ITS_OUTPUT, program)
        needs_capture()
        trace, work = os.path.join(tmp, "t.feign"), os.path.realpath(os.path.join(tmp, "w"))
        os.mkdir(work)
        with open(os.path.join(work, "out"), "wb") as out:
            subprocess.run([FEIGN, "record", "-o", trace, "--layer", "stdio", "--layer", "posix", "--", program], cwd=work, stdout=out, check=True)
        assert os.path.getsize(os.path.join(work, "out")) == 12
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


def test_what_was_not_there_is_made_and_removed():
    """remove(3) has a system call in it that finds nothing left: nothing was there before for that."""
    streams_replay(r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void) {
  struct stat s;
  if (lstat("file", &s) == 0 || lstat("fifo", &s) == 0 || lstat("link", &s) == 0 || stat("directory", &s) == 0) return 1;
  int fd = open("file", O_WRONLY | O_CREAT, 0600);
  if (fd < 0 || close(fd) || mkfifo("fifo", 0600) || symlink("nowhere", "link") || mkdir("directory", 0700)) return 2;
  if (remove("file") || remove("fifo") || remove("link") || remove("directory")) return 3;
  return lstat("file", &s) == 0 || mkdir("directory", 0700);
}
""")


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


# A thread's fopen asks for memory for as long as another one has a stream of the descriptor that it gets afterwards, or renames its file.
OPENED_LATE = r"""
#include <pthread.h>
#include <stdio.h>
void* __libc_malloc(size_t size);
static __thread int late;
static int waits, goes_on;
void* malloc(size_t size) {
  if (late) {
    late = 0;
    __atomic_store_n(&waits, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&goes_on, __ATOMIC_SEQ_CST)) {
    }
  }
  return __libc_malloc(size);
}
static int writes(const char* name) {
  FILE* const stream = fopen(name, "w");
  const int number = fileno(stream);
  fputs(name, stream);
  fclose(stream);
  return number;
}
static void* opens_late(void* number) {
  late = 1;
  *(int*)number = writes("late");
  return NULL;
}
static void* finds_nothing(void* found) {
  late = 1;
  *(int*)found = fopen("there", "r") != NULL;
  return NULL;
}
static void begins(pthread_t* thread, void* (*does)(void*), int* told) {
  waits = goes_on = 0;
  pthread_create(thread, NULL, does, told);
  while (!__atomic_load_n(&waits, __ATOMIC_SEQ_CST)) {
  }
}
static void ends(pthread_t thread) {
  __atomic_store_n(&goes_on, 1, __ATOMIC_SEQ_CST);
  pthread_join(thread, NULL);
}
int main(void) {
  pthread_t thread;
  int number, found;
  begins(&thread, opens_late, &number);
  const int other = writes("there");
  ends(thread);
  begins(&thread, finds_nothing, &found);
  rename("there", "away");
  ends(thread);
  return number != other || found;
}
"""


def test_a_stream_is_opened_when_its_file_is():
    """Not from the start of fopen: until then, another thread may have had that descriptor, or renamed the file."""
    streams_replay(OPENED_LATE, "-pthread")


# Reading a stream takes as long as other threads take for what its reader makes.
READ_BY_NAMES = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
static void wait_for(const char* name) { while (access(name, F_OK) != 0) usleep(2000); }
static ssize_t get(void* at, char* to, size_t size) {
  static int n;
  char made[] = "p0", back[] = "q0";
  if (n == 3) return 0;
  made[1] = back[1] = (char)('0' + n++);
  mkdir(made, 0700);
  wait_for(back);
  to[0] = 'x';
  return 1;
}
static void* other(void* failed) {
  for (char n = '0'; n < '3'; ++n) {
    char made[] = "p0", back[] = "q0";
    made[1] = back[1] = n;
    wait_for(made);
    if (rmdir(made) != 0 || mkdir(back, 0700) != 0) *(int*)failed = 1;
  }
  return NULL;
}
int main(void) {
  int failed = 0;
  char got[4];
  pthread_t t;
  cookie_io_functions_t functions = {.read = get};
  FILE* f = fopencookie(NULL, "r", functions);
  pthread_create(&t, NULL, other, &failed);
  const size_t count = fread(got, 1, 3, f);
  pthread_join(t, NULL);
  return failed || count != 3;
}
"""


def test_what_a_stream_is_read_by_comes_among_what_others_do():
    """A call that is about no name is told where it began, and what is in it where it was."""
    with Tmp() as tmp:
        program = os.path.join(tmp, "names")
        compile_text(READ_BY_NAMES, program, "-pthread")
        trace, _ = recorded_streams(tmp, program)
        text = os.path.join(tmp, "t.txt")
        feign("convert", trace, text)
        with open(text, encoding="utf-8") as f:
            calls = re.findall(r" (mkdir|rmdir)\(\w+=\"[^\"]*?(\w+)\"", f.read())
        assert calls == [(op, name + n) for n in "012" for op, name in (("mkdir", "p"), ("rmdir", "p"), ("mkdir", "q"))], calls


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


MANY_WITHIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  enum { kMany = 270000 }; /* each is a message of one byte */
  static char bytes[kMany];
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) return 77;
  if (fork() == 0) {
    for (int i = 0; i < kMany; ++i)
      if (write(ends[1], "x", 1) != 1) return 1;
    return 0;
  }
  FILE* const f = fdopen(ends[0], "r");
  setvbuf(f, NULL, _IONBF, 0);
  if (fread(bytes, 1, kMany, f) != kMany) return 1;
  wait(NULL);
  return 0;
}
"""


def test_a_call_that_more_are_in_than_are_held_comes_before_them():
    needs_capture()
    with Tmp() as tmp:
        program, trace, text = (os.path.join(tmp, n) for n in ("program", "t.feign", "t.txt"))
        compile_text(MANY_WITHIN, program)
        r = feign("record", "-o", trace, "--layer", "stdio", "--layer", "posix", "--", program)
        if r.status == 77:
            raise Skip("no such sockets here")
        assert r.status == 0, (r.status, r.err)
        assert feign("convert", "-q", trace, text).status == 0
        with open(text, encoding="utf-8") as f:
            calls = re.findall(r"\] (?:stdio:)?(fread|read)\(", f.read())
        assert calls == ["fread"] + ["read"] * 270000, (len(calls), calls[:2])


LEFT_WITHIN = r"""
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
static sigjmp_buf out;
static void leave(int s) { siglongjmp(out, s); }
int main(void) {
  char bytes[16];
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || write(ends[1], "x", 1) != 1) return 77;
  FILE* f = fdopen(ends[0], "r");
  setvbuf(f, NULL, _IONBF, 0);
  signal(SIGALRM, leave);
  if (sigsetjmp(out, 1) == 0) { /* the second byte never comes */
    const struct itimerval soon = {{0, 0}, {0, 200000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    fread(bytes, 1, 2, f);
    return 1;
  }
  f = fopen("/dev/zero", "r");
  setvbuf(f, NULL, _IONBF, 0);
  for (volatile int i = 0; i < 200000; ++i)
    if (fread(bytes, 1, 16, f) != 16) return 2;
  return 0;
}
"""


def test_a_call_that_a_handler_left_takes_no_later_ones_record():
    needs_capture()
    with Tmp() as tmp:
        program, trace = os.path.join(tmp, "program"), os.path.join(tmp, "t.feign")
        compile_text(LEFT_WITHIN, program)
        r = feign("record", "-o", trace, "--layer", "stdio", "--layer", "posix", "--", program)
        assert r.status == 0, (r.status, r.err)
        assert feign("info", trace, "--json").json()["ops"]["stdio:fread"]["count"] == 200000


NAMES_NOWHERE = r"""
#include <errno.h>
#include <stdio.h>
int main(void) {
  char* const nowhere = (char*)8;
  FILE* f = fopen("f", "w");
  if (fopen(nowhere, "r") != NULL || errno != EFAULT) return 1;
  if (remove(nowhere) == 0 || errno != EFAULT) return 2;
  return freopen(nowhere, "r", f) != NULL || errno != EFAULT ? 3 : 0;
}
"""


def test_a_name_that_is_not_there_stays_a_failure():
    streams_replay(NAMES_NOWHERE)


MOVES_WORDS = r"""
#include <stdio.h>
int main(void) {
  FILE* f = fopen("f", "w+");
  for (int i = 0; i < 3000; ++i)
    if (putw(i, f) != 0) return 1;
  rewind(f);
  for (int i = 0; i < 2000; ++i)
    if (getw(f) != i) return 2;
  if (ftell(f) != 8000) return 3;
  fseek(f, -6, SEEK_END); /* one, and a half of one */
  return getw(f) == EOF || getw(f) != EOF || !feof(f) || fclose(f) != 0;
}
"""


def test_words_are_bytes_of_their_stream():
    """Read by libc itself, what filled the buffer was made, and what was taken out of it was, too."""
    streams_replay(MOVES_WORDS)


FLUSHES_SOME = r"""
#include <stdio.h>
#include <stdio_ext.h>
int main(void) {
  FILE *lines = fopen("lines", "w"), *whole = fopen("whole", "w");
  setvbuf(lines, NULL, _IOLBF, 0);
  fputs("no end", lines);
  fputs("in a buffer", whole);
  _flushlbf();
  fputs(" of it", lines);
  if (fcloseall() != 0) return 1;
  fputs("after", whole);
  return 0;
}
"""


def test_all_ways_of_writing_what_streams_have():
    """_flushlbf() and fcloseall() write it as fflush() does, and it is written once."""
    streams_replay(FLUSHES_SOME)


PROMPTS = r"""
#include <stdio.h>
int main(void) {
  char text[100];
  int c;
  setvbuf(stdin, NULL, _IONBF, 0);
  setvbuf(stdout, NULL, _IOLBF, 0);
  fputs("one? ", stdout);
  if (getchar() != 'a') return 1;
  fputs("a line? ", stdout);
  if (fgets(text, sizeof text, stdin) == NULL) return 2;
  printf("%sa number? ", text);
  if (scanf("%d", &c) != 1) return 3;
  fputs("bytes? ", stdout);
  if (fread(text, 1, 3, stdin) != 3) return 4;
  fputs("none? ", stdout);
  if (getchar() != EOF) return 5;
  fputs("none again? ", stdout);
  if (getchar() != EOF) return 6;
  fputs("end", stdout);
  return 0;
}
"""


def test_lines_are_written_before_something_is_asked_for():
    """What standard output has of a line, as libc reads for a stream without a buffer (`stdbuf -i0 -oL`); and when it does not."""
    needs_capture()
    with Tmp() as tmp:
        program, work, writes = os.path.join(tmp, "program"), os.path.join(tmp, "w"), []
        compile_text(PROMPTS, program)
        os.mkdir(work)
        for n, layers in enumerate(((), ("--layer", "stdio"))):
            trace, text = os.path.join(tmp, f"{n}.feign"), os.path.join(tmp, "t.txt")
            with open(os.path.join(work, "out"), "wb") as out:
                done = subprocess.run([FEIGN, "record", "-q", "-o", trace, "--layer", "posix", *layers, "--", program], cwd=work,
                                      input=b"a b c\n12 xy", stdout=out, stderr=subprocess.PIPE, timeout=60, check=False)
            assert done.returncode == 0, (done.returncode, done.stderr)
            assert feign("convert", "-q", trace, text).status == 0
            with open(text, encoding="utf-8") as f:
                writes.append(re.findall(r" write\(.*?count=(\d+)", f.read()))
        assert writes[0] == writes[1] and len(writes[0]) > 3, writes
        replays(trace, tmp, work, 1)


IS_KILLED = r"""
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  FILE* f = fopen("f", "w");
  fputs("written", f);
  fflush(f);
  if (fork() == 0) pause(); /* its end nobody is told */
  fputs("lost", f);
  kill(0, SIGKILL);
  return 0;
}
"""


def test_what_a_signal_kept_from_being_written_stays_so():
    """Of the command, and of what ends with it: nobody in the trace is told that."""
    needs_capture()
    with Tmp() as tmp:
        program, trace, work = (os.path.join(os.path.realpath(tmp), name) for name in ("program", "t.feign", "w"))
        compile_text(IS_KILLED, program)
        os.mkdir(work)
        r = feign("record", "-q", "-o", trace, "--layer", "stdio", "--layer", "posix", "--", "setsid", "--wait", program, cwd=work)
        assert r.status == 137, (r.status, r.err)
        replays(trace, tmp, work, 1)


PAUSED = r"""
#include <stdio.h>
#include <feign_record.h>
int main(void) {
  FILE* f = fopen("f", "w");
  for (int i = 0; i < 100; ++i) fprintf(f, "line %d\n", i % 10);
  feign_record_pause();
  for (int i = 0; i < 100; ++i) fputs("more", f);
  return fclose(f);
}
"""


def test_what_streams_had_is_written_where_no_end_is_recorded():
    """Of a program that paused its recording, and where no system calls are: it did not end by a signal for that."""
    needs_capture()
    for layers in (("--layer", "posix"), ()):
        with Tmp() as tmp:
            program, trace = (os.path.join(os.path.realpath(tmp), name) for name in ("program", "t.feign"))
            root = os.path.join(tmp, "root")
            os.mkdir(root)
            compile_text(PAUSED, program, "-I", os.path.join(TOP, "include"))
            r = feign("record", "-q", "-o", trace, "--layer", "stdio", *layers, "--", program, cwd=tmp)
            assert r.status == 0, r.err
            feign("replay", trace, "--root", root)
            assert os.path.getsize(root + os.path.realpath(os.path.join(tmp, "f"))) == 700, layers


READS_ENTRIES = r"""
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
int main(void) {
  char line[64], text[512];
  struct passwd user = {"me", "x", 1, 2, "", "/home", "/bin/sh"}, entry, *found;
  FILE* f = fopen("passwd", "w+");
  for (int i = 0; i < 300; ++i) putpwent(&user, f);
  rewind(f);
  for (int i = 0; i < 5; ++i)
    if (fgetpwent(f) == NULL || fgetpwent_r(f, &entry, text, sizeof text, &found) != 0) return 1;
  if (ftell(f) != 10 * 24 || fgets(line, sizeof line, f) == NULL || ftell(f) != 11 * 24) return 2;
  while (fgetpwent(f) != NULL) {
  }
  if (!feof(f) || fclose(f) != 0) return 3;
  f = fopen("group", "w+");
  fputs("some:x:1:me\nmore:x:2:me,you\n", f);
  rewind(f);
  return fgetgrent(f) == NULL || ftell(f) != 12 || fgets(line, sizeof line, f) == NULL || fclose(f) != 0 ? 4 : 0;
}
"""


def test_entries_of_users_are_read_from_their_stream():
    """By libc, which takes them out of the buffer that it fills."""
    streams_replay(READS_ENTRIES)


THREADS = r"""
#include <pthread.h>
#include <stdio.h>
static FILE* f;
static void* writes(void* text) {
  for (int i = 0; i < 500; ++i) fprintf(f, "%s %04d\n", (const char*)text, i);
  return NULL;
}
int main(void) {
  char line[64];
  int lines = 0;
  pthread_t one, two;
  f = fopen("f", "w+");
  if (pthread_create(&one, NULL, writes, "one") != 0 || pthread_create(&two, NULL, writes, "two") != 0) return 1;
  pthread_join(one, NULL), pthread_join(two, NULL);
  rewind(f);
  while (fgets(line, sizeof line, f) != NULL) ++lines;
  return lines != 1000 || fclose(f) != 0;
}
"""


def test_threads_share_their_streams_where_no_system_call_tells_of_them():
    """Nor of anything else: with layer stdio alone."""
    needs_capture()
    with Tmp() as tmp:
        program, trace, work = (os.path.join(os.path.realpath(tmp), name) for name in ("program", "t.feign", "w"))
        compile_text(THREADS, program, "-pthread")
        os.mkdir(work)
        r = feign("record", "-q", "-o", trace, "--layer", "stdio", "--", program, cwd=work)
        assert r.status == 0, (r.status, r.err)
        replays(trace, tmp, work, 1)


ASKS_FOR_NOTHING = r"""
#include <stdio.h>
int main(void) {
  char text[8] = "";
  FILE* f = fopen("f", "w+");
  fputs("text", f);
  rewind(f);
  if (fgets(text, 0, f) != NULL || fgets(text, -3, f) != NULL || ftell(f) != 0) return 1;
  return fgets(text, sizeof text, f) != text || fgets(text, sizeof text, f) != NULL || fclose(f) != 0;
}
"""


def test_no_room_for_a_line_is_not_the_files_end():
    streams_replay(ASKS_FOR_NOTHING)


GIVES_BACK_WHAT_IT_REOPENS = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  char line[16];
  int status;
  FILE* f = fopen("f", "w");
  for (int i = 0; i < 1000; ++i) fprintf(f, "line %04d\n", i);
  fclose(f);
  const int fd = open("f", O_RDONLY);
  if (fork() == 0) {
    dup2(fd, 0);
    if (fgets(line, sizeof line, stdin) == NULL || freopen("f", "r", stdin) == NULL || getchar() != 'l') exit(1);
    exit(0);
  }
  return wait(&status) < 0 || status != 0 || lseek(fd, 0, SEEK_CUR) != 10;
}
"""


def test_what_was_read_is_given_back_before_a_stream_is_opened_anew():
    """To those who share the file that it was on."""
    streams_replay(GIVES_BACK_WHAT_IT_REOPENS)


if __name__ == "__main__":
    main(globals())
