// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "proto/log.pb.h"

namespace covey::scheduler {

// The bytes of the scheduler's durable log. Pure. Records follow each other without a gap:
//
//   offset  bytes  field (little endian)
//   0       4      length of the record
//   4       4      CRC-32C of the record
//   8       length LogRecord, serialized
//
// A record is appended only when the one before it is durable, so only the last can be torn by a
// crash.

// A record with its length and checksum. Equal records give equal bytes.
std::string EncodeRecord(const proto::LogRecord& record);

struct RecoveredLog {
  // The newest state; nothing = the log holds no record.
  std::optional<proto::LogRecord> newest;
  // Bytes beyond this are a torn record, to be cut off before appending.
  size_t intact_bytes = 0;
};

// DATA_LOSS: a damaged record lies before intact ones, so the damage does not come from a crash; or
// the file is not a log. The message says where, and what to do.
absl::StatusOr<RecoveredLog> RecoverLog(std::span<const uint8_t> bytes);

}  // namespace covey::scheduler
