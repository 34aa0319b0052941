// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "common/base/descriptor.h"

namespace covey {

// An input as a file without a name, for decoders that read a path. The path is valid as long as
// this is.
class FuzzFile {
 public:
  explicit FuzzFile(std::span<const uint8_t> bytes);

  std::string path() const;

 private:
  const Descriptor descriptor_;
};

}  // namespace covey
