// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "common/optimizer/learning_rate.h"
#include "common/optimizer/optimizer.h"
#include "proto/table.pb.h"

namespace covey {

// The part of a table's definition that concerns learning, with the defaults of table.proto filled
// in. Used by servers and by workers that run a table's optimizer. Callers check the ranges.
// INVALID_ARGUMENT: a kind that this program does not know; names the field.
absl::StatusOr<OptimizerConfig> OptimizerFromProto(const proto::Optimizer& optimizer);
absl::StatusOr<LearningRateConfig> LearningRateFromProto(const proto::LearningRate& rate);

}  // namespace covey
