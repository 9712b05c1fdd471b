# SPDX-License-Identifier: MIT
"""A layer's description, read from its annotated header (the language is described in posix.h)."""
import re
import shlex

from signature import Bad, Signature

KINDS = "other open close read write seek stat list change size flush dup process".split()
RESULTS = {"bytes": "EXACT", "zero": "EXACT", "position": "EXACT", "number": "EXACT",
           "fd": "SUCCESS", "pid": "SUCCESS", "any": "SUCCESS"}
# What a call does about other ranks (layers/mpi.h), as enum Does has it (core/trace/does.h).
DOES = """nothing begin send receive send-receive keep-send keep-receive probe start end end-some request meet from-root to-root
upwards neighbours make-comm make-window meet-window window make-type init finalize""".split()
# role: (C++ Role, feign_arg_type, feign_slot)
ROLES = {
    "-": ("kSkip", "NUMBER", "NONE"), "fd": ("kFd", "FD", "HANDLE"), "fd2": ("kFd2", "FD", "HANDLE2"),
    "dir": ("kDir", "FD", "HANDLE"), "dir2": ("kDir2", "FD", "HANDLE2"),
    "path": ("kPath", "PATH", "PATH"), "path2": ("kPath2", "PATH", "PATH2"),
    "text2": ("kText2", "PATH", "PATH2"), "buf": ("kBuffer", "BUFFER", "NONE"),
    "readback2": ("kReadback2", "PATH", "PATH2"), "names": ("kNames", "PATH", "PATH2"), "length": ("kLength", "NUMBER", "LENGTH"),
    "offset": ("kOffset", "NUMBER", "OFFSET"), "flags": ("kFlags", "FLAGS", "FLAGS"),
    "mode": ("kMode", "MODE", "MODE"), "value": ("kValue", "NUMBER", "VALUE"),
    "iov": ("kIov", "LIST", "VALUE"), "stat": ("kStat", "BUFFER", "NONE"),
    "statx": ("kStatx", "BUFFER", "NONE"), "acl": ("kAcl", "BUFFER", "NONE"), "fds": ("kFds", "LIST", "VALUE"),
    "rights": ("kRights", "BUFFER", "NONE"),
    "at": ("kAt", "NUMBER", "VALUE"), "times": ("kTimes", "LIST", "VALUE"),
    "result": ("kResult", "NUMBER", "NONE"), "iocbs": ("kIocbs", "NUMBER", "NONE"),
    "rank": ("kValue", "NUMBER", "VALUE"), "tag": ("kValue", "NUMBER", "VALUE"),
    "count": ("kValue", "NUMBER", "VALUE"), "request": ("kValue", "NUMBER", "VALUE"),
    "comm": ("kValue", "STRING", "VALUE"), "datatype": ("kValue", "STRING", "VALUE"),
    "text": ("kValue", "STRING", "VALUE"), "list": ("kValue", "LIST", "VALUE"),
}
# What a third party's library has beside those (layers/library.py), and which of those it has.
LIBRARY_ROLES = {
    "handle": ("kFd", "FD", "HANDLE"), "handle-at": ("kFd", "FD", "HANDLE"), "handle2": ("kFd2", "FD", "HANDLE2"),
    "new": ("kFd2", "FD", "HANDLE2"), "out": ("kSkip", "NUMBER", "NONE"),
    **{role: ROLES[role] for role in "- path path2 text buf length offset flags mode value count result".split()},
}


MOST_VALUES = 4096   # as in capture/capture.h


class Arg:
    def __init__(self, text, param, form="kPlain", member=None, roles=ROLES):
        parts = text.split(":")
        self.form, self.member = form, member
        self.role = parts[0]
        if self.role not in roles:
            raise Bad(f'role "{text}": want one of {", ".join(roles)}')
        self.slot = roles[self.role][2]
        self.index = 0
        self.group = ""
        rest = parts[1:]
        self.placed = self.slot != "VALUE" or self.role in ("iov", "fds", "times")
        if rest and rest[0].isdigit() and not self.placed:
            self.index = int(rest.pop(0))
            if self.index >= MOST_VALUES:
                raise Bad(f'role "{text}": want an index below {MOST_VALUES}')
            self.placed = True
        if self.role == "at" and not self.placed:
            raise Bad(f'role "{text}": want {self.role}:INDEX')
        if rest:
            self.group = rest.pop(0)
        if rest:
            raise Bad(f'role "{text}": want ROLE, ROLE:GROUP or ROLE:INDEX:GROUP')
        self.name = member or param or self.role
        self.position, self.type = None, ""   # of the parameter that holds it


