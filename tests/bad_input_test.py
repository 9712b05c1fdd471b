#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Bad input: each gets an error that names what is wrong, exit status 2, and nothing half-written."""
import array
import bz2
import fcntl
import gzip
import json
import lzma
import os
import pty
import random
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import time

from harness import BUILD, FEIGN, TOP, Skip, Tmp, feign, main, refuses, sanitized
from recording import needs_capture

SHIPPED = os.path.join(TOP, "examples", "git-clone.strace.gz")
GOOD = ('1000.000001 openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0644) = 3 <0.000010>\n'
        '1000.000100 write(3, "abc", 3) = 3 <0.000005>\n'
        "1000.000200 close(3) = 0 <0.000002>\n")


def put(tmp, name, content):
    path = os.path.join(tmp, name)
    with open(path, "wb" if isinstance(content, bytes) else "w") as f:
        f.write(content)
    return path


def plugin(name):
    return os.path.join(BUILD, "plugins", name + ".so")



def test_outputs_go_where_they_are_sent_and_nowhere_else():
    """What a file is written as until it is complete has a name that nobody else has, and is no link of another's; two
    that write the same file at once each leave a whole one; an output that cannot be is refused before the work."""
    with Tmp() as tmp:
        trace, out = os.path.join(TOP, "examples", "git-clone.strace.gz"), os.path.join(tmp, "t.feign")
        for name in (out + ".part", out + f".{os.getpid()}.part", out + f".{os.getpid() + 1}.part"):
            os.symlink(os.path.join(tmp, "victim"), name)
        running = [subprocess.Popen([FEIGN, "convert", "-q", trace, out]) for _ in range(3)]
        assert all(one.wait() == 0 for one in running)
        assert feign("info", out).status == 0 and not os.path.exists(os.path.join(tmp, "victim"))
        assert [name for name in os.listdir(tmp) if not os.path.islink(os.path.join(tmp, name))] == ["t.feign"]
        os.mkdir(root := os.path.join(tmp, "root"))
        for wrong in os.path.join(tmp, "no", "x"), root:
            r = feign("replay", trace, "--root", root, "-o", wrong)
            assert r.status == 2 and wrong in r.err and os.listdir(root) == [], (r.err, os.listdir(root))
        os.mkdir(os.path.join(tmp, "t.tracetext.1"))
        r = feign("convert", trace, os.path.join(tmp, "t.tracetext"))
        assert r.status == 2 and "t.tracetext.1: is a directory" in r.err and not os.path.exists(os.path.join(tmp, "t.tracetext.0")), r.err


def test_a_page_that_cannot_be_written_costs_the_page_only():
    with Tmp() as tmp:
        r = feign("replay", SHIPPED, "--replayer", "null", "--json", "--html", "/dev/full", "--activities", os.path.join(tmp, "a"))
        assert r.status == 2 and "write /dev/full: No space left on device" in r.err and r.json()["fidelity"] == 1, r.err


def test_a_trace_takes_the_place_of_traces_only():
    """What -o or OUT names may be somebody's work, or an input whose output was forgotten."""
    with Tmp() as tmp:
        trace, out = os.path.join(TOP, "examples", "git-clone.strace.gz"), os.path.join(tmp, "t.feign")
        for there, status in (b"precious\n", 2), (b"", 0):
            with open(out, "wb") as f:
                f.write(there)
            r = feign("convert", "-q", trace, out)
            assert r.status == status and ("no trace" in r.err) == (status == 2), r.err
        assert feign("convert", "-q", trace, out).status == 0
        data = os.path.join(tmp, "data.txt")
        with open(data, "wb") as f:
            f.write(b"precious\n")
        r = feign("record", "-o", data, "--", "cat", data)
        with open(data, "rb") as f:
            assert r.status == 2 and r.out == "" and "-o " + data in r.err and f.read() == b"precious\n", r.err


def test_what_is_read_is_not_written_over():
    """By whatever name; nor is one file written twice. A device may be."""
    with Tmp() as tmp:
        trace, out = put(tmp, "t.strace", GOOD), os.path.join(tmp, "out.txt")
        os.symlink(trace, link := os.path.join(tmp, "link.txt"))
        os.mkdir(root := os.path.join(tmp, "root"))
        lab = put(tmp, "l.yaml", f"trace: {trace}\nroot: {root}\nvariants: {{a: }}\nrepeats: 1\n")
        pipeline = put(tmp, "p.yaml", f"plugins: [{{strace: {{file: {trace}}}}}, posix]\n")
        read = [trace, lab, pipeline]
        before = [open(name, encoding="utf-8").read() for name in read]
        replay = ["replay", trace, "--root", root]
        for wrong, *args in ([link, *replay, "--output", link], [link, *replay, "--waits", link], [trace, *replay, "--activities", trace],
                             [link, *replay, "--html", link], [link, "info", trace, "-o", link], [link, "convert", trace, link],
                             [link, "-p", f"strace,file={trace}", "-p", f"text,file={link}"], [pipeline, "run", pipeline, "-o", pipeline],
                             [pipeline, "run", pipeline, "--waits", pipeline], [trace, "run", pipeline, "-o", trace], [trace, "lab", lab, "-o", trace], [lab, "lab", lab, "--html", lab]):
            r = feign(*args)
            assert r.status == 2 and f"{wrong}: is read here" in r.err, (args, r.status, r.err)
        assert [open(name, encoding="utf-8").read() for name in read] == before
        # Those of several files.
        golden = os.path.join(TOP, "tests", "golden")
        for folder, provider, name, part in (os.path.join(golden, "hdtrace"), "hdtrace", "made.proj", "made_n0_0_0.trc"), (golden, "tracetext", "mesh.tracetext", "mesh.tracetext.1"):
            for file in os.listdir(folder):
                if file.startswith(name.split(".")[0]):
                    shutil.copy(os.path.join(folder, file), tmp)
            files = {f: open(os.path.join(tmp, f), "rb").read() for f in os.listdir(tmp) if f.startswith(name.split(".")[0])}
            assert part in files
            name, part = os.path.join(tmp, name), os.path.join(tmp, part)
            for args in (["info", name, "-o", part], ["convert", name, part, "--to", "text"], ["convert", name, name], ["convert", part, name],
                         ["-p", f"{provider},file={name}", "-p", f"text,file={part}"]):
                r = feign(*args)
                assert r.status == 2 and "is read here" in r.err, (args, r.status, r.err)
            assert files == {f: open(os.path.join(tmp, f), "rb").read() for f in files}
        os.mkdir(gone := os.path.join(tmp, "gone"))
        r = subprocess.run([FEIGN, "info", trace, "-o", "x"], preexec_fn=lambda: (os.chdir(gone), os.rmdir(gone)), capture_output=True, text=True)
        assert r.returncode == 2 and "write x: No such file" in r.stderr, r.stderr
        r = feign(*replay, "--waits", os.path.relpath(out), "--html", os.path.join(root, "..", "out.txt"))
        assert r.status == 2 and "--html" in r.err and not os.path.exists(out), r.err
        assert feign(*replay, "--waits", "/dev/null", "-o", "/dev/null").status == 0


