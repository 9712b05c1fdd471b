#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Traces of SIOX: made-up ones in all three forms, damaged ones, and those of ../shared/corpus."""
import gzip
import os
import re
import struct

from harness import BUILD, CORPUS, Skip, Tmp, bounded, feign, main, refuses, refuses_to_write_nothing
from tracetext_test import Made

# Ids are arbitrary, and never the same as another installation's.
ATTRIBUTES = {"POSIX/quantity/BytesToRead": 31, "POSIX/quantity/BytesToWrite": 32, "POSIX/quantity/BytesRead": 33, "POSIX/quantity/BytesWritten": 34,
              "POSIX/file/position": 40, "POSIX/file/extent": 41, "POSIX/hints/openFlags": 50, "POSIX/hints/advise": 51,
              "POSIX/descriptor/filename": 60, "POSIX/descriptor/filehandle": 61, "MPI/description/commRank": 70}
INTERFACES = {"SIOX": (101, "LowLevelAPI"), "POSIX": (102, ""), "POSIX_Network": (103, ""), "MPI": (104, "Generic")}
CALLS = [("SIOX", "init"), ("POSIX_Network", "socket"), ("MPI", "MPI_Init"), ("MPI", "MPI_File_open")] + [
    ("POSIX", n) for n in ("open", "open64", "close", "read", "write", "pwrite64", "writev", "lseek", "fsync", "posix_fadvise", "rename", "unlink",
                           "mmap", "dup2", "fopen", "fileno", "fclose", "fread", "setbuf", "stat")]
NUMBERS = {call: 200 + 3 * i for i, call in enumerate(CALLS)}
T = 1394459500_000000000
INT64, UINT64, INT32, UINT32, FLOAT, DOUBLE, STRING = range(7)
SHORT = {"asked": 31, "write": 32, "got": 33, "put": 34, "at": 40, "extent": 41, "flags": 50, "advise": 51, "name": 60, "fd": 61}


def call(name, start, stop, *attributes, pid=11, id=1, component=2, thread=1, parents=(), error=0, node=7, time=5, interface="POSIX"):
    """A record; attributes are (short name, value), times microseconds."""
    return dict(number=NUMBERS[interface, name], start=T + start * 1000, stop=T + stop * 1000, id=(node, pid, time, component, id, thread),
                parents=[(node, *(p if len(p) == 5 else (pid, time, component, p[0], thread))) for p in parents], attributes=attributes, error=error)


def packed(value):
    if isinstance(value, str):
        text = value.encode()
        return struct.pack("<BI", STRING, len(text)) + text
    return struct.pack("<Bq", INT64, value) if value < 0 else struct.pack("<BQ", UINT64, value)


def binary(records):
    out = b""
    for r in records:
        body = struct.pack("<IQQ", r["number"], r["start"], r["stop"]) + struct.pack("<IIIHII", *r["id"])
        body += struct.pack("<I", len(r["parents"])) + b"".join(struct.pack("<IIIHII", *p) for p in r["parents"])
        body += struct.pack("<I", 1) + struct.pack("<IIII", 1, 2, 3, 1) + struct.pack("<IBf", 1, FLOAT, 0.5)  # a remote call
        body += struct.pack("<I", len(r["attributes"]))
        for name, value in r["attributes"]:
            body += struct.pack("<I", SHORT[name]) + packed(value)
        body += struct.pack("<BIIII", 1, 1, 2, 3, r["error"])
        out += struct.pack("<Q", len(body)) + body
    return out


def archive(records):
    words, first = [], set()

    def vector(kind, count):
        if kind not in first:
            first.add(kind)
            words.extend((0, 0))
        words.extend((count, 0))
    for r in records:
        words += ["0", r["number"], r["start"], r["stop"], *r["id"]]
        vector("parents", len(r["parents"]))
        for p in r["parents"]:
            words += p
        vector("remote", 0)
        vector("attributes", len(r["attributes"]))
        for name, value in r["attributes"]:
            words += [SHORT[name]] + ([6, len(value.encode()), value] if isinstance(value, str) else [0 if value < 0 else 1, value])
        words += [-1, r["error"]]
    return " ".join(map(str, words)).encode()


