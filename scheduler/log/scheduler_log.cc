// SPDX-License-Identifier: Apache-2.0
#include "scheduler/log/scheduler_log.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/planted_bug.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace covey::scheduler {
namespace {

constexpr size_t kPreludeBytes = 8;
// First byte of every record: the tag of `index`, which is never 0.
constexpr uint8_t kFirstByte = proto::LogRecord::kIndexFieldNumber << 3;

uint32_t ReadUint32(std::span<const uint8_t> bytes, size_t at) {
  return bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16 | uint32_t{bytes[at + 3]} << 24;
}

void AppendUint32(uint32_t value, std::string& out) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(value >> shift));
}

std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// The intact record that begins at `at`, without its prelude; empty when there is none.
std::span<const uint8_t> RecordAt(std::span<const uint8_t> bytes, size_t at) {
  if (bytes.size() - at <= kPreludeBytes) return {};
  const uint32_t length = ReadUint32(bytes, at);
  if (length == 0 || length > bytes.size() - at - kPreludeBytes) return {};
  const std::span<const uint8_t> record = bytes.subspan(at + kPreludeBytes, length);
  if (record[0] != kFirstByte || Crc32c(record) != ReadUint32(bytes, at + 4)) return {};
  return record;
}

}  // namespace

std::string EncodeRecord(const proto::LogRecord& record) {
  std::string body;
  {
    google::protobuf::io::StringOutputStream stream(&body);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);  // maps in the order of their keys
    record.SerializeToCodedStream(&coded);
  }
  std::string bytes;
  bytes.reserve(kPreludeBytes + body.size());
  AppendUint32(static_cast<uint32_t>(body.size()), bytes);
  AppendUint32(Crc32c(BytesOf(body)), bytes);
  bytes += body;
  return bytes;
}

absl::StatusOr<RecoveredLog> RecoverLog(std::span<const uint8_t> bytes) {
  RecoveredLog log;
  std::span<const uint8_t> newest;
  std::span<const uint8_t> last_but_one;
  while (true) {
    const std::span<const uint8_t> record = RecordAt(bytes, log.intact_bytes);
    if (record.empty()) break;
    last_but_one = std::exchange(newest, record);
    log.intact_bytes += kPreludeBytes + record.size();
  }
  for (size_t at = log.intact_bytes + 1; at < bytes.size(); ++at) {
    if (RecordAt(bytes, at).empty()) continue;
    return absl::DataLossError(absl::StrCat(
        "the record at byte ", log.intact_bytes, " of ", bytes.size(),
        " is damaged, yet an intact one follows at byte ", at,
        ": the file was changed from outside; restore it from a copy, or move it away to start "
        "the job from scratch"));
  }
  if (newest.empty() && bytes.size() > kPreludeBytes && bytes[kPreludeBytes] != kFirstByte) {
    return absl::DataLossError(
        "it is not a scheduler log, and would be overwritten: name another file");
  }
  if (newest.empty()) return log;
  if (Planted(PlantedBug::kEpochGoesBack) && !last_but_one.empty()) newest = last_but_one;
  proto::LogRecord record;
  if (!record.ParseFromArray(newest.data(), static_cast<int>(newest.size()))) {
    return absl::DataLossError(
        "the newest record is intact but not one of this version: start the version that "
        "wrote it, or move the file away to start the job from scratch");
  }
  log.newest = std::move(record);
  return log;
}

}  // namespace covey::scheduler
