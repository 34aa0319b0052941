// SPDX-License-Identifier: Apache-2.0
#include "server/replication/gradient.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/net/frame_checksum.h"
#include "common/tensor/codec.h"
#include "common/tensor/wire_format_proto.h"

namespace covey::server {
namespace {

std::optional<uint32_t> ChecksumOf(const Message& message, size_t frame) {
  const proto::Envelope& envelope = message.envelope;
  if (static_cast<size_t>(envelope.frame_checksums_size()) != message.frames.size()) return {};
  return envelope.frame_checksums(static_cast<int>(frame));
}

Buffer SumOfFactors(const EncodedGradient& gradient, const MatrixRange& range, BufferPool& spares) {
  Buffer elements = spares.Take(range.elements * sizeof(float));
  const WireFormat format = WireFormatFromProto(gradient.format).value();
  Buffer decoded;
  Factors factors;
  if (format == WireFormat::kFloat32) {
    factors = FactorsIn(range, gradient.terms, gradient.frame.As<float>());
  } else {
    decoded = Buffer::Allocate(gradient.terms * (range.rows() + range.columns) * sizeof(float));
    factors = DecodeFactors(format, range, gradient.terms, gradient.frame.bytes(),
                            decoded.MutableAs<float>());
  }
  SumOuterProducts(range, factors, elements.MutableAs<float>());
  return elements;
}

}  // namespace

absl::Status CheckOuterProduct(const proto::OuterProduct& factors, WireFormat format,
                               const GradientShape& shape) {
  if (shape.matrix.columns == 0) {
    return absl::InvalidArgumentError(
        "the gradient is in factors, which are for dense tables of two dimensions or more that are "
        "not tables of vectors; push its elements or rows");
  }
  if (factors.terms() >= 1 && factors.terms() <= kOuterProductTermsMax &&
      AreFactorsSmaller(format, shape.matrix, factors.terms())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the gradient is in factors of ", factors.terms(), " terms for ", shape.matrix.rows(),
      " rows and ", shape.matrix.columns, " columns; push from 1 to ", kOuterProductTermsMax,
      ", and the ", shape.elements, " elements where factors are not smaller"));
}

size_t DenseFrameBytes(WireFormat format, const GradientShape& shape, size_t terms) {
  return terms == 0 ? EncodedBytes(format, shape.elements)
                    : FactorBytes(format, shape.matrix, terms);
}

bool AreGradientFrames(const Message& message, proto::WireFormat format, const proto::KeyList& keys,
                       const GradientShape& shape, size_t terms) {
  const std::optional<WireFormat> known = WireFormatFromProto(format);
  if (!known) return false;
  const auto& frames = message.frames;
  if (!shape.is_sparse()) {
    return frames.size() == 1 && frames[0].size() == DenseFrameBytes(*known, shape, terms);
  }
  if (keys.count() == 0) return frames.empty();
  return frames.size() == 2 && IsKeyFrame(keys, frames[0]) &&
         frames[1].size() == EncodedRowBytes(*known, shape.row_width, keys.count());
}

EncodedGradient EncodedFrameOf(const Message& message, size_t frame) {
  return {.frame = message.frames[frame], .checksum = ChecksumOf(message, frame)};
}

EncodedGradient EncodedGradientOf(const Message& message, proto::WireFormat format,
                                  const proto::KeyList& keys, const GradientShape& shape,
                                  size_t terms) {
  EncodedGradient gradient;
  gradient.format = format;
  gradient.terms = terms;
  if (shape.is_sparse()) gradient.keys.emplace().list = keys;
  if (message.frames.empty()) return gradient;
  gradient.frame = message.frames.back();
  gradient.checksum = ChecksumOf(message, message.frames.size() - 1);
  if (shape.is_sparse()) {
    gradient.keys->frame = message.frames[0];
    gradient.keys->checksum = ChecksumOf(message, 0);
  }
  return gradient;
}

Buffer KeptElements(const Buffer& elements, bool is_sparse, BufferPool& spares) {
  return is_sparse ? elements.Kept() : spares.Kept(elements);
}

void Keep(EncodedGradient& gradient, BufferPool& spares) {
  // Factors come in many sizes, too.
  gradient.frame =
      KeptElements(gradient.frame, gradient.keys.has_value() || gradient.terms > 0, spares);
  if (gradient.keys) gradient.keys->frame = gradient.keys->frame.Kept();
}

void AddGradientFrames(EncodedGradient& gradient, Message& message) {
  const auto add = [&message](const Buffer& frame, std::optional<uint32_t>& checksum) {
    if (!checksum) checksum = FrameChecksum(frame);
    AddFrame(message, frame, *checksum);
  };
  if (gradient.keys) {
    if (gradient.keys->list.count() == 0) return;
    add(gradient.keys->frame, gradient.keys->checksum);
  }
  add(gradient.frame, gradient.checksum);
}

Buffer DecodedElements(const EncodedGradient& gradient, const GradientShape& shape,
                       BufferPool& spares) {
  if (gradient.terms > 0) return SumOfFactors(gradient, shape.matrix, spares);
  if (gradient.format == proto::WIRE_FLOAT32 || gradient.frame.empty()) return gradient.frame;
  Buffer elements = shape.is_sparse()
                        ? Buffer::Allocate(shape.ElementsOf(gradient.keys->list) * sizeof(float))
                        : spares.Take(shape.elements * sizeof(float));
  const WireFormat format = WireFormatFromProto(gradient.format).value();
  if (shape.is_sparse()) {
    DecodeRows(format, shape.row_width, gradient.frame.bytes(), elements.MutableAs<float>());
  } else {
    Decode(format, gradient.frame.bytes(), elements.MutableAs<float>());
  }
  return elements;
}

absl::StatusOr<GradientBuffers> Decoded(const EncodedGradient& gradient, const GradientShape& shape,
                                        BufferPool& spares) {
  GradientBuffers decoded;
  if (gradient.keys) {
    COVEY_ASSIGN_OR_RETURN(decoded.keys, DecodedKeys(gradient.keys->list, gradient.keys->frame));
  }
  decoded.elements = DecodedElements(gradient, shape, spares);
  return decoded;
}

}  // namespace covey::server
