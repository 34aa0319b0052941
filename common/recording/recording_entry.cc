// SPDX-License-Identifier: Apache-2.0
#include "common/recording/recording_entry.h"

#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/fixed_bytes.h"
#include "common/cluster/limits.h"

namespace covey {
namespace {

enum Kind : uint8_t {
  kShardBegin = 1,
  kAppliedRecord = 2,
  kContentDigest = 3,
  kRecordingEnd = 4,
  kAppliedFunctions = 5,
};

enum RecordFlag : uint8_t {
  kIsUpdate = 1,
  kHasRateFactor = 2,
  kHasMomentum = 4,
  kIsCut = 8,
  kHasPayload = 16,
  kHasAsynchrony = 32,
  kIsInitialValues = 64,
  kHasInitialState = 128,
};

enum PushFlag : uint8_t {
  kIsOfGroup = 1,
  kIsDiscarded = 2,
  kIsGroupsStep = 4,
  kHasNorm = 8,
  kIsBeyondGate = 16,
  kPushFlags = 31
};

constexpr uint8_t kFormatMax = static_cast<uint8_t>(WireFormat::kTopBlock);
// Of a push: flags, producer, incarnation, sequence, samples, base version.
constexpr size_t kPushBytesMin = 6;
constexpr uint64_t kNumberMax = std::numeric_limits<uint32_t>::max();
constexpr uint8_t kFunctionMax = static_cast<uint8_t>(VectorFunction::Kind::kAxpy);

class EntryWriter {
 public:
  explicit EntryWriter(std::vector<uint8_t>& bytes) : bytes_(bytes) {}

  void Byte(uint8_t value) { bytes_.push_back(value); }
  void Number(uint64_t value) {
    for (; value >= 0x80; value >>= 7) Byte(static_cast<uint8_t>(value | 0x80));
    Byte(static_cast<uint8_t>(value));
  }
  template <typename T>
  void Fixed(T value) {
    bytes_.resize(bytes_.size() + sizeof(T));
    WriteFixed(value, bytes_.size() - sizeof(T), bytes_);
  }

  void operator()(const ShardBegin& begin) {
    Byte(kShardBegin);
    Number(begin.stream);
    Number(begin.chain_epoch);
    Number(begin.index);
    Number(begin.version);
    Number(begin.table.size());
    bytes_.insert(bytes_.end(), begin.table.begin(), begin.table.end());
  }

  void operator()(const AppliedRecord& record) {
    Byte(record.functions.empty() ? kAppliedRecord : kAppliedFunctions);
    Number(record.stream);
    Byte(static_cast<uint8_t>((record.is_update ? kIsUpdate : 0) |
                              (record.rate_factor != 1 ? kHasRateFactor : 0) |
                              (record.momentum ? kHasMomentum : 0) |
                              (record.cut != 0 ? kIsCut : 0) | (record.payload ? kHasPayload : 0) |
                              (record.asynchrony != RecordedAsynchrony() ? kHasAsynchrony : 0) |
                              (record.is_initial_values ? kIsInitialValues : 0) |
                              (record.initial_state ? kHasInitialState : 0)));
    Number(record.pushes.size());
    for (const AppliedPush& push : record.pushes) Push(push);
    if (record.rate_factor != 1) Fixed(std::bit_cast<uint64_t>(record.rate_factor));
    if (record.momentum) Fixed(std::bit_cast<uint64_t>(*record.momentum));
    if (record.cut != 0) Number(record.cut);
    if (record.payload) {
      Byte(static_cast<uint8_t>(record.payload->format));
      Number(record.payload->bytes);
      Fixed(record.payload->checksum);
    }
    if (record.asynchrony != RecordedAsynchrony()) {
      Fixed(std::bit_cast<uint64_t>(record.asynchrony.staleness));
      Number(record.asynchrony.pushes);
      Number(record.asynchrony.updates_above_target);
    }
    if (record.initial_state) {
      Number(record.initial_state->updates);
      Number(record.initial_state->samples);
    }
    if (record.functions.empty()) return;
    Number(record.functions.size());
    for (const VectorFunction& function : record.functions) {
      Byte(static_cast<uint8_t>(function.kind));
      Number(function.target);
      Number(function.source);
      Fixed(std::bit_cast<uint64_t>(function.scalar));
    }
  }

  void operator()(const ContentDigest& digest) {
    Byte(kContentDigest);
    Number(digest.stream);
    Fixed(digest.digest);
  }

  void operator()(const RecordingEnd&) { Byte(kRecordingEnd); }

