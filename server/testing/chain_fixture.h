// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/time/time.h"
#include "server/shard_actor.h"
#include "server/testing/shard_fixture.h"

namespace covey::server {

// Servers 20, 21, … of one data loop each, and the messages between them, delivered by hand in
// order, except those that `lose` selects. Messages to clients and to the control loops are
// collected.
class ChainDriver {
 public:
  // The chain is the first `replicas` servers; all of them have joined.
  ChainDriver(const Contract& contract, uint32_t groups, uint32_t servers, uint32_t replicas,
              uint64_t elements = 4)
      : job(contract, groups, elements) {
    for (uint32_t i = 0; i < servers; ++i) {
      job.AddNode(Id(i).value(), proto::SERVER, "server-" + std::to_string(i));
      job.view.mutable_nodes(job.view.nodes_size() - 1)->add_endpoints("");
      job.view.mutable_nodes(job.view.nodes_size() - 1)
          ->add_endpoints("sim://server-" + std::to_string(i));
    }
    std::sort(job.view.mutable_nodes()->begin(), job.view.mutable_nodes()->end(),
              [](const proto::Node& a, const proto::Node& b) { return a.id() < b.id(); });
    for (uint32_t i = 0; i < servers; ++i) Restart(i);
    std::vector<std::pair<uint32_t, bool>> chain;
    for (uint32_t i = 0; i < replicas; ++i) chain.push_back({i, false});
    SetChain(chain);
    shard().set_generation(job.view.epoch());
    shard().set_chain_epoch(job.view.epoch());
    generation = job.view.epoch();
  }

  static NodeId Id(uint32_t server) { return NodeId(20 + server); }

  proto::Shard& shard() { return *job.view.mutable_tables(0)->mutable_shards(0); }
  // Each server, and whether it is joining.
  void SetChain(const std::vector<std::pair<uint32_t, bool>>& chain) {
    job.view.set_epoch(job.view.epoch() + 1);
    shard().set_chain_epoch(job.view.epoch());
    shard().clear_chain();
    for (const auto& [server, joining] : chain) {
      proto::Replica& replica = *shard().add_chain();
      replica.set_node(Id(server).value());
      replica.set_loop(1);
      replica.set_joining(joining);
    }
  }
  // Restarts the server without its content.
  void Restart(uint32_t server) { servers_[Id(server)] = std::make_unique<ShardActor>(options); }
  void Kill(uint32_t server) { servers_.erase(Id(server)); }

  void Publish(uint32_t server) {
    Message message;
    message.set_to({Id(server), 1});
    *message.envelope.mutable_watch_view_reply()->mutable_view() = job.view;
    Give(Id(server), message);
  }
  void PublishToAll() {
    for (const NodeId id : Alive()) Publish(static_cast<uint32_t>(id.value() - 20));
  }

  // Delivers messages between servers until there are none.
  void Settle() {
    while (!wire_.empty()) {
      Message message = std::move(wire_.front());
      wire_.pop_front();
      if (servers_.contains(message.to().node)) Give(message.to().node, message);
    }
  }
  // Settles, and lets time pass in small steps in which timers fire.
  void Pass(absl::Duration duration) {
    const absl::Time until = now + duration;
    for (; now < until; now += absl::Milliseconds(10)) {
      for (const NodeId id : Alive()) {
        if (servers_.at(id)->NextWake() > now) continue;
        Outbox outbox;
        servers_.at(id)->Wake(now, outbox);
        Collect(id, outbox);
      }
      Settle();
    }
  }

  // Delivers a request, as ShardDriver makes it, to the server; by the newest view, or an older
  // one.
  void Deliver(uint32_t server, Message message, std::optional<uint64_t> epoch = std::nullopt) {
    message.connection = 77;
    message.envelope.mutable_header()->set_epoch(epoch.value_or(job.view.epoch()));
    if (message.envelope.has_push_request()) {
      message.envelope.mutable_push_request()->set_shard_generation(generation);
    } else {
      message.envelope.mutable_pull_request()->set_shard_generation(generation);
    }
    Give(Id(server), message);
  }
  // Delivers the message to the server unchanged, bypassing the wire.
  void Inject(uint32_t server, const Message& message) { Give(Id(server), message); }
  // Messages to clients since the last call.
  std::vector<Message> Answers() { return std::exchange(answers_, {}); }
  // The only reply, once no server has more to send.
  Message Ask(uint32_t server, const Message& message,
              std::optional<uint64_t> epoch = std::nullopt) {
    Deliver(server, message, epoch);
    Settle();
    std::vector<Message> answers = Answers();
    if (answers.size() == 1) return std::move(answers[0]);
    Message none;
    SetStatus(absl::InternalError(std::to_string(answers.size()) + " answers"), none);
    return none;
  }
  std::vector<proto::ReplicaReport> Reports() { return std::exchange(reports_, {}); }

  ShardActor& actor(uint32_t server) { return *servers_.at(Id(server)); }
  const Replica& replica(uint32_t server) {
    return *actor(server).FindReplica({TableId(kTestTable), ShardIndex(0)});
  }
  // Digest of the server's content; 0 = no content.
  uint64_t Digest(uint32_t server) {
    const ShardContent* content = replica(server).content();
    return content == nullptr ? 0 : content->Digest();
  }
  size_t on_the_wire() const { return wire_.size(); }

  TestJob job;
  uint64_t generation = 0;
  ShardActor::Options options;
  absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  // Whether a message between servers is lost.
  std::function<bool(const Message&)> lose = [](const Message&) { return false; };
  // Every message that was sent between servers, lost ones included.
  std::vector<Message> sent;

 private:
  std::vector<NodeId> Alive() const {
    std::vector<NodeId> ids;
    for (const auto& [id, actor] : servers_) ids.push_back(id);
    return ids;
  }
  void Give(NodeId server, const Message& message) {
    Outbox outbox;
    servers_.at(server)->Receive(now, WithChecksums(message), outbox);
    Collect(server, outbox);
  }
  void Collect(NodeId from, Outbox& outbox) {
    for (Message& message : outbox.TakeMessages()) {
      SetSender(from.value(), message);
      message.envelope.set_from_loop(1);
      if (message.to().loop == 0 && message.envelope.has_replica_report_request()) {
        for (const auto& report : message.envelope.replica_report_request().reports()) {
          reports_.push_back(report);
        }
      } else if (message.to().node >= Id(0)) {
        if (message.to().loop == 0) continue;
        message.connection = 5;
        sent.push_back(message);
        if (!lose(message)) wire_.push_back(std::move(message));
      } else {
        answers_.push_back(std::move(message));
      }
    }
  }

  absl::btree_map<NodeId, std::unique_ptr<ShardActor>> servers_;
  std::deque<Message> wire_;
  std::vector<Message> answers_;
  std::vector<proto::ReplicaReport> reports_;
};

}  // namespace covey::server
