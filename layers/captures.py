# SPDX-License-Identifier: MIT
"""What capturing a layer is made of: of system calls by number (capture/hook.c; what is behind `put_…` is in arguments.c), and of a
library's calls by symbol wrappers (capture/capture.h says how they record)."""
import re

from description import HEAD, ROLES


def number(arg, at=None):
    """A kept number of a system call, as wide as its parameter."""
    text = f"a[{arg.position if at is None else at}]"
    if "*" in arg.type or re.search(r"long|size_t|off_t|64|aio_context_t", arg.type):
        return f"(uint64_t){text}"
    if re.search(r"unsigned|uint32_t|mode_t", arg.type):
        return f"(uint32_t){text}"
    return f"(uint64_t)(int){text}"


def put(op, arg, befores):
    """The statement that keeps an argument of a system call."""
    i, field = arg.position, "FEIGN_FIELD_" + ROLES[arg.role][2]
    if arg.form in ("kStruct", "kMember"):
        value = f"{op.name}_{i}->{arg.member}"
        if arg.role == "acl":
            size = next(a.member for a in op.args if a.position == i and a.role == "length")
            return f"if ({op.name}_{i} != 0) put_acl(r, (long){value}, (long){op.name}_{i}->{size}, result);"
        return f"if ({op.name}_{i} != 0) " + (
            f"feign_put_value_at(r, {arg.index}, (uint64_t){value});" if arg.role == "value"
            else f"feign_put_number(r, {field}, {value});")
    if arg.role in ("fd", "fd2"):
        return f"feign_put_fd(r, {field}, (int)a[{i}]);"
    if arg.role in ("dir", "dir2"):
        return f"feign_put_dir(r, {field}, (int)a[{i}]);"
    if arg.role == "path" and op.effect == "getcwd":
        return f"put_output(r, {field}, a[{i}], result - 1);"
    if op.effect == "readlink" and arg.role == "path":
        return f"put_string(r, {field}, a[{i}], of_readlink(result, a[{i + 2}]));"
    if arg.role in ("path", "path2", "text2"):
        second = any(a.role in ("path", "text2") and a.position < i for a in op.args)
        return f"put_string(r, {field}, a[{i}], {'of_second(result)' if second else 'result'});"
    if arg.role == "readback2":
        return f"put_output(r, {field}, a[{i}], result);"
    if arg.role in ("length", "offset"):
        return f"feign_put_{arg.role}(r, {number(arg)});"
    if arg.role in ("flags", "mode"):
        if op.name == "clone":
            i = 0   # the kernel's order of arguments is not its prototype's
        elif op.name in ("preadv2", "pwritev2"):
            i = 5   # a position has two halves
        return f"feign_put_{arg.role}(r, (uint32_t)a[{i}]);"
    if arg.role == "value":
        return f"feign_put_value_at(r, {arg.index}, {number(arg)});"
    if arg.role == "at" and "off_t" in arg.type:
        befores.append(i + 1)
        return f"feign_put_value_at(r, {arg.index}, before[{len(befores) - 1}]);"
    if arg.role == "at":
        return f"if (result == 0) feign_put_value_at(r, {arg.index}, *(const uint64_t *)a[{i}]);"
    if arg.role == "iov":
        return f"put_iov(r, a[{i}], a[{i + 1}], result);"
    if arg.role in ("stat", "statx", "fds"):
        return f"put_{arg.role}(r, a[{i}], result);"
    if arg.role == "acl":
        return f"put_acl(r, a[{i}], a[{i + 1}], of_second(result));"
    if arg.role == "rights":
        return f"put_rights(r, a[{i}], a[{i + 1}], result);"
    if arg.role == "times":
        form = 1 if "timeval" in arg.type else 2 if "utimbuf" in arg.type else 0
        return f"put_times(r, a[{i}], result, {form});"
    return ""


# For `feign discover`: calls on files, and calls that others may keep waiting.
FILE_KINDS = ("open", "close", "read", "write", "seek", "stat", "change", "size", "flush", "dup", "list")
WAITING_EFFECTS = ("wait", "futex", "connect", "accept", "receive", "send", "semaphore", "flock", "aio_wait")
AT_START_EFFECTS = ("close", "connect", "send", "write", "pwrite", "pwrite2", "fork", "vfork", "clone")
AT_ONCE_KINDS = ("open", "seek", "stat", "change", "size", "flush", "dup", "list")   # they keep nobody waiting


def by_place(args):
    """Values in the order of their places, as feign_put_value_at wants them; all else where it is."""
    values = iter(sorted((a for a in args if a.role in ("value", "at")), key=lambda a: a.index))
    return [next(values) if a.role in ("value", "at") else a for a in args]


