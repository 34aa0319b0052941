// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace covey::cli {

// The facts about this machine that `covey doctor` checks. Absent: the machine does not tell. A
// value.
struct MachineFacts {
  struct Folder {
    std::string path;
    // Why it cannot be written; empty = it can.
    std::string error;
    uint64_t free_bytes = 0;
    uint64_t bytes = 0;
  };
  // A folder of NodeCredentials.
  struct Credentials {
    std::string folder;
    std::vector<std::string> problems;
    // Until its certificate, or a root that it trusts, expires; absent = unreadable.
    std::optional<absl::Duration> left;
  };

  std::optional<bool> clock_is_synchronized;
  // The limit up to which schedulers and servers raise their own.
  std::optional<uint64_t> open_files_max;
  // Of the machine; and what the control group leaves, absent = no limit.
  std::optional<uint64_t> free_memory_bytes;
  std::optional<uint64_t> group_memory_bytes;
  // Of transparent huge pages: "always", "madvise", "never".
  std::optional<std::string> huge_pages;
  uint32_t cores = 1;
  // Cores that the control group allows; absent = all.
  std::optional<double> cpu_quota;
  // Of /dev/shm, which data loaders of PyTorch use.
  std::optional<uint64_t> shared_memory_bytes;
  // The most that a connection may hold, as the kernel sizes its buffers.
  std::optional<uint64_t> receive_buffer_bytes;
  std::optional<uint64_t> send_buffer_bytes;
  // As the user gave them.
  std::vector<Folder> folders;
  std::vector<Credentials> credentials;
};

// The parts of a machine that ReadMachineFacts looks at.
struct MachineQuestion {
  std::vector<std::string> folders;
  std::vector<std::string> credentials;
};

// Reads /proc and /sys, and asks the system. Blocks on the disk.
MachineFacts ReadMachineFacts(const MachineQuestion& question, absl::Time wall_now);

// The last of the three sizes of net.ipv4.tcp_rmem and tcp_wmem, up to which the kernel lets the
// buffer of a connection grow; or, where it does not, the second, with which a connection begins.
// Absent: the text is something else. Pure.
enum class BufferGrowth { kGrows, kStays };
std::optional<uint64_t> ReadSocketBuffer(absl::string_view sizes, BufferGrowth growth);

}  // namespace covey::cli
