// SPDX-License-Identifier: Apache-2.0
#include "server/replay/replay.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/annotate.h"
#include "common/base/buffer_pool.h"
#include "common/base/status_macros.h"
#include "common/cluster/ids.h"
#include "common/cluster/live_group.h"
#include "common/contract/update_gate.h"
#include "common/tensor/codec.h"
#include "server/replay/stored_content.h"
#include "server/replication/load_source.h"
#include "server/replication/shard_content.h"
#include "server/replication/shard_record.h"
#include "server/replication/table_rules.h"
#include "server/shard/gradient_aggregator.h"
#include "server/table/host_memory.h"

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
      .norm = push.norm,
      .is_beyond_gate = push.is_beyond_gate,
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
  record.asynchrony = {.staleness = update.record.asynchrony.staleness,
                       .pushes = update.record.asynchrony.pushes,
                       .updates_above_target = update.record.asynchrony.updates_above_target};
  record.initial_values = update.record.is_initial_values;
  if (update.record.initial_state) {
    record.initial_state = InitialState{.slots = {},
                                        .updates = update.record.initial_state->updates,
                                        .samples = update.record.initial_state->samples};
  }
  record.cut = update.record.cut;
  record.functions = update.record.functions;
  return record;
}

// The shard's content, and the gradients that change it.
class Replayer {
 public:
  Replayer(const Recording& recording, const ShardHistory& history,
           absl::FunctionRef<absl::Status()> progress)
      : recording_(recording), history_(history), progress_(progress) {}

