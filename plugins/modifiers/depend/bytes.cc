// SPDX-License-Identifier: MIT
// Rule file: who reads and writes which bytes, and where the file ends.
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "modifiers/depend/depend.h"

namespace depend {
namespace {
constexpr uint32_t kMovesBytes = FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE;
}

// Whether no other stream was at the file's bytes so far.
bool Depend::alone(File& f) {
  if (f.several) return false;
  if (f.only == 0) f.only = me_.stream;
  if (f.only == me_.stream) return true;
  f.several = true;
  return false;
}

// `end`: where, if it would have come to something else had the file gone on there.
void Depend::sees_end(File& f, uint64_t end) {
  after(f.set, kFile);
  after(f.extends, kFile);
  f.ends.add(me_);
  f.ends_at = std::min(f.ends_at, end);
}

// Whether all of the bytes are known to have been written by the trace.
bool Depend::reads(File& f, uint64_t begin, uint64_t length) {
  const uint64_t end = length > UINT64_MAX - begin ? UINT64_MAX : begin + length;
  if (!alone(f)) return f.bytes.read(begin, end, me_, [&](const Points& p) { after(p, kFile); });
  f.bytes.note(begin, end, me_, false);
  return false;
}

void Depend::read(File& f, uint64_t begin, uint64_t asked, uint64_t got) {
  const bool written = reads(f, begin, asked);
  if (!f.size_changed) f.there = std::max(f.there, begin + got);
  // It came to the end of the file, or to bytes that are there since somebody wrote behind them.
  if (got < asked)
    sees_end(f, begin + got);
  else if (!written && begin + got > f.there)
    sees_end(f, UINT64_MAX);
}

void Depend::write(File& f, uint64_t begin, uint64_t length, bool appends) {
  const uint64_t end = length > UINT64_MAX - begin ? UINT64_MAX : begin + length;
  if (alone(f))
    f.bytes.note(begin, end, me_, true);
  else
    f.bytes.write(begin, end, me_, [&](const Points& p) { after(p, kFile); });
  if (appends) {  // where, is up to those before it, and to none that would have moved the end
    sizes(f);
    sees_end(f, begin);
    f.size = std::max(f.size, end);
  } else {
    extend(f, end);
  }
}

// Writers that extend a file do each other no harm. Which of them does is up to who comes first,
// but none may before those that saw an end which it is beyond.
void Depend::extend(File& f, uint64_t end) {
  const bool extends = end > (f.size_known ? f.size : f.there);
  if (extends || end > f.ends_at) after(f.ends, kFile);
  if (!extends) return;
  after(f.set, kFile);
  f.extends.add(me_);
  f.size = std::max(f.size, end);
  f.size_changed = true;
}

// A call that sets the size, or goes by it and changes it.
void Depend::sizes(File& f) {
  after(f.set, kFile);
  after(f.extends, kFile);
  after(f.ends, kFile);
  f.set = me_;
  f.extends.clear();
  f.ends.clear();
  f.ends_at = UINT64_MAX;
  f.size_changed = true;
}

// Bytes from `from` on are others after it.
void Depend::set_size(File& f, uint64_t size, uint64_t from) {
  sizes(f);
  if (alone(f))
    f.bytes.note(from, UINT64_MAX, me_, true, true);
  else
    f.bytes.write(
        from, UINT64_MAX, me_, [&](const Points& p) { after(p, kFile); }, true);
  f.size = size;
  f.size_known = true;
  f.there = std::min(f.there, size);
}

// What libc wrote into memory is in the file now, at the latest.
void Depend::flushed(Handle& h) {
  if (h.buffered_end == 0 || h.file == 0) return;
  write(files_[h.file], h.buffered, h.buffered_end - h.buffered, false);
  h.buffered = UINT64_MAX;
  h.buffered_end = 0;
}

// An open of MPI's finds all that others had written by then. Which of it is read behind the open
// only the calls that lie in MPI's tell, and these come too late to wait.
void Depend::finds(const feign_activity& a) {
  if (a.file == 0 || a.result < 0 || (a.marks & (FEIGN_NO_RESULT | FEIGN_CREATES))) return;
  File& f = files_[a.file];
  if (alone(f)) return;
  f.bytes.writes([&](const Points& p) { after(p, kFile); });
  after(f.set, kFile);
  after(f.extends, kFile);
}

// What goes into libc's memory stays there until another call on the handle, and is noted then.
void Depend::buffers(const feign_activity& a, Effect effect) {
  Handle* const h = effects_[a.op].buffered && a.handle != 0 ? handles_.find(a.handle) : nullptr;
  if (h == nullptr) return;
  if (effect != Effect::kWrite) return flushed(*h);
  h->buffered = std::min(h->buffered, a.offset);
  h->buffered_end = std::max(h->buffered_end, a.offset + static_cast<uint64_t>(a.result));
}

// An open makes a file, or makes it empty, even if it is opened for reading.
void Depend::opens(File& f, const feign_activity& a) {
  if (a.marks & FEIGN_CREATES) {
    f.size_known = f.size_changed = true;
    f.size = f.there = 0;
  } else if (a.flags & O_TRUNC) {
    set_size(f, 0, 0);
  }
}

void Depend::copies(const feign_activity& a) {
  const auto done = static_cast<uint64_t>(a.result);
  if (a.handle != 0) read(files_[a.file], a.offset, a.length, done);
  if (a.handle2 == 0 || a.value_count < 4 || a.values[2] == 0 || done == 0) return;
  write(files_[static_cast<uint32_t>(a.values[2])], a.values[3], done,
        (a.marks & FEIGN_APPENDS) != 0);
}

// FICLONE, FICLONERANGE; no length: up to the end.
void Depend::clones(const feign_activity& a) {
  const uint64_t begin = a.value_count > 2 ? a.values[2] : 0;
  if (const Handle* const from = handles_.find(a.handle2); from != nullptr && from->file != 0)
    read(files_[from->file], begin, a.length != 0 ? a.length : UINT64_MAX - begin, a.length);
  File& f = files_[a.file];
  if (a.length != 0) return write(f, a.offset, a.length, false);
  set_size(f, f.size, a.offset);
}

void Depend::allocates(File& f, const feign_activity& a) {
  if (a.flags & kMovesBytes) return set_size(f, std::max(f.size, a.offset + a.length), a.offset);
  if (a.flags & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
    return write(f, a.offset, a.length, false);
  if (a.flags & FALLOC_FL_KEEP_SIZE) return;
  extend(f, a.offset + a.length);
  f.extends.add(me_);  // after a cut it would, also where it did not
}

// A size that the trace tells.
void Depend::told_size(File& f, uint64_t size) {
  if (!f.size_changed) f.there = std::max(f.there, size);
  if (!f.size_known) f.size = std::max(f.size, size);
  f.size_known = true;
}

void Depend::queues(File& f, const feign_activity& a) {
  if (a.result == 0) return;
  if (a.flags == 0 || a.flags == 7) read(f, a.offset, a.length, a.length);
  if (a.flags != 1 && a.flags != 8) return;
  write(f, a.offset, a.length, (a.marks & FEIGN_APPENDS) != 0);
  // It is there when the process was told so.
  auto& under_way = streams_[a.stream].aio;
  if (under_way.size() < kMostQueued) under_way.push_back({a.file, {a.offset, a.length}});
}

void Depend::bytes(const feign_activity& a, Effect effect) {
  if (a.file == 0 || (a.marks & (FEIGN_NO_RESULT | FEIGN_NOT_A_FILE))) return;
  const bool maps = effect == Effect::kSeek && (a.flags == SEEK_DATA || a.flags == SEEK_HOLE);
  const auto file = [&]() -> File& { return files_[a.file]; };
  // The file ended before where it was to go, or be moved.
  if (a.result == -EINVAL && effect == Effect::kSeek && a.flags == SEEK_END)
    return sees_end(file(), ~a.offset);
  if (a.result == -EINVAL && effect == Effect::kFallocate && (a.flags & kMovesBytes) != 0)
    return sees_end(file(), a.offset);
  if (a.result < 0 && !(maps && a.result == -ENXIO)) return;
  const auto done = static_cast<uint64_t>(a.result);
  const bool appends = (a.marks & FEIGN_APPENDS) != 0;
  buffers(a, effect);
  switch (effect) {
    case Effect::kOpen:
    case Effect::kCreat:
    case Effect::kFopen:
    case Effect::kFreopen:
    case Effect::kTmpfile:
      return opens(file(), a);
    case Effect::kRead:
    case Effect::kPread:
    case Effect::kPread2:
      return read(file(), a.offset, a.length, done);
    case Effect::kMap:
      (void)reads(file(), a.offset, a.length);
      return;
    case Effect::kWrite:
    case Effect::kPwrite:
    case Effect::kPwrite2:
      if (done != 0) write(file(), a.offset, done, appends);
      return;
    case Effect::kCopy:
      return copies(a);
    case Effect::kIoctl:
      return clones(a);
    case Effect::kTruncate:
    case Effect::kFtruncate: {
      File& f = file();
      return set_size(f, a.length, std::min(a.length, f.size_known ? f.size : f.there));
    }
    case Effect::kFallocate:
      return allocates(file(), a);
    case Effect::kSeek:
    case Effect::kFseek:
    case Effect::kFtell:
      // Where data and holes are, any write may change: file systems go by blocks.
      if (maps) (void)reads(file(), 0, UINT64_MAX);
      if (!appends && a.flags == SEEK_END && done >= a.offset)
        sees_end(file(), done - a.offset);
      else if (appends || a.flags == SEEK_END || maps)
        sees_end(file(), 0);
      return;
    case Effect::kFstat:
    case Effect::kStat:
    case Effect::kStatat:
      if (S_ISREG(a.mode)) told_size(file(), a.length);
      return;
    case Effect::kFlush:
      if (File& f = file(); !alone(f)) f.bytes.writes([&](const Points& p) { after(p, kFile); });
      return;
    case Effect::kAio:
      return queues(file(), a);
    default:
      return;
  }
}

}  // namespace depend
