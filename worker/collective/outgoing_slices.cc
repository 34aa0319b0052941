// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/outgoing_slices.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "common/base/crc32c.h"
#include "common/tensor/element_proto.h"
#include "common/tensor/wire_format_proto.h"

namespace covey::worker {

std::vector<OutgoingSlice> OutgoingSlices::Take(const Collective& collective,
                                                const Sender& sender) {
  // By peer, each member's next one first, so that not all speak to the same one at first; then in
  // the order of the data, which is that of the slices of each lane.
  const auto key = [&sender](const Part& part) {
    return std::tuple((part.peer + sender.size - sender.rank) % sender.size, part.phase,
                      part.range.first);
  };
  std::stable_sort(parts_.begin(), parts_.end(),
                   [&key](const Part& a, const Part& b) { return key(a) < key(b); });
  std::vector<OutgoingSlice> slices;
  for (size_t begin = 0, end = 0; begin < parts_.size(); begin = end) {
    const Part& first = parts_[begin];
    size_t count = first.range.count;
    for (end = begin + 1; end < parts_.size(); ++end) {
      const Part& next = parts_[end];
      if (next.peer != first.peer || next.phase != first.phase ||
          next.range.first != first.range.first + count || next.samples != first.samples ||
          next.agreed_plan_epoch != first.agreed_plan_epoch ||
          count + next.range.count > sender.slice_elements) {
        break;
      }
      count += next.range.count;
    }
    slices.push_back(Join(std::span(parts_).subspan(begin, end - begin), collective, sender.rank));
  }
  parts_.clear();
  return slices;
}

OutgoingSlice OutgoingSlices::Join(std::span<const Part> together, const Collective& collective,
                                   uint32_t rank) {
  const Part& first = together.front();
  const PartRange& last = together.back().range;
  const size_t count = last.first + last.count - first.range.first;
  OutgoingSlice outgoing{.peer = first.peer, .attachment = first.attachment};
  outgoing.slice.set_stream(collective.id.stream);
  outgoing.slice.set_sequence(collective.id.sequence);
  outgoing.slice.set_from_rank(rank);
  outgoing.slice.set_phase(first.phase);
  outgoing.slice.set_first(first.range.first);
  outgoing.slice.set_count(count);
  outgoing.slice.set_format(ToProto(collective.format));
  outgoing.slice.set_element_type(ToProto(collective.data.type()));
  outgoing.slice.set_operation(ToProto(collective.op));
  outgoing.slice.set_samples(first.samples);
  outgoing.slice.set_agreed_plan_epoch(first.agreed_plan_epoch);
  if (count == 0) return outgoing;
  for (const Part& part : together) {
    outgoing.checksum =
        JoinCrc32c(outgoing.checksum, part.checksum,
                   WireBytes(collective.data.type(), collective.format, part.range.count));
  }
  if (first.encoded.empty()) {
    std::function<void()> release;
    if (collective.owner != nullptr) release = [owner = collective.owner] {};
    const std::span<uint8_t> bytes = collective.data.subspan(first.range.first, count).bytes();
    outgoing.frame = Buffer::Wrap(bytes.data(), bytes.size(), std::move(release));
  } else if (together.size() == 1) {
    // A handle of its own: the same bytes may go to several members.
    outgoing.frame = Buffer::Wrap(first.encoded.data(), first.encoded.size(),
                                  [bytes = first.encoded]() mutable { bytes = Buffer(); });
  } else {
    size_t bytes = 0;
    for (const Part& part : together) bytes += part.encoded.size();
    outgoing.frame = Buffer::Allocate(bytes);
    uint8_t* out = outgoing.frame.MutableData();
    for (const Part& part : together) {
      out = std::copy_n(part.encoded.data(), part.encoded.size(), out);
    }
  }
  return outgoing;
}

}  // namespace covey::worker
