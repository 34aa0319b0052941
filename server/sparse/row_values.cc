// SPDX-License-Identifier: Apache-2.0
#include "server/sparse/row_values.h"

#include <algorithm>
#include <array>

#include "common/base/check.h"
#include "common/tensor/codec.h"
#include "common/tensor/stochastic_codec.h"

namespace covey::server {
namespace {

// Elements that are decoded at a time.
constexpr size_t kChunk = 256;

size_t WordsOf(const RowValues::Config& config) {
  COVEY_CHECK(!HasBlocks(config.type));
  return (EncodedBytes(config.type, config.width) + 3) / 4;
}

}  // namespace

RowValues::RowValues(RowMemory& memory, const Config& config)
    : config_(config),
      encoded_bytes_(EncodedBytes(config.type, config.width)),
      salt_(MixBits(config.seed)),
      words_(memory, WordsOf(config)),
      copies_(config.type == WireFormat::kFloat32 ? 0 : kOpenMax * config.width) {}

void RowValues::Store(size_t row) {
  if (copies_.empty()) return;
  std::fill_n(Row(row) + encoded_bytes_, WordsOf(config_) * 4 - encoded_bytes_, uint8_t{0});
  Encode(config_.type, std::span(copies_).first(config_.width), EncodedRow(row));
}

float* RowValues::Open(size_t row, size_t place) {
  float* const values = PlaceOf(row, place);
  if (!copies_.empty()) Decode(config_.type, EncodedRow(row), {values, config_.width});
  return values;
}

void RowValues::Round(size_t row, size_t place, uint64_t key, uint32_t updates) {
  const std::span<const float> values(PlaceOf(row, place), config_.width);
  if (config_.rounding == Rounding::kNearest) {
    Encode(config_.type, values, EncodedRow(row));
    return;
  }
  const uint64_t stream = MixBits((key ^ salt_) + updates * uint64_t{0x9e3779b97f4a7c15});
  EncodeStochastic(config_.type, stream, values, EncodedRow(row));
}

double RowValues::SumOfSquares(size_t row) const {
  std::array<float, kChunk> chunk;
  double squares = 0;
  for (size_t first = 0; first < config_.width; first += kChunk) {
    const std::span<float> values = std::span(chunk).first(std::min(kChunk, config_.width - first));
    const size_t begin = EncodedBytes(config_.type, first);
    Decode(config_.type, {Row(row) + begin, EncodedBytes(config_.type, values.size())}, values);
    for (const float value : values) squares += static_cast<double>(value) * value;
  }
  return squares;
}

}  // namespace covey::server
