// A group that loses members in the middle of a step.

#include <map>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/hybrid_fixture.h"

namespace covey::worker {
namespace {

// One group whose members die, one by one. Gradients are integers, and so are their sums, whatever
// the order.
class Mourners {
 public:
  struct Options {
    Algorithm algorithm = Algorithm::kRing;
    HybridOptions hybrid;
    uint64_t seed = 1;
    Model model = Integers();
  };
  Mourners(uint32_t members, const Options& options)
      : fleet(ViewWithTables(members, options.model),
              {.slice_bytes = 16,
               .formation = GroupMachine::Formation::kAgreed,
               .algorithm = options.algorithm},
              options.model, options.hybrid, options.seed),
        alive_(members, true),
        waiting_(members, 0),
        failures(members),
        view_(ViewWithTables(members, options.model)) {
    fleet.server.members_die = true;
    fleet.server.on_push = [this](const proto::PushRequest& push, const std::vector<float>& sum) {
      ExpectSumOfWholeMembers(push, sum);
    };
    fleet.PullAll();
  }
  static Model Integers() {
    Model model;
    model.tables = {{5, 4, 7, 1}, {2, 3}, {3}};
    model.spec = proto::TableSpec();
    model.spec.mutable_optimizer()->set_kind(proto::Optimizer::SGD);
    model.spec.mutable_learning_rate()->set_base(1);
    model.spec.mutable_contract()->set_kind(proto::Contract::BSP);
    return model;
  }

  // It says and hears nothing any more; what it has said may still arrive.
  void Kill(uint32_t rank) {
    alive_[rank] = false;
    fleet.Kill(rank);
  }
  // The scheduler has noticed.
  void PlanWithoutTheDead() {
    ++changes_;
    view_.set_epoch(2 + changes_);
    proto::Group& group = *view_.mutable_groups(0);
    group.set_generation(Ring::kGeneration + changes_);
    group.set_recovery_generation(group.generation());
    group.clear_members();
    for (uint32_t rank = 0; rank < alive_.size(); ++rank) {
      if (alive_[rank]) group.add_members(Ring::kFirstNode + rank);
      if (!alive_[rank]) view_.mutable_nodes(static_cast<int>(rank))->set_state(proto::Node::DEAD);
    }
  }
  void Show(uint32_t rank) { fleet.ShowView(rank, view_); }
  void ShowAll() {
    for (const uint32_t rank : Alive()) Show(rank);
  }

  std::vector<uint32_t> Alive() const {
    std::vector<uint32_t> ranks;
    for (uint32_t rank = 0; rank < alive_.size(); ++rank) {
      if (alive_[rank]) ranks.push_back(rank);
    }
    return ranks;
  }
  bool Idle(uint32_t rank) const { return waiting_[rank] == 0; }
  // Everybody who lives begins a step.
  void Begin() {
    for (const uint32_t rank : Alive()) {
      fleet.hybrids[rank]->BeginStep(fleet.ring.now(), fleet.ring.outbox(rank));
      for (const size_t t : fleet.RandomOrder()) {
        std::fill(fleet.gradients[{rank, t}].begin(), fleet.gradients[{rank, t}].end(),
                  -static_cast<float>(1 + rank));
        ++waiting_[rank];
        Work work = fleet.WorkOf(rank, t, 1 + rank);
        work.done = [this, rank](absl::Time, const absl::Status& status, Outbox&) {
          --waiting_[rank];
          failures[rank].Update(status);
        };
        fleet.hybrids[rank]->Submit(fleet.ring.now(), std::move(work), fleet.ring.outbox(rank));
      }
    }
  }
  void ExpectAllWell(uint64_t step) {
    const std::vector<uint32_t> alive = Alive();
    for (const uint32_t rank : alive) {
      EXPECT_TRUE(Idle(rank)) << rank << " waits for " << waiting_[rank];
      EXPECT_TRUE(failures[rank].ok()) << failures[rank];
      EXPECT_TRUE(fleet.ring.machine(rank).failure().ok()) << fleet.ring.machine(rank).failure();
      EXPECT_EQ(fleet.hybrids[rank]->step().value(), step) << rank;
      for (size_t t = 0; t < fleet.model.tables.size(); ++t) {
        EXPECT_TRUE(SameBits(fleet.values[{rank, t}], fleet.values[{alive[0], t}]))
            << "member " << rank << " tensor " << t;
      }
    }
  }

