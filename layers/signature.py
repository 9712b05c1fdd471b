# SPDX-License-Identifier: MIT
"""A third party's prototype taken apart, and whether what its annotations say of it can be."""
import re


class Bad(Exception):
    """What is wrong with a description, with the value in it."""


# Words that a type ends in, so that the last word of a parameter is not its name.
TYPE_WORDS = set("char short int long float double signed unsigned void bool _Bool _Complex __int128 const volatile restrict struct enum union".split())
# Words with a meaning of their own in expressions; a parameter of that name gets an underscore.
TAKEN = {"r", "e", "before", "list"}


def split(text):
    """At commas that are in no brackets."""
    out, depth = [""], 0
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            out.append("")
        else:
            out[-1] += c
    return [part.strip() for part in out]


# What the names of macros for compilers have in them, those of types mostly not.
MACRO = re.compile("API|CALL|DECL|DEPRECATED|DLL|ENTRY|EXPORT|EXTERN|IMPORT|PUBLIC")


def plain(text):
    """A type without what headers put around it for compilers (extern, H5_DLL, ZEXPORT, an attribute): those that one header has
    are not there elsewhere, and by its type a handle is known."""
    before, star, after = text.partition("*")
    before = re.findall(r"\w+", before)
    kept = [w for i, w in enumerate(before) if w in TYPE_WORDS or i and before[i - 1] in ("struct", "enum", "union")]
    if set(kept) <= {"const", "volatile"}:   # it is a name: the last, but for those in capitals that are macros
        names = [w for w in before if w not in kept and w != "extern"]
        types = [w for w in names if not w.isupper()] or [w for w in names if not MACRO.search(w)] or names or [""]
        name = types[-1]
        kept = [w for w in before if w in kept or w == name]
    return " ".join(kept + re.findall(r"\*|const", star + after))


class Param:
    def __init__(self, text, number):
        self.text = text = re.sub(r"\s+", " ", text)
        self.array = ""
        function = re.search(r"\(\s*\*\s*(?:const\s+)?(\w*)\s*\)\s*\(", text)
        if function:
            self.name, self.before, self.after = function[1], text[:function.start(1)], text[function.end(1):]
        else:
            body, bracket, rest = text.partition("[")
            self.array = bracket + rest
            match = re.search(r"(\w+)\s*$", body)
            alone = not match or match[1] in TYPE_WORDS or not re.search(r"[\w*]", body[:match.start(1)]) \
                or set(re.findall(r"\w+", body[:match.start(1)])) <= {"const", "volatile", "struct", "enum", "union"} and "*" not in body[:match.start(1)]
            self.name, self.before, self.after = ("", body, self.array) if alone else (match[1], body[:match.start(1)], self.array)
        self.name = self.name or f"arg{number}"
        if self.name in TAKEN:
            self.name += "_"
        self.before = self.before if function else self.before.rstrip() + " "
        # As a variable's: an array is passed as a pointer.
        self.function = bool(function)
        self.type = "" if function else (self.before.strip() + (" *" if self.array else "")).replace("* *", "**")

    def declared(self):
        return f"{self.before}{self.name}{self.after}"

    def cast(self):
        """The type alone, for (TYPE){0}."""
        return f"{self.before}{self.after}".strip() if self.function else self.type

    def pointer(self):
        return self.function or "*" in self.type

    def pointee(self):
        """What it points to, without the outermost const."""
        return self.type.rpartition("*")[0].strip()

    def writable(self):
        """Whether the library may write to where it points."""
        pointee = self.pointee()
        last = pointee.rpartition("*")[2] if "*" in pointee else pointee
        return self.pointer() and not self.function and not re.search(r"\bconst\b", last)

    def hides_pointer(self):
        """Whether it may be a pointer by a name of its own (zlib's voidp), as far as that tells."""
        return bool(re.fullmatch(r"\w+", self.type)) and self.type not in TYPE_WORDS and not self.type.endswith("_t")

    def whole(self):
        """Whether it is a whole number, as far as its type's name tells."""
        return not self.pointer() and not re.search(r"\b(float|double|struct|union|void|va_list)\b", self.type)


