// SPDX-License-Identifier: Apache-2.0

// Crashes and faults at every operation of a snapshot's making: the newest complete snapshot is the
// one before or this one, and it is always whole.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/snapshot/snapshot_reader.h"
#include "common/snapshot/testing/small_snapshot.h"
#include "common/store/testing/memory_folder.h"

namespace covey {
namespace {

using Fault = MemoryFolder::Fault;
using Lie = MemoryFolder::Lie;
using Writer = std::function<absl::Status(const SmallSnapshot&, Folder&)>;

const SmallSnapshot& Before() {
  static const SmallSnapshot snapshot = SmallSnapshot::Make(1, 5);
  return snapshot;
}
const SmallSnapshot& After() {
  static const SmallSnapshot snapshot = SmallSnapshot::Make(2, 6);
  return snapshot;
}

absl::Status WriteInOrder(const SmallSnapshot& snapshot, Folder& store) {
  return snapshot.WriteTo(store);
}
absl::Status WriteManifestFirst(const SmallSnapshot& snapshot, Folder& store) {
  absl::Status status = snapshot.PublishManifest(store);
  for (const SmallSnapshot::File& file : snapshot.files) {
    if (status.ok()) status = snapshot.WritePart(file, store);
  }
  return status;
}

// The fault of a store; empty = its newest complete snapshot is whole, and at least `oldest`.
std::string WrongIn(Folder& store, uint64_t oldest) {
  const absl::StatusOr<std::vector<SnapshotSummary>> snapshots = ListSnapshots(store);
  if (!snapshots.ok()) return snapshots.status().ToString();
  uint64_t newest = 0;
  for (const SnapshotSummary& snapshot : *snapshots) {
    // A manifest without its files, or a damaged one: nobody can restore it, yet it was published.
    if (!snapshot.complete.ok() && !absl::IsNotFound(snapshot.complete)) {
      return snapshot.complete.ToString();
    }
    if (!snapshot.complete.ok()) continue;
    const absl::Status status =
        SnapshotReader::Open(store, snapshot.folder)->Verify([](uint64_t, uint64_t) {
          return absl::OkStatus();
        });
    if (!status.ok()) return status.ToString();
    newest = snapshot.id;
  }
  if (newest < oldest) return absl::StrCat("the newest is ", newest, ", not ", oldest);
  return "";
}

struct Outcome {
  int states = 0;
  int with_new_one = 0;
  std::vector<std::string> wrong;
};

// Cuts the power at every operation of `write`, and looks at every state that this may leave.
Outcome CrashEverywhere(const Writer& write, Lie lie) {
  Outcome outcome;
  bool ended = false;
  for (uint64_t number = 1; !ended; ++number) {
    MemoryFolder store(lie);
    for (const auto& [path, bytes] : Before().Bytes()) store.AddFile(path, bytes);
    store.PlanFault(number, Fault::kPowerCut);
    ended = write(After(), store).ok();
    store.ForEachCrashState([&](MemoryFolder& crashed, const std::string& state) {
      const std::string wrong = WrongIn(crashed, ended ? 2 : 1);
      if (!wrong.empty()) outcome.wrong.push_back(absl::StrCat(number, ", ", state, ": ", wrong));
      outcome.with_new_one += WrongIn(crashed, 2).empty() ? 1 : 0;
      ++outcome.states;
    });
  }
  return outcome;
}

TEST(CrashTest, LeavesWholeSnapshots) {
  const Outcome outcome = CrashEverywhere(WriteInOrder, Lie::kNone);
  EXPECT_TRUE(outcome.wrong.empty()) << outcome.wrong.size() << ": " << outcome.wrong[0];
  EXPECT_GT(outcome.states, 500);
  EXPECT_GT(outcome.with_new_one, 3);
  RecordProperty("states", outcome.states);
}

TEST(CrashTest, FindsAManifestThatComesFirst) {
  EXPECT_FALSE(CrashEverywhere(WriteManifestFirst, Lie::kNone).wrong.empty());
}

TEST(CrashTest, FindsFoldersThatAreNotSynced) {
  EXPECT_FALSE(CrashEverywhere(WriteInOrder, Lie::kForgetsFolderSyncs).wrong.empty());
}

TEST(CrashTest, FaultsLeaveWholeSnapshots) {
  for (const Fault fault : {Fault::kIoError, Fault::kNoSpace, Fault::kShortWrite}) {
    int failed = 0;
    MemoryFolder counting;
    ASSERT_TRUE(After().WriteTo(counting).ok());
    for (uint64_t number = 1; number <= counting.operations(); ++number) {
      MemoryFolder store;
      for (const auto& [path, bytes] : Before().Bytes()) store.AddFile(path, bytes);
      store.PlanFault(number, fault);
      const bool written = After().WriteTo(store).ok();
      failed += written ? 0 : 1;
      EXPECT_EQ("", WrongIn(store, written ? 2 : 1)) << number;
      store.ForEachCrashState([&](MemoryFolder& crashed, const std::string& state) {
        EXPECT_EQ("", WrongIn(crashed, written ? 2 : 1)) << number << ", " << state;
      });
    }
    EXPECT_EQ(fault == Fault::kShortWrite, failed == 0);
  }
}

TEST(CrashTest, ASnapshotIsRemovedWithoutATrace) {
  MemoryFolder counting;
  ASSERT_TRUE(After().WriteTo(counting).ok());
  const uint64_t written = counting.operations();
  ASSERT_TRUE(counting.Remove(After().manifest.folder(), "MANIFEST").ok());
  for (uint64_t number = 1; number <= counting.operations() - written + 1; ++number) {
    MemoryFolder store;
    for (const auto& [path, bytes] : Before().Bytes()) store.AddFile(path, bytes);
    for (const auto& [path, bytes] : After().Bytes()) store.AddFile(path, bytes);
    store.PlanFault(number, Fault::kPowerCut);
    store.Remove(After().manifest.folder(), "MANIFEST").IgnoreError();
    store.ForEachCrashState([&](MemoryFolder& crashed, const std::string& state) {
      EXPECT_EQ("", WrongIn(crashed, 1)) << number << ", " << state;
    });
  }
}

}  // namespace
}  // namespace covey
