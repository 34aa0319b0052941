// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/buffer.h"
#include "common/collective/part_range.h"
#include "common/collective/plan.h"
#include "common/net/message.h"
#include "worker/collective/collective.h"
#include "worker/collective/outgoing_slices.h"
#include "worker/collective/slice_grid.h"
#include "worker/collective/slice_sum.h"

namespace covey::worker {

// One collective on one member, without its messages' way: takes slices of other members, says
// which slices they are to get. Used by RunTable and CollectiveEngine only.
//
// Every section of the data (plan.h) is cut into slices of the same size (slice_grid.h). A slice is
// summed at each node of its reduction tree strictly in the order that the plan states, whatever
// the order of arrival. A piece that comes too soon waits: by reference, or as a copy if its memory
// is lent (Buffer::Lend). A slice is passed on as soon as it is complete; slices that are ready
// together, adjacent, and for the same member share a message (outgoing_slices.h).
//
// The slices of an exchange are stored as they come. They travel as results, so that a member that
// adds takes none of them, and none of its slices is taken.
//
// Actor-confined. Deterministic. Bytes from outside are checked against what is expected.
class CollectiveRun {
 public:
  struct Options {
    uint32_t rank = 0;
    size_t slice_elements = 0;  // the same on all members
    // As CollectiveResult.agreed_plan_epoch, of this member alone.
    uint64_t agreed_plan_epoch = 0;
  };
  // `number` is the caller's name for it. Preconditions: `collective` fits the plan.
  CollectiveRun(uint64_t number, Collective collective, std::shared_ptr<const Plan> plan,
                const Options& options);

  uint64_t number() const { return number_; }
  Collective& collective() { return collective_; }
  const Collective& collective() const { return collective_; }
  const Plan& plan() const { return *plan_; }
  uint64_t own_epoch() const { return options_.agreed_plan_epoch; }

  // The own values are there, unless they are held. Once, before Take.
  void Begin();
  // They are there now. Precondition: held.
  void Contribute(uint64_t samples, uint64_t agreed_plan_epoch);

  // A slice of another member, whose rank in the group is the message's from_rank. What came before
  // has no effect. UNAVAILABLE: one in between is lost. INVALID_ARGUMENT: it does not fit. Both
  // name the cause, not the member.
  absl::Status Take(const Message& message);

  // The messages to be sent since the last call, in order.
  std::vector<OutgoingSlice> TakeOutgoing();

  // Forgets what waits to be added or sent: no member will complete it.
  void Stop();

  // The result is in place, and nothing is left to be passed on.
  bool arrived() const { return missing_ == 0 && !collective_.held; }
  CollectiveResult result() const;
  // Members whose slices are missing, in growing order of rank; those that sums wait for come first
  // and alone.
  std::vector<uint32_t> WaitsFor() const;
  // Of slices that came too soon to be added.
  size_t waiting_bytes() const { return waiting_bytes_; }

  // What RunTable keeps here: when it began, frames queued or on the wire, whether `arrived`
  // was told, and whether its group is no more, so that it only waits for its frames.
  absl::Time began;
  size_t frames_out = 0;
  bool told_arrived = false;
  bool abandoned = false;

 private:
  struct Lane {
    size_t section = 0;  // of the grid
    bool reduces = false;
    bool spreads = false;
    bool each_sums = false;  // the section has no owner
    ReduceNode reduce;
    SpreadNode spread;
    uint32_t own_operand = 0;
    std::vector<size_t> received;  // slices so far, per operand
    size_t heard = 0;              // slices of the result
    std::vector<SliceSum> slices;
  };
  bool exchanges() const { return collective_.kind == CollectiveKind::kExchange; }
  // Of slices that go to the owner of their part.
  proto::GroupSlice::Phase UpPhase() const {
    return exchanges() ? proto::GroupSlice::SPREAD : proto::GroupSlice::REDUCE;
  }
  void OwnValues();
  Attachment AttachmentOf(const PartRange& range) const {
    return range.first == 0 ? attachment_ : Attachment();
  }
  absl::Status TakePiece(SliceGrid::Cut cut, const proto::GroupSlice& from);
  // The own values. Where each member sums they go to all others, too, and the piece has them: the
  // sum takes their place.
  SlicePiece OwnPiece(const Lane& lane, size_t slice);
  void Queue(uint32_t peer, proto::GroupSlice::Phase phase, PartRange range,
             const SlicePiece& piece);
  // Adds what can be added; then the slice goes up, or is the result.
  void Sum(Lane& lane, size_t slice);
  // Of an exchange: the own values go to the owner of the part, where each member's have a row.
  void Exchange(const Lane& lane, size_t slice);
  std::span<float> RowOf(const Lane& lane, PartRange range, uint32_t rank) const;
  void NoteRow(size_t slice, const SlicePiece& piece);
  void Result(Lane& lane, size_t slice, SlicePiece piece);
  Buffer EncodeSlice(PartRange range);
  // Of the bytes that are sent for the range: `encoded`, or the data itself.
  uint32_t ChecksumOf(PartRange range, const Buffer& encoded) const;
  std::span<const uint8_t> BytesOf(PartRange range) const;
  // Of a collective whose values are encoded.
  std::span<float> FloatsOf(PartRange range) const;
  void Hear(Lane& lane, size_t slice, SlicePiece piece);
  void Note(const SlicePiece& piece);

  const uint64_t number_;
  Collective collective_;
  const std::shared_ptr<const Plan> plan_;
  Options options_;
  const SliceGrid grid_;
  std::vector<Lane> lanes_;  // one per section of the grid
  size_t missing_ = 0;       // slices to be summed here, and to be heard
  size_t waiting_bytes_ = 0;
  OutgoingSlices outgoing_;
  uint64_t samples_ = 0;
  uint64_t result_epoch_ = UINT64_MAX;
  Attachment attachment_;  // at other members than the root since the first slice
};

}  // namespace covey::worker
