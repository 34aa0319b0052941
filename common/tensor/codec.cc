// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/codec.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "common/base/check.h"
#include "common/tensor/bfloat_codec.h"
#include "common/tensor/half_codec.h"
#include "common/tensor/int8_codec.h"
#include "common/tensor/kernels.h"
#include "common/tensor/scaled_codec.h"
#include "common/tensor/top_codec.h"

namespace covey {
namespace {

// Codecs work on this many elements at a time, so that they stay in the core's cache. One block of
// the formats that have blocks.
constexpr size_t kChunk = kBlockElements;

// Encodes one chunk of at most kChunk elements.
void EncodeChunk(WireFormat format, std::span<const float> values, uint8_t* bytes) {
  alignas(64) uint16_t words[kChunk];
  const size_t count = values.size();
  switch (format) {
    case WireFormat::kFloat32:
      std::memcpy(bytes, values.data(), 4 * count);
      return;
    case WireFormat::kFloat16:
      EncodeHalf(values, std::span(words, count));
      std::memcpy(bytes, words, 2 * count);
      return;
    case WireFormat::kBfloat16:
      EncodeBfloat(values, std::span(words, count));
      std::memcpy(bytes, words, 2 * count);
      return;
    case WireFormat::kInt8Block:
      EncodeInt8Block(values, std::span(bytes, EncodedBytes(format, count)));
      return;
    case WireFormat::kFloat16Block:
      EncodeScaledHalfBlock(values, std::span(bytes, EncodedBytes(format, count)));
      return;
    case WireFormat::kFloat8Block:
      EncodeFloat8Block(values, std::span(bytes, EncodedBytes(format, count)));
      return;
    case WireFormat::kTopBlock:
      EncodeTopBlock(values, std::span(bytes, EncodedBytes(format, count)));
      return;
  }
}

void DecodeChunk(WireFormat format, const uint8_t* bytes, std::span<float> values) {
  alignas(64) uint16_t words[kChunk];
  const size_t count = values.size();
  switch (format) {
    case WireFormat::kFloat32:
      std::memcpy(values.data(), bytes, 4 * count);
      return;
    case WireFormat::kFloat16:
      std::memcpy(words, bytes, 2 * count);
      DecodeHalf(std::span(words, count), values);
      return;
    case WireFormat::kBfloat16:
      std::memcpy(words, bytes, 2 * count);
      DecodeBfloat(std::span(words, count), values);
      return;
    case WireFormat::kInt8Block:
      DecodeInt8Block(std::span(bytes, EncodedBytes(format, count)), values);
      return;
    case WireFormat::kFloat16Block:
      DecodeScaledHalfBlock(std::span(bytes, EncodedBytes(format, count)), values);
      return;
    case WireFormat::kFloat8Block:
      DecodeFloat8Block(std::span(bytes, EncodedBytes(format, count)), values);
      return;
    case WireFormat::kTopBlock:
      DecodeTopBlock(std::span(bytes, EncodedBytes(format, count)), values);
      return;
  }
}

// Calls `work(first, count, byte)` for each chunk of `count` elements; the chunk's encoding begins
// at `byte`.
template <typename Work>
void ForEachChunk(WireFormat format, size_t count, Work work) {
  const size_t chunk_bytes = EncodedBytes(format, kChunk);
  for (size_t first = 0, byte = 0; first < count; first += kChunk, byte += chunk_bytes) {
    work(first, std::min(kChunk, count - first), byte);
  }
}

// Calls `work(first, byte, count, bytes)` for each span of elements that is encoded by itself: a
// row in formats with blocks, else all rows at once.
template <typename Work>
void ForEachSpan(WireFormat format, size_t width, size_t elements, Work work) {
  COVEY_CHECK(width > 0 && elements % width == 0);
  const size_t step = HasBlocks(format) ? width : std::max<size_t>(elements, 1);
  const size_t step_bytes = EncodedBytes(format, step);
  for (size_t first = 0, byte = 0; first < elements; first += step, byte += step_bytes) {
    work(first, byte, step, step_bytes);
  }
}

}  // namespace

void Encode(WireFormat format, std::span<const float> values, std::span<uint8_t> bytes) {
  COVEY_CHECK(bytes.size() == EncodedBytes(format, values.size()));
  ForEachChunk(format, values.size(), [&](size_t first, size_t count, size_t byte) {
    EncodeChunk(format, values.subspan(first, count), bytes.data() + byte);
  });
}

void Decode(WireFormat format, std::span<const uint8_t> bytes, std::span<float> values) {
  COVEY_CHECK(bytes.size() == EncodedBytes(format, values.size()));
  if (format == WireFormat::kFloat32) {
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return;
  }
  ForEachChunk(format, values.size(), [&](size_t first, size_t count, size_t byte) {
    DecodeChunk(format, bytes.data() + byte, values.subspan(first, count));
  });
}

void DecodeAndAdd(WireFormat format, std::span<const uint8_t> bytes, std::span<float> sum) {
  COVEY_CHECK(bytes.size() == EncodedBytes(format, sum.size()));
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % alignof(float) == 0;
  if (format == WireFormat::kFloat32 && aligned) {
    AddInto(sum, std::span(reinterpret_cast<const float*>(bytes.data()), sum.size()));
    return;
  }
  ForEachChunk(format, sum.size(), [&](size_t first, size_t count, size_t byte) {
    alignas(64) float decoded[kChunk];
    DecodeChunk(format, bytes.data() + byte, std::span(decoded, count));
    AddInto(sum.subspan(first, count), std::span(decoded, count));
  });
}

void EncodeRows(WireFormat format, size_t width, std::span<const float> rows,
                std::span<uint8_t> bytes) {
  COVEY_CHECK(bytes.size() == EncodedRowBytes(format, width, rows.size() / width));
  ForEachSpan(format, width, rows.size(),
              [&](size_t first, size_t byte, size_t count, size_t size) {
                Encode(format, rows.subspan(first, count), bytes.subspan(byte, size));
              });
}

void DecodeRows(WireFormat format, size_t width, std::span<const uint8_t> bytes,
                std::span<float> rows) {
  COVEY_CHECK(bytes.size() == EncodedRowBytes(format, width, rows.size() / width));
  ForEachSpan(format, width, rows.size(),
              [&](size_t first, size_t byte, size_t count, size_t size) {
                Decode(format, bytes.subspan(byte, size), rows.subspan(first, count));
              });
}

void EncodeWithFeedback(WireFormat format, std::span<const float> values, std::span<float> residual,
                        std::span<uint8_t> bytes) {
  COVEY_CHECK(bytes.size() == EncodedBytes(format, values.size()));
  COVEY_CHECK(residual.size() == values.size());
  ForEachChunk(format, values.size(), [&](size_t first, size_t count, size_t byte) {
    alignas(64) float wanted[kChunk];
    alignas(64) float sent[kChunk];
    std::memcpy(wanted, values.data() + first, count * sizeof(float));
    AddInto(std::span(wanted, count), residual.subspan(first, count));
    EncodeChunk(format, std::span(wanted, count), bytes.data() + byte);
    DecodeChunk(format, bytes.data() + byte, std::span(sent, count));
    KeepLoss(std::span(wanted, count), std::span(sent, count), residual.subspan(first, count));
  });
}

}  // namespace covey