def names(folder, ranks=None, environment=None):
    """The side files."""
    def put(name, text):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    item = "<item><first>{}</first><second>{}</second></item>\n".format
    put("ontology.dat", "<MAX_VALUE>99</MAX_VALUE>\n<map class_id=\"0\" tracking_level=\"0\" version=\"0\"><count>9</count>\n" + "".join(
        item(id, f"<attribute><id>{id}</id><name>{name.split('/', 1)[1]}</name><domain>{name.split('/')[0]}</domain><storageType>1</storageType></attribute>"
                 "<metas><count>0</count></metas><values><count>0</count></values>") for name, id in ATTRIBUTES.items()) + "</map>\n")
    put("system-info.dat", "<nextID>999</nextID>\n<valueStringMap>" + "".join(item(number, name) for (_, name), number in NUMBERS.items())
        + "</valueStringMap>\n<interfaceImplStrMap>" + "".join(
            item(id, f"<first>{name}</first><second>{implementation}</second>") for name, (id, implementation) in INTERFACES.items())
        + "</interfaceImplStrMap>\n<nodeMap>" + item("thunder &amp; co", 7) + "</nodeMap>\n<activityInterfaceIDMap>"
        + "".join(item(number, INTERFACES[interface][0]) for (interface, _), number in NUMBERS.items()) + "</activityInterfaceIDMap>\n<activityMap>"
        + "".join(f"<item><first><first>{INTERFACES[i][0]}</first><second>{n}</second></first><second>{number}</second></item>"
                  for (i, n), number in NUMBERS.items()) + "</activityMap>\n")
    process = "<nid>7</nid><pid>{}</pid><time>5</time>".format
    values = "<attids><count>1</count><item_version>0</item_version><item>{}</item></attids><values><count>1</count><item><type>1</type><v>{}</v></item></values>".format
    if ranks is not None or environment is not None:
        put("association.dat", "<LastAssociateID>1</LastAssociateID>\n<ProcessMap>" + "".join(
            item(process(pid), values(1, text)) for pid, text in (environment or {}).items()) + "</ProcessMap>\n<ComponentMap>" + "".join(
            item(f"<pid>{process(pid)}</pid><id>3</id>", values(70, rank)) for pid, rank in (ranks or {}).items()) + "</ComponentMap>\n")


def trace(tmp, records, form=binary, name="activities.dat", **side):
    names(tmp, **side)
    path = os.path.join(tmp, name)
    with open(path, "wb") as f:
        f.write(records if isinstance(records, bytes) else form(records))
    return path


def corpus(*parts):
    path = os.path.join(CORPUS, *parts)
    if not os.path.exists(path):
        raise Skip("there is no ../shared/corpus")
    return path


def text_of(tmp, *args):
    to = os.path.join(tmp, "out.txt")
    r = feign("convert", *args[:1], to, *args[1:])
    assert r.status == 0, r.err
    with open(to, encoding="utf-8") as f:
        return f.read().splitlines()


def left_out(path, *more):
    return {(e["call"], e["why"]): e["count"] for e in feign("info", path, "--json", *more).json()["left_out"]}


SIMPLE = [call("open", 0, 10, ("flags", 0o102), ("name", "/data/f"), ("fd", 5), id=1),
          call("write", 20, 30, ("write", 100), ("fd", 5), ("put", 100), id=2, parents=[(1,)]),
          call("lseek", 31, 32, ("fd", 5), ("at", 10), ("at", 10), id=3, parents=[(1,)]),
          call("read", 40, 45, ("asked", 200), ("fd", 5), ("got", 90), id=4, parents=[(1,)]),
          call("pwrite64", 50, 55, ("write", 7), ("fd", 5), ("at", 1000), ("put", 7), id=5),
          call("writev", 60, 61, ("write", 30), ("fd", 5), ("put", 30), id=6),
          call("posix_fadvise", 62, 63, ("fd", 5), ("at", 0), ("extent", 4096), ("advise", 3), id=7),
          call("close", 70, 71, ("fd", 5), id=8),
          call("open64", 80, 81, ("flags", 0), ("name", "/none"), id=9, error=2),
          call("rename", 90, 91, ("name", "/data/f"), ("name", "/data/g"), id=10)]
