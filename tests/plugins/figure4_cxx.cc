// SPDX-License-Identifier: MIT
// Figure 4 of the paper once more, compiled as C++: the header gives the callbacks their plain
// names.
#include "figure4.c"