 private:
  void Push(const AppliedPush& push) {
    const bool is_of_group = push.producer_kind == AppliedPush::Producer::kGroup;
    const bool is_groups_step =
        is_of_group && push.group == push.producer && push.step == push.sequence;
    Byte(static_cast<uint8_t>((is_of_group ? kIsOfGroup : 0) | (push.discarded ? kIsDiscarded : 0) |
                              (is_groups_step ? kIsGroupsStep : 0) |
                              (push.norm != 0 ? kHasNorm : 0) |
                              (push.is_beyond_gate ? kIsBeyondGate : 0)));
    Number(push.producer);
    Number(push.incarnation);
    Number(push.sequence);
    if (!is_groups_step) {
      Number(push.group);
      Number(push.step);
    }
    Number(push.samples);
    Number(push.base_version);
    if (push.norm != 0) Fixed(std::bit_cast<uint32_t>(push.norm));
  }

  std::vector<uint8_t>& bytes_;
};

// Reads numbers one after the other. After the first error all are 0, and the error stays.
class EntryParser {
 public:
  explicit EntryParser(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool at_end() const { return at_ == bytes_.size(); }
  const absl::Status& status() const { return status_; }

  RecordingEntry Next() {
    begin_ = at_;
    switch (const uint8_t kind = Byte()) {
      case kShardBegin:
        return Begin();
      case kAppliedRecord:
        return Record();
      case kAppliedFunctions:
        return WithFunctions(Record());
      case kContentDigest:
        return ContentDigest{.stream = Number(), .digest = Fixed<uint64_t>()};
      case kRecordingEnd:
        return RecordingEnd();
      default:
        Fail(absl::StrCat("of kind ", kind, ", which this version does not know"));
        return RecordingEnd();
    }
  }

 private:
  void Fail(absl::string_view why) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(absl::StrCat("the entry at byte ", begin_, " is ", why));
    at_ = bytes_.size();
  }

  std::span<const uint8_t> Take(uint64_t size) {
    if (size > bytes_.size() - at_) {
      Fail("longer than its block");
      return {};
    }
    at_ += size;
    return bytes_.subspan(at_ - size, size);
  }

  uint8_t Byte() {
    const std::span<const uint8_t> byte = Take(1);
    return byte.empty() ? 0 : byte[0];
  }

