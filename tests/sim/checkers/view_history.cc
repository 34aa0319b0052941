// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/view_history.h"

#include "tests/sim/checkers/published_view.h"

namespace covey::sim {

void ViewHistory::OnSend(absl::Time, const Message& message) {
  const proto::ClusterView* view = PublishedView(message);
  if (view == nullptr) return;
  if (view->epoch() < newest_epoch_) {
    violations_.Add("view_history",
                    absl::StrCat("epoch went back from ", newest_epoch_, " to ", view->epoch()));
    return;
  }
  std::string bytes = view->SerializeAsString();
  if (view->epoch() == newest_epoch_ && bytes != newest_view_) {
    violations_.Add("view_history", absl::StrCat("two views of epoch ", newest_epoch_));
  }
  newest_epoch_ = view->epoch();
  newest_view_ = std::move(bytes);
}

}  // namespace covey::sim
