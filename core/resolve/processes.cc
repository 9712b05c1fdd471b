// SPDX-License-Identifier: MIT
// Calls that make and end threads and processes, and those on what they share: directories, tables.
#include <sched.h>

#include <algorithm>
#include <utility>

#include "resolve/resolve.h"

namespace feign {

// ---- made and ended -----------------------------------------------------------------------------

void Resolve::child(Record& r, const Thread& parent, uint64_t shared) {
  const bool files = (shared & CLONE_FILES) != 0, place = (shared & CLONE_FS) != 0;
  const bool process = (shared & CLONE_THREAD) != 0, memory = (shared & CLONE_VM) != 0;
  feign_stream_info info = tables_.streams.info(r.a.stream);
  info.thread = r.a.result;
  info.again = 0;  // as the provider numbers it; begin() looks whether there was one before
  info.process = process ? info.process : r.a.result;
  const std::shared_ptr<Table> table = parent.table;
  const std::shared_ptr<Place> where = parent.place;
  const std::shared_ptr<Process> group = parent.process;
  const std::shared_ptr<Memory> space = parent.memory;
  const bool stranger = parent.stranger;
  const uint32_t first_handle = parent.first_handle;
  const uint32_t stream = tables_.streams.find_or_add_child(info);
  if (stream == r.a.stream) return;  // a trace that says a thread made itself
  Thread& t = thread_of(stream);
  const bool seen_before = t.known && !t.ended;
  if (!seen_before) {
    begin(stream);
    t.last_end = r.a.start_ns;
  }
  tables_.streams.set_process(t.now, info.process);
  // It ran before its parent's call was seen: it keeps what it has, and waits for nobody to begin.
  if (seen_before) return;
  tables_.streams.set_parent(t.now, r.a.stream, r.a.id);
  t.place = place ? where : std::make_shared<Place>(*where);
  t.place->mounts |= (shared & CLONE_NEWNS) != 0;
  if (memory) {
    t.memory = space;
  } else {
    t.memory->pieces = space->pieces;
    for (auto& [address, piece] : t.memory->pieces) ++piece.mapping->pieces;
  }
  if (process) {
    t.process = group;
    group->threads.push_back(stream);
  }
  if (files) {  // what it finds open, its maker may have from others
    t.table = table;
    t.stranger = stranger;
    t.first_handle = first_handle;
  } else {
    t.table = copy_of(*table);
    forked(r.a, *table, t.table);
    for (const auto& [fd, each] : t.table->map)
      each.description->several |= each.description->streamed;
  }
}

void Resolve::exec_call(Record& r, Thread& t, uint32_t stream) {
  feign_activity& a = r.a;
  a.path = a.path != 0 ? absolute(t, a.handle, a.file, a.path) : 0;
  a.handle = a.file = 0;
  if (!succeeded(a)) return;
  leaves_kin(t, stream);
  // It ends the process's other threads, gives up what is shared, then closes what was so marked.
  std::vector<uint64_t> ended;
  for (const uint32_t one : std::vector<uint32_t>(t.process->threads))
    if (one != stream) ends(one, ended);
  if (t.table.use_count() > 1) t.table = copy_of(*t.table);
  for (const auto& [fd, one] : t.table->map)
    if (one.close_on_exec) gives_up_locks(a, t, *one.description);
  close_all(*t.table, true, &ended);
  if (t.memory.use_count() == 1) forget(*t.memory, ended);
  t.memory = std::make_shared<Memory>();
  r.set_values(ended);
}

void Resolve::exit_call(Record& r, const Thread& t, Effect effect, uint32_t stream) {
  std::vector<uint64_t> ended;
  std::vector<uint32_t> going{stream};
  if (effect == Effect::kExitGroup) going = t.process->threads;
  for (const uint32_t one : going) ends(one, ended);
  r.set_values(ended);
}

void Resolve::ends(uint32_t stream, std::vector<uint64_t>& ended) {
  Thread& t = threads_[stream];
  if (t.ended) return;
  t.ended = true;
  std::erase(running_, stream);
  std::erase(t.process->threads, stream);
  if (t.table.use_count() == 1) close_all(*t.table, false, &ended);
  if (t.memory.use_count() == 1) forget(*t.memory, ended);
  t.table.reset();
  t.memory.reset();
  t.place.reset();
  t.process.reset();
}

// ---- what they share ----------------------------------------------------------------------------

void Resolve::unshare_call(feign_activity& a, Thread& t) {
  a.handle = a.file = a.path = 0;
  if (!succeeded(a)) return;
  other_pids_ |= (a.flags & CLONE_NEWPID) != 0;
  other_mounts_ |= (a.flags & CLONE_NEWNS) != 0;
  if ((a.flags & CLONE_FILES) && t.table.use_count() > 1) t.table = copy_of(*t.table);
  // In another mount or user namespace it cannot but have a directory of its own.
  if (a.flags & (CLONE_FS | CLONE_NEWNS | CLONE_NEWUSER))
    t.place = std::make_shared<Place>(*t.place);
  t.place->mounts |= (a.flags & CLONE_NEWNS) != 0;
}

void Resolve::setns_call(feign_activity& a, Thread& t) {
  a.handle = a.file = a.path = 0;
  if (!succeeded(a) || (a.flags & CLONE_NEWNS) == 0) return;
  other_mounts_ = true;
  t.place = std::make_shared<Place>(*t.place);
  t.place->mounts = true;
  moves(t, tables_.strings.intern("/"), false);
  t.place->root = 0;
}

void Resolve::getcwd_call(feign_activity& a, Thread& t) {
  // Outside what is now its root: "(unreachable)/…" (getcwd(3)).
  const bool name = a.path != 0 && tables_.strings.text(a.path).starts_with('/');
  a.path = name ? absolute(t, 0, 0, a.path) : 0;
  a.handle = a.file = 0;
  if (!succeeded(a) || a.path == 0) return;
  const uint32_t where = a.path;
  tells_link(a, *t.place);
  moves(t, where, false);
  t.place->told = true;
}

void Resolve::chdir_call(Record& r, Thread& t) {
  const bool whole = tables_.strings.text(r.a.path).starts_with('/');
  path_call(r, t, Effect::kChdir);
  if (!succeeded(r.a) || r.a.path == 0) return;
  const bool told = whole || t.place->told, guessed = !whole && t.place->guessed;
  moves(t, names_.canonical(r.a.path, true), false);
  t.place->told = told;
  t.place->guessed = guessed;
}

void Resolve::fchdir_call(feign_activity& a, Thread& t) {
  const Description* const d = on(a, t);
  if (succeeded(a) && d != nullptr && d->path != 0) moves(t, d->path, d->gone);
}

void Resolve::chroot_call(Record& r, Thread& t) {
  path_call(r, t, Effect::kChroot);
  if (!succeeded(r.a) || r.a.path == 0) return;
  t.place->root = names_.canonical(r.a.path, true);
  if (tables_.strings.text(t.place->root) == "/") t.place->root = 0;
}

}  // namespace feign
