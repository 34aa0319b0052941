// SPDX-License-Identifier: Apache-2.0

// Snapshots that refer to files of earlier ones: what is named as a base, what stays in the store.

#include <string>
#include <vector>

#include "common/snapshot/manifest.h"
#include "common/snapshot/snapshot_reader.h"
#include "gmock/gmock.h"
#include "scheduler/snapshots/snapshots.h"
#include "scheduler/snapshots/snapshots_fixture.h"

namespace covey::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kUsed[] = "part-3-1-000.cvp";

class SnapshotReferencesTest : public SnapshotsTest {
 protected:
  SnapshotReferencesTest() { options_.kept = 1; }

  // Makes a snapshot of all, and one in which server-1 refers to the snapshot before; its folder.
  std::string MakeWhole() {
    PassUntilOrdered();
    last_ = SmallSnapshot::Make(order().id(), order().epoch());
    StorePart(0);
    StorePart(1);
    return last_.manifest.folder();
  }
  std::string MakeReferring() {
    PassUntilOrdered();
    last_ = SmallSnapshot::MakeAfter(last_, order().id(), order().epoch());
    EXPECT_TRUE(last_.WritePart(last_.files[0], store_).ok());
    machine_->OnReport(now_, ReportOf(0));
    proto::SnapshotReportRequest report;
    report.set_snapshot(order().id());
    for (const proto::SnapshotShard& shard : last_.manifest.shards()) {
      if (!shard.folder().empty()) *report.add_shards() = shard;
    }
    *report.add_files() = last_.manifest.files(1);
    machine_->OnReport(now_, report);
    AnswerStore();
    return last_.manifest.folder();
  }
  std::vector<std::string> Names(const std::string& folder) {
    std::vector<std::string> names;
    const auto entries = store_.List(folder);
    if (!entries.ok()) return {"none"};
    for (const FolderEntry& entry : *entries) names.push_back(entry.name);
    return names;
  }
  // The snapshot is complete, and every byte of it is there.
  void ExpectIntact(const std::string& folder) {
    const auto reader = SnapshotReader::Open(store_, folder);
    ASSERT_TRUE(reader.ok()) << reader.status();
    const absl::Status status = reader->Verify([](uint64_t, uint64_t) { return absl::OkStatus(); });
    EXPECT_TRUE(status.ok()) << status;
  }

  // As in SnapshotsTest; the first call of a removal of `unremovable_` meets an I/O error.
  void AnswerStore() override {
    for (auto requests = machine_->TakeRequests(); !requests.empty();
         requests = machine_->TakeRequests()) {
      for (const Message& request : requests) {
        const proto::StoreRequest& store_request = request.envelope.store_request();
        if (store_request.has_remove() && store_request.path() == unremovable_) {
          store_.PlanFault(store_.operations() + 1, MemoryFolder::Fault::kIoError);
        }
        machine_->OnStoreReply(now_, AnswerStoreRequest(request, store_));
      }
    }
  }

  SmallSnapshot last_;
  std::string unremovable_;  // the folder of a snapshot
};

TEST_F(SnapshotReferencesTest, TheOrderNamesTheNewestCompleteSnapshot) {
  Start();
  PassUntilOrdered();
  EXPECT_EQ(order().base(), "");
  const std::string first = MakeWhole();
  PassUntilOrdered();
  EXPECT_EQ(order().base(), first);
  FailPart("the disk is full");
  PassUntilOrdered();
  EXPECT_EQ(order().base(), first);
  const std::string next = MakeReferring();
  ExpectIntact(next);
  EXPECT_GT(Status().reused_bytes(), 0u);
  EXPECT_LT(Status().bytes(), last_.Bytes().at(next + "/part-2-1-000.cvp").size() + 1);
  EXPECT_THAT(state_.News(), HasSubstr(" in earlier snapshots,"));
  PassUntilOrdered();
  EXPECT_EQ(order().base(), next);
}

TEST_F(SnapshotReferencesTest, FilesStayAsLongAsTheyAreNeeded) {
  Start();
  const std::string first = MakeWhole();
  const std::string second = MakeReferring();
  EXPECT_THAT(Names(first), ElementsAre(kUsed)) << "the manifest and the other file are gone";
  ExpectIntact(second);
  const std::string third = MakeReferring();
  EXPECT_THAT(Names(first), ElementsAre(kUsed));
  EXPECT_THAT(Names(second), ElementsAre("none"));
  ExpectIntact(third);
  const std::string last = MakeWhole();
  EXPECT_THAT(Names(""), ElementsAre(last));
  ExpectIntact(last);
}