def arguments(text, param, roles=ROLES):
    """The kept arguments that one parameter holds: one, or a struct's members."""
    if name := re.match(r"(\w+)=(.*)", text):
        return [Arg(name[2], name[1], roles=roles)]
    if not text.startswith("struct:"):
        return [Arg(text, param, roles=roles)]
    out = []
    for part in text[len("struct:"):].split(","):
        member, equals, role = part.partition("=")
        if not equals:
            raise Bad(f'role "{text}": want struct:MEMBER=ROLE,…')
        out.append(Arg(role, param, "kMember" if out else "kStruct", member, roles))
    return out


def place(args):
    """Gives values without an index the next free ones; a list, which has no end, the last."""
    taken = {a.index for a in args if a.placed and a.slot == "VALUE"}
    for a in sorted((a for a in args if not a.placed), key=lambda a: a.role == "list"):
        a.index, a.placed = next(i for i in range(len(args) + 1) if i not in taken), True
        taken.add(a.index)
    if sum(a.role == "list" for a in args) > 1:
        raise Bad("two lists: want one, which takes all values that are left")


class Op:
    def __init__(self, number, name, fields, library=False):
        self.number, self.name = number, name
        self.kind = fields.get("kind", "other")
        self.effect = fields.get("effect")
        self.result = fields.get("result", "zero")
        self.fails = fields.get("fails")
        self.does = fields.get("does")
        self.nofollow = "nofollow" in fields
        self.cloexec = fields.get("cloexec")
        self.foreign = "foreign" in fields   # brings descriptors of another process: the result, or in a message
        self.persistent = None   # what makes a request whose every start is this call
        self.args, self.replay, self.prototype = [], None, ""
        self.capture, self.variants = {} if library else None, []   # of a library's calls: what a wrapper keeps
        self.signature = None   # of a third party's
        self.line = 0


class Layer:
    def __init__(self):
        self.name, self.summary, self.first, self.line = "", "", 0, 0
        self.every = []
        self.groups, self.ops, self.left_out, self.aliases = {}, [], [], []


def words(text):
    try:
        return shlex.split(text)
    except ValueError as error:
        raise Bad(f"{text}: {error}") from None


def keys_of(fields, known):
    """KEY=VALUE …, and what stands alone as a key without a value."""
    keys = dict(f.partition("=")[::2] for f in fields)
    for key in keys:
        if key not in known and key + "=" not in known:
            raise Bad(f'"{key}": want {", ".join(known) or "no more here"}')
        if sum(f.partition("=")[0] == key for f in fields) > 1:
            raise Bad(f'"{key}": is there twice, want it once')
    return keys


def one_of(what, text, known):
    if text not in known:
        raise Bad(f'{what} "{text}": want one of {", ".join(known)}')
    return text


