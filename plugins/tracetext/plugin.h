// SPDX-License-Identifier: MIT
// The two halves of plug-in tracetext: the annotated text of //TRACE (docs/tracetext-format.md).
#pragma once

#include "feign.h"

namespace tracetext {

extern const feign_component kProvider;
extern const feign_component kWriter;

}  // namespace tracetext