TEST_F(SnapshotReferencesTest, ARestartedSchedulerKnowsWhatIsNeeded) {
  Start();
  const std::string first = MakeWhole();
  const std::string second = MakeReferring();
  Start();
  EXPECT_THAT(Names(first), ElementsAre(kUsed));
  ExpectIntact(second);
  const std::string third = MakeReferring();
  EXPECT_THAT(Names(first), ElementsAre(kUsed));
  ExpectIntact(third);
  Start();
  const std::string last = MakeWhole();
  EXPECT_THAT(Names(""), ElementsAre(last));
}

// Somebody has deleted by hand what the servers refer to.
TEST_F(SnapshotReferencesTest, AReferenceToNothingIsNotPublished) {
  Start();
  const std::string first = MakeWhole();
  ASSERT_TRUE(store_.Remove(first, kManifestName).ok());
  const std::string broken = MakeReferring();
  EXPECT_THAT(state_.News(), HasSubstr("it refers to " + first + "/" + kUsed + ", which is gone"));
  EXPECT_TRUE(absl::IsNotFound(SnapshotReader::Open(store_, broken).status()));
  PassUntilOrdered();
  EXPECT_EQ(order().base(), "") << "all is stored again";
  const std::string whole = MakeWhole();
  ExpectIntact(whole);
  PassUntilOrdered();
  EXPECT_EQ(order().base(), whole);
}

TEST_F(SnapshotReferencesTest, AFileThatWasCutOffIsNotReferredTo) {
  Start();
  const std::string first = MakeWhole();
  store_.BytesOf(first + "/" + kUsed).resize(128);
  MakeReferring();
  EXPECT_THAT(state_.News(), HasSubstr("which is gone or cut off"));
}

TEST_F(SnapshotReferencesTest, NothingIsRemovedThatAnUnreadableSnapshotMayNeed) {
  Start();
  const std::string first = MakeWhole();
  const std::string second = MakeReferring();
  store_.BytesOf(second + "/MANIFEST")[40] ^= 1;
  Start();
  EXPECT_THAT(Names(first), ElementsAre(kUsed));
  const std::string last = MakeWhole();
  EXPECT_THAT(Names(""), ElementsAre(last)) << "the unreadable one is old, too";
}

TEST_F(SnapshotReferencesTest, ARemovalThatFailedIsRepeated) {
  Start();
  const std::string first = MakeWhole();
  unremovable_ = first;
  const std::string second = MakeWhole();
  EXPECT_THAT(Names(""), ElementsAre(first, second));
  ExpectIntact(second);
  unremovable_.clear();
  const std::string last = MakeWhole();
  EXPECT_THAT(Names(""), ElementsAre(last));
}

// The snapshot that needs them is old as well, and still there.
TEST_F(SnapshotReferencesTest, FilesStayUntilTheRemovalOfTheLastThatNeedsThemIsDone) {
  Start();
  const std::string first = MakeWhole();
  const std::string second = MakeReferring();
  unremovable_ = second;
  const std::string third = MakeWhole();
  ExpectIntact(second);
  EXPECT_THAT(Names(first), ElementsAre(kUsed));
  unremovable_.clear();
  const std::string last = MakeWhole();
  EXPECT_THAT(Names(""), ElementsAre(last));
}

// A folder that cannot be listed for a moment is not taken for an incomplete snapshot.
TEST_F(SnapshotReferencesTest, AnErrorAtTheStartRemovesNothing) {
  Start();
  const std::string first = MakeWhole();
  options_.kept = 2;
  Start();
  const std::string second = MakeReferring();
  // The store's list, then that of the first folder.
  for (uint64_t operation = 1; operation < 8; ++operation) {
    store_.PlanFault(store_.operations() + operation, MemoryFolder::Fault::kIoError);
    Start();
    store_.ForgetFaults();
    ExpectIntact(first);
    ExpectIntact(second);
  }
}

}  // namespace
}  // namespace covey::scheduler
