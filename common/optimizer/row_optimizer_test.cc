// SPDX-License-Identifier: Apache-2.0
#include "common/optimizer/row_optimizer.h"

#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "common/base/random.h"
#include "common/tensor/testing/each_target.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

// Rows with slots, as a shard holds them.
class Rows {
 public:
  Rows(const OptimizerConfig& config, size_t width, size_t rows, float value = 0)
      : width_(width), optimizer_(RowOptimizer::Create(config, width).value()) {
    values_.assign(rows, std::vector<float>(width, value));
    counts_.assign(rows, 0);
    for (size_t slot = 0; slot < optimizer_->slots(); ++slot) {
      slots_.emplace_back(rows, std::vector<float>(optimizer_->slot_width(slot), 0.0f));
    }
  }

  // One update of some rows; one gradient sum for each.
  void Update(double rate, double samples, const std::vector<size_t>& rows,
              const std::vector<std::vector<float>>& gradients) {
    std::vector<RowUpdate> updates;
    std::vector<uint32_t> counts;
    for (size_t i = 0; i < rows.size(); ++i) {
      RowUpdate& update = updates.emplace_back();
      update.gradient_sum = gradients[i].data();
      update.values = values_[rows[i]].data();
      for (size_t slot = 0; slot < slots_.size(); ++slot) {
        update.slots[slot] = slots_[slot][rows[i]].data();
      }
      counts.push_back(++counts_[rows[i]]);
    }
    optimizer_->Apply({.learning_rate = rate, .gradient_scale = 1 / samples}, updates, counts);
  }
  // Of row 0 alone.
  void Step(double rate, std::vector<float> gradient) { Update(rate, 1, {0}, {gradient}); }

  const std::vector<float>& Values(size_t row) const { return values_[row]; }
  const std::vector<float>& Slot(size_t slot, size_t row) const { return slots_[slot][row]; }
  size_t width() const { return width_; }

 private:
  const size_t width_;
  const std::unique_ptr<RowOptimizer> optimizer_;
  std::vector<std::vector<float>> values_;
  std::vector<std::vector<std::vector<float>>> slots_;
  std::vector<uint32_t> counts_;
};

class RowOptimizerTest : public EachTargetTest {};
COVEY_FOR_EACH_TARGET(RowOptimizerTest);

// An element of each row that is part of every update goes the way of a dense table's, bit for bit.
TEST_P(RowOptimizerTest, RowsOfEveryUpdateHaveTheBitsOfDenseTables) {
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kAdagrad, OptimizerKind::kAdam}) {
    for (const size_t width : {1, 3, 16, 17, 100}) {
      const OptimizerConfig config{.kind = kind};
      Rows rows(config, width, 3, 0.25f);
      const auto dense = MakeOptimizer(config).value();
      std::vector<float> values(3 * width, 0.25f);
      std::vector<std::vector<float>> slots(dense->state_slots(),
                                            std::vector<float>(3 * width, 0.0f));
      Random random(width);
      for (uint64_t update = 1; update <= 50; ++update) {
        std::vector<std::vector<float>> gradients(3);
        std::vector<float> all;
        for (auto& gradient : gradients) {
          for (size_t i = 0; i < width; ++i) {
            gradient.push_back(static_cast<float>(random.Uniform() - 0.4));
          }
          all.insert(all.end(), gradient.begin(), gradient.end());
        }
        rows.Update(0.1, 7, {0, 1, 2}, gradients);
        std::vector<SlotSpans> spans;
        for (auto& slot : slots) spans.push_back(InPlace(slot));
        dense->Apply({.learning_rate = 0.1, .gradient_scale = 1.0 / 7, .update_index = update}, all,
                     values, values, spans);
      }
      for (size_t row = 0; row < 3; ++row) {
        for (size_t i = 0; i < width; ++i) {
          ASSERT_EQ(rows.Values(row)[i], values[row * width + i]) << OptimizerName(kind) << width;
        }
      }
    }
  }
}

// Figures of FBGEMM's rule, worked out by hand: w = 1, g = (.1, .2, .3, .4), rate .1.
TEST_P(RowOptimizerTest, RowwiseAdagradIsFbgemms) {
  Rows rows({.kind = OptimizerKind::kRowwiseAdagrad, .epsilon = 1e-10}, 4, 1, 1.0f);
  rows.Step(0.1, {.1f, .2f, .3f, .4f});
  EXPECT_FLOAT_EQ(rows.Slot(0, 0)[0], .075f);
  const std::array<float, 4> first = {.9634852f, .9269703f, .8904555f, .8539407f};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(rows.Values(0)[i], first[i], 2e-7f);
  rows.Step(0.1, {.1f, .2f, .3f, .4f});
  EXPECT_FLOAT_EQ(rows.Slot(0, 0)[0], .15f);
  const std::array<float, 4> second = {.9376653f, .8753305f, .8129958f, .7506611f};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(rows.Values(0)[i], second[i], 2e-7f);
}

