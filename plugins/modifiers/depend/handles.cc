// SPDX-License-Identifier: MIT
// Rule handle: open, use, close, and the offset that all who share a handle go by.
#include <fcntl.h>

#include "modifiers/depend/depend.h"

namespace depend {
namespace {

// Whether a copy's end goes by its handle's offset.
bool at_own_offset(const feign_activity& a, uint32_t end) {
  return a.value_count <= end || a.values[end] == FEIGN_NO_OFFSET;
}

}  // namespace

// The process gives up a descriptor of that handle, and with it its record locks of the file.
void Depend::unlocked_by(uint64_t handle, uint32_t file) {
  if (records_.empty() || !on(kChannel)) return;
  const Handle* const h = handles_.find(static_cast<uint32_t>(handle));
  if (h != nullptr && h->lockless) return;
  if (file == 0 && h != nullptr) file = h->file;
  if (file != 0) unlocked(file);
}

// A handle's last descriptor went.
void Depend::gone(uint64_t number) {
  const auto id = static_cast<uint32_t>(number);
  Handle* const h = handles_.find(id);
  if (h == nullptr) return;
  if (on(kHandle)) change(h->access, kHandle);
  if (on(kFile)) flushed(*h);
  if (File* const f = files_.find(h->file); f != nullptr) {
    if (h->flock.stream != 0 && on(kChannel)) unlock(*f, id);
    if (h->own && f->records && on(kChannel)) share(*f->records, 0, UINT64_MAX, *h->own);
    if (f->open != 0 && --f->open == 0) f->bytes.shrink(8);
    if (f->ended()) files_.erase(h->file);
  }
  handles_.erase(id);
}

// A call of a third party's layer, of which nobody knows what it does: calls on one handle, or on
// one path, keep their order.
void Depend::library_call(const feign_activity& a) {
  if (on(kHandle))
    for (const uint32_t handle : {a.handle, a.handle2})
      if (handle != 0) change(handles_[handle].access, kHandle);
  if (on(kPath))
    for (const uint32_t path : {a.path, a.path2})
      if (path != 0) change(library_paths_[path], kPath);
  const feign_op_info* const info = host_->op_info(host_, a.op);
  if (info != nullptr && info->kind == FEIGN_KIND_CLOSE && a.handle != 0) handles_.erase(a.handle);
}

// A handle that was not there before.
void Depend::made(uint32_t handle, uint32_t file, bool lockless) {
  Handle& h = handles_[handle];
  h.file = file;
  h.lockless = lockless;
  h.access.change = me_;
  if (file != 0) ++files_[file].open;
}

// Whether a call changes what others get by the handle: its offset, or how it writes.
bool Depend::moves(const feign_activity& a, Effect effect) {
  switch (effect) {
    case Effect::kRead:
    case Effect::kWrite:
    case Effect::kSeek:
    case Effect::kFseek:
    case Effect::kFtell:
    case Effect::kUngetc:
    case Effect::kList:
      return true;
    case Effect::kPread2:
    case Effect::kPwrite2:
      return (a.mode & 1) != 0;
    case Effect::kFcntl:
      return a.flags == F_SETFL;
    case Effect::kFdopen:
      return (a.flags & O_APPEND) != 0;
    case Effect::kCopy:
      return at_own_offset(a, 0);
    case Effect::kClose:
      return effects_[a.op].buffered;  // a stream goes, which another process may have, too
    default:
      return false;
  }
}

// A call by handles that were there, of which it may replace the second.
void Depend::used(const feign_activity& a, Effect effect) {
  if (a.handle != 0) {
    Handle& h = handles_[a.handle];
    if (h.file == 0 && effect != Effect::kCopy) h.file = a.file;
    if (on(kHandle)) moves(a, effect) ? change(h.access, kHandle) : use(h.access, kHandle);
  }
  if (a.handle2 == 0 || effect == Effect::kMap) return;
  const bool replaces = effect == Effect::kDup || effect == Effect::kDup2 ||
                        effect == Effect::kFcntl || effect == Effect::kFreopen;
  if (replaces) unlocked_by(a.handle2);
  if (replaces && (a.marks & FEIGN_LAST)) return gone(a.handle2);
  if (!on(kHandle)) return;
  const bool moves_it = (effect == Effect::kCopy) && at_own_offset(a, 1);
  Handle& h = handles_[a.handle2];
  moves_it ? change(h.access, kHandle) : use(h.access, kHandle);
}

// A process's end, or a range of its descriptors or of its memory.
void Depend::ended(const feign_activity& a, Effect effect) {
  if (a.handle != 0 && on(kHandle)) use(handles_[a.handle].access, kHandle);
  for (uint32_t i = 0; i < a.value_count; ++i) {
    if (effect == Effect::kCloseRange || (effect == Effect::kExec && a.result >= 0))
      unlocked_by(a.values[i]);
    gone(a.values[i]);
  }
}

// A context of asynchronous requests is made before calls use it, and destroyed after they did. Its
// address may be another one's later.
void Depend::by_context(const feign_activity& a, Effect effect) {
  if (a.value_count == 0 || a.values[0] == 0) return;
  Shared& context = contexts_[{streams_[a.stream].group, a.values[0]}];
  const bool begins_or_ends = effect == Effect::kAioContext && a.result >= 0;
  begins_or_ends ? change(context, kHandle) : use(context, kHandle);
}

void Depend::handles(const feign_activity& a, Effect effect) {
  const bool ok = a.result >= 0 && !(a.marks & FEIGN_NO_RESULT);
  const bool file = !(a.marks & FEIGN_NOT_A_FILE);
  switch (effect) {
    case Effect::kExec:
    case Effect::kExit:
    case Effect::kExitGroup:
    case Effect::kCloseRange:
    case Effect::kUnmap:
      return ended(a, effect);
    case Effect::kOpen:
    case Effect::kCreat:
    case Effect::kFopen:
    case Effect::kFreopen:
    case Effect::kTmpfile:
      if (!file || !ok || a.handle == 0) return;
      made(a.handle, a.file, (a.flags & O_PATH) != 0);
      if (a.handle2 == 0) return;
      if (a.path == 0) {  // what it is, once more
        if (on(kHandle)) use(handles_[a.handle2].access, kHandle);
        return;
      }
      if (effect == Effect::kFreopen) break;
      unlocked_by(a.handle2);
      return gone(a.handle2);
    case Effect::kClose:
      if (!file || a.handle == 0) return;
      unlocked_by(a.handle, a.file);
      if (a.marks & FEIGN_LAST) return gone(a.handle);
      break;
    case Effect::kAioContext:
    case Effect::kAio:
    case Effect::kAioWait:
      if (on(kHandle)) by_context(a, effect);
      break;
    case Effect::kMap:
      if (file && ok && a.handle2 != 0) made(a.handle2, a.file, true);
      break;
    default:
      break;
  }
  if (file) used(a, effect);
}

}  // namespace depend