def test_too_few_descriptors_are_said():
    with Tmp() as tmp:
        r = subprocess.run(["prlimit", "--nofile=10:10", FEIGN, "replay", os.path.join(TOP, "examples", "git-clone.strace.gz"), "--root", tmp],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert "ulimit -n" in r.stderr, r.stderr


def test_no_room_for_the_plan_says_where_it_was_to_be():
    with Tmp() as tmp:
        r = subprocess.run(["prlimit", "--fsize=10000:10000", FEIGN, "replay", os.path.join(TOP, "examples", "git-clone.strace.gz"), "--root", tmp],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": tmp}, text=True)
        assert r.returncode == 2 and f"write plan in {tmp}: File too large" in r.stderr, r.stderr


def test_options_take_one_value_wherever_they_stand():
    with Tmp() as tmp:
        trace = os.path.join(TOP, "examples", "git-clone.strace.gz")
        r = feign("replay", "--with", "coalesce", "--replayer", "null", trace, "--root", tmp, "--json")
        assert r.status == 0 and r.json()["activities"] > 1000, r.err
        r = feign("replay", trace, "--ranks", "0", "--root", tmp)
        assert r.status == 0 and "no activity was left" in r.err, r.err


def test_missing_trace():
    refuses("info", "/no/such/trace", text="/no/such/trace: No such file")


def test_unreadable_trace():
    if os.geteuid() == 0:
        raise Skip("root may read everything")
    with Tmp() as tmp:
        path = put(tmp, "t.strace", GOOD)
        os.chmod(path, 0)
        refuses("info", path, text="Permission denied")


def test_a_trace_that_is_packed_in_another_way():
    with Tmp() as tmp:
        for name, data, text in (("t.xz", lzma.compress(GOOD.encode()), "xz -d"), ("t.bz2", bz2.compress(GOOD.encode()), "bzip2 -d"),
                                 ("t.gz", gzip.compress(gzip.compress(GOOD.encode())), "packed twice: gzip -d")):
            path = os.path.join(tmp, name)
            with open(path, "wb") as f:
                f.write(data)
            refuses("info", path, text=rf"{name}: is packed \({text}\): want a trace as it is, or by gzip or zstd")


def test_a_trace_in_another_encoding():
    with Tmp() as tmp:
        path = os.path.join(tmp, "t.txt")
        for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
            with open(path, "wb") as f:
                f.write(mark + GOOD.encode(encoding))
            refuses("info", path, text=r"t\.txt: is text in UTF-16: want UTF-8 \(iconv -f UTF-16 -t UTF-8\)")


def test_directory_as_trace():
    with Tmp() as tmp:
        refuses("info", tmp, text="is a directory")


def test_a_recording_that_ended_before_its_command_began():
    """Whatever there was of its folder by then: says that nothing was recorded."""
    with Tmp() as tmp:
        raw = os.path.join(tmp, "t.feign.raw")
        os.mkdir(raw)
        put(raw, "hooks", b"FEIGNHOOK")
        says = r"t\.feign\.raw/?: nothing was recorded, since feign record was ended before its command began: remove it$"
        refuses("info", raw, text=says)
        refuses("info", raw + "/", text=says)
        for records in (b"", bytes(1 << 20), bytes(8) + b"\x07" * 4096):
            put(raw, "records", records)
            refuses("convert", raw, os.path.join(tmp, "t.feign"), text=says)
        put(raw, "records", b"others' records")
        refuses("info", raw, text="records: no provider recognises it")
        for name in ("plain", "photos.raw"):
            os.mkdir(os.path.join(tmp, name))
            put(os.path.join(tmp, name), "img", b"")
            refuses("info", os.path.join(tmp, name), text=name + ": is a directory, want a file")


def test_a_raw_folder_that_is_damaged_is_read_as_far_as_it_goes():
    needs_capture()
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.feign")
        records = trace + ".raw/records"
        assert feign("record", "--keep-raw", "-o", trace, "--", "sh", "-c", "cat /nowhere; echo a > a", cwd=tmp).status == 0
        with open(records, "rb") as f:
            used = struct.unpack_from("<Q", f.read(80), 72)[0]
            f.seek(0)
            good = f.read(used)
        chunks = [at for at in range(4096, len(good) - 64, 8) if good[at:at + 4] == b"CHNK"]
        rng = random.Random(11)
        for turn in range(60):
            broken = bytearray(good)
            if turn == 0:
                struct.pack_into("<I", broken, chunks[-1] + 56, 1 << 31)   # a rank
            elif turn == 1:   # moments by both clocks: of the longest tick
                struct.pack_into("<QQ", broken, 32, struct.unpack_from("<Q", broken, 16)[0] + 1, 2**64 - 1)
            for _ in range(4 if turn > 1 else 0):
                damage = rng.choice([bytes(8), b"\x7f" * 8, b"\xff" * 8, b"\xf8" + bytes(7) + b"\x80"])   # the last: an error, as a field
                at = rng.choice(chunks) + rng.randrange(4, 600)
                broken[at:at + len(damage)] = damage
            put(trace + ".raw", "records", bytes(broken))
            r = feign("info", trace + ".raw")
            assert r.status in (0, 2), r.err


def test_binary_file_as_trace():
    refuses("info", plugin("null"), text="no provider recognises")
    refuses("info", plugin("null"), "--provider", "strace", text=r"null\.so:1: ")


def test_pipe_as_trace():
    """What a pipe holds can be read only once: who names the provider may do without telling what it is."""
    with Tmp() as tmp:
        path = put(tmp, "t.strace", GOOD)
        fifo = os.path.join(tmp, "fifo")
        os.mkfifo(fifo)
        refuses("info", fifo, text="fifo: is no regular file.*want a file, or --provider NAME")
        with subprocess.Popen(["cp", path, fifo]) as writer:
            r = feign("replay", fifo, "--provider", "strace", "--root", tmp, "--json")
        assert writer.returncode == 0 and r.status == 0 and r.json()["activities"] == 3, r.err


def test_a_pipe_that_gives_less_at_first_than_tells_how_it_is_packed():
    packed = [gzip.compress(GOOD.encode()), GOOD.encode()]
    if shutil.which("zstd"):
        packed.append(subprocess.run(["zstd", "-q", "-c"], input=GOOD.encode(), stdout=subprocess.PIPE, check=True).stdout)
    for data in packed:
        with subprocess.Popen([FEIGN, "info", "-", "--provider", "strace", "--json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reader:
            for part in data[:1], data[1:3]:
                reader.stdin.write(part)
                reader.stdin.flush()
                left = array.array("i", [1])
                while left[0] != 0 and reader.poll() is None:  # until it was read
                    fcntl.ioctl(reader.stdin, termios.FIONREAD, left)
                    time.sleep(0.001)
            out, err = reader.communicate(data[3:])
            assert reader.returncode == 0 and json.loads(out)["activities"] == 3, (data[:4], err)


def test_a_signal_does_not_cut_what_waits_to_be_read():
    """The first signal asks for an end, with all that there is to say: whoever reads that may be slow."""
    write = {"x86_64": "1", "aarch64": "64"}.get(os.uname().machine)
    if write is None:
        raise Skip("the number of write(2) is not known here")
    with Tmp() as tmp:
        trace, name = put(tmp, "t.strace", GOOD), os.path.join(tmp, "out")
        for args, to in ((("info", "--json", trace), "pipe"), (("replay", trace, "--replayer", "null", "--json", "-o", name), "fifo")):
            if to == "fifo":
                os.mkfifo(name)
                out = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
                fill = os.open(name, os.O_WRONLY | os.O_NONBLOCK)
            else:
                out, fill = os.pipe2(os.O_NONBLOCK)
            filled = 0
            try:
                while True:
                    filled += os.write(fill, b" " * 4096)
            except BlockingIOError:
                os.set_blocking(fill, True)
            os.set_blocking(out, True)
            child = subprocess.Popen([FEIGN, *args], stdout=fill if to == "pipe" else subprocess.DEVNULL, stderr=subprocess.PIPE)
            os.close(fill)
            try:
                while child.poll() is None:
                    with open(f"/proc/{child.pid}/syscall", encoding="ascii") as f:
                        call = f.read().split()
                    if call[0] == write and call[1] != "0x2":
                        break
                    time.sleep(0.001)
            except PermissionError as e:
                child.kill()
                raise Skip("what a process waits in may not be seen here") from e
            child.send_signal(signal.SIGTERM)
            pending = True
            while pending:  # until the signal came
                with open(f"/proc/{child.pid}/status", encoding="ascii") as f:
                    pending = any(line.startswith("ShdPnd") and int(line.split()[1], 16) != 0 for line in f)
                    time.sleep(0.001)
            got = b""
            while part := os.read(out, 1 << 16):
                got += part
            os.close(out)
            err = child.stderr.read()
            assert child.wait() == 0 and json.loads(got[filled:])["activities"] == 3, (to, len(got) - filled, err)


def test_activities_are_not_written_to_a_pipe():
    """Its reader would get a beginning of zeros."""
    with Tmp() as tmp:
        trace, name = put(tmp, "t.strace", GOOD), os.path.join(tmp, "fifo")
        os.mkfifo(name)
        reader = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
        refuses("replay", trace, "--replayer", "null", "--activities", name, text="fifo: is a pipe or the like, want a file")
        os.close(reader)
        assert feign("replay", trace, "--replayer", "null", "--activities", "/dev/null").status == 0


def test_an_output_whose_name_is_as_long_as_one_may_be():
    with Tmp() as tmp:
        trace, names = put(tmp, "t.strace", GOOD), ["r" * 255, "r" * 250]
        for name in names:
            r = feign("replay", trace, "--replayer", "null", "--json", "-o", name, cwd=tmp)
            assert r.status == 0, r.err
        assert sorted(os.listdir(tmp)) == sorted([*names, "t.strace"])


def test_an_output_by_a_link_whose_file_is_not_there_yet():
    with Tmp() as tmp:
        trace = put(tmp, "t.strace", GOOD)
        os.mkdir(os.path.join(tmp, "far"))
        for name, to in (("a", os.path.join(tmp, "far", "a")), ("b", "far/b"), ("c", "b2"), ("b2", "far/c")):
            os.symlink(to, os.path.join(tmp, name))
        for name in "abc":
            r = feign("replay", trace, "--replayer", "null", "--json", "-o", name, cwd=tmp)
            assert r.status == 0 and os.path.islink(os.path.join(tmp, name)), r.err
        assert sorted(os.listdir(os.path.join(tmp, "far"))) == ["a", "b", "c"] and os.path.islink(os.path.join(tmp, "b2"))


# Nobody answers, and a signal asks for an end while this rank waits for the others to be there.
ALONE = r"""
#include <feign.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static feign_status create(const feign_host *host, const void *options, void **self) { return FEIGN_OK; }
static void who(void *self, uint32_t *rank, uint32_t *ranks) { *rank = atoi(getenv("PMI_RANK")); *ranks = 2; }
static feign_status barrier(void *self) { return FEIGN_OK; }
static feign_status put(void *self, uint32_t rank, uint32_t channel, const void *data, size_t size) { return FEIGN_OK; }
static feign_status receive(void *self, uint32_t channel, feign_take take, void *ctx) {
  static int asked;
  if (asked++ == 0) raise(SIGTERM);
  return FEIGN_END;
}
static void end(void *self, int status) { _exit(status); }
static void destroy(void *self) {}
static const feign_ranks api = {sizeof api, 0, create, who, barrier, put, receive, end, destroy, NULL, NULL};
static const feign_component ranks = {sizeof ranks, FEIGN_RANKS, "mpi", "Nobody answers.", &api, NULL, 0, sizeof(feign_option), 0, 0};
static const feign_component *const all[] = {&ranks, NULL};
FEIGN_EXPORT const feign_plugin feign_plugin_v1 = {sizeof feign_plugin_v1, FEIGN_ABI_MINOR, "mpi", "1", "MIT", all};
"""


def test_ranks_that_never_come_are_not_waited_for_once_a_signal_came():
    if not shutil.which("cc"):
        raise Skip("there is no compiler")
    with Tmp() as tmp:
        trace, source = put(tmp, "t.strace", GOOD), put(tmp, "mpi.c", ALONE)
        subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", os.path.join(tmp, "mpi.so"), source, "-I", os.path.join(TOP, "include")], check=True)
        r = feign("--plugin", f"strace,file={trace}", "--plugin", "null", env={"FEIGN_PLUGIN_PATH": tmp, "PMI_RANK": "0", "PMI_SIZE": "2"}, timeout=60)
        assert r.status == 2 and "rank 0: interrupted by signal 15, and others do not come" in r.err, (r.status, r.err)


def test_standard_input_as_trace():
    """By its name, and as "-"; a file that is called so is ./-."""
    with Tmp() as tmp:
        path, out = put(tmp, "t.strace", GOOD), os.path.join(tmp, "out.txt")
        for name in "-", "/dev/stdin":
            for args in ("info", name, "--json"), ("convert", "-q", name, out), ("replay", name, "--replayer", "null", "-q"):
                with open(path, "rb") as trace:
                    done = subprocess.run([FEIGN, *args], stdin=trace, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                assert (done.returncode, done.stderr) == (0, ""), (args, done)
            with open(path, "rb") as trace:
                done = subprocess.run([FEIGN, "info", name, "--provider", "strace", "--json"], input=trace.read(), stdout=subprocess.PIPE)
            assert done.returncode == 0 and json.loads(done.stdout)["activities"] == 3, done
        put(tmp, "-", GOOD)
        assert feign("info", "./-", cwd=tmp).status == 0


def test_empty_trace():
    with Tmp() as tmp:
        refuses("info", put(tmp, "t.strace", ""), text="is empty")
        refuses("replay", put(tmp, "e.strace", ""), "--root", tmp, text="is empty")


def test_truncated_last_line():
    # As strace leaves it that is killed, or whose disk is full.
    with Tmp() as tmp:
        path = put(tmp, "t.strace", GOOD + '1000.000300 openat(AT_FDCWD, "/g", O_RD')
        r = feign("replay", path, "--root", tmp, "--json")
        assert r.status == 0 and r.json()["activities"] == 3, r.err
        assert re.search(r"t\.strace:4: openat\(\).*the last line is cut short, and left out", r.err), r.err
        assert r.json()["left_out"] == [{"call": "(line)", "why": "the last line, cut short", "count": 1, "seconds": 0.0}]
        # Its result may be cut, too: it is neither EPERM nor 4096.
        for end in ('openat(AT_FDCWD, "/g", O_RDONLY) = -1', 'pread64(3, "abc", 4096, 0) = 40', 'pread64(3, "abc", 4096, 0) = 4096 <0.00'):
            path = put(tmp, "t.strace", GOOD + "1000.000300 " + end)
            r = feign("info", path, "--json")
            assert r.status == 0 and r.json()["activities"] == 3, r.err
            assert re.search(r"t\.strace:4: .*there is no time behind its result.*the last line is cut short, and left out", r.err), r.err
        # So it is said where the call is no activity. What a machine left that went down is shown.
        for end, said in (("1000.000300 rt_sigprocmask(SIG_SETMASK, [], NULL,", r"rt_sigprocmask\(\)"), ("\0" * 100, r'"\\0\\0.*": want')):
            r = feign("info", put(tmp, "t.strace", GOOD + end), "--json")
            assert r.status == 0 and r.json()["activities"] == 3, r.err
            assert re.search(rf"t\.strace:4: {said}.*the last line is cut short, and left out", r.err), r.err
        refuses("info", put(tmp, "n.strace", GOOD + "\0" * 100 + "\n" + GOOD), "--provider", "strace", text=r'n\.strace:4: "\\0.*": want')
        # Of one that an exit ends, there is none; nor where no line has one.
        for text in (GOOD + "1000.000300 exit_group(0) = ?", re.sub(" <.*>", "", GOOD) + "1000.000300 close(4) = -1 EBADF (Bad file descriptor)"):
            r = feign("info", put(tmp, "t.strace", text), "--json")
            assert r.status == 0 and not r.err, r.err
        # A whole line is no cut one, nor is one in the middle, nor what is no trace at all.
        refuses("info", put(tmp, "w.strace", GOOD + '1000.000300 openat(AT_FDCWD, "/g", O_RD\n'), text=r"w\.strace:4: ")
        refuses("info", put(tmp, "m.strace", '1000.0 openat(AT_FDCWD, "/g", O_RD\n' + GOOD), text=r"m\.strace:1: ")
        refuses("info", put(tmp, "g.strace", "garbage without newline"), "--provider", "strace", text=r"g\.strace:1: ")


def test_truncated_compressed_trace():
    # As gzip or zstd leaves it that is killed: what was told before is read.
    with Tmp() as tmp:
        plain = "".join(f'1000.{i:06} pwrite64(4, "abc"..., 4096, {i * i % 99991 * 4096}) = 4096 <0.00000{i % 9}>\n' for i in range(20000)).encode()
        whole = {"t.strace.gz": gzip.compress(plain)}
        if shutil.which("zstd"):
            whole["t.strace.zst"] = subprocess.run(["zstd", "-q", "-c", put(tmp, "plain", plain)], stdout=subprocess.PIPE, check=True).stdout
        for name, data in whole.items():
            r = feign("info", put(tmp, name, data[: len(data) * 3 // 4]), "--json")
            assert r.status == 0 and 1000 < r.json()["activities"] < 20000, r.err
            assert re.search(rf"{name}: the (gzip|zstd) data ends in the middle \(the last line is cut short, and left out\)", r.err), r.err
            assert r.json()["left_out"] == [{"call": "(line)", "why": "the last line, cut short", "count": 1, "seconds": 0.0}]
            # Of a last byte that is lost, nothing but the checksum may be.
            assert feign("info", put(tmp, name, data[:-1]), "--json").json()["activities"] == 20000
            # What is damaged is refused with where, and so is what has no whole line.
            damaged = bytearray(data)
            damaged[len(data) // 2 : len(data) // 2 + 64] = os.urandom(64)
            refuses("info", put(tmp, name, bytes(damaged)), text=rf"damaged (gzip|zstd) data, at byte \d+|{name}:\d+: ")
            refuses("info", put(tmp, name, data[:30]), "--provider", "strace", text="data ends in the middle")
        # Others say that a last line is cut, and leave it out if they are told to.
        text = put(tmp, "t.gz", gzip.compress(b'mkdir("/a", 493) = 0\n' * 5000)[:-4])
        refuses("info", text, "--provider", "tracetext", text="ends in the middle")
        r = feign("info", text, "--provider", "tracetext", "--keep-going", "--json")
        assert r.status == 0 and r.json()["activities"] == 5000 and r.json()["left_out"][0]["count"] == 1, r.err


def test_a_newline_that_is_lost():
    with Tmp() as tmp:
        lost = GOOD.replace("<0.000005>\n", "<0.000005>")
        refuses("info", put(tmp, "t.strace", lost), text=r"t\.strace:2: write\(\): more text behind its result: a lost newline, or")
        # Names may look so.
        odd = '1000.0 dup(3</a <0.000010> b>) = 4</a <0.000010> b> <0.000010>\n1000.1 close(9) = -1 EBADF (Bad file descriptor) <0.000010> \n'
        r = feign("info", put(tmp, "t.strace", odd), "--json")
        assert r.status == 0 and not r.err, r.err


def test_a_byte_order_mark_is_no_text():
    with Tmp() as tmp:
        r = feign("info", put(tmp, "t.strace", b"\xef\xbb\xbf" + GOOD.encode()), "--json")
        assert r.status == 0 and r.json()["activities"] == 3, r.err
        # Nor is it where a file's first lines tell something.
        lines = ['getcwd("/d", 9) = 3', *(f'mkdir("{name}", 0777) = 0' for name in "abcd")]
        numbered = "".join(f"{at}\t{line}\n" for at, line in enumerate(lines, 1))
        r = feign("info", put(tmp, "n.strace", b"\xef\xbb\xbf" + numbered.encode()), "--json")
        assert r.status == 0 and sorted(f["path"] for f in r.json()["files"]) == ["/d/a", "/d/b", "/d/c", "/d/d"], r.err or r.out


def test_wrong_value_names_argument_and_what_was_wanted():
    with Tmp() as tmp:
        refuses("info", put(tmp, "t.strace", GOOD + "1000.0003 write(3, \"\", 4O96) = 3 <0.0001>\n1000.0004 pread64(x, \"\", 1, 2) = 1\n"),
                text=r"t\.strace:5: pread64\(\): argument 1 \(fd\) is \"x\": want a descriptor")


def test_times_and_counts_as_large_as_they_come():
    """What is computed of them is no crash, and, where tests are built with sanitizers, no overflow."""
    with Tmp() as tmp:
        far = "".join(f"{p} {second}.000001 fsync(3) = 0 <0.000010>\n" for p in range(1, 101) for second in (200000000, 8500000000))
        r = feign("info", put(tmp, "t.strace", far), "--json")
        assert r.status == 0 and r.json()["activities"] == 200, r.err
        reads = f'7 1000.000002 read(3, ""..., {2**60}) = {2**60 - 1} <0.000001>\n'
        r = feign("info", put(tmp, "u.strace", '7 1000.000001 openat(AT_FDCWD, "/f", O_RDWR) = 3 <0.000001>\n' + 14 * reads), "--json")
        assert r.status == 0 and r.json()["activities"] == 15, r.err


def test_line_of_ten_mebibytes():
    with Tmp() as tmp:
        data = "x" * (10 << 20)
        path = put(tmp, "t.strace", GOOD.replace('"abc", 3', f'"{data}", {len(data)}').replace("= 3 <0.000005", f"= {len(data)} <0.000005"))
        r = feign("replay", path, "--root", tmp, "--json")
        assert r.status == 0 and r.json()["bytes_written"] == len(data), r.err
        refuses("info", put(tmp, "u.strace", GOOD + "y" * (10 << 20) + "\n"), text=r"u\.strace:4: ")


def test_nul_bytes():
    with Tmp() as tmp:
        path = put(tmp, "t.strace", GOOD.encode() + b"1000.0003 read(3, \0\0, 4) = 4 <0.1>\n" + b"\0" * 1000 + b"\n")
        refuses("info", path, "--provider", "strace", text=r"t\.strace:5: ")
        refuses("info", put(tmp, "z", b"\0" * 4096), text="no provider recognises")
        refuses("info", put(tmp, "t.tt", b'0.0 open("a\0b") = 3\n'), "--provider", "tracetext", text=r't\.tt:1: "0\.0 open\("a\\0b"\) = 3": want CALL')


def test_damaged_gzip_and_zstd():
    with open(SHIPPED, "rb") as f:
        good = f.read()
    with Tmp() as tmp:
        broken = bytearray(good)
        broken[len(broken) // 2] ^= 0xFF
        refuses("info", put(tmp, "u.gz", bytes(broken)), text=r"damaged gzip|u\.gz:\d+: ")
        refuses("info", put(tmp, "v.zst", b"\x28\xb5\x2f\xfd" + b"junk" * 10), "--provider", "strace", text="zstd")


def native(tmp):
    path = os.path.join(tmp, "t.feign")
    assert feign("convert", SHIPPED, path).status == 0
    with open(path, "rb") as f:
        return f.read()


def test_native_truncated_anywhere():
    with Tmp() as tmp:
        good = native(tmp)
        for cut in (1, 7, 15, 16, 40, len(good) // 2, len(good) - 1):
            refuses("info", put(tmp, "cut.feign", good[:cut]), "--provider", "feign", text=r"cut\.feign: ")


def test_native_newer_version():
    with Tmp() as tmp:
        newer = bytearray(native(tmp))
        newer[8] = 9
        refuses("info", put(tmp, "new.feign", bytes(newer)), text=r"new\.feign: is format 9\.0, this feign reads 1\.x")


def test_native_with_any_byte_changed_never_crashes():
    rng = random.Random(7)
    with Tmp() as tmp:
        good = native(tmp)
        said = 0
        for _ in range(60):
            broken = bytearray(good)
            broken[rng.randrange(8, len(broken))] ^= 1 << rng.randrange(8)
            r = feign("info", put(tmp, "b.feign", bytes(broken)))
            assert r.status in (0, 2), r.err
            said += r.status == 2
        assert said >= 50, said


def test_a_native_trace_that_is_damaged_is_no_replay():
    """Its head and its end are as they should be; what is between them is read when the replay begins."""
    with Tmp() as tmp:
        broken = bytearray(native(tmp))
        broken[2000] ^= 0x55
        put(tmp, "b.feign", bytes(broken))
        os.mkdir(root := os.path.join(tmp, "root"))
        for more in ("--replayer", "null"), ("--root", root), ("--root", root, "--order", "depend"):
            refuses("replay", os.path.join(tmp, "b.feign"), *more, text=r"b\.feign: damaged at byte 16: a block fails its checksum")


def test_what_is_opened_never_becomes_standard_output():
    """Where that is closed, the first file that is opened would be it, and hold what was to be said."""
    with Tmp() as tmp:
        trace, lab = put(tmp, "t.strace", GOOD), os.path.join(tmp, "l.yaml")
        os.mkdir(root := os.path.join(tmp, "root"))
        put(tmp, "l.yaml", f"trace: {trace}\nroots: [{{path: {root}, drop-caches: no}}]\nrepeats: 1\nvariants: {{a: }}\n")
        for command in f"lab {lab}", f"lab {lab} --json", f"replay {trace} --root {root}":
            r = subprocess.run(f"{FEIGN} {command} >&-", shell=True, stderr=subprocess.PIPE, text=True, check=False)
            assert r.returncode == 2 and "write standard output: Bad file descriptor" in r.stderr, (command, r)
        # The commands that it starts have them closed as well.
        command = f"{FEIGN} record -q -o {tmp}/r.feign -- sh -c 'for fd in 0 1 2; do test -e /proc/$$/fd/$fd && exit 1; done; exit 3'"
        assert subprocess.run(command + " <&- >&- 2>&-", shell=True, check=False).returncode == 3


def test_mutated_lines_of_a_real_capture_never_crash():
    with gzip.open(SHIPPED) as f:
        lines = f.read().split(b"\n")
    rng = random.Random(11)
    pieces = [b"<unfinished ...>", b"<... close resumed>) = 0", b"\\", b'"', b"(", b")", b"{", b"[", b"<", b">", b"=", b"-1", b"99999999999999999999", b"0x", b"|", b", ", b"\0", b"/*"]
    with Tmp() as tmp:
        mutated = []
        for line in lines * 2:
            line = bytearray(line)
            for _ in range(rng.randrange(3)):
                at = rng.randrange(len(line) + 1)
                kind = rng.randrange(4)
                if kind == 0:
                    line[at:at + rng.randrange(20)] = b""
                elif kind == 1:
                    line[at:at] = rng.choice(pieces)
                elif kind == 2 and line:
                    line[min(at, len(line) - 1)] = rng.randrange(256)
                else:
                    line[at:] = rng.choice(lines)[at:]
            mutated.append(bytes(line).replace(b"\n", b" "))
        path = put(tmp, "m.strace", b"\n".join(mutated))
        r = feign("info", path, "--provider", "strace", "--keep-going", "--json")
        assert r.status == 0 and r.json()["activities"] > 1000, r.err
        # What was understood replays: nothing of it leads out of the root, or hangs.
        root = os.path.join(tmp, "root")
        os.mkdir(root)
        r = feign("replay", path, "--provider", "strace", "--keep-going", "--root", root, "--json")
        assert r.status in (0, 1, 2), r.err
        assert feign("info", path, "--provider", "strace").status == 2


def test_unknown_plugin_lists_the_known():
    refuses("--plugin", "streace,file=x", text=r'unknown plug-in "streace".*did you mean "?strace')
    refuses("inspect", "nothing-like-it", text="there are: .*strace")
    r = refuses("replay", SHIPPED, "--with", "nothing-like-it", "--replayer", "null", text="there are: .*rebase")
    assert "strace" not in r.err, "a provider cannot stand there"
    r = refuses("--plugin", "nothing-like-it", text="there are: .*strace")
    assert "rebase" not in r.err, "the first one reads a trace"


def test_the_text_format_is_not_read_back():
    with Tmp() as tmp:
        out = os.path.join(tmp, "out.txt")
        assert feign("convert", SHIPPED, out).status == 0
        refuses("info", out, text=r"out\.txt:1: this is what writer text wrote, which nothing reads back")
        r = feign("info", put(tmp, "typed.strace", "me@there [/tmp] # strace -f ls\n" + GOOD), "--json")
        assert r.status == 0 and r.json()["activities"] == 3, r.err


def test_a_glob_that_fits_no_file_is_told():
    with Tmp() as tmp:
        out = os.path.join(tmp, "out.feign")
        for modifier in "coalesce", "prefetch", "hints,advice=random":
            for glob, warned in ("/srv/**", False), ("/nosuch/**,path=*.none", True):
                r = feign("convert", SHIPPED, out, "--with", f"{modifier},path={glob}")
                assert r.status == 0, r.err
                assert ("path=/nosuch/**, *.none: fits no file that it is for" in r.err) == warned, (modifier, glob, r.err)


def test_options_that_contradict_each_other_are_named_with_their_values():
    for options, text in (("filter,min-size=5,max-size=2", "max-size=2 is less than min-size=5"),
                          ("filter,after=5us,before=1us", "before=1000ns is no later than after=5000ns"),
                          ("rebase,from=/a", "from=/a: want to, too"), ("rebase,to=/a", "to=/a: want from, too")):
        refuses("replay", SHIPPED, "--with", options, "--replayer", "null", text=text)


def test_a_plugin_that_is_a_file_here_is_named_with_its_directory():
    with Tmp() as tmp:
        put(tmp, "mine.so", b"")
        r = feign("replay", SHIPPED, "--with", "mine.so", "--replayer", "null", cwd=tmp)
        assert r.status == 2 and 'unknown plug-in "mine.so"' in r.err and r.err.endswith("; the file of that name is ./mine.so\n"), r.err


def test_shared_object_that_is_no_plugin():
    libc = next((p for p in ("/lib/x86_64-linux-gnu/libm.so.6", "/usr/lib/libm.so.6", "/lib64/libm.so.6") if os.path.exists(p)), None)
    if libc is None:
        raise Skip("no libm found")
    refuses("--plugin", libc, text="exports neither feign_plugin_v1 nor init")
    with Tmp() as tmp:
        refuses("inspect", put(tmp, "x.so", "text"), text=r"x\.so")
        refuses("inspect", tmp + "/", text="")
        refuses("inspect", os.path.join(tmp, "none.so"), text="No such file")


def test_options():
    refuses("--plugin", "strace,fiel=x", "--plugin", "null", text='unknown option "fiel".*did you mean "?file')
    refuses("--plugin", f"strace,file={SHIPPED}", "--plugin", "filter,min-size=lots", "--plugin", "null", text="filter: min-size=lots: want")
    refuses("--plugin", f"strace,file={SHIPPED}", "--plugin", "feign", text='option "file" is missing')
    refuses("--plugin", f"strace,file={SHIPPED}", "--plugin", "filter,drop=maybe", "--plugin", "null", text="drop=maybe: want yes|no")
    refuses("--plugin", f"strace,file={SHIPPED}", "--plugin", "filter,state=x", "--plugin", "null", text=r"state=x: want keep\|drop")
    refuses("--plugin", f"strace,file={SHIPPED}", "--plugin", "rebase,map=/a", "--plugin", "null", text="map=/a.*want FROM:TO")
    refuses("--plugin", f"strace,file={SHIPPED}", "--plugin", "filter,op=raed", "--plugin", "null", text=r"op=raed: there is no such call; did you mean read\?")
    refuses("--plugin", f"strace,file={SHIPPED}", "--plugin", "prefetch,distance", "--plugin", "null", text="prefetch: distance: want distance=N, a whole number")
    refuses("info", SHIPPED, "--with", "filter,kind=read|write", text=r"kind=read\|write: want other\|open\|.*, several with \+ between\n")
    refuses("info", SHIPPED, "--with", "filter,op=read|write", text=r"op=read\|write: want several with \+ between: read\+write\n")
    refuses("info", SHIPPED, "--with", "filter,path", text=r"filter: path: want path=TEXT: Globs of paths")
    for name in "op", "kind", "path", "stream", "process", "rank", "keep", "noise":
        refuses("info", SHIPPED, "--with", f"filter,op=read,preset=workload,{name}=", text=f"filter: {name}=: want a value, or leave it out\n")
    refuses("info", SHIPPED, "--with", "filter,state", text=r"filter: state: want state=keep\|drop\n")
    refuses("--plugin", "feign,file", "--plugin", "null", text=r"feign: file: want file=TEXT: Trace file")
    assert feign("info", SHIPPED, "--with", "filter,drop,path=/nowhere").status == 0
    refuses("replay", SHIPPED, "--replayer", "null", "--with", "depend,rules=handle+none", text="rules=handle.none: none is all that there is then")
    refuses("replay", SHIPPED, "--replayer", "null", "--ranks", "0,5-3", text=r'--ranks 0,5-3: "5-3": want numbers and ranges, such as 0,3-5 or \^0')
    refuses("--plugin", f"strace,file={SHIPPED}", "--plugin", "filter,op=MPI_Send", "--plugin", "null", text="there are: mpi:MPI_Send$")


def test_options_that_do_nothing_say_so():
    with Tmp() as tmp:
        native = os.path.join(tmp, "t.feign")
        assert feign("convert", "-q", SHIPPED, native).status == 0
        for flag in (("--cwd", "/a"), ("--statistics",), ("--keep-going",)):
            refuses("info", native, *flag, text=f"^feign: {flag[0]}: is not for traces that provider feign reads$")
    refuses("replay", SHIPPED, "--replayer", "null", "--patience", "9s", text="--patience: one process replays all")
    for options, text in (("scale", "think and size are 1: all stays as it is"), ("replicate,copies=2,ranks=4", "ranks=4: the trace has no MPI ranks"),
                          ("mpi-hints", "neither set, add, drop nor collective was given")):
        r = feign("replay", SHIPPED, "--replayer", "null", "-q", "--with", options)
        assert r.status == 0 and text in r.err, r.err
    for option, want in ("--require", "SHARE"), ("--pace", r"afap\|think\|timed"), ("--max-bytes", "SIZE"), ("--ranks", "0,3-5"), ("--root", "DIR"):
        refuses("replay", SHIPPED, "--replayer", "null", option, "", text=f"{option}: want {want}")
    for words in ("info", "--cwd=", SHIPPED), ("record", "--output=", "/tmp/never-made", "--", "true"):
        refuses(*words, text=f"{words[1]}: want a value behind it")
    for words, name in (("info", ""), "TRACE"), (("convert", SHIPPED, ""), "FILES"), (("lab", ""), "FILE"), (("check", ""), "PATH"), (("inspect", ""), "NAME"):
        refuses(*words, text=f"{name}: want a name")
    for option in ("--nodes", "--hosts"):
        refuses("discover", "-o", "/tmp/never-made", option, "", "--", "true", text=option + ": want")


def test_help_of_a_command():
    for command in ("lab", "replay", "completion", "man"):
        r = feign(command, "--help")
        assert feign("help", command).out == r.out
        assert r.status == 0 and "(1x)" not in r.out and "First steps" not in r.out, r.out
        assert not re.search(r"^  --\S+ TEXT", r.out, re.M), "an option says what it takes: " + r.out
    for command in feign("man").out.split(".SH DESCRIPTION")[0].split(".B feign ")[1:]:
        out = feign(command.split()[0], "--help").out
        assert not re.search(r":\{|:\w+ in \[|=trace", out), "an option says what it takes once: " + out
    assert "First steps" in feign("--help").out
    assert feign("help").out == feign("help", "help").out == feign("--help").out


def test_manual():
    page = feign("man").out
    assert ".B feign record\n[options] [COMMAND...]\n" in page and ".B feign replay\n[options] TRACE...\n" in page, page[:900]
    statuses = page.split(".SH EXIT STATUS")[1]
    assert "the lab has runs that failed" in statuses and "128 and the signal" in statuses and "FEIGN_DYGRAPHS" in statuses


def test_names_of_plug_ins_are_told_once():
    names = feign("inspect", "--names").out.split()
    assert names == sorted(set(names)) and {"feign", "posix", "depend", "text"} <= set(names), names
    assert "[,key=value...]" in feign("check", "--help").out


def test_words_that_complete():
    words = 'source <(feign completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _feign; echo "${COMPREPLY[*]}"'
    for typed, offered in ((("rep",), "replay"), (("replay", "--order", ""), "depend stream trace"), (("replay", "--pace", "t"), "think timed"),
                           (("replay", "--map", ""), "block cyclic"), (("record", "--tracer", ""), "feign strace"),
                           (("discover", "--per", ""), "process thread"), (("completion", ""), "bash"), (("inspect", "--n"), "--names"),
                           (("inspect", "jit"), "jitter")):
        with Tmp() as tmp:
            r = subprocess.run(["bash", "-c", words, "bash", "feign", *typed], cwd=tmp, capture_output=True, text=True,
                               env={**os.environ, "PATH": os.path.dirname(FEIGN) + ":" + os.environ["PATH"]})
        assert r.stdout.strip() == offered and not r.stderr, (typed, r)


def test_roles():
    refuses("--plugin", f"strace,file={SHIPPED}", "--plugin", f"strace,file={SHIPPED}", "--plugin", "null", text="two providers")
    refuses("--plugin", "rebase,map=/a:/b", "--plugin", "null", text="no provider")
    refuses("--plugin", f"strace,file={SHIPPED}", text="nothing to do with the trace")
    refuses("--plugin", f"strace,file={SHIPPED}", "--plugin", "null", "--plugin", "posix", "--root", "/tmp", text="two replayers")
    with Tmp() as t:
        trace, copy = os.path.join(t, "t.strace"), os.path.join(t, "copy.txt")
        with open(trace, "w", encoding="ascii") as f:
            f.write('1 mkdir("/a", 0755) = 0\n')
        refuses("replay", trace, "--root", t, "--replayer", "depend", text="--replayer: depend is a modifier, want a replayer")
        refuses("replay", trace, "--root", t, "--with", "posix", text="--with: posix is a replayer, want a writer or modifier")
        refuses("replay", trace, "--root", t, "--provider", "posix", text="--provider: posix is a replayer, want a provider")
        assert feign("replay", trace, "--replayer", "null", "--with", f"text,file={copy}").status == 0 and os.path.getsize(copy) > 0
        # One file with several that could stand there: which is meant, nobody can tell.
        roles = os.path.join(BUILD, "tests", "plugins", "roles.so")
        refuses("--plugin", roles, "--plugin", roles, text="roles.so: holds several that would fit: writer roles, replayer idle; put it")
        assert feign("replay", trace, "--replayer", roles).status == 0


def test_plugins_that_throw():
    plugin = os.path.join(BUILD, "tests", "plugins", "throws.so")
    for where in ("create", "start", "lookahead", "process"):
        for what, text in (("memory", "out of memory"), ("error", "this went wrong"), ("number", "threw")):
            refuses("--plugin", f"strace,file={SHIPPED}", "--plugin", f"{plugin},{where}={what}", "--plugin", "null", text=f"throws: .*{text}")
    with Tmp() as t:
        trace = os.path.join(t, "t.strace")
        with open(trace, "w", encoding="ascii") as f:
            f.write('1 mkdir("/a", 0755) = 0\n1 mkdir("/b", 0755) = 0\n')
        report = feign("replay", trace, "--replayer", plugin, "--json")
        assert report.status == 0 and report.json()["matched"] == 2, report.err
        for where in ("create", "stream", "execute"):
            for what, text in (("memory", "out of memory"), ("error", "this went wrong"), ("number", "threw")):
                refuses("replay", trace, "--replayer", f"{plugin},{where}={what}", text=("t.strace:2: " if where == "execute" else "") + f"throws: .*{text}")


def test_more_replayers_than_there_may_be_are_counted():
    if sanitized() or not shutil.which("cc"):
        raise Skip("a plain compiler's object, and a command without sanitizers")
    with Tmp() as tmp:
        source = put(tmp, "replayer.c", """
#define FEIGN_NO_SHORT_FORM
#include <feign.h>
static const char *const layers[] = {NAME, 0};
static feign_status create(const feign_host *host, const void *options, void **self) { return FEIGN_OK; }
static feign_status open_stream(void *self, const feign_stream_info *info, void **stream) { return FEIGN_OK; }
static feign_status execute(void *self, void *stream, const feign_activity *a, feign_outcome *outcome) { return FEIGN_OK; }
static void close_stream(void *self, void *stream) {}
static void destroy(void *self) {}
static const feign_replayer api = {sizeof api, 0, layers, create, open_stream, execute, close_stream, destroy};
static const feign_component component = {sizeof component, FEIGN_REPLAYER, NAME, "A layer.", &api, 0, 0, sizeof(feign_option)};
static const feign_component *const components[] = {&component, 0};
const feign_plugin feign_plugin_v1 = {sizeof(feign_plugin), FEIGN_ABI_MINOR, NAME, "1", "MIT", components};
""")
        given = []
        for name in "abcde":
            subprocess.run(["cc", "-shared", "-fPIC", "-w", f'-DNAME="{name}"', "-o", os.path.join(tmp, name + ".so"), source, "-I", os.path.join(TOP, "include")], check=True)
            given += ["--replayer", os.path.join(tmp, name + ".so")]
        refuses("replay", SHIPPED, *given, text=r"5 replayers \(a, b, c, d, e\): want at most 4\n")
        refuses("replay", SHIPPED, *given[:4], *given[:2], text=r"several replayers \(a, b, a\) serve the same layer")


def test_no_part_is_left_of_what_cannot_be_a_stream():
    if sanitized() or not shutil.which("cc"):
        raise Skip("a library that is preloaded, and a command without sanitizers")
    with Tmp() as tmp:
        source = put(tmp, "no_stream.c", "#include <errno.h>\n#include <stdio.h>\nFILE *fdopen(int fd, const char *mode) { errno = ENOMEM; return 0; }\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", os.path.join(tmp, "no_stream.so"), source], check=True)
        trace = put(tmp, "t.strace", '1 1700000000.000001 mkdir("/a", 0777) = 0 <0.000001>\n')
        made = os.path.join(tmp, "made")
        os.mkdir(made)
        for name in "t.tracetext", "t.txt":
            refuses("convert", trace, os.path.join(made, name), text="Cannot allocate memory", env={"LD_PRELOAD": os.path.join(tmp, "no_stream.so")})
            assert os.listdir(made) == [], name


def test_a_check_of_a_plugin_that_hangs_ends_when_asked():
    if sanitized() or not shutil.which("cc"):
        raise Skip("a plain compiler's object, and a command without sanitizers")
    with Tmp() as tmp:
        source = put(tmp, "hang.c", """
#include <feign.h>
#include <fcntl.h>
#include <unistd.h>
Plugin plugin = {.name = "hang", .version = "1", .intents = FEIGN_FILTER};
int init(int argc, char *argv[]) { feign_register_plugin(&plugin); return 0; }
Activity *filter(Activity *a) { close(open("hangs", O_CREAT | O_WRONLY, 0600)); for (;;) pause(); return a; }
""")
        subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", os.path.join(tmp, "hang.so"), source, "-I", os.path.join(TOP, "include")], check=True)
        for to in os.kill, os.killpg:  # to feign alone, or a terminal's Ctrl-C
            os.mkdir(scratch := os.path.join(tmp, "scratch"))
            with subprocess.Popen([FEIGN, "check", "./hang.so"], cwd=tmp, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                  start_new_session=True, env={**os.environ, "TMPDIR": scratch}) as p:
                try:
                    while p.poll() is None and not os.path.exists(os.path.join(tmp, "hangs")):
                        time.sleep(0.01)
                    to(p.pid, signal.SIGINT)
                    err = p.communicate(timeout=20)[1]
                finally:
                    if p.poll() is None:
                        os.killpg(p.pid, signal.SIGKILL)
            assert (p.returncode, err) == (2, "feign: ./hang.so: interrupted by signal 2 before it was done\n"), (p.returncode, err)
            assert os.listdir(scratch) == [], os.listdir(scratch)
            os.rmdir(scratch)
            os.unlink(os.path.join(tmp, "hangs"))


def test_a_signal_during_the_last_call_ends_nothing_early():
    if not shutil.which("cc"):
        raise Skip("there is no compiler")
    with Tmp() as tmp:
        trace, source = put(tmp, "t.strace", GOOD), put(tmp, "last.c", """
#include <feign.h>
#include <signal.h>
Plugin plugin = {.name = "last", .version = "1", .intents = FEIGN_REPLAYER};
int init(int argc, char *argv[]) { return feign_register_plugin(&plugin); }
Activity *replay(Activity *a) { if (a->op == feign_op("close")) raise(SIGINT); return a; }
""")
        subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", os.path.join(tmp, "last.so"), source, "-I", os.path.join(TOP, "include")], check=True)
        r = feign("replay", trace, "--replayer", os.path.join(tmp, "last.so"), "--json")
        assert (r.status, r.err) == (0, "") and not r.json()["interrupted"] and r.json()["matched"] == 3, (r.status, r.err)


CRASHES = """
#include <feign.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifndef REPLAY
#define REPLAY return a
#endif
Plugin plugin = {.name = "crash", .version = "1", .intents = FEIGN_FILTER | FEIGN_REPLAYER};
Activity *(*volatile nothing)(Activity *);
int init(int argc, char *argv[]) { feign_register_plugin(&plugin); return 0; }
#ifdef IN_A_THREAD  /* while the dynamic linker has its locks */
static void *crash(void *no) { return (void *)strlen((const char *)1); }
__attribute__((constructor)) static void begin(void) { pthread_t t; pthread_create(&t, 0, crash, 0); pthread_join(t, 0); }
#endif
static pthread_barrier_t all;
static void *with_others(void *no) { pthread_barrier_wait(&all); return (void *)strlen((const char *)1); }
static void together(void) {
  pthread_t t[8];
  pthread_barrier_init(&all, 0, 8);
  for (int i = 0; i < 8; ++i) pthread_create(&t[i], 0, with_others, 0);
  for (int i = 0; i < 8; ++i) pthread_join(t[i], 0);
}
Activity *filter(Activity *a) { CRASH; return a; }
Activity *replay(Activity *a) { REPLAY; }
"""


def test_a_plugin_that_crashes_is_named():
    if sanitized() or not shutil.which("cc"):
        raise Skip("a plain compiler's object, and a command without sanitizers")
    with Tmp() as tmp:
        trace, out, source = put(tmp, "t.strace", GOOD), os.path.join(tmp, "o.feign"), put(tmp, "crash.c", CRASHES)

        def crash(*flags, command=("convert", trace, out, "--with")):
            subprocess.run(["cc", "-shared", "-fPIC", "-w", *flags, "-o", os.path.join(tmp, "crash.so"), source, "-I", os.path.join(TOP, "include")], check=True)
            done = subprocess.run(["sh", "-c", 'ulimit -c 0; exec "$0" "$@"', FEIGN, *command, "./crash.so"], cwd=tmp,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60)
            assert not os.path.exists(out)
            return done.returncode, done.stderr

        for number, text, *flags in (
                (signal.SIGSEGV, "segmentation fault", "-DCRASH=a->length = strlen((const char *)1)"), (signal.SIGSEGV, "segmentation fault", "-DCRASH=nothing(a)"),
                (signal.SIGSEGV, "segmentation fault", "-DCRASH=char room[4096]; room[a->length % 8] = 1; a = filter(a) + room[0]"),
                (signal.SIGSEGV, "segmentation fault", "-DCRASH=together()"), (signal.SIGABRT, "abort()", "-DCRASH=abort()"), (signal.SIGILL, "illegal instruction", "-DCRASH=__builtin_trap()"),
                (signal.SIGFPE, "arithmetic exception", "-DCRASH=raise(SIGFPE)"), (signal.SIGSEGV, "segmentation fault", "-DIN_A_THREAD", "-DCRASH=")):
            if "-DIN_A_THREAD" in flags and tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[1].split("."))) < (2, 35):
                continue  # before that, the dynamic linker tells nothing without its locks
            assert crash(*flags) == (-number, f"feign: ./crash.so crashed: {text}; try: feign check ./crash.so\n"), flags
        # In a thread of the replay, whose stack it has used up.
        assert crash("-DCRASH=", "-DREPLAY=char room[4096]; room[a->length % 8] = 1; return replay(a) + room[0]", command=("replay", trace, "--replayer")) == \
            (-signal.SIGSEGV, "feign: ./crash.so crashed: segmentation fault; try: feign check ./crash.so\n")
        # Somebody else's signal is nobody's crash.
        assert crash("-DCRASH=if (fork() == 0) { kill(getppid(), SIGABRT); _exit(0); } sleep(60)") == (-signal.SIGABRT, "")


def test_plugins_that_break_the_rules():
    with Tmp() as t:
        good, out = put(t, "good", GOOD), os.path.join(t, "out.txt")
        for name, text in (("bad-no-text", r"sample: emitted an activity of path 2147483647, which host->intern\(\) never gave"),
                           ("bad-looks-too-far", r"sample: look-ahead of 4294967295 activities, want at most 16777216"),
                           ("bad-ends", r"sample: process\(\) gave 1: want FEIGN_OK or an error"),
                           ("bad-exits", r"a plug-in ended the process: it called exit\(\)")):
            broken = os.path.join(BUILD, "tests", "plugins", name + ".so")
            refuses("convert", good, out, "--with", broken, text=text)
            assert not os.path.exists(out)
            refuses("info", good, "--with", broken, text=text)
        broken = {name: os.path.join(BUILD, "tests", "plugins", f"bad-{name}.so") for name in ("next", "opens", "executes", "writes", "finishes")}
        refuses("--plugin", broken["next"], "--plugin", "null", text=r"^feign: roles: next\(\) gave 99: want FEIGN_OK, FEIGN_END or an error$")
        refuses("--plugin", os.path.join(BUILD, "tests", "plugins", "bad-no-op.so"), "--plugin", "null", text=r"^feign: roles: emitted an activity of op 0, which does not exist$")
        for name, text in (("opens", r"idle: open_stream\(\)"), ("executes", r"good:1: idle: execute\(\)")):
            refuses("replay", good, "--replayer", broken[name], text=text + " gave 99: want FEIGN_OK or an error")
        for name, call in (("writes", "write"), ("finishes", "finish")):
            refuses("replay", good, "--replayer", "null", "--with", f"{broken[name]},file={out}", text=rf"roles: {call}\(\) gave 99: want FEIGN_OK or an error")


def test_a_replayer_is_given_what_it_serves_only():
    """What no replayer serves is skipped, and not done by one that is there for something else."""
    with Tmp() as t:
        r = feign("replay", put(t, "good", GOOD), "--replayer", os.path.join(BUILD, "tests", "plugins", "bad-of-none.so"), "--json")
        assert r.status == 0 and r.json()["replayed"] == 0, (r.err, r.out)
        assert {skip["why"] for skip in r.json()["skips"]} == {"of a layer that no replayer serves"}, r.json()["skips"]


def test_what_a_replayer_says_as_it_ends_is_in_the_report():
    with Tmp() as t:
        r = feign("replay", put(t, "good", GOOD), "--replayer", os.path.join(BUILD, "tests", "plugins", "bad-of-none.so"), "--json")
        assert r.status == 0 and "idle: ended" in r.json()["notes"], (r.err, r.out)


def test_a_working_directory_is_absolute():
    with Tmp() as t:
        given = {"strace": put(t, "t.strace", GOOD), "hdtrace": os.path.join(TOP, "tests", "golden", "hdtrace", "made.proj")}
        for name in "siox", "tracetext":
            given[name] = os.path.join(t, "t." + name)
            made = feign("convert", "-q", given["strace"], given[name])
            assert made.status == 0, made.err
        for name, trace in given.items():
            for wrong in "rel", "./rel":
                refuses("info", trace, "--provider", name, "--cwd", wrong, text=f"{name}: cwd={wrong}: want an absolute path")
            assert feign("info", trace, "--provider", name, "--cwd", "/abs").status == 0


def test_roots():
    refuses("replay", SHIPPED, text="want --root DIR")
    refuses("replay", SHIPPED, "--root", "/no/such/root", text="root /no/such/root: No such file or directory: want a directory to replay below")
    with Tmp() as tmp:
        refuses("replay", SHIPPED, "--root", put(tmp, "file", ""), text="Not a directory")
        ro = os.path.join(tmp, "ro")
        os.mkdir(ro)
        if os.geteuid() == 0:
            if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", ro], stderr=subprocess.DEVNULL).returncode:
                raise Skip("mounting is not permitted")
            try:
                refuses("replay", SHIPPED, "--root", ro, text="not writable: Read-only")
            finally:
                subprocess.run(["umount", ro], check=True)
        else:
            os.chmod(ro, 0o500)
            refuses("replay", SHIPPED, "--root", ro, text="not writable")


def test_usage():
    refuses("repaly", text=r"repaly: no such command .there are: replay, .*inspect.*; did you mean replay\?")
    refuses("helpp", text=r"helpp: no such command .*, help\); did you mean help\?")
    assert "did you mean" not in refuses("plan", text="plan: no such command").err  # "lab", of three letters
    refuses("replay", SHIPPED, "--rot", "x", text=r"not expected: --rot; did you mean --root\?")
    refuses("lab", "report", "x.json", "--htlm", "x", text=r"not expected: --htlm; did you mean --html\?")  # not --help, which is two letters off
    refuses("replay", SHIPPED, "--pcae=think", text=r"--pcae=think; did you mean --pace\?")
    refuses("--plugin", "null", "--rot", "x", text=r"--rot.*; did you mean --root\?")
    assert "did you mean" not in refuses("replay", SHIPPED, "--root", "x", "--nothing-like-it", text="not expected: --nothing-like-it").err
    with Tmp() as tmp:
        trace = put(tmp, "t.strace", GOOD)
        refuses(trace, text=f"feign replay {trace} --root DIR")
    refuses("replay", SHIPPED, "--pace", "afap,scale=2", "--root", "/tmp", text=r"want afap, think\[,scale")
    refuses("replay", SHIPPED, "--pace", "fast", "--root", "/tmp", text=r'--pace: "fast": want afap, think\[,scale')
    refuses("replay", SHIPPED, "--order", "none", "--root", "/tmp", text="order")
    refuses("replay", SHIPPED, "--require", "1.5", "--root", "/tmp", text="--require 1.5: want a share")
    refuses("convert", SHIPPED, text=f"convert {SHIPPED}: want IN… OUT: there is no file to write")
    refuses("convert", SHIPPED, "/tmp/x.unknown", text=r"no writer for a file of this name.*\.feign")
    assert feign().status == 2


def yaml(tmp, content):
    return put(tmp, "p.yaml", content)


def test_yaml():
    with Tmp() as tmp:
        for content, text in (
            ("", "is empty"),
            ("plugins: [strace\n", r"p\.yaml:\d+:\d+: .*YAML"),
            ("plugins:\n\t- x\n", r"p\.yaml:2:1: "),
            ("root: /tmp\n", r"p\.yaml:1:1: there is no `plugins`"),
            ("plugin: []\n", r'p\.yaml:1:\d+: unknown key "plugin"'),
            ("plugins: 3\n", r"p\.yaml:1:10: plugins: want a list"),
            ("plugins:\n  - strace: [a]\n", r"p\.yaml:2:13: want a map of options"),
            ("plugins:\n  - strace: {file: x}\n  - nosuch\n", r'^feign: [^ ]*p\.yaml:3:5: unknown plug-in "nosuch"'),
            ("plugins: []\npace: fast\n", r'p\.yaml:2:7: pace: "fast": want afap, think\[,scale'),
            ("plugins: []\nprepare: perhaps\n", r'p\.yaml:2:10: prepare: "perhaps": want yes or no'),
            ("plugins: []\nplugins: []\n", r'p\.yaml:2:1: "plugins" is there twice'),
            ("- a\n- b\n", r"p\.yaml:1:1: want a map"),
            ("plugins: []\n---\nplugins: []\n", r"p\.yaml:2:1: a second document begins here"),
            ("plugins: []\n---\n# no more\n", r"p\.yaml: no provider"),
            ("plugins: []\npace: {scale: 2}\n", r"p\.yaml:2:7: pace: there is no `kind`"),
            ("plugins: []\n", r"p\.yaml: no provider"),
            ('plugins:\n  - "posi\\0x"\n', r"p\.yaml:2:5: a NUL byte"),
            ('plugins: [posix: {"a\\0b": 1}]\n', r"p\.yaml:1:19: a NUL byte"),
            (f"root: nosuch\nplugins: [\"strace,file={SHIPPED}\", posix]\n", r"p\.yaml: root nosuch: No such file"),
        ):
            refuses("run", yaml(tmp, content), text=text)
        refuses("run", put(tmp, "b.yaml", bytes(range(256))), text=r"b\.yaml:")
        refuses("run", os.path.join(tmp, "none.yaml"), text="No such file")
        refuses("run", tmp, text="is a directory, want a file")
        p = yaml(tmp, f"plugins: [\"strace,file={SHIPPED}\", \"null\"]\n")
        r = subprocess.run(f"cat {p} | {FEIGN} run /dev/stdin -q", shell=True, stderr=subprocess.PIPE)
        assert r.returncode == 0, r.stderr


def test_yaml_runs_the_same_pipeline():
    with Tmp() as tmp:
        root = os.path.join(tmp, "root")
        os.mkdir(root)
        r = feign("run", yaml(tmp, f"root: {root}\nplugins:\n  - strace: {{file: [{SHIPPED}]}}\n  - rebase: {{map: /srv/lab:/x}}\n  - posix\n"), "--json")
        assert r.status == 0 and r.json()["mismatched"] == 0, r.err
        assert os.path.isdir(os.path.join(root, "x/w/r/.git"))


def test_nothing_half_written():
    with Tmp() as tmp:
        bad = put(tmp, "t.strace", GOOD * 50 + "garbage here\n")
        for name in ("out.feign", "out.txt"):
            refuses("convert", bad, os.path.join(tmp, name), text=r"t\.strace:151: ")
            assert sorted(os.listdir(tmp)) == ["t.strace"], os.listdir(tmp)
        refuses("convert", SHIPPED, "/no/such/dir/out.feign", text="/no/such/dir")


def test_full_output_device_and_a_reader_that_has_seen_enough():
    if not os.path.exists("/dev/full"):
        raise Skip("there is no /dev/full")
    with Tmp() as tmp:
        for args in (("info", SHIPPED), ("--help",), ("replay", "--help"), ("--version",), ("man",), ("check", plugin("null")), ("generate", os.path.join(TOP, "tests", "layer", "odd.h"), "-o", os.path.join(tmp, "made"))):
            command = [os.path.join(BUILD, "core", "feign"), *args]
            with open("/dev/full", "w") as full:
                done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
            assert (done.returncode, done.stderr) == (2, f"feign: {'generate: ' * (args[0] == 'generate')}write standard output: No space left on device\n"), done
            read, write = os.pipe()
            os.close(read)
            done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
            os.close(write)
            assert (done.returncode, done.stderr) == (0, ""), done


def test_output_to_what_is_no_regular_file():
    """A device stays a device, a link a link: nothing takes their place."""
    with Tmp() as tmp, tempfile.TemporaryFile() as copy:
        fifo, link, file = (os.path.join(tmp, n) for n in ("fifo.txt", "link.txt", "file.txt"))
        os.mkfifo(fifo)
        put(tmp, "file.txt", b"old")
        os.symlink("file.txt", link)
        for write in (["convert", SHIPPED], ["info", SHIPPED, "-o"]):
            copy.truncate(0)
            copy.seek(0)
            reader = subprocess.Popen(["cat", fifo], stdout=copy)
            assert feign(*write, fifo).status == 0 and reader.wait(60) == 0
            copy.seek(0)
            through = copy.read()
            assert stat.S_ISFIFO(os.stat(fifo).st_mode) and len(through) > 1000
            assert feign(*write, link).status == 0 and os.path.islink(link)
            with open(file, "rb") as f:
                assert f.read() == through
            assert sorted(os.listdir(tmp)) == ["fifo.txt", "file.txt", "link.txt"]
        # Whether a report can be written is told before the replay, and a reader does not take that for the report.
        trace = put(tmp, "t.strace", GOOD)
        os.mkdir(root := os.path.join(tmp, "root"))
        # By a link or not, one file is one output; links that lead to each other lead to none.
        os.symlink("new.txt", later := os.path.join(tmp, "later.txt"))
        refuses("replay", trace, "--root", root, "-o", later, "--activities", os.path.join(tmp, "new.txt"), text="want another file")
        os.symlink("round.txt", around := os.path.join(tmp, "round.txt"))
        refuses("replay", trace, "--root", root, "-o", around, text="Too many levels of symbolic links")
        assert os.path.islink(later) and os.path.islink(around)
        r = subprocess.run([FEIGN, "replay", trace, "-q", "--root", root, "--waits", "-"], cwd=tmp, stdout=subprocess.PIPE, check=True)
        assert r.stdout.startswith(b"since_us\t") and not os.path.exists(os.path.join(tmp, "-")), r.stdout
        for option in "--output", "--waits":
            with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE) as reader:
                r = feign("replay", trace, "--root", root, option, fifo, timeout=60)
                assert r.status == 0 and reader.stdout.read() != b"", (option, r.err)


def test_what_fuzzing_found():
    """Texts that once broke something; the calls in them are ones that no kernel made."""
    with Tmp() as tmp:
        path, out = os.path.join(tmp, "t.strace"), os.path.join(tmp, "o.txt")
        deep = "/" + "a/" * 20000
        for lines in (['mkdir("/a", 0755) = 0', 'mkdir("/a/b", 0755) = 0', 'rename("/a", "/a/b") = 0', 'rename("/a/b", "/a") = 0',
                       'renameat2(AT_FDCWD, "/a", AT_FDCWD, "/a/b", RENAME_EXCHANGE) = 0', 'stat("/a/b/c", {st_mode=S_IFREG|0644, st_size=1, ...}) = 0'],
                      ['mkdir("/a", 0755) = 0', 'mkdir("/b", 0755) = 0', 'renameat2(AT_FDCWD, "/a", AT_FDCWD, "/b", RENAME_EXCHANGE) = 0', 'creat("/a/x", 0644) = 3'],
                      ['readlink("/a", "a/b", 100) = 3', 'readlink("/a/b", "../a", 100) = 4', 'stat("/a/b/c", {st_mode=S_IFREG|0644, st_size=1, ...}) = 0'],
                      [f'openat(AT_FDCWD, "{deep}", O_RDONLY) = 3', f'readlink("/l", "{deep}", 99999) = 40001', 'stat("/l/x", {st_mode=S_IFREG|0644, st_size=1, ...}) = 0',
                       f"fsync(9<{deep}>) = 0"],
                      ["munmap(0x7f0000000000, 18446744073709551615) = 0", "mmap(NULL, 18446744073709551615, PROT_READ, MAP_SHARED, 3, 0) = 0xfffffffffffffff0"]):
            with open(path, "w", encoding="ascii") as f:
                f.writelines(f"7 {line}\n" for line in lines)
            assert feign("convert", path, out).status in (0, 2)
            root = os.path.join(tmp, "root")
            os.makedirs(root, exist_ok=True)
            assert feign("replay", path, "--root", root).status in (0, 1, 2)


def test_directories_without_end():
    """A process that goes down and down: where it is, is not kept account of for ever."""
    if sanitized():
        raise Skip("sanitizers need address space")
    with Tmp() as tmp:
        path = os.path.join(tmp, "t.strace")
        with open(path, "w", encoding="ascii") as f:
            f.write('7 chdir("/d") = 0\n' + "".join(f'7 chdir("{"e/" * 400}{i}") = 0\n' for i in range(4000)))
        done = subprocess.run(["prlimit", f"--as={2 << 30}", FEIGN, "convert", path, os.path.join(tmp, "o.feign")], stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_what_a_terminal_obeys_is_not_given_to_it():
    """Names of files and broken lines may have anything in them."""
    with Tmp() as tmp:
        trace = put(tmp, "t", '7 stat("/\\33[31mred", {st_mode=S_IFREG|0644, st_size=3}) = 0\n')
        broken = put(tmp, "u", "7 \x07 rings\n")
        assert "/\x1b[31mred" in feign("info", trace).out  # a program that reads it gets the name
        ours, theirs = pty.openpty()
        with subprocess.Popen([FEIGN, "info", trace], stdout=theirs):
            os.close(theirs)
            shown = b""
            try:
                while some := os.read(ours, 65536):
                    shown += some
            except OSError:
                pass  # its other end is closed
            os.close(ours)
        assert b"/\\x1b[31mred" in shown and b"\x1b" not in shown, shown
        refuses("info", broken, "--provider", "strace", text=r"u:1: .*\\x07 rings")


def test_a_name_that_no_test_has_is_no_success():
    done = subprocess.run([sys.executable, __file__, "test_of_nothing"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "no such test: test_of_nothing" in done.stderr, done


if __name__ == "__main__":
    main(globals())
