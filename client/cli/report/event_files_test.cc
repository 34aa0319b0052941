// SPDX-License-Identifier: Apache-2.0
#include "client/cli/report/event_files.h"

#include <glob.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/console/text_file.h"
#include "client/cli/testing/status_fixture.h"
#include "common/format/event_record.h"

namespace covey::cli {
namespace {

using testing::HasSubstr;

const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

// Paths of all event files in the folder.
std::vector<std::string> FilesIn(const std::string& folder) {
  glob_t found;
  std::vector<std::string> paths;
  if (glob((folder + "/group-*/events.out.tfevents.*").c_str(), 0, nullptr, &found) == 0) {
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  return paths;
}

class EventFilesTest : public testing::Test {
 protected:
  void Add(absl::Duration elapsed, uint64_t step) {
    status_.mutable_nodes(2)->mutable_progress()->set_step(step);
    history_.Add(elapsed, status_);
  }
  // The record that Add(elapsed, step) leads to.
  static std::string RecordOf(absl::Duration elapsed, uint64_t step) {
    const EventScalar scalars[] = {
        {"loss", 0.4},
        {"samples", 3904},
        {"samples_per_second", 2500},
        {"staleness", 1.5},
        {"step", static_cast<double>(step)},
        {"steps_aside", 4},
        {"seconds_per_step/compute", 0.06},
        {"seconds_per_step/wait", 0.02},
    };
    return ScalarsRecord(kStart + elapsed, step, scalars);
  }

  const std::unique_ptr<TemporaryFolder> folder_ = TemporaryFolder::Make().value();
  const std::string path_ = folder_->path() + "/" + "a/b";
  proto::StatusReply status_ = StatusForTests();
  RunHistory history_;
  EventFiles files_{path_, kStart};
};

TEST_F(EventFilesTest, PointsAreInTheFileAtOnce) {
  ASSERT_EQ(files_.Write(history_), absl::OkStatus());
  EXPECT_EQ(FilesIn(path_).size(), 0u) << "no group has finished a step";

  Add(absl::Seconds(2), 31);
  ASSERT_EQ(files_.Write(history_), absl::OkStatus());
  const std::vector<std::string> paths = FilesIn(path_);
  ASSERT_EQ(paths.size(), 1u) << "group 1 has finished no step";
  EXPECT_THAT(paths[0], HasSubstr("a/b/group-0/events.out.tfevents.1700000000."));
  const std::string first = absl::StrCat(EventFileStart(kStart), RecordOf(absl::Seconds(2), 31));
  EXPECT_EQ(ReadTextFile(paths[0]).value(), first);

  ASSERT_EQ(files_.Write(history_), absl::OkStatus());
  EXPECT_EQ(ReadTextFile(paths[0]).value(), first) << "nothing new";

  Add(absl::Milliseconds(2500), 40);
  ASSERT_EQ(files_.Write(history_), absl::OkStatus());
  EXPECT_EQ(ReadTextFile(paths[0]).value(),
            absl::StrCat(first, RecordOf(absl::Milliseconds(2500), 40)));
  EXPECT_EQ(FilesIn(path_), paths);
}

TEST_F(EventFilesTest, AllPointsAreWrittenWhereTheHistoryKeepsSome) {
  std::string expected = EventFileStart(kStart);
  for (uint64_t step = 31; step < 31 + RunHistory::kPointsMax + 10; ++step) {
    Add(absl::Seconds(step), step);
    ASSERT_EQ(files_.Write(history_), absl::OkStatus());
    expected += RecordOf(absl::Seconds(step), step);
  }
  EXPECT_EQ(ReadTextFile(FilesIn(path_).at(0)).value(), expected);
}

TEST_F(EventFilesTest, SaysWhichFileCannotBeWritten) {
  ASSERT_EQ(WriteTextFile(folder_->path() + "/a", "a file"), absl::OkStatus());
  Add(absl::Seconds(2), 31);
  EXPECT_THAT(files_.Write(history_).message(), HasSubstr(folder_->path() + "/a"));
}

TEST_F(EventFilesTest, AFileThatIsGoneIsNotBegunAgain) {
  Add(absl::Seconds(2), 31);
  ASSERT_EQ(files_.Write(history_), absl::OkStatus());
  const std::string path = FilesIn(path_).at(0);
  ASSERT_EQ(unlink(path.c_str()), 0);
  Add(absl::Seconds(3), 32);
  EXPECT_THAT(files_.Write(history_).message(), HasSubstr(path));
  EXPECT_EQ(FilesIn(path_).size(), 0u);
}

}  // namespace
}  // namespace covey::cli
