// SPDX-License-Identifier: Apache-2.0
#include "worker/update/round_rows.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/optimizer/kernels.h"

namespace covey::worker {

absl::StatusOr<RoundRows> RoundRows::Create(const Config& config) {
  COVEY_CHECK(config.width > 0 && config.rows_max > 0);
  COVEY_ASSIGN_OR_RETURN(auto optimizer, RowOptimizer::Create(config.optimizer, config.width));
  COVEY_ASSIGN_OR_RETURN(const auto schedule, LearningRateSchedule::Create(config.learning_rate));
  return RoundRows(config, std::move(optimizer), schedule);
}

RoundRows::RoundRows(const Config& config, std::unique_ptr<RowOptimizer> optimizer,
                     const LearningRateSchedule& schedule)
    : config_(config),
      optimizer_(std::move(optimizer)),
      schedule_(schedule),
      slots_(optimizer_->slots()) {}

void RoundRows::FindMissing(std::span<const uint64_t> keys, std::vector<uint64_t>& missing) const {
  for (const uint64_t key : keys) {
    const auto found = index_.find(key);
    if (found == index_.end() || rows_[found->second].round != round_) missing.push_back(key);
  }
}

absl::Status RoundRows::CheckRoom(size_t missing) const {
  if (missing <= config_.rows_max - in_round_) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the round has ", in_round_, " rows, the batch ", missing, " others, and ", config_.rows_max,
      " is the most (rows_max); allow more rows, or make rounds or batches shorter"));
}

void RoundRows::Begin(std::span<const uint64_t> keys, std::span<const float> rows) {
  COVEY_CHECK(CheckRoom(keys.size()).ok() && rows.size() == keys.size() * config_.width);
  // Those of earlier rounds first, so that they do not make room for the others.
  for (const uint64_t key : keys) {
    const auto found = index_.find(key);
    if (found != index_.end()) rows_[found->second].round = round_;
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto found = index_.find(keys[i]);
    const uint32_t number = found != index_.end() ? found->second : MakeRow(keys[i]);
    rows_[number].round = round_;
    const std::span<const float> row = rows.subspan(i * config_.width, config_.width);
    std::copy(row.begin(), row.end(), At(starts_, number, config_.width).begin());
    std::copy(row.begin(), row.end(), At(values_, number, config_.width).begin());
  }
  in_round_ += keys.size();
}

uint32_t RoundRows::MakeRow(uint64_t key) {
  if (index_.size() == config_.rows_max) DropOldRows();
  uint32_t number = static_cast<uint32_t>(rows_.size());
  if (free_.empty()) {
    rows_.emplace_back();
    starts_.resize(rows_.size() * config_.width);
    values_.resize(rows_.size() * config_.width);
    for (size_t slot = 0; slot < slots_.size(); ++slot) {
      slots_[slot].resize(rows_.size() * optimizer_->slot_width(slot));
    }
  } else {
    number = free_.back();
    free_.pop_back();
    Clear(number);
  }
  rows_[number].key = key;
  index_.emplace(key, number);
  return number;
}

void RoundRows::Clear(uint32_t number) {
  rows_[number] = {};
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    std::ranges::fill(At(slots_[slot], number, optimizer_->slot_width(slot)), 0.0f);
  }
}

void RoundRows::DropOldRows() {
  std::vector<uint32_t> old;
  for (uint32_t number = 0; number < rows_.size(); ++number) {
    if (rows_[number].round < round_) old.push_back(number);
  }
  COVEY_CHECK(!old.empty() && free_.empty());
  std::ranges::sort(old, {}, [this](uint32_t number) {
    return std::pair(rows_[number].round, rows_[number].key);
  });
  old.resize((old.size() + 1) / 2);
  for (const uint32_t number : old) index_.erase(rows_[number].key);
  free_ = std::move(old);
}

uint32_t RoundRows::NumberOf(uint64_t key) const {
  const auto found = index_.find(key);
  COVEY_CHECK(found != index_.end() && rows_[found->second].round == round_);
  return found->second;
}

std::span<const float> RoundRows::Find(uint64_t key) const {
  return std::span(values_).subspan(NumberOf(key) * config_.width, config_.width);
}

absl::Status RoundRows::CheckFinite(std::span<const uint64_t> keys,
                                    std::span<const float> sums) const {
  if (!config_.refuses_non_finite) return absl::OkStatus();
  const std::optional<size_t> bad = FirstNonFinite(sums);
  if (!bad) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the gradient holds ", sums[*bad], " at column ", *bad % config_.width, " of key ",
      keys[*bad / config_.width],
      "; nothing was applied. Lower the learning rate, or let the table accept such gradients"));
}

absl::Status RoundRows::Step(std::span<const uint64_t> keys, std::span<const float> sums,
                             uint64_t samples) {
  COVEY_CHECK(samples > 0 && sums.size() == keys.size() * config_.width);
  COVEY_RETURN_IF_ERROR(CheckFinite(keys, sums));
  samples_ += samples;
  all_samples_ += samples;
  const UpdateContext context = {.learning_rate = schedule_.RateAt(all_samples_),
                                 .gradient_scale = 1 / static_cast<double>(samples)};
  std::array<RowUpdate, kRowsPerUpdateMax> updates;
  std::array<uint32_t, kRowsPerUpdateMax> counts;
  for (size_t first = 0; first < keys.size(); first += kRowsPerUpdateMax) {
    const size_t count = std::min(kRowsPerUpdateMax, keys.size() - first);
    for (size_t i = 0; i < count; ++i) {
      const uint32_t number = NumberOf(keys[first + i]);
      Row& row = rows_[number];
      if (row.touched != round_) touched_.push_back(number);
      row.touched = round_;
      counts[i] = ++row.updates;
      updates[i] = {.gradient_sum = sums.data() + (first + i) * config_.width,
                    .values = At(values_, number, config_.width).data()};
      for (size_t slot = 0; slot < slots_.size(); ++slot) {
        updates[i].slots[slot] = At(slots_[slot], number, optimizer_->slot_width(slot)).data();
      }
    }
    optimizer_->Apply(context, std::span(updates).first(count), std::span(counts).first(count));
  }
  return absl::OkStatus();
}

std::vector<uint64_t> RoundRows::Touched() const {
  std::vector<uint64_t> keys;
  for (const uint32_t number : touched_) keys.push_back(rows_[number].key);
  return keys;
}

void RoundRows::ChangeOf(uint64_t key, std::span<float> change) const {
  const uint32_t number = NumberOf(key);
  const auto weight = static_cast<float>(samples_);
  for (size_t c = 0; c < config_.width; ++c) {
    const size_t at = number * config_.width + c;
    change[c] = weight * (starts_[at] - values_[at]);
  }
}

void RoundRows::NextRound() {
  ++round_;
  samples_ = 0;
  in_round_ = 0;
  touched_.clear();
}

}  // namespace covey::worker