WANT = ['open(pathname="/data/f", flags=O_RDWR|O_CREAT, mode=0644) = 5 <0.000010000> handle=#1',
        "write(fd=#1, count=100) = 100 <0.000010000> at=0", "lseek(fd=#1, offset=10, whence=SEEK_SET) = 10",
        "read(fd=#1, count=200) = 90 <0.000005000> at=10", "pwrite64(fd=#1, count=7, offset=1000) = 7", "writev(fd=#1, iov=[30]) = 30 <0.000001000> at=100",
        "fadvise64(fd=#1, offset=0, len=4096, advice=POSIX_FADV_WILLNEED) = 0", "close(fd=#1) = 0",
        'open(pathname="/none", flags=O_RDONLY, mode=0644) = -ENOENT', 'rename(oldpath="/data/f", newpath="/data/g") = 0']


def is_simple(lines):
    assert len(lines) == len(WANT), lines
    for line, want in zip(lines, WANT):
        assert want in line, f"{line}\nwant {want}"


def test_every_form_says_the_same():
    with Tmp() as tmp:
        path = trace(tmp, SIMPLE)
        is_simple(text_of(tmp, path))
        printed = os.path.join(tmp, "printed.txt")
        assert feign("info", path, "--provider", f"siox,print={printed}").status == 0
        with open(printed, encoding="utf-8") as f:
            lines = f.read().splitlines()
        assert lines[3].endswith('.000020000 0.0000010000 (((7,11,5),2),2,1) POSIX  write(POSIX/quantity/BytesToWrite=100, '
                                 'POSIX/descriptor/filehandle=5, POSIX/quantity/BytesWritten=100) = 0 (((7,11,5),2),1,1)'), lines[3]
        os.unlink(os.path.join(tmp, "ontology.dat"))  # printed text needs no names
        is_simple(text_of(tmp, printed))
        for end in (".gz",):
            with gzip.open(printed + end, "wb") as f:
                f.write("\n".join(lines).encode())
            is_simple(text_of(tmp, printed + end))
    with Tmp() as tmp:
        is_simple(text_of(tmp, trace(tmp, SIMPLE, archive)))
    with Tmp() as tmp:
        r = feign("replay", trace(tmp, SIMPLE), "--root", tmp, "--json", "--require", "1")
        assert r.status == 0 and r.json()["bytes_written"] == 137, r.err


def test_an_attribute_without_a_value_says_nothing():
    """It is printed with nothing behind its name, and is no 0."""
    with Tmp() as tmp:
        printed = trace(tmp, b"".join(b'14:51:40.00000000%d 0.0000000001 (((1,2,3),1),%d,1) POSIX  %s = 0\n' % (i, i, what) for i, what in enumerate((
            b'open(POSIX/descriptor/filename="/f", POSIX/hints/openFlags=66, POSIX/descriptor/filehandle=5)',
            b"write(POSIX/quantity/BytesToWrite=100, POSIX/descriptor/filehandle=5, POSIX/quantity/BytesWritten=)"))))
        assert "write(fd=#1, count=100) = ?" in text_of(tmp, printed)[1], text_of(tmp, printed)


def test_records_at_the_end_of_calls_are_put_in_order():
    with Tmp() as tmp:
        # fileno was inside fopen, and inside fclose by what it says of its parents only.
        records = [call("fileno", 2, 3, ("fd", 5), id=2), call("fopen", 1, 10, ("name", "/f"), ("flags", 0), ("fd", 5), id=1),
                   call("fileno", 20, 21, ("fd", 5), id=4, parents=[(3,), (1,)]), call("fclose", 22, 30, ("fd", 5), id=3, parents=[(1,)]),
                   call("unlink", 50, 60, ("name", "/z"), id=6), call("unlink", 31, 32, ("name", "/a"), id=1, pid=12)]
        path = trace(tmp, records)
        lines = text_of(tmp, path)
        assert [re.search(r"\] (\S+?)\(", l)[1] for l in lines] == ["stdio:fopen", "stdio:fclose", "unlink", "unlink"], lines
        assert 'pathname="/a"' in lines[2] and "12/12" in lines[2], lines
        assert left_out(path) == {("fileno", "inside another call"): 2}


