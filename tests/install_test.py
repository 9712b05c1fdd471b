#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is installed works: command, plug-ins, feign.pc, man page, completion; the template outside the tree."""
import glob
import os
import re
import shutil
import subprocess

from harness import BUILD, TOP, Skip, Tmp, main, sanitized

SHIPPED = os.path.join(TOP, "examples", "git-clone.strace.gz")


def run(*command, **how):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **how)
    assert done.returncode == 0, f"{command}:\n{done.stdout[-3000:]}"
    return done.stdout


def install(tmp):
    """Installs, and moves the prefix into a directory; where it is then."""
    if sanitized():
        raise Skip("a build with sanitizers is not for installing")
    run("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", os.path.join(tmp, "dest"))
    os.rename(os.path.join(tmp, "dest/usr/local"), os.path.join(tmp, "moved"))
    return os.path.join(tmp, "moved")


def headings(page):
    """What a link may name behind #, as GitHub makes it of a page's headings."""
    with open(page, encoding="utf-8") as f:
        text = re.sub(r"^```.*?^```", "", f.read(), flags=re.S | re.M)
    return {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.*)$", text, re.M)}


def test_installed_package_and_template():
    with Tmp() as tmp:
        prefix = install(tmp)
        feign = os.path.join(prefix, "bin/feign")
        plugindir = os.path.dirname(glob.glob(prefix + "/lib*/**/feign/1/strace.so", recursive=True)[0])
        # A moved prefix finds its plug-ins beside the command, and feign.pc what lies around it.
        assert "strace" in run(feign, "inspect", "--names")
        assert os.path.exists(prefix + "/share/man/man1/feign.1")
        assert os.path.exists(prefix + "/share/bash-completion/completions/feign")
        with open(prefix + "/share/doc/feign/layers/posix.md", encoding="utf-8") as f:
            assert "| handle = fd, length = count, offset = offset | `ssize_t pread64(" in f.read()
        for name in ("docs/record.md", "docs/mpi.md", "layers/mpi.h"):  # pages that help names
            with open(os.path.join(TOP, name), encoding="utf-8") as f, open(prefix + "/share/doc/feign/" + name.removeprefix("docs/"), encoding="utf-8") as g:
                assert f.read() == g.read()
        for page in glob.glob(prefix + "/share/doc/feign/**/*.md", recursive=True):
            with open(page, encoding="utf-8") as f:
                for link, heading in re.findall(r"\]\(([^)#:\s]*)(?:#([^)]+))?\)", f.read()):
                    target = os.path.join(os.path.dirname(page), link) if link else page
                    assert os.path.exists(target), (page, link)
                    assert not heading or heading in headings(target), (page, link, heading)
        root = os.path.join(tmp, "root")
        os.mkdir(root)
        assert "100.00 %" in run(feign, "replay", SHIPPED, "--root", root)

        # The template, against feign.pc alone.
        pc = os.path.dirname(glob.glob(prefix + "/**/feign.pc", recursive=True)[0])
        env = {**os.environ, "PKG_CONFIG_PATH": pc}
        assert os.path.samefile(run("pkg-config", "--variable=plugindir", "feign", env=env).strip(), plugindir)
        source, build = os.path.join(tmp, "mine"), os.path.join(tmp, "mine/build")
        shutil.copytree(prefix + "/share/doc/feign/examples/plugin-template", source)
        run("meson", "setup", build, source, "-Dwerror=true", env=env)
        run("ninja", "-C", build, env=env)
        out = run("meson", "test", "-C", build, env=env)
        assert re.search(r"Ok:\s+1\b", out), out
        so = os.path.join(build, "keep-large.so")
        assert "0 failed" in run(feign, "check", so)
        assert "min-length=SIZE" in run(feign, "inspect", so)
        assert "100.00 %" in run(feign, "replay", SHIPPED, "--root", root, "--with", so + ",min-length=0")
        names = run("nm", "-D", "--defined-only", so).split("\n")
        assert [n.split()[-1] for n in names if n and n.split()[1] not in "VWu"] == ["feign_plugin_v1"], names
        # … and installed, by name.
        shutil.copy(so, plugindir)
        assert "keep-large" in run(feign, "inspect", "keep-large")


