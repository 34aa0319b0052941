#include "server/shard_actor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/cluster/momentum_governor.h"

namespace covey::server {

ShardActor::ShardActor(const Options& options)
    : options_(options), spares_(options.spare_bytes_max) {}

void ShardActor::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  switch (message.envelope.body_case()) {
    case proto::Envelope::kPushRequest:
      Push(now, message, outbox);
      return;
    case proto::Envelope::kPullRequest:
      Pull(now, message, outbox);
      return;
    case proto::Envelope::kWatchViewReply:
      // Only the control loop, in this process, speaks without a connection.
      if (message.connection == 0) {
        AdoptView(now, message, outbox);
        return;
      }
      break;
    default:
      break;
  }
  ++counters_.malformed;
}

void ShardActor::AdoptView(absl::Time now, const Message& message, Outbox& outbox) {
  auto view = ClusterView::Make(message.envelope.watch_view_reply().view());
  if (!view.ok() || (*view)->epoch() <= view_->epoch()) return;
  view_ = *std::move(view);
  self_ = message.to();
  if (next_report_ == absl::InfiniteFuture()) next_report_ = now + options_.report_every;

  absl::btree_map<ShardId, Place> before = std::exchange(places_, {});
  unopened_.clear();
  for (const proto::Table& table : view_->proto().tables()) {
    for (const proto::Shard& shard : table.shards()) {
      if (view_->PrimaryOf(shard) != self_) continue;
      const ShardId id{TableId(table.id()), ShardIndex(shard.index())};
      Place& place = places_[id];
      place.generation = shard.generation();
      const auto known = before.find(id);
      if (known != before.end() && known->second.generation == place.generation) {
        place = std::move(known->second);
        before.erase(known);
      }
      if (place.shard != nullptr) {
        place.shard->SetView(now, view_, outbox);
      } else if (place.failure.ok()) {
        unopened_.insert(id);
      }
    }
  }
  for (auto& [id, place] : before) {
    if (place.shard == nullptr) continue;
    place.shard->Close(
        absl::FailedPreconditionError(absl::StrCat("the shard was closed by the view of epoch ",
                                                   view_->epoch().value(), "; follow that view")),
        outbox);
  }
  next_deadline_ = EarliestDeadline();
}

absl::Time ShardActor::EarliestDeadline() const {
  absl::Time earliest = absl::InfiniteFuture();
  for (const auto& [id, place] : places_) {
    if (place.shard != nullptr) earliest = std::min(earliest, place.shard->NextWake());
  }
  return earliest;
}

void ShardActor::Push(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::PushRequest& push = message.envelope.push_request();
  const ShardId id{TableId(push.id().table()), ShardIndex(push.id().shard())};
  const absl::StatusOr<Shard*> shard = Find(now, message, id, push.shard_generation());
  if (!shard.ok()) {
    Message reply = MakeReply(message);
    *reply.envelope.mutable_push_reply()->mutable_id() = push.id();
    SetStatus(shard.status(), reply);
    outbox.Send(std::move(reply));
    return;
  }
  (*shard)->Push(now, message, outbox);
  next_deadline_ = std::min(next_deadline_, (*shard)->NextWake());
}

void ShardActor::Pull(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::PullRequest& pull = message.envelope.pull_request();
  const ShardId id{TableId(pull.table()), ShardIndex(pull.shard())};
  const absl::StatusOr<Shard*> shard = Find(now, message, id, pull.shard_generation());
  if (!shard.ok()) {
    Message reply = MakeReply(message);
    reply.envelope.mutable_pull_reply()->set_table(pull.table());
    reply.envelope.mutable_pull_reply()->set_shard(pull.shard());
    SetStatus(shard.status(), reply);
    outbox.Send(std::move(reply));
    return;
  }
  (*shard)->Pull(now, message, outbox);
  next_deadline_ = std::min(next_deadline_, (*shard)->NextWake());
}

