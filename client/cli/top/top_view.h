// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "proto/scheduler.pb.h"

namespace covey::cli {

// What `covey top` shows. Pure.

enum class TopPane { kGroups, kNodes, kTables, kEvents };
enum class TopOrder { kByName, kSlowestFirst };

struct TopScreen {
  TopPane pane = TopPane::kGroups;
  TopOrder order = TopOrder::kByName;
  size_t columns = 80;
  size_t rows = 24;
};

// The lines of the screen, at most `rows` of at most `columns` bytes: health, the pane, the newest
// events as far as there is room, and the keys. Control characters become "?".
std::vector<std::string> TopLines(const proto::StatusReply& status, const TopScreen& screen);
// All panes one below the other, of any size.
std::string TopText(const proto::StatusReply& status);

}  // namespace covey::cli
