// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/base/buffer.h"
#include "common/tensor/element_span.h"
#include "common/tensor/reduce_op.h"
#include "common/tensor/wire_format.h"

namespace covey::worker {

// The values of a slice that one member has, or the sum of several members' values.
struct SlicePiece {
  Buffer bytes;
  uint32_t checksum = 0;  // of a result: its owner's
  uint64_t samples = 0;
  uint64_t agreed_plan_epoch = 0;
};

// The values of a slice as they travel, in place of those in memory.
void StoreSlice(WireFormat format, const Buffer& bytes, ElementSpan values);

// The sum of one slice at one node of its reduction tree; sum and add stand for whatever the
// collective's operation is. Operands are added strictly in their
// order, whatever the order in which they come. Used by CollectiveRun only.
//
// Actor-confined. Deterministic.
class SliceSum {
 public:
  struct Order {
    uint32_t operands = 0;
    uint32_t own = 0;  // this member's among them
    // The own values are the bytes of their piece; else they are in the memory of the sum.
    bool own_in_piece = false;
  };

  struct Arithmetic {
    WireFormat format = WireFormat::kFloat32;
    ReduceOp op = ReduceOp::kSum;
  };

  void GiveOwn(SlicePiece own) { own_ = std::move(own); }
  void Give(uint32_t operand, SlicePiece piece) {
    waiting_.emplace_back(operand, std::move(piece));
  }
  // Adds what can be added; true when that has completed the sum. `sum`: the member's memory for
  // the slice, left alone until the own values are given.
  bool Advance(const Order& order, const Arithmetic& arithmetic, ElementSpan sum);
  // What still waits is kept for longer than the memory that others have lent (Buffer::Kept).
  void KeepWaiting();
  void DropWaiting() { waiting_.clear(); }
  // Of other members' operands that came too soon to be added.
  size_t waiting_bytes() const;

  // Of the operands in the sum.
  uint64_t samples() const { return samples_; }
  uint64_t agreed_plan_epoch() const { return agreed_plan_epoch_; }

 private:
  // The next operand, if it is there.
  std::optional<SlicePiece> TakeNext(const Order& order);
  // Adds the next operand, or stores it as the first one.
  void Add(const Arithmetic& arithmetic, const Buffer& bytes, ElementSpan sum) const;

  uint32_t summed_ = 0;  // operands in the sum
  uint64_t samples_ = 0;
  uint64_t agreed_plan_epoch_ = UINT64_MAX;
  std::optional<SlicePiece> own_;    // given and not added
  std::vector<uint8_t> before_own_;  // sum of the operands before the own values
  std::vector<std::pair<uint32_t, SlicePiece>> waiting_;  // by operand
};

}  // namespace covey::worker
