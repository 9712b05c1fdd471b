#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""feign generate: a third party's library, described in its own header, is recorded and replayed."""
import argparse
import os
import random
import re
import shutil
import subprocess
import sys

from harness import BUILD, FEIGN, TOP, Skip, Tmp, feign, main, refuses, same_tree, tree

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(TOP, "layers"))
SHELF = os.path.join(TOP, "examples", "shelf")
ODD = os.path.join(TOP, "tests", "layer")
with open(os.path.join(SHELF, "shelf.h"), encoding="utf-8") as f:
    HEADER = f.read()


def needs_capture():
    if not os.path.exists(os.path.join(BUILD, "capture", "libfeign-capture.so")):
        raise Skip("no capture library on this machine")


def run(*command, **how):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL, **how)
    assert done.returncode == 0, f"{command}:\n{done.stdout[-3000:]}"
    return done.stdout


class Made(Tmp):
    """A library, a program that uses it, and what feign generate makes of its header."""

    def __init__(self, folder, library, program, header, compiler="cc"):
        super().__init__()
        needs_capture()
        self.path = os.path.realpath(self.name)
        shared, self.program = self.file(f"lib{library}.so"), self.file(program)
        run("cc", "-shared", "-fPIC", "-o", shared, os.path.join(folder, library + ".c"))
        run("cc", "-I", folder, "-o", self.program, os.path.join(folder, program + ".c"), shared, "-Wl,-rpath," + self.path, "-lpthread")
        self.work, self.root, self.trace = self.file("w"), self.file("root"), self.file("t.feign")
        os.mkdir(self.work)
        os.mkdir(self.root)
        r = feign("generate", os.path.join(folder, header), "-o", self.file("made"), "--library", shared)
        assert r.status == 0 and "feign record --with" in r.out, r.err
        for source in sorted(os.listdir(self.file("made"))):   # as its head says
            if source.endswith(".c"):
                with open(self.file("made", source), encoding="utf-8") as f:
                    command = next(line for line in f if line.startswith(" *   cc "))[5:]
                run("sh", "-c", command.replace("cc ", compiler + " -Wall -Werror ", 1), cwd=self.file("made"))
        made = sorted(os.listdir(self.file("made")))
        self.capture = self.file("made", next(n for n in made if n.endswith("-capture.so")))
        self.replayer = self.file("made", next(n for n in made if n.endswith(".so") and not n.endswith("-capture.so")))

    def __enter__(self):
        super().__enter__()
        return self

    def file(self, *names):
        return os.path.join(self.path, *names)

    def record(self, *options):
        r = feign("record", "-o", self.trace, "--with", self.capture, *options, "--", self.program, self.work)
        assert r.status == 0 and not r.err, (r.status, r.err)

    def lines(self):
        text = self.file("t.txt")
        feign("convert", self.trace, text)
        with open(text, encoding="utf-8") as f:
            return f.read().splitlines()

    def replay(self, *options, trace=None):
        """A replay in a root of its own, whose tree is then the program's; the report."""
        root = self.file(f"root{len(os.listdir(self.path))}")
        os.mkdir(root)
        r = feign("replay", trace or self.trace, "--root", root, "--json", *options)
        assert r.status == 0, r.err
        made = os.path.join(root, self.work[1:])
        same_tree(tree(self.work), tree(made))
        assert all(os.lstat(os.path.join(made, name)).st_mode == os.lstat(os.path.join(self.work, name)).st_mode for name in tree(made))
        return r.json()


os.umask(0o022)   # by which a library's files are made again


def shelf(**how):
    return Made(SHELF, "shelf", "librarian", "shelf.h", **how)


def done(report, op):
    return report["ops"][op]["replayed"]


