// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/hybrid_fixture.h"

namespace covey::worker {
namespace {

using ::testing::HasSubstr;

// A model whose values show what was learned, by plain SGD.
Model SgdModel(double rate) {
  Model model;
  model.spec.mutable_optimizer()->set_kind(proto::Optimizer::SGD);
  model.spec.mutable_optimizer()->clear_momentum();
  model.spec.mutable_learning_rate()->Clear();
  model.spec.mutable_learning_rate()->set_base(rate);
  return model;
}

Model LocalModel(double inner_rate, double outer_rate, uint64_t steps, uint64_t overlap) {
  Model model = SgdModel(outer_rate);
  model.spec.mutable_inner_learning_rate()->set_base(inner_rate);
  proto::Contract& contract = *model.spec.mutable_contract();
  contract.set_kind(proto::Contract::LOCAL);
  contract.set_local_steps(steps);
  contract.set_overlap_steps(overlap);
  return model;
}

// Steps down the slope towards 0 from `fleet`'s present values; each member sees another slope.
void Descend(Fleet& fleet, uint64_t steps) {
  for (uint64_t step = 1; step <= steps; ++step) {
    std::vector<uint64_t> samples;
    for (uint32_t rank = 0; rank < fleet.ring.size(); ++rank)
      samples.push_back(1 + rank + step % 2);
    fleet.Step(samples, [&](uint32_t rank, size_t tensor, std::vector<float>& gradient) {
      const std::vector<float>& values = fleet.values[{rank, tensor}];
      for (size_t i = 0; i < gradient.size(); ++i) {
        gradient[i] = values[i] * (1 + 0.1f * static_cast<float>(rank));
      }
    });
  }
  EXPECT_TRUE(fleet.AllOk());
}

void ExpectMembersAgree(const Fleet& fleet) {
  for (const auto& [key, values] : fleet.values) {
    EXPECT_TRUE(SameBits(values, fleet.values.at({0, key.second}))) << "member " << key.first;
  }
}

class LocalRoundsTest : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Members, LocalRoundsTest, testing::Range(1u, 5u));

TEST_P(LocalRoundsTest, OneStepAndOuterRateOneEqualPushingGradients) {
  Fleet pushing(GetParam(), SgdModel(0.25), {}, 3);
  Fleet averaging(GetParam(), LocalModel(0.25, 1, 1, 0), {}, 4);
  for (Fleet* fleet : {&pushing, &averaging}) {
    fleet->PullAll();
    Descend(*fleet, 6);
    ExpectMembersAgree(*fleet);
  }
  for (const auto& [key, values] : averaging.values) {
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(values[i], pushing.values[key][i], 1e-6);
    }
  }
  EXPECT_EQ(averaging.server.samples, pushing.server.samples);
}

TEST_P(LocalRoundsTest, EightStepsSendAnEighthOfTheBytes) {
  Fleet pushing(GetParam(), SgdModel(0.25));
  Fleet averaging(GetParam(), LocalModel(0.25, 1, 8, 0));
  for (Fleet* fleet : {&pushing, &averaging}) {
    fleet->PullAll();
    Descend(*fleet, 32);
    ExpectMembersAgree(*fleet);
  }
  EXPECT_EQ(averaging.server.push_bytes * 8, pushing.server.push_bytes);
}

TEST_P(LocalRoundsTest, OneGroupAloneLearnsAsIfItNeverSynchronized) {
  // With one group the mean change is its own, so an outer rate of 1 gives back what it has;
  // whatever the rounds and the overlap.
  Fleet every_step(GetParam(), LocalModel(0.25, 1, 1, 0));
  Fleet overlapping(GetParam(), LocalModel(0.25, 1, 5, 3));
  for (Fleet* fleet : {&every_step, &overlapping}) {
    fleet->PullAll();
    Descend(*fleet, 21);
    ExpectMembersAgree(*fleet);
  }
  for (const auto& [key, values] : overlapping.values) {
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(values[i], every_step.values[key][i], 1e-6);
    }
  }
}

