// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/collective/plan.h"
#include "common/net/message.h"
#include "worker/collective/collective.h"

namespace covey::worker {

// One collective on one member, without its messages' way: takes slices of other members, says
// which slices they are to get. Used by GroupMachine only.
//
// Every section of the data (plan.h) is cut into slices of the same size. A slice is summed at each
// node of its reduction tree strictly in the order that the plan states, whatever the order of
// arrival: what comes too soon waits, by reference. It is passed on as soon as it is complete;
// slices that are ready together, adjacent, and for the same member share a message.
//
// Actor-confined. Deterministic. Bytes from outside are checked against what is expected.
class CollectiveRun {
 public:
  struct Options {
    uint32_t rank = 0;
    size_t slice_elements = 0;  // the same on all members
    // As CollectiveResult.seen_epoch, of this member alone.
    uint64_t seen_epoch = 0;
  };
  // `number` is the caller's name for it. Preconditions: `collective` fits the plan.
  CollectiveRun(uint64_t number, Collective collective, std::shared_ptr<const Plan> plan,
                const Options& options);

  uint64_t number() const { return number_; }
  Collective& collective() { return collective_; }
  const Collective& collective() const { return collective_; }
  const Plan& plan() const { return *plan_; }
  uint64_t own_epoch() const { return options_.seen_epoch; }

  // The own values are there, unless they are held. Once, before Take.
  void Begin();
  // They are there now. Precondition: held.
  void Contribute(uint64_t samples, uint64_t seen_epoch);

  // A slice of another member, whose rank in the group is the message's from_rank. What came before
  // has no effect. UNAVAILABLE: one in between is lost. INVALID_ARGUMENT: it does not fit. Both say
  // what, not who.
  absl::Status Take(const Message& message);

  // What is to be said since the last call, in order; frames are unique handles. Group and
  // generation are for the caller to fill in.
  struct Saying {
    uint32_t peer = 0;
    proto::GroupSlice slice;
    Buffer frame;  // empty for a token
    // Of the frame. A result's is that of its owner at every hop, so that bytes which change in a
    // member that passes them on are noticed by the next one.
    uint32_t checksum = 0;
  };
  std::vector<Saying> TakeSayings();

  // Forgets what waits to be added or said: nobody will complete it.
  void Stop();

  // The result is in place, and nothing is left to be passed on.
  bool arrived() const { return missing_ == 0 && !collective_.held; }
  CollectiveResult result() const;
  // Members whose slices are missing, in growing order of rank; those that sums wait for come first
  // and alone.
  std::vector<uint32_t> WaitsFor() const;
  // Of slices that came too soon to be added.
  size_t waiting_bytes() const { return waiting_bytes_; }

  // What GroupMachine keeps here: when it began, frames queued or on the wire, whether `arrived`
  // was told, and whether its group is no more, so that it only waits for its frames.
  absl::Time began;
  size_t frames_out = 0;
  bool told_arrived = false;
  bool abandoned = false;

 private:
  struct Piece {
    Buffer bytes;
    uint32_t checksum = 0;  // of a result: its owner's
    uint64_t samples = 0;
    uint64_t seen_epoch = 0;
  };
  struct Slice {
    uint32_t summed = 0;  // operands in the sum
    uint64_t samples = 0;
    uint64_t seen_epoch = UINT64_MAX;
    std::vector<float> before_own;                    // sum of the operands before the own values
    std::vector<std::pair<uint32_t, Piece>> waiting;  // by operand
  };
  struct Lane {
    Section section;
    bool reduces = false;
    bool spreads = false;
    ReduceNode reduce;
    SpreadNode spread;
    uint32_t own_operand = 0;
    std::vector<size_t> received;  // slices so far, per operand
    size_t heard = 0;              // slices of the result
    std::vector<Slice> slices;
  };
  // One slice of a message.
  struct Cut {
    Lane* lane = nullptr;
    size_t slice = 0;
    Buffer bytes;
    uint32_t checksum = 0;
  };
  struct Ready {
    uint32_t peer = 0;
    proto::GroupSlice::Phase phase = proto::GroupSlice::REDUCE;
    PartRange range;
    uint32_t checksum = 0;
    uint64_t samples = 0;
    uint64_t seen_epoch = 0;
    Buffer encoded;  // float32: empty, the data itself is sent
  };

  PartRange RangeOf(const Lane& lane, size_t slice) const;
  void OwnValues();
  Lane* LaneAt(size_t element);
  // Finds the slices of a message. INVALID_ARGUMENT: it does not fit.
  absl::StatusOr<std::vector<Cut>> CutUp(const Message& message);
  // Gives each slice of a result the checksum that its owner made. DATA_LOSS: they do not join to
  // that of the frame.
  static absl::Status SetChecksums(const Message& message, std::vector<Cut>& cuts);
  absl::Status TakePiece(Cut cut, const proto::GroupSlice& from);
  // Adds what can be added; then the slice goes up, or is the result.
  void Sum(Lane& lane, size_t slice);
  void Result(Lane& lane, size_t slice, const Piece& piece);
  Buffer EncodeSlice(PartRange range);
  // Of the bytes that are sent for the range: `encoded`, or the data itself.
  uint32_t ChecksumOf(PartRange range, const Buffer& encoded) const;
  void Hear(Lane& lane, size_t slice, const Piece& piece);
  void Note(const Piece& piece);
  Saying Say(std::span<const Ready> together) const;

  const uint64_t number_;
  Collective collective_;
  const std::shared_ptr<const Plan> plan_;
  Options options_;
  std::vector<Lane> lanes_;  // in growing order of elements
  size_t missing_ = 0;       // slices to be summed here, and to be heard
  size_t waiting_bytes_ = 0;
  std::vector<Ready> ready_;
  uint64_t samples_ = 0;
  uint64_t result_epoch_ = UINT64_MAX;
};

}  // namespace covey::worker
