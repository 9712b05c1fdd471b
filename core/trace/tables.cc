// SPDX-License-Identifier: MIT
#include "trace/tables.h"

#include "layers/mpi_ops.h"
#include "layers/mpiio_ops.h"
#include "layers/posix_ops.h"
#include "layers/stdio_ops.h"
#include "trace/record.h"

namespace feign {

const feign_activity kBlankActivity{};

Ops::Ops() {
  ops_.emplace_back(nullptr);
  add_own(posix_layer(), posix_calls());
  add_own(stdio_layer(), stdio_calls());
  ops_.resize(FEIGN_MPI_FIRST);
  (void)add(mpi_layer());
  ops_.resize(FEIGN_MPIIO_FIRST);
  (void)add(mpiio_layer());
}

void Ops::add_own(const feign_layer& layer, std::span<const Call> calls) {
  (void)add(layer);
  calls_.resize(size());
  for (const Call& call : calls)
    if (call.op != 0) calls_[size() - layer.op_count + call.op - 1] = &call;
}

Result<uint32_t> Ops::add(const feign_layer& layer) {
  if (const auto known = layers_.find(layer.name); known != layers_.end()) {
    const auto [first, count] = known->second;
    bool same = count == layer.op_count;
    for (uint32_t i = 0; same && i < count; ++i) {
      const Op* old = ops_[first + i].get();
      same = (old == nullptr) == (layer.ops[i] == nullptr) &&
             (old == nullptr || old->name == layer.ops[i]->name);
    }
    if (same) return first;
    return Error(FEIGN_ERR_PLUGIN,
                 std::string("layer ") + layer.name + ": there is one of that name with other ops");
  }
  const uint32_t first = size();
  for (uint32_t i = 0; i < layer.op_count; ++i) {
    ops_.emplace_back(nullptr);
    if (layer.ops[i] == nullptr) continue;  // a number that is not in use
    const feign_op_info& from = *layer.ops[i];
    auto op = std::make_unique<Op>();
    op->name = from.name;
    op->layer = layer.name;
    const auto* row = reinterpret_cast<const char*>(from.args);
    for (uint32_t a = 0; a < from.arg_count; ++a, row += from.arg_stride) {
      op->args.push_back(*reinterpret_cast<const feign_arg_info*>(row));
      op->arg_names.emplace_back(op->args.back().name != nullptr ? op->args.back().name : "");
    }
    for (size_t a = 0; a < op->args.size(); ++a) op->args[a].name = op->arg_names[a].c_str();
    op->info = {sizeof(feign_op_info),
                first + i,
                op->name.c_str(),
                op->layer.c_str(),
                from.kind,
                from.result_kind,
                from.arg_count,
                sizeof(feign_arg_info),
                op->args.empty() ? nullptr : op->args.data()};
    ops_.back() = std::move(op);
  }
  layers_.emplace(layer.name, std::pair{first, layer.op_count});
  return first;
}

uint32_t Ops::find(std::string_view layer, std::string_view name) const {
  const auto known = layers_.find(layer);
  if (known == layers_.end()) return 0;
  const auto [first, count] = known->second;
  for (uint32_t op = first; op < first + count; ++op)
    if (ops_[op] && name == ops_[op]->name) return op;
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
  return name + ":" + std::to_string(FEIGN_PLACE_LINE(place));
}

}  // namespace feign
