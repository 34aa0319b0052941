// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/buffer.h"
#include "common/collective/algorithm.h"
#include "common/collective/collective_kind.h"
#include "common/collective/part_range.h"
#include "common/runtime/actor.h"
#include "common/tensor/element_span.h"
#include "common/tensor/reduce_op.h"
#include "common/tensor/wire_format.h"

namespace covey::worker {

// Which collective, the same on all members. Within a stream, sequences grow in the order in which
// members start them; they may skip. Streams are independent of each other: members may start those
// of different streams in different orders, without any agreement.
//
//   stream 0           Group's calls, numbered by Communicator::NextPlain
//   2t + 1, 2t + 2     of tensor or bucket t: reduce-scatter and all-gather; sequence = step
//   kProductStreams + t  dot products of the members' gradients of bucket t; sequence = step
//   kNoiseStream       norms of the members' gradients; sequence = step
//   kTuningStream      settings of the next steps; sequence = step after which they hold
//   kNormStream        norm of the group's gradient; sequence = step
//   kPullStreams + t   first values of tensor or bucket t; sequence counts pulls
//   kRestoreStreams + t  what is known of LOCAL rounds of bucket t; sequence as its pull
struct CollectiveId {
  uint32_t stream = 0;
  uint64_t sequence = 0;  // from 1

  friend auto operator<=>(const CollectiveId&, const CollectiveId&) = default;
};
inline constexpr uint32_t kProductStreams = 0x40000000;
inline constexpr uint32_t kNoiseStream = 0x7ffffffd;
inline constexpr uint32_t kTuningStream = 0x7ffffffe;
inline constexpr uint32_t kNormStream = 0x7fffffff;
inline constexpr uint32_t kPullStreams = 0x80000000;
inline constexpr uint32_t kRestoreStreams = 0xc0000000;

struct CollectiveResult {
  absl::Status status;
  // Training examples behind the result: reduce-scatter and exchange: of all members together, 0
  // when this member's part is empty; all-reduce, all-gather: the most that any part's owner told.
  uint64_t samples = 0;
  // Above 0: every member whose values are in the result knows of a newer plan for the group, so
  // this is the place to change over (Communicator::Reform). 0: one of them knows of none, or there
  // is nothing in the result (an empty part).
  uint64_t agreed_plan_epoch = 0;
  // Broadcast: what the root attached; empty: nothing.
  Buffer attachment;
};

// A member's contribution to a held collective: the training examples behind its own values, and
// the epoch at which all members behind them know of a newer plan. Both are copied from the
// CollectiveResult that the values come from.
struct Contribution {
  uint64_t samples = 0;
  uint64_t agreed_plan_epoch = 0;
};

// One collective, as every member of the group starts it: same id, kind, type, sizes, operation,
// root, format, algorithm and bytes of a slice.
//
// Memory: `data` is read and written in place, sent without a copy unless it is encoded (in
// one-shot as one), and belongs to the engine until `done`. A reduce-scatter leaves partial sums in
// the parts of others; an exchange writes to `rows` alone.
struct Collective {
  using Callback = std::function<void(absl::Time, const CollectiveResult&, Outbox&)>;

  CollectiveId id;
  CollectiveKind kind = CollectiveKind::kBarrier;
  // What errors call it: "'hidden/weight'". May be empty.
  std::string name;
  ElementSpan data;
  // Reduce-scatter and all-reduce. Another one than a sum, and other types than float32, are not
  // encoded: `format` is kFloat32.
  ReduceOp op = ReduceOp::kSum;
  // Optional: keeps the memory of `data` for as long as the transport may read from it.
  std::shared_ptr<const void> owner;
  // One range of `data` per member, disjoint; broadcast and barrier need none.
  std::vector<PartRange> parts;
  // Exchange, of float32 and in one message (kDirect): the values of the own part go here, one row
  // per member, by rank.
  std::span<float> rows;
  uint32_t root = 0;  // broadcast
  // Broadcast, at the root: bytes that all members get with the data (CollectiveResult). For what
  // is no tensor. At most kFrameBytesMax.
  Buffer attachment;
  // Training examples behind this member's data.
  uint64_t samples = 0;
  // This member's own values are not there yet; Contribute says when. Those of others flow
  // meanwhile.
  bool held = false;
  absl::Time deadline = absl::InfiniteFuture();

  // kAutomatic: the engine's choice, the same on all members.
  Algorithm algorithm = Algorithm::kAutomatic;
  // A multiple of kElementBytesMax up to kSliceBytesMax; 0: the engine's.
  size_t slice_bytes = 0;
  // How float32 values travel. Sums are in float32; a result is encoded once, by its owner, and
  // everybody has the decoded bits, the owner too. In one-shot each member's values are encoded
  // once instead, and everybody adds the decoded bits, that member too.
  WireFormat format = WireFormat::kFloat32;
  // Error feedback of `format`: what this member's encodings lose, added the next time. As large as
  // `data`, zero at first, the caller's, not touched by others until `done`. Empty = none.
  std::span<float> residual;
  // Sooner ones first where a link is busy; smaller is sooner.
  int priority = 0;
  // The members may change over after it (CollectiveResult). False: whatever plans this member
  // knows of.
  bool is_change_point = true;

  // Optional: the result is in `data`, but the transport may still read from it. Not called on
  // failure.
  Callback arrived;
  // Called once, always: finished or failed, and `data` is the caller's again.
  Callback done;
};

// The bytes of so many elements on the wire: only float32 is encoded.
constexpr size_t WireBytes(ElementType type, WireFormat format, size_t elements) {
  return type == ElementType::kFloat32 ? EncodedBytes(format, elements)
                                       : elements * ElementBytes(type);
}

}  // namespace covey::worker