class Parser:
    """Reads a header line by line. In one of a third party's, what is not annotated is passed over."""

    ANNOTATIONS = "layer names op args more every replay capture variant persistent alias left-out".split()
    LIBRARY_ANNOTATIONS = "layer fails names op args capture replay alias".split()
    LIBRARY_RESULTS = {"bytes": "EXACT", "zero": "EXACT", "position": "EXACT", "number": "EXACT",
                       "handle": "SUCCESS", "any": "SUCCESS"}
    FAILS = ("errno", "negative", "code", "nonzero", "zero", "never")

    def __init__(self, library=False):
        self.layer, self.library = Layer(), library
        self.fails = "errno"
        self.in_comment = False
        self.begin(None)

    def begin(self, op):
        self.op, self.arg_texts, self.more, self.proto = op, [], [], ""

    def line(self, line):
        stripped = line.strip()
        if self.library:
            if not self.in_comment and stripped.startswith("//@"):
                return self.annotation(stripped[3:].strip())
            return self.text(self.without_comments(line))
        if self.in_comment:
            self.in_comment = "*/" not in stripped
        elif stripped.startswith("/*"):
            self.in_comment = "*/" not in stripped
        elif stripped.startswith("//@"):
            self.annotation(stripped[3:].strip())
        elif stripped and not stripped.startswith("//"):
            if not self.op:
                raise Bad("a prototype without an op annotation")
            self.text(stripped)
        return None

    def without_comments(self, line):
        out = ""
        while line:
            if self.in_comment:
                _, self.in_comment, line = line.partition("*/")
                self.in_comment = not self.in_comment
                continue
            block, end = line.find("/*"), line.find("//")
            if end >= 0 and (block < 0 or end < block):
                return out + line[:end]
            if block < 0:
                return out + line
            out, line, self.in_comment = out + line[:block] + " ", line[block + 2:], True
        return out

    def text(self, text):
        text = text.strip()
        if not self.op or not text:
            return
        if self.library and (text.startswith("#") or "{" in text.partition(";")[0]):
            raise Bad(f'op {self.op.name}: "{text}": want its prototype here')
        self.proto += " " + text
        if ";" in text if self.library else text.endswith(";"):
            self.prototype(self.proto.partition(";")[0].strip() if self.library else self.proto.strip().rstrip(";"))

    def annotation(self, body):
        layer, (word, _, rest) = self.layer, body.partition(" ")
        one_of("annotation", word, self.LIBRARY_ANNOTATIONS if self.library else self.ANNOTATIONS)
        if word in ("args", "more", "replay", "capture") and not self.op:
            raise Bad(f"{word} {rest}: there is no op above")
        if word == "replay":
            self.op.replay = rest.strip()
            return
        fields = words(rest) if word != "variant" else []
        least = {"layer": 2, "names": 1, "op": 2, "alias": 2, "fails": 1, "left-out": 2}.get(word, 0)
        if len(fields) < least:
            raise Bad(f'{word} {rest}: want {least} words or more')
        if word == "capture":
            self.op.capture = {} if fields == ["none"] and not self.library else dict(f.partition("=")[::2] for f in fields)
            if self.library:
                keys_of(fields, ("result=", "length=", "before=", "call="))
        elif word == "variant":
            variant, _, keys = rest.partition("|")
            if not layer.ops:
                raise Bad(f"variant {rest}: there is no op above")
            layer.ops[-1].variants.append((variant.strip(), dict(f.partition("=")[::2] for f in words(keys))))
        elif word == "layer":
            if layer.name:
                raise Bad(f"layer {fields[0]}: there is layer {layer.name} above")
            layer.name, layer.summary = fields[:2]
            layer.first = int(keys_of(fields[2:], () if self.library else ("first=",)).get("first", 0))
        elif word == "fails":
            self.fails = one_of("fails", fields[0], self.FAILS)
        elif word == "names":
            layer.groups[fields[0]] = fields[1:]
            if self.library and not (re.fullmatch(r"[A-Za-z_]\w*", fields[0]) and all(re.fullmatch(r"[A-Za-z_]\w*(=.+)?", f) for f in fields)):
                raise Bad(f"names {rest}: want GROUP CONSTANT[=VALUE] …")
        elif word == "persistent":
            op = layer.ops[-1] if layer.ops and not self.op else None
            if op is None or op.persistent or len(fields) != 1 or layer.name != "mpi" or not any(a.name == "request" for a in op.args):
                raise Bad(f"persistent {rest}: want NAME, once, behind the prototype of a call of layer mpi with a request")
            op.persistent = fields[0]
        elif word == "op":
            self.described(fields)
        elif word == "args":
            self.arg_texts = fields
        elif word in ("more", "every"):
            if not all(re.match(r"\w+=", f) for f in fields):
                raise Bad(f"{word} {rest}: want NAME=ROLE …")
            if word == "more":
                self.more = fields
            else:
                layer.every += fields
        elif word == "alias":
            if len(fields) != 2:
                raise Bad(f"alias {rest}: want NAME OP")
            name, described = fields
            if not any(o.name == described for o in layer.ops):
                raise Bad(f"alias {name}: there is no op {described} above")
            if self.library and (not re.fullmatch(r"[A-Za-z_]\w*", name) or any(o.name == name for o in layer.ops) or name in dict(layer.aliases)):
                raise Bad(f'alias "{name}": want a name that is not described yet')
            layer.aliases.append((name, described))
        elif word == "left-out":
            if fields[0] not in PASSED:
                raise Bad(f'left-out {fields[0]}: want {"|".join(PASSED)}')
            for name in fields[2:]:
                layer.left_out.append((name, fields[1], fields[0]))

    def described(self, fields):
        if self.op:
            raise Bad(f"op {self.op.name} has no prototype")
        if self.library and not self.layer.name:
            raise Bad(f'op {fields[1]}: want //@ layer NAME "what it is" above it')
        if not re.fullmatch(r"[0-9]{1,4}", fields[0]) or not 1 <= int(fields[0]) <= 4095:
            raise Bad(f'op "{fields[0]}": want a number from 1 to 4095, which is for ever')
        keys = keys_of(fields[2:], ("kind=", "result=", "fails=") if self.library else ("kind=", "effect=", "does=", "result=", "cloexec=", "nofollow", "foreign"))
        op = Op(int(fields[0]), fields[1], keys, self.library)
        kinds = [k for k in KINDS if k not in ("dup", "process")] if self.library else KINDS
        one_of("kind", op.kind, kinds)
        if op.cloexec not in (None, "always") and not re.fullmatch(r"[1-9][0-9]{0,8}", op.cloexec):
            raise Bad(f'cloexec "{op.cloexec}": want a flag as a number, or always')
        one_of("result", op.result, self.LIBRARY_RESULTS if self.library else RESULTS)
        if op.does:
            one_of("does", op.does, DOES)
        if self.library:
            op.fails = one_of("fails", op.fails or self.fails, self.FAILS)
        if any(o.number == op.number or o.name == op.name for o in self.layer.ops):
            raise Bad(f"op {op.number} {op.name} is there twice")
        self.begin(op)

    def prototype(self, text):
        op, layer = self.op, self.layer
        op.prototype = text
        roles = LIBRARY_ROLES if self.library else ROLES
        if self.library:
            op.signature = Signature(text, op.name)
            params = [p.text for p in op.signature.params]
        else:
            match = re.match(r".*?\b(\w+)\s*\((.*)\)$", text)
            if not match or match.group(1) != op.name:
                raise Bad(f'prototype "{text}" is not that of {op.name}')
            params = [p.strip() for p in match.group(2).split(",")]
            params = [] if params == ["void"] else params
        if len(self.arg_texts) != len(params):
            raise Bad(f"{op.name}: {len(self.arg_texts)} roles for {len(params)} parameters" + (", of which ... is one" if "..." in params else ""))
        for i, (text, param) in enumerate(zip(self.arg_texts, params)):
            if self.library:
                name = op.signature.params[i].name
            else:
                name = re.sub(r"\[\d*\]", "", param).split()[-1].lstrip("*")
                if param == "..." or (text == "length" and "*" in param):
                    name = None   # a text's length goes by its role
            for arg in arguments(text, name, roles):
                arg.position = i
                arg.type = op.signature.params[i].type if self.library else param.rpartition(param.split()[-1].lstrip("*"))[0]
                if arg.group and arg.group not in layer.groups:
                    raise Bad(f'names "{arg.group}" are not defined')
                op.args.append(arg)
        for text in self.more + layer.every:
            op.args += arguments(text, "")
        place(op.args)
        if self.library:
            op.signature.check(op)
        layer.ops.append(op)
        self.begin(None)


