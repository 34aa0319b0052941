#include "client/client_machine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/client_request.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/base/planted_bug.h"
#include "common/cluster/limits.h"

namespace covey::client {
namespace {

// How soon to look again whether a finished operation's frames have been let go. They nearly always
// have been.
constexpr absl::Duration kReleasePoll = absl::Microseconds(200);

uint64_t NextSequence(uint64_t& last) {
  ++last;
  constexpr uint64_t kSixBits = 63;
  return Planted(PlantedBug::kSequenceWraps) ? (last - 1) % kSixBits + 1 : last;
}

}  // namespace

ClientMachine::ClientMachine(const Options& options, uint64_t& next_request_id)
    : options_(options),
      budget_(options.bytes_in_flight_max == 0 ? kClientBytesInFlightDefault
                                               : options.bytes_in_flight_max),
      next_request_id_(next_request_id),
      random_(options.seed),
      view_(ClusterView::Empty()),
      kept_(options.seed + 1) {}

ClientMachine::~ClientMachine() = default;

void ClientMachine::SetView(absl::Time now, NodeId self, std::shared_ptr<const ClusterView> view,
                            Outbox& outbox) {
  self_ = self;
  view_ = std::move(view);
  for (auto& [id, request] : by_request_id_) FollowHead(now, *request);
  for (const uint64_t id : kept_.FollowView(now, *view_)) {
    const UndurablePushes::Push& push = *kept_.Find(id);
    if (view_->FindTable(push.shard.table) == nullptr) {
      DropKept(id, absl::OkStatus());  // Its table was dropped, on purpose.
      continue;
    }
    DropKept(id, absl::DataLossError(absl::StrCat(
                     "push to ", NameOf(push.shard), ": ", view_->NameOf(push.peer.node),
                     " had received it, and the shard's content was lost with its servers; keep "
                     "more replicas of the table to survive that")));
  }
  next_wake_ = std::min(next_wake_, kept_.next_due());
  FollowRoutes(outbox);
  CheckFlushes(now, outbox);
}

absl::Status ClientMachine::Start(absl::Time now, Operation operation, Outbox& outbox) {
  const proto::Table* table = view_->FindTable(operation.table);
  if (table == nullptr) {
    return absl::NotFoundError(absl::StrCat("table ", operation.table.value(),
                                            " is not in the view of epoch ", view_->epoch().value(),
                                            "; create it first, or look up its name again"));
  }
  const uint32_t shards = static_cast<uint32_t>(table->shards_size());
  const uint32_t first = operation.first_shard.value();
  if (first >= shards || operation.shard_count > shards - first) {
    return absl::InvalidArgumentError(absl::StrCat("table '", table->spec().name(), "' has ",
                                                   shards, " shards; asked for ",
                                                   operation.shard_count, " from shard ", first));
  }
  const uint32_t count = operation.shard_count == 0 ? shards - first : operation.shard_count;
  const proto::Shard& last = table->shards(static_cast<int>(first + count - 1));
  const uint64_t begin = table->shards(static_cast<int>(first)).first_element();
  const uint64_t elements = last.first_element() + last.element_count() - begin;
  const bool push = !operation.gradient.empty();
  const bool pull = !operation.values.empty();
  if ((push && operation.gradient.size() != elements) ||
      (pull && operation.values.size() != elements) || (!push && !pull)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", table->spec().name(), "': these shards hold ", elements, " elements; got ",
        operation.gradient.size(), " gradient and ", operation.values.size(),
        " value elements; pass spans of the table's size (or an empty one for the half that is not "
        "wanted)"));
  }
  if (!operation.residual.empty() && operation.residual.size() != operation.gradient.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", table->spec().name(), "': the residual has ", operation.residual.size(),
        " elements and the gradient ", operation.gradient.size(), "; they go together"));
  }
  if (operation.samples == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", table->spec().name(), "': a push stands for at least 1 sample"));
  }

  auto active = std::make_unique<ActiveOperation>();
  active->number = next_operation_++;
  active->operation = std::move(operation);
  if (push) {
    active->gradient =
        Buffer::Wrap(active->operation.gradient.data(), elements * sizeof(float), {});
  }
  active->requests.resize(count);
  active->unfinished = count;
  active->result.version = Version(~uint64_t{0});
  active->result.durable = true;
  for (uint32_t i = 0; i < count; ++i) {
    const proto::Shard& shard = table->shards(static_cast<int>(first + i));
    Request& request = active->requests[i];
    request.owner = active.get();
    request.shard = {TableId(table->id()), ShardIndex(shard.index())};
    request.first_element = shard.first_element() - begin;
    request.element_count = shard.element_count();
    if (push) {
      request.sequence = active->operation.group ? active->operation.group->step.value()
                                                 : NextSequence(sequences_[request.shard]);
      const auto seen = seen_.find(request.shard);
      if (seen != seen_.end()) {
        request.base_version = seen->second.values;
        request.base_generation = seen->second.generation;
      }
    }
    request.request_id = next_request_id_++;
    by_request_id_.emplace(request.request_id, &request);
  }
  next_wake_ = std::min(next_wake_, active->operation.deadline);
  ActiveOperation& started = *active;
  operations_.emplace(active->number, std::move(active));
  for (Request& request : started.requests) Enqueue(now, request, outbox);
  Pump(now, outbox);
  return absl::OkStatus();
}

