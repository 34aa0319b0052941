// SPDX-License-Identifier: Apache-2.0
#include "common/optimizer/row_optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/optimizer/portable_math.h"

namespace covey {
namespace {

GradientScalars GradientOf(const UpdateContext& context) {
  return {.gradient_scale = static_cast<float>(context.gradient_scale)};
}

class RowSgd final : public RowOptimizer {
 public:
  explicit RowSgd(size_t width) : RowOptimizer(width) {}

  size_t slots() const override { return 0; }

 private:
  void Update(const UpdateContext& context, std::span<const RowUpdate> rows,
              std::span<const uint32_t> /*updates*/) const override {
    UpdateRowsSgd({.gradient = GradientOf(context),
                   .learning_rate = static_cast<float>(context.learning_rate)},
                  width(), rows);
  }
};

// Both kinds of Adagrad: a sum of squares for each element, or one for each row.
class RowAdagrad final : public RowOptimizer {
 public:
  RowAdagrad(const OptimizerConfig& config, size_t width)
      : RowOptimizer(width),
        epsilon_(static_cast<float>(config.epsilon)),
        is_rowwise_(config.kind == OptimizerKind::kRowwiseAdagrad) {}

  size_t slots() const override { return 1; }
  size_t slot_width(size_t /*slot*/) const override { return is_rowwise_ ? 1 : width(); }

 private:
  void Update(const UpdateContext& context, std::span<const RowUpdate> rows,
              std::span<const uint32_t> /*updates*/) const override {
    const AdagradScalars scalars{.gradient = GradientOf(context),
                                 .learning_rate = static_cast<float>(context.learning_rate),
                                 .epsilon = epsilon_};
    (is_rowwise_ ? UpdateRowsRowwiseAdagrad : UpdateRowsAdagrad)(scalars, width(), rows);
  }

  const float epsilon_;
  const bool is_rowwise_;
};

// Slot 0: running mean of the gradient; slot 1: running mean of its square.
class RowAdam final : public RowOptimizer {
 public:
  RowAdam(const OptimizerConfig& config, size_t width) : RowOptimizer(width), config_(config) {
    for (uint32_t t = 1; t <= kKnownCorrections; ++t) known_.push_back(CorrectionAt(t));
  }

  size_t slots() const override { return 2; }

 private:
  // Two powers cost more than the update of a row, so the corrections of the first updates, which
  // are most, are computed once.
  static constexpr uint32_t kKnownCorrections = 4096;
  struct Correction {
    double mean;
    float root;
  };

  Correction CorrectionAt(uint32_t update) const {
    return {.mean = 1 / (1 - Power(config_.beta1, update)),
            .root = static_cast<float>(std::sqrt(1 / (1 - Power(config_.beta2, update))))};
  }

  void Update(const UpdateContext& context, std::span<const RowUpdate> rows,
              std::span<const uint32_t> updates) const override {
    AdamScalars scalars{.gradient = GradientOf(context),
                        .epsilon = static_cast<float>(config_.epsilon),
                        .beta1 = static_cast<float>(config_.beta1),
                        .one_minus_beta1 = static_cast<float>(1 - config_.beta1),
                        .beta2 = static_cast<float>(config_.beta2),
                        .one_minus_beta2 = static_cast<float>(1 - config_.beta2)};
    std::array<AdamScalars, kRowsPerUpdateMax> of_rows;
    for (size_t i = 0; i < rows.size(); ++i) {
      const Correction correction =
          updates[i] <= kKnownCorrections ? known_[updates[i] - 1] : CorrectionAt(updates[i]);
      scalars.rate = static_cast<float>(context.learning_rate * correction.mean);
      scalars.root_correction = correction.root;
      of_rows[i] = scalars;
    }
    UpdateRowsAdam(std::span(of_rows).first(rows.size()), width(), rows);
  }

  const OptimizerConfig config_;
  std::vector<Correction> known_;  // of the updates 1, 2, …
};

// Slot 0: z; slot 1: n.
class RowFtrl final : public RowOptimizer {
 public:
  RowFtrl(const OptimizerConfig& config, size_t width)
      : RowOptimizer(width),
        beta_(static_cast<float>(config.ftrl_beta)),
        l1_(static_cast<float>(config.l1)),
        l2_(static_cast<float>(config.l2)) {}

  size_t slots() const override { return 2; }

 private:
  void Update(const UpdateContext& context, std::span<const RowUpdate> rows,
              std::span<const uint32_t> /*updates*/) const override {
    UpdateRowsFtrl({.gradient_scale = static_cast<float>(context.gradient_scale),
                    .alpha = static_cast<float>(context.learning_rate),
                    .beta = beta_,
                    .l1 = l1_,
                    .l2 = l2_},
                   width(), rows);
  }

  const float beta_;
  const float l1_;
  const float l2_;
};

absl::Status Refused(const OptimizerConfig& config, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("optimizer: ", OptimizerName(config.kind), " is not for sparse tables: ", why,
                   "; choose sgd, adagrad, rowwise_adagrad, adam or ftrl"));
}

}  // namespace

absl::Status CheckRowOptimizer(const OptimizerConfig& config) {
  COVEY_RETURN_IF_ERROR(config.Validate());
  switch (config.kind) {
    case OptimizerKind::kSgd:
    case OptimizerKind::kAdagrad:
    case OptimizerKind::kAdam:
    case OptimizerKind::kRowwiseAdagrad:
    case OptimizerKind::kFtrl:
      break;
    case OptimizerKind::kMomentum:
    case OptimizerKind::kNesterov:
    case OptimizerKind::kDelayedNesterov:
      return Refused(config, "the velocity would move rows that an update does not hold");
    case OptimizerKind::kAdamW:
      return Refused(config, "weight decay would change rows that an update does not hold");
    case OptimizerKind::kLars:
    case OptimizerKind::kLamb:
      return Refused(config, "its rate follows norms over all rows of a shard");
    case OptimizerKind::kVectors:
      return Refused(config, "servers compute with vectors of all elements");
  }
  if (config.weight_decay != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "optimizer: weight_decay is ", config.weight_decay, ", and on a sparse table it would ",
        "change rows that an update does not hold; set it to 0",
        config.kind == OptimizerKind::kFtrl ? ", and l1 or l2 instead"
                                            : ", or choose ftrl with l1 or l2"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<RowOptimizer>> RowOptimizer::Create(const OptimizerConfig& config,
                                                                   size_t width) {
  COVEY_CHECK(width >= 1);
  COVEY_RETURN_IF_ERROR(CheckRowOptimizer(config));
  if (config.kind == OptimizerKind::kAdam) return std::make_unique<RowAdam>(config, width);
  if (config.kind == OptimizerKind::kFtrl) return std::make_unique<RowFtrl>(config, width);
  if (config.kind == OptimizerKind::kSgd) return std::make_unique<RowSgd>(width);
  return std::make_unique<RowAdagrad>(config, width);
}

RowLayout RowOptimizer::layout(WireFormat type) const {
  RowLayout layout{.width = width_, .type = type};
  for (size_t slot = 0; slot < slots(); ++slot) layout.slot_widths[slot] = slot_width(slot);
  return layout;
}

void RowOptimizer::Apply(const UpdateContext& context, std::span<const RowUpdate> rows,
                         std::span<const uint32_t> updates) const {
  COVEY_CHECK(rows.size() == updates.size() && rows.size() <= kRowsPerUpdateMax);
  Update(context, rows, updates);
}

}  // namespace covey
