// SPDX-License-Identifier: MIT
// What a call's path means by the way that it is written (path_resolution(7)): whether links at its
// end are followed, and what its clean form does not tell any more. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "feign.h"
#include "trace/call.h"

namespace feign {

// Whether a symbolic link at the end of the path is used itself.
bool no_follow(const Call& call, const feign_activity& a);
// Whether the path leads on from a symbolic link at its end whatever the call says of links: a
// slash or dot is behind it (path_resolution(7)).
bool leads_on(const feign_activity& a, Effect effect, std::string_view path);
// Of what a tracer says a descriptor is: a file's name, and no more.
bool is_path(std::string_view said);
// … a socket: "socket:[12]", or its protocol ("UNIX-STREAM:[12]", "TCP:[…]").
bool is_socket(std::string_view said);
// Whether such a call is on sockets and nothing else.
bool on_sockets(Effect effect);
// Whether the path goes up, if at all, before it goes down.
bool ups_first(std::string_view path);
// A failure that comes from how the path was written, which its clean form does not tell any more:
// a slash or dot at the end, or ".." behind what is no directory or leads to none. Made with the
// clean path, such a call would succeed.
bool form_decides(const feign_activity& a, Effect effect, std::string_view path);
// A result that says nothing of the path, which the kernel has not looked at.
bool looks_at_no_path(const feign_activity& a, Effect effect);
// Whether what came of an open, or of another layer's call of a name, tells that something has the
// name: open(2) looks for it before it fails so. All else may come whether anything is there or not
// (no room, no more descriptors, no right to the directory) or comes since nothing is.
bool tells_there(int64_t result);
// How many names of a path the kernel looks up, as FEIGN_NAMED_BY has it.
uint32_t components(std::string_view path);
// A disk is storage, whatever else is in /dev.
bool is_disk(std::string_view path);

}  // namespace feign