absl::StatusOr<Shard*> ShardActor::Find(absl::Time now, const Message& request, ShardId id,
                                        uint64_t generation) {
  const auto found = places_.find(id);
  if (found == places_.end() || found->second.generation != generation) {
    return NotHere(request, id, generation);
  }
  Place& place = found->second;
  if (place.shard == nullptr && place.failure.ok()) Open(now, id, place);
  if (!place.failure.ok()) return place.failure;
  return place.shard.get();
}

absl::Status ShardActor::NotHere(const Message& request, ShardId id, uint64_t generation) const {
  const std::string where =
      absl::StrCat("table=", id.table.value(), " shard=", id.index.value(), ": ");
  const Epoch epoch(request.envelope.header().epoch());
  if (view_->epoch() < epoch) {
    return absl::UnavailableError(absl::StrCat(where, "view epoch ", view_->epoch().value(),
                                               " is older than ", epoch.value(), ", retry"));
  }
  const proto::Table* table = view_->FindTable(id.table);
  if (table == nullptr) {
    return absl::NotFoundError(absl::StrCat(where, "there is no such table in the view of epoch ",
                                            view_->epoch().value(),
                                            "; create it first, or look up its name again"));
  }
  const proto::Shard* shard = view_->FindShard(id);
  if (shard == nullptr) {
    return absl::NotFoundError(absl::StrCat(where, "table '", table->spec().name(), "' has ",
                                            table->shards_size(), " shards"));
  }
  const Address primary = view_->PrimaryOf(*shard);
  if (primary != self_) {
    return absl::FailedPreconditionError(
        absl::StrCat(where, "by epoch ", view_->epoch().value(), " it lives on ",
                     view_->NameOf(primary.node), " loop ", primary.loop, ", not on ",
                     view_->NameOf(self_.node), " loop ", self_.loop, "; follow that view"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      where, "its generation is ", shard->generation(), " in epoch ", view_->epoch().value(),
      ", the request names ", generation, "; follow that view"));
}

void ShardActor::Open(absl::Time now, ShardId id, Place& place) {
  unopened_.erase(id);
  auto shard = Shard::Open(
      now, id, view_, {.spares = spares_, .counters = counters_, .sabotage = options_.sabotage});
  if (shard.ok()) {
    place.shard = *std::move(shard);
  } else {
    place.failure = shard.status();
  }
}

void ShardActor::Wake(absl::Time now, Outbox& outbox) {
  if (now >= next_deadline_) {
    for (auto& [id, place] : places_) {
      if (place.shard != nullptr && place.shard->NextWake() <= now) place.shard->Wake(now, outbox);
    }
    next_deadline_ = EarliestDeadline();
  }
  if (now >= next_report_) Report(now, outbox);
  // One at a time, so that requests need not wait for all.
  if (!unopened_.empty()) {
    const ShardId id = *unopened_.begin();
    Open(now, id, places_.at(id));
  }
}

absl::Time ShardActor::NextWake() const {
  if (!unopened_.empty()) return absl::InfinitePast();
  return std::min(next_deadline_, next_report_);
}

void ShardActor::Report(absl::Time now, Outbox& outbox) {
  next_report_ = now + options_.report_every;
  proto::ServerLoad load;
  AsynchronyByTable tables;
  for (const auto& [id, place] : places_) {
    if (place.shard == nullptr) continue;
    load.set_table_bytes(load.table_bytes() + place.shard->bytes());
    AddAsynchrony(place.shard->ReportAsynchrony(), tables);
  }
  for (const auto& [table, report] : tables) *load.add_tables() = report;
  load.set_pushes(counters_.pushes);
  load.set_pulls(counters_.pulls);
  load.set_duplicates(counters_.duplicates);
  load.set_malformed(counters_.malformed + (options_.malformed_at_transport == nullptr
                                                ? 0
                                                : options_.malformed_at_transport()));
  Message message;
  message.set_to({self_.node, 0});
  *message.envelope.mutable_heartbeat_request()->mutable_load() = std::move(load);
  outbox.Send(std::move(message));
}

const Shard* ShardActor::FindShard(ShardId id) const {
  const auto found = places_.find(id);
  return found == places_.end() ? nullptr : found->second.shard.get();
}

}  // namespace covey::server
