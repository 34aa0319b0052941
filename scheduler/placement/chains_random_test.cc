// SPDX-License-Identifier: Apache-2.0

// Random deaths, joins, drains and reports over thousands of steps. After each step the invariants
// of chains.h hold, and at the end of each run all chains reach their targets.

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/cluster/placement.h"
#include "common/cluster/view.h"
#include "gtest/gtest.h"
#include "scheduler/placement/chains.h"
#include "scheduler/state/cluster_state_fixture.h"
#include "scheduler/tables/tables.h"

namespace covey::scheduler {
namespace {

class RandomCluster {
 public:
  explicit RandomCluster(uint64_t seed)
      : random_(seed), has_labels_(random_.Chance(0.3)), copies_max_(random_.Chance(0.3) ? 1 : 5) {
    state_.record().set_next_table(1);
    chains_ = std::make_unique<Chains>(options_, state_);
    const uint64_t servers = 1 + random_.Below(6);
    for (uint32_t rank = 0; rank < servers; ++rank) AddServer(rank);
    CreateTable();
  }

  void Step() {
    const proto::ClusterView before = BeginCall();
    reported_.clear();
    switch (random_.Below(14)) {
      case 0:
        Depart(proto::Node::DEAD);
        break;
      case 1:
        if (random_.Chance(0.3)) Depart(proto::Node::LEFT);
        break;
      case 2:
      case 3:
        AddServer(static_cast<uint32_t>(random_.Below(8)));
        break;
      case 4:
        Drain();
        break;
      case 5:
        if (random_.Chance(0.3)) CreateTable();
        break;
      case 6:
        if (random_.Chance(0.2)) DropTable();
        break;
      case 7:
        if (random_.Chance(0.3)) chains_ = std::make_unique<Chains>(options_, state_);
        break;
      case 8:
        now_ += absl::Seconds(random_.Below(8));
        break;
      case 9:
        Report(proto::ReplicaReport::UNREACHABLE);
        break;
      case 10:
        Report(proto::ReplicaReport::UNFIT);
        break;
      default:
        for (uint64_t i = random_.Below(6); i > 0; --i) Report(proto::ReplicaReport::READY);
    }
    Settle(before);
  }

  // Only changes in progress continue, and no server is missing.
  void ComeToRest() {
    if (Usable() == 0) AddServer(static_cast<uint32_t>(20 + random_.Below(8)));
    Settle(BeginCall());
    for (int rounds = 0;; ++rounds) {
      ASSERT_LT(rounds, 3000) << "it goes on for ever";
      const proto::ClusterView before = BeginCall();
      reported_.clear();
      const std::vector<const proto::Shard*> joining = Joining();
      if (!joining.empty()) {
        // One at a time or all together.
        const bool all = random_.Chance(0.5);
        const size_t one = random_.Below(joining.size());
        std::vector<proto::ReplicaReport> reports;
        for (size_t i = 0; i < joining.size(); ++i) {
          if (all || i == one)
            reports.push_back(ReportOf(*joining[i], joining[i]->chain_size() - 1));
        }
        for (proto::ReplicaReport& report : reports) {
          report.set_kind(proto::ReplicaReport::READY);
          Send(report);
        }
      } else if (chains_->NextReconcile() != absl::InfiniteFuture()) {
        now_ = std::max(now_, chains_->NextReconcile());
      } else {
        break;
      }
      Settle(before);
      if (::testing::Test::HasFailure()) return;
    }
    CheckRest();
  }

  std::string Describe() const {
    std::string text;
    for (const proto::Table& table : view().tables()) {
      for (const proto::Shard& shard : table.shards()) {
        absl::StrAppend(&text, table.id(), "/", shard.index(), ":");
        for (const proto::Replica& replica : shard.chain()) {
          absl::StrAppend(&text, " ", replica.node(), replica.joining() ? "+" : "");
        }
        absl::StrAppend(&text, "\n");
      }
    }
    return text;
  }

