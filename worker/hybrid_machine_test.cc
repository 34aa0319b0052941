#include "worker/hybrid_machine.h"

#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/collective/reference_reduce.h"
#include "worker/ring_fixture.h"

namespace covey::worker {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kServer = 500;
constexpr float kRate = 0.125f;
// Elements of each shard of each table: one of several shards, two small ones.
const std::vector<std::vector<uint64_t>> kTables = {{5, 4, 7, 1, 6, 3}, {2}, {3, 1}};

proto::ClusterView ViewWithTables(uint32_t members) {
  proto::ClusterView view = Ring::ActiveView(members);
  proto::Node& server = *view.add_nodes();
  server.set_id(kServer);
  server.set_name("server-0");
  server.set_role(proto::SERVER);
  server.set_state(proto::Node::ALIVE);
  server.add_endpoints("");
  server.add_endpoints("tcp://127.0.0.1:9000");
  for (size_t t = 0; t < kTables.size(); ++t) {
    proto::Table& table = *view.add_tables();
    table.set_id(static_cast<uint32_t>(t + 1));
    table.mutable_spec()->set_name(absl::StrCat("tensor-", t));
    uint64_t first = 0;
    for (const uint64_t count : kTables[t]) {
      proto::Shard& shard = *table.add_shards();
      shard.set_index(static_cast<uint32_t>(table.shards_size() - 1));
      shard.set_first_element(first);
      shard.set_element_count(count);
      shard.set_generation(1);
      proto::Replica& replica = *shard.add_chain();
      replica.set_node(kServer);
      replica.set_loop(1);
      first += count;
    }
    table.mutable_spec()->add_shape(first);
  }
  view.set_epoch(2);
  return view;
}

float FirstValue(size_t table, size_t element) {
  return static_cast<float>(table) + 0.01f * static_cast<float>(element);
}

// SGD under `bsp` with one group. Refuses what would apply a step twice or out of order.
class FakeServer {
 public:
  FakeServer() {
    for (size_t t = 0; t < kTables.size(); ++t) {
      size_t element = 0;
      for (size_t s = 0; s < kTables[t].size(); ++s) {
        for (uint64_t i = 0; i < kTables[t][s]; ++i) {
          shards_[{t + 1, s}].push_back(FirstValue(t, element++));
        }
      }
    }
  }

  Message Answer(const Message& request) {
    Message reply = MakeReply(request);
    if (request.envelope.has_pull_request()) {
      const proto::PullRequest& pull = request.envelope.pull_request();
      Frame(reply, shards_.at({pull.table(), pull.shard()}));
      reply.envelope.mutable_pull_reply()->mutable_state()->set_version(1);
      return reply;
    }
    const proto::PushRequest& push = request.envelope.push_request();
    proto::PushReply& body = *reply.envelope.mutable_push_reply();
    if (refuse_table_ == push.id().table()) {
      SetStatus(absl::InvalidArgumentError("NaN in the gradient of shard 0"), reply);
      return reply;
    }
    const auto key = std::pair<uint64_t, uint64_t>(push.id().table(), push.id().shard());
    std::vector<float>& values = shards_.at(key);
    EXPECT_EQ(push.id().sequence(), ++steps_[key]) << "a step was skipped or repeated";
    EXPECT_EQ(push.id().producer_kind(), proto::PushId::GROUP);
    EXPECT_EQ(push.id().producer_incarnation(), Ring::kGeneration);
    EXPECT_EQ(push.read().step(), push.step());
    const auto gradient = request.frames[0].As<float>();
    EXPECT_EQ(gradient.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] -= kRate * (gradient[i] / static_cast<float>(push.samples()));
    }
    samples_ += push.samples();
    Frame(reply, values);
    body.mutable_state()->set_version(push.step());
    body.set_has_values(true);
    body.set_staleness(3);
    return reply;
  }

  void RefuseTable(uint32_t table) { refuse_table_ = table; }
  uint64_t samples() const { return samples_; }

 private:
  static void Frame(Message& reply, const std::vector<float>& values) {
    reply.frames.push_back(Buffer::CopyOf(
        {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)}));
  }

  std::map<std::pair<uint64_t, uint64_t>, std::vector<float>> shards_;
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> steps_;
  uint32_t refuse_table_ = 0;
  uint64_t samples_ = 0;
};

