// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/slice_sum.h"

#include <algorithm>

#include "common/tensor/codec.h"
#include "common/tensor/kernels.h"

namespace covey::worker {

bool SliceSum::Advance(const Order& order, WireFormat format, std::span<float> sum) {
  const uint32_t begin = summed_;
  for (; summed_ < order.operands; ++summed_) {
    // The memory of the sum has the own values.
    if (order.own_in_piece && summed_ <= order.own && !own_) break;
    const bool own_is_there = own_.has_value();
    const std::optional<SlicePiece> next = TakeNext(order);
    if (!next) break;
    samples_ += next->samples;
    agreed_plan_epoch_ = std::min(agreed_plan_epoch_, next->agreed_plan_epoch);
    if (order.own_in_piece) {
      Add(format, next->bytes, sum);
    } else if (summed_ == order.own) {
      if (!before_own_.empty()) AddInto(sum, before_own_);
      before_own_ = {};
    } else if (summed_ > order.own || (summed_ == 0 && order.own == 1 && own_is_there)) {
      // Two numbers have the same sum in either order, so the second may be added to the first.
      DecodeAndAdd(format, next->bytes.bytes(), sum);
    } else {
      before_own_.resize(sum.size());
      Add(format, next->bytes, before_own_);
    }
  }
  return begin < order.operands && summed_ == order.operands;
}

std::optional<SlicePiece> SliceSum::TakeNext(const Order& order) {
  if (summed_ == order.own) return std::exchange(own_, std::nullopt);
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [this](const auto& waiting) { return waiting.first == summed_; });
  if (found == waiting_.end()) return std::nullopt;
  SlicePiece piece = std::move(found->second);
  waiting_.erase(found);
  return piece;
}

void SliceSum::Add(WireFormat format, const Buffer& bytes, std::span<float> sum) const {
  if (summed_ == 0) {
    Decode(format, bytes.bytes(), sum);
  } else {
    DecodeAndAdd(format, bytes.bytes(), sum);
  }
}

void SliceSum::KeepWaiting() {
  for (auto& [operand, piece] : waiting_) piece.bytes = piece.bytes.Kept();
}

size_t SliceSum::waiting_bytes() const {
  size_t bytes = 0;
  for (const auto& [operand, piece] : waiting_) bytes += piece.bytes.size();
  return bytes;
}

}  // namespace covey::worker
