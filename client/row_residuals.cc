// SPDX-License-Identifier: Apache-2.0
#include "client/row_residuals.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/check.h"

namespace covey::client {
namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

double Squares(std::span<const float> row) {
  double squares = 0;
  for (const float element : row) squares += double{element} * element;
  return squares;
}

void Append(uint64_t key, std::span<const float> row, KeyedRows& out) {
  out.keys.push_back(key);
  out.rows.insert(out.rows.end(), row.begin(), row.end());
}

void Clear(KeyedRows& out) {
  out.keys.clear();
  out.rows.clear();
}

}  // namespace

RowResiduals::RowResiduals(size_t width, const FilterRule& rule, const Limits& limits)
    : width_(width),
      rule_(rule),
      limits_(limits),
      oldest_(kNone),
      newest_(kNone),
      gradient_(width),
      total_(width) {
  COVEY_CHECK(width >= 1 && limits.rows >= 1 && limits.rows < kNone && limits.pieces >= 1);
}

void RowResiduals::Select(const Batch& batch, KeyedRows& out) {
  COVEY_CHECK(batch.rows.size() == batch.keys.size() * width_ &&
              batch.gradients.size() == batch.rows.size() && batch.samples >= 1);
  Clear(out);
  ++pushes_;
  const auto samples = static_cast<float>(batch.samples);
  const auto scale = static_cast<float>(1 / static_cast<double>(batch.samples));
  uint64_t pushed = 0;
  for (size_t i = 0; i < batch.keys.size(); ++i) {
    const std::span<const float> row = batch.rows.subspan(i * width_, width_);
    const std::span<const float> sum = batch.gradients.subspan(i * width_, width_);
    const bool is_zero = std::ranges::all_of(row, [](float element) { return element == 0; });
    std::ranges::transform(sum, gradient_.begin(), [scale](float x) { return x * scale; });
    total_ = gradient_;
    const auto found = number_of_.find(batch.keys[i]);
    if (found != number_of_.end()) {
      const std::span<const float> residual = Residual(found->second);
      for (size_t c = 0; c < width_; ++c) total_[c] += residual[c];
    }
    const bool leaves = found != number_of_.end() && entries_[found->second].pieces_left > 0;
    if (!leaves && rule_.CanWait(row, total_, pushes_)) {
      Add(found != number_of_.end() ? found->second : Insert(batch.keys[i]), gradient_);
      ++counts_.held_back;
      counts_.zero_held_back += is_zero ? 1 : 0;
      continue;
    }
    ++pushed;
    counts_.zero_pushed += is_zero ? 1 : 0;
    if (found == number_of_.end()) {
      Append(batch.keys[i], sum, out);
    } else {
      Add(found->second, gradient_);
      LetLeave(found->second);
    }
  }
  SendOldest(limits_.rows, samples, out);
  SendPieces(samples, out);
  counts_.pushed += pushed;
  counts_.pushed_later += out.keys.size() - pushed;
}

void RowResiduals::SelectAll(KeyedRows& out) {
  Clear(out);
  SendOldest(0, 1, out);
  leaving_.clear();
  counts_.pushed_later += out.keys.size();
}

uint32_t RowResiduals::Insert(uint64_t key) {
  uint32_t number;
  if (unused_.empty()) {
    number = static_cast<uint32_t>(entries_.size());
    entries_.emplace_back();
    residuals_.resize(residuals_.size() + width_);
  } else {
    number = unused_.back();
    unused_.pop_back();
    std::ranges::fill(Residual(number), 0.0f);
  }
  entries_[number] = {.key = key, .older = newest_, .newer = kNone};
  (newest_ == kNone ? oldest_ : entries_[newest_].newer) = number;
  newest_ = number;
  number_of_[key] = number;
  return number;
}

void RowResiduals::Remove(uint32_t number) {
  const Entry& entry = entries_[number];
  (entry.older == kNone ? oldest_ : entries_[entry.older].newer) = entry.newer;
  (entry.newer == kNone ? newest_ : entries_[entry.newer].older) = entry.older;
  number_of_.erase(entry.key);
  unused_.push_back(number);
}

void RowResiduals::Add(uint32_t number, std::span<const float> gradient) {
  const std::span<float> residual = Residual(number);
  for (size_t c = 0; c < width_; ++c) residual[c] += gradient[c];
  entries_[number].squares += static_cast<float>(Squares(gradient));
}

void RowResiduals::LetLeave(uint32_t number) {
  Entry& entry = entries_[number];
  if (entry.pieces_left > 0) return;
  // Of n equal pieces the squares are those of the residual divided by n. Of zeros one is enough.
  const double pieces = Squares(Residual(number)) / entry.squares;
  const double most = limits_.pieces;
  entry.pieces_left = pieces > 1 ? static_cast<uint32_t>(std::round(std::min(pieces, most))) : 1;
  leaving_.push_back(number);
}

void RowResiduals::Send(uint32_t number, float samples, KeyedRows& out) {
  Entry& entry = entries_[number];
  const std::span<float> residual = Residual(number);
  out.keys.push_back(entry.key);
  for (float& element : residual) {
    const float piece = element / static_cast<float>(entry.pieces_left);
    out.rows.push_back(piece * samples);
    element -= piece;
  }
  if (--entry.pieces_left == 0) Remove(number);
}

void RowResiduals::SendOldest(size_t left, float samples, KeyedRows& out) {
  while (size() > left) {
    entries_[oldest_].pieces_left = 1;
    Send(oldest_, samples, out);
  }
}

void RowResiduals::SendPieces(float samples, KeyedRows& out) {
  size_t kept = 0;
  for (const uint32_t number : leaving_) {
    // SendOldest may have sent all of it.
    if (entries_[number].pieces_left > 0) Send(number, samples, out);
    if (entries_[number].pieces_left > 0) leaving_[kept++] = number;
  }
  leaving_.resize(kept);
}

}  // namespace covey::client