TEST_P(RowOptimizerTest, TheMeanSquareOfARowCountsEachElementOnce) {
  for (const size_t width : {1, 7, 8, 9, 16, 100}) {
    Rows rows({.kind = OptimizerKind::kRowwiseAdagrad}, width, 1, 0.0f);
    std::vector<float> gradient;
    double squares = 0;
    for (size_t i = 0; i < width; ++i) {
      gradient.push_back(static_cast<float>(i + 1));
      squares += (i + 1.0) * (i + 1.0);
    }
    rows.Step(0.1, gradient);
    EXPECT_FLOAT_EQ(rows.Slot(0, 0)[0], static_cast<float>(squares / width)) << width;
  }
}

// McMahan et al. 2013, algorithm 1, with gradients 1, 1, -4. An implementation that takes the sign
// bit for the sign gives -.05, -.0914, -.0151.
TEST_P(RowOptimizerTest, FtrlIsThePapers) {
  Rows rows({.kind = OptimizerKind::kFtrl, .ftrl_beta = 1, .l1 = 0.5}, 1, 1);
  rows.Step(0.1, {1});
  EXPECT_FLOAT_EQ(rows.Values(0)[0], -0.025f);
  rows.Step(0.1, {1});
  EXPECT_NEAR(rows.Values(0)[0], -0.0664213523, 1e-8);
  rows.Step(0.1, {-4});
  EXPECT_EQ(rows.Values(0)[0], 0);
}

// Against the definition in double, along a random path.
TEST_P(RowOptimizerTest, FtrlFollowsItsDefinition) {
  Rows rows({.kind = OptimizerKind::kFtrl, .ftrl_beta = 0.5, .l1 = 0.3, .l2 = 0.1}, 1, 1);
  double z = 0, n = 0, w = 0;
  Random random(3);
  for (int update = 0; update < 300; ++update) {
    const float g = static_cast<float>(random.Uniform() - 0.45);
    const double sigma = (std::sqrt(n + double{g} * g) - std::sqrt(n)) / 0.2;
    z += g - sigma * w;
    n += double{g} * g;
    w = std::abs(z) <= 0.3 ? 0 : -(z - std::copysign(0.3, z)) / ((0.5 + std::sqrt(n)) / 0.2 + 0.1);
    rows.Step(0.2, {g});
    ASSERT_NEAR(rows.Values(0)[0], w, 2e-5) << update;
  }
}

// A row that was updated at steps 1 and 3 only: 1.0, .9, .8 with equal gradients, because bias is
// corrected by the row's own count (the table's would give .8142).
TEST_P(RowOptimizerTest, AdamCountsTheUpdatesOfTheRow) {
  Rows rows({.kind = OptimizerKind::kAdam}, 1, 2, 1.0f);
  rows.Update(0.1, 1, {0, 1}, {{.1f}, {.1f}});
  rows.Update(0.1, 1, {1}, {{.1f}});
  rows.Update(0.1, 1, {0, 1}, {{.1f}, {.1f}});
  EXPECT_NEAR(rows.Values(0)[0], 0.8f, 1e-6f);
  EXPECT_NEAR(rows.Values(1)[0], 0.7f, 1e-6f);
}

// Beyond the updates whose corrections are kept, too.
TEST_P(RowOptimizerTest, AdamCorrectsLateUpdatesAlike) {
  const OptimizerConfig config{.kind = OptimizerKind::kAdam, .beta2 = 0.9999};
  Rows rows(config, 1, 1, 1.0f);
  const auto dense = MakeOptimizer(config).value();
  std::vector<float> value = {1.0f}, mean = {0.0f}, square = {0.0f};
  for (uint64_t update = 1; update <= 4100; ++update) {
    const std::vector<float> gradient = {static_cast<float>(update % 3) - 0.9f};
    rows.Step(0.01, gradient);
    const std::vector<SlotSpans> slots = {InPlace(mean), InPlace(square)};
    dense->Apply({.learning_rate = 0.01, .gradient_scale = 1, .update_index = update}, gradient,
                 value, value, slots);
    ASSERT_EQ(rows.Values(0)[0], value[0]) << update;
  }
}

TEST(RowOptimizerConfigTest, WhatHasNoMeaningForRowsIsRefusedWithTheReason) {
  const auto refusal = [](const OptimizerConfig& config) {
    return std::string(RowOptimizer::Create(config, 4).status().message());
  };
  EXPECT_EQ(refusal({.kind = OptimizerKind::kMomentum}),
            "optimizer: momentum is not for sparse tables: the velocity would move rows that an "
            "update does not hold; choose sgd, adagrad, rowwise_adagrad, adam or ftrl");
  EXPECT_NE(refusal({.kind = OptimizerKind::kLamb}).find("norms over all rows"), std::string::npos);
  EXPECT_NE(refusal({.kind = OptimizerKind::kAdamW}).find("weight decay"), std::string::npos);
  EXPECT_NE(refusal({.kind = OptimizerKind::kSgd, .weight_decay = 0.1}).find("set it to 0, or"),
            std::string::npos);
  EXPECT_NE(refusal({.kind = OptimizerKind::kFtrl, .l1 = -1}).find("l1 is -1"), std::string::npos);
}

TEST(RowOptimizerConfigTest, ADenseTableHasNoRows) {
  for (const OptimizerKind kind : {OptimizerKind::kRowwiseAdagrad, OptimizerKind::kFtrl}) {
    EXPECT_EQ(MakeOptimizer({.kind = kind}).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace covey
