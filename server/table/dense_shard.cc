// SPDX-License-Identifier: Apache-2.0
#include "server/table/dense_shard.h"

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/buffer.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/vectors/evaluate.h"
#include "server/table/sample_count.h"

namespace covey::server {

absl::StatusOr<std::unique_ptr<DenseShard>> DenseShard::Create(const DenseShardConfig& config,
                                                               TableMemory& memory) {
  if (config.element_count == 0 || config.element_count > kTableElementsMax ||
      config.first_element > kTableElementsMax - config.element_count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "open shard: ", config.element_count, " elements from ", config.first_element,
        " on; choose at least 1, and none beyond the ", kTableElementsMax, " of a table"));
  }
  COVEY_RETURN_IF_ERROR(config.initializer.Validate());
  COVEY_RETURN_IF_ERROR(config.optimizer.Validate());
  COVEY_ASSIGN_OR_RETURN(auto schedule, LearningRateSchedule::Create(config.learning_rate));
  Buffer values = memory.NewArray(config.element_count * sizeof(float));
  Initialize(config.initializer, config.first_element, values.MutableAs<float>());
  COVEY_ASSIGN_OR_RETURN(auto held, memory.Hold(config.optimizer, std::move(values)));
  return absl::WrapUnique(new DenseShard(config, schedule, std::move(held)));
}

DenseShard::DenseShard(const DenseShardConfig& config, LearningRateSchedule schedule,
                       std::unique_ptr<ShardMemory> memory)
    : first_element_(config.first_element),
      element_count_(config.element_count),
      columns_(config.columns),
      schedule_(schedule),
      has_vectors_(config.optimizer.kind == OptimizerKind::kVectors),
      memory_(std::move(memory)) {}

void DenseShard::Restore(Buffer values, std::vector<Buffer> slots, uint64_t version,
                         uint64_t samples) {
  memory_->Restore(std::move(values), std::move(slots));
  version_ = version;
  samples_ = samples;
}

absl::Status DenseShard::Apply(std::span<const float> gradient_sum, uint64_t samples,
                               const UpdateAdjustment& adjustment) {
  if (gradient_sum.size() != element_count()) {
    return absl::InvalidArgumentError(absl::StrCat("apply: the gradient has ", gradient_sum.size(),
                                                   " elements, the shard has ", element_count(),
                                                   "; push the shard's own element range"));
  }
  COVEY_RETURN_IF_ERROR(CheckSamples(samples, samples_));
  const UpdateContext context = {
      .learning_rate = schedule_.RateAt(samples_ + samples) * adjustment.rate_factor,
      .gradient_scale = 1 / static_cast<double>(samples),
      .update_index = version_ + 1,
      .momentum = adjustment.momentum};
  memory_->Update(context, gradient_sum);
  ++version_;
  samples_ += samples;
  return absl::OkStatus();
}

absl::Status DenseShard::Apply(std::span<const VectorFunction> functions) {
  COVEY_RETURN_IF_ERROR(CheckFunctions(functions, vectors()));
  for (const VectorFunction& function : functions) {
    // A second handle to the target would make the change go to another buffer.
    const bool has_other = function.has_source() && function.source != function.target;
    const Buffer other = has_other ? Vector(function.source) : Buffer();
    memory_->Change(function.target, [&](std::span<const float> in, std::span<float> out) {
      ApplyFunction(function, has_other ? other.As<float>() : in, in, out);
    });
  }
  ++version_;
  return absl::OkStatus();
}

std::vector<VectorAnswer> DenseShard::Answer(std::span<const VectorQuery> queries) const {
  std::vector<VectorAnswer> answers;
  for (const VectorQuery& query : queries) {
    const Buffer vector = Vector(query.vector);
    const Buffer other = query.kind == VectorQuery::Kind::kDot ? Vector(query.other) : Buffer();
    answers.push_back(AnswerOfShard(query, vector.As<float>(), other.As<float>(), first_element()));
  }
  return answers;
}

}  // namespace covey::server
