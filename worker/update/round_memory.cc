// SPDX-License-Identifier: Apache-2.0
#include "worker/update/round_memory.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/base/check.h"

namespace covey::worker {
namespace {

constexpr size_t kFloatsPerWord = 2;
constexpr size_t kWordsPerPiece = 4;

void WriteWord(uint64_t word, std::span<float>& to) {
  to[0] = std::bit_cast<float>(static_cast<uint32_t>(word));
  to[1] = std::bit_cast<float>(static_cast<uint32_t>(word >> 32));
  to = to.subspan(kFloatsPerWord);
}

uint64_t ReadWord(std::span<const float>& from) {
  const uint64_t word = std::bit_cast<uint32_t>(from[0]) |
                        static_cast<uint64_t>(std::bit_cast<uint32_t>(from[1])) << 32;
  from = from.subspan(kFloatsPerWord);
  return word;
}

}  // namespace

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
  states_.assign(pieces_.size(), State());
}

void RoundMemory::Rebase(const Piece& piece, State& state, std::span<const float> values) {
  const std::vector<float>& since = state.pushed_step > 0 ? pushed_values_ : start_;
  const size_t end = piece.elements.first + piece.elements.count;
  for (size_t i = piece.elements.first; i < end; ++i) {
    start_[i] = values[i] - (values_[i] - since[i]);
  }
  state.pushed_step = 0;
}

void RoundMemory::TakeStep(Step step, std::span<const float> values, uint64_t samples) {
  COVEY_CHECK(values.size() == values_.size());
  Count(step, values, std::max<uint64_t>(samples, 1));
  std::copy(values.begin(), values.end(), values_.begin());
  empty_ = false;
  learned_ = step;
}

void RoundMemory::Skip(Step step) { Count(step, values_, 0); }

void RoundMemory::Count(Step step, std::span<const float> values, uint64_t samples) {
  for (size_t p = 0; p < pieces_.size(); ++p) {
    const auto& [elements, rounds] = pieces_[p];
    State& state = states_[p];
    state.samples += samples;
    state.all_samples += samples;
    if (state.pushed_step > 0 && step.value() >= state.pushed_step + rounds.overlap) {
      Rebase(pieces_[p], state, values);
    }
    if (!rounds.EndsWith(step)) continue;
    const auto at = static_cast<ptrdiff_t>(elements.first);
    const auto now = values.subspan(elements.first, elements.count);
    if (rounds.overlap > 0) {
      std::copy_n(start_.begin() + at, elements.count, pushed_start_.begin() + at);
      std::copy(now.begin(), now.end(), pushed_values_.begin() + at);
      state.pushed_step = step.value();
      state.pushed_samples = std::max<uint64_t>(state.samples, 1);
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

size_t RoundMemory::saved_floats() const {
  return kFloatsPerWord * (1 + kWordsPerPiece * pieces_.size()) + values_.size() + start_.size() +
         pushed_start_.size() + pushed_values_.size();
}

void RoundMemory::Save(std::span<float> to) const {
  COVEY_CHECK(to.size() == saved_floats());
  WriteWord(learned_.value(), to);
  for (const State& state : states_) {
    WriteWord(state.samples, to);
    WriteWord(state.all_samples, to);
    WriteWord(state.pushed_step, to);
    WriteWord(state.pushed_samples, to);
  }
  for (const auto* values : {&values_, &start_, &pushed_start_, &pushed_values_}) {
    std::copy(values->begin(), values->end(), to.begin());
    to = to.subspan(values->size());
  }
}

void RoundMemory::Load(std::span<const float> from) {
  COVEY_CHECK(from.size() == saved_floats());
  learned_ = Step(ReadWord(from));
  for (State& state : states_) {
    state.samples = ReadWord(from);
    state.all_samples = ReadWord(from);
    state.pushed_step = ReadWord(from);
    state.pushed_samples = ReadWord(from);
  }
  for (auto* values : {&values_, &start_, &pushed_start_, &pushed_values_}) {
    std::copy_n(from.begin(), values->size(), values->begin());
    from = from.subspan(values->size());
  }
  empty_ = false;
}

RoundMemory::Round RoundMemory::At(const PartRange& elements) const {
  COVEY_CHECK(!empty_);
  const auto piece = std::find_if(pieces_.begin(), pieces_.end(), [&](const Piece& candidate) {
    return elements.first >= candidate.elements.first &&
           elements.first + elements.count <= candidate.elements.first + candidate.elements.count;
  });
  COVEY_CHECK(piece != pieces_.end());
  const State& state = states_[static_cast<size_t>(piece - pieces_.begin())];
  const auto part = [&](const std::vector<float>& all) {
    return std::span(all).subspan(elements.first, elements.count);
  };
  Round round{.values = part(values_),
              .start = part(start_),
              .samples = state.samples,
              .all_samples = state.all_samples};
  if (state.pushed_step > 0) {
    round.pushed = {.step = Step(state.pushed_step),
                    .start = part(pushed_start_),
                    .values = part(pushed_values_),
                    .samples = state.pushed_samples};
  }
  return round;
}

}  // namespace covey::worker
