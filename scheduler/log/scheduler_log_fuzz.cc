// SPDX-License-Identifier: Apache-2.0
// The scheduler's log, in a file or in etcd: a record, in front of which right lengths and
// checksums are made, twice; then any bytes, such as a torn record. Or, after a first part that is
// empty, a whole file.
#include "scheduler/log/scheduler_log.h"

#include <string>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/fixed_bytes.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {
namespace {

constexpr size_t kPreludeBytes = 8;

proto::LogRecord SmallRecord() {
  proto::LogRecord record;
  record.set_index(9);
  record.mutable_view()->set_epoch(3);
  record.mutable_view()->add_nodes()->set_id(5);
  return record;
}

void AppendRecord(std::span<const uint8_t> record, std::vector<uint8_t>& file) {
  const size_t begin = file.size();
  file.resize(begin + kPreludeBytes);
  WriteFixed(static_cast<uint32_t>(record.size()), begin, file);
  WriteFixed(Crc32c(record), begin + 4, file);
  file.insert(file.end(), record.begin(), record.end());
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  const std::string whole = scheduler::EncodeRecord(SmallRecord());
  const std::string record = whole.substr(kPreludeBytes);
  return {JoinFuzzParts({record}), JoinFuzzParts({record}) + whole.substr(0, whole.size() - 3),
          JoinFuzzParts({""}) + whole + whole};
}

bool FuzzOne(std::span<const uint8_t> input) {
  std::vector<uint8_t> file;
  const std::span<const uint8_t> record = TakeFuzzPart(input);
  if (!record.empty()) {
    AppendRecord(record, file);
    AppendRecord(record, file);
  }
  file.insert(file.end(), input.begin(), input.end());

  const auto log = scheduler::RecoverLog(file);
  if (!log.ok()) return false;
  COVEY_CHECK(log->intact_bytes <= file.size());
  COVEY_CHECK(log->newest.has_value() == (log->intact_bytes > 0));
  // A log that is cut off after the intact records is the same log.
  const auto cut = scheduler::RecoverLog(std::span(file).first(log->intact_bytes));
  COVEY_CHECK(cut.ok() && cut->intact_bytes == log->intact_bytes);
  if (!log->newest) return true;
  COVEY_CHECK(cut->newest->SerializeAsString() == log->newest->SerializeAsString());
  // And so is one that goes on with that record, if it has the index that every record has.
  if (log->newest->index() == 0) return true;
  const std::string next = scheduler::EncodeRecord(*log->newest);
  file.resize(log->intact_bytes);
  file.insert(file.end(), next.begin(), next.end());
  const auto longer = scheduler::RecoverLog(file);
  COVEY_CHECK(longer.ok() && longer->intact_bytes == file.size());
  return true;
}

}  // namespace covey
