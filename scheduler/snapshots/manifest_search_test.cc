// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/manifest_search.h"

#include <string>

#include "absl/status/status.h"
#include "common/snapshot/testing/small_snapshot.h"
#include "common/store/store_requests.h"
#include "common/store/testing/memory_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::scheduler {
namespace {

using ::testing::HasSubstr;

// A store with two complete snapshots, and a newer one that has no manifest yet.
class ManifestSearchTest : public ::testing::Test {
 protected:
  ManifestSearchTest() {
    EXPECT_TRUE(SmallSnapshot::Make(3, 42).WriteTo(store_).ok());
    EXPECT_TRUE(SmallSnapshot::Make(3, 50).WriteTo(store_).ok());
    EXPECT_TRUE(SmallSnapshot::Make(4, 60).WriteTo(store_).ok());
    const SmallSnapshot unfinished = SmallSnapshot::Make(5, 70);
    EXPECT_TRUE(unfinished.WritePart(unfinished.files[0], store_).ok());
  }

  // The folder of the manifest that is found, or the error's message.
  std::string Find(const std::string& called) {
    if (const absl::Status status = search_.Begin(called); !status.ok()) {
      return std::string(status.message());
    }
    ManifestSearch::Result result;
    for (auto requests = search_.TakeRequests(); !requests.empty();
         requests = search_.TakeRequests()) {
      EXPECT_EQ(requests.size(), 1u);
      EXPECT_FALSE(result);
      EXPECT_TRUE(search_.OnStoreReply(AnswerStoreRequest(requests[0], store_), result));
    }
    if (!result) return "no result";
    code_ = result->status().code();
    return result->ok() ? (*result)->folder() : std::string(result->status().message());
  }

  MemoryFolder store_;
  ManifestSearch search_;
  absl::StatusCode code_ = absl::StatusCode::kOk;
};

TEST_F(ManifestSearchTest, FindsTheNewestThatIsComplete) {
  EXPECT_EQ(Find("latest"), "snapshot-000004-e60");
  EXPECT_EQ(Find("3"), "snapshot-000003-e50");
  EXPECT_EQ(Find("snapshot-000003-e42"), "snapshot-000003-e42");
}

TEST_F(ManifestSearchTest, SaysThatThereIsNone) {
  EXPECT_THAT(Find("5"), HasSubstr("there is no complete snapshot of id 5"));
  EXPECT_EQ(code_, absl::StatusCode::kNotFound);
  EXPECT_THAT(Find("17"), HasSubstr("of id 17"));
  EXPECT_THAT(Find("snapshot-000005-e70"), HasSubstr("no complete snapshot snapshot-000005-e70"));
  EXPECT_THAT(Find("import-gpt2"), HasSubstr("no complete snapshot import-gpt2"));
  EXPECT_THAT(Find("../secret"), HasSubstr("'../secret' is no snapshot; write latest"));
  for (const char* folder : {"snapshot-000003-e42", "snapshot-000003-e50", "snapshot-000004-e60"}) {
    ASSERT_TRUE(store_.Remove(folder, "MANIFEST").ok());
  }
  EXPECT_THAT(Find("latest"), HasSubstr("there is no complete snapshot of a job"));
}

TEST_F(ManifestSearchTest, RefusesADamagedAndAMisplacedManifest) {
  std::string& newest = store_.BytesOf("snapshot-000004-e60/MANIFEST");
  newest[newest.size() / 2] = static_cast<char>(newest[newest.size() / 2] ^ 1);
  EXPECT_THAT(Find("latest"), HasSubstr("snapshot-000004-e60/MANIFEST: "));
  EXPECT_EQ(code_, absl::StatusCode::kDataLoss);
  newest = store_.BytesOf("snapshot-000003-e42/MANIFEST");
  EXPECT_THAT(Find("latest"), HasSubstr("is the manifest of snapshot-000003-e42: move it back"));
}

TEST_F(ManifestSearchTest, RepliesToOthersAndToEarlierSearchesAreNotItsOwn) {
  ManifestSearch::Result result;
  Message foreign;
  foreign.envelope.mutable_store_reply()->set_id(1);
  ASSERT_TRUE(search_.Begin("latest").ok());
  const Message earlier = AnswerStoreRequest(search_.TakeRequests().at(0), store_);
  EXPECT_FALSE(search_.OnStoreReply(foreign, result));
  ASSERT_TRUE(search_.Begin("4").ok());
  EXPECT_FALSE(search_.OnStoreReply(earlier, result));
  const Message list = AnswerStoreRequest(search_.TakeRequests().at(0), store_);
  search_.Cancel();
  EXPECT_FALSE(search_.OnStoreReply(list, result));
  EXPECT_FALSE(result);
}

}  // namespace
}  // namespace covey::scheduler
