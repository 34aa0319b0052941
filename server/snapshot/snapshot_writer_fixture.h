// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/buffer.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "common/store/store_requests.h"
#include "common/store/testing/memory_folder.h"
#include "gtest/gtest.h"
#include "server/snapshot/snapshot_writer.h"

namespace covey::server {

inline constexpr Address kSelf{NodeId(2), 1};
inline constexpr ShardId kShard{TableId(1), ShardIndex(0)};
inline constexpr ShardId kSecond{TableId(1), ShardIndex(1)};
inline constexpr char kPath[] = "snapshot-000001-e6/part-2-1.cvp";

inline Buffer Filled(size_t bytes, uint8_t first) {
  Buffer buffer = Buffer::Allocate(bytes);
  for (size_t i = 0; i < bytes; ++i) buffer.MutableData()[i] = static_cast<uint8_t>(first + i % 97);
  return buffer;
}

inline std::string Text(const Buffer& buffer) {
  return std::string(reinterpret_cast<const char*>(buffer.data()), buffer.size());
}

// A loop that alone holds one shard, and its writer.
class SnapshotWriterTest : public ::testing::Test {
 protected:
  SnapshotWriterTest() {
    view_.set_epoch(5);
    proto::Node& node = *view_.add_nodes();
    node.set_id(kSelf.node.value());
    node.set_role(proto::SERVER);
    node.set_state(proto::Node::ALIVE);
    node.add_endpoints("");
    node.add_endpoints("tcp://127.0.0.1:1");
    proto::Table& table = *view_.add_tables();
    table.set_id(1);
    table.mutable_spec()->add_shape(1);
    AddShard();
  }

  void AddShard() {
    proto::Table& table = *view_.mutable_tables(0);
    proto::Shard& shard = *table.add_shards();
    const auto index = static_cast<uint32_t>(table.shards_size() - 1);
    shard.set_index(index);
    shard.set_first_element(index);
    shard.set_element_count(1);
    shard.set_generation(1);
    shard.set_chain_epoch(1);
    proto::Replica& replica = *shard.add_chain();
    replica.set_node(kSelf.node.value());
    replica.set_loop(kSelf.loop);
    table.mutable_spec()->set_shape(0, table.shards_size());
  }

  void Order(uint64_t id, uint64_t epoch, const std::string& base = "") {
    view_.mutable_snapshot()->set_id(id);
    view_.mutable_snapshot()->set_epoch(epoch);
    view_.mutable_snapshot()->set_folder("snapshot-00000" + std::to_string(id) + "-e6");
    view_.mutable_snapshot()->set_base(base);
  }
  void FollowView(uint64_t epoch) {
    view_.set_epoch(epoch);
    const auto view = ClusterView::Make(view_);
    ASSERT_TRUE(view.ok()) << view.status();
    writer_.FollowView(**view, kSelf, outbox_);
  }
  void Cut(uint64_t snapshot, uint64_t epoch) {
    Cut(kShard, snapshot, epoch, {.values = Filled(4, 1)});
  }
  void Cut(ShardId shard, uint64_t snapshot, uint64_t epoch, ContentCut content,
           uint64_t index = 7) {
    content.index = index;
    content.version = Version(5);
    content.samples = 640;
    content.clocks.Advance(GroupId(3), Step(40));
    writer_.Add(shard, 1,
                {.snapshot = snapshot, .epoch = Epoch(epoch), .content = std::move(content)},
                outbox_);
  }
  // What was sent since the last call: requests to the store; reports are kept.
  std::vector<Message> TakeRequests() {
    std::vector<Message> requests;
    for (Message& message : outbox_.TakeMessages()) {
      if (message.envelope.has_snapshot_report_request()) {
        EXPECT_EQ(message.to(), Address({kSelf.node, 0}));
        reports_.push_back(message.envelope.snapshot_report_request());
      } else {
        EXPECT_EQ(message.to(), Address({kSelf.node, kStoreLoop}));
        requests.push_back(std::move(message));
      }
    }
    return requests;
  }
  size_t Requests() { return TakeRequests().size(); }
  void Answer(const Message& request) {
    writer_.OnStoreReply(AnswerStoreRequest(request, store_), outbox_);
  }
  // Carries out all requests, and those that follow.
  void AnswerAll() {
    for (auto requests = TakeRequests(); !requests.empty(); requests = TakeRequests()) {
      for (const Message& request : requests) Answer(request);
    }
  }

  proto::ClusterView view_;
  std::set<ShardId> updated_;  // since their cuts
  SnapshotWriter writer_{[this](ShardId id, Version) { return updated_.contains(id); }};
  Outbox outbox_;
  MemoryFolder store_;
  std::vector<proto::SnapshotReportRequest> reports_;
};

}  // namespace covey::server
