// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/collective_run.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/collective/collective_kind.h"
#include "common/collective/sections.h"
#include "common/net/frame_checksum.h"
#include "common/tensor/codec.h"

namespace covey::worker {
CollectiveRun::CollectiveRun(uint64_t number, Collective collective,
                             std::shared_ptr<const Plan> plan, const Options& options)
    : number_(number),
      collective_(std::move(collective)),
      plan_(std::move(plan)),
      options_(options),
      grid_(collective_,
            SectionsOf(*plan_, collective_.kind, collective_.parts, collective_.data.size(),
                       collective_.root),
            options.slice_elements) {
  COVEY_CHECK(collective_.residual.empty() ||
              collective_.residual.size() == collective_.data.size());
  COVEY_CHECK(collective_.attachment.empty() || collective_.kind == CollectiveKind::kBroadcast);
  if (!collective_.attachment.empty() && collective_.root == options_.rank) {
    attachment_.checksum = FrameChecksum(collective_.attachment);
    attachment_.bytes = std::move(collective_.attachment);
  }
  const bool reduces = HasReduction(collective_.kind);
  const bool spreads = HasSpreading(collective_.kind);
  for (size_t number = 0; number < grid_.sections().size(); ++number) {
    const Section& section = grid_.sections()[number];
    const uint32_t owner = section.owner.value_or(options.rank);
    Lane lane{.section = number,
              .reduces = reduces,
              .spreads = spreads && section.owner.has_value(),
              .each_sums = !section.owner.has_value()};
    if (reduces) {
      lane.reduce = plan_->Reduce(owner, section.stripe, options.rank);
      const auto& operands = lane.reduce.operands;
      lane.own_operand = static_cast<uint32_t>(
          std::find(operands.begin(), operands.end(), options.rank) - operands.begin());
      lane.received.resize(operands.size());
    }
    if (lane.spreads) lane.spread = plan_->Spread(owner, section.stripe, options.rank);
    const size_t slices = grid_.SlicesOf(number);
    lane.slices.resize(slices);
    // Slices that are stored one by one, or that are one sum.
    const size_t stored = exchanges() ? lane.received.size() : reduces ? 1 : 0;
    missing_ += slices * stored + (lane.spread.parent ? slices : 0);
    lanes_.push_back(std::move(lane));
  }
}

void CollectiveRun::Begin() {
  if (!collective_.held) OwnValues();
}

void CollectiveRun::Contribute(uint64_t samples, uint64_t agreed_plan_epoch) {
  COVEY_CHECK(collective_.held);
  collective_.held = false;
  collective_.samples = samples;
  options_.agreed_plan_epoch = agreed_plan_epoch;
  OwnValues();
}

void CollectiveRun::OwnValues() {
  for (Lane& lane : lanes_) {
    for (size_t slice = 0; slice < lane.slices.size(); ++slice) {
      if (exchanges()) {
        Exchange(lane, slice);
      } else if (lane.reduces) {
        lane.slices[slice].GiveOwn(OwnPiece(lane, slice));
        Sum(lane, slice);
      } else if (!lane.spread.parent) {
        Result(lane, slice, OwnPiece(lane, slice));
      }
    }
  }
}

absl::Status CollectiveRun::Take(const Message& message) {
  COVEY_RETURN_IF_ERROR(CheckFrameChecksums(message));
  COVEY_ASSIGN_OR_RETURN(std::vector<SliceGrid::Cut> cuts, grid_.CutUp(message));
  const proto::GroupSlice& from = message.envelope.group_slice();
  // Copied: it is kept for longer than the message, whose memory may be another member's.
  if (message.frames.size() > 1) {
    attachment_ = {.bytes = Buffer::CopyOf(message.frames[1].bytes()),
                   .checksum = message.envelope.frame_checksums(1)};
  }
  for (SliceGrid::Cut& cut : cuts) COVEY_RETURN_IF_ERROR(TakePiece(std::move(cut), from));
  return absl::OkStatus();
}

absl::Status CollectiveRun::TakePiece(SliceGrid::Cut cut, const proto::GroupSlice& from) {
  Lane& lane = lanes_[cut.section];
  const size_t slice = cut.slice;
  size_t* expected = nullptr;
  uint32_t operand = 0;
  if (from.phase() == UpPhase()) {
    const auto& operands = lane.reduce.operands;
    const auto found = std::find(operands.begin(), operands.end(), from.from_rank());
    operand = static_cast<uint32_t>(found - operands.begin());
    if (found != operands.end() && operand != lane.own_operand) expected = &lane.received[operand];
  } else if (lane.spread.parent && *lane.spread.parent == from.from_rank()) {
    expected = &lane.heard;
  }
  if (expected == nullptr) return absl::InvalidArgumentError("a slice that somebody else sends");
  if (slice < *expected) return absl::OkStatus();  // It has been here before.
  if (slice > *expected) return absl::UnavailableError("slices were lost with a connection");
  ++*expected;
  SlicePiece piece{.bytes = std::move(cut.bytes),
                   .checksum = cut.checksum,
                   .samples = from.samples(),
                   .agreed_plan_epoch = from.agreed_plan_epoch()};
  if (exchanges()) {
    --missing_;
    StoreSlice(collective_.format, piece.bytes,
               RowOf(lane, grid_.RangeOf(cut.section, slice), from.from_rank()));
    NoteRow(slice, piece);
    return absl::OkStatus();
  }
  if (from.phase() != proto::GroupSlice::REDUCE) {
    Hear(lane, slice, piece);
    return absl::OkStatus();
  }
  waiting_bytes_ += piece.bytes.size();
  lane.slices[slice].Give(operand, std::move(piece));
  Sum(lane, slice);
  lane.slices[slice].KeepWaiting();
  return absl::OkStatus();
}

SlicePiece CollectiveRun::OwnPiece(const Lane& lane, size_t slice) {
  SlicePiece own{.samples = collective_.samples, .agreed_plan_epoch = options_.agreed_plan_epoch};
  if (!lane.each_sums) return own;
  const PartRange range = grid_.RangeOf(lane.section, slice);
  own.bytes = collective_.format == WireFormat::kFloat32 ? Buffer::CopyOf(BytesOf(range))
                                                         : EncodeSlice(range);
  own.checksum = FrameChecksum(own.bytes);
  for (const uint32_t peer : lane.reduce.operands) {
    if (peer != options_.rank) Queue(peer, proto::GroupSlice::REDUCE, range, own);
  }
  return own;
}

void CollectiveRun::Queue(uint32_t peer, proto::GroupSlice::Phase phase, PartRange range,
                          const SlicePiece& piece) {
  outgoing_.Add(
      {.peer = peer,
       .phase = phase,
       .range = range,
       .checksum = piece.checksum,
       .samples = piece.samples,
       .agreed_plan_epoch = piece.agreed_plan_epoch,
       .encoded = piece.bytes,
       .attachment = phase == proto::GroupSlice::SPREAD ? AttachmentOf(range) : Attachment()});
}

void CollectiveRun::Sum(Lane& lane, size_t slice) {
  SliceSum& sum = lane.slices[slice];
  const PartRange range = grid_.RangeOf(lane.section, slice);
  const size_t waiting_before = sum.waiting_bytes();
  const bool complete = sum.Advance({.operands = static_cast<uint32_t>(lane.reduce.operands.size()),
                                     .own = lane.own_operand,
                                     .own_in_piece = lane.each_sums},
                                    {.format = collective_.format, .op = collective_.op},
                                    collective_.data.subspan(range.first, range.count));
  waiting_bytes_ -= waiting_before - sum.waiting_bytes();
  if (!complete) return;
  --missing_;
  SlicePiece piece{.samples = sum.samples(), .agreed_plan_epoch = sum.agreed_plan_epoch()};
  if (!lane.reduce.parent) {
    Result(lane, slice, piece);
    return;
  }
  if (collective_.format != WireFormat::kFloat32) piece.bytes = EncodeSlice(range);
  piece.checksum = ChecksumOf(range, piece.bytes);
  Queue(*lane.reduce.parent, proto::GroupSlice::REDUCE, range, piece);
}

void CollectiveRun::Exchange(const Lane& lane, size_t slice) {
  const PartRange range = grid_.RangeOf(lane.section, slice);
  SlicePiece own{.samples = collective_.samples, .agreed_plan_epoch = options_.agreed_plan_epoch};
  --missing_;
  if (!lane.reduce.parent) {
    const std::span<const float> values = FloatsOf(range);
    std::copy(values.begin(), values.end(), RowOf(lane, range, options_.rank).begin());
    NoteRow(slice, own);
    return;
  }
  if (collective_.format != WireFormat::kFloat32) own.bytes = EncodeSlice(range);
  own.checksum = ChecksumOf(range, own.bytes);
  Queue(*lane.reduce.parent, UpPhase(), range, own);
}

std::span<float> CollectiveRun::RowOf(const Lane& lane, PartRange range, uint32_t rank) const {
  const PartRange part = grid_.sections()[lane.section].range;
  return collective_.rows.subspan(rank * part.count + range.first - part.first, range.count);
}

void CollectiveRun::NoteRow(size_t slice, const SlicePiece& piece) {
  // The same in each slice of a member.
  if (slice == 0) samples_ += piece.samples;
  result_epoch_ = std::min(result_epoch_, piece.agreed_plan_epoch);
}

Buffer CollectiveRun::EncodeSlice(PartRange range) {
  if (range.count == 0) return Buffer();
  const std::span<const float> values = FloatsOf(range);
  Buffer encoded = Buffer::Allocate(EncodedBytes(collective_.format, range.count));
  const std::span<uint8_t> bytes = encoded.MutableAs<uint8_t>();
  if (collective_.residual.empty()) {
    Encode(collective_.format, values, bytes);
  } else {
    EncodeWithFeedback(collective_.format, values,
                       collective_.residual.subspan(range.first, range.count), bytes);
  }
  return encoded;
}

uint32_t CollectiveRun::ChecksumOf(PartRange range, const Buffer& encoded) const {
  return collective_.format == WireFormat::kFloat32 ? Crc32c(BytesOf(range))
                                                    : FrameChecksum(encoded);
}

std::span<const uint8_t> CollectiveRun::BytesOf(PartRange range) const {
  return collective_.data.subspan(range.first, range.count).bytes();
}

std::span<float> CollectiveRun::FloatsOf(PartRange range) const {
  return collective_.data.subspan(range.first, range.count).As<float>();
}

// This member owns the slice and has its values.
void CollectiveRun::Result(Lane& lane, size_t slice, SlicePiece piece) {
  Note(piece);
  if (!lane.spreads || lane.spread.children.empty()) return;
  const PartRange range = grid_.RangeOf(lane.section, slice);
  if (collective_.format != WireFormat::kFloat32) {
    piece.bytes = EncodeSlice(range);
    Decode(collective_.format, piece.bytes.bytes(), FloatsOf(range));
  }
  piece.checksum = ChecksumOf(range, piece.bytes);
  for (const uint32_t child : lane.spread.children) {
    Queue(child, proto::GroupSlice::SPREAD, range, piece);
  }
}

// Another member owns the slice.
void CollectiveRun::Hear(Lane& lane, size_t slice, SlicePiece piece) {
  Note(piece);
  --missing_;
  const PartRange range = grid_.RangeOf(lane.section, slice);
  StoreSlice(collective_.format, piece.bytes, collective_.data.subspan(range.first, range.count));
  if (lane.spread.children.empty()) return;
  // The same bytes go on, but not the same memory: members of one process would wait in a circle
  // for each other to let frames go.
  piece.bytes =
      collective_.format == WireFormat::kFloat32 ? Buffer() : Buffer::CopyOf(piece.bytes.bytes());
  for (const uint32_t child : lane.spread.children) {
    Queue(child, proto::GroupSlice::SPREAD, range, piece);
  }
}

void CollectiveRun::Note(const SlicePiece& piece) {
  samples_ = std::max(samples_, piece.samples);
  result_epoch_ = std::min(result_epoch_, piece.agreed_plan_epoch);
}

CollectiveResult CollectiveRun::result() const {
  return {.status = absl::OkStatus(),
          .samples = samples_,
          .agreed_plan_epoch = result_epoch_ == UINT64_MAX ? 0 : result_epoch_,
          .attachment = attachment_.bytes};
}

std::vector<OutgoingSlice> CollectiveRun::TakeOutgoing() {
  return outgoing_.Take(
      collective_,
      {.rank = options_.rank, .size = plan_->size(), .slice_elements = options_.slice_elements});
}

void CollectiveRun::Stop() {
  for (Lane& lane : lanes_) {
    for (SliceSum& slice : lane.slices) slice.DropWaiting();
  }
  waiting_bytes_ = 0;
  outgoing_.Clear();
}

std::vector<uint32_t> CollectiveRun::WaitsFor() const {
  std::set<uint32_t> sums;
  std::set<uint32_t> results;
  for (const Lane& lane : lanes_) {
    for (uint32_t operand = 0; operand < lane.received.size(); ++operand) {
      if (operand != lane.own_operand && lane.received[operand] < lane.slices.size()) {
        sums.insert(lane.reduce.operands[operand]);
      }
    }
    if (lane.spread.parent && lane.heard < lane.slices.size()) results.insert(*lane.spread.parent);
  }
  const std::set<uint32_t>& members = sums.empty() ? results : sums;
  return {members.begin(), members.end()};
}

}  // namespace covey::worker
