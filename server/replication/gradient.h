// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/base/buffer_pool.h"
#include "common/net/message.h"
#include "common/table/key_list.h"
#include "common/tensor/outer_product.h"
#include "common/tensor/wire_format.h"
#include "proto/parameter.pb.h"
#include "proto/tensor.pb.h"
#include "server/sparse/row_places.h"

namespace covey::server {

// What the gradients of a shard consist of: an element for each of a dense shard, or rows for some
// keys of a sparse one.
struct GradientShape {
  uint64_t elements = 0;  // of a dense shard
  size_t row_width = 0;   // of a sparse one; 0 = it is dense
  // Of a dense shard, its elements in the table's matrix; without columns where it has none, and
  // takes no gradient in factors.
  MatrixRange matrix = {};

  bool is_sparse() const { return row_width != 0; }
  // In a gradient; of a sparse shard, one with so many keys.
  uint64_t ElementsOf(const proto::KeyList& keys) const {
    return is_sparse() ? keys.count() * uint64_t{row_width} : elements;
  }
};

// A gradient in its encoded form.
struct EncodedGradient {
  Buffer frame;
  proto::WireFormat format = proto::WIRE_FLOAT32;
  // Of the factors that the frame holds; 0 = it holds elements or rows.
  size_t terms = 0;
  // Checksum of the frame; nothing = not computed yet.
  std::optional<uint32_t> checksum = std::nullopt;
  // Of a sparse shard: the keys of the rows in the frame, which is empty where there are none.
  std::optional<EncodedKeys> keys = std::nullopt;

  size_t frame_bytes() const { return frame.size() + (keys ? keys->frame.size() : 0); }
};

// A gradient, decoded. The keys of its rows ascend, and none comes twice; a gradient of a dense
// shard has none.
struct Gradient {
  std::span<const float> elements;
  std::span<const uint64_t> keys;
  // Of these keys, if they are remembered; null = they are not.
  RowPlaces* places = nullptr;

  Gradient() = default;
  Gradient(std::span<const float> all_elements)  // NOLINT(google-explicit-constructor)
      : elements(all_elements) {}
  Gradient(std::span<const float> rows, std::span<const uint64_t> of_keys)
      : elements(rows), keys(of_keys) {}
};

// The same with its memory.
struct GradientBuffers {
  Buffer elements;
  Buffer keys;
  std::shared_ptr<RowPlaces> places = nullptr;  // of these keys; null = they are not remembered

  Gradient spans() const {
    Gradient gradient{elements.As<float>(), keys.As<uint64_t>()};
    gradient.places = places.get();
    return gradient;
  }
  size_t bytes() const { return elements.size() + keys.size(); }
};

// INVALID_ARGUMENT: a shard of this shape takes no gradient in factors, or not of so many terms.
absl::Status CheckOuterProduct(const proto::OuterProduct& factors, WireFormat format,
                               const GradientShape& shape);
// Of a gradient of a dense shard: of its elements, or of so many terms. Precondition: the shard
// takes these.
size_t DenseFrameBytes(WireFormat format, const GradientShape& shape, size_t terms);

// Whether the frames of a push or a record are those of one gradient of this shape: for a dense
// shard the elements, or factors of so many terms; for a sparse one the keys and their rows, or no
// frame when there are no keys. Precondition: the shard takes the factors.
bool AreGradientFrames(const Message& message, proto::WireFormat format, const proto::KeyList& keys,
                       const GradientShape& shape, size_t terms = 0);

// One of the message's frames, which it shares, with its checksum. Precondition: it has the frame.
EncodedGradient EncodedFrameOf(const Message& message, size_t frame);
// The gradient in the message's frames, which it shares. Precondition: AreGradientFrames.
EncodedGradient EncodedGradientOf(const Message& message, proto::WireFormat format,
                                  const proto::KeyList& keys, const GradientShape& shape,
                                  size_t terms = 0);
// The elements of a gradient outside lent memory (Buffer::Lend): a copy where they are in it, from
// `spares` for a dense shard. Rows come in many sizes, which the pool is not for.
Buffer KeptElements(const Buffer& elements, bool is_sparse, BufferPool& spares);
// Its frames are not in lent memory afterwards.
void Keep(EncodedGradient& gradient, BufferPool& spares);
// Adds the frames, with their checksums, which are made when the gradient has none.
void AddGradientFrames(EncodedGradient& gradient, Message& message);

// The elements alone. Shares the frame where that holds them as float32. Factors are summed up, in
// a buffer of `spares`; those of other formats take fewer bytes than that in between.
Buffer DecodedElements(const EncodedGradient& gradient, const GradientShape& shape,
                       BufferPool& spares);
// Shares the frame where that holds float32. INVALID_ARGUMENT: the key frame is not a list of keys.
// Precondition: it came from EncodedGradientOf, or is as if it had.
absl::StatusOr<GradientBuffers> Decoded(const EncodedGradient& gradient, const GradientShape& shape,
                                        BufferPool& spares);

}  // namespace covey::server
