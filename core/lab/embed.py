#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes a C++ header of a file: embed.py FILE NAME OUT."""
import sys

with open(sys.argv[1], "rb") as f:
    data = f.read()
with open(sys.argv[3], "w", encoding="ascii") as f:
    f.write(f"// Made from {sys.argv[1].rsplit('/', 1)[-1]}.\n#pragma once\n\nnamespace feign {{\ninline constexpr unsigned char {sys.argv[2]}[] = {{\n")
    for i in range(0, len(data), 32):
        f.write(",".join(map(str, data[i:i + 32])) + ",\n")
    f.write("};\n}  // namespace feign\n")
