// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/rows_at_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/cluster/limits.h"
#include "common/net/frame_checksum.h"
#include "common/table/key_list.h"
#include "common/tensor/codec.h"
#include "common/tensor/wire_format.h"
#include "common/tensor/wire_format_proto.h"
#include "tests/sim/checkers/step_rows.h"

namespace covey::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kGeneration = 7;
// Of the table's only shard. Elements 3, 3 + kRowClasses, … share their rows.
constexpr uint64_t kElements[] = {3, 3 + kRowClasses, 3 + 2 * kRowClasses, 3 + 3 * kRowClasses};

proto::Table TableWith(const proto::SparseRows& rows) {
  proto::Table table;
  table.set_id(1);
  *table.mutable_spec()->mutable_sparse() = rows;
  table.mutable_spec()->mutable_sparse()->set_width(kRowColumns);
  proto::Shard& shard = *table.add_shards();
  shard.set_element_count(kKeySlots);
  shard.set_generation(kGeneration);
  return table;
}

Message PushOf(uint64_t step, uint64_t element, WireFormat format = WireFormat::kFloat32,
               uint32_t group = 1) {
  Message message;
  proto::PushRequest& push = *message.envelope.mutable_push_request();
  push.mutable_id()->set_table(1);
  push.mutable_id()->set_producer_kind(proto::PushId::GROUP);
  push.mutable_id()->set_producer(group);
  push.mutable_id()->set_sequence(step);
  push.set_format(ToProto(format));
  std::vector<uint64_t> keys = KeysOfStep(TableWith({}), element);
  std::sort(keys.begin(), keys.end());
  EncodedKeys encoded = Encoded(keys);
  SetName(encoded);
  *push.mutable_keys() = encoded.list;
  message.frames.push_back(encoded.frame);
  std::vector<float> rows(keys.size() * kRowColumns);
  for (size_t row = 0; row < keys.size(); ++row) rows[row * kRowColumns + ColumnOf(element)] = -1;
  std::vector<uint8_t> bytes(EncodedRowBytes(format, kRowColumns, keys.size()));
  EncodeRows(format, kRowColumns, rows, bytes);
  message.frames.push_back(Buffer::CopyOf(bytes));
  return message;
}

TEST(StepRowsTest, AStepIsRecognisedByItsRows) {
  PushedElements elements;
  for (const uint64_t element : {0, 3, 31, 32, 2047}) {
    for (const WireFormat format : kWireFormats) {
      const Message push = PushOf(1, element, format);
      elements.Note(push);
      EXPECT_EQ(elements.ElementOf(push), element);
    }
  }
  Message query = PushOf(1, 3);
  query.frames.pop_back();
  EXPECT_EQ(elements.ElementOf(query), std::nullopt);
  Message named = PushOf(1, 3);
  named.frames.erase(named.frames.begin());
  named.envelope.mutable_push_request()->mutable_keys()->set_encoding(proto::KeyList::NAMED);
  EXPECT_EQ(elements.ElementOf(named), 3);
  EXPECT_EQ(PushedElements().ElementOf(named), std::nullopt);
}

TEST(StepRowsTest, HomeRowsShowWhatADenseTableWould) {
  const proto::Table table = TableWith({});
  std::map<uint64_t, std::vector<float>> rows;
  rows[HomeKeysOf(table.shards(0))[3]].resize(kRowColumns);
  rows[HomeKeysOf(table.shards(0))[3]][1] = 1;
  std::vector<float> expected(kRowClasses * kRowColumns);
  expected[3 + kRowClasses] = 1;
  EXPECT_EQ(ElementsOf(rows, table.shards(0), expected.size()), expected);
}

// Group 1 has pushed steps 1 to 4, applied at versions 1 to 4, and a snapshot is cut after step 3.
class RowsAtCutTest : public testing::Test {
 protected:
  RowsAtCutTest() {
    Message view;
    view.envelope.mutable_header()->set_node(kSchedulerNode.value());
    view.set_to({NodeId(), 0});
    *view.envelope.mutable_watch_view_reply()->mutable_view()->add_tables() = TableWith({});
    checker_.OnSend(absl::UnixEpoch(), view);
    for (uint64_t step = 1; step <= 4; ++step) Push(1, step, kElements[step - 1], step);
  }
  void Push(uint32_t group, uint64_t step, uint64_t element, uint64_t version) {
    checker_.OnSend(absl::UnixEpoch(), PushOf(step, element, WireFormat::kFloat32, group));
    Message reply;
    proto::PushReply& push = *reply.envelope.mutable_push_reply();
    push.mutable_id()->set_table(1);
    push.mutable_id()->set_producer_kind(proto::PushId::GROUP);
    push.mutable_id()->set_producer(group);
    push.mutable_id()->set_sequence(step);
    push.set_durable(true);
    push.set_applied_version(version);
    push.mutable_state()->set_generation(kGeneration);
    checker_.OnSend(absl::UnixEpoch(), reply);
  }
  // In all rows of its keys.
  static void Set(RowsAtCut::Rows& rows, uint64_t element, float value) {
    for (const uint64_t key : KeysOfStep(TableWith({}), element)) {
      rows[key].resize(kRowColumns);
      rows[key][ColumnOf(element)] = value;
    }
  }
  // The rows of a snapshot that holds these steps.
  static RowsAtCut::Rows Holding(const std::vector<uint64_t>& steps) {
    RowsAtCut::Rows rows;
    for (const uint64_t step : steps) Set(rows, kElements[step - 1], 1);
    return rows;
  }
  std::vector<std::string> Check(const RowsAtCut::Rows& rows, const proto::SparseRows& life = {},
                                 uint64_t version = 3) {
    Violations violations;
    std::swap(violations, violations_);
    proto::Table table = TableWith(life);
    checker_.Check("snapshot", table, {{TableId(1), ShardIndex(0)}, kGeneration}, version,
                   {{GroupId(1), Step(3)}}, rows);
    return violations_.found();
  }
  // That of the rows that all steps have.
  static std::vector<float>& HomeRow(RowsAtCut::Rows& rows) {
    return rows.at(HomeKeysOf(TableWith({}).shards(0))[3]);
  }

