// SPDX-License-Identifier: MIT
// Rule handle: open, use, close, and the offset that all who share a handle go by.
#include <fcntl.h>

#include "modifiers/depend/depend.h"

namespace depend {

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

void Depend::handles(const feign_activity& a, Effect effect) {
  switch (effect) {
    case Effect::kExec:
    case Effect::kExit:
    case Effect::kExitGroup:
    case Effect::kCloseRange:
    case Effect::kUnmap:
      if (a.handle != 0 && on(kHandle)) use(handles_[a.handle].access, kHandle);
      for (uint32_t i = 0; i < a.value_count; ++i) {
        if (effect == Effect::kCloseRange || (effect == Effect::kExec && a.result >= 0))
          unlocked_by(a.values[i]);
        gone(a.values[i]);
      }
      return;
    default:
      break;
  }
  if (a.marks & FEIGN_NOT_A_FILE) return;
  const bool ok = a.result >= 0 && !(a.marks & FEIGN_NO_RESULT);
  const auto at_own_offset = [&](uint32_t i) {
    return a.value_count <= i || a.values[i] == FEIGN_NO_OFFSET;
  };
  bool moves = false, moves2 = false;  // the handle's offset
  switch (effect) {
    case Effect::kOpen:
    case Effect::kCreat:
    case Effect::kFopen:
    case Effect::kFreopen:
    case Effect::kTmpfile: {
      if (!ok || a.handle == 0) return;
      Handle& h = handles_[a.handle];
      h.file = a.file;
      h.lockless = (a.flags & O_PATH) != 0;
      h.access.change = me_;
      if (a.file != 0) ++files_[a.file].open;
      if (a.handle2 == 0) return;
      if (a.path == 0) {  // what it is, once more
        if (on(kHandle)) use(handles_[a.handle2].access, kHandle);
        return;
      }
      if (effect == Effect::kFreopen) break;
      unlocked_by(a.handle2);
      return gone(a.handle2);
    }
    case Effect::kClose:
      if (a.handle == 0) return;
      unlocked_by(a.handle, a.file);
      if (a.marks & FEIGN_LAST) return gone(a.handle);
      moves = effects_[a.op].buffered;  // a stream goes, which another process may have, too
      break;
    case Effect::kRead:
    case Effect::kWrite:
    case Effect::kSeek:
    case Effect::kFseek:
    case Effect::kFtell:
    case Effect::kUngetc:
    case Effect::kList:
      moves = true;
      break;
    case Effect::kPread2:
    case Effect::kPwrite2:
      moves = (a.mode & 1) != 0;
      break;
    case Effect::kFcntl:
      moves = a.flags == F_SETFL;
      break;
    case Effect::kFdopen:
      moves = (a.flags & O_APPEND) != 0;
      break;
    case Effect::kCopy:
      moves = at_own_offset(0);
      moves2 = at_own_offset(1);
      break;
    case Effect::kMap:
      if (ok && a.handle2 != 0) {
        Handle& mapping = handles_[a.handle2];
        mapping.file = a.file;
        mapping.lockless = true;
        mapping.access.change = me_;
        if (a.file != 0) ++files_[a.file].open;
      }
      break;
    default:
      break;
  }
  if (a.handle != 0) {
    Handle& h = handles_[a.handle];
    if (h.file == 0 && effect != Effect::kCopy) h.file = a.file;
    if (on(kHandle)) moves ? change(h.access, kHandle) : use(h.access, kHandle);
  }
  if (a.handle2 != 0 && effect != Effect::kMap) {
    const bool replaces = effect == Effect::kDup || effect == Effect::kDup2 ||
                          effect == Effect::kFcntl || effect == Effect::kFreopen;
    if (replaces) unlocked_by(a.handle2);
    if (replaces && (a.marks & FEIGN_LAST)) return gone(a.handle2);
    if (on(kHandle)) {
      Handle& h = handles_[a.handle2];
      moves2 ? change(h.access, kHandle) : use(h.access, kHandle);
    }
  }
}

}  // namespace depend
