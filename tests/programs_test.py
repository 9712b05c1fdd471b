#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real programs, traced here and replayed on two file systems: the trees they leave, and what came back otherwise."""
import atexit
import json
import os
import shutil
import subprocess
import tempfile

from harness import FEIGN, Skip, Tmp, feign, main, same_tree, tree

# program -> (fidelity that is enough, why). Only for what cannot be reproduced in principle.
SHORTFALLS = {
}

FIDELITY = 1
Y = ("-f", "-ttt", "-T", "-y", "-s", "64")
V = ("-f", "-ttt", "-T", "-v", "-s", "0")
FF = ("-ff", "-ttt", "-T", "-y", "-s", "64")

TEMP = tempfile.mkdtemp(prefix="feign-test.")
os.chmod(TEMP, 0o755)  # postgres goes through it as another user
ROOTS = {}  # file system -> a directory of it


def clean():
    if os.path.ismount(os.path.join(TEMP, "ext4")):
        subprocess.run(["umount", "-l", os.path.join(TEMP, "ext4")])
    for path in (ROOTS.get("tmpfs"), TEMP):
        if path:
            shutil.rmtree(path, ignore_errors=True)


atexit.register(clean)


def is_type(path, kind):
    done = subprocess.run(["stat", "-f", "-c", "%T", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return done.stdout.startswith(kind)


def roots():
    """The file systems that are to be had here: tmpfs, and ext4 of a loop device, or of the temporary directory."""
    if not ROOTS:
        if is_type("/dev/shm", "tmpfs"):
            ROOTS["tmpfs"] = tempfile.mkdtemp(prefix="feign-test.", dir="/dev/shm")
        image, mount = os.path.join(TEMP, "ext4.img"), os.path.join(TEMP, "ext4")
        os.mkdir(mount)
        with open(image, "wb") as f:
            f.truncate(2 << 30)
        loop = shutil.which("mkfs.ext4") and all(
            subprocess.run(c, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
            for c in (["mkfs.ext4", "-q", "-F", image], ["mount", "-o", "loop", image, mount]))
        if loop or is_type(TEMP, "ext2/ext3"):
            ROOTS["ext4"] = mount
        else:
            print("no ext4 here: no loop device, and the temporary directory is another file system")
    if not ROOTS:
        raise Skip("neither tmpfs nor ext4 is here")
    return ROOTS


def note(**what):
    """A line for each replay into the file that FEIGN_PROGRAMS_REPORT names."""
    if "FEIGN_PROGRAMS_REPORT" in os.environ:
        with open(os.environ["FEIGN_PROGRAMS_REPORT"], "a", encoding="utf-8") as f:
            f.write(json.dumps(what) + "\n")


def needs(*programs):
    for name in programs:
        if not shutil.which(name):
            raise Skip(name + " is not installed")


def record(name, script, before, options, user):
    """Runs a script in an empty directory, `before` untraced in its sibling `in`; the traces and the directory."""
    needs("strace")
    top = os.path.join(roots().get("ext4", TEMP), name)
    shutil.rmtree(top, ignore_errors=True)
    work = os.path.join(top, "w")
    for folder in (work, os.path.join(top, "in")):
        os.makedirs(folder)
        if user:
            shutil.chown(folder, user)
    if user:
        shutil.chown(top, user)
    as_user = ["runuser", "-u", user, "--"] if user else []
    env = {**os.environ, "LC_ALL": "C", "HOME": os.path.join(top, "in"), "GIT_CONFIG_NOSYSTEM": "1"}

    def run(cwd, *command):
        done = subprocess.run([*as_user, *command], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=120)
        if done.returncode:
            raise Skip(f"{name} does not run here under strace: " + done.stdout.decode("utf-8", "replace")[-300:])
    if before:
        run(os.path.join(top, "in"), "sh", "-ec", before)
    trace = os.path.join(top, "t.strace")
    run(work, "strace", *options, "-o", trace, "sh", "-ec", script)
    traces = sorted(os.path.join(top, f) for f in os.listdir(top) if f.startswith("t.strace"))
    return traces, work


def replays(name, script, before=None, options=Y, user=None, only=None, stream=True, least=None):
    """The program leaves a tree; its replays on every file system leave the same."""
    traces, work = record(name, script, before, options, user)
    want, problems = tree(work), []
    least = least or SHORTFALLS.get(name, (FIDELITY, None))[0]
    for fs, folder in roots().items():
        if only and fs != only:
            continue
        # "threads": a thread a stream, in recorded order. In stream order threads that share descriptors race:
        # there it is only counted, once.
        for order in ("trace", "threads", "depend") + (("stream",) if fs == next(iter(roots())) else ()) if stream else ("trace",):
            root = tempfile.mkdtemp(dir=folder)
            try:
                r = feign("replay", *traces, "--root", root, "--cwd", work, "--json", *(("--pace", "think,scale=0.001") if order == "threads" else ("--order", order)))
                if r.status == 2:
                    note(program=name, fs=fs, order=order, error=r.err)
                    problems.append(f"{fs}, {order}: {r.err}")
                    continue
                report, tree_says = r.json(), ""
                try:
                    same_tree(want, tree(root + work))
                except AssertionError as why:
                    tree_says = str(why)
                note(program=name, fs=fs, order=order, fidelity=report["fidelity"], mismatched=report["mismatched"],
                     activities=report["activities"], skipped=report["skipped"], tree=tree_says, mismatches=report["mismatches"],
                     skips=report["skips"], left_out=report["left_out"], interrupted=report["interrupted"], err=r.err)
                if order != "stream" and (report["fidelity"] < least or tree_says or report["interrupted"]):
                    problems.append(f"{fs}, {order}: fidelity {report['fidelity']:.4f}, tree {tree_says or 'same'}, "
                                    f"{[(m['op'], m['recorded'], m['replayed'], m['count'], m['first']) for m in report['mismatches'][:5]]}")
            finally:
                shutil.rmtree(root, ignore_errors=True)
    shutil.rmtree(os.path.dirname(work), ignore_errors=True)
    assert not problems, "\n".join(problems)


# A small tree with what trees have: depth, empty files and directories, links of both kinds, odd names and modes.
SOME_TREE = """
mkdir -p t/a/b/c t/empty t/many
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do seq $i 2000 > t/many/f$i; done
: > t/a/nothing; echo one > t/a/b/one; seq 30000 > t/a/b/c/big; ln t/a/b/one t/a/hard; ln -s b/one t/a/soft; ln -s b t/a/dir-link
ln -s nowhere t/dangling; echo odd > 't/a/a name with spaces'; chmod 600 t/a/b/one; truncate -s 100000 t/a/hole
"""
SOURCES = """
for i in 1 2 3 4; do
  printf '#include <stdio.h>\\n#include "all.h"\\nint f%d(int x) { printf("%%d", x); return x + N; }\\n' $i > f$i.c
done
printf '#define N 4\\n' > all.h
printf 'int f1(int), f2(int), f3(int), f4(int);\\nint main(void) { return f1(0) + f2(0) + f3(0) + f4(0) == 0; }\\n' > main.c
"""
GIT = "-c user.name=a -c user.email=a@b -c init.defaultBranch=main"


def test_git():
    needs("git")
    replays("git", f"git clone -q ../in/r r; cd r; echo more >> a/b/one; echo new > new; git add -A; git {GIT} commit -qm two; "
            "git status; git log -p > ../log; git checkout -q -b other HEAD~1; git gc -q; git status",
            f"{SOME_TREE} git {GIT} init -q r; cp -r t/a t/many r; cd r; git add -A; git {GIT} commit -qm one; echo x > x; git add x; git {GIT} commit -qm x")


def test_git_verbose_without_strings():
    needs("git")
    replays("git-v-s0", f"git init -q r; cd r; echo x > x; git add x; git {GIT} commit -qm x; git status", options=V)


def test_tar():
    needs("tar")
    replays("tar", "tar cf t.tar -C ../in t; tar xf t.tar; mkdir o; tar xf t.tar -C o t/a; tar tf t.tar > list", SOME_TREE)


def test_tar_gzip():
    needs("tar", "gzip")
    replays("tar-z", "tar czf t.tgz -C ../in t; tar xzf t.tgz; mkdir o; tar xzf t.tgz -C o", SOME_TREE)


def test_tar_verbose_without_strings():
    needs("tar")
    replays("tar-v-s0", "tar cf t.tar -C ../in t; tar xf t.tar", SOME_TREE, options=V)


def test_rsync():
    needs("rsync")
    replays("rsync", "rsync -a ../in/t .; sleep 0.01; echo more >> t/many/f1; rm t/many/f2; rsync -a --delete ../in/t .; rsync -aH --inplace ../in/t/ u", SOME_TREE)


def test_cp():
    needs("cp")
    replays("cp", "cp -r ../in/t r; cp -a ../in/t a; cp -rL ../in/t/a l; cp -l a/a/b/one hard; cp --sparse=always a/a/hole s; cp -u a/many/* .", SOME_TREE)


def test_cp_keeps_permissions():
    """It sets them as an access control list, if the system has them; so does feign record tell it."""
    needs("strace")
    modes = {"x": 0o751, "y": 0o640, "z": 0o777, "w": 0o400}
    with Tmp() as tmp:
        top, to, trace = (os.path.join(tmp, n) for n in ("from", "to", "trace"))
        os.mkdir(top)
        for name, mode in modes.items():
            with open(os.path.join(top, name), "w", encoding="utf-8") as f:
                f.write(name)
            os.chmod(os.path.join(top, name), mode)
        for tracer in (["strace", *Y, "-o", trace], ["strace", "-x", "-o", trace], [FEIGN, "record", "-q", "-o", trace + ".feign", "--"]):
            shutil.rmtree(to, ignore_errors=True)
            subprocess.run([*tracer, "cp", "-a", top, to], check=True)
            with Tmp() as root:
                report = feign("replay", tracer[tracer.index("-o") + 1], "--root", root, "--require", "1", "--json").json()
                assert not [name for name, op in report["ops"].items() if "setxattr" in name and op["skipped"]], tracer
                assert {name: os.stat(os.path.join(root + to, name)).st_mode & 0o7777 for name in modes} == modes, tracer


MAKEFILE = "printf 'p: main.o f1.o f2.o f3.o f4.o\\n\\tcc -o $@ $^\\n%%.o: %%.c all.h\\n\\tcc -c -o $@ $<\\nclean:\\n\\trm -f *.o p\\n' > Makefile"


def test_make():
    needs("make", "cc")
    replays("make", f"{SOURCES} {MAKEFILE}; make -s -j4; touch all.h; make -s -j4; ./p > out || true")


def test_make_a_file_a_process():
    needs("make", "cc")
    replays("make-ff", "cp ../in/* .; make -s -j4", SOURCES + MAKEFILE, options=FF)


def test_gcc():
    needs("gcc", "ar")
    replays("gcc", "cp ../in/* .; gcc -O1 -g -save-temps -c f1.c; gcc -c f2.c f3.c f4.c; ar rcs libf.a f?.o; gcc -o p main.c -L. -lf; strip p; ./p > out || true",
            SOURCES)


PYTHON = """
import os, shutil, tempfile, json, sys
sys.path.insert(0, ".")
os.makedirs("pkg/sub")
open("pkg/__init__.py", "w").write("x = 1")
open("pkg/sub/__init__.py", "w").write("y = 2")
import pkg.sub, email.message, xml.dom.minidom
with tempfile.TemporaryDirectory(dir=".") as d:
    open(os.path.join(d, "f"), "w").write("x" * 100000)
    shutil.copytree("pkg", os.path.join(d, "pkg"))
    shutil.move(os.path.join(d, "pkg"), "moved")
    shutil.copy(os.path.join(d, "f"), "kept")
with tempfile.TemporaryFile(dir=".") as f:
    f.write(b"x" * 10000); f.seek(0); f.read()
with tempfile.NamedTemporaryFile(dir=".", delete=False) as f:
    f.write(b"named"); f.flush(); os.fsync(f.fileno())
with open("seek", "wb+") as f:
    f.seek(100000); f.write(b"end"); f.seek(0); f.write(b"start"); f.truncate(50000)
    os.pwrite(f.fileno(), b"x" * 10, 60000); os.posix_fallocate(f.fileno(), 0, 70000)
    os.pread(f.fileno(), 100, 10); os.writev(f.fileno(), [b"a", b"bc"])
json.dump(list(range(5000)), open("list.json", "w")); json.load(open("list.json"))
os.symlink("kept", "link"); os.link("kept", "hard"); os.rename("kept", "kept2"); os.replace("hard", "kept3")
os.mkfifo("fifo"); os.utime("kept3"); os.chmod("kept3", 0o600)
for e in os.scandir("."): e.stat(follow_symlinks=False)
try: open("missing")
except OSError: pass
try: os.rmdir("pkg")
except OSError: pass
shutil.rmtree("moved"); shutil.make_archive("arch", "zip", "pkg")
if os.fork() == 0:
    open("child", "w").write("child"); os._exit(0)
os.wait()
"""


def test_python():
    needs("python3")
    replays("python", f"python3 - <<'EOF'\n{PYTHON}\nEOF")


def test_python_verbose_without_strings():
    needs("python3")
    replays("python-v-s0", f"python3 - <<'EOF'\n{PYTHON}\nEOF", options=V)


SQLITE = """
import sqlite3, sys, os
def connect():
    c = sqlite3.connect("d", timeout=20, isolation_level=None); c.execute("pragma journal_mode=%s"); return c
a, b = connect(), connect()
a.execute("create table if not exists t(k integer primary key, v text)")
for i in range(20):
    for c in (a, b):
        c.execute("begin immediate"); c.executemany("insert into t(v) values(?)", [("v%%d" %% j,) for j in range(20)]); c.execute("commit")
    b.execute("select count(*), sum(k) from t").fetchall()
a.execute("begin"); a.execute("delete from t where k > 300"); a.execute("rollback")
pid = os.fork() if len(sys.argv) == 1 else 1
if pid == 0:
    os.execv(sys.executable, [sys.executable, "-c", open("s.py").read(), "again"])
for i in range(10):
    a.execute("update t set v = v || 'x' where k %% 7 = ?", (i %% 7,))
if len(sys.argv) == 1: os.wait()
if len(sys.argv) == 1: a.execute("vacuum")
b.close(); a.close()
"""


def sqlite(mode):
    needs("python3")
    replays("sqlite-" + mode, f"cat > s.py <<'EOF'\n{SQLITE % mode}\nEOF\npython3 s.py")


def test_sqlite_rollback():
    sqlite("delete")


def test_sqlite_truncate():
    sqlite("truncate")


def test_sqlite_wal():
    sqlite("wal")


def test_sqlite_shell():
    needs("sqlite3")
    replays("sqlite-shell", "for i in 1 2 3; do echo 'pragma journal_mode=persist; create table if not exists t(a); insert into t values(1); select * from t;' | "
            "sqlite3 d > out$i; done; sqlite3 d .dump > dump; sqlite3 d '.backup copy'; sqlite3 e < dump")


def test_find_xargs():
    needs("find", "xargs")
    replays("find-xargs", "cp -r ../in/t t; find t -type f | xargs -d '\\n' -P2 -n3 wc -c > sizes; find t -name 'f1*' -print0 | xargs -0 rm; "
            "find t -type f -exec chmod 640 {} +; find t -empty -delete; find -L t > all || true; find t -newer all > none", SOME_TREE)


def test_sort():
    needs("sort")
    replays("sort", "seq 200000 > in; sort -R -S 1M -T . in > r; sort -S 1M -T . r > lexical; sort -n -S 1M -T . --parallel=2 -o r r; sort -mu in r > m; uniq m | comm - lexical > c 2>/dev/null || true")


def test_dd():
    needs("dd")
    replays("dd", "dd if=/dev/zero of=a bs=64k count=20; dd if=a of=b bs=4k skip=10 seek=20 count=30 conv=notrunc,fsync; dd if=a of=c bs=1000 count=77 oflag=append conv=notrunc; "
            "dd if=/dev/urandom of=r bs=1M count=1; dd if=a of=s bs=4k conv=sparse; dd if=a bs=8k count=4 | dd of=p obs=3k; dd if=a of=n iflag=nocache oflag=dsync bs=128k")


def test_dd_direct():
    needs("dd")
    if "ext4" not in roots():
        raise Skip("no ext4 here")
    replays("dd-direct", "dd if=/dev/zero of=a bs=64k count=20 oflag=direct; dd if=a of=b bs=64k iflag=direct oflag=direct; dd if=a of=c bs=4k count=30 iflag=direct; "
            "dd if=b of=a bs=4k seek=400 count=8 oflag=direct conv=notrunc; dd if=a of=d bs=1000 count=3 oflag=direct 2>/dev/null || true", only="ext4")


def test_fio():
    needs("fio")
    job = "--name=j --ioengine=psync --thread --numjobs=4 --size=256k --directory=. --randseed=1 --group_reporting --minimal"
    replays("fio", f"fio {job} --rw=randrw --bs=4k > 1; fio {job} --rw=write --bs=16k --fsync=4 > 2; fio {job} --rw=randread --bs=4k --direct=0 --filename=shared > 3")


BASH = """
exec 5> five 6<> six; echo to five >&5; echo to six >&6; exec 5>&-
cat <<E > here
$(echo substituted) and more
E
cat <<< string > herestring
( cd /; echo sub ) > sub; ( umask 077; echo x > private )
{ echo out; echo err >&2; } > out 2> err
{ echo both; ls nothing; } &> both
echo a >> app; echo b >> app; echo c | tee -a app >> tee
mkdir -p d/e; pushd d > /dev/null; echo in d > f; cd e; echo in e > ../g; popd > /dev/null
diff <(sort app) <(sort tee) > diff
while read -r l; do echo "line $l"; done < app > loop
for i in 1 2 3; do (echo $i > bg$i; sleep 0.0$i; cat bg$i) & done; wait
printf '%s\\n' * > glob; [ -e glob -a -d d -a ! -e no ] && : > tested
set -o noclobber; (echo x > glob) 2> clobber; set +o noclobber
mkfifo p; (echo through > p) & cat < p > from; rm p
exec 7< app; read -r a <&7; read -r b <&7; echo $a $b > read; exec 7<&-
x=$(< app); echo "$x" > slurp; : > trunc; echo full > trunc; : > trunc
"""


def test_bash():
    needs("bash")
    replays("bash", f"cat > s <<'EOF'\n{BASH}\nEOF\nbash s")


def test_calls_that_were_not_traced():
    """Whose closes, dups, forks and ends nothing tells but what -y says of the descriptors."""
    script = """
echo one > one; echo more >> one; (echo sub; sed s,x,y, one) > two
for i in 1 2 3; do echo $i; done > loop
exec 4>>log; echo a >&4; (echo c >&4); echo b >&4; exec 4>&-
cd ../in; echo x > ../w/x; cd ../w; echo y > y; sed s,x,y, loop >> one
{ echo e1 >&2; echo o1; } > out 2>&1
printf 'a b' | sed s/a/cc/ > s
"""
    for calls in ("openat,write", "openat,write,close", "openat,read,write"):
        replays("some-calls", script, options=("-f", "-ttt", "-T", "-y", "-e", "trace=" + calls))


def test_files_that_were_there():
    replays("there", "cat ../in/a ../in/b > c; cp ../in/big c2; head -c 10 ../in/big > h; tail -c 10 ../in/big > t; sed -i s/x/y/ ../in/b; mv ../in/m ../in/n; cat ../in/n > n; "
            "echo appended >> ../in/log; cat ../in/log > log; dd if=../in/big of=../in/over bs=100 count=3 conv=notrunc status=none; cat ../in/over | wc -c > ov; rm ../in/gone; "
            "mkdir ../in/dir/x; rmdir ../in/empty-dir; ls ../in > ls; cat ../in/empty > e; truncate -s 50 ../in/big; cat ../in/big > bb; ln ../in/n ../in/n2; ls -l ../in > all",
            "for i in a b m gone log; do echo $i > $i; done; seq 10000 > big; seq 1000 > over; mkdir dir empty-dir; echo k > dir/k; : > empty")


def test_links_in_the_middle():
    replays("links", "mkdir -p a/b; ln -s a/b l; echo 1 > l/../f; cat a/f > g; (cd l; echo 2 > ../h; cat ../../a/h > ../../i); ln -s $PWD abs; echo 3 > abs/x; cat abs/x > y; "
            "ls l/ > z; mv l l2; echo 4 > l2/w; rm l2; cat a/b/w > v; cat ../in/l/f > o; cat ../in/real/f > p; ls ../in/abs/ > q; find -L ../in -type f > s; cat ../in/up/f > t",
            "mkdir -p real x/y; echo 1 > real/f; ln -s real l; ln -s $PWD/real abs; ln -s x/../real up; ln -s l chain; ln -s f real/g")


def test_perl():
    needs("perl")
    replays("perl", """seq 1000 > in; perl -pi.bak -e 's/1/one/' in; perl -MFile::Temp=tempfile -MFile::Path=make_path -MFile::Copy -e '
make_path("a/b/c"); copy("in", "a/x"); move("a/x", "a/b/y"); my ($h, $n) = tempfile(DIR => "."); print $h "t" x 5000; close $h; rename $n, "t";
open(F, "+<", "t"); seek(F, 100, 0); read(F, $b, 10); print F "zz"; truncate(F, 3000); close F; open(G, ">>", "t"); print G "more"; close G;
utime(1, 1, "t"); for (glob("*")) { stat $_; -x $_ } sysopen(H, "h", 0x42); syswrite(H, "abc"); sysseek(H, 0, 0); sysread(H, $b, 3); unlink "in.bak"; system("cat t | wc -c > wc")'""")


def test_grep():
    needs("grep")
    replays("grep", "grep -r 77 ../in/t > found; cp -r ../in/t t; grep -rl 77 t > files; grep -rc one . > counts || true; grep -q odd -R t; zgrep x found > z || true", SOME_TREE)


def test_ripgrep():
    needs("rg")
    replays("rg", "cp -r ../in/t t; rg 77 t > found; rg -j2 -uu one > ../in/out; rg --files > ../in/files; rg --mmap 77 t/a > m; rg --no-mmap -c 1 t > c", SOME_TREE)


def test_ln_mv_rm():
    needs("mv")
    replays("names", """mkdir -p a/b c; echo 1 > a/1; echo 2 > a/b/2; ln a/1 h1; ln h1 h2; ln -s a s; ln -s ../h1 a/up; ln -sf c s2; ln -sfn a s2; ln -sr a/b/2 c/rel
echo via > s/via; cat s/b/2 > c/copied; mv a/1 c/1; mv a/b/2 h2; echo 2 > a/b/2; mv -n h2 h1; mv a z; rm s; ln -s z s; echo again >> s/via; cp s/b/2 s/b/3; mv s/b c/b; rm -r c/b; mkdir c/b; mv c/b z/new
ls -lR > list; ln h1 h1 2>/dev/null || true; mv z z/new 2>/dev/null || true; rmdir z 2>/dev/null || true; mv -T z y; mv --exchange a b 2>/dev/null || true
cd y; echo . > dot; cd ..; readlink -f s > rl || true; realpath y/via > rp; rm -rf y/new; touch -h s; touch -d @1 h1; unlink h1; install -D -m 700 list i/j/k; chmod -R u+w i; mktemp -d -p . XXXX > m; rm -r $(cat m) 2>/dev/null || true
truncate -s 5000 y/via; truncate -s -100 y/via; fallocate -l 9000 fa; fallocate -p -o 0 -l 4096 fa; split -b 1000 y/via part.; cat part.* > joined; shred -n 1 -u part.aa; sync joined; chown 0:0 joined""")


def test_a_slash_behind_a_link():
    needs("du", "find")
    replays("slash", "mkdir -p a/b; echo 1 > a/b/f; ln -s a s; ln -s none dangles; du s/ > l1; du s/. > l2; find s/ -type f > l3; ls -ld s/ dangles/ > l4 2>&1 || true; stat s/ > l5; cp -a s/ t; "
            "readlink s/ > l6 || true; touch -h -d @1 s/; chmod 700 s/; rm s/ 2> l7 || true; rmdir s/ 2> l8 || true; mv s/ u 2> l9 || true; mkdir s/n/; tar cf x.tar s/")


def test_links_told_after_they_were_used():
    before = "mkdir t; echo abc > t/f; echo 12345678 > g; ln -s ../w/t d; ln -s t/f k; ln -s g l; cp -a . ../w"
    script = ("cat d/f; echo n > d/n; mkdir d/new; cat t/f; ls t; readlink d; rm -r t/new t/n; ls d; cat k; echo y >> l; readlink l; wc -c g; echo z >> g; ls -l > o")
    for options in (Y, ("-f", "-ttt", "-T")):
        replays("links", script, before, options=options, least=1)
    replays("links", "cat m/../1; echo 2 > m/../2; readlink m; cat a/2; ls; cd m; cat ../1; pwd -P", "mkdir -p a/b; echo 1 > a/1; ln -s a/b m; cp -a . ../w", least=1)


def test_a_directory_that_is_gone():
    script = ("mkdir p p/d; cd p/d; rmdir ../d; echo x > f || :; ls; pwd -P || :; touch ../beside; cd ..; ls; cd ..; mkdir -p q/e q/g q/h; "
              "(cd q/e; mv ../e ../f; echo 1 > one; rm -r ../f; echo 2 > two || :; cat one || :; mkdir ../e; echo 3 > three || :); "
              "(cd q/g; rmdir ../g; mkdir ../g; touch ../g/new; touch a || :; cd .; touch b || :; ls; cd ../g; touch back); "
              "(mkdir i; echo i > i/i; cd q/h; mv -T ../../i ../h; touch c || :; ls ../h)")
    for options in (Y, ("-f", "-ttt", "-T")):
        replays("gone", script, options=options, least=1)


def test_gzip_xz():
    needs("gzip", "xz")
    replays("gzip-xz", "seq 50000 > a; cp a b; cp a c; cp a d; gzip a; gzip -k b; xz -T2 c; xz -k d; gunzip a.gz; xz -dc c.xz | gzip > e.gz; zcat e.gz b.gz > f; xz -d c.xz; bzip2 -k f 2>/dev/null || true")


def test_vim():
    needs("vim")
    replays("vim", "seq 2000 > f; vim -u NONE -es -c '%s/1/one/g' -c 'w' -c 'w! g' -c 'sp h' -c 'r f' -c 'wqa' f < /dev/null; "
            "vim -u NONE -es -c 'set backup backupcopy=no' -c '2,5d' -c 'x' f < /dev/null; vim -u NONE -es -c 'set undofile' -c 'norm! ddp' -c 'wq' g < /dev/null")


def test_ed():
    needs("ed")
    replays("ed", "seq 100 > f; printf '1,3d\\n$a\\nlast\\n.\\nw\\nw g\\nq\\n' | ed -s f; printf 'r f\\n1,$s/1/x/\\nw h\\nq\\n' | ed -s; sed -i.bak s/5/five/ f; sed -i s/6/six/ f g; patch -v > /dev/null 2>&1 || true; "
            "cp f n; echo x >> n; diff -u f n > d || true; patch -s -b f d 2>/dev/null || true")


def test_cmake_ninja():
    needs("cmake", "ninja", "cc")
    replays("cmake", "cp ../in/* .; cmake -G Ninja -B b . > /dev/null; ninja -C b > /dev/null; touch all.h; ninja -C b > out",
            SOURCES + "printf 'cmake_minimum_required(VERSION 3.10)\\nproject(p C)\\nadd_executable(p main.c f1.c f2.c f3.c f4.c)\\n' > CMakeLists.txt")


def test_redis():
    needs("redis-server", "redis-benchmark", "redis-cli")
    replays("redis", """s="$(cd ../in; pwd)/s"; redis-server --port 0 --unixsocket $s --appendonly yes --save 3600 1 --appendfsync everysec --logfile log &
while ! redis-cli -s $s ping > /dev/null 2>&1; do sleep 0.05; done
redis-benchmark -s $s -n 200 -t set -P 1 -q -c 4 > bench; redis-cli -s $s bgrewriteaof; sleep 0.3; redis-cli -s $s set a b; redis-cli -s $s save; redis-cli -s $s shutdown || true; wait""")


def test_postgres():
    needs("runuser")
    bins = sorted(f"/usr/lib/postgresql/{v}/bin" for v in (os.listdir("/usr/lib/postgresql") if os.path.isdir("/usr/lib/postgresql") else ()))
    bins = [b for b in bins if os.path.exists(b + "/pgbench") or shutil.which("pgbench")]
    if not bins or os.getuid():
        raise Skip("postgresql is not installed, or this is not root")
    replays("postgres", f"""PATH={bins[-1]}:$PATH; export PGHOST="$(cd ../in; pwd)" PGPORT=54321; trap 'test ! -e d/postmaster.pid || pg_ctl -D d -m immediate stop' EXIT; initdb -D d -A trust -N > init
pg_ctl -D d -w -l log -o "-c listen_addresses= -c unix_socket_directories=$PGHOST -c shared_buffers=2MB -c max_connections=8" start > start
pgbench -q -i -s 1 postgres 2> i; pgbench -t 50 -c 2 postgres > b 2>&1; psql -qc 'vacuum full' -c checkpoint postgres; pg_ctl -D d -m fast -w stop > stop""", user="postgres")


if __name__ == "__main__":
    main(globals())
