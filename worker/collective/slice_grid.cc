// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/slice_grid.h"

#include <algorithm>
#include <utility>

#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/collective/collective_kind.h"
#include "common/net/frame_checksum.h"
#include "common/tensor/element_proto.h"
#include "common/tensor/wire_format_proto.h"

namespace covey::worker {
namespace {

size_t End(const PartRange& range) { return range.first + range.count; }

}  // namespace

SliceGrid::SliceGrid(const Collective& collective, std::vector<Section> sections,
                     size_t slice_elements)
    : is_barrier_(collective.kind == CollectiveKind::kBarrier),
      is_broadcast_(collective.kind == CollectiveKind::kBroadcast),
      format_(collective.format),
      type_(collective.data.type()),
      op_(collective.op),
      elements_(collective.data.size()),
      sections_(std::move(sections)),
      slice_elements_(slice_elements) {}

size_t SliceGrid::SlicesOf(size_t section) const {
  const size_t elements = sections_[section].range.count;
  return elements == 0 ? 1 : (elements + slice_elements_ - 1) / slice_elements_;
}

PartRange SliceGrid::RangeOf(size_t section, size_t slice) const {
  const size_t offset = slice * slice_elements_;
  const PartRange whole = sections_[section].range;
  return {.first = whole.first + offset, .count = std::min(slice_elements_, whole.count - offset)};
}

size_t SliceGrid::SectionAt(size_t element) const {
  if (is_barrier_) return element == 0 ? 0 : sections_.size();
  const auto after = std::partition_point(
      sections_.begin(), sections_.end(),
      [element](const Section& section) { return End(section.range) <= element; });
  if (after == sections_.end() || after->range.first > element) return sections_.size();
  return static_cast<size_t>(after - sections_.begin());
}

absl::StatusOr<std::vector<SliceGrid::Cut>> SliceGrid::CutUp(const Message& message) const {
  const proto::GroupSlice& from = message.envelope.group_slice();
  const Buffer frame = message.frames.empty() ? Buffer() : message.frames[0];
  // The second frame of a broadcast's first slice is its attachment.
  const size_t frames_max = is_barrier_ ? 0 : is_broadcast_ && from.first() == 0 ? 2 : 1;
  if (from.element_type() != ToProto(type_) || from.operation() != ToProto(op_)) {
    return absl::InvalidArgumentError("a slice of another type or operation");
  }
  if (from.format() != ToProto(format_) || from.first() > elements_ ||
      from.count() > elements_ - from.first() || (from.count() == 0) != is_barrier_ ||
      message.frames.empty() != is_barrier_ || message.frames.size() > frames_max) {
    return absl::InvalidArgumentError("a slice of another size or format");
  }
  std::vector<Cut> cuts;
  size_t element = from.first();
  size_t byte = 0;
  do {
    const size_t section = SectionAt(element);
    if (section == sections_.size()) return absl::InvalidArgumentError("a slice of no part");
    const size_t slice = (element - sections_[section].range.first) / slice_elements_;
    const PartRange range = RangeOf(section, slice);
    const size_t bytes = WireBytes(type_, format_, range.count);
    if (range.first != element || End(range) > from.first() + from.count() ||
        bytes > frame.size() - byte) {
      return absl::InvalidArgumentError("a slice that is cut otherwise");
    }
    cuts.push_back({.section = section,
                    .slice = slice,
                    .bytes = is_barrier_ ? Buffer() : frame.Slice(byte, bytes)});
    element += range.count;
    byte += bytes;
  } while (element < from.first() + from.count());
  if (byte != frame.size()) return absl::InvalidArgumentError("a slice with too many bytes");
  if (from.phase() == proto::GroupSlice::SPREAD) {
    COVEY_RETURN_IF_ERROR(SetChecksums(message, cuts));
  }
  return cuts;
}

// Gives each slice of a result the checksum that its owner made.
absl::Status SliceGrid::SetChecksums(const Message& message, std::vector<Cut>& cuts) {
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

}  // namespace covey::worker