// One group with clients, hybrid machines and one server.
class Fleet {
 public:
  explicit Fleet(uint32_t members) : ring(members, 16, members), request_ids_(members, 1) {
    view_ = *ClusterView::Make(ViewWithTables(members));
    ring.SetView(ViewWithTables(members));
    std::vector<TableId> tables;
    for (size_t t = 0; t < kTables.size(); ++t)
      tables.push_back(TableId(static_cast<uint32_t>(t + 1)));
    for (uint32_t rank = 0; rank < members; ++rank) {
      clients.push_back(std::make_unique<client::ClientMachine>(
          client::ClientMachine::Options{.incarnation = Incarnation(100 + rank)},
          request_ids_[rank]));
      clients[rank]->SetView(ring.now(), NodeId(Ring::kFirstNode + rank), view_, ring.outbox(rank));
      hybrids.push_back(std::make_unique<HybridMachine>(*clients[rank], ring.machine(rank)));
      EXPECT_TRUE(hybrids[rank]->SetTables(*view_, tables).ok());
      for (size_t t = 0; t < kTables.size(); ++t) {
        const size_t count = hybrids[rank]->element_count(t);
        gradients[{rank, t}].assign(count, 0);
        values[{rank, t}].assign(count, -1);
      }
    }
    ring.SetElsewhere([this](uint32_t from, Message message) {
      if (message.to().node == NodeId(kServer)) requests_.emplace_back(from, std::move(message));
    });
  }

  HybridMachine::Work Work(uint32_t rank, size_t tensor, uint64_t samples) {
    return {.tensor = tensor,
            .gradient = gradients[{rank, tensor}],
            .values = values[{rank, tensor}],
            .samples = samples,
            .deadline = ring.now() + absl::Seconds(20),
            .done = [this](absl::Time, const absl::Status& status, Outbox&) {
              outcomes.push_back(status);
            }};
  }

  void Run() {
    for (int quiet = 0; quiet < 20; ++quiet) {
      ring.Run();
      if (!answering) continue;
      if (!requests_.empty()) quiet = 0;
      std::deque<std::pair<uint32_t, Message>> requests = std::exchange(requests_, {});
      while (!requests.empty()) {
        const auto [rank, request] = std::move(requests.front());
        requests.pop_front();
        const Message reply = server.Answer(request);
        clients[rank]->Receive(ring.now(), reply, ring.outbox(rank));
      }
      for (uint32_t rank = 0; rank < ring.size(); ++rank) {
        clients[rank]->Wake(ring.now(), ring.outbox(rank));
      }
    }
  }

  bool AllOk() const {
    return std::all_of(outcomes.begin(), outcomes.end(),
                       [](const absl::Status& s) { return s.ok(); });
  }

  Ring ring;
  FakeServer server;
  bool answering = true;
  std::vector<std::unique_ptr<client::ClientMachine>> clients;
  std::vector<std::unique_ptr<HybridMachine>> hybrids;
  std::map<std::pair<uint32_t, size_t>, std::vector<float>> gradients;
  std::map<std::pair<uint32_t, size_t>, std::vector<float>> values;
  std::vector<absl::Status> outcomes;

 private:
  std::vector<uint64_t> request_ids_;
  std::shared_ptr<const ClusterView> view_;
  std::deque<std::pair<uint32_t, Message>> requests_;
};

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class HybridMachineTest : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Members, HybridMachineTest, testing::Range(1u, 10u));

TEST_P(HybridMachineTest, PullGivesEverybodyTheServersValues) {
  Fleet fleet(GetParam());
  for (uint32_t rank = 0; rank < GetParam(); ++rank) {
    for (size_t t = 0; t < kTables.size(); ++t) {
      fleet.hybrids[rank]->Pull(fleet.ring.now(), fleet.Work(rank, t, 0), fleet.ring.outbox(rank));
    }
  }
  fleet.Run();
  ASSERT_EQ(fleet.outcomes.size(), GetParam() * kTables.size());
  ASSERT_TRUE(fleet.AllOk());
  for (const auto& [key, values] : fleet.values) {
    for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], FirstValue(key.second, i));
  }
}

