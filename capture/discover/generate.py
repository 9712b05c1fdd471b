#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the wrappers of libfeign-discover.so from a layer's description: each call on files that libc
has, and whose arguments are plain, is announced, held, made, and written down as //TRACE's text.

usage: generate.py LAYERS-FOLDER HEADER > FILE
"""
import re
import sys

sys.path.insert(0, sys.argv[1])
import generate  # noqa: E402

KINDS = {"open", "close", "read", "write", "seek", "stat", "change", "size", "flush", "dup"}
ROLES = {"-", "fd", "fd2", "dir", "dir2", "path", "path2", "text2", "buf", "readback2", "length", "offset", "flags",
         "mode", "iov", "stat", "statx", "at"}
# Not in libc under this name, or something else there.
ABSENT = {"openat2", "close_range", "getdents", "getdents64", "readdir", "_llseek", "ioctl", "faccessat2", "fchmodat2",
          "sync", "sync_file_range2", "bind", "mknod", "mknodat"}
LIBC = {"newfstatat": "fstatat"}


def wrapper(op, names):
    returns, parameters = re.match(r"(.*?)\b\w+\s*\((.*)\)$", op.prototype).groups()
    parameters = [p.strip() for p in parameters.split(",")]
    called = [re.sub(r"\[\d*\]", "", p).split()[-1].lstrip("*") for p in parameters]
    roles = dict(zip((a.role for a in op.args), op.args))

    def given(role):
        return called[op.args.index(roles[role])] if role in roles else None

    here = "AT_FDCWD"
    folder = given("dir") or here
    folder2 = given("dir2") or here
    # On which files the call is: descriptors, and paths.
    asks = []
    if "fd" in roles:
        asks.append(f"known(node, {given('fd')})")
    if "fd2" in roles and op.kind != "dup":
        asks.append(f"known(node, {given('fd2')})")
    if "path" in roles:
        asks.append(f"wanted(node, {folder}, {given('path')})")
    name = LIBC.get(op.name, op.name)
    lines = [f"{returns}feign_{op.name}({', '.join(parameters)}) __asm__(\"{name}\");",
             f"{returns}feign_{op.name}({', '.join(parameters)}) {{",
             f"  static {returns}(*real)({', '.join(parameters)});",
             f"  if (real == 0) *(void **)&real = dlsym(RTLD_NEXT, \"{name}\");",
             "  if (real == 0) { errno = ENOSYS; return -1; }",
             "  struct node *node = enter();",
             f"  if (node == 0) return real({', '.join(called)});"]
    call = f"real({', '.join(called)})"
    slow = "fd" in roles and op.kind in ("read", "write")
    lines += [f"  if (!({' && '.join(asks)})) {{",
              *(["    wait_begin(node, \"%s\");" % op.name] if slow else []),
              f"    const {returns}other = {call};",
              *(["    wait_end(node);"] if slow else []),
              "    leave(node);",
              "    return other;",
              "  }",
              "  struct line line;", f"  call_begin(&line, node, \"{op.name}\");"]
    # What the call itself may change is written down before it.
    text, printed = [], False
    for arg, parameter in zip(op.args, called):
        if generate.ROLES[arg.role][2] == "NONE":
            continue
        if printed:
            text.append("  put(&line, \", \");")
        printed = True
        if arg.role in ("path", "path2"):
            text.append(f"  put_path(&line, {folder if arg.role == 'path' else folder2}, {parameter});")
        elif arg.role == "text2":
            text.append(f"  put_quoted(&line, {parameter});")
        elif arg.role == "readback2":
            text.append("  put(&line, \"\\\"\\\"\");")
        elif arg.role == "iov":
            text.append(f"  put_parts(&line, {parameter}, (int){called[called.index(parameter) + 1]});")
        elif arg.role == "at":
            text.append(f"  put_at(&line, {parameter});")
        elif arg.role in ("fd", "fd2"):
            text.append(f"  put_fd(&line, node, {parameter}, {int(op.kind == 'dup' and arg.role == 'fd2')});")
        elif arg.role in ("dir", "dir2"):
            text.append(f"  put_dir(&line, node, {parameter});")
        elif arg.role == "mode" and op.kind == "open" and "flags" in roles:
            # Without one of these there is none, and what is in its place is left from other calls.
            text.append(f"  put_number(&line, {given('flags')} & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)) ? (long)mode : 0);")
        else:
            text.append(f"  put_number(&line, (long){parameter});")
    lines += text
    lines += ["  call_now(node);", f"  const {returns}result = {call};", "  line.error = errno;"]
    if op.kind == "open":
        lines.append("  const long shown = opened(node, (int)result);")
    elif op.kind == "dup":
        lines.append(f"  const long shown = duplicated(node, (int)result, {given('fd2') or -1});")
    elif op.kind == "close":
        lines.append(f"  closed(node, {given('fd')});")
    shown = "shown" if op.kind in ("open", "dup") else "(long)result"
    lines += [f"  call_end(node, &line, {shown});", "  leave(node);", "  return result;", "}"]
    for alias in names:
        lines.append(f"extern __typeof__(feign_{op.name}) feign_{op.name}_{alias} __asm__(\"{alias}\") "
                     f"__attribute__((alias(\"{name}\")));")
    return "\n".join(lines)


def main():
    layer = generate.parse(sys.argv[2])
    print("/* Made by capture/discover/generate.py. */")
    for op in layer.ops:
        if (op.kind not in KINDS or op.name in ABSENT or op.number >= 140 or
                any(a.role not in ROLES or a.form != "kPlain" for a in op.args)):
            continue
        if not any(a.role in ("fd", "path") for a in op.args):
            continue
        if len(op.args) != len([p for p in re.match(r".*?\((.*)\)$", op.prototype).group(1).split(",") if p.strip()]):
            continue
        absent = {"oldstat", "oldlstat", "oldfstat"}
        names = [alias for alias, of in layer.aliases if of == op.name and alias not in absent and "32" not in alias
                 and "time64" not in alias]
        print("\n" + wrapper(op, names))


main()
