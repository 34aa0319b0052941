#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/client_machine.h"
#include "client/client_request.h"
#include "common/base/check.h"
#include "common/net/frame_checksum.h"
#include "common/tensor/kernels.h"
#include "common/tensor/wire_format_proto.h"

namespace covey::client {
namespace {

// A shard whose chain is empty has a server again within about a second; its view makes the request
// leave, this only makes sure.
constexpr absl::Duration kNoServerRetry = absl::Milliseconds(200);
// The head stayed and its chain changed: nothing should be lost, but the first retry need not wait
// for a second.
constexpr absl::Duration kChainChangedRetry = absl::Milliseconds(50);

bool IsGone(const ClusterView& view, NodeId id) {
  const proto::Node* node = view.FindNode(id);
  return node == nullptr || node->state() == proto::Node::DEAD ||
         node->state() == proto::Node::LEFT;
}

}  // namespace

size_t ClientMachine::Request::bytes() const {
  const Operation& operation = owner->operation;
  return operation.values.empty() ? EncodedBytes(operation.format, element_count) : value_bytes();
}

Buffer ClientMachine::Request::Gradient() {
  const Operation& operation = owner->operation;
  Buffer frame;
  if (operation.format == WireFormat::kFloat32) {
    frame = owner->gradient.Slice(first_element * sizeof(float), value_bytes());
  } else {
    if (encoded.empty()) {
      encoded = Buffer::Allocate(EncodedBytes(operation.format, element_count));
      const std::span<const float> gradient =
          operation.gradient.subspan(first_element, element_count);
      const std::span<uint8_t> bytes(encoded.MutableData(), encoded.size());
      if (operation.residual.empty()) {
        Encode(operation.format, gradient, bytes);
      } else {
        EncodeWithFeedback(operation.format, gradient,
                           operation.residual.subspan(first_element, element_count), bytes);
      }
    }
    frame = encoded;
  }
  if (!checksum) checksum = FrameChecksum(frame);
  return frame;
}

ClientMachine::Peer& ClientMachine::PeerAt(const Address& address) {
  return peers_
      .try_emplace(address, Peer{.window = ServerWindow(budget_), .round_trip = {}, .waiting = {}})
      .first->second;
}

void ClientMachine::RouteTo(const Address& peer, Outbox& outbox) {
  const std::string endpoint = view_->EndpointOf(peer);
  std::string& known = routes_[peer];
  if (known == endpoint) return;
  known = endpoint;
  outbox.Route(peer, endpoint);
}

void ClientMachine::FollowRoutes(Outbox& outbox) {
  for (auto route = routes_.begin(); route != routes_.end();) {
    auto& [peer, endpoint] = *route;
    const proto::Node* node = view_->FindNode(peer.node);
    // What still waits in the connection to a dead server would keep the caller's memory.
    const bool gone =
        node == nullptr || node->state() == proto::Node::DEAD || node->state() == proto::Node::LEFT;
    const std::string newest = gone ? "" : view_->EndpointOf(peer);
    if (newest != endpoint) {
      endpoint = newest;
      outbox.Route(peer, newest);
    }
    route = gone ? routes_.erase(route) : std::next(route);
  }
  std::erase_if(peers_, [this](const auto& entry) {
    return entry.second.waiting.empty() && entry.second.window.idle() &&
           IsGone(*view_, entry.first.node);
  });
}

void ClientMachine::FollowHead(absl::Time now, Request& request) {
  const proto::Shard* shard = view_->FindShard(request.shard);
  if (shard == nullptr || view_->PrimaryOf(*shard) != request.peer ||
      shard->generation() != request.generation) {
    Withdraw(request);
    request.tries = 0;
  } else if (shard->chain_epoch() != request.chain_epoch &&
             request.place == Request::Place::kOnWire) {
    request.chain_epoch = shard->chain_epoch();
    request.tries = 0;
    request.again = std::min(request.again, now + kChainChangedRetry * (1 + random_.Uniform()));
    next_wake_ = std::min(next_wake_, request.again);
  }
  if (request.place != Request::Place::kBackingOff) return;
  // A refusal said that some view was behind; now one is newer.
  request.refusals = 0;
  request.again = now;
  next_wake_ = now;
}

void ClientMachine::Enqueue(absl::Time now, Request& request, Outbox& outbox) {
  const proto::Shard* shard = view_->FindShard(request.shard);
  if (shard == nullptr) {
    Finish(now, request,
           absl::NotFoundError(absl::StrCat("table ", request.shard.table.value(),
                                            " was dropped at or before epoch ",
                                            view_->epoch().value())),
           outbox);
    return;
  }
  request.peer = view_->PrimaryOf(*shard);
  request.generation = shard->generation();
  request.chain_epoch = shard->chain_epoch();
  if (request.peer.node == NodeId()) {
    request.last_refusal = absl::UnavailableError("no server holds the shard at present");
    request.again = now + kNoServerRetry;
    next_wake_ = std::min(next_wake_, request.again);
    return;
  }
  request.place = Request::Place::kWaiting;
  request.again = absl::InfiniteFuture();
  PeerAt(request.peer).waiting.emplace(request.request_id, &request);
}

void ClientMachine::Withdraw(Request& request) {
  switch (request.place) {
    case Request::Place::kWaiting:
      PeerAt(request.peer).waiting.erase(request.request_id);
      break;
    case Request::Place::kOnWire:
      PeerAt(request.peer).window.Gone(request.bytes());
      bytes_in_flight_ -= request.bytes();
      break;
    case Request::Place::kBackingOff:
      break;
  }
  request.place = Request::Place::kBackingOff;
  request.asks = false;
}

bool ClientMachine::FitsBudget(size_t bytes) const {
  return bytes_in_flight_ == 0 || bytes_in_flight_ + bytes <= budget_;
}

ClientMachine::Request* ClientMachine::NextToSend() {
  Request* next = nullptr;
  for (auto& [address, peer] : peers_) {
    Request* const first = FirstOf(peer);
    if (first == nullptr) continue;
    if (next != nullptr && next->request_id < first->request_id) continue;
    if (peer.window.MaySend(first->bytes())) next = first;
  }
  return next;
}

ClientMachine::Request* ClientMachine::FirstOf(const Peer& peer) const {
  for (const auto& [id, request] : peer.waiting) {
    const Operation& operation = request->owner->operation;
    const GroupId producer = operation.group ? operation.group->group : GroupId();
    if (kept_.HoldsBack(id, request->shard, producer)) continue;
    // A reader finds what it pushed itself.
    if (!request->pushes() && kept_.HoldsBack(id, request->shard, operation.read.group)) continue;
    return request;
  }
  return nullptr;
}

void ClientMachine::Pump(absl::Time now, Outbox& outbox) {
  SendKept(now, outbox);
  while (Request* next = NextToSend()) {
    if (!FitsBudget(next->bytes())) return;
    Peer& peer = PeerAt(next->peer);
    peer.waiting.erase(next->request_id);
    next->window_number = peer.window.Send(next->bytes());
    bytes_in_flight_ += next->bytes();
    next->place = Request::Place::kOnWire;
    next->first_sent = now;
    const auto seen = seen_.find(next->shard);
    const bool same = seen != seen_.end() && seen->second.generation == next->generation;
    next->seen = same ? seen->second.version : Version();
    Transmit(now, *next, Try::kNew, outbox);
  }
}

void ClientMachine::Transmit(absl::Time now, Request& request, Try which, Outbox& outbox) {
  COVEY_CHECK(request.place == Request::Place::kOnWire);
  const Operation& operation = request.owner->operation;
  const absl::Duration usual =
      PeerAt(request.peer).round_trip.Patience(options_.retry_after, options_.retry_after_longest);
  const absl::Duration patience =
      std::min(options_.retry_after_longest, usual * (1 << std::min(request.tries, 10)));
  request.again = now + patience * (1 + 0.1 * random_.Uniform());
  next_wake_ = std::min(next_wake_, request.again);
  if (request.tries++ > 0) ++counters_.repeats;
  RouteTo(request.peer, outbox);

  Message message;
  message.set_to(request.peer);
  message.envelope.mutable_header()->set_request_id(request.request_id);
  message.envelope.mutable_header()->set_epoch(view_->epoch().value());
  const uint32_t deadline_ms = Milliseconds(operation.deadline - now);
  if (request.pushes()) {
    proto::PushRequest& push = *message.envelope.mutable_push_request();
    push = PushBody(request);
    push.set_deadline_ms(deadline_ms);
    // Values are mostly on their way, too: whether the push was received says if they were lost.
    if (!operation.values.empty() && which == Try::kNew) {
      FillReadBound(request, *push.mutable_read());
    }
    if (!std::exchange(request.asks, true)) {
      Buffer gradient = request.Gradient();
      AddFrame(message, std::move(gradient), *request.checksum);
    }
    request.owner->sent_to.insert(request.peer);
  } else {
    proto::PullRequest& pull = *message.envelope.mutable_pull_request();
    pull.set_table(request.shard.table.value());
    pull.set_shard(request.shard.index.value());
    pull.set_shard_generation(request.generation);
    pull.set_deadline_ms(deadline_ms);
    FillReadBound(request, *pull.mutable_read());
  }
  outbox.Send(std::move(message));
}

proto::PushRequest ClientMachine::PushBody(const Request& request) const {
  const Operation& operation = request.owner->operation;
  proto::PushRequest push;
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
  push.set_shard_generation(request.generation);
  push.set_samples(operation.samples);
  // Versions of an earlier generation say nothing about this one.
  if (request.base_generation == request.generation) {
    push.set_base_version(request.base_version.value());
  }
  push.set_format(ToProto(operation.format));
  return push;
}

void ClientMachine::FillReadBound(const Request& request, proto::ReadBound& bound) const {
  const ReadBound& read = request.owner->operation.read;
  bound.set_wanted(true);
  bound.set_step(read.step.value());
  bound.set_group(read.group.value());
  bound.set_min_version(std::max(read.min_version, request.seen).value());
  if (read.max_staleness) bound.set_max_staleness(*read.max_staleness);
  bound.set_max_age_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(read.max_age)));
}

}  // namespace covey::client
