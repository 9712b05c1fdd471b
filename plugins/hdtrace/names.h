// SPDX-License-Identifier: MIT
// HDTrace's names for the arguments of calls, for reading and writing alike. What is not here is
// called as the layer's description calls it.
#pragma once

#include <cstring>
#include <string_view>

#include "feign.h"

namespace feign::hdtrace {

struct AttributeName {
  const char* attribute;
  const char* argument;
  const char*
      with;  // written only of ops that have this argument, too; read of all; "-": never written
};

// An attribute stands for the first of its arguments that the op has. Those that come first are
// written.
constexpr AttributeName kAttributeNames[] = {
    {"toTag", "tag", "dest"},
    {"fromTag", "tag", "source"},
    {"toTag", "sendtag", nullptr},
    {"fromTag", "recvtag", nullptr},
    {"to-tag", "sendtag", nullptr},
    {"toRank", "dest", nullptr},
    {"fromRank", "source", nullptr},
    {"rootRank", "root", "datatype"},
    {"sendTid", "sendtype", "sendtag"},
    {"recvTid", "recvtype", "sendtag"},
    {"tid", "datatype", nullptr},
    {"tid", "sendtype", nullptr},
    {"tid", "type", nullptr},
    {"type", "datatype", nullptr},
    {"type", "sendtype", nullptr},
    {"recvtid", "recvtype", nullptr},
    {"oldTid", "oldtype", nullptr},
    {"from_type", "oldtype", nullptr},
    {"etid", "etype", nullptr},
    {"filetid", "filetype", nullptr},
    {"recvSize", "recv_size", nullptr},
    {"sendSize", "size", "-"},
    {"count", "sendcount", nullptr},
    {"recvCount", "recvcount", nullptr},
    {"cid", "comm", nullptr},
    {"newcid", "newcomm", nullptr},
    {"rid", "request", nullptr},
    {"name", "filename", nullptr},
    {"flags", "amode", nullptr},
    {"representation", "datarep", nullptr},
    {"relative-offset", "offset", "whence"},
    {"offset", "disp", nullptr},
};

inline const feign_arg_info* argument_of(const feign_op_info& op, std::string_view name) {
  for (uint32_t i = 0; i < op.arg_count; ++i)
    if (op.args[i].slot != FEIGN_SLOT_NONE && name == op.args[i].name) return &op.args[i];
  return nullptr;
}

// The argument that an attribute of the op stands for, or nullptr.
inline const feign_arg_info* argument_named(const feign_op_info& op, std::string_view attribute) {
  for (const AttributeName& n : kAttributeNames)
    if (attribute == n.attribute)
      if (const feign_arg_info* a = argument_of(op, n.argument)) return a;
  return argument_of(op, attribute);
}

// The attribute that an argument of the op is written as: one that is read as this argument again.
inline const char* attribute_named(const feign_op_info& op, const feign_arg_info& arg) {
  for (const AttributeName& n : kAttributeNames)
    if (strcmp(n.argument, arg.name) == 0 &&
        (n.with == nullptr || argument_of(op, n.with) != nullptr) &&
        argument_named(op, n.attribute) == &arg)
      return n.attribute;
  return arg.name;
}

}  // namespace feign::hdtrace
