// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/c/covey.h"

// How arguments and results of Python become those of covey.h. Uses the limited interface of Python
// 3.11 only, so that one extension serves all later versions.
namespace covey::python {

// The kinds of objects behind capsules: their names, and how they are released.
template <typename Object>
struct Kind;
template <>
struct Kind<covey_client> {
  static constexpr char kName[] = "covey client";
  static void Release(covey_client* object) { covey_client_close(object); }
};
template <>
struct Kind<covey_table> {
  static constexpr char kName[] = "covey table";
  static void Release(covey_table* object) { covey_table_free(object); }
};
template <>
struct Kind<covey_batch> {
  static constexpr char kName[] = "covey batch";
  static void Release(covey_batch* object) { covey_batch_free(object); }
};
template <>
struct Kind<covey_row_cache> {
  static constexpr char kName[] = "covey row cache";
  static void Release(covey_row_cache* object) { covey_row_cache_free(object); }
};
template <>
struct Kind<covey_row_filter> {
  static constexpr char kName[] = "covey row filter";
  static void Release(covey_row_filter* object) { covey_row_filter_free(object); }
};
template <>
struct Kind<covey_row_reader> {
  static constexpr char kName[] = "covey row reader";
  static void Release(covey_row_reader* object) { covey_row_reader_free(object); }
};
template <>
struct Kind<covey_handle> {
  static constexpr char kName[] = "covey handle";
  static void Release(covey_handle* object) { covey_handle_free(object); }
};
template <>
struct Kind<covey_notifier> {
  static constexpr char kName[] = "covey notifier";
  static void Release(covey_notifier* object) { covey_notifier_free(object); }
};
template <>
struct Kind<covey_worker> {
  static constexpr char kName[] = "covey worker";
  static void Release(covey_worker* object) { covey_worker_leave(object); }
};
template <>
struct Kind<covey_step> {
  static constexpr char kName[] = "covey step";
  static void Release(covey_step* object) { covey_step_free(object); }
};
template <>
struct Kind<covey_source> {
  static constexpr char kName[] = "covey data source";
  static void Release(covey_source* object) { covey_source_close(object); }
};
template <>
struct Kind<covey_local_rows> {
  static constexpr char kName[] = "covey local rows";
  static void Release(covey_local_rows* object) { covey_local_rows_close(object); }
};

// The name of a capsule whose object was released.
inline constexpr char kClosed[] = "covey closed";

// What makes a Python exception of a code and a message; set once, by the package.
void SetErrorFactory(PyObject* factory);
// Raises the error as an exception; returns null for the caller to return.
PyObject* Raise(const covey_error& error);

// Runs `body` without the interpreter's lock.
template <typename Body>
auto WithoutLock(const Body& body) {
  PyThreadState* const thread = PyEval_SaveThread();
  const auto result = body();
  PyEval_RestoreThread(thread);
  return result;
}

template <typename Object>
void ReleaseCapsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, Kind<Object>::kName) == 0) return;
  auto* const object = static_cast<Object*>(PyCapsule_GetPointer(capsule, Kind<Object>::kName));
  PyCapsule_SetName(capsule, kClosed);
  WithoutLock([&] {
    Kind<Object>::Release(object);
    return 0;
  });
}

template <typename Object>
PyObject* NewCapsule(Object* object) {
  return PyCapsule_New(object, Kind<Object>::kName, &ReleaseCapsule<Object>);
}

// Floats of an argument: an object with a buffer of float32, contiguous in C's order; or a tuple of
// (address, elements), for tensors without such a buffer.
struct Floats {
  float* data = nullptr;
  uint64_t elements = 0;
};

// The same for elements of any type: (address, bytes).
struct Bytes {
  void* data = nullptr;
  uint64_t size = 0;
};

// Keys: 64-bit integers, signed or not, as in Floats.
struct KeySpan {
  const uint64_t* data = nullptr;
  uint64_t count = 0;
};

// Reads the arguments of one call, in order. After the first mistake the rest is not read, an
// exception is set, and Call runs nothing.
//
// The memory of texts and floats belongs to the caller's objects: the package keeps floats alive
// while an operation uses them.
class Arguments {
 public:
  Arguments(PyObject* const* arguments, Py_ssize_t count, Py_ssize_t expected);
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  template <typename Object>
  Object* Take() {
    PyObject* const argument = Next();
    return argument == nullptr ? nullptr
                               : static_cast<Object*>(Pointer(argument, Kind<Object>::kName));
  }
  // For the length of the call.
  const char* Text();
  double Number();
  uint64_t Count();
  int32_t Int() { return static_cast<int32_t>(Signed()); }
  uint32_t Count32();
  Floats ReadOnlyFloats() { return TakeFloats(PyBUF_SIMPLE); }
  Floats WritableFloats() { return TakeFloats(PyBUF_WRITABLE); }
  Bytes ReadOnlyBytes() { return TakeBytes(PyBUF_SIMPLE); }
  Bytes WritableBytes() { return TakeBytes(PyBUF_WRITABLE); }
  KeySpan Keys();
  // A sequence of texts, as an array that ends with null.
  const char* const* Texts();
  // Any object, borrowed.
  PyObject* Next();

  bool failed() const { return failed_; }
  // Raises TypeError with this text.
  void Fail(const std::string& text);

  // Runs `function(&error)` without the interpreter's lock. Returns what `result` makes when it
  // succeeds; otherwise raises, and returns null.
  template <typename Function, typename Result>
  PyObject* Call(const Function& function, const Result& result) {
    if (failed_) return nullptr;
    covey_error error = COVEY_ERROR_INIT;
    const covey_code code = WithoutLock([&] { return function(&error); });
    return code == COVEY_OK ? result() : Raise(error);
  }
  template <typename Function>
  PyObject* Call(const Function& function) {
    return Call(function, [] {
      Py_INCREF(Py_None);
      return Py_None;
    });
  }

 private:
  void* Pointer(PyObject* capsule, const char* name);
  Floats TakeFloats(int flags);
  Bytes TakeBytes(int flags);
  // An argument that is (address, count).
  std::optional<Bytes> AddressOf(PyObject* argument);
  int64_t Signed();

  PyObject* const* next_;
  PyObject* const* end_;
  bool failed_ = false;
  std::vector<const char*> texts_;
  std::vector<PyObject*> owned_;
};

}  // namespace covey::python
