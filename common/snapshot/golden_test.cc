// SPDX-License-Identifier: Apache-2.0

// Snapshots that earlier versions have written are read for ever.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

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

TEST(GoldenTest, Format1) {
  MemoryFolder store;
  for (const auto& [path, bytes] : ReadGolden("format_1.txt")) store.AddFile(path, bytes);
  const absl::StatusOr<std::vector<SnapshotSummary>> snapshots = ListSnapshots(store);
  ASSERT_TRUE(snapshots.ok());
  ASSERT_EQ(2u, snapshots->size());
  for (const SnapshotSummary& snapshot : *snapshots) {
    EXPECT_TRUE(snapshot.complete.ok()) << snapshot.complete;
    const absl::StatusOr<SnapshotReader> reader = SnapshotReader::Open(store, snapshot.folder);
    ASSERT_TRUE(reader.ok()) << reader.status();
    const absl::Status status = reader->Verify([](uint64_t, uint64_t) { return absl::OkStatus(); });
    EXPECT_TRUE(status.ok()) << status;
    // What the snapshot says, not how: later versions may write it in other bytes.
    const SmallSnapshot same = SmallSnapshot::Make(snapshot.id, snapshot.epoch);
    EXPECT_EQ(same.manifest.SerializeAsString(), reader->manifest().SerializeAsString());
    const Buffer values =
        *reader->ReadPiece(reader->manifest().shards(1), reader->manifest().shards(1).pieces(0));
    EXPECT_EQ(2.25f, values.As<float>()[0]);
  }
}

}  // namespace
}  // namespace covey
