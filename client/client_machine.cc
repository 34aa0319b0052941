#include "client/client_machine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/cluster/limits.h"
#include "common/tensor/kernels.h"

namespace covey::client {
namespace {

// How soon to look again whether a finished operation's frames have been let go. They nearly always
// have been.
constexpr absl::Duration kReleasePoll = absl::Microseconds(200);
constexpr absl::Duration kRefusedRetryLongest = absl::Milliseconds(200);
constexpr absl::Duration kRefusedRetryFirst = absl::Milliseconds(2);

uint32_t Milliseconds(absl::Duration duration) {
  return static_cast<uint32_t>(std::clamp<int64_t>(absl::ToInt64Milliseconds(duration), 1,
                                                   absl::ToInt64Milliseconds(kBarrierMax)));
}

}  // namespace

struct ClientMachine::ActiveOperation {
  uint64_t number = 0;
  Operation operation;
  // All of the gradient; each request's frame is a slice of it.
  Buffer gradient;
  std::vector<Request> requests;
  size_t unfinished = 0;
  OperationResult result;
};

struct ClientMachine::Request {
  ActiveOperation* owner = nullptr;
  ShardId shard;
  Buffer encoded;            // the gradient in the operation's format, unless that is float32
  size_t first_element = 0;  // within the operation's spans
  size_t element_count = 0;
  uint64_t request_id = 0;
  uint64_t sequence = 0;
  Version base_version;
  Address peer;
  bool finished = false;
  bool on_wire = false;  // counts against the budget
  int tries = 0;
  int refusals = 0;
  absl::Time again = absl::InfiniteFuture();
  absl::Status last_refusal;