 private:
  using Member = std::tuple<uint32_t, uint32_t, uint64_t>;  // table, shard, node

  const proto::ClusterView& view() const { return state_.view(); }
  proto::ClusterView BeginCall() {
    state_.BeginCall();
    return view();
  }

  void AddServer(uint32_t rank) {
    for (const proto::Node& node : view().nodes()) {
      if (node.rank() == rank && node.state() == proto::Node::ALIVE) return;
    }
    proto::ClusterView& view = *state_.mutable_view();
    view.set_epoch(view.epoch() + 1);
    proto::Node& node = *view.add_nodes();
    node.set_id(static_cast<uint64_t>(view.nodes_size()) + 1);
    node.set_role(proto::SERVER);
    node.set_rank(rank);
    node.set_name(absl::StrCat("server-", rank));
    node.set_state(proto::Node::ALIVE);
    if (has_labels_) node.set_labels(absl::StrCat("z/r", rank % 3, "/h", rank % 4));
    for (uint64_t i = 0; i < 2 + random_.Below(2); ++i) node.add_endpoints("tcp://127.0.0.1:1");
    state_.AffectPlacement();
  }
  proto::Node* RandomServer() {
    std::vector<proto::Node*> alive;
    for (proto::Node& node : *state_.mutable_view()->mutable_nodes()) {
      if (node.state() == proto::Node::ALIVE) alive.push_back(&node);
    }
    return alive.empty() ? nullptr : alive[random_.Below(alive.size())];
  }
  void Depart(proto::Node::State state) {
    proto::Node* node = RandomServer();
    if (node == nullptr) return;
    node->set_state(state);
    node->clear_draining();
    state_.mutable_view()->set_epoch(view().epoch() + 1);
    state_.AffectPlacement();
  }
  void Drain() {
    proto::Node* node = RandomServer();
    if (node == nullptr || (!node->draining() && Usable() < 2)) return;
    node->set_draining(!node->draining());
    state_.mutable_view()->set_epoch(view().epoch() + 1);
    state_.AffectPlacement();
  }
  void CreateTable() {
    proto::TableSpec spec;
    spec.set_name(absl::StrCat("t", state_.record().next_table()));
    spec.set_data_type(proto::FLOAT32);
    spec.add_shape(16 * (1 + random_.Below(20)));
    spec.set_shard_bytes(64 * (1 + random_.Below(3)));
    spec.mutable_learning_rate()->set_base(0.1);
    spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
    const auto replicas = static_cast<uint32_t>(random_.Below(copies_max_) + 1);
    if (replicas == 1) {
      spec.set_durability(proto::MEMORY);
    } else {
      spec.set_replicas(replicas);
    }
    tables_.Create(spec).IgnoreError();
    state_.AffectPlacement();
  }
  void DropTable() {
    if (view().tables_size() < 2) return;
    const int table = static_cast<int>(random_.Below(static_cast<uint64_t>(view().tables_size())));
    ASSERT_TRUE(tables_.Drop(std::string(view().tables(table).spec().name())).ok());
    state_.AffectPlacement();
  }

