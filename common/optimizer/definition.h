// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "common/optimizer/learning_rate.h"
#include "common/optimizer/optimizer.h"
#include "proto/table.pb.h"

namespace covey {

// What a table's definition says of learning, with the defaults of table.proto filled in: for
// whoever runs a table's optimizer. Ranges are checked where the configs are used.
// INVALID_ARGUMENT: a kind that this program does not know; names the field.
absl::StatusOr<OptimizerConfig> OptimizerFromProto(const proto::Optimizer& optimizer);
absl::StatusOr<LearningRateConfig> LearningRateFromProto(const proto::LearningRate& rate);

}  // namespace covey
