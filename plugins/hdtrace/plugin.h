// SPDX-License-Identifier: MIT
#pragma once

#include "feign.h"

namespace feign::hdtrace {

extern const feign_component kProvider;
extern const feign_component kWriter;

}  // namespace feign::hdtrace
