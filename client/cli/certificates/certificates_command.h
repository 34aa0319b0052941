// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// `covey certificates`: makes, renews and checks the certificates of a job, without a network.
int CertificatesCommand(int count, const char* const* arguments);

}  // namespace covey::cli
