// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/buffer.h"
#include "common/cluster/limits.h"
#include "common/recording/recording_entry.h"

namespace covey {

// The files of a recording. Each data loop of each server writes its own, one after the other: a
// new one begins when the last is large. Pure. A file is a header, then blocks without a gap; all
// numbers are little endian, and checksums are CRC-32C.
//
//   the file's header                        a block
//   offset  bytes  field                     offset  bytes  field
//   0       8      "COVEYREC"                0       4      length of the entries
//   8       2      major version, 1          4       4      checksum of the entries
//   10      2      minor version, 0          8       4      checksum of the 8 bytes above
//   12      4      number of the file        12      length entries (recording_entry.h)
//   16      8      job, its fingerprint      …              the gradients of these entries, in
//   24      8      node of the server                       their order, each as its entry says
//   32      4      its loop
//   36      4      checksum of the above
//
// The entries of a loop's files continue each other. A block is appended as a whole, so only the
// last one can be torn; a reader ends there. Versions: a reader refuses any other major version; a
// minor version changes nothing that a reader of an older one looks at.
inline constexpr size_t kRecordingHeaderBytes = 40;
inline constexpr size_t kBlockHeadBytes = 12;
// Limits. A reader refuses a block with more bytes of entries, and a server begins a new file where
// the last one has passed its size: a file is read as a whole.
inline constexpr size_t kRecordingEntriesBytesMax = 4 << 20;
inline constexpr uint64_t kRecordingFileBytes = 64 << 20;
static_assert(kRecordingFileBytes + kRecordingEntriesBytesMax + 2 * kFrameBytesMax <=
              kStoreReadMax);
inline constexpr uint16_t kRecordingMajor = 1;
inline constexpr uint16_t kRecordingMinor = 0;

// Which of the files it is.
struct RecordingFileId {
  uint64_t node = 0;
  uint32_t loop = 0;
  // Of the loop's files, from 0.
  uint32_t number = 0;
  friend auto operator<=>(const RecordingFileId&, const RecordingFileId&) = default;
};

// "recording-2-1-00000.cvr".
std::string RecordingFileName(const RecordingFileId& id);
// Nothing for any other name.
std::optional<RecordingFileId> ParseRecordingFileName(absl::string_view name);

struct RecordingHeader {
  // As in proto: Header.job.
  uint64_t job = 0;
  RecordingFileId file;
  friend bool operator==(const RecordingHeader&, const RecordingHeader&) = default;
};

std::array<uint8_t, kRecordingHeaderBytes> EncodeRecordingHeader(const RecordingHeader& header);
// DATA_LOSS: the bytes, of which the header is the first part, are damaged or something else;
// FAILED_PRECONDITION: another major version.
absl::StatusOr<RecordingHeader> DecodeRecordingHeader(std::span<const uint8_t> file);

// A block with these entries; the gradients follow it. Precondition: entries are at most
// kRecordingEntriesBytesMax.
Buffer EncodeBlock(std::span<const uint8_t> entries);

// What a file holds, up to the first block that is torn.
struct RecordingBlock {
  std::vector<RecordingEntry> entries;
  // Where in the file the block and its first gradient begin.
  uint64_t offset = 0;
  uint64_t payload_offset = 0;
};
struct RecordingContent {
  RecordingHeader header;
  std::vector<RecordingBlock> blocks;
  // The bytes of intact blocks, and of the header. Less than the file's: its end is torn.
  uint64_t intact_bytes = 0;
};
// DATA_LOSS: a damaged block, other than a torn one at the end; names its offset. Others as
// DecodeRecordingHeader. Does not look at the bytes of gradients.
absl::StatusOr<RecordingContent> DecodeRecordingFile(std::span<const uint8_t> file);

}  // namespace covey
