// SPDX-License-Identifier: Apache-2.0

// What ThreadSanitizer assumes in every binary built with --config=tsan.
//
// Debian's gRPC and ZeroMQ are not instrumented, so their internal hand-overs look like races.
// A suppression also hides races in our code when it runs on threads of theirs: such code must only
// convert and enqueue.

extern "C" const char* __tsan_default_options() { return "ignore_noninstrumented_modules=1"; }

extern "C" const char* __tsan_default_suppressions() { return "race:libgrpc\nrace:libzmq\n"; }
