// SPDX-License-Identifier: Apache-2.0
#include "common/net/frame_checksum.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/crc32c.h"

namespace covey {

uint32_t FrameChecksum(const Buffer& frame) { return Crc32c(frame.bytes()); }

void SetFrameChecksums(Message& message) {
  const int frames = static_cast<int>(message.frames.size());
  for (int i = message.envelope.frame_checksums_size(); i < frames; ++i) {
    message.envelope.add_frame_checksums(FrameChecksum(message.frames[i]));
  }
}

void AddFrame(Message& message, Buffer frame, uint32_t checksum) {
  COVEY_CHECK(message.envelope.frame_checksums_size() == static_cast<int>(message.frames.size()));
  message.frames.push_back(std::move(frame));
  message.envelope.add_frame_checksums(checksum);
}

absl::Status CheckFrameChecksums(const Message& message) {
  return CheckFrameChecksums(message, FrameChecksum);
}

absl::Status CheckFrameChecksums(const Message& message,
                                 absl::FunctionRef<uint32_t(const Buffer&)> checksum) {
  const auto& checksums = message.envelope.frame_checksums();
  const int frames = static_cast<int>(message.frames.size());
  if (checksums.size() != frames) {
    return absl::DataLossError(
        absl::StrCat(BodyName(message.envelope), " from node ", message.from().node.value(), ": ",
                     frames, " frames and ", checksums.size(),
                     " checksums; its sender must set one per frame (is it an older release?)"));
  }
  for (int i = 0; i < frames; ++i) {
    if (checksum(message.frames[i]) == checksums[i]) continue;
    return absl::DataLossError(absl::StrCat(
        BodyName(message.envelope), " from node ", message.from().node.value(), ": frame ", i,
        " of ", message.frames[i].size(),
        " bytes differs from its checksum; bytes were damaged on the way, so check the network and "
        "the memory of both machines"));
  }
  return absl::OkStatus();
}

}  // namespace covey
