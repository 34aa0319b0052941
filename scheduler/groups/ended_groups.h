// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "common/cluster/ids.h"
#include "proto/view.pb.h"

namespace covey::scheduler {

// Ended groups stay in the view, so that errors can name them. A job whose groups are replaced for
// months has any number of them, so only so many of the newest stay.
inline constexpr size_t kEndedGroupsKept = 64;

// The ended groups that the view need not list any more, in growing order of id. The groups that
// the job began with stay, because their number is part of contracts (ClusterView::initial_groups),
// and so do those that the present snapshot waits for. Pure. Cost: O(groups).
std::vector<GroupId> ForgettableGroups(const proto::ClusterView& view);

}  // namespace covey::scheduler
