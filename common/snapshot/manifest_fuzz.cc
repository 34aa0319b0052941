// SPDX-License-Identifier: Apache-2.0
// Manifests of snapshots: the message, in front of which a right header is made, or a whole file.
#include "common/snapshot/manifest.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/fixed_bytes.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"
#include "common/snapshot/testing/small_snapshot.h"

namespace covey {
namespace {

constexpr size_t kHeaderBytes = 32;

// The file with this message.
std::vector<uint8_t> FileAround(std::span<const uint8_t> message) {
  std::vector<uint8_t> file(kHeaderBytes);
  std::memcpy(file.data(), "COVEYMAN", 8);
  file.insert(file.end(), message.begin(), message.end());
  WriteFixed(kManifestMajorWithLogs, 8, file);
  WriteFixed(uint64_t{message.size()}, 16, file);
  WriteFixed(Crc32c(message), 24, file);
  WriteFixed(Crc32c(std::span<const uint8_t>(file).first(28)), 28, file);
  return file;
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  const SmallSnapshot first = SmallSnapshot::Make(17, 42);
  const SmallSnapshot second = SmallSnapshot::MakeAfter(first, 18, 50);
  return {first.manifest.SerializeAsString(), second.manifest.SerializeAsString(),
          std::string(FuzzText(EncodeManifest(first.manifest).value().bytes()))};
}

bool FuzzOne(std::span<const uint8_t> input) {
  std::vector<uint8_t> file(input.begin(), input.end());
  if (file.size() < 8 || std::memcmp(file.data(), "COVEYMAN", 8) != 0) file = FileAround(input);
  const auto manifest = DecodeManifest(file);
  if (!manifest.ok()) return false;
  COVEY_CHECK(IsSnapshotFolderName(manifest->folder()));

  const auto again = EncodeManifest(*manifest);
  COVEY_CHECK(again.ok());
  const auto reread = DecodeManifest(again->bytes());
  COVEY_CHECK(reread.ok());
  const Buffer third = EncodeManifest(*reread).value();
  COVEY_CHECK(std::equal(third.bytes().begin(), third.bytes().end(), again->bytes().begin(),
                         again->bytes().end()));
  return true;
}

}  // namespace covey