  Violations violations_;
  RowsAtCut checker_{{.averages = true}, violations_};
};

TEST_F(RowsAtCutTest, RowsHoldThePushesUpToTheCut) {
  EXPECT_THAT(Check(Holding({1, 2, 3})), IsEmpty());
  EXPECT_GT(checker_.checked(), 1u);
}

TEST_F(RowsAtCutTest, APushIsNotLost) {
  EXPECT_THAT(
      Check(Holding({1, 2})),
      ElementsAre(HasSubstr("it holds the push of version 1, and lacks that of version 3")));
  EXPECT_THAT(Check(Holding({2, 3})), ElementsAre(HasSubstr("lacks the pushes of 1 versions")));
}

TEST_F(RowsAtCutTest, ARowIsNotLost) {
  RowsAtCut::Rows rows = Holding({1, 2, 3});
  rows.erase(HomeKeysOf(TableWith({}).shards(0))[3]);
  EXPECT_THAT(Check(rows), ElementsAre(HasSubstr("lacks the pushes of 3 versions")));
}

TEST_F(RowsAtCutTest, APushIsNotInTwice) {
  RowsAtCut::Rows rows = Holding({1, 2, 3});
  HomeRow(rows)[ColumnOf(kElements[1])] = 2;
  EXPECT_THAT(Check(rows), ElementsAre(HasSubstr("step 2 of group 1 is in with 2")));
}

TEST_F(RowsAtCutTest, APushHasItsShareOfItsUpdate) {
  RowsAtCut::Rows rows = Holding({1, 2, 3});
  HomeRow(rows)[ColumnOf(kElements[1])] = 0.5f;
  EXPECT_THAT(Check(rows), ElementsAre(HasSubstr("step 2 of group 1 is in with a share of 1 of 2, "
                                                 "and 1 to 1 pushes of its update")));
}

// Of other keys than those of step 2, in whose update it is.
TEST_F(RowsAtCutTest, APushShouldShareWithAllOfItsUpdateOrWithThoseThatHoldTheRow) {
  constexpr uint64_t kOther = 4;
  Push(2, 1, kOther, 2);
  proto::SparseRows of_holders;
  of_holders.set_round_mean(proto::SparseRows::OF_HOLDERS);
  RowsAtCut::Rows rows = Holding({1, 2, 3});
  Set(rows, kElements[1], 0.5f);
  Set(rows, kOther, 0.5f);
  EXPECT_THAT(Check(rows), IsEmpty());
  EXPECT_THAT(Check(rows, of_holders), ElementsAre(HasSubstr("a share of 1 of 2, and 1 to 1")));
  Set(rows, kElements[1], 1);
  Set(rows, kOther, 1);
  EXPECT_THAT(Check(rows), ElementsAre(HasSubstr("a share of 1 of 1, and 2 to 2")));
  EXPECT_THAT(Check(rows, of_holders), IsEmpty());
}

TEST_F(RowsAtCutTest, APushBeyondTheCutIsNotIn) {
  EXPECT_THAT(Check(Holding({1, 2, 3, 4})), ElementsAre(HasSubstr("beyond the cut at step 3")));
}

TEST_F(RowsAtCutTest, APushOfALaterVersionIsNotIn) {
  EXPECT_THAT(Check(Holding({1, 2, 3}), {}, 2), ElementsAre(HasSubstr("is in at version 2")));
}

TEST_F(RowsAtCutTest, ARowHoldsPushesWithItsKeyOnly) {
  RowsAtCut::Rows rows = Holding({1, 2, 3});
  HomeRow(rows)[60] = 1;
  EXPECT_THAT(Check(rows), ElementsAre(HasSubstr("a push without its key")));
  rows = Holding({1, 2, 3});
  rows[5].resize(kRowColumns);
  EXPECT_THAT(Check(rows), ElementsAre(HasSubstr("key 5: nobody pushed it")));
}

TEST_F(RowsAtCutTest, RowsThatAreMadeLateLackTheirFirstPushes) {
  proto::SparseRows late;
  late.set_admit_after(2);
  EXPECT_THAT(Check(Holding({2, 3}), late), IsEmpty());
  EXPECT_THAT(Check(Holding({3}), late), ElementsAre(HasSubstr("is to be made by update 2")));
}

TEST_F(RowsAtCutTest, RowsThatWereEvictedBeginAgain) {
  proto::SparseRows few;
  few.set_rows_max(10);
  few.set_when_full(proto::SparseRows::EVICT);
  EXPECT_THAT(Check(Holding({3}), few), IsEmpty());
  EXPECT_THAT(Check({}, few), IsEmpty());
  EXPECT_THAT(
      Check(Holding({1, 3}), few),
      ElementsAre(HasSubstr("it holds the push of version 1, and lacks that of version 2")));
}

}  // namespace
}  // namespace covey::sim
