// SPDX-License-Identifier: Apache-2.0
#include "client/cli/process/line_splitter.h"

#include <algorithm>

namespace covey::cli {

void LineSplitter::Add(absl::string_view bytes, const Take& take) {
  while (!bytes.empty()) {
    if (bytes.front() == '\n') {
      bytes.remove_prefix(1);
      take(rest_);
      rest_.clear();
      continue;
    }
    if (rest_.size() == kLineBytesMax) Finish(take);
    const size_t count = std::min({bytes.find('\n'), bytes.size(), kLineBytesMax - rest_.size()});
    rest_.append(bytes.data(), count);
    bytes.remove_prefix(count);
  }
}

void LineSplitter::Finish(const Take& take) {
  if (rest_.empty()) return;
  take(rest_);
  rest_.clear();
}

}  // namespace covey::cli