def capture(layer):
    """System calls by number: what is kept of each, and how."""
    out, rows, watched, fills = [HEAD], [], [], []
    for op in layer.ops:
        befores, lines = [], []
        if op.effect in ("fcntl", "ioctl", "bind", "connect", "accept"):
            lines = [put(op, a, befores) for a in op.args if a.form == "kPlain"] + [f"put_{op.effect}(r, a, result);"]
        elif op.effect != "aio":
            for a in by_place(op.args):
                if a.form == "kStruct":
                    lines.append(f"STRUCT({op.name}_{a.position}, {a.type.replace('*', '').replace('const ', '').strip()}, a[{a.position}]);")
                lines.append(put(op, a, befores))
        if op.effect == "open" and op.result == "fd":
            lines.append(f"put_opened(r, a[{next(a.position for a in op.args if a.role == 'path')}], result);")
        kept = [(a.role, a.position) for a in op.args if put(op, a, [])] if op.kind in ("read", "write") else []
        flags = [name for name, holds in (
            ("kNumbers", kept[:2] == [("fd", 0), ("length", 2)] and kept[2:] in ([], [("offset", 3)]) and all(number(op.args[p]).startswith("(uint64_t)a[") for _, p in kept[1:])),
            ("kAndOffset", kept == [("fd", 0), ("length", 2), ("offset", 3)]),
            ("kState", op.kind in ("open", "close", "dup", "process") or op.effect in ("fcntl", "map", "unmap", "remap")),
            ("kData", op.kind in ("read", "write")),
            ("kTexts", any(a.role in ("path", "path2", "text2", "readback2", "iov", "rights") for a in op.args)),
            ("kAlone", op.effect in ("exec", "exit", "exit_group")),
            ("kAtStart", op.effect in AT_START_EFFECTS), ("kAtOnce", op.kind in AT_ONCE_KINDS),
            ("kAio", op.effect == "aio"), ("kSpecial", op.effect in ("fork", "vfork", "clone")),
            ("kMakesFd", op.result == "fd" or op.effect == "fcntl"), ("kDuplicates", op.effect in ("dup", "dup2", "fcntl")),
            ("kGetsFd", op.foreign and op.result == "fd"), ("kGetsFds", op.foreign and op.result != "fd")) if holds]
        body = "".join(f"  {line}\n" for line in lines if line)
        if op.effect == "readlink":
            befores = [f"kOverPath + {next(a.position + 1 for a in op.args if a.role == 'path')}"]
        befores = (befores + [0, 0])[:2]
        places = [next((a.position + 1 for a in op.args if a.role == role and a.form == "kPlain"), 0) for role in ("fd", "dir", "path")]
        file = op.kind in FILE_KINDS and op.effect not in ("aio", "bind")
        waits = op.effect in WAITING_EFFECTS
        watched.append(f'#ifdef SYS_{op.name}\n    [SYS_{op.name}] = {{{int(file)}, {int(waits)}, {places[0]}, {places[1]}, {places[2]}, "{op.name}"}},\n#endif\n')
        out.append(f"#ifdef SYS_{op.name}\nstatic __attribute__((used)) void fill_{op.name}(struct feign_record *to, const long *a, long result, const uint64_t *before) {{\n"
                   # A copy stays in registers, which what is written through it could be told to change.
                   f"  struct feign_record copy = *to, *const r = &copy;\n"
                   f"  (void)a, (void)result, (void)before;\n{body}  to->at = r->at;\n}}\n#endif\n")
        fills.append(op.name)
        rows.append(f"#ifdef SYS_{op.name}\n    [SYS_{op.name}] = {{{len(fills)}, FEIGN_CAPTURE_OP(FEIGN_CAPTURE_{layer.name.upper()}, {op.number}), "
                    f"{' | '.join(flags) or '0'}, {{{befores[0]}, {befores[1]}}}}},\n#endif\n")
    # By distance: pointers in a table would have the loader write to its pages as each program starts.
    out.append('__asm__(".pushsection .rodata\\n.balign 4\\nfill_table:\\n.long 0\\n"\n' +
               "".join(f'#ifdef SYS_{name}\n    ".long fill_{name} - fill_table\\n"\n#else\n    ".long 0\\n"\n#endif\n' for name in fills) +
               '    ".popsection");\n'
               f"enum {{ kFills = {len(fills)} }};\n")
    for i, (name, _, passed) in enumerate(layer.left_out):
        if passed != "pause":
            rows.append(f"#ifdef SYS_{name}\n    [SYS_{name}] = {{{len(fills) + 1}, FEIGN_CAPTURE_OP(FEIGN_CAPTURE_LEFT_OUT, {i}), 0, {{0, 0}}}},\n#endif\n")
        if passed in ("waits", "asks"):
            watched.append(f'#ifdef SYS_{name}\n    [SYS_{name}] = {{0, 1, 0, 0, 0, "{name}"}},\n#endif\n')
    out.append("static const struct described kDescribed[] = {\n" + "".join(rows) + "};\n")
    out.append("static const struct watched_call kWatched[] = {\n" + "".join(watched) + "};\n")
    return "".join(out)


