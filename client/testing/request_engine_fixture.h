// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/engine/request_engine.h"
#include "common/net/frame_checksum.h"
#include "common/net/message.h"

namespace covey::client {

// For tests of the request engine: one table on scripted servers.

inline constexpr absl::Time kStart = absl::UnixEpoch();
inline constexpr uint64_t kServerA = 10;
inline constexpr uint64_t kServerB = 11;

// One table, id 3, of two shards of 4 and 2 elements, on the given servers.
struct ViewOptions {
  uint64_t generation = 1;
  uint64_t chain_epoch = 1;
  uint64_t dead = 0;  // node id of a server
  // The generation of group 9, which is live; 0 = there is no group.
  uint64_t group_generation = 0;
};
inline std::shared_ptr<const ClusterView> View(uint64_t epoch, uint64_t first, uint64_t second,
                                               const ViewOptions& options = {}) {
  proto::ClusterView view;
  view.set_epoch(epoch);
  for (uint64_t id : {kServerA, kServerB}) {
    proto::Node& node = *view.add_nodes();
    node.set_id(id);
    node.set_role(proto::SERVER);
    node.set_name(id == kServerA ? "server-0" : "server-1");
    node.set_state(id == options.dead ? proto::Node::DEAD : proto::Node::ALIVE);
    node.add_endpoints("");
    node.add_endpoints(absl::StrCat("tcp://127.0.0.1:", id));
  }
  if (options.group_generation > 0) {
    proto::Node& worker = *view.add_nodes();
    worker.set_id(kServerB + 1);
    worker.set_name("worker-0");
    worker.set_role(proto::WORKER);
    worker.set_state(proto::Node::ALIVE);
    proto::Group& group = *view.add_groups();
    group.set_id(9);
    group.set_generation(options.group_generation);
    group.add_members(worker.id());
    group.set_state(proto::Group::ACTIVE);
  }
  proto::Table& table = *view.add_tables();
  table.set_id(3);
  table.mutable_spec()->set_name("weights");
  table.mutable_spec()->set_data_type(proto::FLOAT32);
  table.mutable_spec()->add_shape(6);
  uint64_t element = 0;
  for (auto [server, count] : {std::pair<uint64_t, uint64_t>{first, 4}, {second, 2}}) {
    proto::Shard& shard = *table.add_shards();
    shard.set_index(static_cast<uint32_t>(table.shards_size() - 1));
    shard.set_first_element(element);
    shard.set_element_count(count);
    shard.set_generation(options.generation);
    shard.set_chain_epoch(options.chain_epoch);
    proto::Replica& replica = *shard.add_chain();
    replica.set_node(server);
    replica.set_loop(1);
    element += count;
  }
  return *ClusterView::Make(std::move(view));
}

// An empty reply by the server that `request` was sent to.
inline Message ReplyTo(const Message& request) {
  Message reply = MakeReply(request);
  reply.envelope.mutable_header()->set_node(request.envelope.to_node());
  return reply;
}

class RequestEngineTest : public ::testing::Test {
 protected:
  explicit RequestEngineTest(size_t budget = 0)
      : engine_({.incarnation = Incarnation(77), .bytes_in_flight_max = budget, .seed = 1},
                next_request_id_) {
    engine_.SetView(kStart, NodeId(5), View(1, kServerA, kServerB), outbox_);
    std::iota(gradient_.begin(), gradient_.end(), 1.0f);
  }

  enum Durability { kDurable, kReceived };

  Operation PushAll() {
    return {.table = TableId(3),
            .gradient = gradient_,
            .samples = 8,
            .deadline = kStart + absl::Seconds(10),
            .done = [this](absl::Time, const OperationResult& result, Outbox&) {
              results_.push_back(result);
            }};
  }

  void Start(Operation operation) {
    ASSERT_TRUE(engine_.Start(kStart, std::move(operation), outbox_).ok());
  }

  // Answers `request` with OK at `version`, with values when asked.
  void Answer(const Message& request, uint64_t version, Durability durability = kDurable) {
    Message reply = ReplyTo(request);
    const bool push = request.envelope.has_push_request();
    proto::ShardState& state = push ? *reply.envelope.mutable_push_reply()->mutable_state()
                                    : *reply.envelope.mutable_pull_reply()->mutable_state();
    state.set_version(version);
    if (push) reply.envelope.mutable_push_reply()->set_durable(durability == kDurable);
    if (!push) {
      const size_t count = request.envelope.pull_request().shard() == 0 ? 4 : 2;
      const std::vector<float> values(count, static_cast<float>(version));
      reply.frames.push_back(Buffer::CopyOf(
          {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)}));
    }
    SetFrameChecksums(reply);
    engine_.Receive(now_, reply, outbox_);
  }

  void Refuse(const Message& request, absl::Status status, uint32_t retry_after_ms = 0) {
    Message reply = ReplyTo(request);
    reply.envelope.mutable_push_reply();
    SetStatus(status, reply);
    if (retry_after_ms > 0) reply.envelope.mutable_status()->set_retry_after_ms(retry_after_ms);
    engine_.Receive(now_, reply, outbox_);
  }

  // Lets `passed` go by, and returns the messages that the engine sends.
  std::vector<Message> After(absl::Duration passed) {
    now_ += passed;
    engine_.Wake(now_, outbox_);
    return outbox_.TakeMessages();
  }
  void ShowView(std::shared_ptr<const ClusterView> view) {
    engine_.SetView(now_, NodeId(5), std::move(view), outbox_);
  }

  absl::Time now_ = kStart;
  uint64_t next_request_id_ = 1;
  Outbox outbox_;
  RequestEngine engine_;
  std::vector<float> gradient_ = std::vector<float>(6);
  std::vector<OperationResult> results_;
};

}  // namespace covey::client
