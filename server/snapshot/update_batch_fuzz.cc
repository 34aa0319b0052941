// SPDX-License-Identifier: Apache-2.0
// Logs of updates in snapshots, whose checksum was right.
#include "server/snapshot/update_batch.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {
namespace {

constexpr size_t kElements = 5;

server::EncodedGradient ArrayOf(float value) {
  const std::vector<float> values(kElements, value);
  return {.frame = Buffer::CopyOf({reinterpret_cast<const uint8_t*>(values.data()), 4 * kElements}),
          .checksum = {}};
}

// The payload of a piece with these records.
std::string PayloadOf(std::vector<server::ShardRecord> records) {
  server::UpdateBatch batch;
  for (server::ShardRecord& record : records) batch.Add(record);
  std::string payload;
  for (const Buffer& part : batch.Take()) absl::StrAppend(&payload, FuzzText(part.bytes()));
  return payload;
}

server::ShardRecord Update(uint64_t index) {
  server::ShardRecord record;
  record.index = index;
  record.version = Version(index);
  record.samples = 2;
  record.gradient = ArrayOf(4);
  return record;
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  return {
      PayloadOf({Update(8)}),
      PayloadOf({Update(8), server::CutRecord(4, Epoch(9)), Update(10)}),
      PayloadOf({server::InitialValuesRecord(
          ArrayOf(1), server::InitialState{.slots = {ArrayOf(2)}, .updates = 7, .samples = 70})}),
  };
}

bool FuzzOne(std::span<const uint8_t> input) {
  std::vector<server::ShardRecord> records;
  const absl::Status status = server::ForEachUpdate(Buffer::CopyOf(input), {.elements = kElements},
                                                    [&records](server::ShardRecord record) {
                                                      records.push_back(std::move(record));
                                                      return absl::OkStatus();
                                                    });
  if (!status.ok()) {
    COVEY_CHECK(absl::IsDataLoss(status));
    return false;
  }
  // Written and read again, they are the same.
  const std::string once = PayloadOf(records);
  std::vector<server::ShardRecord> reread;
  const absl::Status again = server::ForEachUpdate(
      Buffer::CopyOf({reinterpret_cast<const uint8_t*>(once.data()), once.size()}),
      {.elements = kElements}, [&reread](server::ShardRecord record) {
        reread.push_back(std::move(record));
        return absl::OkStatus();
      });
  COVEY_CHECK(again.ok() && reread.size() == records.size());
  COVEY_CHECK(PayloadOf(reread) == once);
  return true;
}

}  // namespace covey