void ClientMachine::Finish(absl::Time now, Request& request, absl::Status status, Outbox& outbox) {
  if (request.finished) return;
  Withdraw(request);
  request.finished = true;
  request.again = absl::InfiniteFuture();
  by_request_id_.erase(request.request_id);
  ActiveOperation& owner = *request.owner;
  --owner.unfinished;
  if (!status.ok()) {
    // One failed shard fails the operation: the others need not go on.
    if (owner.result.status.ok()) {
      owner.result.status = std::move(status);
      for (Request& other : owner.requests) Finish(now, other, absl::CancelledError(), outbox);
      GiveUpDurability(owner);
      LetFramesGo(owner, outbox);
    }
  }
  MarkIfOver(owner);
}

void ClientMachine::LetFramesGo(const ActiveOperation& active, Outbox& outbox) {
  if (active.gradient.size() == 0 || active.gradient.IsUnique()) return;
  for (const Address& peer : active.sent_to) {
    if (routes_.erase(peer) > 0) outbox.Route(peer, "");
  }
}

void ClientMachine::MarkIfOver(ActiveOperation& active) {
  if (!active.over() || active.marked_over) return;
  active.marked_over = true;
  finished_.push_back(active.number);
  next_wake_ = absl::InfinitePast();
}

void ClientMachine::Retire(absl::Time now, Outbox& outbox) {
  // `done` may start new operations, which may finish at once: they join a list of their own.
  std::vector<uint64_t> still_referenced;
  while (!finished_.empty()) {
    for (uint64_t number : std::exchange(finished_, {})) {
      const auto it = operations_.find(number);
      const Buffer& gradient = it->second->gradient;
      if (gradient.size() > 0 && !gradient.IsUnique()) {
        still_referenced.push_back(number);
        continue;
      }
      const std::unique_ptr<ActiveOperation> done = std::move(it->second);
      operations_.erase(it);
      if (done->operation.done) done->operation.done(now, done->result, outbox);
    }
  }
  finished_ = std::move(still_referenced);
  if (!finished_.empty()) next_wake_ = std::min(next_wake_, now + kReleasePoll);
}

std::string ClientMachine::NameOf(ShardId shard) const {
  const proto::Table* table = view_->FindTable(shard.table);
  return absl::StrCat(
      "table=", table != nullptr ? table->spec().name() : absl::StrCat(shard.table.value()),
      " shard=", shard.index.value());
}

absl::Status ClientMachine::DeadlineStatus(const Request& request) const {
  return absl::DeadlineExceededError(absl::StrCat(
      request.pushes() ? "push " : "pull ", NameOf(request.shard), ": no answer from ",
      request.place == Request::Place::kWaiting
          ? absl::StrCat(view_->NameOf(request.peer.node), " (still waiting for credit)")
          : view_->NameOf(request.peer.node),
      " before the deadline, after ", request.tries, " tries",
      request.last_refusal.ok() ? ""
                                : absl::StrCat("; last refusal: ", request.last_refusal.message()),
      "; see `covey status`, or allow more time"));
}

void ClientMachine::Wake(absl::Time now, Outbox& outbox) {
  // Operations end before requests are repeated; both in the order they began, never in hash order.
  for (auto& [number, active] : operations_) {
    if (active->over() || now < active->operation.deadline) continue;
    for (Request& request : active->requests) {
      if (!request.finished) Finish(now, request, DeadlineStatus(request), outbox);
    }
    if (active->over()) continue;
    active->result.status = absl::DeadlineExceededError(absl::StrCat(
        "push of table ", active->operation.table.value(),
        ": received, and not durable before the deadline; this client already keeps ",
        kept_.bytes() >> 20, " MiB that are not. See `covey status`, or push less at a time"));
    GiveUpDurability(*active);
  }
  std::vector<Request*> due;
  for (auto& [id, request] : by_request_id_) {
    if (request->again <= now) due.push_back(request);
  }
  for (Request* request : due) {
    if (request->finished) continue;
    if (request->place == Request::Place::kOnWire) {
      Transmit(now, *request, Try::kUnanswered, outbox);
    } else {
      Enqueue(now, *request, outbox);
    }
  }
  next_wake_ = absl::InfiniteFuture();
  Pump(now, outbox);
  for (const auto& [number, active] : operations_) {
    if (!active->over()) next_wake_ = std::min(next_wake_, active->operation.deadline);
  }
  for (const auto& [id, request] : by_request_id_) {
    next_wake_ = std::min(next_wake_, request->again);
  }
  for (const FlushWait& flush : flushes_) next_wake_ = std::min(next_wake_, flush.deadline);
  Retire(now, outbox);
  CheckFlushes(now, outbox);
}

void ClientMachine::FailAll(absl::Time now, const absl::Status& status, Outbox& outbox) {
  for (auto& [number, active] : operations_) FailRest(now, *active, status, outbox);
  while (!kept_.pushes().empty()) {
    const UndurablePushes::Push& push = kept_.pushes().begin()->second;
    DropKept(push.request_id,
             Annotate(absl::StrCat("push to ", NameOf(push.shard),
                                   " was received, and it is not known whether it became durable"),
                      status));
  }
  Retire(now, outbox);
  for (FlushWait& flush : std::exchange(flushes_, {})) flush.done(now, status, outbox);
}

void ClientMachine::FailGroup(absl::Time now, GroupId group, const absl::Status& status,
                              Outbox& outbox) {
  for (auto& [number, active] : operations_) {
    const std::optional<GroupIdentity>& identity = active->operation.group;
    if (identity && identity->group == group) FailRest(now, *active, status, outbox);
  }
  Retire(now, outbox);
}

void ClientMachine::FailRest(absl::Time now, ActiveOperation& active, const absl::Status& status,
                             Outbox& outbox) {
  for (Request& request : active.requests) Finish(now, request, status, outbox);
  if (active.over()) return;
  active.result.status = status;
  GiveUpDurability(active);
}

}  // namespace covey::client
