// SPDX-License-Identifier: Apache-2.0
#include "client/python/arguments.h"

#include <cstring>
#include <string>

namespace covey::python {
namespace {

PyObject* error_factory = nullptr;

}  // namespace

void SetErrorFactory(PyObject* factory) {
  Py_INCREF(factory);
  Py_XDECREF(error_factory);
  error_factory = factory;
}

PyObject* Raise(const covey_error& error) {
  if (error_factory == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, error.message);
    return nullptr;
  }
  PyObject* const exception =
      PyObject_CallFunction(error_factory, "is", static_cast<int>(error.code), error.message);
  if (exception == nullptr) return nullptr;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception);
  Py_DECREF(exception);
  return nullptr;
}

Arguments::Arguments(PyObject* const* arguments, Py_ssize_t count, Py_ssize_t expected)
    : next_(arguments), end_(arguments + count) {
  if (count == expected) return;
  Fail("takes " + std::to_string(expected) + " arguments, got " + std::to_string(count));
}

Arguments::~Arguments() {
  for (PyObject* object : owned_) Py_DECREF(object);
}

void Arguments::Fail(const std::string& text) {
  failed_ = true;
  if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_TypeError, text.c_str());
}

PyObject* Arguments::Next() {
  if (failed_ || next_ == end_) return nullptr;
  return *next_++;
}

void* Arguments::Pointer(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, kClosed) != 0) {
    failed_ = true;
    covey_error error = COVEY_ERROR_INIT;
    error.code = COVEY_FAILED_PRECONDITION;
    std::strncpy(error.message, "it was closed; connect or join again", sizeof(error.message) - 1);
    Raise(error);
    return nullptr;
  }
  void* const pointer = PyCapsule_GetPointer(capsule, name);
  if (pointer == nullptr) failed_ = true;
  return pointer;
}

const char* Arguments::Text() {
  PyObject* const argument = Next();
  if (argument == nullptr) return nullptr;
  const char* const text = PyUnicode_AsUTF8AndSize(argument, nullptr);
  if (text == nullptr) failed_ = true;
  return text;
}

double Arguments::Number() {
  PyObject* const argument = Next();
  if (argument == nullptr) return 0;
  const double number = PyFloat_AsDouble(argument);
  if (number == -1.0 && PyErr_Occurred() != nullptr) failed_ = true;
  return number;
}

uint64_t Arguments::Count() {
  PyObject* const argument = Next();
  if (argument == nullptr) return 0;
  const uint64_t count = PyLong_AsUnsignedLongLong(argument);
  if (count == ~uint64_t{0} && PyErr_Occurred() != nullptr) failed_ = true;
  return count;
}

uint32_t Arguments::Count32() {
  const uint64_t count = Count();
  if (count > UINT32_MAX) Fail(std::to_string(count) + " is too large");
  return static_cast<uint32_t>(count);
}

int64_t Arguments::Signed() {
  PyObject* const argument = Next();
  if (argument == nullptr) return 0;
  const int64_t number = PyLong_AsLongLong(argument);
  if (number == -1 && PyErr_Occurred() != nullptr) failed_ = true;
  if (number > INT32_MAX || number < INT32_MIN) Fail(std::to_string(number) + " is too large");
  return number;
}

std::optional<Bytes> Arguments::AddressOf(PyObject* argument) {
  if (PyTuple_Check(argument) == 0 || PyTuple_Size(argument) != 2) return std::nullopt;
  const Bytes given{.data = PyLong_AsVoidPtr(PyTuple_GetItem(argument, 0)),
                    .size = PyLong_AsUnsignedLongLong(PyTuple_GetItem(argument, 1))};
  if (PyErr_Occurred() != nullptr) failed_ = true;
  return given;
}

Bytes Arguments::TakeBytes(int flags) {
  PyObject* const argument = Next();
  if (argument == nullptr) return {};
  if (const std::optional<Bytes> given = AddressOf(argument); given) return *given;
  Py_buffer view;
  if (PyObject_GetBuffer(argument, &view, flags | PyBUF_ND | PyBUF_C_CONTIGUOUS) != 0) {
    PyErr_Clear();
    Fail(flags == PyBUF_WRITABLE ? "needs an array that is contiguous and may be written"
                                 : "needs an array that is contiguous");
    return {};
  }
  const Bytes bytes{.data = view.buf, .size = static_cast<uint64_t>(view.len)};
  PyBuffer_Release(&view);
  return bytes;
}

KeySpan Arguments::Keys() {
  PyObject* const argument = Next();
  if (argument == nullptr) return {};
  if (const std::optional<Bytes> given = AddressOf(argument); given) {
    return {.data = static_cast<const uint64_t*>(given->data), .count = given->size};
  }
  Py_buffer view;
  if (PyObject_GetBuffer(argument, &view, PyBUF_FORMAT | PyBUF_ND | PyBUF_C_CONTIGUOUS) != 0) {
    PyErr_Clear();
    Fail("needs a contiguous array of 64-bit integers");
    return {};
  }
  const std::string format = view.format == nullptr ? "B" : view.format;
  const bool is_integer =
      view.itemsize == sizeof(uint64_t) && format.find_last_of("lLqQ") == format.size() - 1;
  if (!is_integer) {
    Fail("needs 64-bit integers, got elements of format '" + format +
         "'; convert with .astype(numpy.uint64)");
  }
  const KeySpan keys{.data = static_cast<const uint64_t*>(view.buf),
                     .count = static_cast<uint64_t>(view.len) / sizeof(uint64_t)};
  PyBuffer_Release(&view);
  return is_integer ? keys : KeySpan();
}

Floats Arguments::TakeFloats(int flags) {
  PyObject* const argument = Next();
  if (argument == nullptr) return {};
  if (const std::optional<Bytes> given = AddressOf(argument); given) {
    return {.data = static_cast<float*>(given->data), .elements = given->size};
  }
  Py_buffer view;
  if (PyObject_GetBuffer(argument, &view, flags | PyBUF_FORMAT | PyBUF_ND | PyBUF_C_CONTIGUOUS) !=
      0) {
    PyErr_Clear();
    Fail((flags & PyBUF_WRITABLE) != 0
             ? "needs an array of float32 that is contiguous and may be written"
             : "needs a contiguous array of float32");
    return {};
  }
  const bool is_float = view.format != nullptr &&
                        (std::strcmp(view.format, "f") == 0 || std::strcmp(view.format, "<f") == 0);
  if (!is_float) {
    Fail(std::string("needs float32, got elements of format '") +
         (view.format == nullptr ? "B" : view.format) + "'; convert with .astype(numpy.float32)");
  }
  const Floats floats{.data = static_cast<float*>(view.buf),
                      .elements = static_cast<uint64_t>(view.len) / sizeof(float)};
  PyBuffer_Release(&view);
  return is_float ? floats : Floats();
}

const char* const* Arguments::Texts() {
  PyObject* const argument = Next();
  if (argument == nullptr) return nullptr;
  PyObject* const sequence = PySequence_Tuple(argument);
  if (sequence == nullptr) {
    failed_ = true;
    return nullptr;
  }
  owned_.push_back(sequence);
  for (Py_ssize_t i = 0; i < PyTuple_Size(sequence); ++i) {
    const char* const text = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(sequence, i), nullptr);
    if (text == nullptr) {
      failed_ = true;
      return nullptr;
    }
    texts_.push_back(text);
  }
  texts_.push_back(nullptr);
  return texts_.data();
}

}  // namespace covey::python