def test_a_threads_records_may_lie_in_several_files():
    """Also in one that has fewer of them, or is given twice."""
    with Tmp() as tmp:
        whole = trace(tmp, SIMPLE)
        want = text_of(tmp, whole)
        for cut in (1, 4, 8):
            parts = [trace(tmp, SIMPLE[:cut], name="activities.dat1"), trace(tmp, SIMPLE[cut:], name="activities.dat2")]
            for files in (parts, parts[::-1]):
                r = feign("convert", *files, to := os.path.join(tmp, "parts.txt"))
                assert r.status == 0, r.err
                with open(to, encoding="utf-8") as f:
                    assert f.read().splitlines() == want, files
        many = trace(tmp, SIMPLE * 200, name="activities.dat3")
        for files in ([many, whole], [whole, many], [many, many]):
            r = feign("info", "--json", *files)
            assert r.status == 0, (r.status, r.err)


def test_calls_inside_mpi_calls_are_replayed_unless_mpi_is():
    with Tmp() as tmp:
        records = [call("MPI_Init", 0, 10, interface="MPI", component=3), call("open", 30, 40, ("name", "/f"), ("flags", 66), ("fd", 5), id=2),
                   call("MPI_File_open", 20, 50, interface="MPI", component=3, id=2), call("init", 0, 1, interface="SIOX", component=1),
                   call("socket", 60, 61, interface="POSIX_Network", component=4)]
        path = trace(tmp, records)
        assert len(text_of(tmp, path)) == 1
        assert left_out(path) == {("MPI_Init", "of a layer that is not asked for"): 1, ("MPI_File_open", "of a layer that is not asked for"): 1,
                                  ("init", "the tracer's own"): 1, ("socket", "network"): 1}
        assert left_out(path, "--provider", "siox,layer=stdio")["open", "of a layer that is not asked for"] == 1


def test_a_descriptor_of_another_process_is_waited_for_and_has_its_file():
    with Tmp() as tmp:
        records = [call("open", 0, 10, ("flags", 66), ("name", "/shared"), ("fd", 5), id=1),
                   call("write", 20, 30, ("write", 3), ("fd", 5), ("put", 3), pid=12, id=1, parents=[(11, 5, 2, 1, 1)]),
                   call("write", 20, 31, ("write", 4), ("fd", 1), ("put", 4), pid=12, id=2, parents=[(11, 5, 2, 1, 1)])]
        path = trace(tmp, records)
        lines = text_of(tmp, path)
        assert 'path="/shared"' in lines[1] and 'path="/shared"' in lines[2], lines  # fd 1: a duplicate of it
        out = os.path.join(tmp, "t.tracetext")  # which shows dependencies
        assert feign("convert", path, out).status == 0
        with open(out + ".1", encoding="utf-8") as f:
            assert "WAIT(0)" in f.read()


def test_ranks():
    two = [call("MPI_Init", 5, 6, interface="MPI", component=3, pid=11), call("MPI_Init", 4, 9, interface="MPI", component=3, pid=12),
           call("unlink", 10, 11, ("name", "/a"), pid=11, id=2), call("unlink", 20, 21, ("name", "/b"), pid=12, id=2), call("unlink", 30, 31, ("name", "/c"), pid=9)]

    def ranks(records, **side):
        with Tmp() as tmp:
            return {s["process"]: s["rank"] for s in feign("info", trace(tmp, records, **side), "--json").json()["streams"]}
    assert ranks(two, ranks={11: 4, 12: 2}) == {11: 4, 12: 2, 9: -1}
    assert ranks(two, environment={11: "A=1 PMI_RANK=3 B=2", 12: "OMPI_COMM_WORLD_RANK=0"}) == {11: 3, 12: 0, 9: -1}
    assert ranks(two) == {11: 1, 12: 0, 9: -1}  # by MPI_Init
    assert ranks(two[2:]) == {9: 0, 11: 1, 12: 2}  # by process number
    assert ranks(two[2:3]) == {11: -1}


