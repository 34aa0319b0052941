#pragma once

#include "absl/status/statusor.h"
#include "common/optimizer/learning_rate.h"
#include "common/optimizer/optimizer.h"
#include "proto/table.pb.h"

namespace covey {

// What a table's definition means, defaults filled in, to whoever applies updates: the shards of
// servers, and the members of groups that keep the values among themselves. Pure.
//
// INVALID_ARGUMENT: a kind is not known here. Ranges are checked by MakeOptimizer and
// LearningRateSchedule::Create.
absl::StatusOr<OptimizerConfig> OptimizerFromProto(const proto::Optimizer& optimizer);
absl::StatusOr<LearningRateConfig> LearningRateFromProto(const proto::LearningRate& rate);

}  // namespace covey