  size_t value_bytes() const { return element_count * sizeof(float); }
  // Of whatever goes either way; what counts against the budget.
  size_t bytes() const;
  // The frame to push.
  Buffer Gradient();
};

size_t ClientMachine::Request::bytes() const {
  const Operation& operation = owner->operation;
  return operation.values.empty() ? EncodedBytes(operation.format, element_count) : value_bytes();
}

Buffer ClientMachine::Request::Gradient() {
  const Operation& operation = owner->operation;
  if (operation.format == WireFormat::kFloat32) {
    return owner->gradient.Slice(first_element * sizeof(float), value_bytes());
  }
  if (!encoded.empty()) return encoded;
  encoded = Buffer::Allocate(EncodedBytes(operation.format, element_count));
  const std::span<const float> gradient = operation.gradient.subspan(first_element, element_count);
  const std::span<uint8_t> bytes(encoded.MutableData(), encoded.size());
  if (operation.residual.empty()) {
    Encode(operation.format, gradient, bytes);
  } else {
    EncodeWithFeedback(operation.format, gradient,
                       operation.residual.subspan(first_element, element_count), bytes);
  }
  return encoded;
}

ClientMachine::ClientMachine(const Options& options, uint64_t& next_request_id)
    : options_(options),
      budget_(options.bytes_in_flight_max == 0 ? kClientBytesInFlightDefault
                                               : options.bytes_in_flight_max),
      next_request_id_(next_request_id),
      random_(options.seed),
      view_(ClusterView::Empty()) {}

ClientMachine::~ClientMachine() = default;

void ClientMachine::SetView(absl::Time now, NodeId self, std::shared_ptr<const ClusterView> view,
                            Outbox& outbox) {
  self_ = self;
  view_ = std::move(view);
  // A peer that moved or restarted has another endpoint; what waits for it goes there at once.
  for (auto& [peer, endpoint] : routes_) {
    const std::string newest = view_->EndpointOf(peer);
    if (newest == endpoint) continue;
    endpoint = newest;
    outbox.Route(peer, newest);
  }
  for (auto& [id, request] : by_request_id_) {
    const proto::Shard* shard = view_->FindShard(request->shard);
    if (!request->last_refusal.ok() ||
        (shard != nullptr && view_->PrimaryOf(*shard) != request->peer)) {
      request->again = now;
      next_wake_ = now;
    }
  }
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
  for (uint32_t i = 0; i < count; ++i) {
    const proto::Shard& shard = table->shards(static_cast<int>(first + i));
    Request& request = active->requests[i];
    request.owner = active.get();
    request.shard = {TableId(table->id()), ShardIndex(shard.index())};
    request.first_element = shard.first_element() - begin;
    request.element_count = shard.element_count();
    if (push) {
      request.sequence = active->operation.group ? active->operation.group->step.value()
                                                 : ++sequences_[request.shard];
      const auto version = versions_.find(request.shard);
      if (version != versions_.end()) request.base_version = version->second;
    }
    waiting_.push_back(&request);
  }
  next_wake_ = std::min(next_wake_, active->operation.deadline);
  operations_.emplace(active->number, std::move(active));
  Pump(now, outbox);
  return absl::OkStatus();
}

void ClientMachine::Pump(absl::Time now, Outbox& outbox) {
  while (!waiting_.empty()) {
    Request& request = *waiting_.front();
    if (bytes_in_flight_ > 0 && bytes_in_flight_ + request.bytes() > budget_) return;
    waiting_.pop_front();
    bytes_in_flight_ += request.bytes();
    request.on_wire = true;
    request.request_id = next_request_id_++;
    by_request_id_.emplace(request.request_id, &request);
    Send(now, request, outbox);
  }
}

void ClientMachine::RouteTo(const Address& peer, Outbox& outbox) {
  const std::string endpoint = view_->EndpointOf(peer);
  std::string& known = routes_[peer];
  if (known == endpoint) return;
  known = endpoint;
  outbox.Route(peer, endpoint);
}

void ClientMachine::Send(absl::Time now, Request& request, Outbox& outbox) {
  const Operation& operation = request.owner->operation;
  const absl::Duration patience = std::min(
      options_.retry_after_longest, options_.retry_after * (1 << std::min(request.tries, 10)));
  request.again = now + patience * (1 + 0.1 * random_.Uniform());
  next_wake_ = std::min(next_wake_, request.again);
  const proto::Shard* shard = view_->FindShard(request.shard);
  if (shard == nullptr) {
    request.last_refusal = absl::NotFoundError(absl::StrCat("table ", request.shard.table.value(),
                                                            " was dropped at or before epoch ",
                                                            view_->epoch().value()));
    Finish(now, request, request.last_refusal, outbox);
    return;
  }
  ++request.tries;
  request.peer = view_->PrimaryOf(*shard);
  RouteTo(request.peer, outbox);

  Message message;
  message.set_to(request.peer);
  message.envelope.mutable_header()->set_request_id(request.request_id);
  message.envelope.mutable_header()->set_epoch(view_->epoch().value());
  proto::ReadBound* read = nullptr;
  const uint32_t deadline_ms = Milliseconds(operation.deadline - now);
  if (operation.gradient.empty()) {
    proto::PullRequest& pull = *message.envelope.mutable_pull_request();
    pull.set_table(request.shard.table.value());
    pull.set_shard(request.shard.index.value());
    pull.set_shard_generation(shard->generation());
    pull.set_deadline_ms(deadline_ms);
    read = pull.mutable_read();
  } else {
    proto::PushRequest& push = *message.envelope.mutable_push_request();
    proto::PushId& id = *push.mutable_id();
    id.set_table(request.shard.table.value());
    id.set_shard(request.shard.index.value());
    id.set_sequence(request.sequence);
    if (operation.group) {
      id.set_producer_kind(proto::PushId::GROUP);
      id.set_producer(operation.group->group.value());
      id.set_producer_incarnation(operation.group->generation);
      push.set_group(operation.group->group.value());
      push.set_group_generation(operation.group->generation);
      push.set_step(operation.group->step.value());
    } else {
      id.set_producer(self_.value());
      id.set_producer_incarnation(options_.incarnation.value());
    }
    push.set_shard_generation(shard->generation());
    push.set_samples(operation.samples);
    push.set_base_version(request.base_version.value());
    push.set_deadline_ms(deadline_ms);
    if (!operation.values.empty()) read = push.mutable_read();
    push.set_format(static_cast<proto::WireFormat>(operation.format));
    message.frames.push_back(request.Gradient());
  }
  if (read != nullptr) {
    read->set_wanted(true);
    read->set_step(operation.read.step.value());
    read->set_group(operation.read.group.value());
    read->set_min_version(operation.read.min_version.value());
    if (operation.read.max_staleness) read->set_max_staleness(*operation.read.max_staleness);
    read->set_max_age_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(operation.read.max_age)));
  }
  outbox.Send(std::move(message));
}

bool ClientMachine::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  const auto body = message.envelope.body_case();
  if (body != proto::Envelope::kPushReply && body != proto::Envelope::kPullReply) return false;
  const auto found = by_request_id_.find(message.envelope.header().request_id());
  if (found == by_request_id_.end()) return true;  // An answer to a request that is over.
  Request& request = *found->second;
  const bool pushed = !request.owner->operation.gradient.empty();
  if (pushed != (body == proto::Envelope::kPushReply)) return true;
  Answer(now, request, message, outbox);
  Pump(now, outbox);
  Retire(now, outbox);
  return true;
}

