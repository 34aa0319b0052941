// SPDX-License-Identifier: Apache-2.0
#include "server/replay/replay.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/cluster/ids.h"
#include "common/tensor/codec.h"
#include "server/replication/shard_content.h"
#include "server/replication/shard_record.h"
#include "server/table/host_memory.h"
#include "server/table/spare_buffers.h"
#include "server/table/table_spec.h"

namespace covey::server {
namespace {

// Time decides nothing in a shard's content.
constexpr absl::Time kAnyTime = absl::UnixEpoch();
constexpr size_t kSpareBytesMax = 16 << 20;

RecordedPush FromEntry(const AppliedPush& push) {
  const bool is_of_group = push.producer_kind == AppliedPush::Producer::kGroup;
  return {
      .key = {.producer = {.kind = is_of_group ? Producer::Kind::kGroup : Producer::Kind::kClient,
                           .id = push.producer},
              .incarnation = push.incarnation,
              .sequence = push.sequence},
      .group = GroupId(static_cast<uint32_t>(push.group)),
      .step = Step(push.step),
      .discarded = push.discarded,
      .samples = push.samples,
      .base_version = Version(push.base_version)};
}

ShardRecord FromEntry(const RecordedUpdate& update) {
  ShardRecord record;
  record.index = update.index;
  record.version = Version(update.version);
  for (const AppliedPush& push : update.record.pushes) {
    record.pushes.push_back(FromEntry(push));
    if (update.record.is_update) record.samples += push.samples;
  }
  record.adjustment = {.rate_factor = update.record.rate_factor,
                       .momentum = update.record.momentum};
  record.cut = update.record.cut;
  return record;
}

// The shard's content, and the gradients that change it.
class Replayer {
 public:
  explicit Replayer(const Recording& recording) : recording_(recording) {}

  absl::Status Open(const DenseShardConfig& config) {
    COVEY_ASSIGN_OR_RETURN(content_, ShardContent::Create(kAnyTime, config, memory_));
    return absl::OkStatus();
  }

  absl::Status Apply(const RecordedUpdate& update) {
    if (!update.record.is_update) return content_->Apply(kAnyTime, FromEntry(update), {});
    COVEY_ASSIGN_OR_RETURN(Buffer gradient, ReadGradient(update));
    const absl::Status status = content_->Apply(kAnyTime, FromEntry(update), gradient.As<float>());
    spares_.Retire(std::move(gradient));
    return status;
  }

  const ShardContent& content() const { return *content_; }

 private:
  // As float32.
  absl::StatusOr<Buffer> ReadGradient(const RecordedUpdate& update) {
    COVEY_ASSIGN_OR_RETURN(Buffer encoded, recording_.ReadGradient(update));
    const WireFormat format = update.record.payload->format;
    if (format == WireFormat::kFloat32) return encoded;
    Buffer gradient = spares_.Take(content_->value_bytes());
    Decode(format, encoded.bytes(), gradient.MutableAs<float>());
    return gradient;
  }

  const Recording& recording_;
  SpareBuffers spares_{kSpareBytesMax};
  HostMemory memory_{spares_};
  std::unique_ptr<ShardContent> content_;
};

}  // namespace

absl::StatusOr<ReplayedShard> ReplayShard(const Recording& recording, const ShardHistory& history,
                                          absl::FunctionRef<absl::Status()> progress) {
  if (history.updates.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(history.name, ": its first records were not recorded"));
  }
  const absl::StatusOr<TableRules> rules = RulesOf(history.table, history.shard());
  if (!rules.ok()) return Annotate(history.name, rules.status());
  Replayer replayer(recording);
  if (const absl::Status opened = replayer.Open(rules->shard); !opened.ok()) {
    return Annotate(history.name, opened);
  }
  ReplayedShard replayed;
  uint64_t equal = 0;
  for (const RecordedUpdate& update : history.updates) {
    if (const absl::Status applied = replayer.Apply(update); !applied.ok()) {
      return Annotate(absl::StrCat(history.name, " record ", update.index), applied);
    }
    ++replayed.records;
    replayed.pushes += update.record.pushes.size();
    if (update.digest) {
      if (*update.digest != replayer.content().Digest()) {
        replayed.difference = {.after = equal, .at = update.index};
        break;
      }
      equal = update.index;
      ++replayed.digests;
    }
    COVEY_RETURN_IF_ERROR(progress());
  }
  replayed.values = replayer.content().Values();
  return replayed;
}

}  // namespace covey::server