  absl::Status Open(const WhatIf& what_if, Folder* store) {
    COVEY_ASSIGN_OR_RETURN(TableRules rules, RulesOf(history_.table, history_.shard()));
    auto* const shard = std::get_if<DenseShardConfig>(&rules.shard);
    if (shard == nullptr) {
      return absl::UnimplementedError("it is of a sparse table, which recordings do not hold");
    }
    if (what_if.optimizer) shard->optimizer = *what_if.optimizer;
    has_other_optimizer_ = what_if.optimizer.has_value();
    if (what_if.base_rate) shard->learning_rate.base_rate = *what_if.base_rate;
    COVEY_ASSIGN_OR_RETURN(content_, ShardContent::Create(kAnyTime, rules.shard, memory_));
    if (const auto source = LoadSourceOf(history_.table, history_.shard())) {
      COVEY_RETURN_IF_ERROR(CheckSource(*source, what_if, store));
      COVEY_ASSIGN_OR_RETURN(content_, LoadContent(*store, *source, std::move(content_)));
    }
    if (content_->index() == history_.begin) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "its records from ", content_->index() + 1, " to ", history_.begin, " were not recorded"));
  }

  enum class Digests { kChecked, kIgnored };
  absl::Status Run(Digests digests) {
    uint64_t equal = 0;
    for (const RecordedUpdate& update : history_.updates) {
      COVEY_RETURN_IF_ERROR(AtRecord(update, Apply(update)));
      if (update.digest && digests == Digests::kChecked) {
        if (*update.digest != content_->Digest()) {
          replayed_.difference = {.after = equal, .at = update.index};
          return absl::OkStatus();
        }
        equal = update.index;
        ++replayed_.digests;
      }
      COVEY_RETURN_IF_ERROR(progress_());
    }
    return absl::OkStatus();
  }

  // The recorded pushes, as updates of this contract.
  absl::Status RunUnder(const Contract& contract) {
    GradientAggregator aggregator(contract, spares_);
    const std::vector<LiveGroup> live = Groups();
    const GroupCensus census{.live = live, .initial = live.size()};
    for (const RecordedUpdate& update : history_.updates) {
      COVEY_RETURN_IF_ERROR(AtRecord(update, Add(update, aggregator)));
      COVEY_RETURN_IF_ERROR(ApplyDue(aggregator, census));
      COVEY_RETURN_IF_ERROR(progress_());
    }
    aggregator.FlushPartialBuffer();
    return ApplyDue(aggregator, census);
  }

  ReplayedShard Take() {
    replayed_.updates = content_->version().value();
    replayed_.values = content_->Values();
    return std::move(replayed_);
  }

 private:
  static absl::Status CheckSource(const LoadSource& source, const WhatIf& what_if,
                                  const Folder* store) {
    if (store == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(
          "it began from ", source.folder, "; pass the folder of snapshots with --store DIR"));
    }
    if (!what_if.optimizer || source.takes == LoadSource::Takes::kValues) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("it began with the optimizer state of ",
                                                      source.folder,
                                                      ", which another optimizer cannot take"));
  }

  absl::Status AtRecord(const RecordedUpdate& update, const absl::Status& status) {
    ++replayed_.records;
    replayed_.pushes += update.record.pushes.size();
    return status.ok() ? status
                       : Annotate(absl::StrCat(history_.name, " record ", update.index), status);
  }

  absl::Status Apply(const RecordedUpdate& update) {
    const bool has_gradient = update.record.is_update && update.record.functions.empty();
    if (!has_gradient && !update.record.is_initial_values) {
      return content_->Apply(kAnyTime, FromEntry(update), {});
    }
    if (update.record.is_initial_values) return TakeInitialValues(update);
    COVEY_ASSIGN_OR_RETURN(Buffer gradient, ReadGradient(update));
    return content_->Apply(kAnyTime, FromEntry(update), gradient.As<float>());
  }

  absl::Status Add(const RecordedUpdate& update, GradientAggregator& aggregator) {
    const AppliedRecord& record = update.record;
    if (record.is_initial_values) return TakeInitialValues(update);
    if (!record.is_update) return absl::OkStatus();
    if (!record.functions.empty()) {
      return absl::UnimplementedError(
          "it is an update by functions, which follow on the pushes before them; a table of "
          "vectors "
          "is not replayed under another contract");
    }
    if (record.pushes.size() != 1 || record.rate_factor != 1 || record.momentum) {
      return absl::UnimplementedError(
          "it sums several pushes, or its rate was adjusted; only a run under async or ssp, "
          "whose rates followed the table's schedule alone, can be replayed under another "
          "contract");
    }
    COVEY_ASSIGN_OR_RETURN(const Buffer gradient, ReadGradient(update));
    const RecordedPush push = FromEntry(record.pushes[0]);
    aggregator.Add({.key = push.key,
                    .group = push.group,
                    .step = push.step,
                    .samples = push.samples,
                    .base_version = push.base_version},
                   {.elements = gradient, .keys = {}});
    return absl::OkStatus();
  }

  absl::Status TakeInitialValues(const RecordedUpdate& update) {
    if (update.record.initial_state && has_other_optimizer_) {
      return absl::FailedPreconditionError(
          "it began with the optimizer state that a program gave, which another optimizer cannot "
          "take");
    }
    COVEY_ASSIGN_OR_RETURN(const Buffer arrays, ReadGradient(update));
    const size_t bytes = content_->value_bytes();
    ShardRecord record = FromEntry(update);
    record.index = content_->index() + 1;
    if (record.initial_state) {
      for (size_t at = bytes; at < arrays.size(); at += bytes) {
        record.initial_state->slots.push_back({.frame = arrays.Slice(at, bytes)});
      }
    }
    return content_->Apply(kAnyTime, record, arrays.Slice(0, bytes).As<float>());
  }

  absl::Status ApplyDue(GradientAggregator& aggregator, const GroupCensus& census) {
    while (const std::optional<AggregatedUpdate> due = aggregator.TakeDue(kAnyTime, census)) {
      ShardRecord record;
      record.index = content_->index() + 1;
      record.version = content_->version().Next();
      record.samples = due->samples;
      for (const ReceivedPush& push : due->pushes) {
        record.pushes.push_back({.key = push.key, .group = push.group, .step = push.step});
      }
      COVEY_RETURN_IF_ERROR(content_->Apply(kAnyTime, record, due->gradient_sum.gradient()));
    }
    return absl::OkStatus();
  }

  // All groups that pushed, as if they lived all the time.
  std::vector<LiveGroup> Groups() const {
    absl::btree_set<GroupId> ids;
    for (const RecordedUpdate& update : history_.updates) {
      for (const AppliedPush& push : update.record.pushes) {
        if (push.group != 0) ids.insert(GroupId(static_cast<uint32_t>(push.group)));
      }
    }
    std::vector<LiveGroup> groups;
    for (const GroupId id : ids) groups.push_back({.id = id});
    return groups;
  }

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
  const ShardHistory& history_;
  const absl::FunctionRef<absl::Status()> progress_;
  BufferPool spares_{kSpareBytesMax};
  HostMemory memory_{spares_};
  std::unique_ptr<ShardContent> content_;
  bool has_other_optimizer_ = false;
  ReplayedShard replayed_;
};

absl::Status CheckContract(const Contract& contract) {
  const bool is_known = contract.kind == Contract::Kind::kAsync ||
                        (contract.kind == Contract::Kind::kBuffered && contract.staleness_cut == 0);
  if (is_known) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("a run is not replayed under ", ContractName(contract),
                   ", where workers would wait for each other or pushes be discarded; choose "
                   "async or buffered:K"));
}

}  // namespace

absl::StatusOr<ReplayedShard> ReplayShard(const Recording& recording, const ShardHistory& history,
                                          const WhatIf& what_if, Folder* store,
                                          absl::FunctionRef<absl::Status()> progress) {
  if (history.updates.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(history.name, ": its first records were not recorded"));
  }
  Replayer replayer(recording, history, progress);
  if (const absl::Status opened = replayer.Open(what_if, store); !opened.ok()) {
    return Annotate(history.name, opened);
  }
  if (what_if.contract) {
    COVEY_RETURN_IF_ERROR(CheckContract(*what_if.contract));
    COVEY_RETURN_IF_ERROR(replayer.RunUnder(*what_if.contract));
  } else {
    COVEY_RETURN_IF_ERROR(replayer.Run(what_if.changes_something() ? Replayer::Digests::kIgnored
                                                                   : Replayer::Digests::kChecked));
  }
  return replayer.Take();
}

}  // namespace covey::server
