// SPDX-License-Identifier: MIT
// The writer of plug-in siox (docs/siox-format.md).
#pragma once

#include "feign.h"

namespace siox {

extern const feign_component kWriter;

}  // namespace siox