TEST_P(HybridMachineTest, StepsEqualOneProcessBitForBit) {
  const uint32_t members = GetParam();
  Fleet fleet(members);
  Random random(members);
  std::vector<std::vector<float>> reference;
  std::vector<const proto::Table*> tables;
  const proto::ClusterView view = ViewWithTables(members);
  for (size_t t = 0; t < kTables.size(); ++t) {
    tables.push_back(&view.tables(static_cast<int>(t)));
    reference.emplace_back();
    for (size_t i = 0; i < fleet.hybrids[0]->element_count(t); ++i) {
      reference[t].push_back(FirstValue(t, i));
    }
  }
  const PartMap map(tables, members);
  uint64_t samples_of_all = 0;
  for (uint64_t step = 1; step <= 4; ++step) {
    uint64_t samples = 0;
    std::vector<uint64_t> share;
    for (uint32_t rank = 0; rank < members; ++rank) {
      share.push_back((rank + step) % 3 * 7);  // Some have none.
      samples += share.back();
      fleet.hybrids[rank]->BeginStep();
    }
    for (size_t t = kTables.size(); t-- > 0;) {
      std::vector<std::vector<float>> sums;
      for (uint32_t rank = 0; rank < members; ++rank) {
        std::vector<float>& gradient = fleet.gradients[{rank, t}];
        for (float& g : gradient) g = static_cast<float>(random.Uniform() - 0.5);
        sums.push_back(gradient);
        for (float& g : sums.back()) g *= static_cast<float>(share[rank]);
        fleet.hybrids[rank]->Submit(fleet.ring.now(), fleet.Work(rank, t, share[rank]),
                                    fleet.ring.outbox(rank));
      }
      const std::vector<float> sum = ReferenceReduce(sums, map.ranges_of(t));
      for (size_t i = 0; i < sum.size(); ++i) {
        reference[t][i] -= kRate * (sum[i] / static_cast<float>(std::max<uint64_t>(samples, 1)));
      }
    }
    fleet.Run();
    ASSERT_EQ(fleet.outcomes.size(), step * members * kTables.size());
    ASSERT_TRUE(fleet.AllOk());
    samples_of_all += std::max<uint64_t>(samples, 1) * 9;  // shards
  }
  for (const auto& [key, values] : fleet.values) {
    EXPECT_TRUE(SameBits(values, reference[key.second])) << "tensor " << key.second;
  }
  EXPECT_EQ(fleet.server.samples(), samples_of_all);
}

TEST(HybridMachineOneTest, ReportsMeanStalenessSinceTheLastReport) {
  Fleet fleet(1);
  fleet.hybrids[0]->BeginStep();
  fleet.hybrids[0]->Submit(fleet.ring.now(), fleet.Work(0, 1, 1), fleet.ring.outbox(0));
  fleet.Run();
  EXPECT_EQ(fleet.hybrids[0]->TakeStaleness(), 3.0);
  EXPECT_EQ(fleet.hybrids[0]->TakeStaleness(), 0.0);
}

TEST(HybridMachineOneTest, ARefusedPushFailsTheStepOfEveryMember) {
  Fleet fleet(3);
  fleet.server.RefuseTable(1);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    fleet.hybrids[rank]->BeginStep();
    fleet.hybrids[rank]->Submit(fleet.ring.now(), fleet.Work(rank, 0, 4), fleet.ring.outbox(rank));
  }
  fleet.Run();
  ASSERT_EQ(fleet.outcomes.size(), 3u);
  for (const absl::Status& status : fleet.outcomes) {
    EXPECT_THAT(status.message(), HasSubstr("NaN in the gradient of shard 0"));
  }
}

TEST(HybridMachineOneTest, ADeadMemberEndsPushesAndCollectivesAlike) {
  Fleet fleet(2);
  fleet.answering = false;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    fleet.hybrids[rank]->BeginStep();
    for (size_t t = 0; t < kTables.size(); ++t) {
      fleet.hybrids[rank]->Submit(fleet.ring.now(), fleet.Work(rank, t, 4),
                                  fleet.ring.outbox(rank));
    }
  }
  fleet.Run();
  ASSERT_TRUE(fleet.outcomes.empty());
  ASSERT_GT(fleet.clients[0]->operations(), 0u);
  proto::ClusterView view = ViewWithTables(2);
  view.set_epoch(3);
  view.mutable_groups(0)->set_state(proto::Group::BROKEN);
  view.mutable_groups(0)->set_reason("worker-1 dead: silent for 2.6 s");
  fleet.ring.SetView(view);
  fleet.answering = true;
  fleet.Run();
  EXPECT_EQ(fleet.outcomes.size(), 2 * kTables.size());
  for (const absl::Status& status : fleet.outcomes) {
    EXPECT_THAT(status.message(), HasSubstr("worker-1 dead"));
  }
  EXPECT_EQ(fleet.clients[0]->operations(), 0u);
}

}  // namespace
}  // namespace covey::worker