def test_generate_from_an_installed_package():
    with Tmp() as tmp:
        prefix = install(tmp)
        feign, shelf = os.path.join(prefix, "bin/feign"), os.path.join(TOP, "examples/shelf")
        run("cc", "-shared", "-fPIC", "-o", os.path.join(tmp, "libshelf.so"), os.path.join(shelf, "shelf.c"))
        run(feign, "generate", os.path.join(shelf, "shelf.h"), "-o", os.path.join(tmp, "made"), "--library", os.path.join(tmp, "libshelf.so"))
        for source in ("shelf_capture.c", "shelf_replayer.c"):
            with open(os.path.join(tmp, "made", source), encoding="utf-8") as f:
                command = next(line for line in f if line.startswith(" *   cc "))[5:]
            assert TOP + "/include" not in command and prefix + "/include" in command, command
            run("sh", "-c", command, cwd=os.path.join(tmp, "made"))
        assert "0 failed" in run(feign, "check", os.path.join(tmp, "made/shelf.so"))


def test_who_asks_for_help_gets_nothing_installed_nor_built():
    with Tmp() as tmp:
        asked, build = os.path.join(tmp, "asked"), os.path.join(tmp, "build")
        for name in ("dpkg-query", "apt-get"):  # all is there, whoever asks
            with open(os.path.join(tmp, name), "w", encoding="ascii") as f:
                f.write(f"#!/bin/sh\necho ok installed\ntouch {asked}\n")
            os.chmod(os.path.join(tmp, name), 0o755)
        for command, status in ("quickstart", 2), ("run-tests", 0):
            r = subprocess.run([os.path.join(TOP, command), "--help"], capture_output=True, text=True,
                               env={**os.environ, "FEIGN_BUILD": build, "PATH": tmp + ":" + os.environ["PATH"]})
            assert r.returncode == status and "usage: " in r.stdout + r.stderr, r
            assert not os.path.exists(asked) and not os.path.exists(build), command


def test_short_form_of_the_readme():
    if sanitized():
        raise Skip("a plain compiler's object in a command with sanitizers")
    with open(os.path.join(TOP, "README.md"), encoding="utf-8") as f:
        code = re.search(r"```c\n(.*?)```", f.read(), re.S).group(1)
    with Tmp() as tmp:
        for name, compiler in (("no-writes.c", "cc"), ("no-writes.cc", "c++")):
            with open(os.path.join(tmp, name), "w", encoding="utf-8") as f:
                f.write(code)
            run(compiler, "-shared", "-fPIC", "-I", os.path.join(TOP, "include"), "-o", os.path.join(tmp, "it.so"), os.path.join(tmp, name),
                *(["-std=c++20"] if compiler == "c++" else []))
            root = os.path.join(tmp, name + ".root")
            os.mkdir(root)
            out = run(os.path.join(BUILD, "core/feign"), "replay", SHIPPED, "--root", root, "--with", os.path.join(tmp, "it.so"), "--json")
            assert '"write"' not in out and '"dropped": 584' in out, out[:600]


def test_a_build_without_mpi_names_what_it_lacks():
    names = run(os.path.join(BUILD, "core/feign"), "inspect", "--names").split()
    assert ("mpi: " in run(os.path.join(BUILD, "core/feign"), "inspect").split("\nNOT HERE\n")[-1]) == ("mpi" not in names)
    with Tmp() as tmp:
        out = run("meson", "setup", "-Dmpi=disabled", "-Dtests=disabled", tmp, TOP)
        assert re.search(r"left out\s*: mpi: .*-Dmpi=disabled", out), out
        with open(os.path.join(tmp, "compile_commands.json"), encoding="utf-8") as f:
            commands = f.read()
        assert re.search(r"FEIGN_LEFT_OUT=\W*mpi: feign was built without it", commands)
        assert "plugins/strace.so" in commands and not re.search(r"plugins/mpi\.so|feign-capture-mpi|openmpi", commands)


if __name__ == "__main__":
    main(globals())
