// SPDX-License-Identifier: Apache-2.0
#include "common/recording/loop_recording.h"

#include <limits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/tensor/wire_format.h"

namespace covey {
namespace {

absl::Status Refuse(uint64_t stream, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("an entry of stream ", stream, " ", why));
}

// The first and last number that a term may count to; beyond, arithmetic could overflow.
constexpr uint64_t kCountMax = uint64_t{1} << 62;

absl::Status CheckPayload(const AppliedRecord& record, const proto::Shard& shard) {
  uint64_t samples = 0;
  for (const AppliedPush& push : record.pushes) {
    if (push.group > std::numeric_limits<uint32_t>::max() || push.sequence > kPushSequenceMax) {
      return Refuse(record.stream, "has a push that no server takes");
    }
    if (push.samples > kShardSamplesMax - samples) return Refuse(record.stream, "has no samples");
    samples += push.samples;
  }
  if (record.is_update && (samples == 0) != !record.functions.empty()) {
    return Refuse(record.stream, "updates without samples, or by functions that have some");
  }
  if (record.initial_state && (record.initial_state->updates > kInitialUpdatesMax ||
                               record.initial_state->samples > kInitialSamplesMax)) {
    return Refuse(record.stream, "begins with a state that no server takes");
  }
  if (!record.payload) return absl::OkStatus();
  if (record.is_initial_values && record.payload->format != WireFormat::kFloat32) {
    return Refuse(record.stream, "has initial values in another format than float32");
  }
  const uint64_t array = EncodedBytes(record.payload->format, shard.element_count());
  const uint64_t bytes = record.payload->bytes;
  // Behind the values is any number of slots; the table's optimizer says how many.
  const bool fits = record.initial_state
                        ? bytes > 0 && bytes % array == 0 && bytes / array <= kFramesMax
                        : bytes == array;
  if (fits) return absl::OkStatus();
  return Refuse(record.stream, absl::StrCat("has a gradient of ", record.payload->bytes,
                                            " bytes for ", shard.element_count(), " elements"));
}

}  // namespace

absl::Status LoopRecording::Begin(const ShardBegin& begin) {
  HeadTerm term{.table = {},
                .chain_epoch = begin.chain_epoch,
                .index = begin.index,
                .version = begin.version,
                .updates = {}};
  if (begin.stream != terms_.size()) return Refuse(begin.stream, "begins out of order");
  if (!term.table.ParseFromString(begin.table) || term.table.shards_size() != 1) {
    return Refuse(begin.stream, "names no table with one shard");
  }
  const uint64_t elements = term.table.shards(0).element_count();
  if (elements == 0 || elements > kShardBytesMax / sizeof(float) ||
      term.table.shards(0).first_element() > kTableElementsMax - elements) {
    return Refuse(begin.stream, "names a shard that no server makes");
  }
  // A table may begin with a version, without records.
  if (begin.index > kCountMax || begin.version > kCountMax) {
    return Refuse(begin.stream, "begins at an impossible record");
  }
  terms_.push_back(std::move(term));
  return absl::OkStatus();
}

absl::Status LoopRecording::Apply(const AppliedRecord& record, RecordedUpdate place) {
  if (record.stream >= terms_.size()) return Refuse(record.stream, "has not begun");
  HeadTerm& term = terms_[record.stream];
  COVEY_RETURN_IF_ERROR(CheckPayload(record, term.table.shards(0)));
  place.index = term.index + term.updates.size() + 1;
  if (record.is_initial_values) {
    term.version = record.initial_state ? record.initial_state->updates : 0;
  }
  if (record.is_update) place.version = ++term.version;
  place.record = record;
  term.updates.push_back(std::move(place));
  return absl::OkStatus();
}

absl::Status LoopRecording::Note(const ContentDigest& digest) {
  if (digest.stream >= terms_.size() || terms_[digest.stream].updates.empty()) {
    return Refuse(digest.stream, "is a digest before its first record");
  }
  std::optional<uint64_t>& known = terms_[digest.stream].updates.back().digest;
  if (known && *known != digest.digest) return Refuse(digest.stream, "contradicts a digest");
  known = digest.digest;
  return absl::OkStatus();
}

absl::Status LoopRecording::Add(const RecordingBlock& block, size_t file) {
  uint64_t payload_offset = block.payload_offset;
  for (const RecordingEntry& entry : block.entries) {
    if (has_ended_) return absl::InvalidArgumentError("an entry follows the end of the recording");
    if (const auto* begin = std::get_if<ShardBegin>(&entry)) {
      COVEY_RETURN_IF_ERROR(Begin(*begin));
    } else if (const auto* record = std::get_if<AppliedRecord>(&entry)) {
      RecordedUpdate place;
      place.file = file;
      place.payload_offset = payload_offset;
      COVEY_RETURN_IF_ERROR(Apply(*record, std::move(place)));
      if (record->payload) payload_offset += record->payload->bytes;
    } else if (const auto* digest = std::get_if<ContentDigest>(&entry)) {
      COVEY_RETURN_IF_ERROR(Note(*digest));
    } else {
      has_ended_ = true;
    }
  }
  return absl::OkStatus();
}

}  // namespace covey
