#include "worker/examples/choices.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace covey::examples {
namespace {

struct NamedFormat {
  absl::string_view name;
  proto::WireFormat format;
};
constexpr NamedFormat kFormats[] = {{"fp32", proto::WIRE_FLOAT32},
                                    {"fp16", proto::WIRE_FLOAT16},
                                    {"bf16", proto::WIRE_BFLOAT16},
                                    {"int8", proto::WIRE_INT8_BLOCK}};

}  // namespace

void AddContract(ConfigFile& options, Contract* field) {
  options.Add(
      "contract",
      [field](absl::string_view text) -> absl::Status {
        COVEY_ASSIGN_OR_RETURN(*field, ParseContract(text));
        return absl::OkStatus();
      },
      [field] { return ContractName(*field); },
      "how groups relate: bsp, ssp:N, async, buffered, buffered:K or local:H");
}

void AddWireFormat(ConfigFile& options, proto::WireFormat* field) {
  options.Add(
      "wire",
      [field](absl::string_view text) -> absl::Status {
        COVEY_ASSIGN_OR_RETURN(*field, ParseWireFormat(text));
        return absl::OkStatus();
      },
      [field] { return WireFormatName(*field); }, "how gradients travel: fp32, fp16, bf16 or int8");
}

absl::StatusOr<proto::WireFormat> ParseWireFormat(absl::string_view text) {
  for (const NamedFormat& known : kFormats) {
    if (text == known.name) return known.format;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no wire format is called '", text, "'; choose fp32, fp16, bf16 or int8"));
}

std::string WireFormatName(proto::WireFormat format) {
  for (const NamedFormat& known : kFormats) {
    if (format == known.format) return std::string(known.name);
  }
  return absl::StrCat("format ", static_cast<int>(format));
}

absl::Status InRange(absl::string_view flag, double value, double low, double high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " is ", value, "; choose ", low, " to ", high));
}

}  // namespace covey::examples
