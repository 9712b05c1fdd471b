// SPDX-License-Identifier: MIT
// Numbers for people.
#pragma once

#include <cstdint>
#include <string>

#include "trace/tables.h"

namespace feign {

std::string format(const char* how, ...) __attribute__((format(printf, 1, 2)));
std::string format_count(uint64_t n);                                     // 1,234,567
std::string format_count(uint64_t n, const char* one, const char* many);  // 1 file, 2 files
std::string format_bytes(uint64_t n);                                     // 1.18 MiB
std::string format_time(uint64_t ns);                                     // 1.23 ms
// "pread64"; "layer:op" for layers other than posix.
std::string op_name(const Tables& tables, uint32_t id);

}  // namespace feign
