// SPDX-License-Identifier: Apache-2.0
#include "server/replication/replica_state.h"

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
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

TEST(ReplicaState, EveryTransitionOfTheTableIsWalkedAndNoOther) {
  Steps walked;
  for (const Steps& steps : {WalkInitializer(), WalkJoining(), WalkOvertakenWhileJoining(),
                             WalkUnfitWithoutContent(0, State::kRequesting),
                             WalkUnfitWithoutContent(1, State::kImporting), WalkUnknownTail()}) {
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
