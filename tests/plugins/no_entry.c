/* SPDX-License-Identifier: MIT */
/* A shared object that is no plug-in. */
int nothing(void);
int nothing(void) { return 0; }
