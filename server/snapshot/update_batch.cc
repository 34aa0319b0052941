// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot/update_batch.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/fixed_bytes.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/net/frame_checksum.h"
#include "common/net/message.h"

namespace covey::server {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kLengthsBytes = 8;
// More than a record's envelope has besides its pushes, and more than a push and a function add.
constexpr uint64_t kEnvelopeBytes = 192;
constexpr uint64_t kPushBytes = 64;
constexpr uint64_t kFunctionBytes = 24;

uint64_t Aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

absl::Status NoBatch(uint64_t offset) {
  return absl::DataLossError(
      absl::StrCat("the updates from byte ", offset, " on are intact, but none of this program's"));
}

}  // namespace

uint64_t UpdateBatch::BytesOf(const ShardRecord& record) {
  return Aligned(kLengthsBytes + kEnvelopeBytes + kPushBytes * record.pushes.size() +
                 kFunctionBytes * record.functions.size()) +
         Aligned(record.frame_bytes());
}

void UpdateBatch::Add(ShardRecord& record) {
  if (empty()) first_ = record.index;
  Message message = ToMessage(record);
  const std::string envelope = message.envelope.SerializeAsString();
  Buffer head = Buffer::Allocate(Aligned(kLengthsBytes + envelope.size()));
  const std::span<uint8_t> bytes(head.MutableData(), head.size());
  std::fill(bytes.begin(), bytes.end(), uint8_t{0});
  WriteFixed(static_cast<uint32_t>(envelope.size()), 0, bytes);
  WriteFixed(static_cast<uint32_t>(message.frames.empty() ? 0 : record.frame_bytes()), 4, bytes);
  std::memcpy(bytes.data() + kLengthsBytes, envelope.data(), envelope.size());
  const uint32_t checksum = Crc32c(head.bytes());
  Append(std::move(head), checksum);
  for (size_t i = 0; i < message.frames.size(); ++i) {
    Append(std::move(message.frames[i]), message.envelope.frame_checksums(static_cast<int>(i)));
  }
  Align();
}

void UpdateBatch::Append(Buffer part, uint32_t checksum) {
  checksum_ = empty() ? checksum : JoinCrc32c(checksum_, checksum, part.size());
  bytes_ += part.size();
  parts_.push_back(std::move(part));
}

void UpdateBatch::Align() {
  const uint64_t missing = Aligned(bytes_) - bytes_;
  if (missing == 0) return;
  const std::array<uint8_t, kAlignment> zeros = {};
  Buffer padding = Buffer::CopyOf(std::span<const uint8_t>(zeros).first(missing));
  const uint32_t checksum = Crc32c(padding.bytes());
  Append(std::move(padding), checksum);
}

std::vector<Buffer> UpdateBatch::Take() {
  bytes_ = 0;
  return std::exchange(parts_, {});
}

absl::Status ForEachUpdate(const Buffer& payload, const GradientShape& shape,
                           absl::FunctionRef<absl::Status(ShardRecord)> take) {
  uint64_t at = 0;
  while (at < payload.size()) {
    if (payload.size() - at < kAlignment) return NoBatch(at);
    const uint64_t envelope = ReadFixed<uint32_t>(payload.bytes(), at);
    const uint64_t frames = ReadFixed<uint32_t>(payload.bytes(), at + 4);
    const uint64_t head = Aligned(kLengthsBytes + envelope);
    if (payload.size() - at < head || payload.size() - at - head < Aligned(frames)) {
      return NoBatch(at);
    }
    Message message;
    if (!message.envelope.ParseFromArray(payload.data() + at + kLengthsBytes,
                                         static_cast<int>(envelope)) ||
        !message.envelope.has_replicate_request()) {
      return NoBatch(at);
    }
    const auto count = static_cast<uint64_t>(message.envelope.frame_checksums_size());
    if (count > kFramesMax || (count == 0 ? frames > 0 : frames % count > 0)) return NoBatch(at);
    for (uint64_t i = 0; i < count; ++i) {
      message.frames.push_back(payload.Slice(at + head + i * (frames / count), frames / count));
    }
    absl::StatusOr<ShardRecord> record = ShardRecordOf(message, shape);
    if (!record.ok()) return NoBatch(at);
    COVEY_RETURN_IF_ERROR(take(*std::move(record)));
    at += head + Aligned(frames);
  }
  return absl::OkStatus();
}

}  // namespace covey::server
