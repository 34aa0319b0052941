// SPDX-License-Identifier: Apache-2.0
#include "worker/update/table_plan.h"

#include "common/tensor/codec.h"
#include "common/tensor/wire_format_proto.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/layout/gradient_format.h"

namespace covey::worker {
namespace {

using ::testing::HasSubstr;

proto::Table TableWith(proto::Contract::Kind contract) {
  proto::Table table;
  table.mutable_spec()->set_name("weights");
  table.mutable_spec()->set_data_type(proto::FLOAT32);
  table.mutable_spec()->add_shape(4);
  table.mutable_spec()->mutable_contract()->set_kind(contract);
  table.mutable_spec()->mutable_learning_rate()->set_base(0.5);
  if (contract == proto::Contract::LOCAL) {
    table.mutable_spec()->mutable_inner_optimizer()->set_kind(proto::Optimizer::SGD);
    table.mutable_spec()->mutable_inner_learning_rate()->set_base(0.25);
  }
  return table;
}

std::shared_ptr<const ClusterView> ViewWithGroups(uint32_t groups) {
  proto::ClusterView view;
  view.set_epoch(1);
  for (uint32_t g = 1; g <= groups; ++g) {
    proto::Node& node = *view.add_nodes();
    node.set_id(10 + g);
    node.set_role(proto::WORKER);
    node.set_state(proto::Node::ALIVE);
    proto::Group& group = *view.add_groups();
    group.set_id(g);
    group.set_generation(1);
    group.set_state(proto::Group::ACTIVE);
    group.add_members(node.id());
  }
  return *ClusterView::Make(view);
}

absl::StatusOr<std::vector<TablePlan>> Plan(const std::vector<proto::Table>& tables,
                                            uint32_t groups, const HybridOptions& options) {
  std::vector<const proto::Table*> pointers;
  for (const proto::Table& table : tables) pointers.push_back(&table);
  return PlanTables(pointers, *ViewWithGroups(groups), options);
}

TEST(TablePlanTest, CentralizedTablesNeedNoOptimizerHere) {
  const auto plans = Plan({TableWith(proto::Contract::ASYNC)}, 2, {});
  ASSERT_TRUE(plans.ok()) << plans.status();
  EXPECT_FALSE((*plans)[0].member_optimizer.has_value());
  EXPECT_FALSE((*plans)[0].rounds.has_value());
}

TEST(TablePlanTest, UpdatesByTheProgramAreForOneGroupUnderBsp) {
  const HybridOptions options{.synchronization = Synchronization::kProgram};
  const auto plans = Plan({TableWith(proto::Contract::BSP)}, 1, options);
  ASSERT_TRUE(plans.ok()) << plans.status();
  EXPECT_TRUE((*plans)[0].program_mean->refuses_non_finite);
  EXPECT_FALSE((*plans)[0].member_optimizer.has_value());
  for (const auto& refused : {Plan({TableWith(proto::Contract::BSP)}, 2, options),
                              Plan({TableWith(proto::Contract::ASYNC)}, 1, options)}) {
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(refused.status().message(), HasSubstr("'weights': updates by the program are"));
  }
}

TEST(TablePlanTest, DistributedIsForOneGroupUnderBsp) {
  const HybridOptions options{.synchronization = Synchronization::kDistributed};
  const auto plans = Plan({TableWith(proto::Contract::BSP)}, 1, options);
  ASSERT_TRUE(plans.ok()) << plans.status();
  EXPECT_EQ((*plans)[0].member_optimizer->learning_rate.base_rate, 0.5);
  for (const auto& refused : {Plan({TableWith(proto::Contract::BSP)}, 2, options),
                              Plan({TableWith(proto::Contract::ASYNC)}, 1, options)}) {
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(refused.status().message(), HasSubstr("'weights'"));
  }
  // The contract in force counts, not the one at creation.
  proto::Table switched = TableWith(proto::Contract::BSP);
  switched.mutable_contract()->set_kind(proto::Contract::ASYNC);
  EXPECT_FALSE(Plan({switched}, 1, options).ok());
}

TEST(TablePlanTest, AFormatThatLeavesOutMostElementsNeedsFeedback) {
  proto::Table table = TableWith(proto::Contract::BSP);
  table.mutable_spec()->set_gradient_format(proto::WIRE_TOP_BLOCK);
  const auto plans = Plan({table}, 1, {});
  ASSERT_TRUE(plans.ok()) << plans.status();
  EXPECT_TRUE((*plans)[0].gradient.error_feedback);
  const auto refused = Plan({table}, 1, {.error_feedback = ErrorFeedback::kNever});
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  EXPECT_THAT(refused.status().message(), HasSubstr("gradients in topk lose most"));
}

TEST(TablePlanTest, AdasumIsForGroupsThatAreNotTooLarge) {
  const HybridOptions options{.combine = Combine::kAdasum};
  const auto view = ViewWithGroups(1);
  EXPECT_TRUE(PlanModel({}, view, options, kAdasumMembersMax).ok());
  const auto refused = PlanModel({}, view, options, kAdasumMembersMax + 1);
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  EXPECT_THAT(refused.status().message(), HasSubstr("at most 64 members, and this group has 65"));
  EXPECT_TRUE(PlanModel({}, view, {}, kAdasumMembersMax + 1).ok());
}

TEST(TablePlanTest, LocalTablesTakeTurns) {
  proto::Table table = TableWith(proto::Contract::LOCAL);
  table.mutable_spec()->mutable_contract()->set_local_steps(8);
  table.mutable_spec()->mutable_contract()->set_overlap_steps(2);
  const auto plans = Plan({table, table, table, table}, 2, {});
  ASSERT_TRUE(plans.ok()) << plans.status();
  for (size_t t = 0; t < 4; ++t) {
    EXPECT_EQ((*plans)[t].rounds->steps, 8u);
    EXPECT_EQ((*plans)[t].rounds->overlap, 2u);
    EXPECT_EQ((*plans)[t].rounds->offset, 2 * t);
    EXPECT_EQ((*plans)[t].member_optimizer->learning_rate.base_rate, 0.25);
  }
}

TEST(GradientFormatTest, IsFloat32WhereWhatWasKeptIsFlushed) {
  const GradientFormat lossy{
      .format = WireFormat::kInt8Block, .error_feedback = true, .flush_steps = 10};
  for (uint64_t step = 1; step <= 40; ++step) {
    const bool flushes = step % 10 == 0;
    EXPECT_EQ(lossy.FlushesAt(Step(step)), flushes);
    EXPECT_EQ(lossy.At(Step(step)), flushes ? WireFormat::kFloat32 : WireFormat::kInt8Block);
  }
  // Nothing is kept, or nothing flushes it.
  const GradientFormat forgets{.format = WireFormat::kInt8Block, .flush_steps = 10};
  const GradientFormat keeps{.format = WireFormat::kInt8Block, .error_feedback = true};
  EXPECT_EQ(forgets.At(Step(10)), WireFormat::kInt8Block);
  EXPECT_EQ(keeps.At(Step(10)), WireFormat::kInt8Block);
}

TEST(TablePlanTest, ErrorFeedbackFollowsTheFormat) {
  const auto feedback = [](proto::WireFormat format, ErrorFeedback when) {
    proto::Table table = TableWith(proto::Contract::ASYNC);
    table.mutable_spec()->set_gradient_format(format);
    const auto plans = Plan({table}, 1, {.error_feedback = when});
    EXPECT_EQ((*plans)[0].gradient.format, static_cast<WireFormat>(format));
    return (*plans)[0].gradient.error_feedback;
  };
  EXPECT_FALSE(feedback(proto::WIRE_FLOAT32, ErrorFeedback::kAlways));
  EXPECT_TRUE(feedback(proto::WIRE_INT8_BLOCK, ErrorFeedback::kEightBits));
  EXPECT_TRUE(feedback(proto::WIRE_FLOAT8_BLOCK, ErrorFeedback::kEightBits));
  EXPECT_TRUE(feedback(proto::WIRE_TOP_BLOCK, ErrorFeedback::kEightBits));
  EXPECT_FALSE(feedback(proto::WIRE_FLOAT16, ErrorFeedback::kEightBits));
  EXPECT_FALSE(feedback(proto::WIRE_FLOAT16_BLOCK, ErrorFeedback::kEightBits));
  EXPECT_TRUE(feedback(proto::WIRE_FLOAT16, ErrorFeedback::kAlways));
  EXPECT_FALSE(feedback(proto::WIRE_INT8_BLOCK, ErrorFeedback::kNever));
}

TEST(TablePlanTest, UnlikeTablesDoNotShareABucket) {
  proto::Table half = TableWith(proto::Contract::ASYNC);
  half.mutable_spec()->set_gradient_format(proto::WIRE_FLOAT16);
  proto::Table local = TableWith(proto::Contract::LOCAL);
  local.mutable_spec()->mutable_contract()->set_local_steps(1);
  proto::Table half_back = TableWith(proto::Contract::ASYNC);
  half_back.mutable_spec()->set_value_format(proto::WIRE_FLOAT16);
  const auto plans = Plan({TableWith(proto::Contract::ASYNC), half, local, half_back}, 1, {});
  ASSERT_TRUE(plans.ok()) << plans.status();
  for (size_t i = 0; i < plans->size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE((*plans)[i].kind(), (*plans)[j].kind());
  }
}

TEST(TablePlanTest, MeansForTheProgramTravelInFormatsThatKeepSmallElements) {
  const HybridOptions options{.synchronization = Synchronization::kProgram};
  for (const WireFormat format : kWireFormats) {
    if (NeedsFeedback(format)) continue;
    proto::Table table = TableWith(proto::Contract::BSP);
    table.mutable_spec()->set_value_format(ToProto(format));
    EXPECT_TRUE(Plan({table}, 1, {}).ok()) << WireFormatName(format);
    const bool keeps = format == WireFormat::kFloat32 || format == WireFormat::kBfloat16 ||
                       format == WireFormat::kFloat16Block;
    const auto planned = Plan({table}, 1, options);
    EXPECT_EQ(planned.ok(), keeps) << WireFormatName(format);
    if (keeps) continue;
    EXPECT_THAT(planned.status().message(), HasSubstr("choose bfloat16 or scaled-float16"));
  }
}

TEST(TablePlanTest, AnUnknownFormatIsRefused) {
  proto::Table table = TableWith(proto::Contract::ASYNC);
  table.mutable_spec()->set_gradient_format(static_cast<proto::WireFormat>(17));
  EXPECT_EQ(Plan({table}, 1, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace covey::worker