def parse(path, library=False):
    try:
        with open(path, encoding="utf-8") as f:
            lines = f.read().split("\n")
    except OSError as error:
        raise Bad(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Bad(f"{path}: want text in UTF-8") from None
    parser, number = Parser(library), 0
    for number, line in enumerate(lines, 1):
        try:
            parser.line(line)
        except Bad as error:
            raise Bad(f"{path}:{number}: {error}") from None
        if parser.op:
            parser.op.line = number
        if parser.layer.name and not parser.layer.line:
            parser.layer.line = number
    if parser.op:
        raise Bad(f"{path}:{number}: op {parser.op.name} has no prototype")
    for op in parser.layer.ops:
        if not op.does and any(o.does for o in parser.layer.ops) and concerns_others(op):
            raise Bad(f"{path}:{op.line}: op {op.name} has a request, or data and a communicator or window: want does={'|'.join(DOES)}")
    parser.layer.ops.sort(key=lambda o: o.number)
    return parser.layer


def concerns_others(op):
    """Whether an op is one of those whose `does` must not be forgotten."""
    types = {(a.type.strip(), a.role) for a in op.args}
    with_others = any(kind in ("MPI_Comm", "MPI_Win") for kind, _ in types)
    return any("MPI_Request" in kind or role == "request" for kind, role in types) or \
        with_others and any(role == "datatype" for _, role in types)


def camel(word):
    return "k" + "".join(part.capitalize() for part in re.split("[_-]", word))


def constant(layer, op):
    """FEIGN_MPI_SEND of MPI_Send, FEIGN_POSIX_OPEN of open."""
    name = op.name[4:] if op.name.startswith("MPI_") else op.name
    return f"FEIGN_{layer.name.upper()}_{name.upper()}"


HEAD = "// Made by layers/generate.py: do not edit.\n"
# How the time of calls that are no activities passed: for the core, and for the reference.
PASSED = {"pause": ("FEIGN_COMPUTED", "time is part of the pause"),
          "counted": ("FEIGN_COMPUTED", "time is part of the pause"),   # the same, and feign record keeps them
          "waits": ("FEIGN_WAITED", "time is waiting for others"),
          "asks": ("FEIGN_WAITED", "time is waiting for others"),       # the same, for what it asked for and no call shows
          "sleeps": ("FEIGN_SLEPT", "time is part of the pause, which is slept")}
