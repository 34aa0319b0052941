// SPDX-License-Identifier: Apache-2.0
#include "server/replication/replica_state.h"

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/table/host_memory.h"
#include "server/testing/chain_fixture.h"

namespace covey::server {
namespace {

using State = ReplicaState;

constexpr Contract kAsync{.kind = Contract::Kind::kAsync};

// Drives servers by hand and notes the transitions of one replica.
class Walk {
 public:
  // Server 0 has applied a push; server 1 is idle, servers 1 and 2 are in no chain.
  Walk() : chain_(kAsync, 0, 3, 1), requests_(TestJob(kAsync, 0)) {
    chain_.PublishToAll();
    Push();
  }

  ChainDriver& chain() { return chain_; }
  void Push() { chain_.Ask(0, requests_.ClientPush(++sequence_, {1, 1, 1, 1})); }
  void SetChain(const std::vector<std::pair<uint32_t, bool>>& chain) {
    chain_.SetChain(chain);
    chain_.PublishToAll();
    chain_.Settle();
  }
  // Only pieces below `pieces` arrive.
  void LosePiecesFrom(uint64_t pieces) {
    chain_.lose = [pieces](const Message& message) {
      return message.envelope.has_replica_piece() && !message.frames.empty() &&
             message.envelope.replica_piece().piece() >= pieces;
    };
  }
  void LoseNothing() {
    chain_.lose = [](const Message&) { return false; };
    chain_.Pass(absl::Seconds(2));
  }

  void Expect(uint32_t server, State state) {
    EXPECT_EQ(static_cast<int>(chain_.replica(server).state()), static_cast<int>(state));
    if (last_) walked_.insert({*last_, state});
    last_ = state;
  }
  void ExpectFirst(uint32_t server, State state) {
    last_.reset();
    Expect(server, state);
  }
  const std::set<std::pair<State, State>>& walked() const { return walked_; }

 private:
  ChainDriver chain_;
  ShardDriver requests_;
  uint64_t sequence_ = 0;
  std::optional<State> last_;
  std::set<std::pair<State, State>> walked_;
};

using Steps = std::set<std::pair<State, State>>;

Steps WalkInitializer() {
  Walk walk;
  walk.SetChain({{1, false}});
  walk.ExpectFirst(1, State::kFresh);
  walk.chain().Pass(absl::Milliseconds(20));
  walk.Expect(1, State::kJoined);
  walk.SetChain({{2, false}, {1, true}});
  walk.Expect(1, State::kRequesting);
  return walk.walked();
}

Steps WalkJoining() {
  Walk walk;
  walk.LosePiecesFrom(0);
  // The replica is there before it has a predecessor that fills it.
  walk.SetChain({{1, false}});
  walk.ExpectFirst(1, State::kFresh);
  walk.SetChain({{0, false}, {1, true}});
  walk.Expect(1, State::kRequesting);
  walk.SetChain({{2, false}, {0, false}, {1, true}});
  walk.Expect(1, State::kRequesting);
  walk.SetChain({{0, false}, {1, true}});
  walk.LosePiecesFrom(1);
  walk.chain().Pass(absl::Seconds(1));
  walk.Expect(1, State::kImporting);
  walk.LoseNothing();
  walk.Expect(1, State::kCatchingUp);
  walk.SetChain({{0, false}, {1, false}});
  walk.Expect(1, State::kJoined);
  return walk.walked();
}

Steps WalkOvertakenWhileJoining() {
  Walk walk;
  walk.LosePiecesFrom(1);
  walk.SetChain({{0, false}, {1, true}});
  walk.chain().Pass(absl::Seconds(1));
  walk.ExpectFirst(1, State::kImporting);
  walk.chain().lose = [](const Message&) { return true; };
  walk.SetChain({{2, false}, {0, false}, {1, true}});
  walk.Expect(1, State::kRequesting);
  walk.SetChain({{0, false}, {1, true}});
  walk.LoseNothing();
  walk.ExpectFirst(1, State::kCatchingUp);
  walk.chain().lose = [](const Message&) { return true; };
  walk.SetChain({{2, false}, {0, false}, {1, true}});
  walk.Expect(1, State::kRequesting);
  return walk.walked();
}

Steps WalkUnfitWithoutContent(uint64_t pieces, State state) {
  Walk walk;
  walk.LosePiecesFrom(pieces);
  walk.SetChain({{0, false}, {1, true}});
  walk.chain().Pass(absl::Seconds(1));
  walk.ExpectFirst(1, state);
  walk.SetChain({{0, false}, {1, false}});
  walk.Expect(1, State::kUnfit);
  walk.LosePiecesFrom(0);
  walk.SetChain({{0, false}, {1, true}});
  walk.Expect(1, State::kRequesting);
  return walk.walked();
}

Steps WalkUnknownTail() {
  Walk walk;
  walk.SetChain({{0, false}, {1, true}});
  walk.LoseNothing();
  walk.SetChain({{0, false}, {1, false}});
  walk.chain().lose = [](const Message& message) {
    return message.envelope.has_replicate_request();
  };
  walk.Push();
  walk.ExpectFirst(0, State::kJoined);
  // Server 1 does not have the newest record of server 0.
  walk.SetChain({{1, false}, {0, false}});
  walk.Expect(0, State::kUnfit);
  return walk.walked();
}

// A replica of a restored shard, on server 2.
class Loading {
 public:
  Loading() : job_(kAsync, 0) {
    proto::Shard& shard = *job_.view.mutable_tables(0)->mutable_shards(0);
    shard.set_origin("snapshot-000001-e1");
    shard.set_chain_epoch(1);
    Follow();
    EXPECT_TRUE(replica_.Open(kNow).ok());
    walked_.insert({State::kFresh, replica_.state()});
    EXPECT_EQ(replica_.TakeLoadRequest()->folder, "snapshot-000001-e1");
  }