def test_a_library_is_recorded_and_replayed_at_its_own_layer_or_at_posix():
    with shelf() as made:
        made.record()
        info = feign("info", made.trace, "--json").json()
        assert info["layers"]["shelf"]["activities"] == 182 and info["layers"]["posix"]["activities"] > 300, info["layers"]
        assert info["layers"]["shelf"]["own_seconds"] < info["layers"]["shelf"]["seconds"]
        assert info["ops"]["shelf:shelf_append"] == {**info["ops"]["shelf:shelf_append"], "count": 122, "failed": 0}
        assert re.search(r"layer +calls.*\n +posix .*\n +shelf ", feign("info", made.trace).out)

        # Arguments, handles, nesting.
        lines = made.lines()
        opened = next(line for line in lines if "shelf_open(" in line)
        assert f'shelf:shelf_open(path="{made.work}/books/novels", flags=SHELF_CREATE|SHELF_EXCLUSIVE|SHELF_SYNC) = 0' in opened
        handle = re.search(r"handle=(#\d+)", opened)[1]
        assert any(f"shelf_append(s={handle}, size=9841) = 9841" in line and f'path="{made.work}/books/novels"' in line for line in lines)
        assert any(f'shelf_label(s={handle}, label="a label that is by far too long for it") = -ENAMETOOLONG' in line for line in lines)
        assert any(f"shelf_count(s={handle}, what=SHELF_BYTES) = 14757" in line for line in lines)
        assert len({m[1] for line in lines if (m := re.search(r"shelf_open\(.*\) = 0 .* handle=(#\d+)", line))}) == 6
        in_append = [line for line in lines if re.search(r"\] (pwrite64|fdatasync)\(", line)]
        assert len(in_append) > 240 and all("depth=" in line for line in in_append)
        child = next(line for line in lines if "shelf_read" in line and "room=100)" in line)   # on its parent's
        second = [re.search(r"handle=(#\d+)", line)[1] for line in lines if "shelf_open(" in line and "SHELF_READ_ONLY" in line]
        assert f"(s={second[0]}, " in child, (second, child)
        copy = lines.index(next(line for line in lines if "shelf_copy(" in line))
        assert "depth=1" in lines[copy + 1] and "shelf_open" in lines[copy + 1] and "depth=2" in lines[copy + 2]

        # At posix, which drops the library's; at its own, which drops what it causes.
        posix = made.replay("--require", "100%")
        assert done(posix, "shelf:shelf_append") == 0 and done(posix, "pwrite64") == 244
        own = made.replay("--replayer", "posix", "--replayer", made.replayer, "--require", "100%")
        assert done(own, "shelf:shelf_append") == 122 - 10 and done(own, "pwrite64") == 0 and done(own, "rename") == 1, own["ops"]
        assert own["mismatched"] == 0 and own["bytes_written"] == own["recorded_bytes_written"]
        # Alone: the program's own calls (mkdir, rename) are not made, so that what they made is there.
        alone = feign("replay", made.trace, "--root", made.root, "--json", "--replayer", made.replayer)
        assert alone.status == 0, alone.err
        assert alone.json()["mismatched"] == 0 and done(alone.json(), "shelf:shelf_append") == 112, alone.json()["ops"]
        # On threads; and found by its layer's name.
        made.replay("--replayer", "posix", "--replayer", made.replayer, "--order", "depend", "--pace", "think", "--require", "100%")
        os.environ["FEIGN_PLUGIN_PATH"] = os.path.dirname(made.replayer)
        try:
            assert done(made.replay("--layer", "shelf", "--require", "100%"), "shelf:shelf_append") == 112
        finally:
            del os.environ["FEIGN_PLUGIN_PATH"]
        refuses("replay", made.trace, "--root", made.root, "--layer", "shelv", text="--layer shelv: want posix .*, mpiio, the path")
        assert "0 failed" in feign("check", made.replayer).out


def test_its_layer_alone():
    """What the system calls would tell is not in the trace: the directories are, the files are the library's."""
    with shelf() as made:
        made.record("--layer", "shelf")
        info = feign("info", made.trace, "--json").json()
        assert set(info["layers"]) == {"shelf"} and info["activities"] == 182, info["layers"]
        r = feign("replay", made.trace, "--root", made.root, "--json", "--replayer", made.replayer, "--require", "100%")
        assert r.status == 0, r.err
        want = tree(made.work)
        del want["books/catalogue"]
        same_tree(want, tree(os.path.join(made.root, made.work[1:])))