// One group alone, in which averaging changes nothing by itself.
TEST_P(LocalRoundsTest, TheServersMomentumOfRoundsIsNotThatOfSteps) {
  for (const double momentum : {0.0, 0.5}) {
    Model steps = SgdModel(0.25);
    Model rounds = LocalModel(0.25, 1, 8, 0);
    for (Model* model : {&steps, &rounds}) {
      model->spec.mutable_optimizer()->set_kind(proto::Optimizer::MOMENTUM);
      model->spec.mutable_optimizer()->set_momentum(momentum);
    }
    Fleet pushing(GetParam(), steps);
    Fleet averaging(GetParam(), rounds);
    for (Fleet* fleet : {&pushing, &averaging}) {
      fleet->PullAll();
      Descend(*fleet, 16);
    }
    double difference = 0;
    for (const auto& [key, values] : averaging.values) {
      for (size_t i = 0; i < values.size(); ++i) {
        difference = std::max<double>(difference, std::abs(values[i] - pushing.values[key][i]));
      }
    }
    if (momentum == 0) {
      EXPECT_LT(difference, 1e-6);
    } else {
      EXPECT_GT(difference, 0.01);
    }
  }
}

TEST(HybridModesTest, EncodedGradientsAreSmallerAndEverybodyHasTheSameBits) {
  Fleet plain(3, SgdModel(0.25));
  plain.PullAll();
  Descend(plain, 10);
  for (const auto format : {proto::WIRE_FLOAT16, proto::WIRE_BFLOAT16, proto::WIRE_INT8_BLOCK,
                            proto::WIRE_FLOAT16_BLOCK, proto::WIRE_FLOAT8_BLOCK}) {
    Model model = SgdModel(0.25);
    model.spec.set_gradient_format(format);
    Fleet encoded(3, model);
    encoded.PullAll();
    Descend(encoded, 10);
    ExpectMembersAgree(encoded);
    double worst = 0;
    for (const auto& [key, values] : encoded.values) {
      for (size_t i = 0; i < values.size(); ++i) {
        worst = std::max<double>(worst, std::abs(values[i] - plain.values[key][i]));
      }
    }
    EXPECT_GT(worst, 0);
    EXPECT_LT(worst, format == proto::WIRE_FLOAT8_BLOCK ? 0.05 : 0.01);
    // FakeServer has seen that each push has exactly the bytes of its format.
    if (format == proto::WIRE_FLOAT16 || format == proto::WIRE_BFLOAT16) {
      EXPECT_EQ(2 * encoded.server.push_bytes, plain.server.push_bytes);
    } else {
      EXPECT_LT(encoded.server.push_bytes, plain.server.push_bytes);
    }
  }
}

TEST(HybridModesTest, EncodedValuesAreSmallerAndEverybodyHasTheSameBits) {
  Fleet plain(3, SgdModel(0.25));
  plain.PullAll();
  Descend(plain, 10);
  for (const auto format : {proto::WIRE_FLOAT16, proto::WIRE_BFLOAT16, proto::WIRE_INT8_BLOCK,
                            proto::WIRE_FLOAT16_BLOCK, proto::WIRE_FLOAT8_BLOCK}) {
    Model model = SgdModel(0.25);
    model.spec.set_value_format(format);
    Fleet encoded(3, model);
    encoded.PullAll();
    Descend(encoded, 10);
    ExpectMembersAgree(encoded);
    double worst = 0;
    for (const auto& [key, values] : encoded.values) {
      for (size_t i = 0; i < values.size(); ++i) {
        worst = std::max<double>(worst, std::abs(values[i] - plain.values[key][i]));
      }
    }
    EXPECT_GT(worst, 0);
    EXPECT_LT(worst, format == proto::WIRE_FLOAT8_BLOCK ? 0.05 : 0.01);
    EXPECT_EQ(encoded.server.push_bytes, plain.server.push_bytes);
    if (format == proto::WIRE_FLOAT16 || format == proto::WIRE_BFLOAT16) {
      EXPECT_EQ(2 * encoded.server.value_bytes, plain.server.value_bytes);
    } else {
      EXPECT_LT(encoded.server.value_bytes, plain.server.value_bytes);
    }
  }
}

// Members round what they send each other, and never what the next update begins with. A large
// element fixes the unit of its block, 1; each step moves the others by a tenth of that.
TEST(HybridModesTest, SmallStepsAddUpHoweverRoughlyValuesTravel) {
  for (const auto& [name, synchronization] :
       {std::pair("servers", Synchronization::kCentralized),
        std::pair("members", Synchronization::kDistributed)}) {
    Model model = SgdModel(1);
    model.tables = {{8}, {8}};
    model.spec.set_value_format(proto::WIRE_INT8_BLOCK);
    Fleet fleet(2, model, {.synchronization = synchronization});
    fleet.PullAll();
    const std::vector<float>& values = fleet.values[{0, 0}];
    const float first = values[1];
    for (int step = 0; step < 200; ++step) {
      fleet.Step({1, 1}, [step](uint32_t, size_t, std::vector<float>& gradient) {
        std::fill(gradient.begin(), gradient.end(), -0.1f);
        gradient[0] = step == 0 ? -127 : 0;
      });
    }
    EXPECT_TRUE(fleet.AllOk());
    ExpectMembersAgree(fleet);
    EXPECT_NEAR(values[1] - first, 20, 1.5) << name;
    EXPECT_EQ(values[1], std::round(values[1])) << name << ": the unit of its block is 1";
  }
}

