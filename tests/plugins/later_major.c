/* SPDX-License-Identifier: MIT */
/* A plug-in of the next major version: it exports feign_plugin_v2 only. */
#define FEIGN_NO_ENTRY
#define FEIGN_NO_SHORT_FORM
#include <feign.h>
extern FEIGN_EXPORT const feign_plugin feign_plugin_v2;
const feign_plugin feign_plugin_v2 = {sizeof(feign_plugin), 3, "tomorrow", "1", "MIT", 0};
