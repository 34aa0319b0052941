// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/planted_bug_switch.h"
#include "common/cluster/view.h"
#include "common/contract/contract.h"
#include "common/net/frame_checksum.h"
#include "server/shard_actor.h"

namespace covey::server {

inline constexpr uint32_t kTestTable = 1;
inline constexpr uint64_t kTestGeneration = 3;
inline constexpr NodeId kTestServer{2};
inline constexpr NodeId kTestClient{9};
// Of a node of the tests' jobs.
inline uint64_t IncarnationOf(uint64_t node) { return 1000 + node; }
// The message is from this node.
inline void SetSender(uint64_t node, Message& message) {
  message.envelope.mutable_header()->set_node(node);
  message.envelope.mutable_header()->set_incarnation(IncarnationOf(node));
}

// A push as a client sends it; other messages unchanged.
inline Message WithChecksums(Message message) {
  if (message.envelope.has_push_request()) SetFrameChecksums(message);
  return message;
}

// Plants a bug for its lifetime.
class BugInPlace {
 public:
  explicit BugInPlace(PlantedBug bug) { PlantBug(bug); }
  ~BugInPlace() { PlantBug(PlantedBug::kNone); }
};

// A job of one server (node 2, data loop 1), a client (node 9), and groups 1 … n of one worker each
// (nodes 10 + group). To change it, edit it, raise the epoch, and give it to the actor.
struct TestJob {
  proto::ClusterView view;

  TestJob(const Contract& contract, uint32_t groups, uint64_t elements = 4, uint32_t shards = 1) {
    view.set_job_name("test");
    view.set_job(JobFingerprint("test"));
    view.set_epoch(5);
    AddNode(kTestServer.value(), proto::SERVER, "server-0");
    AddNode(kTestClient.value(), proto::CLIENT, "client-0");
    for (uint32_t id = 1; id <= groups; ++id) AddGroup(id);
    view.set_epoch(5);
    proto::Table& table = *view.add_tables();
    table.set_id(kTestTable);
    proto::TableSpec& spec = *table.mutable_spec();
    spec.set_name("weights");
    spec.set_data_type(proto::FLOAT32);
    spec.add_shape(elements * shards);
    spec.mutable_learning_rate()->set_base(1);
    *spec.mutable_contract() = ContractToProto(contract);
    if (contract.kind == Contract::Kind::kLocal) {
      spec.mutable_inner_optimizer()->set_kind(proto::Optimizer::SGD);
      spec.mutable_inner_learning_rate()->set_base(1);
    }
    for (uint32_t index = 0; index < shards; ++index) {
      proto::Shard& shard = *table.add_shards();
      shard.set_index(index);
      shard.set_first_element(index * elements);
      shard.set_element_count(elements);
      shard.set_generation(kTestGeneration);
      proto::Replica& replica = *shard.add_chain();
      replica.set_node(kTestServer.value());
      replica.set_loop(1);
    }
  }

  void AddNode(uint64_t id, proto::Role role, const std::string& name) {
    proto::Node& node = *view.add_nodes();
    node.set_id(id);
    node.set_incarnation(IncarnationOf(id));
    node.set_role(role);
    node.set_state(proto::Node::ALIVE);
    node.set_name(name);
  }
  void AddGroup(uint32_t id, uint64_t first_step = 0) {
    AddNode(10 + id, proto::WORKER, "worker-" + std::to_string(id - 1));
    proto::Group& group = *view.add_groups();
    group.set_id(id);
    group.set_generation(1);
    group.add_members(10 + id);
    group.set_state(proto::Group::ACTIVE);
    group.set_first_step(first_step);
    view.set_epoch(view.epoch() + 1);
  }
  void SwitchTo(const Contract& contract) {
    view.set_epoch(view.epoch() + 1);
    *view.mutable_tables(0)->mutable_contract() = ContractToProto(contract);
    view.mutable_tables(0)->set_contract_epoch(view.epoch());
  }
  proto::TableSpec& spec() { return *view.mutable_tables(0)->mutable_spec(); }
  void EndGroup(uint32_t id, proto::Group::State state, const std::string& reason = "") {
    view.mutable_groups(static_cast<int>(id) - 1)->set_state(state);
    view.mutable_groups(static_cast<int>(id) - 1)->set_reason(reason);
    view.set_epoch(view.epoch() + 1);
  }
};

// Drives one data loop by hand.
class ShardDriver {
 public:
  explicit ShardDriver(const TestJob& job, const ShardActor::Options& options = {})
      : actor_(options) {
    AdoptView(job);
  }

