/* SPDX-License-Identifier: MIT */
/* An auditing library (rtld-audit(7)), with a libc of its own: the program's libraries have little room for storage of threads. */
#include <link.h>
#include <stdlib.h>

unsigned la_version(unsigned version) { return getenv("LD_AUDIT") != 0 ? version : 0; }