  // Each member's gradient is in it with all its samples, or not at all; the survivors' always are.
  void ExpectSumOfWholeMembers(const proto::PushRequest& push, const std::vector<float>& sum) {
    bool found = false;
    for (uint32_t set = 1; set < 1u << alive_.size(); ++set) {
      uint64_t samples = 0;
      float expected = 0;
      bool survivors = true;
      for (uint32_t rank = 0; rank < alive_.size(); ++rank) {
        const bool in = (set >> rank & 1) != 0;
        survivors = survivors && (in || !alive_[rank]);
        if (!in) continue;
        samples += 1 + rank;
        expected -= static_cast<float>((1 + rank) * (1 + rank));
      }
      found = found || (survivors && samples == push.samples() &&
                        std::all_of(sum.begin(), sum.end(),
                                    [expected](float element) { return element == expected; }));
    }
    EXPECT_TRUE(found) << push.samples() << " samples, " << sum[0] << " in step " << push.step();
  }

  Fleet fleet;

 private:
  std::vector<bool> alive_;
  std::vector<size_t> waiting_;

 public:
  std::vector<absl::Status> failures;

 private:
  proto::ClusterView view_;
  uint64_t changes_ = 0;
};

struct Case {
  Algorithm algorithm = Algorithm::kRing;
  uint32_t lag = 0;
  bool fused = false;
};

class HybridRecoveryTest : public testing::TestWithParam<Case> {
 protected:
  static Mourners::Options OptionsOf(uint64_t seed) {
    return {.algorithm = GetParam().algorithm,
            .hybrid = {.lag = GetParam().lag,
                       .fusion = {.bucket_bytes = GetParam().fused ? 1u << 20 : 0u}},
            .seed = seed};
  }
};
INSTANTIATE_TEST_SUITE_P(Cases, HybridRecoveryTest,
                         testing::Values(Case{}, Case{.fused = true}, Case{.lag = 1},
                                         Case{.algorithm = Algorithm::kDirect},
                                         Case{.algorithm = Algorithm::kTree},
                                         Case{.algorithm = Algorithm::kHalvingDoubling},
                                         Case{.algorithm = Algorithm::kHierarchical}));

TEST_P(HybridRecoveryTest, AMemberMayVanishAfterAnyMessageOfAStep) {
  for (uint32_t victim = 0; victim < 3; ++victim) {
    for (uint64_t messages = 0;; ++messages) {
      Mourners f(3, OptionsOf(1 + messages));
      f.fleet.ring.KeepApart(victim);
      f.Begin();
      f.fleet.Run();
      f.ExpectAllWell(1);
      f.Begin();
      const bool over = !f.fleet.RunMessages(messages);
      f.Kill(victim);
      // What is on its way arrives, or is lost with the connection.
      if (messages % 2 == 0) f.fleet.Run();
      f.PlanWithoutTheDead();
      for (const uint32_t rank : f.Alive()) {
        f.Show(rank);
        f.fleet.RunMessages(messages % 5);
      }
      f.fleet.Run();
      f.ExpectAllWell(2);
      f.Begin();
      f.fleet.Run();
      f.ExpectAllWell(3);
      if (testing::Test::HasFailure()) {
        FAIL() << "member " << victim << " after " << messages << " messages";
      }
      if (over) break;
    }
  }
}

}  // namespace
}  // namespace covey::worker