  uint64_t Number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = Byte();
      if (shift == 63 && byte > 1) break;
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte >= 0x80) continue;
      if (byte == 0 && shift > 0) break;
      return value;
    }
    Fail("damaged: a number is not in its shortest form, or has more than 64 bits");
    return 0;
  }

  template <typename T>
  T Fixed() {
    const std::span<const uint8_t> bytes = Take(sizeof(T));
    return bytes.empty() ? T() : ReadFixed<T>(bytes, 0);
  }

  ShardBegin Begin() {
    ShardBegin begin{.stream = Number(),
                     .chain_epoch = Number(),
                     .index = Number(),
                     .version = Number(),
                     .table = {}};
    const std::span<const uint8_t> table = Take(Number());
    begin.table.assign(table.begin(), table.end());
    return begin;
  }

  AppliedRecord Record() {
    AppliedRecord record;
    record.stream = Number();
    const uint8_t flags = Byte();
    record.is_update = (flags & kIsUpdate) != 0;
    record.is_initial_values = (flags & kIsInitialValues) != 0;
    const uint64_t pushes = Number();
    if (pushes > (bytes_.size() - at_) / kPushBytesMin) Fail("longer than its block");
    if (!status_.ok()) return record;
    record.pushes.reserve(pushes);
    for (uint64_t i = 0; i < pushes && status_.ok(); ++i) record.pushes.push_back(Push());
    if ((flags & kHasRateFactor) != 0) {
      record.rate_factor = std::bit_cast<double>(Fixed<uint64_t>());
      if (!std::isfinite(record.rate_factor) || record.rate_factor == 1) {
        Fail("damaged: its rate factor is not one that is written");
      }
    }
    if ((flags & kHasMomentum) != 0) {
      record.momentum = std::bit_cast<double>(Fixed<uint64_t>());
      if (!(*record.momentum >= 0 && *record.momentum < 1)) {
        Fail("damaged: its momentum is not in [0, 1)");
      }
    }
    if ((flags & kIsCut) != 0) {
      record.cut = Number();
      if (record.cut == 0 || record.is_update || pushes > 0) {
        Fail("damaged: a cut has a number, and neither pushes nor an update");
      }
    }
    if ((flags & kHasPayload) != 0) record.payload = Payload();
    if (record.is_initial_values && (record.is_update || record.cut != 0 || pushes > 0)) {
      Fail("damaged: initial values come without pushes, an update or a cut");
    }
    if (record.payload && !record.is_update && !record.is_initial_values) {
      Fail("damaged: a gradient belongs to an update");
    }
    if ((flags & kHasAsynchrony) != 0) {
      record.asynchrony = Asynchrony();
      if (!record.is_update) Fail("damaged: an asynchrony belongs to an update");
    }
    if ((flags & kHasInitialState) != 0) {
      record.initial_state = RecordedState{.updates = Number(), .samples = Number()};
      if (!record.is_initial_values) Fail("damaged: a state comes with initial values");
    }
    return record;
  }

  AppliedRecord WithFunctions(AppliedRecord record) {
    const uint64_t count = Number();
    if (count == 0 || count > kVectorFunctionsMax || !record.is_update || record.payload) {
      Fail("damaged: functions are those of an update, without a gradient");
    }
    for (uint64_t i = 0; i < count && status_.ok(); ++i) record.functions.push_back(Function());
    return record;
  }

  VectorFunction Function() {
    const uint8_t kind = Byte();
    const uint64_t target = Number();
    const uint64_t source = Number();
    const double scalar = std::bit_cast<double>(Fixed<uint64_t>());
    if (kind > kFunctionMax || target > kNumberMax || source > kNumberMax ||
        !std::isfinite(scalar)) {
      Fail("damaged: a function is not one that is written");
    }
    return {.kind = static_cast<VectorFunction::Kind>(kind),
            .target = static_cast<uint32_t>(target),
            .source = static_cast<uint32_t>(source),
            .scalar = scalar};
  }

  RecordedPayload Payload() {
    const uint8_t format = Byte();
    if (format > kFormatMax) Fail("damaged: its gradient has an unknown format");
    return {.format = static_cast<WireFormat>(format),
            .bytes = Number(),
            .checksum = Fixed<uint32_t>()};
  }

  RecordedAsynchrony Asynchrony() {
    const RecordedAsynchrony asynchrony = {.staleness = std::bit_cast<double>(Fixed<uint64_t>()),
                                           .pushes = Number(),
                                           .updates_above_target = Number()};
    const bool is_written = std::isfinite(asynchrony.staleness) && asynchrony.staleness >= 0 &&
                            asynchrony != RecordedAsynchrony();
    if (!is_written) Fail("damaged: its asynchrony is not one that is written");
    return asynchrony;
  }

  AppliedPush Push() {
    const uint8_t flags = Byte();
    const bool is_of_group = (flags & kIsOfGroup) != 0;
    const bool is_groups_step = (flags & kIsGroupsStep) != 0;
    if ((flags & ~kPushFlags) != 0 || (is_groups_step && !is_of_group)) {
      Fail("damaged: a push has flags that are not written");
    }
    AppliedPush push;
    push.producer_kind =
        is_of_group ? AppliedPush::Producer::kGroup : AppliedPush::Producer::kClient;
    push.discarded = (flags & kIsDiscarded) != 0;
    push.producer = Number();
    push.incarnation = Number();
    push.sequence = Number();
    push.group = is_groups_step ? push.producer : Number();
    push.step = is_groups_step ? push.sequence : Number();
    if (is_of_group && !is_groups_step && push.group == push.producer &&
        push.step == push.sequence) {
      Fail("damaged: a push names its group and step twice");
    }
    push.samples = Number();
    push.base_version = Number();
    if ((flags & kHasNorm) != 0) {
      push.norm = std::bit_cast<float>(Fixed<uint32_t>());
      push.is_beyond_gate = (flags & kIsBeyondGate) != 0;
      if (!std::isfinite(push.norm) || push.norm <= 0) Fail("damaged: a push has no such norm");
    } else if ((flags & kIsBeyondGate) != 0) {
      Fail("damaged: a push without a norm is beyond a gate");
    }
    return push;
  }

  const std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  size_t begin_ = 0;  // of the entry
  absl::Status status_;
};

}  // namespace

void EncodeEntry(const RecordingEntry& entry, std::vector<uint8_t>& bytes) {
  std::visit(EntryWriter(bytes), entry);
}

absl::StatusOr<std::vector<RecordingEntry>> DecodeEntries(std::span<const uint8_t> bytes) {
  std::vector<RecordingEntry> entries;
  EntryParser parser(bytes);
  while (!parser.at_end()) {
    entries.push_back(parser.Next());
    if (!parser.status().ok()) return parser.status();
  }
  return entries;
}

}  // namespace covey
