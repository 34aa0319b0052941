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
#include "common/tensor/kernels.h"

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
    Lane lane{.section = number, .reduces = reduces, .spreads = spreads};
    if (reduces) {
      lane.reduce = plan_->Reduce(section.owner, section.stripe, options.rank);
      const auto& operands = lane.reduce.operands;
      lane.own_operand = static_cast<uint32_t>(
          std::find(operands.begin(), operands.end(), options.rank) - operands.begin());
      lane.received.resize(operands.size());
    }
    if (spreads) lane.spread = plan_->Spread(section.owner, section.stripe, options.rank);
    const size_t slices = grid_.SlicesOf(number);
    lane.slices.resize(slices);
    missing_ += (reduces ? slices : 0) + (lane.spread.parent ? slices : 0);
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
  const Piece own{.samples = collective_.samples, .agreed_plan_epoch = options_.agreed_plan_epoch};
  for (Lane& lane : lanes_) {
    for (size_t slice = 0; slice < lane.slices.size(); ++slice) {
      if (lane.reduces) {
        Sum(lane, slice);
      } else if (!lane.spread.parent) {
        Result(lane, slice, own);
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
  if (from.phase() == proto::GroupSlice::REDUCE) {
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
  Piece piece{.bytes = std::move(cut.bytes),
              .checksum = cut.checksum,
              .samples = from.samples(),
              .agreed_plan_epoch = from.agreed_plan_epoch()};
  if (from.phase() != proto::GroupSlice::REDUCE) {
    Hear(lane, slice, piece);
    return absl::OkStatus();
  }
  waiting_bytes_ += piece.bytes.size();
  lane.slices[slice].waiting.emplace_back(operand, std::move(piece));
  Sum(lane, slice);
  // What still waits is kept beyond this call.
  for (auto& [from_operand, waiting] : lane.slices[slice].waiting) {
    waiting.bytes = waiting.bytes.Kept();
  }
  return absl::OkStatus();
}

void CollectiveRun::Sum(Lane& lane, size_t slice) {
  Slice& state = lane.slices[slice];
  const PartRange range = grid_.RangeOf(lane.section, slice);
  const std::span<float> mine = collective_.data.subspan(range.first, range.count);
  const WireFormat format = collective_.format;
  const auto operands = static_cast<uint32_t>(lane.reduce.operands.size());
  const auto begin = state.summed;
  while (state.summed < operands) {
    if (state.summed == lane.own_operand) {
      if (collective_.held) break;
      if (!state.before_own.empty()) AddInto(mine, state.before_own);
      state.before_own = {};
      state.samples += collective_.samples;
      state.agreed_plan_epoch = std::min(state.agreed_plan_epoch, options_.agreed_plan_epoch);
      ++state.summed;
      continue;
    }
    const auto found =
        std::find_if(state.waiting.begin(), state.waiting.end(),
                     [&](const auto& waiting) { return waiting.first == state.summed; });
    if (found == state.waiting.end()) break;
    const Piece piece = std::move(found->second);
    state.waiting.erase(found);
    waiting_bytes_ -= piece.bytes.size();
    state.samples += piece.samples;
    state.agreed_plan_epoch = std::min(state.agreed_plan_epoch, piece.agreed_plan_epoch);
    if (state.summed > lane.own_operand ||
        (state.summed == 0 && lane.own_operand == 1 && !collective_.held)) {
      // Two numbers have the same sum in either order, so the second may be added to the first.
      DecodeAndAdd(format, piece.bytes.bytes(), mine);
    } else if (state.before_own.empty()) {
      state.before_own.resize(range.count);
      Decode(format, piece.bytes.bytes(), state.before_own);
    } else {
      DecodeAndAdd(format, piece.bytes.bytes(), state.before_own);
    }
    ++state.summed;
  }
  if (state.summed < operands || begin == operands) return;
  --missing_;
  const Piece sum{.samples = state.samples, .agreed_plan_epoch = state.agreed_plan_epoch};
  if (!lane.reduce.parent) {
    Result(lane, slice, sum);
    return;
  }
  Buffer encoded = format == WireFormat::kFloat32 ? Buffer() : EncodeSlice(range);
  const uint32_t checksum = ChecksumOf(range, encoded);
  outgoing_.Add({.peer = *lane.reduce.parent,
                 .phase = proto::GroupSlice::REDUCE,
                 .range = range,
                 .checksum = checksum,
                 .samples = sum.samples,
                 .agreed_plan_epoch = sum.agreed_plan_epoch,
                 .encoded = std::move(encoded)});
}

Buffer CollectiveRun::EncodeSlice(PartRange range) {
  if (range.count == 0) return Buffer();
  const std::span<const float> values = collective_.data.subspan(range.first, range.count);
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
  if (collective_.format != WireFormat::kFloat32) return FrameChecksum(encoded);
  const std::span<const float> values = collective_.data.subspan(range.first, range.count);
  return Crc32c({reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()});
}

// This member owns the slice and has its values.
void CollectiveRun::Result(Lane& lane, size_t slice, const Piece& piece) {
  Note(piece);
  if (!lane.spreads || lane.spread.children.empty()) return;
  const PartRange range = grid_.RangeOf(lane.section, slice);
  Buffer encoded;
  if (collective_.format != WireFormat::kFloat32) {
    encoded = EncodeSlice(range);
    Decode(collective_.format, encoded.bytes(), collective_.data.subspan(range.first, range.count));
  }
  const uint32_t checksum = ChecksumOf(range, encoded);
  for (const uint32_t child : lane.spread.children) {
    outgoing_.Add({.peer = child,
                   .phase = proto::GroupSlice::SPREAD,
                   .range = range,
                   .checksum = checksum,
                   .samples = piece.samples,
                   .agreed_plan_epoch = piece.agreed_plan_epoch,
                   .encoded = encoded,
                   .attachment = AttachmentOf(range)});
  }
}

// Another member owns the slice.
void CollectiveRun::Hear(Lane& lane, size_t slice, const Piece& piece) {
  Note(piece);
  --missing_;
  const PartRange range = grid_.RangeOf(lane.section, slice);
  Decode(collective_.format, piece.bytes.bytes(),
         collective_.data.subspan(range.first, range.count));
  if (lane.spread.children.empty()) return;
  // The same bytes go on, but not the same memory: members of one process would wait in a circle
  // for each other to let frames go.
  const Buffer encoded =
      collective_.format == WireFormat::kFloat32 ? Buffer() : Buffer::CopyOf(piece.bytes.bytes());
  for (const uint32_t child : lane.spread.children) {
    outgoing_.Add({.peer = child,
                   .phase = proto::GroupSlice::SPREAD,
                   .range = range,
                   .checksum = piece.checksum,
                   .samples = piece.samples,
                   .agreed_plan_epoch = piece.agreed_plan_epoch,
                   .encoded = encoded,
                   .attachment = AttachmentOf(range)});
  }
}

void CollectiveRun::Note(const Piece& piece) {
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
    for (Slice& slice : lane.slices) slice.waiting.clear();
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