def test_some_ranks_only():
    with Tmp() as tmp:
        path = trace(tmp, [call("unlink", 10 + pid, 11 + pid, ("name", f"/{pid}"), pid=pid) for pid in range(6)])

        def left(*ranks):
            return [int(re.search(r"rank (\d+)", l)[1]) for l in text_of(tmp, path, *ranks)]
        assert left("--ranks", "0,3-4") == [0, 3, 4]
        assert left("--ranks", "^0,3-4") == [1, 2, 5]
        assert feign("replay", path, "--root", tmp, "--ranks", "1", "--json").json()["activities"] == 1
        assert feign("info", path, "--ranks", "1-2", "--json").json()["activities"] == 2
        refuses("info", path, "--ranks", "x", text="--ranks x: want numbers and ranges, such as 0,3-5")
        refuses("info", path, "--ranks", "^", text="--ranks \\^: want numbers")


def test_files_without_a_name_and_positions_that_are_none():
    with Tmp() as tmp:
        records = [call("open", 0, 10, ("flags", 0o1102), ("name", ""), ("fd", 5), id=1), call("write", 20, 30, ("write", 100), ("fd", 5), ("put", 100), id=2),
                   call("lseek", 31, 32, ("fd", 5), ("at", 0x7fa400000123), id=3), call("fopen", 40, 41, ("flags", 0), ("name", ""), id=4, error=2)]
        path = trace(tmp, records)
        lines = text_of(tmp, path)
        assert 'path="/unnamed/11.1"' in lines[1] and len(lines) == 3, lines
        assert left_out(path) == {("lseek", "does not say enough to do it again"): 1}
        assert "1 calls open a file that has no name" in feign("info", path).out


def test_a_descriptors_file_of_a_name_that_no_path_is():
    """Each directory of it would be known, by its whole name: memory by the square of its length."""
    for folders, known in (128, True), (129, False):
        with Tmp() as tmp:
            name = ("/" + 127 * "a") * folders
            lines = text_of(tmp, trace(tmp, [call("read", 0, 10, ("asked", 5), ("fd", 5), ("got", 5), ("name", name))]))
            assert len(lines) == 1 and (name in lines[0]) == known, folders


def test_damaged_files():
    with Tmp() as tmp:
        good = binary(SIMPLE)
        sizes = [0]
        while sizes[-1] < len(good):
            sizes.append(sizes[-1] + 8 + struct.unpack_from("<Q", good, sizes[-1])[0])
        second = sizes[1]

        def says(data, text):
            refuses("info", trace(tmp, data), "--provider", "siox", text=r"activities\.dat: " + text)

        def changed(offset, form, value):
            data = bytearray(good)
            struct.pack_into(form, data, second + offset, value)
            return bytes(data)
        says(good[:second + 3], f"record 2 at byte {second}: the file ends in the middle of its size")
        says(good[:second + 20], f"record 2 at byte {second}: the file ends \\d+ bytes before it does")
        says(changed(0, "<Q", 1 << 60), f"record 2 at byte {second}: a size of {1 << 60} bytes, want 59 to 64 MiB")
        says(changed(0, "<Q", 3), f"record 2 at byte {second}: a size of 3 bytes")
        says(changed(12, "<Q", 1 << 63), f"record 2 at byte {second}: it ends before it starts")
        says(changed(50, "<I", 1 << 30), f"record 2 at byte {second}: its parents are more than it has room for")
        attribute = good.index(struct.pack("<IB", 32, UINT64), second) - second
        says(changed(attribute + 4, "<B", 9), f"record 2 at byte {second}: an attribute of an unknown type, want 0 to 7")
        says(changed(attribute - 4, "<I", 2), f"record 2 at byte {second}: it is longer than its parts")
        says(b"\0" * 100, "record 1 at byte 0: want a SIOX activity file")
        text = archive(SIMPLE)
        says(text[:-30], r"record 10 at byte \d+: ")
        says(text.replace(b" 32 1 100 ", b" 32 9 100 "), r"record 2 at byte \d+: an attribute of the unknown type 9, want 0 to 7")
        for value in "0.5", "-1.2345678901234567e-300", "inf":
            feign("info", trace(tmp, text.replace(b" 32 1 100 ", f" 32 5 {value} ".encode())), "--provider", "siox")
        for value in "x", "1.5x", "1e999":
            says(text.replace(b" 32 1 100 ", f" 32 5 {value} ".encode()), rf"record 2 at byte \d+: \"{value}\": want an attribute's value")
        says(text.replace(b" 32 1 100 ", b" 32 x 100 "), r"record 2 at byte \d+: \"x\": want an attribute's type")
        says(text.replace(b"6 7 /data/f", b"6 99999999999 /data/f"), r"record 1 at byte \d+: a text of 99999999999 bytes")
        line = b"14:51:40.000000001 0.0000000005 (((1,2,3),1),1,1) POSIX  close(POSIX/descriptor/filehandle=5) = 0\n"
        for bad, what in ((line.replace(b"0.00", b"x.00"), "want HH:MM:SS.NANO"), (line.replace(b"(((1", b"((1"), "want HH:MM"),
                          (line.replace(b"=5)", b"=abc)"), "\"abc\": want a number of at most 64 bits"), (line.replace(b"=5)", b"=5x)"), "\"5x\": want a number"),
                          (line.replace(b"=5)", b"=99999999999999999999)"), "\"9{20}\": want a number"), (line.replace(b"14:", b"24:"), "want HH:MM:SS"),
                          (line.replace(b":51:", b":60:"), "want HH:MM:SS"), (line.replace(b":40.", b":61."), "want HH:MM:SS"),
                          (line.replace(b"= 0", b"= x"), "want the error's number"), (line.replace(b"=5)", b"=5"), "a value that does not end|want \"\\) = "),
                          (line[:70] + b"\n", "want ATTRIBUTE=VALUE|INTERFACE"), (line[:-1] + b" (((1,2\n", "want parents' ids")):
            refuses("info", trace(tmp, line + bad), "--provider", "siox", text=f"activities\\.dat:2: .*({what})")


