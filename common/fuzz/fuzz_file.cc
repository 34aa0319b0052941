// SPDX-License-Identifier: Apache-2.0
#include "common/fuzz/fuzz_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace covey {

FuzzFile::FuzzFile(std::span<const uint8_t> bytes)
    : descriptor_(memfd_create("input", MFD_CLOEXEC)) {
  COVEY_CHECK(descriptor_.open());
  // A file in memory takes all at once.
  COVEY_CHECK(pwrite(descriptor_.number(), bytes.data(), bytes.size(), 0) ==
              static_cast<ssize_t>(bytes.size()));
}

std::string FuzzFile::path() const { return absl::StrCat("/proc/self/fd/", descriptor_.number()); }

}  // namespace covey