  std::vector<const proto::Shard*> Joining() const {
    std::vector<const proto::Shard*> joining;
    for (const proto::Table& table : view().tables()) {
      for (const proto::Shard& shard : table.shards()) {
        if (shard.chain().rbegin()->joining()) joining.push_back(&shard);
      }
    }
    return joining;
  }
  uint32_t TableOf(const proto::Shard& wanted) const {
    for (const proto::Table& table : view().tables()) {
      for (const proto::Shard& shard : table.shards()) {
        if (&shard == &wanted) return table.id();
      }
    }
    return 0;
  }
  proto::ReplicaReport ReportOf(const proto::Shard& shard, int position) const {
    proto::ReplicaReport report;
    report.set_table(TableOf(shard));
    report.set_shard(shard.index());
    report.set_generation(shard.generation());
    report.set_chain_epoch(shard.chain_epoch());
    report.set_node(shard.chain(position).node());
    return report;
  }
  // Reports on any replica, by a server ahead of it in the chain; sometimes a stale report, or one
  // by the wrong server.
  void Report(proto::ReplicaReport::Kind kind) {
    if (view().tables_size() == 0) return;
    const auto& table =
        view().tables(static_cast<int>(random_.Below(static_cast<uint64_t>(view().tables_size()))));
    const auto& shard =
        table.shards(static_cast<int>(random_.Below(static_cast<uint64_t>(table.shards_size()))));
    int position = static_cast<int>(random_.Below(static_cast<uint64_t>(shard.chain_size())));
    if (kind == proto::ReplicaReport::READY) position = shard.chain_size() - 1;
    proto::ReplicaReport report = ReportOf(shard, position);
    report.set_kind(kind);
    if (random_.Chance(0.1)) report.set_chain_epoch(report.chain_epoch() - 1);
    Send(report);
  }
  void Send(const proto::ReplicaReport& report) {
    reported_.insert({report.table(), report.shard(), report.node()});
    if (report.kind() == proto::ReplicaReport::UNFIT) {
      unfit_.insert({report.table(), report.shard(), report.node()});
    }
    for (const proto::Table& table : view().tables()) {
      if (table.id() != report.table()) continue;
      const proto::Shard& shard = table.shards(static_cast<int>(report.shard()));
      const NodeId head(shard.chain(0).node());
      const NodeId sender = random_.Chance(0.05) ? NodeId(1 + random_.Below(9)) : head;
      proto::ReplicaReportRequest request;
      *request.add_reports() = report;
      chains_->OnReports(now_, sender, request);
      return;
    }
  }

  void Settle(const proto::ClusterView& before) {
    chains_->Reconcile(now_);
    const std::string decision = state_.News();
    ASSERT_LE(view().epoch(), before.epoch() + 1);
    const auto checked = ClusterView::Make(view());
    ASSERT_TRUE(checked.ok()) << checked.status() << "\n" << Describe();
    std::map<uint64_t, uint32_t> joining;
    for (const proto::Table& table : view().tables()) {
      const auto was = std::find_if(before.tables().begin(), before.tables().end(),
                                    [&](const proto::Table& t) { return t.id() == table.id(); });
      for (const proto::Shard& shard : table.shards()) {
        ASSERT_GE(shard.chain_size(), 1);
        for (const proto::Replica& replica : shard.chain()) {
          if (replica.joining()) ++joining[replica.node()];
        }
        if (was == before.tables().end()) continue;
        const proto::Shard& old = was->shards(static_cast<int>(shard.index()));
        if (old.SerializeAsString() != shard.SerializeAsString()) {
          EXPECT_FALSE(decision.empty());
        }
        CheckChange(table, old, shard);
      }
    }
    for (const auto& [node, count] : joining) EXPECT_LE(count, ChainMoves::kMovesPerServerMax);
  }

  bool IsAlive(uint64_t node) const {
    return view().nodes(static_cast<int>(node) - 2).state() == proto::Node::ALIVE;
  }
  size_t Usable() const {
    return static_cast<size_t>(
        std::count_if(view().nodes().begin(), view().nodes().end(), [](const proto::Node& node) {
          return node.state() == proto::Node::ALIVE && !node.draining();
        }));
  }
  uint32_t Target(const proto::Table& table) const {
    return std::min(ReplicasWanted(table.spec()),
                    static_cast<uint32_t>(std::max<size_t>(1, Usable())));
  }

