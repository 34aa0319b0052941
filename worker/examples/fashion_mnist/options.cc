#include "worker/examples/fashion_mnist/options.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"

namespace covey::fashion_mnist {
namespace {

// NaN is in no range.
template <typename Number>
absl::Status InRange(absl::string_view flag, Number value, Number low, Number high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " is ", value, "; choose ", low, " to ", high));
}

}  // namespace

absl::Status Options::Validate() const {
  COVEY_RETURN_IF_ERROR(InRange<uint64_t>("--epochs", epochs, 1, 1000));
  COVEY_RETURN_IF_ERROR(InRange<uint64_t>("--batch", batch, 1, 4096));
  COVEY_RETURN_IF_ERROR(InRange("--learning-rate", learning_rate, 1e-6, 100.0));
  COVEY_RETURN_IF_ERROR(InRange("--momentum", momentum, 0.0, 0.9999));
  COVEY_RETURN_IF_ERROR(InRange<uint64_t>("--hidden", hidden, 1, 4096));
  return absl::OkStatus();
}

void Options::AddTo(ConfigFile& options) {
  options.Add(
      "contract",
      [this](absl::string_view text) -> absl::Status {
        COVEY_ASSIGN_OR_RETURN(contract, ParseContract(text));
        return absl::OkStatus();
      },
      [this] { return ContractName(contract); },
      "how groups relate: bsp, ssp:N, async, buffered or buffered:K");
  options.Add("epochs", &epochs, "passes over the training data");
  options.Add("batch", &batch, "samples per worker and step");
  options.Add("learning-rate", &learning_rate, "peak of the schedule");
  options.Add("momentum", &momentum, "coefficient of Nesterov's method");
  options.Add("hidden", &hidden, "neurons of the hidden layer");
  options.Add("seed", &seed, "of initial values and of the order of samples");
  options.Add("data-dir", &data_dir, "folder with the four files of the dataset");
}

}  // namespace covey::fashion_mnist
