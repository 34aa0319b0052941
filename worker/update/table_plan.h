// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cluster/view.h"
#include "common/tensor/wire_format.h"
#include "proto/view.pb.h"
#include "worker/group/communicator.h"
#include "worker/hybrid_options.h"
#include "worker/layout/gradient_format.h"
#include "worker/layout/model_layout.h"
#include "worker/update/local_sgd_part.h"
#include "worker/update/member_shards.h"
#include "worker/update/part_update.h"
#include "worker/update/round_memory.h"
#include "worker/update/server_link.h"

namespace covey::worker {

// How a group treats one table of its model: a function of the table, the job, the options and the
// table's place in the model, so the same on all members. Pure.
struct TablePlan {
  GradientFormat gradient;
  // The wire format of new values; where the program updates, of mean gradients.
  WireFormat value_format = WireFormat::kFloat32;
  // Set if the members run an optimizer on their parts: the table's (distributed), or the inner
  // one.
  std::optional<MemberShards::Config> member_optimizer;
  // Set if the table is LOCAL.
  std::optional<LocalRounds> rounds;
  // Set if the program updates (Synchronization::kProgram).
  struct ProgramMean {
    bool refuses_non_finite = true;
  };
  std::optional<ProgramMean> program_mean;

  FusionKind kind() const {
    return {.format = gradient.format,
            .value_format = value_format,
            .members_update = member_optimizer.has_value(),
            .is_local = rounds.has_value()};
  }
};

// The plan of a whole model, for a group of a given size.
struct ModelPlan {
  std::shared_ptr<const ClusterView> view;
  std::vector<const proto::Table*> tables;  // of the view
  std::vector<TablePlan> plans;             // of the tables
  std::unique_ptr<const ModelLayout> layout;
};

// INVALID_ARGUMENT: mode and contract are incompatible, or the definition has a kind that this
// program does not know; names the table.
absl::StatusOr<std::vector<TablePlan>> PlanTables(std::span<const proto::Table* const> tables,
                                                  const ClusterView& view,
                                                  const HybridOptions& options);

// Errors as PlanTables; INVALID_ARGUMENT, too: the group is too large for the options; NOT_FOUND: a
// table is not in the view.
absl::StatusOr<ModelPlan> PlanModel(std::span<const TableId> tables,
                                    std::shared_ptr<const ClusterView> view,
                                    const HybridOptions& options, uint32_t members);

// The memory of the rounds of the bucket's tables, if these are LOCAL.
std::optional<RoundMemory> MakeRoundMemory(const Bucket& bucket, std::span<const TablePlan> plans);

// The update of this member's part of a bucket. INVALID_ARGUMENT: an optimizer's definition is not
// valid; names the table.
absl::StatusOr<std::unique_ptr<PartUpdate>> MakeUpdate(const Bucket& bucket, const ModelPlan& model,
                                                       Communicator& group, ServerLink& link);

}  // namespace covey::worker
