#pragma once

namespace covey::cli {

// `covey tables`: what a cluster holds.
int TablesCommand(int count, const char* const* arguments);

}  // namespace covey::cli
