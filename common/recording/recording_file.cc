// SPDX-License-Identifier: Apache-2.0
#include "common/recording/recording_file.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/fixed_bytes.h"
#include "common/base/status_macros.h"

namespace covey {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr absl::string_view kMagic = "COVEYREC";
constexpr absl::string_view kPrefix = "recording-";
constexpr absl::string_view kSuffix = ".cvr";
constexpr size_t kHeaderChecksumAt = kRecordingHeaderBytes - sizeof(uint32_t);
constexpr size_t kHeadChecksumAt = kBlockHeadBytes - sizeof(uint32_t);

// The bytes of the gradients behind a block; nothing when they do not fit into `room`.
std::optional<uint64_t> PayloadBytes(const std::vector<RecordingEntry>& entries, uint64_t room) {
  uint64_t bytes = 0;
  for (const RecordingEntry& entry : entries) {
    const auto* record = std::get_if<AppliedRecord>(&entry);
    if (record == nullptr || !record->payload) continue;
    if (record->payload->bytes > room - bytes) return std::nullopt;
    bytes += record->payload->bytes;
  }
  return bytes;
}

// The next block. Nothing: it is torn.
absl::StatusOr<std::optional<RecordingBlock>> DecodeBlock(Bytes rest) {
  if (rest.size() < kBlockHeadBytes) return std::nullopt;
  const uint32_t length = ReadFixed<uint32_t>(rest, 0);
  if (Crc32c(rest.first(kHeadChecksumAt)) != ReadFixed<uint32_t>(rest, kHeadChecksumAt)) {
    // A crash of the machine may leave zeros that were never written.
    if (std::all_of(rest.begin(), rest.end(), [](uint8_t byte) { return byte == 0; })) {
      return std::nullopt;
    }
    return absl::DataLossError("the head of a block differs from its checksum");
  }
  if (length == 0 || length > kRecordingEntriesBytesMax) {
    return absl::DataLossError(absl::StrCat("a block has ", length, " bytes of entries"));
  }
  if (rest.size() - kBlockHeadBytes < length) return std::nullopt;
  const Bytes encoded = rest.subspan(kBlockHeadBytes, length);
  if (Crc32c(encoded) != ReadFixed<uint32_t>(rest, sizeof(uint32_t))) {
    return absl::DataLossError("the entries of a block differ from their checksum");
  }
  RecordingBlock block;
  COVEY_ASSIGN_OR_RETURN(block.entries, DecodeEntries(encoded));
  block.payload_offset = kBlockHeadBytes + length;
  if (!PayloadBytes(block.entries, rest.size() - block.payload_offset)) return std::nullopt;
  return block;
}

}  // namespace

std::string RecordingFileName(const RecordingFileId& id) {
  return absl::StrCat(kPrefix, id.node, "-", id.loop, "-", absl::StrFormat("%05d", id.number),
                      kSuffix);
}

std::optional<RecordingFileId> ParseRecordingFileName(absl::string_view name) {
  if (name.size() <= kPrefix.size() + kSuffix.size()) return std::nullopt;
  const std::vector<absl::string_view> parts = absl::StrSplit(
      name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()), '-');
  RecordingFileId id;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &id.node) ||
      !absl::SimpleAtoi(parts[1], &id.loop) || !absl::SimpleAtoi(parts[2], &id.number) ||
      RecordingFileName(id) != name) {
    return std::nullopt;
  }
  return id;
}

std::array<uint8_t, kRecordingHeaderBytes> EncodeRecordingHeader(const RecordingHeader& header) {
  std::array<uint8_t, kRecordingHeaderBytes> bytes = {};
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  WriteFixed(kRecordingMajor, 8, bytes);
  WriteFixed(kRecordingMinor, 10, bytes);
  WriteFixed(header.file.number, 12, bytes);
  WriteFixed(header.job, 16, bytes);
  WriteFixed(header.file.node, 24, bytes);
  WriteFixed(header.file.loop, 32, bytes);
  WriteFixed(Crc32c(Bytes(bytes).first(kHeaderChecksumAt)), kHeaderChecksumAt, bytes);
  return bytes;
}

absl::StatusOr<RecordingHeader> DecodeRecordingHeader(Bytes file) {
  if (file.size() < kRecordingHeaderBytes ||
      !std::equal(kMagic.begin(), kMagic.end(), file.begin())) {
    return absl::DataLossError("offset 0: no recording begins here");
  }
  const Bytes header = file.first(kRecordingHeaderBytes);
  if (Crc32c(header.first(kHeaderChecksumAt)) != ReadFixed<uint32_t>(header, kHeaderChecksumAt)) {
    return absl::DataLossError("offset 0: the header differs from its checksum");
  }
  if (const auto major = ReadFixed<uint16_t>(header, 8); major != kRecordingMajor) {
    return absl::FailedPreconditionError(absl::StrCat("the recording has format ", major,
                                                      ", this program reads ", kRecordingMajor,
                                                      "; use the version of Covey that wrote it"));
  }
  return RecordingHeader{.job = ReadFixed<uint64_t>(header, 16),
                         .file = {.node = ReadFixed<uint64_t>(header, 24),
                                  .loop = ReadFixed<uint32_t>(header, 32),
                                  .number = ReadFixed<uint32_t>(header, 12)}};
}

Buffer EncodeBlock(Bytes entries) {
  COVEY_CHECK(entries.size() <= kRecordingEntriesBytesMax);
  Buffer block = Buffer::Allocate(kBlockHeadBytes + entries.size());
  const std::span<uint8_t> bytes(block.MutableData(), block.size());
  WriteFixed(static_cast<uint32_t>(entries.size()), 0, bytes);
  WriteFixed(Crc32c(entries), sizeof(uint32_t), bytes);
  WriteFixed(Crc32c(Bytes(bytes).first(kHeadChecksumAt)), kHeadChecksumAt, bytes);
  std::copy(entries.begin(), entries.end(), bytes.begin() + kBlockHeadBytes);
  return block;
}

absl::StatusOr<RecordingContent> DecodeRecordingFile(Bytes file) {
  RecordingContent content;
  COVEY_ASSIGN_OR_RETURN(content.header, DecodeRecordingHeader(file));
  content.intact_bytes = kRecordingHeaderBytes;
  while (content.intact_bytes < file.size()) {
    const Bytes rest = file.subspan(content.intact_bytes);
    absl::StatusOr<std::optional<RecordingBlock>> block = DecodeBlock(rest);
    if (!block.ok()) {
      return absl::DataLossError(
          absl::StrCat("offset ", content.intact_bytes, ": ", block.status().message()));
    }
    if (!*block) break;
    const uint64_t payloads = *PayloadBytes((*block)->entries, rest.size());
    (*block)->offset = content.intact_bytes;
    const uint64_t block_bytes = (*block)->payload_offset + payloads;
    (*block)->payload_offset += content.intact_bytes;
    content.intact_bytes += block_bytes;
    content.blocks.push_back(**std::move(block));
  }
  return content;
}

}  // namespace covey
