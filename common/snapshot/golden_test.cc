// SPDX-License-Identifier: Apache-2.0

// Snapshots that earlier versions have written are read for ever.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "common/snapshot/snapshot_reader.h"
#include "common/snapshot/testing/small_snapshot.h"
#include "common/store/testing/memory_folder.h"

namespace covey {
namespace {

// A file of testdata: comments; "file PATH", then its bytes in lines of hexadecimal digits.
std::map<std::string, std::string> ReadGolden(const std::string& name) {
  std::ifstream text("common/snapshot/testdata/" + name);
  std::map<std::string, std::string> files;
  std::string path;
  for (std::string line; std::getline(text, line);) {
    if (absl::StartsWith(line, "#")) continue;
    if (absl::StartsWith(line, "file ")) {
      path = line.substr(5);
    } else {
      files[path] += absl::HexStringToBytes(line);
    }
  }
  return files;
}

// Each snapshot of the file can be read, and is the one beside it.
void ExpectRead(const std::string& name, const std::vector<SmallSnapshot>& same) {
  MemoryFolder store;
  for (const auto& [path, bytes] : ReadGolden(name)) store.AddFile(path, bytes);
  const absl::StatusOr<std::vector<SnapshotSummary>> snapshots = ListSnapshots(store);
  ASSERT_TRUE(snapshots.ok());
  ASSERT_EQ(same.size(), snapshots->size());
  for (size_t i = 0; i < same.size(); ++i) {
    const SnapshotSummary& snapshot = snapshots->at(i);
    EXPECT_TRUE(snapshot.complete.ok()) << snapshot.complete;
    const absl::StatusOr<SnapshotReader> reader = SnapshotReader::Open(store, snapshot.folder);
    ASSERT_TRUE(reader.ok()) << reader.status();
    const absl::Status status = reader->Verify([](uint64_t, uint64_t) { return absl::OkStatus(); });
    EXPECT_TRUE(status.ok()) << status;
    // What the snapshot says, not how: later versions may write it in other bytes.
    EXPECT_EQ(same[i].manifest.SerializeAsString(), reader->manifest().SerializeAsString());
    const Buffer values =
        *reader->ReadPiece(reader->manifest().shards(1), reader->manifest().shards(1).pieces(0));
    EXPECT_EQ(2.25f, values.As<float>()[0]);
  }
}

TEST(GoldenTest, Format1) {
  ExpectRead("format_1.txt", {SmallSnapshot::Make(3, 7), SmallSnapshot::Make(5, 9)});
}

TEST(GoldenTest, Format2) {
  const SmallSnapshot first = SmallSnapshot::Make(3, 7);
  ExpectRead("format_2.txt", {first, SmallSnapshot::MakeAfter(first, 5, 9)});
}

}  // namespace
}  // namespace covey