class Signature:
    """Of the function of that name, as headers write it: TYPE NAME(…), and also EXPORT(TYPE) NAME(…), API(NAME)(…), NAME OF((…))."""

    def __init__(self, text, name):
        bare = re.sub(r"\[\[.*?\]\]|\b(__attribute__|__declspec)\s*\((\((\([^()]*\)|[^()])*\)|[^()])*\)", " ", text)
        called = re.escape(name)
        match = re.match(rf"(.*?)(?:\b[A-Z]\w*\s*)?\(\s*{called}\s*\)\s*\(|(.*?)\b{called}\s*(?:\w+\s*\(\s*)?\(", bare)
        if not match:
            raise Bad(f'prototype "{text}" is not that of {name}')
        returns = re.sub(r"\b\w+\s*\(([\w\s*]*)\)", r" \1", match[1] or match[2] or "")
        self.returns, self.name = plain(returns), name
        if not self.returns or not re.fullmatch(r"[\w\s*]*", returns):
            raise Bad(f'prototype "{text}": want TYPE NAME(PARAMETERS);')
        if re.search(r"\b(static|inline|__inline|__inline__)\b", returns):
            raise Bad(f"{self.name} is static or inline: it is compiled into the programs that call it, and no library can stand between")
        text, depth, end = bare, 0, -1
        for i in range(match.end() - 1, len(text)):
            depth += (text[i] == "(") - (text[i] == ")")
            if depth == 0:
                end = i
                break
        if end < 0:
            raise Bad(f'prototype "{text}": want a ) behind the parameters')
        inside = text[match.end():end].strip()
        params = [] if inside in ("", "void") else split(inside)
        if "" in params:
            raise Bad(f'prototype "{text}": want no empty parameter')
        self.variadic = bool(params) and params[-1] == "..."
        self.params = [Param(p, i) for i, p in enumerate(params, 1)]
        names = [p.name for p in self.params]
        if len(set(names)) != len(names):
            raise Bad(f'prototype "{text}": want a name of its own for each parameter')

    def void(self):
        return bool(re.search(r"\bvoid$", self.returns))

    def returns_pointer(self):
        return "*" in self.returns

    def check(self, op):
        """Whether roles fit parameters, and all is there that capture and replay need."""
        def bad(text):
            raise Bad(f"{op.name}: {text}")

        by_role = {}
        for arg in op.args:
            param = self.params[arg.position]
            by_role.setdefault(arg.role, []).append(arg)
            said = f'parameter "{param.text}" has role {arg.role}'
            if param.text == "..." and arg.role != "-":
                bad("...: want role -")
            if arg.form in ("kStruct", "kMember"):
                if not param.pointer() or not arg.member:
                    bad(f'{said} in struct: want a pointer to a struct, and MEMBER=ROLE')
                if arg.role not in ("length", "offset", "flags", "mode", "value", "count", "text", "path", "path2"):
                    bad(f"{said} in struct: want a number, a text or a path")
            elif arg.role in ("path", "path2", "text"):
                if not re.fullmatch(r"(?:const\s+)?char\s*(?:const\s*)?\*\s*(?:const|restrict|\s)*", param.type):
                    bad(f"{said}: want a char *")
            elif arg.role == "buf":
                if not (param.pointer() or param.hides_pointer()) or param.function:
                    bad(f"{said}: want a pointer")
            elif arg.role in ("handle-at", "new", "result", "out"):
                if not param.writable() or param.array and arg.role != "out":
                    bad(f"{said}: want a pointer to what is not const")
                if param.pointee() in ("void", "") and not param.array:
                    bad(f"{said}: void * does not tell how much; want buf")
            elif arg.role in ("handle", "handle2"):
                if param.function or not (param.pointer() or param.whole()):
                    bad(f"{said}: want a pointer or a number")
            elif arg.role != "-" and not param.whole():
                bad(f"{said}: want a whole number")
        for roles in (("handle", "handle-at"), ("handle2",), ("new",), ("path",), ("path2",), ("length",), ("offset",), ("flags",), ("mode",), ("result",)):
            if sum(len(by_role.get(role, [])) for role in roles) > 1:
                bad(f"two {roles[0]}: want one; others may be values")
        used = by_role.get("handle") or by_role.get("handle-at")
        makes = "new" in by_role or op.result == "handle"
        if op.result == "handle" and "new" in by_role:
            bad("a handle is returned and another is new: want one")
        if makes and "handle2" in by_role:
            bad("handle2 is the handle that the call makes: want no other")
        if op.result == "handle" and self.void():
            bad("result=handle of void")
        if "buf" in by_role and "length" not in by_role and "length" not in op.capture:
            bad("buf: how long is it? want a parameter with role length, or //@ capture length=EXPRESSION")
        if op.kind in ("read", "write") and op.result != "bytes":
            bad(f"kind={op.kind}: want result=bytes, how many were moved")
        if makes != (op.kind == "open"):
            bad("it makes a handle: want kind=open" if makes else "kind=open: want a handle that it makes, by result=handle or role new")
        if op.kind == "close" and not used:
            bad("kind=close: want a parameter with role handle")
        if self.returns_pointer() and op.result not in ("handle", "any") and "result" not in op.capture and "result" not in by_role:
            bad(f"result={op.result} of a pointer: want handle or any, or //@ capture result=EXPRESSION")
        if self.variadic and ("call" not in op.capture or not op.replay):
            bad("...: want //@ capture call=NEXT(PARAMETERS, list) with the function that takes a va_list, and //@ replay EXPRESSION")
        if "call" in op.capture and (not self.variadic or not re.fullmatch(r"\w+\s*\(.*\)", op.capture["call"])):
            bad(f"capture call={op.capture['call']}: want FUNCTION(PARAMETERS, list), of a call with ...")