  void CheckChange(const proto::Table& table, const proto::Shard& was, const proto::Shard& is) {
    const auto same_chain = [&] {
      if (was.chain_size() != is.chain_size()) return false;
      for (int i = 0; i < was.chain_size(); ++i) {
        if (was.chain(i).SerializeAsString() != is.chain(i).SerializeAsString()) return false;
      }
      return true;
    };
    std::vector<uint64_t> full_alive;
    for (const proto::Replica& replica : was.chain()) {
      if (!replica.joining() && IsAlive(replica.node())) full_alive.push_back(replica.node());
    }
    if (is.generation() != was.generation()) {
      EXPECT_EQ(is.chain_epoch(), view().epoch());
      EXPECT_TRUE(full_alive.empty() || (full_alive.size() == 1 &&
                                         unfit_.count({table.id(), is.index(), full_alive[0]}) > 0))
          << "content was given up";
      return;
    }
    if (same_chain()) {
      // The replica was taken out, and joins again for another reason.
      EXPECT_TRUE(was.chain_epoch() == is.chain_epoch() || is.chain().rbegin()->joining());
      return;
    }
    EXPECT_EQ(is.chain_epoch(), view().epoch());
    EXPECT_GT(is.chain_epoch(), was.chain_epoch());
    std::vector<uint64_t> full;
    for (const proto::Replica& replica : is.chain()) {
      if (!replica.joining()) full.push_back(replica.node());
    }
    if (!full_alive.empty()) {
      EXPECT_TRUE(IsAlive(full[0]));
    }
    // A full replica was full before, or was reported.
    int at = 0;
    for (const uint64_t node : full) {
      while (at < was.chain_size() && was.chain(at).node() != node) ++at;
      ASSERT_LT(at, was.chain_size()) << "out of order, or full from the beginning";
      if (was.chain(at).joining()) {
        EXPECT_EQ(reported_.count({table.id(), is.index(), node}), 1u);
      }
    }
    // A replica that was taken out without a report is replaced already, except in the longest
    // chains.
    const bool longest = was.chain_size() == 5;
    for (const uint64_t node : full_alive) {
      if (std::find(full.begin(), full.end(), node) != full.end() || longest ||
          reported_.count({table.id(), is.index(), node}) > 0) {
        continue;
      }
      EXPECT_GE(full.size(), Target(table)) << Describe();
    }
  }

  void CheckRest() {
    std::map<uint64_t, uint64_t> bytes;
    uint64_t largest = 0;
    uint32_t copies = 1;
    for (const proto::Node& node : view().nodes()) {
      if (node.state() == proto::Node::ALIVE && !node.draining()) bytes[node.id()] = 0;
    }
    for (const proto::Table& table : view().tables()) {
      copies = std::max(copies, ReplicasWanted(table.spec()));
      for (const proto::Shard& shard : table.shards()) {
        EXPECT_EQ(static_cast<uint32_t>(shard.chain_size()), Target(table)) << Describe();
        largest = std::max(largest, ShardBytes(shard));
        for (const proto::Replica& replica : shard.chain()) {
          EXPECT_FALSE(replica.joining());
          EXPECT_EQ(bytes.count(replica.node()), 1u) << "on a server that is to go";
          bytes[replica.node()] += ShardBytes(shard);
        }
      }
    }
    // Labels may prevent balance; chains of five are not balanced.
    if (has_labels_ || copies == 5) return;
    const auto [least, most] =
        std::minmax_element(bytes.begin(), bytes.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; });
    EXPECT_LE(most->second - least->second, largest * (copies == 1 ? 1 : 2)) << Describe();
  }

  Random random_;
  const bool has_labels_;
  const uint64_t copies_max_;
  const ChainsOptions options_;
  TestState state_;
  Tables tables_{state_};
  std::unique_ptr<Chains> chains_;
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  std::set<Member> reported_;
  std::set<Member> unfit_;  // ever
};

TEST(ChainsRandomTest, InvariantsHoldAndEverythingComesToRest) {
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RandomCluster cluster(seed);
    for (int phase = 0; phase < 4; ++phase) {
      for (int step = 0; step < 100; ++step) {
        cluster.Step();
        if (::testing::Test::HasFailure()) return;
      }
      cluster.ComeToRest();
      if (::testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace covey::scheduler