TEST(HybridModesTest, AScaleForEachBlockKeepsGradientsOfAnySize) {
  // What the group pushes of gradients of size `unit` of sixteen samples, relative to their sum.
  const auto pushed = [](proto::WireFormat format, float unit) {
    Model model = SgdModel(0.25);
    model.spec.set_gradient_format(format);
    Fleet fleet(2, model);
    double sum_of_first = 0;
    fleet.server.on_push = [&](const proto::PushRequest&, const std::vector<float>& sum) {
      sum_of_first = sum[0];
    };
    fleet.PullAll();
    fleet.Step({8, 8}, [unit](uint32_t, size_t, std::vector<float>& gradient) {
      std::fill(gradient.begin(), gradient.end(), unit);
    });
    return sum_of_first / (16 * unit);
  };
  for (const float unit : {1e-9f, 1e-3f, 1e3f, 1e6f, 1e12f}) {
    EXPECT_NEAR(pushed(proto::WIRE_FLOAT16_BLOCK, unit), 1, 2e-3) << unit;
    EXPECT_NEAR(pushed(proto::WIRE_FLOAT8_BLOCK, unit), 1, 0.1) << unit;
  }
  EXPECT_NEAR(pushed(proto::WIRE_FLOAT16, 1e-3f), 1, 2e-3);
  EXPECT_EQ(pushed(proto::WIRE_FLOAT16, 1e-9f), 0) << "below 3e-8";
  EXPECT_TRUE(std::isinf(pushed(proto::WIRE_FLOAT16, 1e6f))) << "above 65504";
}

TEST(HybridModesTest, ErrorFeedbackKeepsWhatRoundingLoses) {
  // One large element fixes the scale of its block; the others are below half of its unit, and
  // arrive only in sum.
  const auto learned = [](ErrorFeedback when) {
    Model model = SgdModel(1);
    model.tables = {{8}, {8}};
    model.spec.set_gradient_format(proto::WIRE_INT8_BLOCK);
    Fleet fleet(2, model, {.error_feedback = when});
    fleet.PullAll();
    const std::vector<float> first = fleet.values[{0, 0}];
    for (int step = 0; step < 200; ++step) {
      fleet.Step({1, 1}, [](uint32_t, size_t, std::vector<float>& gradient) {
        std::fill(gradient.begin(), gradient.end(), -0.1f);
        gradient[0] = 127;
      });
    }
    EXPECT_TRUE(fleet.AllOk());
    return fleet.values[{0, 0}][1] - first[1];
  };
  EXPECT_EQ(learned(ErrorFeedback::kNever), 0);
  EXPECT_NEAR(learned(ErrorFeedback::kEightBits), 20, 2);
}

// What a group pushes in the steps 7 to 12, by table, shard and step.
using PushedSums = std::map<std::tuple<uint64_t, uint64_t, uint64_t>, std::vector<float>>;

// The gradients depend on nothing but rank, step and element.
PushedSums SumsAfterStep6(uint32_t members, uint64_t first_step, uint64_t flush_steps,
                          ErrorFeedback when, proto::WireFormat format) {
  Model model = SgdModel(1);
  model.spec.set_gradient_format(format);
  proto::ClusterView view = ViewWithTables(members, model);
  view.set_feedback_flush_steps(flush_steps);
  view.mutable_groups(0)->set_first_step(first_step);
  Fleet fleet(view, {.slice_bytes = 16, .rendezvous = RendezvousMode::kAtOnce}, model,
              {.error_feedback = when}, /*seed=*/1);
  PushedSums sums;
  fleet.server.groups_merge = true;  // the group's first step need not be 1
  fleet.server.on_push = [&sums](const proto::PushRequest& push, const std::vector<float>& sum) {
    if (push.step() > 6) sums[{push.id().table(), push.id().shard(), push.step()}] = sum;
  };
  fleet.PullAll();
  for (uint64_t step = first_step; step <= 12; ++step) {
    fleet.Step(std::vector<uint64_t>(members, 1),
               [step](uint32_t rank, size_t tensor, std::vector<float>& gradient) {
                 Random random(1000 * step + 10 * rank + tensor);
                 for (float& element : gradient) element = static_cast<float>(random.Uniform());
               });
  }
  EXPECT_TRUE(fleet.AllOk());
  return sums;
}

