// SPDX-License-Identifier: Apache-2.0
#include "scheduler/log/commit_pipeline.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/state/cluster_state_fixture.h"

namespace covey::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CommitPipelineTest : public ::testing::Test {
 protected:
  // An edit of the view, which then has this number of nodes.
  void Edit() {
    Transaction change(state_);
    change.EditView().add_nodes();
    change.Add(WorkerStandsBy{.worker = "worker-0"});
    change.Commit();
  }
  static Message Reply(uint64_t number) {
    Message reply;
    reply.envelope.mutable_header()->set_request_id(number);
    reply.envelope.mutable_status_reply();
    return reply;
  }
  static std::vector<uint64_t> Numbers(const std::vector<Message>& messages) {
    std::vector<uint64_t> numbers;
    for (const Message& message : messages) {
      numbers.push_back(message.envelope.header().request_id());
    }
    return numbers;
  }
  // The numbers of the replies that leave at once.
  std::vector<uint64_t> Answer(uint64_t number) {
    Outbox outbox;
    pipeline_.SendWhenDurable(Reply(number), outbox);
    return Numbers(outbox.TakeMessages());
  }
  // The index of the record to be written; 0 = none.
  static uint64_t Written(Outbox& outbox) {
    const std::vector<Message> messages = outbox.TakeMessages();
    return messages.empty() ? 0 : messages[0].envelope.disk_append().index();
  }
  uint64_t Flush() {
    Outbox outbox;
    pipeline_.Flush(now_, outbox);
    return Written(outbox);
  }
  uint64_t Retry() {
    Outbox outbox;
    pipeline_.Retry(now_, outbox);
    return Written(outbox);
  }
  std::vector<Message> AnswerDisk(uint64_t index, const absl::Status& status = absl::OkStatus()) {
    Message message;
    message.envelope.set_from_loop(kDiskLoop);
    message.envelope.mutable_disk_durable()->set_index(index);
    SetStatus(status, message);
    return pipeline_.OnDiskDurable(now_, message);
  }

  absl::Time now_ = absl::UnixEpoch();
  TestState state_;
  CommitPipeline pipeline_{state_};
};

TEST_F(CommitPipelineTest, WithoutACommitNothingIsWrittenAndRepliesLeaveAtOnce) {
  EXPECT_EQ(Flush(), 0u);
  EXPECT_THAT(Answer(1), ElementsAre(1));
}

TEST_F(CommitPipelineTest, TellsHowLongTheDiskTook) {
  Edit();
  Flush();
  now_ += absl::Milliseconds(40);
  AnswerDisk(1);
  Edit();
  Flush();
  now_ += absl::Seconds(7);
  AnswerDisk(2, absl::InternalError("full"));
  EXPECT_EQ(pipeline_.write_times().sum(), absl::Milliseconds(40)) << "the other write has failed";
  now_ += absl::Seconds(7);
  const uint64_t again = Retry();
  now_ += absl::Milliseconds(2);
  AnswerDisk(again);
  EXPECT_EQ(pipeline_.write_times().sum(), absl::Milliseconds(42));
  EXPECT_THAT(pipeline_.write_times().counts(), ElementsAre(0, 1, 0, 0, 1, 0, 0, 0, 0));
}

TEST_F(CommitPipelineTest, RepliesAndTheViewWaitForTheRecordWithEverythingBeforeThem) {
  Edit();
  EXPECT_THAT(Answer(1), IsEmpty());
  EXPECT_EQ(Flush(), 1u);
  EXPECT_THAT(Answer(2), IsEmpty()) << "it may tell of what is being written";
  Edit();
  EXPECT_THAT(Answer(3), IsEmpty());
  EXPECT_EQ(Flush(), 0u) << "one record at a time";
  EXPECT_EQ(pipeline_.published().nodes_size(), 0);
  EXPECT_THAT(Numbers(AnswerDisk(1)), ElementsAre(1, 2));
  EXPECT_EQ(pipeline_.published().nodes_size(), 1);
  EXPECT_EQ(Flush(), 2u);
  EXPECT_THAT(Numbers(AnswerDisk(2)), ElementsAre(3));
  EXPECT_EQ(pipeline_.published().nodes_size(), 2);
}

TEST_F(CommitPipelineTest, OnlyTheAnswerThatIsWaitedForCounts) {
  EXPECT_THAT(AnswerDisk(0), IsEmpty());
  Edit();
  Answer(1);
  Flush();
  EXPECT_THAT(AnswerDisk(7), IsEmpty());
  EXPECT_TRUE(pipeline_.is_writing());
  EXPECT_THAT(Numbers(AnswerDisk(1)), ElementsAre(1));
  EXPECT_THAT(AnswerDisk(1), IsEmpty());
}

TEST_F(CommitPipelineTest, AFailureReleasesAllRepliesAsUnavailable) {
  Edit();
  Answer(1);
  Flush();
  Edit();
  Answer(2);
  const std::vector<Message> released = AnswerDisk(1, absl::InternalError("no space left"));
  EXPECT_THAT(Numbers(released), ElementsAre(1, 2));
  for (const Message& reply : released) {
    EXPECT_TRUE(absl::IsUnavailable(StatusOf(reply)));
    EXPECT_THAT(std::string(StatusOf(reply).message()), HasSubstr("no space left"));
  }
  EXPECT_EQ(pipeline_.published().nodes_size(), 0);
  EXPECT_EQ(Flush(), 0u);
  EXPECT_FALSE(pipeline_.disk_failure().ok());
  EXPECT_THAT(Answer(3), ElementsAre(3)) << "a refusal waits for nothing";
}

TEST_F(CommitPipelineTest, AfterAFailureTheNextRecordHoldsAllThatWasDecided) {
  Edit();
  Flush();
  Edit();
  AnswerDisk(1, absl::InternalError("no space left"));
  EXPECT_EQ(Retry(), 2u);
  EXPECT_EQ(Retry(), 0u) << "one record at a time";
  EXPECT_FALSE(pipeline_.disk_failure().ok()) << "nothing is known to be durable yet";
  EXPECT_THAT(Answer(3), ElementsAre(3)) << "refused";
  AnswerDisk(2, absl::InternalError("no space left"));
  EXPECT_EQ(pipeline_.published().nodes_size(), 0);
  EXPECT_EQ(Retry(), 3u);
  AnswerDisk(3);
  EXPECT_TRUE(pipeline_.disk_failure().ok());
  EXPECT_EQ(pipeline_.published().nodes_size(), 2);
  EXPECT_EQ(Flush(), 0u);
  EXPECT_EQ(Retry(), 0u) << "nothing has failed";
}

}  // namespace
}  // namespace covey::scheduler
