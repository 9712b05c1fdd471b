// SPDX-License-Identifier: MIT
// The two halves of plug-in siox: traces of SIOX (docs/siox-format.md).
#pragma once

#include "feign.h"

namespace siox {

extern const feign_component kProvider;
extern const feign_component kWriter;

}  // namespace siox