TEST(HybridModesTest, MembersThatBeginAfterAFlushPushWhatTheOthersWouldHave) {
  for (const uint32_t members : {1, 3}) {
    for (const auto& [when, format] : {std::pair(ErrorFeedback::kEightBits, proto::WIRE_INT8_BLOCK),
                                       std::pair(ErrorFeedback::kAlways, proto::WIRE_FLOAT16),
                                       std::pair(ErrorFeedback::kAlways, proto::WIRE_BFLOAT16)}) {
      const auto are_equal = [&, when = when, format = format](uint64_t flush_steps) {
        const PushedSums undisturbed = SumsAfterStep6(members, 1, flush_steps, when, format);
        EXPECT_EQ(undisturbed.size(), 6 * Model().shards());
        return undisturbed == SumsAfterStep6(members, 7, flush_steps, when, format);
      };
      EXPECT_TRUE(are_equal(3)) << members;
      EXPECT_TRUE(are_equal(6)) << members;
      EXPECT_FALSE(are_equal(0)) << members << ": what was kept is missing";
      EXPECT_FALSE(are_equal(5)) << members << ": step 6 keeps something";
    }
  }
}

TEST(HybridModesTest, WithLagOneAStepGetsTheValuesOfTheStepBefore) {
  for (const bool fused : {false, true}) {
    const HybridOptions options{.lag = 1, .fusion = {.bucket_bytes = fused ? 1u << 20 : 0u}};
    Fleet late(3, SgdModel(0.25), options);
    Fleet prompt(3, SgdModel(0.25), {.fusion = options.fusion});
    std::vector<std::map<std::pair<uint32_t, size_t>, std::vector<float>>> history;
    for (Fleet* fleet : {&late, &prompt}) {
      fleet->PullAll();
      for (int step = 0; step < 5; ++step) {
        if (fleet == &prompt) history.push_back(fleet->values);
        // Gradients that do not depend on values, so that both go the same way.
        fleet->Step({1, 2, 3}, [&](uint32_t rank, size_t, std::vector<float>& gradient) {
          for (size_t i = 0; i < gradient.size(); ++i) {
            gradient[i] = 0.5f * static_cast<float>(rank + i) + static_cast<float>(step);
          }
        });
        EXPECT_TRUE(fleet->AllOk());
      }
    }
    EXPECT_EQ(late.values, history.back()) << "the last step but one";
    late.outcomes.clear();
    for (uint32_t rank = 0; rank < 3; ++rank) {
      for (size_t t = 0; t < late.model.tables.size(); ++t) {
        late.hybrids[rank]->Flush(late.ring.now(), late.RequestFor(rank, t, 0),
                                  late.ring.outbox(rank));
      }
    }
    EXPECT_EQ(late.outcomes.size(), 9u);
    EXPECT_TRUE(late.AllOk());
    EXPECT_EQ(late.values, prompt.values);
  }
}

TEST(HybridModesTest, WithLagOneAStepIsSubmittedWhileTheLastIsOnItsWay) {
  Fleet fleet(2, SgdModel(0.25), {.lag = 1, .fusion = {.bucket_bytes = 0}});
  fleet.PullAll();
  fleet.outcomes.clear();
  fleet.answering = false;
  fleet.Step({1, 1}, [](uint32_t, size_t, std::vector<float>& gradient) { gradient[0] = 1; });
  EXPECT_EQ(fleet.outcomes.size(), 6u) << "done as soon as it has begun";
  fleet.Step({1, 1}, [](uint32_t, size_t, std::vector<float>& gradient) { gradient[0] = 10; });
  EXPECT_EQ(fleet.outcomes.size(), 6u) << "the servers have not answered the step before";
  fleet.answering = true;
  fleet.Run();
  EXPECT_EQ(fleet.outcomes.size(), 12u);
  EXPECT_TRUE(fleet.AllOk());
  const float first = Model::FirstValue(1, 0);
  const float of_one_step = fleet.values[{0, 1}][0];
  EXPECT_EQ(of_one_step, first - 0.25f);
}

}  // namespace
}  // namespace covey::worker