void ClientMachine::Answer(absl::Time now, Request& request, const Message& reply, Outbox& outbox) {
  const absl::Status status = StatusOf(reply);
  switch (status.code()) {
    case absl::StatusCode::kOk:
      break;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kFailedPrecondition: {
      // Refused for now: again soon, or when a newer view arrives (SetView).
      request.last_refusal = status;
      const absl::Duration wait = std::min(
          kRefusedRetryLongest, kRefusedRetryFirst * (1 << std::min(request.refusals++, 10)));
      request.again = now + wait * (0.5 + 0.5 * random_.Uniform());
      next_wake_ = std::min(next_wake_, request.again);
      return;
    }
    default:
      Finish(now, request, status, outbox);
      return;
  }
  const Operation& operation = request.owner->operation;
  const bool pushed = !operation.gradient.empty();
  const proto::ShardState& state =
      pushed ? reply.envelope.push_reply().state() : reply.envelope.pull_reply().state();
  if (!operation.values.empty()) {
    if (reply.frames.size() != 1 || reply.frames[0].size() != request.value_bytes()) {
      Finish(now, request,
             absl::InternalError(absl::StrCat(
                 "shard ", request.shard.index.value(), " of table ", request.shard.table.value(),
                 " answered with ", reply.frames.size(), " frames instead of one of ",
                 request.value_bytes(), " bytes; report this as a bug")),
             outbox);
      return;
    }
    std::memcpy(operation.values.data() + request.first_element, reply.frames[0].data(),
                request.value_bytes());
    versions_[request.shard] = Version(state.version());
  }
  OperationResult& result = request.owner->result;
  result.version = std::min(result.version, Version(state.version()));
  result.age = std::max(result.age, absl::Milliseconds(state.age_ms()));
  if (pushed) {
    result.staleness = std::max(result.staleness, reply.envelope.push_reply().staleness());
    result.duplicate = result.duplicate || reply.envelope.push_reply().duplicate();
    result.discarded = result.discarded || reply.envelope.push_reply().discarded();
  }
  Finish(now, request, absl::OkStatus(), outbox);
}

void ClientMachine::Finish(absl::Time now, Request& request, absl::Status status, Outbox& outbox) {
  if (request.finished) return;
  request.finished = true;
  request.again = absl::InfiniteFuture();
  if (request.on_wire) {
    by_request_id_.erase(request.request_id);
    bytes_in_flight_ -= request.bytes();
  } else {
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &request));
  }
  ActiveOperation& owner = *request.owner;
  if (--owner.unfinished == 0) {
    finished_.push_back(owner.number);
    next_wake_ = absl::InfinitePast();
  }
  if (status.ok()) return;
  // One failed shard fails the operation: the others need not go on.
  if (owner.result.status.ok()) owner.result.status = std::move(status);
  for (Request& other : owner.requests) Finish(now, other, absl::CancelledError(), outbox);
  // Frames that still wait for an unreachable peer are let go with the connection; the next send
  // opens it again.
  if (owner.gradient.size() > 0 && !owner.gradient.IsUnique()) {
    for (const Request& other : owner.requests) {
      if (other.on_wire && routes_.erase(other.peer) > 0) outbox.Route(other.peer, "");
    }
  }
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

absl::Status ClientMachine::DeadlineStatus(const Request& request) const {
  const Operation& operation = request.owner->operation;
  const proto::Table* table = view_->FindTable(request.shard.table);
  return absl::DeadlineExceededError(absl::StrCat(
      operation.gradient.empty() ? "pull" : "push", " table=",
      table != nullptr ? table->spec().name() : absl::StrCat(request.shard.table.value()),
      " shard=", request.shard.index.value(), ": no answer from ",
      request.on_wire ? view_->NameOf(request.peer.node)
                      : std::string("a server (still waiting for credit)"),
      " before the deadline, after ", request.tries, " tries",
      request.last_refusal.ok() ? ""
                                : absl::StrCat("; last refusal: ", request.last_refusal.message()),
      "; see `covey status`, or allow more time"));
}

void ClientMachine::Wake(absl::Time now, Outbox& outbox) {
  // Operations end before requests are repeated; both in the order they began, never in hash order.
  for (auto& [number, active] : operations_) {
    if (active->unfinished == 0 || now < active->operation.deadline) continue;
    for (Request& request : active->requests) {
      if (!request.finished) Finish(now, request, DeadlineStatus(request), outbox);
    }
  }
  std::vector<Request*> due;
  for (auto& [id, request] : by_request_id_) {
    if (request->again <= now) due.push_back(request);
  }
  for (Request* request : due) {
    if (!request->finished) Send(now, *request, outbox);
  }
  Pump(now, outbox);
  next_wake_ = absl::InfiniteFuture();
  for (const auto& [number, active] : operations_) {
    if (active->unfinished > 0) next_wake_ = std::min(next_wake_, active->operation.deadline);
  }
  for (const auto& [id, request] : by_request_id_)
    next_wake_ = std::min(next_wake_, request->again);
  Retire(now, outbox);
}

void ClientMachine::FailAll(absl::Time now, const absl::Status& status, Outbox& outbox) {
  for (auto& [number, active] : operations_) FailRest(now, *active, status, outbox);
  Retire(now, outbox);
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
}

}  // namespace covey::client
