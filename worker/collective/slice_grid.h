// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/collective/part_range.h"
#include "common/collective/sections.h"
#include "common/net/message.h"
#include "common/tensor/element_span.h"
#include "common/tensor/reduce_op.h"
#include "common/tensor/wire_format.h"
#include "worker/collective/collective.h"

namespace covey::worker {

// How the data of one collective is cut into slices, the same on all members: each section of the
// plan into slices of the same size, its last one shorter. Messages from other members are checked
// against it. Pure.
class SliceGrid {
 public:
  // `sections`: in growing order of elements.
  SliceGrid(const Collective& collective, std::vector<Section> sections, size_t slice_elements);

  const std::vector<Section>& sections() const { return sections_; }
  size_t SlicesOf(size_t section) const;
  PartRange RangeOf(size_t section, size_t slice) const;

  // One slice of a message.
  struct Cut {
    size_t section = 0;
    size_t slice = 0;
    Buffer bytes;
    // Of a result: that of its owner.
    uint32_t checksum = 0;
  };
  // The slices of a message whose frames match their checksums. INVALID_ARGUMENT: it does not fit.
  // DATA_LOSS: its bytes have changed since.
  absl::StatusOr<std::vector<Cut>> CutUp(const Message& message) const;

 private:
  // The section that the element is in; as many as there are: none.
  size_t SectionAt(size_t element) const;
  static absl::Status SetChecksums(const Message& message, std::vector<Cut>& cuts);

  const bool is_barrier_;
  const bool is_broadcast_;
  const WireFormat format_;
  const ElementType type_;
  const ReduceOp op_;
  const size_t elements_;
  const std::vector<Section> sections_;
  const size_t slice_elements_;
};

}  // namespace covey::worker
