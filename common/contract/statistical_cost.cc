// SPDX-License-Identifier: Apache-2.0
#include "common/contract/statistical_cost.h"

namespace covey {

double StatisticalPenalty(const Contract& contract) {
  switch (contract.kind) {
    case Contract::Kind::kBsp:
      return 0;
    case Contract::Kind::kBuffered:
    case Contract::Kind::kLocal:
      return 0.07;
    case Contract::Kind::kSsp:
    case Contract::Kind::kAsync:
      return 0.25;
  }
  return 0;
}

bool KeepsGroupsInStep(const Contract& contract) {
  return contract.kind == Contract::Kind::kBsp || contract.kind == Contract::Kind::kSsp ||
         (contract.kind == Contract::Kind::kLocal && contract.quorum == 0);
}

}  // namespace covey