  // The pieces of a content that is as the initializer makes it.
  void LoadAll() {
    const proto::Table& table = job_.view.tables(0);
    const TableRules rules = *RulesOf(table, table.shards(0));
    ContentExport content((*ShardContent::Create(kNow, rules.shard, memory_))->Cut());
    for (uint64_t piece = 0; piece < content.pieces(); ++piece) Load(content.Piece(piece));
  }
  void Load(const absl::StatusOr<Message>& piece) {
    const State before = replica_.state();
    replica_.Load(kNow, piece, outbox_);
    if (replica_.state() != before) walked_.insert({before, replica_.state()});
  }
  void SetJoining() {
    proto::Shard& shard = *job_.view.mutable_tables(0)->mutable_shards(0);
    proto::Replica& self = *shard.add_chain();
    self = shard.chain(0);
    self.set_joining(true);
    shard.mutable_chain(0)->set_node(kTestServer.value() + 1);
    shard.set_chain_epoch(2);
    const State before = replica_.state();
    Follow();
    walked_.insert({before, replica_.state()});
  }
  const Replica& replica() const { return replica_; }
  const Steps& walked() const { return walked_; }

 private:
  static constexpr absl::Time kNow = absl::UnixEpoch();

  void Follow() {
    job_.view.set_epoch(job_.view.epoch() + 1);
    replica_.SetView(kNow, *ClusterView::Make(job_.view), {kTestServer, 1}, outbox_);
  }

  TestJob job_;
  BufferPool spares_{1 << 20};
  HostMemory memory_{spares_};
  ShardCounters counters_;
  Replica replica_{{TableId(kTestTable), ShardIndex(0)},
                   kTestGeneration,
                   {.memory = memory_, .spares = spares_, .counters = counters_}};
  Outbox outbox_;
  Steps walked_;
};

Steps WalkLoaded() {
  Loading loading;
  EXPECT_EQ(loading.replica().content(), nullptr);
  loading.LoadAll();
  EXPECT_NE(loading.replica().content(), nullptr);
  return loading.walked();
}

Steps WalkDamagedInStore() {
  Loading loading;
  loading.Load(absl::DataLossError("damaged"));
  return loading.walked();
}

Steps WalkJoiningWhileLoading() {
  Loading loading;
  loading.SetJoining();
  return loading.walked();
}

TEST(ReplicaState, EveryTransitionOfTheTableIsWalkedAndNoOther) {
  Steps walked;
  for (const Steps& steps : {WalkInitializer(), WalkJoining(), WalkOvertakenWhileJoining(),
                             WalkUnfitWithoutContent(0, State::kRequesting),
                             WalkUnfitWithoutContent(1, State::kImporting), WalkUnknownTail(),
                             WalkLoaded(), WalkDamagedInStore(), WalkJoiningWhileLoading()}) {
    walked.insert(steps.begin(), steps.end());
  }
  Steps table;
  for (const auto& [from, to] : kReplicaTransitions) table.insert({from, to});
  for (const auto& [from, to] : table) {
    EXPECT_TRUE(walked.contains({from, to}))
        << "not walked: " << static_cast<int>(from) << " to " << static_cast<int>(to);
  }
  for (const auto& [from, to] : walked) {
    EXPECT_TRUE(IsLegalTransition(kReplicaTransitions, from, to))
        << "not legal: " << static_cast<int>(from) << " to " << static_cast<int>(to);
  }
}

}  // namespace
}  // namespace covey::server