def wrapper(layer, op, name, prototype, keys):
    """The definition that a program finds before the library's own."""
    match = re.match(r"(.*?)\b(\w+)\s*\((.*)\)$", prototype)
    returns, params = match[1].strip(), [p.strip() for p in match[3].split(",")]
    params = [] if params == ["void"] else params
    names = [re.sub(r"\[\d*\]", "", p).split()[-1].lstrip("*") for p in params]
    variadic = bool(params) and params[-1] == "..."
    stream = "stream" if "stream" in keys else next((n for p, n in zip(params, names) if "FILE *" in p), None)
    fd = keys.get("fd") or (f"descriptor({stream})" if stream else None)
    head = f"{returns} wrap_{name}({', '.join(params) or 'void'})"
    # Under a name of its own: system headers make macros and aliases of the real one.
    out = [f'EXPORT {head} __asm__("{name}");\n{head} {{\n']
    real, called = name, f"({keys.get('arguments', ', '.join(names))})"
    if variadic:
        real, called = re.match(r"(\w+)(\(.*\))$", keys["call"]).groups()
        types = ", ".join([p.rpartition(n)[0] for p, n in zip(params[:-1], names[:-1])] + ["va_list"])
    else:
        types = ", ".join(p.rpartition(n)[0] for p, n in zip(params, names)) or "void"
    out.append(f"  static {returns} (*real)({types});\n  FIND(real, \"{real}\");\n")
    if "stream" in keys:
        out.append(f"  FILE *const stream = {keys['stream']};\n")
    if stream and op.kind == "close":
        out.append(f"  leave({stream});\n")
    elif stream:
        out.append(f"  HOLD({stream});\n")
    puts = []
    for a in op.args:
        if a.role == "fd":
            a_fd = fd if fd else next(n for p, n in zip(params, names) if p.startswith("int "))
            out.append(f"  const int handle = {a_fd};\n")
            puts.append("feign_put_fd(&record, FEIGN_FIELD_HANDLE, handle);")
        elif a.role == "fd2":
            out.append(f"  const int handle2 = descriptor({stream});\n")
            puts.append("feign_put_fd(&record, FEIGN_FIELD_HANDLE2, handle2);")
        elif a.role == "path":
            puts.append(f"if ({a.name} != NULL && result != -EFAULT) feign_put_path(&record, {a.name}, strlen({a.name}));")
        elif a.role in ("flags", "offset", "mode") or (a.role == "length" and "length" not in keys):
            parameter = keys.get(a.role) or a.name
            if a.role == "length" and parameter not in names:
                parameter = names[-1]
            puts.append(f"feign_put_{a.role}(&record, {'(uint32_t)' if a.role != 'offset' else '(uint64_t)'}({parameter}));")
    if op.kind == "write":
        out.append("  no_error(&held);\n")
    if "length" in keys:
        puts.append(f"feign_put_length(&record, (uint64_t)({keys['length']}));")
    if "before" in keys:
        out.append(f"  const int64_t before = {keys['before']};\n")
    if "first" in keys:
        out.append(f"  {keys['first']};\n")
    out.append("  struct feign_call call;\n  feign_call_begin(&call);\n")
    if variadic:
        out.append(f"  va_list list;\n  va_start(list, {names[-2]});\n")
    out.append(f"  {'' if returns == 'void' else 'const ' + returns + ' r = ' if '*' not in returns else returns + ' const r = '}real{called};\n")
    if variadic:
        out.append("  va_end(list);\n")
    if returns == "FILE *":
        out.append("  seen_now(r);\n")
    out.append("  const int e = errno;\n  (void)e;\n  feign_capture_quiet(1);\n"
               f"  {'' if op.kind == 'write' else 'const '}int64_t result = (int64_t)({keys.get('result', '0')});\n"
               f"{'  if (result >= 0 && has_error(&held)) result = -e;' + chr(10) + '  if (result < 0) held.seen = NULL;' + chr(10) if op.kind == 'write' else ''}"
               "  struct feign_record record;\n"
               "  feign_capture_quiet(0);\n"
               f"  if (feign_call_end(&call, &record, FEIGN_CAPTURE_OP(FEIGN_CAPTURE_{layer.name.upper()}, {op.number}), result, 0)) {{\n")
    out += [f"    {line}\n" for line in puts]
    out.append("    feign_record_end(&record);\n  }\n")
    if stream and op.kind == "write":
        out.append(f"  wrote(&held, {stream}, result);\n")
    out.append("  errno = e;\n")
    out.append("}\n\n" if returns == "void" else f"  return {keys.get('return', 'r')};\n}}\n\n")
    return "".join(out)


def op_numbers(layer):
    """For what is written by hand beside the wrappers."""
    return "enum {\n" + "".join(f"  OP_{op.name} = {op.number},\n" for op in layer.ops) + "};\n\n"


def wrappers(layer):
    out = [HEAD, op_numbers(layer)]
    for op in layer.ops:
        if not op.capture:
            continue
        own = [(op.name, op.prototype, op.capture)]
        own += [(re.match(r".*?\b(\w+)\s*\(", prototype)[1], prototype, {**op.capture, **keys}) for prototype, keys in op.variants]
        known = {name for name, _, _ in own}
        own += [(alias, re.sub(rf"\b{op.name}\b", alias, op.prototype, count=1), op.capture)
                for alias, described in layer.aliases if described == op.name and alias not in known]
        for name, prototype, keys in own:
            out.append(wrapper(layer, op, name, prototype, keys))
    return "".join(out)