  ShardActor& actor() { return actor_; }
  absl::Time now() const { return now_; }
  void Pass(absl::Duration duration) { now_ += duration; }

  // The messages that the actor sent since the last call, without load reports.
  std::vector<Message> Sent() {
    std::vector<Message> sent = outbox_.TakeMessages();
    std::erase_if(sent, [](const Message& m) { return m.envelope.has_heartbeat_request(); });
    return sent;
  }

  void AdoptView(const TestJob& job) {
    Message message;
    message.set_to({kTestServer, 1});
    *message.envelope.mutable_watch_view_reply()->mutable_view() = job.view;
    epoch_ = job.view.epoch();
    actor_.Receive(now_, message, outbox_);
  }

  static Buffer Floats(const std::vector<float>& elements) {
    return Buffer::CopyOf(
        {reinterpret_cast<const uint8_t*>(elements.data()), elements.size() * sizeof(float)});
  }

  // The following make requests, which tests may change before Deliver.
  Message Request(NodeId from) {
    Message message;
    message.set_to({kTestServer, 1});
    message.connection = 77;
    SetSender(from.value(), message);
    proto::Header& header = *message.envelope.mutable_header();
    header.set_epoch(epoch_);
    header.set_request_id(++requests_);
    return message;
  }
  Message ClientPush(uint64_t sequence, const std::vector<float>& gradient, uint64_t samples = 1) {
    Message message = Request(kTestClient);
    proto::PushRequest& push = *message.envelope.mutable_push_request();
    push.mutable_id()->set_table(kTestTable);
    push.mutable_id()->set_producer(kTestClient.value());
    push.mutable_id()->set_producer_incarnation(IncarnationOf(kTestClient.value()));
    push.mutable_id()->set_sequence(sequence);
    push.set_shard_generation(kTestGeneration);
    push.set_samples(samples);
    push.set_deadline_ms(1000);
    message.frames.push_back(Floats(gradient));
    return message;
  }
  Message GroupPush(uint32_t group, uint64_t step, const std::vector<float>& gradient,
                    uint64_t samples = 1) {
    Message message = ClientPush(step, gradient, samples);
    SetSender(10 + group, message);
    proto::PushRequest& push = *message.envelope.mutable_push_request();
    push.mutable_id()->set_producer_kind(proto::PushId::GROUP);
    push.mutable_id()->set_producer(group);
    push.mutable_id()->set_producer_incarnation(1);
    push.set_group(group);
    push.set_group_generation(1);
    push.set_step(step);
    return message;
  }
  // Asks for values, too, as a group that has finished `step`.
  static Message WithValues(Message push, uint64_t step) {
    proto::ReadBound& read = *push.envelope.mutable_push_request()->mutable_read();
    read.set_wanted(true);
    read.set_step(step);
    return push;
  }
  Message Pull(uint32_t shard = 0) {
    Message message = Request(kTestClient);
    proto::PullRequest& pull = *message.envelope.mutable_pull_request();
    pull.set_table(kTestTable);
    pull.set_shard(shard);
    pull.set_shard_generation(kTestGeneration);
    pull.set_deadline_ms(1000);
    return message;
  }

  std::vector<Message> Deliver(const Message& message) {
    actor_.Receive(now_, WithChecksums(message), outbox_);
    return Sent();
  }
  // The only reply to `message`; an INTERNAL one when there is not exactly one.
  Message Ask(const Message& message) {
    std::vector<Message> sent = Deliver(message);
    if (sent.size() == 1) return std::move(sent[0]);
    Message none;
    SetStatus(absl::InternalError(std::to_string(sent.size()) + " answers"), none);
    return none;
  }
  std::vector<Message> Wake() {
    actor_.Wake(now_, outbox_);
    return Sent();
  }

  static std::vector<float> ValuesIn(const Message& reply) {
    if (reply.frames.size() != 1) return {};
    const auto values = reply.frames[0].As<float>();
    return {values.begin(), values.end()};
  }
  std::vector<float> Values(uint32_t shard = 0) { return ValuesIn(Ask(Pull(shard))); }

 private:
  ShardActor actor_;
  Outbox outbox_;
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  uint64_t epoch_ = 0;
  uint64_t requests_ = 0;
};

}  // namespace covey::server
