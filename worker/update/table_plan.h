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
#include "worker/group/group_machine.h"
#include "worker/hybrid_options.h"
#include "worker/layout/model_layout.h"
#include "worker/update/local_machine.h"
#include "worker/update/owned_values.h"
#include "worker/update/part_update.h"
#include "worker/update/round_memory.h"
#include "worker/update/server_link.h"

namespace covey::worker {

// What a group makes of one table of its model: a function of the table, the options and the
// table's place in the model, so the same on all members. Pure.
struct TablePlan {
  WireFormat format = WireFormat::kFloat32;
  bool error_feedback = false;
  // The members run an optimizer on their parts: that of the table (distributed), or the inner one.
  std::optional<OwnedValues::Config> owned;
  // The table is LOCAL.
  std::optional<LocalRounds> rounds;

  // Tables of different kinds do not share a bucket.
  uint64_t kind() const;
};

// INVALID_ARGUMENT: mode and contract do not go together, or the definition holds a kind that this
// program does not know; names the table.
absl::StatusOr<std::vector<TablePlan>> PlanTables(std::span<const proto::Table* const> tables,
                                                  const ClusterView& view,
                                                  const HybridOptions& options);

// The layout of a model with these plans.
std::unique_ptr<const ModelLayout> LayoutOf(std::span<const proto::Table* const> tables,
                                            std::span<const TablePlan> plans, uint32_t members,
                                            const FusionLimits& fusion);

// What members know of the rounds of the bucket's tables, if these are LOCAL.
std::optional<RoundMemory> MakeRoundMemory(const Bucket& bucket, std::span<const TablePlan> plans);

// How this member's part of a bucket is updated. INVALID_ARGUMENT: an optimizer's definition is not
// valid; names the table.
absl::StatusOr<std::unique_ptr<PartUpdate>> MakeUpdate(const Bucket& bucket,
                                                       std::span<const proto::Table* const> tables,
                                                       std::span<const TablePlan> plans,
                                                       GroupMachine& group, ServerLink& link);

}  // namespace covey::worker
