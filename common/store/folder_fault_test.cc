// SPDX-License-Identifier: Apache-2.0

// The rules of folder.h when a system call fails or the power is cut, at every operation.

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "common/store/folder.h"
#include "common/store/testing/memory_folder.h"

namespace covey {
namespace {

using Fault = MemoryFolder::Fault;

constexpr char kPath[] = "s/part";

Folder::Bytes BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

absl::Status Append(Folder& folder, uint64_t offset, const std::string& bytes) {
  const Folder::Bytes part = BytesOf(bytes);
  return folder.Append(kPath, offset, {&part, 1});
}

std::string Content(Folder& folder) {
  const absl::StatusOr<Buffer> read = folder.Read(kPath, 0, 0);
  if (!read.ok()) return absl::StatusCodeToString(read.status().code());
  return {reinterpret_cast<const char*>(read->data()), read->size()};
}

// OK = all of it is durable.
absl::Status WriteAndSync(Folder& folder) {
  absl::Status status = Append(folder, 0, "first ");
  if (status.ok()) status = Append(folder, 6, "second");
  return status.ok() ? folder.Sync(kPath) : status;
}

constexpr char kWritten[] = "first second";

uint64_t Operations() {
  MemoryFolder folder;
  EXPECT_TRUE(WriteAndSync(folder).ok());
  return folder.operations();
}

TEST(FolderFaultTest, WhatWasSyncedSurvivesEveryCrash) {
  MemoryFolder folder;
  ASSERT_TRUE(WriteAndSync(folder).ok());
  int states = 0;
  folder.ForEachCrashState([&](MemoryFolder& crashed, const std::string& state) {
    EXPECT_EQ(kWritten, Content(crashed)) << state;
    ++states;
  });
  EXPECT_GE(states, 2);
}

TEST(FolderFaultTest, WithoutSyncsOfFoldersItDoesNot) {
  MemoryFolder folder(MemoryFolder::Lie::kForgetsFolderSyncs);
  ASSERT_TRUE(WriteAndSync(folder).ok());
  int lost = 0;
  folder.ForEachCrashState([&](MemoryFolder& crashed, const std::string&) {
    lost += Content(crashed) == "NOT_FOUND" ? 1 : 0;
  });
  EXPECT_GT(lost, 0);
}

TEST(FolderFaultTest, AnyFailureEndsTheFile) {
  for (const Fault fault : {Fault::kIoError, Fault::kNoSpace}) {
    for (uint64_t number = 1; number <= Operations(); ++number) {
      MemoryFolder folder;
      folder.PlanFault(number, fault);
      const absl::Status status = WriteAndSync(folder);
      ASSERT_FALSE(status.ok()) << number;
      EXPECT_EQ(fault == Fault::kNoSpace, absl::IsResourceExhausted(status)) << status;
      // From the creation of the file on, which is operation 2.
      if (number > 2) {
        EXPECT_EQ(status, folder.Sync(kPath)) << number;
        EXPECT_EQ(status, Append(folder, 0, "again")) << number;
        EXPECT_EQ(status, folder.Read(kPath, 0, 0).status()) << number;
        EXPECT_TRUE(folder.Remove(kPath, "").ok()) << number;
      }
      EXPECT_TRUE(WriteAndSync(folder).ok()) << number;
      EXPECT_EQ(kWritten, Content(folder)) << number;
    }
  }
}

TEST(FolderFaultTest, ShortWritesGoOn) {
  for (uint64_t number = 1; number <= Operations() + 4; ++number) {
    MemoryFolder folder;
    folder.PlanFault(number, Fault::kShortWrite);
    folder.PlanFault(number + 1, Fault::kShortWrite);
    ASSERT_TRUE(WriteAndSync(folder).ok()) << number;
    EXPECT_EQ(kWritten, Content(folder)) << number;
  }
}

TEST(FolderFaultTest, APublishedFileIsWholeOrNotThere) {
  MemoryFolder counting;
  ASSERT_TRUE(counting.Publish(kPath, BytesOf(kWritten)).ok());
  int whole = 0;
  int absent = 0;
  for (uint64_t number = 1; number <= counting.operations() + 1; ++number) {
    MemoryFolder folder;
    folder.PlanFault(number, Fault::kPowerCut);
    const bool published = folder.Publish(kPath, BytesOf(kWritten)).ok();
    folder.ForEachCrashState([&](MemoryFolder& crashed, const std::string& state) {
      const std::string content = Content(crashed);
      EXPECT_TRUE(content == kWritten || (content == "NOT_FOUND" && !published))
          << number << ": " << state << ": " << content;
      ++(content == kWritten ? whole : absent);
      // A writer that starts over can publish.
      EXPECT_TRUE(content == kWritten || crashed.Publish(kPath, BytesOf("new")).ok()) << state;
    });
  }
  EXPECT_GT(whole, 0);
  EXPECT_GT(absent, 0);
}

TEST(FolderFaultTest, WhatIsRemovedFirstIsGoneBeforeTheRest) {
  const auto make = [](MemoryFolder& folder) {
    folder.AddFile("s/MANIFEST", "m");
    folder.AddFile("s/a", "a");
    folder.AddFile("s/z", "z");
  };
  MemoryFolder counting;
  make(counting);
  ASSERT_TRUE(counting.Remove("s", "MANIFEST").ok());
  for (const Fault fault : {Fault::kPowerCut, Fault::kIoError}) {
    for (uint64_t number = 1; number <= counting.operations() + 1; ++number) {
      MemoryFolder folder;
      make(folder);
      folder.PlanFault(number, fault);
      // The second try meets what the first has left.
      bool removed = folder.Remove("s", "MANIFEST").ok();
      if (!removed && fault == Fault::kIoError) {
        const absl::Status again = folder.Remove("s", "MANIFEST");
        removed = again.ok() || absl::IsNotFound(again);
      }
      EXPECT_EQ(removed, fault == Fault::kIoError || number > counting.operations());
      folder.ForEachCrashState([&](MemoryFolder& crashed, const std::string& state) {
        if (!crashed.Read("s/MANIFEST", 0, 0).ok()) return;
        EXPECT_TRUE(crashed.Read("s/a", 0, 0).ok() && crashed.Read("s/z", 0, 0).ok())
            << number << ": " << state;
      });
    }
  }
}

// In every state after a crash, and after a second try: first the manifest goes, and what is kept
// never does.
TEST(FolderFaultTest, WhatIsKeptSurvivesARemoval) {
  const auto make = [](MemoryFolder& folder) {
    folder.AddFile("s/MANIFEST", "m");
    folder.AddFile("s/a", "a");
    folder.AddFile("s/z", "z");
  };
  const std::set<std::string> keep = {"a"};
  MemoryFolder counting;
  make(counting);
  ASSERT_TRUE(counting.Remove("s", "MANIFEST", keep).ok());
  for (const Fault fault : {Fault::kPowerCut, Fault::kIoError}) {
    for (uint64_t number = 1; number <= counting.operations() + 1; ++number) {
      MemoryFolder folder;
      make(folder);
      folder.PlanFault(number, fault);
      const bool removed = folder.Remove("s", "MANIFEST", keep).ok();
      EXPECT_EQ(removed, number > counting.operations()) << number;
      folder.ForEachCrashState([&](MemoryFolder& crashed, const std::string& state) {
        EXPECT_TRUE(crashed.Read("s/a", 0, 0).ok()) << number << ": " << state;
        const bool has_manifest = crashed.Read("s/MANIFEST", 0, 0).ok();
        const bool has_rest = crashed.Read("s/z", 0, 0).ok();
        EXPECT_TRUE(has_rest || !has_manifest) << number << ": " << state;
        EXPECT_TRUE(!removed || (!has_rest && !has_manifest)) << number << ": " << state;
        EXPECT_TRUE(crashed.Remove("s", "MANIFEST", keep).ok());
        EXPECT_TRUE(crashed.Read("s/a", 0, 0).ok());
        EXPECT_TRUE(crashed.Remove("s", "MANIFEST").ok());
        EXPECT_TRUE(absl::IsNotFound(crashed.List("s").status()));
      });
    }
  }
}

TEST(FolderFaultTest, ADiskThatFailedToSyncLosesTheBytes) {
  // The disk's own behavior: a second sync would succeed, and the bytes would still be gone.
  MemoryFolder folder;
  ASSERT_TRUE(Append(folder, 0, kWritten).ok());
  folder.PlanFault(folder.operations() + 1, Fault::kIoError);
  ASSERT_FALSE(folder.Sync(kPath).ok());
  folder.ForEachCrashState([&](MemoryFolder& crashed, const std::string& state) {
    EXPECT_NE(kWritten, Content(crashed)) << state;
  });
}

}  // namespace
}  // namespace covey