def test_every_kind_of_parameter_and_failure():
    for compiler in ("cc", "clang"):
        if not shutil.which(compiler):
            continue
        with Made(ODD, "odd", "use_odd", "odd.h", compiler=compiler) as made:
            made.record()
            text = "\n".join(made.lines())
            for want in (r'odd_new\(path="\S*/w/no/one", flags=ODD_BOTH, depth=-7, comment="well"\) = -ENOENT', r"odd_write\(call=#\d+, e_=13\) = -ENOTUNIQ",
                         r"odd_read\(r_=#\d+, cursor=#\d+, size=10, count=15, length=150\) = 150", r"odd_cursor\(from=100, result=#\d+\) = 0 .*handle=#\d+",
                         r"odd_tell\(self=#\d+\) = 300", r"odd_skip\(self=#\d+, by=20\) = 20", r"odd_skip\(self=#\d+, by=2000\) = -ERANGE",
                         r"odd_version\(\) = 4000000000", r"odd_rename\(\S* \S* mode=0640, flags=ODD_HIGH\) = -ENOENT", r"odd_log\(self=#\d+, format=\"this has %d\", length=11\) = 11"):
                assert re.search("odd-things:" + want, text), (want, text)
            assert text.count("odd_tick(") == 2
            cursor = re.search(r"odd_cursor\(from=100, result=(#\d+)\)", text)[1]   # one type, whatever stands before it
            assert f"cursor={cursor}, size=10, count=15" in text and f"odd_cursor_close(cursor={cursor})" in text, text
            own = made.replay("--replayer", "posix", "--replayer", made.replayer, "--require", "100%")
            assert own["mismatched"] == 0 and done(own, "odd-things:odd_private") == 0 and done(own, "odd-things:odd_read") == 4, own["ops"]
            assert done(made.replay("--require", "100%"), "odd-things:odd_read") == 0
            with open(made.file("made", "odd-things.md"), encoding="utf-8") as f:
                page = f.read()
            assert "| odd_write | 20 | write | bytes | call, e_ |" in page and "`odd_tick64` is `odd_tick`" in page and "Not replayed: odd_private." in page, page


