// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/random.h"
#include "common/contract/contract.h"
#include "common/tensor/wire_format.h"
#include "proto/table.pb.h"
#include "worker/group/communicator.h"
#include "worker/hybrid_options.h"

namespace covey::sim {

// Configuration of a run of the workload "groups". A value.
struct GroupsPlan {
  struct Table {
    uint32_t shards = 1;
    Contract contract;
    WireFormat format = WireFormat::kFloat32;  // of gradients
    WireFormat value_format = WireFormat::kFloat32;
    uint32_t replicas = 0;  // of each shard; 0 = the default
  };

  uint32_t groups = 1;
  uint32_t members = 1;  // of each group, when training begins
  // Start times of late workers, as fractions of the fault phase. Empty without elastic membership.
  std::vector<double> late_starts;
  bool elastic = false;
  // Workers that an administrator drains, with times as above. Empty in distributed mode.
  struct Drain {
    uint32_t rank = 0;
    double at = 0;
  };
  std::vector<Drain> drains;
  std::vector<Table> tables;
  uint64_t ordinary_steps = 1;
  // After the fault phase every remaining group takes this many further steps, which must succeed.
  uint64_t last_steps = 2;
  uint64_t samples = 1;  // of a group in a step
  worker::Communicator::Options group;
  worker::HybridOptions hybrid;
  // How long a program waits for a step, in addition to the others' think time.
  absl::Duration patience;
  // Members are away for longer than that now and then, and say so.
  bool away = false;
  double haste = 1;
  // Whether the network, apart from the faults, loses next to nothing. A lost slice breaks a group.
  bool calm = false;
  double fault_share = 1;

  uint64_t steps() const { return ordinary_steps + last_steps; }
  // The most groups that a run can have in all.
  uint32_t positions() const;
  // Of each shard.
  uint64_t elements() const { return (positions() * steps() + 15) / 16 * 16; }
  bool distributed() const {
    return hybrid.synchronization == worker::Synchronization::kDistributed;
  }
  // The programs update, with the mean gradients of one group that is not elastic.
  bool by_program() const { return hybrid.synchronization == worker::Synchronization::kProgram; }
  bool HasContract(Contract::Kind kind) const;
  bool HasFormat(WireFormat format) const;
  proto::TableSpec Spec(size_t table) const;
};

GroupsPlan DrawGroupsPlan(Random random);
// One line.
std::string Describe(const GroupsPlan& plan);

// The samples of one member of a group, when the whole group has `all` in the step that `random`
// belongs to. All members compute the same division.
uint64_t SamplesOf(Random random, uint64_t all, uint32_t rank, uint32_t size);

}  // namespace covey::sim
