// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/cluster/server_program.h"

#include "tests/sim/cluster/member_outcome.h"

namespace covey::sim {

ServerProgram::ServerProgram(const Options& options) : control_({.member = options.member}) {
  for (uint32_t i = 0; i < options.data_loops; ++i) {
    server::ShardActor::Options of_loop{.queued_bytes_max = options.queued_bytes_max};
    if (options.device) {
      devices_.push_back(std::make_shared<server::SimDevice>(*options.device));
      of_loop.device = devices_.back();
    }
    data_.push_back(std::make_unique<server::ShardActor>(of_loop));
  }
}

absl::Duration ServerProgram::TakeDeviceTime(size_t loop) {
  return loop == 0 || devices_.empty() ? absl::ZeroDuration() : devices_[loop - 1]->TakeBusyTime();
}

std::vector<Actor*> ServerProgram::loops() {
  std::vector<Actor*> loops = {&control_};
  for (const auto& data : data_) loops.push_back(data.get());
  return loops;
}

Program::Outcome ServerProgram::outcome() const {
  if (!control_.hang().ok()) return control_.is_over() ? Outcome::kFailed : Outcome::kRunning;
  return OutcomeOf(control_.member());
}

const server::Replica* ServerProgram::FindReplica(uint32_t loop, ShardId shard) const {
  return loop == 0 || loop > data_.size() ? nullptr : data_[loop - 1]->FindReplica(shard);
}

ReplicaSnapshot ServerProgram::Snapshot(const std::string& name, uint32_t loop,
                                        ShardId shard) const {
  ReplicaSnapshot snapshot{.server = name, .node = node(), .shard = shard};
  const server::Replica* replica = FindReplica(loop, shard);
  if (replica == nullptr) return snapshot;
  snapshot.generation = replica->generation();
  snapshot.chain_epoch = replica->chain_epoch();
  snapshot.durable = replica->durable();
  if (replica->content() == nullptr) return snapshot;
  snapshot.has_content = true;
  snapshot.index = replica->content()->index();
  snapshot.version = replica->content()->version().value();
  snapshot.digest = replica->content()->Digest();
  if (replica->content()->sparse() != nullptr) snapshot.rows = replica->content()->sparse()->rows();
  // Looking takes no virtual time.
  if (!devices_.empty()) devices_[loop - 1]->TakeBusyTime();
  return snapshot;
}

}  // namespace covey::sim
