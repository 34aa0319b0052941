// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/collective_run.h"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/net/frame_checksum.h"
#include "common/tensor/kernels.h"
#include "common/tensor/wire_format_proto.h"

namespace covey::worker {
namespace {

size_t End(const PartRange& range) { return range.first + range.count; }

}  // namespace

CollectiveRun::CollectiveRun(uint64_t number, Collective collective,
                             std::shared_ptr<const Plan> plan, const Options& options)
    : number_(number),
      collective_(std::move(collective)),
      plan_(std::move(plan)),
      options_(options) {
  COVEY_CHECK(collective_.residual.empty() ||
              collective_.residual.size() == collective_.data.size());
  const bool reduces = HasReduction(collective_.kind);
  const bool spreads = HasSpreading(collective_.kind);
  for (const Section& section : SectionsOf(*plan_, collective_.kind, collective_.parts,
                                           collective_.data.size(), collective_.root)) {
    Lane lane{.section = section, .reduces = reduces, .spreads = spreads};
    if (reduces) {
      lane.reduce = plan_->Reduce(section.owner, section.stripe, options.rank);
      const auto& operands = lane.reduce.operands;
      lane.own_operand = static_cast<uint32_t>(
          std::find(operands.begin(), operands.end(), options.rank) - operands.begin());
      lane.received.resize(operands.size());
    }
    if (spreads) lane.spread = plan_->Spread(section.owner, section.stripe, options.rank);
    const size_t slices =
        section.range.count == 0
            ? 1
            : (section.range.count + options.slice_elements - 1) / options.slice_elements;
    lane.slices.resize(slices);
    missing_ += (reduces ? slices : 0) + (lane.spread.parent ? slices : 0);
    lanes_.push_back(std::move(lane));
  }
}

PartRange CollectiveRun::RangeOf(const Lane& lane, size_t slice) const {
  const size_t offset = slice * options_.slice_elements;
  const PartRange whole = lane.section.range;
  return {.first = whole.first + offset,
          .count = std::min(options_.slice_elements, whole.count - offset)};
}

void CollectiveRun::Begin() {
  if (!collective_.held) OwnValues();
}

void CollectiveRun::Contribute(uint64_t samples, uint64_t seen_epoch) {
  COVEY_CHECK(collective_.held);
  collective_.held = false;
  collective_.samples = samples;
  options_.seen_epoch = seen_epoch;
  OwnValues();
}

void CollectiveRun::OwnValues() {
  const Piece own{.samples = collective_.samples, .seen_epoch = options_.seen_epoch};
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

CollectiveRun::Lane* CollectiveRun::LaneAt(size_t element) {
  if (collective_.kind == CollectiveKind::kBarrier) return element == 0 ? &lanes_[0] : nullptr;
  const auto after = std::partition_point(
      lanes_.begin(), lanes_.end(),
      [element](const Lane& lane) { return End(lane.section.range) <= element; });
  if (after == lanes_.end() || after->section.range.first > element) return nullptr;
  return &*after;
}

absl::Status CollectiveRun::Take(const Message& message) {
  COVEY_RETURN_IF_ERROR(CheckFrameChecksums(message));
  COVEY_ASSIGN_OR_RETURN(std::vector<Cut> cuts, CutUp(message));
  const proto::GroupSlice& from = message.envelope.group_slice();
  if (from.phase() == proto::GroupSlice::SPREAD) {
    COVEY_RETURN_IF_ERROR(SetChecksums(message, cuts));
  }
  for (Cut& cut : cuts) COVEY_RETURN_IF_ERROR(TakePiece(std::move(cut), from));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<CollectiveRun::Cut>> CollectiveRun::CutUp(const Message& message) {
  const proto::GroupSlice& from = message.envelope.group_slice();
  const bool token = collective_.kind == CollectiveKind::kBarrier;
  const Buffer frame = message.frames.empty() ? Buffer() : message.frames[0];
  const size_t elements = collective_.data.size();
  if (from.format() != ToProto(collective_.format) || from.first() > elements ||
      from.count() > elements - from.first() || (from.count() == 0) != token ||
      message.frames.size() != (token ? 0 : 1)) {
    return absl::InvalidArgumentError("a slice of another size or format");
  }
  std::vector<Cut> cuts;
  size_t element = from.first();
  size_t byte = 0;
  do {
    Lane* const lane = LaneAt(element);
    if (lane == nullptr) return absl::InvalidArgumentError("a slice of no part");
    const size_t slice = (element - lane->section.range.first) / options_.slice_elements;
    const PartRange range = RangeOf(*lane, slice);
    const size_t bytes = EncodedBytes(collective_.format, range.count);
    if (range.first != element || End(range) > from.first() + from.count() ||
        bytes > frame.size() - byte) {
      return absl::InvalidArgumentError("a slice that is cut otherwise");
    }
    cuts.push_back(
        {.lane = lane, .slice = slice, .bytes = token ? Buffer() : frame.Slice(byte, bytes)});
    element += range.count;
    byte += bytes;
  } while (element < from.first() + from.count());
  if (byte != frame.size()) return absl::InvalidArgumentError("a slice with too many bytes");
  return cuts;
}

absl::Status CollectiveRun::SetChecksums(const Message& message, std::vector<Cut>& cuts) {
  if (message.frames.empty()) return absl::OkStatus();
  const uint32_t whole = message.envelope.frame_checksums(0);
  if (cuts.size() == 1) {
    cuts[0].checksum = whole;
    return absl::OkStatus();
  }
  uint32_t joined = 0;
  for (Cut& cut : cuts) {
    cut.checksum = FrameChecksum(cut.bytes);
    joined = JoinCrc32c(joined, cut.checksum, cut.bytes.size());
  }
  if (joined == whole) return absl::OkStatus();
  return absl::DataLossError("a frame changed while it was cut into slices; check the memory");
}

absl::Status CollectiveRun::TakePiece(Cut cut, const proto::GroupSlice& from) {
  Lane& lane = *cut.lane;
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
              .seen_epoch = from.seen_epoch()};
  if (from.phase() != proto::GroupSlice::REDUCE) {
    Hear(lane, slice, piece);
    return absl::OkStatus();
  }
  waiting_bytes_ += piece.bytes.size();
  lane.slices[slice].waiting.emplace_back(operand, std::move(piece));
  Sum(lane, slice);
  return absl::OkStatus();
}

void CollectiveRun::Sum(Lane& lane, size_t slice) {
  Slice& state = lane.slices[slice];
  const PartRange range = RangeOf(lane, slice);
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
      state.seen_epoch = std::min(state.seen_epoch, options_.seen_epoch);
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
    state.seen_epoch = std::min(state.seen_epoch, piece.seen_epoch);
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
  const Piece sum{.samples = state.samples, .seen_epoch = state.seen_epoch};
  if (!lane.reduce.parent) {
    Result(lane, slice, sum);
    return;
  }
  Buffer encoded = format == WireFormat::kFloat32 ? Buffer() : EncodeSlice(range);
  const uint32_t checksum = ChecksumOf(range, encoded);
  ready_.push_back({.peer = *lane.reduce.parent,
                    .phase = proto::GroupSlice::REDUCE,
                    .range = range,
                    .checksum = checksum,
                    .samples = sum.samples,
                    .seen_epoch = sum.seen_epoch,
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
  const PartRange range = RangeOf(lane, slice);
  Buffer encoded;
  if (collective_.format != WireFormat::kFloat32) {
    encoded = EncodeSlice(range);
    Decode(collective_.format, encoded.bytes(), collective_.data.subspan(range.first, range.count));
  }
  const uint32_t checksum = ChecksumOf(range, encoded);
  for (const uint32_t child : lane.spread.children) {
    ready_.push_back({.peer = child,
                      .phase = proto::GroupSlice::SPREAD,
                      .range = range,
                      .checksum = checksum,
                      .samples = piece.samples,
                      .seen_epoch = piece.seen_epoch,
                      .encoded = encoded});
  }
}

// Another member owns the slice.
void CollectiveRun::Hear(Lane& lane, size_t slice, const Piece& piece) {
  Note(piece);
  --missing_;
  const PartRange range = RangeOf(lane, slice);
  Decode(collective_.format, piece.bytes.bytes(),
         collective_.data.subspan(range.first, range.count));
  if (lane.spread.children.empty()) return;
  // The same bytes go on, but not the same memory: members of one process would wait in a circle
  // for each other to let frames go.
  const Buffer encoded =
      collective_.format == WireFormat::kFloat32 ? Buffer() : Buffer::CopyOf(piece.bytes.bytes());
  for (const uint32_t child : lane.spread.children) {
    ready_.push_back({.peer = child,
                      .phase = proto::GroupSlice::SPREAD,
                      .range = range,
                      .checksum = piece.checksum,
                      .samples = piece.samples,
                      .seen_epoch = piece.seen_epoch,
                      .encoded = encoded});
  }
}

void CollectiveRun::Note(const Piece& piece) {
  samples_ = std::max(samples_, piece.samples);
  result_epoch_ = std::min(result_epoch_, piece.seen_epoch);
}

CollectiveResult CollectiveRun::result() const {
  return {.status = absl::OkStatus(),
          .samples = samples_,
          .seen_epoch = result_epoch_ == UINT64_MAX ? 0 : result_epoch_};
}

std::vector<CollectiveRun::Saying> CollectiveRun::TakeSayings() {
  // By peer, each member's next one first, so that not all speak to the same one at first; then in
  // the order of the data, which is that of the slices of each lane.
  const auto key = [this](const Ready& ready) {
    const uint32_t size = plan_->size();
    return std::tuple((ready.peer + size - options_.rank) % size, ready.phase, ready.range.first);
  };
  std::stable_sort(ready_.begin(), ready_.end(),
                   [&key](const Ready& a, const Ready& b) { return key(a) < key(b); });
  std::vector<Saying> sayings;
  for (size_t begin = 0, end = 0; begin < ready_.size(); begin = end) {
    const Ready& first = ready_[begin];
    size_t count = first.range.count;
    for (end = begin + 1; end < ready_.size(); ++end) {
      const Ready& next = ready_[end];
      if (next.peer != first.peer || next.phase != first.phase ||
          next.range.first != first.range.first + count || next.samples != first.samples ||
          next.seen_epoch != first.seen_epoch ||
          count + next.range.count > options_.slice_elements) {
        break;
      }
      count += next.range.count;
    }
    sayings.push_back(Say(std::span(ready_).subspan(begin, end - begin)));
  }
  ready_.clear();
  return sayings;
}

CollectiveRun::Saying CollectiveRun::Say(std::span<const Ready> together) const {
  const Ready& first = together.front();
  const size_t count = End(together.back().range) - first.range.first;
  Saying saying{.peer = first.peer};
  saying.slice.set_stream(collective_.id.stream);
  saying.slice.set_sequence(collective_.id.sequence);
  saying.slice.set_from_rank(options_.rank);
  saying.slice.set_phase(first.phase);
  saying.slice.set_first(first.range.first);
  saying.slice.set_count(count);
  saying.slice.set_format(ToProto(collective_.format));
  saying.slice.set_samples(first.samples);
  saying.slice.set_seen_epoch(first.seen_epoch);
  if (count == 0) return saying;
  for (const Ready& ready : together) {
    saying.checksum = JoinCrc32c(saying.checksum, ready.checksum,
                                 EncodedBytes(collective_.format, ready.range.count));
  }
  if (collective_.format == WireFormat::kFloat32) {
    std::function<void()> release;
    if (collective_.owner != nullptr) release = [owner = collective_.owner] {};
    saying.frame = Buffer::Wrap(collective_.data.data() + first.range.first, count * sizeof(float),
                                std::move(release));
  } else if (together.size() == 1) {
    // A handle of its own: the same bytes may go to several members.
    saying.frame = Buffer::Wrap(first.encoded.data(), first.encoded.size(),
                                [bytes = first.encoded]() mutable { bytes = Buffer(); });
  } else {
    size_t bytes = 0;
    for (const Ready& ready : together) bytes += ready.encoded.size();
    saying.frame = Buffer::Allocate(bytes);
    uint8_t* out = saying.frame.MutableData();
    for (const Ready& ready : together) {
      out = std::copy_n(ready.encoded.data(), ready.encoded.size(), out);
    }
  }
  return saying;
}

void CollectiveRun::Stop() {
  for (Lane& lane : lanes_) {
    for (Slice& slice : lane.slices) slice.waiting.clear();
  }
  waiting_bytes_ = 0;
  ready_.clear();
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
