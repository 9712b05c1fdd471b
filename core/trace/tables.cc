// SPDX-License-Identifier: MIT
#include "trace/tables.h"

#include <cstring>

#include "layers/mpi_ops.h"
#include "layers/mpiio_ops.h"
#include "layers/posix_ops.h"
#include "layers/stdio_ops.h"
#include "trace/record.h"

namespace feign {

const feign_activity kBlankActivity{};

Ops::Ops() {
  ops_.push_back(nullptr);
  add_own(posix_layer(), posix_calls());
  add_own(stdio_layer(), stdio_calls());
  ops_.resize(FEIGN_MPI_FIRST);
  add_own(mpi_layer());
  ops_.resize(FEIGN_MPIIO_FIRST);
  add_own(mpiio_layer());
  others_ = size();
}

void Ops::add_own(const feign_layer& layer, std::span<const Call> calls) {
  const uint32_t first = append(layer, false);
  if (calls.empty()) return;
  calls_.resize(size());
  for (const Call& call : calls)
    if (call.op != 0) calls_[first + call.op - 1] = &call;
}

Ops::Copy::Copy(const feign_op_info& from) : name(from.name), layer(from.layer) {
  const auto* row = reinterpret_cast<const char*>(from.args);
  for (uint32_t a = 0; a < from.arg_count; ++a, row += from.arg_stride) {
    args.push_back(*reinterpret_cast<const feign_arg_info*>(row));
    arg_names.emplace_back(args.back().name != nullptr ? args.back().name : "");
    if (args.back().names == nullptr) args.back().name_count = 0;
    for (uint32_t n = 0; n < args.back().name_count; ++n) {
      texts.emplace_back(args.back().names[n].name);
      names.push_back(args.back().names[n]);
    }
  }
  for (size_t n = 0; n < names.size(); ++n) names[n].name = texts[n].c_str();
  size_t first = 0;
  for (size_t a = 0; a < args.size(); ++a) {
    args[a].name = arg_names[a].c_str();
    args[a].names = args[a].name_count != 0 ? &names[first] : nullptr;
    first += args[a].name_count;
  }
}

uint32_t Ops::append(const feign_layer& layer, bool copied) {
  const uint32_t first = size();
  feign_op_info* infos =
      infos_.emplace_back(std::make_unique<feign_op_info[]>(layer.op_count)).get();
  for (uint32_t i = 0; i < layer.op_count; ++i) {
    ops_.push_back(nullptr);
    if (layer.ops[i] == nullptr) continue;  // a number that is not in use
    feign_op_info& info = infos[i] = *layer.ops[i];
    info.struct_size = sizeof info;
    info.id = first + i;
    info.layer = layer.name;
    if (copied) {
      const Copy& copy = *copies_.emplace_back(std::make_unique<Copy>(info));
      info.name = copy.name.c_str();
      info.layer = copy.layer.c_str();
      info.arg_stride = sizeof(feign_arg_info);
      info.args = copy.args.empty() ? nullptr : copy.args.data();
    }
    ops_.back() = &info;
  }
  layers_.emplace(layer.name, std::pair{first, layer.op_count});
  return first;
}

Result<uint32_t> Ops::add(const feign_layer& layer) {
  if (const auto known = layers_.find(layer.name); known != layers_.end()) {
    const auto [first, count] = known->second;
    bool same = count == layer.op_count;
    for (uint32_t i = 0; same && i < count; ++i) {
      const feign_op_info* old = ops_[first + i];
      same = (old == nullptr) == (layer.ops[i] == nullptr) &&
             (old == nullptr || strcmp(old->name, layer.ops[i]->name) == 0);
    }
    if (same) return first;
    return Error(FEIGN_ERR_PLUGIN,
                 std::string("layer ") + layer.name + ": there is one of that name with other ops");
  }
  return append(layer, true);
}

uint32_t Ops::find(std::string_view layer, std::string_view name) const {
  const auto known = layers_.find(layer);
  if (known == layers_.end()) return 0;
  const auto [first, count] = known->second;
  for (uint32_t op = first; op < first + count; ++op)
    if (ops_[op] != nullptr && name == ops_[op]->name) return op;
  return 0;
}

uint32_t Streams::append(const feign_stream_info& info) {
  feign_stream_info added = info;
  added.struct_size = sizeof added;
  added.id = static_cast<uint32_t>(infos_.size());
  infos_.push_back(added);
  count_.store(static_cast<uint32_t>(infos_.size()), std::memory_order_release);
  return added.id;
}

uint32_t Streams::find_or_add(const feign_stream_info& info) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = by_key_.try_emplace(key_of(info), static_cast<uint32_t>(infos_.size()));
  if (is_new) {
    (void)append(info);
  } else if (info.parent != 0) {
    infos_[at->second].parent = info.parent;
    infos_[at->second].parent_id = info.parent_id;
  }
  return at->second;
}

uint32_t Streams::find(const feign_stream_info& info) const {
  const std::lock_guard lock(mutex_);
  const Key key = key_of(info);
  const auto at = info.rank < 0 ? by_key_.lower_bound(key) : by_key_.find(key);
  const bool found = at != by_key_.end() && at->first.host == key.host &&
                     at->first.thread == key.thread && at->first.again == key.again;
  return found ? at->second : 0;
}

uint32_t Streams::find_or_add_child(const feign_stream_info& info) {
  if (info.rank < 0)
    if (const uint32_t child = find(info); child != 0) return child;
  return find_or_add(info);
}

uint32_t Streams::add_again(uint32_t stream) {
  feign_stream_info info = this->info(stream);
  info.parent = 0;
  info.parent_id = 0;
  ++info.again;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (!by_key_.contains(key_of(info))) break;
    }
    ++info.again;
  }
  return find_or_add(info);
}

uint32_t Streams::add(const feign_stream_info& info) {
  const std::lock_guard lock(mutex_);
  const uint32_t id = append(info);
  by_key_[key_of(info)] = id;
  return id;
}

feign_stream_info Streams::info(uint32_t stream) const {
  const std::lock_guard lock(mutex_);
  return stream < infos_.size() ? infos_[stream] : feign_stream_info{};
}

void Streams::set_parent(uint32_t stream, uint32_t parent, uint64_t parent_id) {
  const std::lock_guard lock(mutex_);
  if (stream >= infos_.size()) return;
  infos_[stream].parent = parent;
  infos_[stream].parent_id = parent_id;
}

void Streams::set_process(uint32_t stream, int64_t process) {
  const std::lock_guard lock(mutex_);
  if (stream < infos_.size()) infos_[stream].process = process;
}

std::string Tables::place(uint64_t place) const {
  const uint32_t source = FEIGN_PLACE_SOURCE(place);
  const std::string name = source < sources.size() ? sources[source] : "trace";
  const uint64_t line = FEIGN_PLACE_LINE(place);
  return line != 0 ? name + ":" + std::to_string(line) : name;  // recordings have no lines
}

}  // namespace feign
