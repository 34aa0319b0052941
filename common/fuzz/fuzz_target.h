// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

// What a file NAME_fuzz.cc beside a decoder of bytes from outside defines; `fuzz_target` in
// tools/bazel/fuzz.bzl makes two programs of it. The ordinary one (replay.cc) is a test: it gives
// the target its seeds, the files of corpus/NAME_fuzz, and mutations of both, always the same. With
// --config=fuzz libFuzzer chooses the inputs instead, by the code that they reach (libfuzzer.cc).

namespace covey {

// Inputs that FuzzOne accepts, made by the encoder where there is one, so that they follow changes
// of the format. Small, and different from each other. Pure.
std::vector<std::string> FuzzSeeds();

// Gives any bytes to the decoder. A crash, and a COVEY_CHECK of the target that fails, is a defect:
// for example when accepted bytes are other ones after decoding and encoding. Returns whether the
// decoder accepted the bytes. The same bytes have the same effect each time.
bool FuzzOne(std::span<const uint8_t> input);

}  // namespace covey