def test_the_build_file():
    if not shutil.which("meson"):
        raise Skip("meson is not installed")
    with shelf() as made:
        said = subprocess.run(["meson", "setup", made.file("build"), made.file("made")], check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert "WARNING" not in said.stdout, said.stdout
        run("ninja", "-C", made.file("build"))
        assert os.path.exists(made.file("build", "libshelf-capture.so"))
        assert "shelf - Makes the calls of layer shelf" in feign("inspect", made.file("build", "shelf.so")).out


def test_the_header_for_a_replayer_by_hand_says_what_it_wants():
    with Tmp() as tmp:
        source = os.path.join(tmp, "by_hand.c")
        with open(source, "w", encoding="ascii") as f:
            f.write("#include <feign_layer_replayer.h>\n")
        compile = ["cc", "-std=c11", "-Wall", "-Wextra", "-I", os.path.join(TOP, "include"), "-fsyntax-only", source]
        run(*compile, "-D_GNU_SOURCE")
        r = subprocess.run(compile, capture_output=True, text=True)
        assert r.returncode != 0 and "for C11, with _GNU_SOURCE defined before the first #include" in r.stderr, r.stderr


def test_without_recording_nothing_changes():
    with shelf() as made:
        run(made.program, made.work, env={**os.environ, "LD_PRELOAD": made.capture})
        assert "books/novels" in tree(made.work)


def test_a_cut_off_recording_tells_its_layers():
    with shelf() as made:
        made.record("--keep-raw")
        raw = made.trace + ".raw"
        assert feign("info", raw, "--json").json()["layers"]["shelf"]["activities"] == 182
        with open(raw + "/layers", encoding="utf-8") as f:
            good = f.read()
        rest = random.Random(3)
        for i in range(40):
            bad = list(good)
            for _ in range(rest.choice((1, 5))):
                bad[rest.randrange(len(bad))] = rest.choice("\t\n0129x\x00")
            with open(raw + "/layers", "w", encoding="utf-8") as f:
                f.write("".join(bad[:rest.choice((len(bad), rest.randrange(len(bad))))]))
            assert feign("info", raw).status in (0, 2)
        with open(raw + "/layers", "w", encoding="utf-8") as f:
            f.write(good.replace("op\t3\t", "op\tthree\t"))
        refuses("info", raw, text=r'layers:\d+: "op\tthree\tshelf_append\t4\t0": want a line that describes a layer')
        # What is cut off of it is not left out without a word.
        with open(raw + "/layers", "w", encoding="utf-8") as f:
            f.write("")
        refuses("info", raw, text="layers: does not have layer shelf, which was recorded")
        with open(raw + "/layers", "w", encoding="utf-8") as f:
            f.write(good[:good.index("op\t4\t")])
        cut = feign("info", raw, "--json").json()
        lost = [e["count"] for e in cut["left_out"] if e["why"] == "no layer describes it"]
        assert len(lost) == 1 and cut["layers"]["shelf"]["activities"] + lost[0] == 182, cut["left_out"]
        os.unlink(raw + "/layers")
        refuses("info", raw, text="layers: No such file")


def test_a_trace_cannot_lead_a_library_out_of_the_root():
    """Neither by links below it, nor by handles that it does not have."""
    with shelf() as made:
        made.record()
        own = ("--replayer", "posix", "--replayer", made.replayer)
        outside, there = made.file("outside"), os.path.join(made.root, made.work[1:])
        os.mkdir(outside)
        os.makedirs(there)
        os.symlink(outside, os.path.join(there, "books"))
        r = feign("replay", made.trace, "--root", made.root, "--no-prepare", "--json", *own)
        assert r.status == 0 and os.listdir(outside) == [], (r.err, os.listdir(outside))
        os.unlink(os.path.join(there, "books"))
        os.mkdir(os.path.join(there, "books"))
        os.symlink(os.path.join(outside, "x"), os.path.join(there, "books/novels"))
        r = feign("replay", made.trace, "--root", made.root, "--no-prepare", "--json", *own)
        assert r.status == 0 and os.listdir(outside) == [], (r.err, os.listdir(outside))
        # A handle whose making was not recorded. (The system calls of a paused open would tell of it.)
        late, other = made.file("late"), made.file("other")
        run("cc", "-I", SHELF, "-I", os.path.join(TOP, "include"), "-o", late, os.path.join(ODD, "late.c"), made.file("libshelf.so"), "-Wl,-rpath," + made.path)
        r = feign("record", "--paused", "--layer", "shelf", "-o", made.trace, "--with", made.capture, "--", late, made.file("shelf"))
        assert r.status == 0, r.err
        os.mkdir(other)
        r = feign("replay", made.trace, "--root", other, *own)
        assert r.status == 0 and re.search(r"1  shelf:shelf_append on a handle that was made before the trace began", r.out), (r.out, r.err)


def test_another_description_than_it_was_recorded_with():
    with shelf() as made:
        made.record()
        later = made.file("shelf.h")
        with open(later, "w", encoding="utf-8") as f:
            f.write(HEADER.replace("//@ args handle value buf length", "//@ args handle - buf length"))
        other = made.file("other")
        assert feign("generate", later, "-o", other, "--library", made.file("libshelf.so"), "-q").status == 0
        with open(os.path.join(other, "shelf_replayer.c"), encoding="utf-8") as f:
            run("sh", "-c", next(line for line in f if line.startswith(" *   cc "))[5:], cwd=other)
        refuses("replay", made.trace, "--root", made.root, "--replayer", "posix", "--replayer", other + "/shelf.so",
                text="shelf_read: the trace's has other arguments than this plug-in's")


def test_what_record_does_not_take():
    with shelf() as made:
        for options, text in ((("--with", made.file("libshelf.so")), "libshelf.so: want a capture library that feign generate made"),
                              (("--with", made.file("absent.so")), "absent.so: No such file"),
                              (("--with", made.program), "--with .*librarian: "),
                              (("--with", made.capture, "--with", made.capture), "layer shelf is there already"),
                              (("--with", made.capture, "--layer", "shelv"), "--layer shelv: want one of posix, stdio, mpi, mpiio, shelf"),
                              (("--layer", "shelf"), "--layer shelf: want one of posix, stdio, mpi, mpiio; others by --with"),
                              (("--with", made.capture, "--tracer", "strace"), "puts no library into the program")):
            if "strace" in options and not shutil.which("strace"):
                continue
            refuses("record", "-o", made.trace, *options, "--", made.program, made.work, text=text)
            assert not os.path.exists(made.trace) and not os.path.exists(made.trace + ".raw")




def test_what_is_wrong_is_told_with_file_and_line_and_nothing_is_written():
    def line_of(text):
        return 1 + next(i for i, line in enumerate(HEADER.splitlines()) if text in line)

    append, read = line_of("ssize_t shelf_append("), line_of("ssize_t shelf_read(")
    cases = (
        ("kind=write", "kind=wirte", line_of("//@ op 3"), 'kind "wirte": want one of other, open'),
        ("op 3 shelf_append", "op 0 shelf_append", line_of("//@ op 3"), 'op "0": want a number from 1 to 4095'),
        ("op 3 shelf_append", "op 5000 shelf_append", line_of("//@ op 3"), 'op "5000": want a number from 1 to 4095'),
        ("op 3 shelf_append", "op 2 shelf_append", line_of("//@ op 3"), "op 2 shelf_append is there twice"),
        ("op 3 shelf_append kind=write result=bytes", "op 3", line_of("//@ op 3"), "op 3: want 2 words or more"),
        ("fails=code", "fails=soon", line_of("//@ op 6"), 'fails "soon": want one of errno, negative, code'),
        ("fails=code", "fails=code fails=errno", line_of("//@ op 6"), '"fails": is there twice, want it once'),
        ("fails=code", "fail=code", line_of("//@ op 6"), '"fail": want kind=, result=, fails='),
        ("//@ args handle buf length out", "//@ args handle bfu length out", append, 'role "bfu": want one of handle'),
        ("//@ args handle buf length out", "//@ args handle buf length", append, "shelf_append: 3 roles for 4 parameters"),
        ("//@ args handle buf length out", "//@ args handle length buf out", append, 'shelf_append: parameter "const void* data" has role length: want a whole number'),
        ("//@ args handle buf length out", "//@ args handle buf value out", append, "shelf_append: buf: how long is it? want a parameter with role length"),
        ("//@ args handle buf length out", "//@ args handle out length out", append, 'parameter "const void* data" has role out: want a pointer to what is not const'),
        ("//@ args handle value buf length", "//@ args handle value out length", read, "void * does not tell how much; want buf"),
        ("//@ args handle value buf length", "//@ args handle length buf length", read, "shelf_read: two length: want one"),
        ("//@ args handle value buf length", "//@ args handle value:1:2:3 buf length", read, 'role "value:1:2:3": want'),
        ("//@ args handle value buf length", "//@ args handle value:4096 buf length", read, 'role "value:4096": want an index below 4096'),
        ("//@ args handle value:what result", "//@ args handle value:waht result", line_of("int shelf_count("), 'names "waht" are not defined'),
        ("kind=read result=bytes", "kind=read result=number", read, "shelf_read: kind=read: want result=bytes"),
        ("//@ op 1 shelf_open kind=open result=handle", "//@ op 1 shelf_open kind=open", line_of("shelf* shelf_open("), "kind=open: want a handle that it makes"),
        ("//@ op 1 shelf_open kind=open result=handle", "//@ op 1 shelf_open result=handle", line_of("shelf* shelf_open("), "it makes a handle: want kind=open"),
        ("//@ op 2 shelf_close kind=close result=zero\n//@ args handle", "//@ op 2 shelf_close kind=close result=zero\n//@ args -", line_of("int shelf_close("), "kind=close: want a parameter with role handle"),
        ("ssize_t shelf_append(", "ssize_t shelf_apend(", append, " is not that of shelf_append"),
        ("ssize_t shelf_append(", "static ssize_t shelf_append(", append, "shelf_append is static or inline"),
        ("ssize_t shelf_append(shelf* s, const void* data, size_t size, uint64_t* number);", "#define x", append, 'op shelf_append: "#define x": want its prototype here'),
        ("ssize_t shelf_append(shelf* s, const void* data, size_t size, uint64_t* number);", "", line_of("//@ op 4") , "op shelf_append has no prototype"),
        ("//@ op 4 shelf_read", "//@ capture size=1\n//@ op 4 shelf_read", line_of("//@ op 4"), "capture size=1: there is no op above"),
        ("//@ args handle value buf length", "//@ capture size=1\n//@ args handle value buf length", line_of("//@ op 4") + 1, '"size": want result=, length=, before=, call='),
        ("//@ args handle value buf length", '//@ capture length="x\n//@ args handle value buf length', line_of("//@ op 4") + 1, "No closing quotation"),
        ("//@ layer shelf ", "//@ layer Shelf ", line_of("//@ layer"), "layer Shelf: want a name of at most 31 small letters"),
        ("//@ layer shelf ", "//@ layer posix ", line_of("//@ layer"), "layer posix: that is one of feign's own layers"),
        ("ssize_t shelf_append(shelf* s, const void* data, size_t size, uint64_t* number);", "ssize_t shelf_append(shelf* s, const void* data, size_t size, uint64_t* number, ...);",
         append, "shelf_append: 4 roles for 5 parameters, of which ... is one"),
        ("//@ layer shelf", "//@ lyaer shelf", line_of("//@ layer"), 'annotation "lyaer": want one of layer, fails, names'),
        ("//@ layer shelf ", "//@ layer shelf x y ", line_of("//@ layer"), '"y": want no more here'),
        ("//@ layer shelf", "// layer shelf", line_of("//@ op 1"), "op shelf_open: want //@ layer NAME"),
        ("//@ names what SHELF_RECORDS=0", "//@ names what 7", line_of("//@ names what"), "want GROUP CONSTANT"),
        ("//@ names what SHELF_RECORDS=0", "//@ names what=that SHELF_RECORDS=0", line_of("//@ names what"), "want GROUP CONSTANT"),
    )
    with Tmp() as tmp:
        header, out = os.path.join(tmp, "shelf.h"), os.path.join(tmp, "out")
        for before, after, line, text in cases:
            assert before in HEADER, before
            with open(header, "w", encoding="utf-8") as f:
                f.write(HEADER.replace(before, after, 1))
            try:
                refuses("generate", header, "-o", out, text=rf"^feign: generate: \S*/shelf.h:{line}: .*{re.escape(text)}")
            except AssertionError as error:
                raise AssertionError(f"{before} -> {after}: {error}") from None
            assert not os.path.exists(out)
        for text, want in (("int f(void);\n", "no annotations: want //@ layer"), ('//@ layer x "y"\n', "layer x has no ops"), ('//@ layer posix "y"\n//@ op 1 f\nint f(void);\n', "one of feign's own"),
                           ('//@ layer Shelf "y"\n//@ op 1 f\nint f(void);\n', "layer Shelf: want a name of"), ('//@ layer x "y"\n//@ op 1 f\n', "op f has no prototype"), ("\xff".encode("latin-1"), "want text in UTF-8")):
            with open(header, "wb") as f:
                f.write(text if isinstance(text, bytes) else text.encode())
            refuses("generate", header, "-o", out, text=want)
            assert not os.path.exists(out)
        refuses("generate", os.path.join(tmp, "absent.h"), text="absent.h: No such file")
        refuses("generate", tmp, text="Is a directory")
        refuses("generate", text="HEADER is required")
        good = os.path.join(SHELF, "shelf.h")
        refuses("generate", good, "-o", out, "--name", "a b", text="--name a b: want a name of")
        refuses("generate", good, "-o", out, "--library", out + ".so", text="out.so: is not there")
        refuses("generate", good, "-o", "/proc/out", text="generate: /proc/out: ")
        # What is there and another's stays.
        os.mkdir(out)
        with open(os.path.join(out, "meson.build"), "w", encoding="utf-8") as f:
            f.write("project('mine')\n")
        refuses("generate", good, "-o", out, text="meson.build: is there, and not feign generate's")
        assert os.listdir(out) == ["meson.build"]
        os.unlink(os.path.join(out, "meson.build"))
        for _ in range(2):
            assert feign("generate", good, "-o", out, "--name", "rack").status == 0
        assert sorted(os.listdir(out)) == ["meson.build", "rack.md", "rack_capture.c", "rack_replayer.c"]


def test_without_python():
    with Tmp() as tmp:
        refuses("generate", os.path.join(SHELF, "shelf.h"), "-o", tmp + "/out", env={"PATH": tmp}, text="python3 is not in \\$PATH.*apt install python3")


def test_no_header_breaks_the_generator():
    """Whatever is wrong with it, it is said; nothing else comes out of the generator."""
    import library
    from signature import Bad
    with open(os.path.join(ODD, "odd.h"), encoding="utf-8") as f:
        odd = f.read()
    rest = random.Random(5)
    pieces = ["//@ ", "op ", "args ", "(", ")", ";", "*", ",", "...", "{", "}", '"', "'", "=", ":", "/*", "*/", "//", "\n", " ", "struct:", "buf", "handle", "new", "\\", "[", "]", "0",
              "99999", "void", "const", "none", "result=", "kind=open", "\0", "é", "#"]
    bad = good = 0
    with Tmp() as tmp:
        header = os.path.join(tmp, "x.h")
        for _ in range(int(os.environ.get("FEIGN_SEEDS", "12")) * 60):
            text = rest.choice((HEADER, odd))
            for _ in range(rest.choice((1, 1, 2, 8))):
                at = rest.randrange(len(text))
                how = rest.randrange(4)
                if how == 0:
                    text = text[:at] + rest.choice(pieces) + text[at:]
                elif how == 1:
                    text = text[:at] + text[at + rest.choice((1, 3, 30)):]
                elif how == 2:
                    lines = text.split("\n")
                    lines.insert(rest.randrange(len(lines)), rest.choice(lines))
                    text = "\n".join(lines)
                else:
                    text = text[:at] + rest.choice(pieces) + text[at + 1:]
            with open(header, "w", encoding="utf-8") as f:
                f.write(text)
            options = argparse.Namespace(header=header, output=os.path.join(tmp, "out"), name=None, library=None, include=[], feign_include=[], quiet=True)
            try:
                library.generate(options)
                good += 1
            except Bad as error:
                bad += 1
                assert str(error).startswith(header + ":") and len(str(error)) < 2000, error
            except Exception:
                sys.stdout.write(text)
                raise
    assert bad > 50 and good > 50, (bad, good)


def test_the_commands_of_the_readme():
    """examples/shelf/README.md: what it says to type works."""
    if not shutil.which("meson"):
        raise Skip("meson is not installed")
    needs_capture()
    with open(os.path.join(SHELF, "README.md"), encoding="utf-8") as f:
        commands = re.search(r"```\n(.*?)```", f.read(), re.S)[1]
    with Tmp() as tmp:
        for name in os.listdir(SHELF):
            shutil.copy(os.path.join(SHELF, name), tmp)
        out = run("sh", "-ec", commands, cwd=tmp, env={**os.environ, "PATH": os.path.dirname(FEIGN) + ":" + os.environ["PATH"]})
        assert out.count("100.00 %") == 2 and re.search(r"\n +shelf +182 ", out), out


if __name__ == "__main__":
    main(globals())
