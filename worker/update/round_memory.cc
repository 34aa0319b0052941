// SPDX-License-Identifier: Apache-2.0
#include "worker/update/round_memory.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace covey::worker {

RoundMemory::RoundMemory(size_t elements, std::vector<Piece> pieces)
    : pieces_(std::move(pieces)), states_(pieces_.size()), values_(elements), start_(elements) {
  for (const Piece& piece : pieces_) {
    COVEY_CHECK(piece.elements.first + piece.elements.count <= elements);
    if (piece.rounds.overlap == 0) continue;
    pushed_start_.resize(elements);
    pushed_values_.resize(elements);
  }
}

void RoundMemory::Clear() {
  empty_ = true;
  learned_ = Step();
  states_.assign(pieces_.size(), TableRound());
}

void RoundMemory::Rebase(const Piece& piece, TableRound& state, std::span<const float> values) {
  const std::vector<float>& since = state.pushed > Step() ? pushed_values_ : start_;
  const size_t end = piece.elements.first + piece.elements.count;
  for (size_t i = piece.elements.first; i < end; ++i) {
    start_[i] = values[i] - (values_[i] - since[i]);
  }
  state.pushed = Step();
}

void RoundMemory::TakeStep(Step step, std::span<const float> values, uint64_t samples) {
  COVEY_CHECK(values.size() == values_.size());
  Count(step, values, samples);
  std::copy(values.begin(), values.end(), values_.begin());
  empty_ = false;
  learned_ = step;
}

void RoundMemory::Skip(Step step) {
  if (!empty_) Count(step, values_, 0);
}

void RoundMemory::Count(Step step, std::span<const float> values, uint64_t samples) {
  for (size_t p = 0; p < pieces_.size(); ++p) {
    const auto& [elements, rounds] = pieces_[p];
    TableRound& state = states_[p];
    state.samples += samples;
    state.all_samples += samples;
    if (state.pushed > Step() && step.value() >= state.pushed.value() + rounds.overlap) {
      Rebase(pieces_[p], state, values);
    }
    if (!rounds.EndsWith(step)) continue;
    const auto at = static_cast<ptrdiff_t>(elements.first);
    const auto now = values.subspan(elements.first, elements.count);
    if (rounds.overlap > 0) {
      std::copy_n(start_.begin() + at, elements.count, pushed_start_.begin() + at);
      std::copy(now.begin(), now.end(), pushed_values_.begin() + at);
      state.pushed = step;
      state.pushed_samples = state.samples;
    }
    std::copy(now.begin(), now.end(), start_.begin() + at);
    state.samples = 0;
  }
}

void RoundMemory::TakeFetch(std::span<const float> values) {
  COVEY_CHECK(values.size() == values_.size());
  if (empty_) {
    std::copy(values.begin(), values.end(), start_.begin());
  } else {
    for (size_t p = 0; p < pieces_.size(); ++p) Rebase(pieces_[p], states_[p], values);
  }
  std::copy(values.begin(), values.end(), values_.begin());
  empty_ = false;
}

size_t RoundMemory::saved_values() const {
  return values_.size() + start_.size() + pushed_start_.size() + pushed_values_.size();
}

void RoundMemory::SaveValues(std::span<float> to) const {
  COVEY_CHECK(to.size() == saved_values());
  for (const auto* values : {&values_, &start_, &pushed_start_, &pushed_values_}) {
    std::copy(values->begin(), values->end(), to.begin());
    to = to.subspan(values->size());
  }
}

Buffer RoundMemory::SaveProgress() const {
  return EncodeRoundProgress({.learned = learned_, .tables = states_});
}

absl::Status RoundMemory::Load(std::span<const float> values, const Buffer& progress) {
  COVEY_CHECK(values.size() == saved_values());
  COVEY_ASSIGN_OR_RETURN(RoundProgress loaded, DecodeRoundProgress(progress, states_.size()));
  learned_ = loaded.learned;
  states_ = std::move(loaded.tables);
  for (auto* to : {&values_, &start_, &pushed_start_, &pushed_values_}) {
    std::copy_n(values.begin(), to->size(), to->begin());
    values = values.subspan(to->size());
  }
  empty_ = false;
  return absl::OkStatus();
}

RoundMemory::Round RoundMemory::At(const PartRange& elements) const {
  COVEY_CHECK(!empty_);
  const auto piece = std::find_if(pieces_.begin(), pieces_.end(), [&](const Piece& candidate) {
    return elements.first >= candidate.elements.first &&
           elements.first + elements.count <= candidate.elements.first + candidate.elements.count;
  });
  COVEY_CHECK(piece != pieces_.end());
  const TableRound& state = states_[static_cast<size_t>(piece - pieces_.begin())];
  const auto part = [&](const std::vector<float>& all) {
    return std::span(all).subspan(elements.first, elements.count);
  };
  Round round{.values = part(values_),
              .start = part(start_),
              .samples = state.samples,
              .all_samples = state.all_samples};
  if (state.pushed > Step()) {
    round.pushed = {.step = state.pushed,
                    .start = part(pushed_start_),
                    .values = part(pushed_values_),
                    .samples = state.pushed_samples};
  }
  return round;
}

}  // namespace covey::worker
