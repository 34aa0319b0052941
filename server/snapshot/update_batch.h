// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/base/buffer.h"
#include "server/replication/shard_record.h"

namespace covey::server {

// Records of a shard that follow each other, as the payload of a snapshot's piece of kind UPDATES.
// For each record:
//
//   offset  bytes   field (little endian)
//   0       4       E, bytes of the envelope
//   4       4       F, bytes of the frames; 0 = there is none
//   8       E       Envelope with a ReplicateRequest, serialized, and the checksums of the frames
//   ...             zeros up to a multiple of 64
//   ...     F       the frames, one after the other; all are equally long
//   ...             zeros up to a multiple of 64
//
// A value, filled record by record. Frames are not copied.
class UpdateBatch {
 public:
  // Bytes that the record adds.
  static uint64_t BytesOf(const ShardRecord& record);

  // Computes the checksum of the record's frame if it has none.
  void Add(ShardRecord& record);

  bool empty() const { return bytes_ == 0; }
  // Index of the first record. Precondition: there is one.
  uint64_t first() const { return first_; }
  uint64_t bytes() const { return bytes_; }
  // CRC-32C of all bytes.
  uint32_t checksum() const { return checksum_; }
  // The bytes; the batch is empty afterwards.
  std::vector<Buffer> Take();

 private:
  void Append(Buffer part, uint32_t checksum);
  // Zeros up to a multiple of 64.
  void Align();

  uint64_t first_ = 0;
  uint64_t bytes_ = 0;
  uint32_t checksum_ = 0;
  std::vector<Buffer> parts_;
};

// Gives the records of a payload in their order; their frames share its memory. Errors: DATA_LOSS:
// it is not what UpdateBatch has made of records of a shard of this size; others as `take`, which
// ends it. Precondition: the payload was checked against its checksum.
absl::Status ForEachUpdate(const Buffer& payload, const GradientShape& shape,
                           absl::FunctionRef<absl::Status(ShardRecord)> take);

}  // namespace covey::server
