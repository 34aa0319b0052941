// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/slice_sum.h"

#include <algorithm>
#include <span>

#include "common/tensor/codec.h"
#include "common/tensor/reduce.h"

namespace covey::worker {
namespace {

void AddSlice(const SliceSum::Arithmetic& arithmetic, std::span<const uint8_t> bytes,
              ElementSpan sum) {
  if (sum.type() == ElementType::kFloat32 && arithmetic.op == ReduceOp::kSum) {
    DecodeAndAdd(arithmetic.format, bytes, sum.As<float>());
  } else {
    ReduceInto(arithmetic.op, sum, bytes);
  }
}

}  // namespace

void StoreSlice(WireFormat format, const Buffer& bytes, ElementSpan values) {
  if (values.type() == ElementType::kFloat32) {
    Decode(format, bytes.bytes(), values.As<float>());
  } else {
    const std::span<const uint8_t> from = bytes.bytes();
    std::copy(from.begin(), from.end(), values.bytes().begin());
  }
}

bool SliceSum::Advance(const Order& order, const Arithmetic& arithmetic, ElementSpan sum) {
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
      Add(arithmetic, next->bytes, sum);
    } else if (summed_ == order.own) {
      // They are as they are in memory.
      if (!before_own_.empty()) AddSlice({.op = arithmetic.op}, before_own_, sum);
      before_own_ = {};
    } else if (summed_ > order.own || (summed_ == 0 && order.own == 1 && own_is_there)) {
      // Two numbers have the same sum in either order, so the second may be added to the first.
      AddSlice(arithmetic, next->bytes.bytes(), sum);
    } else {
      before_own_.resize(sum.bytes().size());
      Add(arithmetic, next->bytes, {sum.type(), before_own_.data(), sum.size()});
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

void SliceSum::Add(const Arithmetic& arithmetic, const Buffer& bytes, ElementSpan sum) const {
  if (summed_ == 0) {
    StoreSlice(arithmetic.format, bytes, sum);
  } else {
    AddSlice(arithmetic, bytes.bytes(), sum);
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