def test_side_files_that_are_missing_or_broken():
    with Tmp() as tmp:
        path = trace(tmp, SIMPLE)
        for name, option in (("ontology.dat", "ontology"), ("system-info.dat", "system-info")):
            with open(os.path.join(tmp, name), "rb") as f:
                text = f.read()
            for broken, says in ((text[:len(text) // 2], r":\d+: the file ends within"), (b"<a></b>", r":1: </b> ends <a> of line 1"), (b"", ": (has no|names no)")):
                with open(os.path.join(tmp, name), "wb") as f:
                    f.write(broken)
                refuses("info", path, text=name + says)
            os.unlink(os.path.join(tmp, name))
            refuses("info", path, text=f"there is no {name} beside it.*or as option {option}")
            with gzip.open(os.path.join(tmp, "elsewhere.gz"), "wb") as f:
                f.write(text)
            assert feign("info", path, "--provider", f"siox,{option}={tmp}/elsewhere.gz").status == 0
            with open(os.path.join(tmp, name), "wb") as f:
                f.write(text)


def there_and_back(tmp, source):
    """What text says of a trace in the native format, and of it after it was in SIOX's; and the warning."""
    a, x, b = (os.path.join(tmp, n) for n in ("a.feign", "x.siox", "b.feign"))
    assert feign("convert", *([source] if isinstance(source, str) else source), a).status == 0
    r = feign("convert", a, x)
    assert r.status == 0, r.err
    assert sorted(os.listdir(x)) == ["activities.dat", "association.dat", "ontology.dat", "system-info.dat"]
    again = feign("convert", x, b)
    assert again.status == 0, again.err
    return text_of(tmp, a), text_of(tmp, b), r.err


def same(first, second, of):
    for one, other in zip(first, second):
        assert one == other, f"{of}:\n  {one}\n  {other}"
    assert len(first) == len(second), of


def test_native_to_siox_to_native_is_the_identity():
    first = int(os.environ.get("FEIGN_SEED", 1))
    for seed in range(first, first + int(os.environ.get("FEIGN_SEEDS", 15))):
        with Tmp() as tmp:
            made = Made(seed)
            # SIOX knows of no parts of vectors, and of no dependencies.
            made.lines = [[re.sub(r"writev\((\d+), .*\) = (\d+)", r"write(\1, \2) = \2", l) for l in lines if "WAIT" not in l and "SIGNAL" not in l]
                          for lines in made.lines]
            made.files(tmp)
            files = [os.path.join(tmp, f"t.{i}") for i in range(len(made.lines))]
            a, b, said = there_and_back(tmp, ["--provider", "tracetext", *files])
            assert re.fullmatch(r"feign: siox: not expressed in siox: \d+ processes without a number\n", said), f"seed {seed}: {said}"
            same(*([re.sub(r" -?\d+/\d+]", "]", line) for line in lines] for lines in (a, b)), f"seed {seed}")


def test_calls_on_no_descriptor_are_the_same_after_siox():
    """As programs close what they may have inherited: the number is -1, and none of them is lost."""
    bad = " = -1 EBADF (Bad file descriptor) <0.1>\n"
    with Tmp() as tmp:
        path = os.path.join(tmp, "a.strace")
        with open(path, "w", encoding="ascii") as f:
            f.write('1 100.0 open("/d/f", O_RDWR|O_CREAT, 0666) = 3 <0.1>\n1 100.2 close(3) = 0 <0.1>\n'
                    f'1 100.4 close(3){bad}1 100.6 write(-1, "", 3){bad}1 100.8 pread64(7, "", 9, 10){bad}1 101.0 dup2(7, 9){bad}'
                    f'1 101.2 ftruncate(7, 9){bad}1 101.4 lseek(7, 0, SEEK_SET){bad}')
        a, b, said = there_and_back(tmp, path)
        assert len(a) == 8 and said == "", (a, said)
        same(a, b, path)


def test_streams_that_are_opened_anew_are_the_same_after_siox():
    """What freopen closes, whether it opens or fails; where a stream then is depends on whence, which SIOX does not record."""
    reopens = []
    for seed in (1, 2, 3):
        with Tmp() as tmp:
            work, trace = os.path.join(tmp, "w"), os.path.join(tmp, "t.feign")
            os.mkdir(work)
            program = os.path.join(BUILD, "tests", "plugins", "stdio-program.so")
            assert feign("--plugin", f"{program},dir={work},seed={seed}", "--plugin", f"feign,file={trace}").status == 0
            a, b, said = there_and_back(tmp, trace)
            assert re.fullmatch(r"feign: siox: not expressed in siox: \d+ what lseek counts from\n", said), said
            same(*([re.sub(r" at=\d+", "", line) for line in lines if ":fseek(" not in line] for lines in (a, b)), f"seed {seed}")
            reopens += [line for line in a if ":freopen(" in line and "closed=#" in line]
    assert any(") = -" in line for line in reopens) and any(" handle=#" in line for line in reopens), reopens


def test_corpus_traces_are_the_same_after_siox():
    folder = os.path.dirname(corpus("siox", "flash-io", "activities.dat1743"))
    for source in (corpus("siox", "mpiom", "activities.dat10222.gz"), corpus("siox-text", "activities.dat"),
                   [os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f.startswith("activities.dat")]):
        with Tmp() as tmp:
            a, b, _ = there_and_back(tmp, source)
            same(a, b, source)


def test_what_siox_cannot_express_is_counted_and_named():
    with Tmp() as tmp:
        path = os.path.join(tmp, "a.strace")
        with open(path, "w", encoding="ascii") as f:
            f.write('1 100.0 mkdir("/d", 0755) = 0 <0.1>\n1 100.2 open("/d/f", O_RDWR|O_CREAT, 0600) = 3 <0.1>\n'
                    '1 100.4 lseek(3, 0, SEEK_END) = 0 <0.1>\n1 100.6 fork() = 2 <0.1>\n')
        _, lines, said = there_and_back(tmp, path)
        assert said.count("\n") == 1 and "not expressed in siox: " in said, said
        for part in ("1 fork (processes)", "1 mkdir (its mode)", "1 modes", "1 what lseek counts from"):
            assert part in said, (part, said)
        assert len(lines) == 2 and "[1 1/1]" in lines[0], lines
        refuses("convert", path, os.path.join(tmp, "x.siox"), text=r"x\.siox: exists; want the name of a new folder")
        assert not [f for f in os.listdir(tmp) if ".part" in f]


def test_a_trace_without_a_call_that_siox_has_is_refused():
    refuses_to_write_nothing("x.siox", "posix and stdio")


def test_memory_does_not_grow_with_the_trace():
    with Tmp() as tmp:
        bounded(lambda count: trace(tmp, binary(SIMPLE) * count), "info", trace(tmp, b""), counts=(200, 4000))


def test_corpus_the_flash_trace_of_the_paper():
    path = corpus("siox", "flash-io", "activities.dat1743")
    with Tmp() as tmp:
        writes = [int(m[1]) for l in text_of(tmp, path) if (m := re.search(r" write\(fd=#\d+, count=(\d+)\)", l))]
        assert len(writes) == 782 and sum(n in (4, 8) for n in writes) == 640 and sum(writes) == 9467928
        r = feign("replay", path, "--root", tmp, "--json", "--require", "1")
        assert r.status == 0 and r.json()["ops"]["write"]["activities"] == 782, r.err


def test_corpus_all_ranks_of_flash_replay():
    folder = os.path.dirname(corpus("siox", "flash-io", "activities.dat1743"))
    files = [os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f.startswith("activities.dat")]
    with Tmp() as tmp:
        r = feign("replay", *files, "--root", tmp, "--json", "--require", "1")
        assert r.status == 0 and len(r.json()["streams"]) == 8, r.err


def test_corpus_mpiom_is_accounted_for_record_by_record():
    path = corpus("siox", "mpiom", "activities.dat10222.gz")
    with Tmp() as tmp:
        info = feign("info", path, "--json").json()
        assert info["activities"] + sum(e["count"] for e in info["left_out"]) == 18218
        assert len(info["streams"]) == 10
        r = feign("replay", path, "--root", tmp, "--json", "--require", "1")
        assert r.status == 0, r.err
        j = r.json()
        assert j["matched"] + j["mismatched"] > 3000 and j["bytes_written"] > 300 << 20


def test_corpus_mpiom_keeps_its_long_pauses():
    path = corpus("siox", "mpiom", "activities.dat10222.gz")
    # In the order of the file, as the original counted: from the end of the last record to the start of the next.
    with gzip.open(path) as f:
        data = f.read()
    gaps, last, at = 0, 0, 0
    while at < len(data):
        size, _, start, stop = struct.unpack_from("<QIQQ", data, at)
        gaps += last != 0 and start > last + 1_000_065_000
        last, at = stop, at + 8 + size
    assert gaps == 19
    with Tmp() as tmp:
        pauses = [int(m[1]) for l in text_of(tmp, path) if (m := re.search(r" compute=(\d+)", l))]
        assert sum(p > 1_000_065_000 for p in pauses) >= gaps


def test_corpus_mpiom_printed_is_the_same_text():
    path, text = corpus("siox", "mpiom", "activities.dat10222.gz"), corpus("siox", "mpiom", "siox-trace-reader-output.txt.gz")
    with gzip.open(text, "rt", encoding="latin1") as f:
        want = [l for l in f.read().split("\n") if not l.startswith("#")]
    with Tmp() as tmp:
        printed = os.path.join(tmp, "printed")
        assert feign("info", path, "--provider", f"siox,print={printed}", env={"TZ": "Europe/Berlin"}).status == 0
        with open(printed, encoding="latin1") as f:
            got = f.read().split("\n")
        # In that text, processes were given the names of ranks afterwards.
        rank = {}
        for a, b in zip(got, want):
            for number, name in zip(re.findall(r"\(\(\(([^)]*)\)", a), re.findall(r"\(\(\(([^)]*)\)", b)):
                assert rank.setdefault(number, name) == name
        assert len(got) == len(want) == 18221  # with the two of the head, and the end
        assert [re.sub(r"\(\(\(([^)]*)\)", lambda m: f"((({rank[m[1]]})", l) for l in got] == want
        # Read as text, it comes to the same calls.
        assert len(text_of(tmp, path)) == len(text_of(tmp, text))


def test_corpus_the_older_text_archive():
    path = corpus("siox-text", "activities.dat")
    info = feign("info", path, "--json").json()
    assert info["activities"] + sum(e["count"] for e in info["left_out"]) == 211
    with Tmp() as tmp:
        r = feign("replay", path, "--root", tmp, "--json", "--require", "1")
        assert r.status == 0 and r.json()["bytes_written"] == 100 << 20, r.err


if __name__ == "__main__":
    main(globals())
