// SPDX-License-Identifier: Apache-2.0

// The module covey._native: the functions of covey.h for Python, one for one. It holds no logic;
// the package's classes do. Positional arguments only, in the order of the C functions; option
// structs are spread into their fields. Waits are in slices, between which signals are handled.

#include <algorithm>
#include <string>
#include <vector>

#include "client/python/arguments.h"

namespace covey::python {
namespace {

using Given = PyObject* const*;

// Longest time in which Ctrl-C has no effect.
constexpr double kSliceSeconds = 0.05;

PyObject* TextResult(char* text) {
  PyObject* const result = PyUnicode_FromString(text);
  covey_text_free(text);
  return result;
}

template <typename Object>
PyObject* Close(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  PyObject* const capsule = in.Next();
  if (in.failed()) return nullptr;
  ReleaseCapsule<Object>(capsule);
  Py_INCREF(Py_None);
  return Py_None;
}

// Calls `wait(slice, &error)` until it is `done()`, `seconds` have passed (negative: never), or a
// handler of a signal has raised.
template <typename Wait, typename Done>
PyObject* WaitInSlices(double seconds, const Wait& wait, const Done& done,
                       PyObject* (*result)(const covey_result&), covey_result& ended) {
  for (;;) {
    covey_error error = COVEY_ERROR_INIT;
    const double slice = seconds < 0 ? kSliceSeconds : std::min(kSliceSeconds, seconds);
    // Asked before the wait: what ends after a slice is over has its result in the next wait.
    const bool was_done = done();
    const covey_code code = WithoutLock([&] { return wait(slice, &error); });
    if (code == COVEY_OK) return result(ended);
    if (code != COVEY_DEADLINE_EXCEEDED || was_done) return Raise(error);
    if (PyErr_CheckSignals() != 0) return nullptr;
    if (seconds < 0) continue;
    seconds -= slice;
    if (seconds <= 0) return Raise(error);
  }
}

PyObject* ResultTuple(const covey_result& result) {
  return Py_BuildValue("(KKdiiiKK)", static_cast<unsigned long long>(result.version),
                       static_cast<unsigned long long>(result.staleness), result.age_seconds,
                       static_cast<int>(result.duplicate), static_cast<int>(result.discarded),
                       static_cast<int>(result.durable),
                       static_cast<unsigned long long>(result.samples),
                       static_cast<unsigned long long>(result.rows_refused));
}

PyObject* NoResult(const covey_result&) {
  Py_INCREF(Py_None);
  return Py_None;
}

// --- Library ---

PyObject* SetErrors(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  PyObject* const factory = in.Next();
  if (in.failed()) return nullptr;
  SetErrorFactory(factory);
  Py_INCREF(Py_None);
  return Py_None;
}

PyObject* LibraryVersion(PyObject*, Given given, Py_ssize_t count) {
  const Arguments in(given, count, 0);
  return in.failed() ? nullptr : PyUnicode_FromString(covey_version());
}

PyObject* KeepFreedMemory(PyObject*, Given given, Py_ssize_t count) {
  const Arguments in(given, count, 0);
  if (in.failed()) return nullptr;
  covey_keep_freed_memory();
  Py_INCREF(Py_None);
  return Py_None;
}

// Address and elements of a buffer of floats, for the package's checks.
PyObject* AddressOf(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  const Floats floats = in.ReadOnlyFloats();
  if (in.failed()) return nullptr;
  return Py_BuildValue("(KK)", reinterpret_cast<unsigned long long>(floats.data),
                       static_cast<unsigned long long>(floats.elements));
}

// --- Handles ---

PyObject* HandleDone(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  const auto* const handle = in.Take<covey_handle>();
  return in.failed() ? nullptr : PyBool_FromLong(covey_handle_done(handle));
}

PyObject* HandleWait(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 2);
  const auto* const handle = in.Take<covey_handle>();
  const double seconds = in.Number();
  if (in.failed()) return nullptr;
  covey_result result = COVEY_RESULT_INIT;
  return WaitInSlices(
      seconds,
      [&](double slice, covey_error* error) {
        return covey_handle_wait(handle, slice, &result, error);
      },
      [&] { return covey_handle_done(handle) != 0; }, &ResultTuple, result);
}

// The value, and the elements of a query for the largest.
PyObject* HandleAnswer(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 2);
  const auto* const handle = in.Take<covey_handle>();
  const uint64_t query = in.Count();
  covey_vector_answer answer = COVEY_VECTOR_ANSWER_INIT;
  std::vector<uint64_t> places;
  std::vector<float> values;
  return in.Call(
      [&](covey_error* error) {
        const covey_code code = covey_handle_answer(handle, query, &answer, error);
        if (code != COVEY_OK || answer.top_count == 0) return code;
        places.resize(answer.top_count);
        values.resize(answer.top_count);
        return covey_handle_top(handle, query, places.data(), values.data(), places.size(), error);
      },
      [&] {
        PyObject* const top = PyList_New(static_cast<Py_ssize_t>(places.size()));
        for (size_t i = 0; top != nullptr && i < places.size(); ++i) {
          PyList_SetItem(top, static_cast<Py_ssize_t>(i),
                         Py_BuildValue("(Kd)", static_cast<unsigned long long>(places[i]),
                                       static_cast<double>(values[i])));
        }
        return Py_BuildValue("(dN)", answer.value, top);
      });
}

PyObject* NotifierNew(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 0);
  covey_notifier* notifier = nullptr;
  return in.Call([&](covey_error* error) { return covey_notifier_new(&notifier, error); },
                 [&] { return NewCapsule(notifier); });
}

PyObject* NotifierDescriptor(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  const auto* const notifier = in.Take<covey_notifier>();
  return in.failed() ? nullptr : PyLong_FromLong(covey_notifier_descriptor(notifier));
}

PyObject* NotifierAdd(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 2);
  const auto* const notifier = in.Take<covey_notifier>();
  const auto* const handle = in.Take<covey_handle>();
  return in.Call([&](covey_error* error) { return covey_notifier_add(notifier, handle, error); });
}

// --- Client ---

PyObject* ClientConnect(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  const char* const* const settings = in.Texts();
  covey_client* client = nullptr;
  return in.Call([&](covey_error* error) { return covey_client_connect(settings, &client, error); },
                 [&] { return NewCapsule(client); });
}

PyObject* TableResult(covey_table* table) {
  return Py_BuildValue("(NsKK)", NewCapsule(table), covey_table_name(table),
                       static_cast<unsigned long long>(covey_table_elements(table)),
                       static_cast<unsigned long long>(covey_table_width(table)));
}

PyObject* ClientCreateTable(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 2);
  auto* const client = in.Take<covey_client>();
  const char* const definition = in.Text();
  covey_table* table = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return covey_client_create_table(client, definition, &table, error);
      },
      [&] { return TableResult(table); });
}

PyObject* ClientFindTable(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 2);
  auto* const client = in.Take<covey_client>();
  const char* const name = in.Text();
  covey_table* table = nullptr;
  return in.Call(
      [&](covey_error* error) { return covey_client_find_table(client, name, &table, error); },
      [&] { return TableResult(table); });
}

PyObject* ClientListTables(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  auto* const client = in.Take<covey_client>();
  char* text = nullptr;
  return in.Call([&](covey_error* error) { return covey_client_list_tables(client, &text, error); },
                 [&] { return TextResult(text); });
}

PyObject* ClientDropTable(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 2);
  auto* const client = in.Take<covey_client>();
  const char* const name = in.Text();
  return in.Call([&](covey_error* error) { return covey_client_drop_table(client, name, error); });
}

PyObject* ClientInitializeTables(PyObject*, Given given, Py_ssize_t count) {
  // Client, seconds; and then, for each table, its capsule, its arrays, whether these have the
  // slots of its optimizer, updates and samples.
  Arguments in(given, count, std::max<Py_ssize_t>(count, 2));
  auto* const client = in.Take<covey_client>();
  const double seconds = in.Number();
  std::vector<covey_initial_values> tables;
  for (Py_ssize_t i = 2; i + 4 < count && !in.failed(); i += 5) {
    covey_initial_values table = COVEY_INITIAL_VALUES_INIT;
    table.table = in.Take<covey_table>();
    const Floats arrays = in.ReadOnlyFloats();
    const bool has_slots = in.Count() > 0;
    table.updates = in.Count();
    table.samples = in.Count();
    table.values = arrays.data;
    table.elements = arrays.elements;
    const uint64_t elements = table.table == nullptr ? 0 : covey_table_elements(table.table);
    if (has_slots && arrays.elements >= elements) {
      table.elements = elements;
      table.slots = arrays.data + elements;
      table.slot_elements = arrays.elements - elements;
    }
    tables.push_back(table);
  }
  int32_t is_giver = 0;
  return in.Call(
      [&](covey_error* error) {
        return covey_client_initialize_tables(client, tables.data(), tables.size(), seconds,
                                              &is_giver, error);
      },
      [&] { return PyBool_FromLong(is_giver); });
}

PyObject* ClientSetContract(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 3);
  auto* const client = in.Take<covey_client>();
  const char* const name = in.Text();
  const char* const contract = in.Text();
  return in.Call(
      [&](covey_error* error) { return covey_client_set_contract(client, name, contract, error); });
}

PyObject* ClientStatus(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  auto* const client = in.Take<covey_client>();
  char* text = nullptr;
  return in.Call([&](covey_error* error) { return covey_client_status(client, &text, error); },
                 [&] { return TextResult(text); });
}

covey_push_options TakePushOptions(Arguments& in) {
  covey_push_options options = COVEY_PUSH_OPTIONS_INIT;
  options.format = in.Int();
  options.samples = in.Count();
  options.deadline_seconds = in.Number();
  return options;
}

// Staleness below zero: the contract decides.
covey_pull_options TakePullOptions(Arguments& in) {
  covey_pull_options options = COVEY_PULL_OPTIONS_INIT;
  const int32_t staleness = in.Int();
  options.has_staleness = staleness >= 0 ? 1 : 0;
  options.staleness = staleness >= 0 ? static_cast<uint64_t>(staleness) : 0;
  options.min_version = in.Count();
  options.max_age_seconds = in.Number();
  options.deadline_seconds = in.Number();
  return options;
}

// Of a dense table.
covey_pull_options TakeValueOptions(Arguments& in) {
  covey_pull_options options = TakePullOptions(in);
  options.format = in.Int();
  return options;
}

PyObject* ClientPush(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 6);
  auto* const client = in.Take<covey_client>();
  const auto* const table = in.Take<covey_table>();
  const Floats gradient = in.ReadOnlyFloats();
  const covey_push_options options = TakePushOptions(in);
  covey_handle* handle = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return covey_client_push(client, table, gradient.data, gradient.elements, &options, &handle,
                                 error);
      },
      [&] { return NewCapsule(handle); });
}

template <covey_code (*pull)(covey_client*, const covey_table*, float*, uint64_t,
                             const covey_pull_options*, covey_handle**, covey_error*)>
PyObject* ClientPull(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 8);
  auto* const client = in.Take<covey_client>();
  const auto* const table = in.Take<covey_table>();
  const Floats values = in.WritableFloats();
  const covey_pull_options options = TakeValueOptions(in);
  covey_handle* handle = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return pull(client, table, values.data, values.elements, &options, &handle, error);
      },
      [&] { return NewCapsule(handle); });
}

PyObject* TableSlots(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  const auto* const table = in.Take<covey_table>();
  return in.failed() ? nullptr : PyLong_FromUnsignedLongLong(covey_table_slots(table));
}

PyObject* ClientPushPull(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 12);
  auto* const client = in.Take<covey_client>();
  const auto* const table = in.Take<covey_table>();
  const Floats gradient = in.ReadOnlyFloats();
  const Floats values = in.WritableFloats();
  const covey_push_options push = TakePushOptions(in);
  const covey_pull_options pull = TakeValueOptions(in);
  if (!in.failed() && gradient.elements != values.elements) {
    in.Fail("gradient has " + std::to_string(gradient.elements) + " elements, out has " +
            std::to_string(values.elements));
  }
  covey_handle* handle = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return covey_client_push_pull(client, table, gradient.data, values.data, values.elements,
                                      &push, &pull, &handle, error);
      },
      [&] { return NewCapsule(handle); });
}

covey_outer_products TakeOuterProducts(Arguments& in) {
  covey_outer_products gradient = COVEY_OUTER_PRODUCTS_INIT;
  const Floats left = in.ReadOnlyFloats();
  const Floats right = in.ReadOnlyFloats();
  gradient.left = left.data;
  gradient.left_elements = left.elements;
  gradient.right = right.data;
  gradient.right_elements = right.elements;
  gradient.terms = in.Count();
  return gradient;
}

PyObject* ClientPushOuterProducts(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 8);
  auto* const client = in.Take<covey_client>();
  const auto* const table = in.Take<covey_table>();
  const covey_outer_products gradient = TakeOuterProducts(in);
  const covey_push_options options = TakePushOptions(in);
  covey_handle* handle = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return covey_client_push_outer_products(client, table, &gradient, &options, &handle, error);
      },
      [&] { return NewCapsule(handle); });
}

PyObject* ClientPushPullOuterProducts(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 14);
  auto* const client = in.Take<covey_client>();
  const auto* const table = in.Take<covey_table>();
  const covey_outer_products gradient = TakeOuterProducts(in);
  const Floats values = in.WritableFloats();
  const covey_push_options push = TakePushOptions(in);
  const covey_pull_options pull = TakeValueOptions(in);
  covey_handle* handle = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return covey_client_push_pull_outer_products(client, table, &gradient, values.data,
                                                     values.elements, &push, &pull, &handle, error);
      },
      [&] { return NewCapsule(handle); });
}

// --- Vectors ---

PyObject* TableVectors(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  const auto* const table = in.Take<covey_table>();
  return in.failed() ? nullptr : PyLong_FromUnsignedLongLong(covey_table_vectors(table));
}

PyObject* ClientCall(PyObject*, Given given, Py_ssize_t count) {
  // Client, table, seconds; and then, for each function, kind, target, source and scalar.
  Arguments in(given, count, std::max<Py_ssize_t>(count, 3));
  auto* const client = in.Take<covey_client>();
  const auto* const table = in.Take<covey_table>();
  const double seconds = in.Number();
  // So that the array has an address without functions, too.
  std::vector<covey_vector_function> functions(1, COVEY_VECTOR_FUNCTION_INIT);
  size_t taken = 0;
  for (Py_ssize_t i = 3; i + 3 < count && !in.failed(); i += 4, ++taken) {
    functions.resize(taken + 1, COVEY_VECTOR_FUNCTION_INIT);
    functions[taken].kind = in.Int();
    functions[taken].target = in.Count32();
    functions[taken].source = in.Count32();
    functions[taken].scalar = in.Number();
  }
  covey_handle* handle = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return covey_client_call(client, table, functions.data(), taken, seconds, &handle, error);
      },
      [&] { return NewCapsule(handle); });
}

PyObject* ClientAsk(PyObject*, Given given, Py_ssize_t count) {
  // Client, table, options; and then, for each query, kind, vector, other and count.
  Arguments in(given, count, std::max<Py_ssize_t>(count, 6));
  auto* const client = in.Take<covey_client>();
  const auto* const table = in.Take<covey_table>();
  const covey_pull_options options = TakePullOptions(in);
  std::vector<covey_vector_query> queries(1, COVEY_VECTOR_QUERY_INIT);
  size_t taken = 0;
  for (Py_ssize_t i = 6; i + 3 < count && !in.failed(); i += 4, ++taken) {
    queries.resize(taken + 1, COVEY_VECTOR_QUERY_INIT);
    queries[taken].kind = in.Int();
    queries[taken].vector = in.Count32();
    queries[taken].other = in.Count32();
    queries[taken].count = in.Count32();
  }
  covey_handle* handle = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return covey_client_ask(client, table, queries.data(), taken, &options, &handle, error);
      },
      [&] { return NewCapsule(handle); });
}

// --- Rows ---

PyObject* BatchNew(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 2);
  const auto* const table = in.Take<covey_table>();
  const KeySpan keys = in.Keys();
  covey_batch* batch = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return covey_batch_new(table, keys.data, keys.count, &batch, error);
      },
      [&] { return NewCapsule(batch); });
}

PyObject* RowCacheNew(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 5);
  auto* const client = in.Take<covey_client>();
  const auto* const table = in.Take<covey_table>();
  covey_row_cache_options options = COVEY_ROW_CACHE_OPTIONS_INIT;
  options.rows_max = in.Count();
  options.max_age = in.Number();
  options.max_updates = in.Count();
  covey_row_cache* cache = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return covey_row_cache_new(client, table, &options, &cache, error);
      },
      [&] { return NewCapsule(cache); });
}

PyObject* RowCachePull(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 5);
  in.Take<covey_client>();  // the cache's, which must be open
  auto* const cache = in.Take<covey_row_cache>();
  const KeySpan keys = in.Keys();
  const Floats rows = in.WritableFloats();
  const double seconds = in.Number();
  covey_handle* handle = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return covey_row_cache_pull(cache, keys.data, keys.count, rows.data, rows.elements, seconds,
                                    &handle, error);
      },
      [&] { return NewCapsule(handle); });
}

PyObject* RowCacheInvalidate(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 3);
  in.Take<covey_client>();
  auto* const cache = in.Take<covey_row_cache>();
  const KeySpan keys = in.Keys();
  return in.Call([&](covey_error* error) {
    return covey_row_cache_invalidate(cache, keys.data, keys.count, error);
  });
}

PyObject* RowCacheCount(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 2);
  in.Take<covey_client>();
  auto* const cache = in.Take<covey_row_cache>();
  covey_row_cache_counts counts = COVEY_ROW_CACHE_COUNTS_INIT;
  return in.Call([&](covey_error* error) { return covey_row_cache_count(cache, &counts, error); },
                 [&] {
                   return Py_BuildValue("(KKKK)", static_cast<unsigned long long>(counts.hits),
                                        static_cast<unsigned long long>(counts.misses),
                                        static_cast<unsigned long long>(counts.stale),
                                        static_cast<unsigned long long>(counts.rows));
                 });
}

PyObject* RowFilterNew(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 6);
  auto* const client = in.Take<covey_client>();
  const auto* const table = in.Take<covey_table>();
  covey_row_filter_options options = COVEY_ROW_FILTER_OPTIONS_INIT;
  options.rule = in.Int();
  options.threshold = in.Number();
  options.rows_max = in.Count();
  // A number that does not fit is out of the range, too.
  options.pieces_max = static_cast<uint32_t>(std::min<uint64_t>(in.Count(), UINT32_MAX));
  covey_row_filter* filter = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return covey_row_filter_new(client, table, &options, &filter, error);
      },
      [&] { return NewCapsule(filter); });
}

PyObject* RowFilterPush(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 8);
  in.Take<covey_client>();  // the filter's, which must be open
  auto* const filter = in.Take<covey_row_filter>();
  const auto* const batch = in.Take<covey_batch>();
  const Floats rows = in.ReadOnlyFloats();
  const Floats gradient = in.ReadOnlyFloats();
  const covey_push_options options = TakePushOptions(in);
  if (!in.failed() && gradient.elements != rows.elements) {
    in.Fail("gradient has " + std::to_string(gradient.elements) + " elements, rows has " +
            std::to_string(rows.elements));
  }
  covey_handle* handle = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return covey_row_filter_push(filter, batch, rows.data, gradient.data, rows.elements,
                                     &options, &handle, error);
      },
      [&] { return NewCapsule(handle); });
}

PyObject* RowFilterFlush(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 3);
  in.Take<covey_client>();
  auto* const filter = in.Take<covey_row_filter>();
  const double seconds = in.Number();
  return in.Call(
      [&](covey_error* error) { return covey_row_filter_flush(filter, seconds, error); });
}

PyObject* RowFilterCount(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 2);
  in.Take<covey_client>();
  auto* const filter = in.Take<covey_row_filter>();
  covey_row_filter_counts counts = COVEY_ROW_FILTER_COUNTS_INIT;
  return in.Call([&](covey_error* error) { return covey_row_filter_count(filter, &counts, error); },
                 [&] {
                   return Py_BuildValue("(KKKKKK)", static_cast<unsigned long long>(counts.pushed),
                                        static_cast<unsigned long long>(counts.held_back),
                                        static_cast<unsigned long long>(counts.zero_pushed),
                                        static_cast<unsigned long long>(counts.zero_held_back),
                                        static_cast<unsigned long long>(counts.pushed_later),
                                        static_cast<unsigned long long>(counts.held));
                 });
}

PyObject* RowReaderNew(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 5);
  auto* const client = in.Take<covey_client>();
  const auto* const table = in.Take<covey_table>();
  covey_row_reader_options options = COVEY_ROW_READER_OPTIONS_INIT;
  const char* const since = in.Text();
  options.max_age = in.Number();
  options.seconds = in.Number();
  if (!in.failed() && since[0] != '\0') options.since = since;
  covey_row_reader* reader = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return covey_row_reader_new(client, table, &options, &reader, error);
      },
      [&] { return NewCapsule(reader); });
}

// A tuple of the piece's numbers and copies of its arrays; None after the last one.
PyObject* RowReaderNext(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 2);
  in.Take<covey_client>();  // the reader's, which must be open
  auto* const reader = in.Take<covey_row_reader>();
  if (in.failed()) return nullptr;
  covey_row_piece piece = COVEY_ROW_PIECE_INIT;
  int32_t has_piece = 0;
  for (;;) {
    covey_error error = COVEY_ERROR_INIT;
    const bool was_ready = covey_row_reader_ready(reader) != 0;
    const covey_code code = WithoutLock(
        [&] { return covey_row_reader_next(reader, kSliceSeconds, &piece, &has_piece, &error); });
    if (code == COVEY_OK) break;
    if (code != COVEY_DEADLINE_EXCEEDED || was_ready) return Raise(error);
    if (PyErr_CheckSignals() != 0) return nullptr;
  }
  if (has_piece == 0) {
    Py_INCREF(Py_None);
    return Py_None;
  }
  const auto bytes = [](const void* data, uint64_t size) {
    return PyByteArray_FromStringAndSize(static_cast<const char*>(data),
                                         static_cast<Py_ssize_t>(size));
  };
  return Py_BuildValue("(IKKNNN)", static_cast<unsigned int>(piece.shard),
                       static_cast<unsigned long long>(piece.generation),
                       static_cast<unsigned long long>(piece.version),
                       bytes(piece.keys, piece.count * sizeof(uint64_t)),
                       bytes(piece.rows, piece.elements * sizeof(float)),
                       bytes(piece.removed, piece.removed_count * sizeof(uint64_t)));
}

PyObject* RowReaderToken(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 2);
  in.Take<covey_client>();
  auto* const reader = in.Take<covey_row_reader>();
  char* token = nullptr;
  return in.Call([&](covey_error* error) { return covey_row_reader_token(reader, &token, error); },
                 [&] { return TextResult(token); });
}

PyObject* ClientPushRows(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 7);
  auto* const client = in.Take<covey_client>();
  const auto* const table = in.Take<covey_table>();
  const auto* const batch = in.Take<covey_batch>();
  const Floats gradient = in.ReadOnlyFloats();
  const covey_push_options options = TakePushOptions(in);
  covey_handle* handle = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return covey_client_push_rows(client, table, batch, gradient.data, gradient.elements,
                                      &options, &handle, error);
      },
      [&] { return NewCapsule(handle); });
}

PyObject* ClientPullRows(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 8);
  auto* const client = in.Take<covey_client>();
  const auto* const table = in.Take<covey_table>();
  const auto* const batch = in.Take<covey_batch>();
  const Floats rows = in.WritableFloats();
  const covey_pull_options options = TakePullOptions(in);
  covey_handle* handle = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return covey_client_pull_rows(client, table, batch, rows.data, rows.elements, &options,
                                      &handle, error);
      },
      [&] { return NewCapsule(handle); });
}

PyObject* ClientPushPullRows(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 12);
  auto* const client = in.Take<covey_client>();
  const auto* const table = in.Take<covey_table>();
  const auto* const batch = in.Take<covey_batch>();
  const Floats gradient = in.ReadOnlyFloats();
  const Floats rows = in.WritableFloats();
  const covey_push_options push = TakePushOptions(in);
  const covey_pull_options pull = TakePullOptions(in);
  if (!in.failed() && gradient.elements != rows.elements) {
    in.Fail("gradient has " + std::to_string(gradient.elements) + " elements, out has " +
            std::to_string(rows.elements));
  }
  covey_handle* handle = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return covey_client_push_pull_rows(client, table, batch, gradient.data, rows.data,
                                           rows.elements, &push, &pull, &handle, error);
      },
      [&] { return NewCapsule(handle); });
}

// Each table has its capsule, its batch and its rows, after the client and the options.
constexpr Py_ssize_t kPartsOfTable = 3;

PyObject* ClientPushRowsMany(PyObject*, Given given, Py_ssize_t count) {
  constexpr Py_ssize_t kFirst = 4;
  Arguments in(given, count, std::max(count, kFirst));
  auto* const client = in.Take<covey_client>();
  const covey_push_options options = TakePushOptions(in);
  std::vector<covey_rows_to_push> tables;
  for (Py_ssize_t i = kFirst; i + kPartsOfTable <= count && !in.failed(); i += kPartsOfTable) {
    covey_rows_to_push table = COVEY_ROWS_TO_PUSH_INIT;
    table.table = in.Take<covey_table>();
    table.batch = in.Take<covey_batch>();
    const Floats gradient = in.ReadOnlyFloats();
    table.gradient = gradient.data;
    table.elements = gradient.elements;
    tables.push_back(table);
  }
  covey_handle* handle = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return covey_client_push_rows_many(client, tables.data(), tables.size(), &options, &handle,
                                           error);
      },
      [&] { return NewCapsule(handle); });
}

PyObject* ClientPullRowsMany(PyObject*, Given given, Py_ssize_t count) {
  constexpr Py_ssize_t kFirst = 5;
  Arguments in(given, count, std::max(count, kFirst));
  auto* const client = in.Take<covey_client>();
  const covey_pull_options options = TakePullOptions(in);
  std::vector<covey_rows_to_pull> tables;
  for (Py_ssize_t i = kFirst; i + kPartsOfTable <= count && !in.failed(); i += kPartsOfTable) {
    covey_rows_to_pull table = COVEY_ROWS_TO_PULL_INIT;
    table.table = in.Take<covey_table>();
    table.batch = in.Take<covey_batch>();
    const Floats rows = in.WritableFloats();
    table.rows = rows.data;
    table.elements = rows.elements;
    tables.push_back(table);
  }
  covey_handle* handle = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return covey_client_pull_rows_many(client, tables.data(), tables.size(), &options, &handle,
                                           error);
      },
      [&] { return NewCapsule(handle); });
}

PyObject* ClientFlush(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 2);
  auto* const client = in.Take<covey_client>();
  const double seconds = in.Number();
  return in.Call([&](covey_error* error) { return covey_client_flush(client, seconds, error); });
}

PyObject* ClientBarrier(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 4);
  auto* const client = in.Take<covey_client>();
  const char* const name = in.Text();
  const uint32_t participants = in.Count32();
  const double seconds = in.Number();
  return in.Call([&](covey_error* error) {
    return covey_client_barrier(client, name, participants, seconds, error);
  });
}

// --- Worker and group ---

PyObject* WorkerJoin(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  const char* const* const settings = in.Texts();
  covey_worker* worker = nullptr;
  return in.Call([&](covey_error* error) { return covey_worker_join(settings, &worker, error); },
                 [&] { return NewCapsule(worker); });
}

PyObject* WorkerPlace(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  auto* const worker = in.Take<covey_worker>();
  covey_place place = COVEY_PLACE_INIT;
  return in.Call([&](covey_error* error) { return covey_worker_place(worker, &place, error); },
                 [&] {
                   return Py_BuildValue("(IIIIIII)", place.rank, place.size, place.group,
                                        place.group_rank, place.group_size, place.groups,
                                        place.initial_groups);
                 });
}

PyObject* WorkerBarrier(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 3);
  auto* const worker = in.Take<covey_worker>();
  const char* const name = in.Text();
  const double seconds = in.Number();
  return in.Call(
      [&](covey_error* error) { return covey_worker_barrier(worker, name, seconds, error); });
}

PyObject* WorkerRequestDrain(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  auto* const worker = in.Take<covey_worker>();
  return in.Call([&](covey_error* error) { return covey_worker_request_drain(worker, error); });
}

PyObject* WorkerSetAway(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 3);
  auto* const worker = in.Take<covey_worker>();
  const char* const reason = in.Text();
  const double seconds = in.Number();
  return in.Call(
      [&](covey_error* error) { return covey_worker_set_away(worker, reason, seconds, error); });
}

PyObject* WorkerSetBack(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  auto* const worker = in.Take<covey_worker>();
  return in.Call([&](covey_error* error) { return covey_worker_set_back(worker, error); });
}

covey_collective_options TakeCollectiveOptions(Arguments& in) {
  covey_collective_options options = COVEY_COLLECTIVE_OPTIONS_INIT;
  options.format = in.Int();
  options.priority = in.Int();
  return options;
}

// The tensor of a collective: its memory, and the type of its elements.
struct Tensor {
  void* data = nullptr;
  uint64_t elements = 0;
  int32_t type = 0;
};

uint64_t ElementBytes(int32_t type) {
  if (type == COVEY_ELEMENT_FLOAT64 || type == COVEY_ELEMENT_INT64) return 8;
  return type == COVEY_ELEMENT_BYTE ? 1 : 4;
}

Tensor TakeTensor(Arguments& in) {
  const Bytes bytes = in.WritableBytes();
  const int32_t type = in.Int();
  return {.data = bytes.data, .elements = bytes.size / ElementBytes(type), .type = type};
}

using Reduction = covey_code (*)(covey_worker*, void*, uint64_t, int32_t, int32_t,
                                 const covey_collective_options*, covey_handle**, covey_error*);

template <Reduction start>
PyObject* GroupReduction(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 7);
  auto* const worker = in.Take<covey_worker>();
  const Bytes input = in.ReadOnlyBytes();
  const Tensor tensor = TakeTensor(in);
  const int32_t operation = in.Int();
  covey_collective_options options = TakeCollectiveOptions(in);
  options.input = input.data;
  // The package says it with the numbers.
  if (input.size / ElementBytes(tensor.type) != tensor.elements) in.Fail("needs equal sizes");
  covey_handle* handle = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return start(worker, tensor.data, tensor.elements, tensor.type, operation, &options,
                     &handle, error);
      },
      [&] { return NewCapsule(handle); });
}

PyObject* GroupAllGather(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 5);
  auto* const worker = in.Take<covey_worker>();
  const Tensor tensor = TakeTensor(in);
  const covey_collective_options options = TakeCollectiveOptions(in);
  covey_handle* handle = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return covey_group_all_gather_typed(worker, tensor.data, tensor.elements, tensor.type,
                                            &options, &handle, error);
      },
      [&] { return NewCapsule(handle); });
}

PyObject* GroupBroadcast(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 6);
  auto* const worker = in.Take<covey_worker>();
  const Tensor tensor = TakeTensor(in);
  const uint32_t root = in.Count32();
  const covey_collective_options options = TakeCollectiveOptions(in);
  covey_handle* handle = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return covey_group_broadcast_typed(worker, tensor.data, tensor.elements, tensor.type, root,
                                           &options, &handle, error);
      },
      [&] { return NewCapsule(handle); });
}

PyObject* GroupAllReduceMany(PyObject*, Given given, Py_ssize_t count) {
  // Worker, format, priority, and then the tensors.
  Arguments in(given, count, std::max<Py_ssize_t>(count, 3));
  auto* const worker = in.Take<covey_worker>();
  const covey_collective_options options = TakeCollectiveOptions(in);
  std::vector<float*> tensors;
  std::vector<uint64_t> elements;
  for (Py_ssize_t i = 3; i < count && !in.failed(); ++i) {
    const Floats data = in.WritableFloats();
    tensors.push_back(data.data);
    elements.push_back(data.elements);
  }
  covey_handle* handle = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return covey_group_all_reduce_many(worker, tensors.data(), elements.data(), tensors.size(),
                                           &options, &handle, error);
      },
      [&] { return NewCapsule(handle); });
}

PyObject* GroupBarrier(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  auto* const worker = in.Take<covey_worker>();
  covey_handle* handle = nullptr;
  return in.Call([&](covey_error* error) { return covey_group_barrier(worker, &handle, error); },
                 [&] { return NewCapsule(handle); });
}

PyObject* GroupRefresh(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  auto* const worker = in.Take<covey_worker>();
  return in.Call([&](covey_error* error) { return covey_group_refresh(worker, error); });
}

// --- Step ---

PyObject* StepCreate(PyObject*, Given given, Py_ssize_t count) {
  // Worker, update, lag, error feedback, largest norm of a gradient, how to combine, whether to
  // tune; and then, for each tensor, definition, values and rate factor.
  Arguments in(given, count, std::max<Py_ssize_t>(count, 7));
  auto* const worker = in.Take<covey_worker>();
  covey_step_options options = COVEY_STEP_OPTIONS_INIT;
  options.update = in.Int();
  options.lag = in.Count32();
  options.error_feedback = in.Int();
  options.max_gradient_norm = in.Number();
  options.combine = in.Int();
  options.autotune = in.Count32();
  std::vector<covey_step_tensor> tensors;
  for (Py_ssize_t i = 7; i + 2 < count && !in.failed(); i += 3) {
    covey_step_tensor tensor = COVEY_STEP_TENSOR_INIT;
    tensor.table = in.Text();
    const Floats values = in.WritableFloats();
    tensor.values = values.data;
    tensor.elements = values.elements;
    tensor.rate_factor = in.Number();
    tensors.push_back(tensor);
  }
  covey_step* step = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return covey_step_create(worker, tensors.data(), tensors.size(), &options, &step, error);
      },
      [&] { return NewCapsule(step); });
}

PyObject* StepBegin(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 2);
  auto* const step = in.Take<covey_step>();
  const uint64_t samples = in.Count();
  return in.Call([&](covey_error* error) { return covey_step_begin(step, samples, error); });
}

PyObject* StepSubmit(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 3);
  auto* const step = in.Take<covey_step>();
  const uint64_t tensor = in.Count();
  const Floats gradient = in.ReadOnlyFloats();
  return in.Call([&](covey_error* error) {
    return covey_step_submit(step, tensor, gradient.data, gradient.elements, error);
  });
}

PyObject* StepSetRateFactor(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 3);
  auto* const step = in.Take<covey_step>();
  const uint64_t tensor = in.Count();
  const double factor = in.Number();
  return in.Call(
      [&](covey_error* error) { return covey_step_set_rate_factor(step, tensor, factor, error); });
}

PyObject* StepWait(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 3);
  auto* const step = in.Take<covey_step>();
  const uint64_t tensor = in.Count();
  const double seconds = in.Number();
  if (in.failed()) return nullptr;
  covey_result none = COVEY_RESULT_INIT;
  return WaitInSlices(
      seconds,
      [&](double slice, covey_error* error) { return covey_step_wait(step, tensor, slice, error); },
      [&] { return covey_step_in_flight(step, tensor) == 0; }, &NoResult, none);
}

PyObject* StepFinish(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  auto* const step = in.Take<covey_step>();
  return in.Call([&](covey_error* error) { return covey_step_finish(step, error); });
}

PyObject* StepRefresh(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  auto* const step = in.Take<covey_step>();
  return in.Call([&](covey_error* error) { return covey_step_refresh(step, error); });
}

PyObject* StepNumber(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  auto* const step = in.Take<covey_step>();
  uint64_t number = 0;
  return in.Call([&](covey_error* error) { return covey_step_number(step, &number, error); },
                 [&] { return PyLong_FromUnsignedLongLong(number); });
}

PyObject* StepMeanSamples(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 2);
  auto* const step = in.Take<covey_step>();
  const uint64_t tensor = in.Count();
  uint64_t samples = 0;
  return in.Call(
      [&](covey_error* error) { return covey_step_mean_samples(step, tensor, &samples, error); },
      [&] { return PyLong_FromUnsignedLongLong(samples); });
}

PyObject* StepGradientNorm(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  auto* const step = in.Take<covey_step>();
  double norm = 0;
  return in.Call([&](covey_error* error) { return covey_step_gradient_norm(step, &norm, error); },
                 [&] { return PyFloat_FromDouble(norm); });
}

PyObject* StepSamplesFor(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 2);
  auto* const step = in.Take<covey_step>();
  const uint64_t batch = in.Count();
  uint64_t samples = 0;
  return in.Call(
      [&](covey_error* error) { return covey_step_samples_for(step, batch, &samples, error); },
      [&] { return PyLong_FromUnsignedLongLong(samples); });
}

PyObject* StepReport(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 2);
  auto* const step = in.Take<covey_step>();
  const double loss = in.Number();
  return in.Call([&](covey_error* error) { return covey_step_report(step, loss, error); });
}

// --- Data source ---

PyObject* SourceOpen(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 7);
  auto* const worker = in.Take<covey_worker>();
  covey_source_options options = COVEY_SOURCE_OPTIONS_INIT;
  options.name = in.Text();
  options.examples = in.Count();
  options.item_examples = in.Count();
  options.passes = in.Count();
  options.seed = in.Count();
  options.at_pass_end = in.Int();
  covey_source* source = nullptr;
  return in.Call(
      [&](covey_error* error) { return covey_source_open(worker, &options, &source, error); },
      [&] { return NewCapsule(source); });
}

// The positions as bytes of uint32.
PyObject* SourceTake(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 2);
  auto* const source = in.Take<covey_source>();
  const uint64_t samples = in.Count();
  const uint32_t* positions = nullptr;
  size_t taken = 0;
  return in.Call(
      [&](covey_error* error) {
        return covey_source_take(source, samples, &positions, &taken, error);
      },
      [&] {
        return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(positions),
                                         static_cast<Py_ssize_t>(taken * sizeof(uint32_t)));
      });
}

PyObject* SourceFinish(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 2);
  auto* const source = in.Take<covey_source>();
  const uint64_t in_progress = in.Count();
  return in.Call(
      [&](covey_error* error) { return covey_source_finish(source, in_progress, error); });
}

PyObject* SourceDone(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  auto* const source = in.Take<covey_source>();
  if (in.failed()) return nullptr;
  return PyBool_FromLong(WithoutLock([&] { return covey_source_done(source); }));
}

PyObject* SourceExamplesFinished(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  auto* const source = in.Take<covey_source>();
  if (in.failed()) return nullptr;
  return PyLong_FromUnsignedLongLong(
      WithoutLock([&] { return covey_source_examples_finished(source); }));
}

PyObject* SourceMeetAtEnd(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 2);
  auto* const source = in.Take<covey_source>();
  auto* const step = in.Take<covey_step>();
  int32_t over = 0;
  return in.Call(
      [&](covey_error* error) { return covey_source_meet_at_end(source, step, &over, error); },
      [&] { return PyBool_FromLong(over); });
}

PyObject* SourcePass(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  auto* const source = in.Take<covey_source>();
  if (in.failed()) return nullptr;
  return PyLong_FromUnsignedLongLong(WithoutLock([&] { return covey_source_pass(source); }));
}

PyObject* SourceNextPass(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  auto* const source = in.Take<covey_source>();
  int32_t goes_on = 0;
  return in.Call(
      [&](covey_error* error) { return covey_source_next_pass(source, &goes_on, error); },
      [&] { return PyBool_FromLong(goes_on); });
}

// --- Local rows ---

PyObject* LocalRowsOpen(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 3);
  auto* const worker = in.Take<covey_worker>();
  const char* const definition = in.Text();
  covey_local_rows_options options = COVEY_LOCAL_ROWS_OPTIONS_INIT;
  options.rows_max = in.Count();
  covey_local_rows* rows = nullptr;
  return in.Call(
      [&](covey_error* error) {
        return covey_local_rows_open(worker, definition, &options, &rows, error);
      },
      [&] { return NewCapsule(rows); });
}

// Repeats `call(slice, &error)`, which goes on with what is in flight, until that has ended, or a
// handler of a signal has raised.
template <typename Call>
PyObject* RepeatInSlices(covey_local_rows* rows, const Call& call) {
  for (;;) {
    covey_error error = COVEY_ERROR_INIT;
    const covey_code code = WithoutLock([&] { return call(kSliceSeconds, &error); });
    if (code == COVEY_OK) return NoResult({});
    if (code != COVEY_DEADLINE_EXCEEDED || covey_local_rows_in_flight(rows) == 0) {
      return Raise(error);
    }
    if (PyErr_CheckSignals() != 0) return nullptr;
  }
}

PyObject* LocalRowsPull(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 3);
  auto* const rows = in.Take<covey_local_rows>();
  const KeySpan keys = in.Keys();
  const Floats values = in.WritableFloats();
  if (in.failed()) return nullptr;
  return RepeatInSlices(rows, [&](double slice, covey_error* error) {
    return covey_local_rows_pull(rows, keys.data, keys.count, values.data, values.elements, slice,
                                 error);
  });
}

PyObject* LocalRowsStep(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 3);
  auto* const rows = in.Take<covey_local_rows>();
  const Floats gradient = in.ReadOnlyFloats();
  const uint64_t samples = in.Count();
  if (in.failed()) return nullptr;
  return RepeatInSlices(rows, [&](double slice, covey_error* error) {
    return covey_local_rows_step(rows, gradient.data, gradient.elements, samples, slice, error);
  });
}

PyObject* LocalRowsFinish(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  auto* const rows = in.Take<covey_local_rows>();
  if (in.failed()) return nullptr;
  return RepeatInSlices(rows, [&](double slice, covey_error* error) {
    return covey_local_rows_finish(rows, slice, error);
  });
}

PyObject* LocalRowsWidth(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  const auto* const rows = in.Take<covey_local_rows>();
  return in.failed() ? nullptr : PyLong_FromUnsignedLongLong(covey_local_rows_width(rows));
}

PyObject* LocalRowsRound(PyObject*, Given given, Py_ssize_t count) {
  Arguments in(given, count, 1);
  auto* const rows = in.Take<covey_local_rows>();
  uint64_t round = 0;
  return in.Call([&](covey_error* error) { return covey_local_rows_round(rows, &round, error); },
                 [&] { return PyLong_FromUnsignedLongLong(round); });
}

using Function = PyObject* (*)(PyObject*, Given, Py_ssize_t);

PyMethodDef Method(const char* name, Function function) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)),
          METH_FASTCALL, nullptr};
}

PyMethodDef methods[] = {
    Method("set_errors", &SetErrors),
    Method("library_version", &LibraryVersion),
    Method("keep_freed_memory", &KeepFreedMemory),
    Method("address_of", &AddressOf),
    Method("handle_done", &HandleDone),
    Method("handle_wait", &HandleWait),
    Method("handle_answer", &HandleAnswer),
    Method("notifier_new", &NotifierNew),
    Method("notifier_descriptor", &NotifierDescriptor),
    Method("notifier_add", &NotifierAdd),
    Method("client_connect", &ClientConnect),
    Method("client_close", &Close<covey_client>),
    Method("client_create_table", &ClientCreateTable),
    Method("client_find_table", &ClientFindTable),
    Method("client_list_tables", &ClientListTables),
    Method("client_initialize_tables", &ClientInitializeTables),
    Method("client_drop_table", &ClientDropTable),
    Method("client_set_contract", &ClientSetContract),
    Method("client_status", &ClientStatus),
    Method("batch_new", &BatchNew),
    Method("row_cache_new", &RowCacheNew),
    Method("row_cache_pull", &RowCachePull),
    Method("row_cache_invalidate", &RowCacheInvalidate),
    Method("row_cache_count", &RowCacheCount),
    Method("row_reader_new", &RowReaderNew),
    Method("row_reader_next", &RowReaderNext),
    Method("row_reader_token", &RowReaderToken),
    Method("row_filter_new", &RowFilterNew),
    Method("row_filter_push", &RowFilterPush),
    Method("row_filter_flush", &RowFilterFlush),
    Method("row_filter_count", &RowFilterCount),
    Method("client_push_rows", &ClientPushRows),
    Method("client_pull_rows", &ClientPullRows),
    Method("client_push_pull_rows", &ClientPushPullRows),
    Method("client_push_rows_many", &ClientPushRowsMany),
    Method("client_pull_rows_many", &ClientPullRowsMany),
    Method("client_push", &ClientPush),
    Method("client_pull", &ClientPull<&covey_client_pull>),
    Method("client_pull_state", &ClientPull<&covey_client_pull_state>),
    Method("table_slots", &TableSlots),
    Method("client_push_pull", &ClientPushPull),
    Method("client_push_outer_products", &ClientPushOuterProducts),
    Method("client_push_pull_outer_products", &ClientPushPullOuterProducts),
    Method("table_vectors", &TableVectors),
    Method("client_call", &ClientCall),
    Method("client_ask", &ClientAsk),
    Method("client_flush", &ClientFlush),
    Method("client_barrier", &ClientBarrier),
    Method("worker_join", &WorkerJoin),
    Method("worker_leave", &Close<covey_worker>),
    Method("worker_place", &WorkerPlace),
    Method("worker_barrier", &WorkerBarrier),
    Method("worker_request_drain", &WorkerRequestDrain),
    Method("worker_set_away", &WorkerSetAway),
    Method("worker_set_back", &WorkerSetBack),
    Method("group_all_reduce", &GroupReduction<&covey_group_all_reduce_typed>),
    Method("group_all_reduce_many", &GroupAllReduceMany),
    Method("group_reduce_scatter", &GroupReduction<&covey_group_reduce_scatter_typed>),
    Method("group_all_gather", &GroupAllGather),
    Method("group_broadcast", &GroupBroadcast),
    Method("group_barrier", &GroupBarrier),
    Method("group_refresh", &GroupRefresh),
    Method("step_create", &StepCreate),
    Method("step_free", &Close<covey_step>),
    Method("step_begin", &StepBegin),
    Method("step_submit", &StepSubmit),
    Method("step_set_rate_factor", &StepSetRateFactor),
    Method("step_wait", &StepWait),
    Method("step_finish", &StepFinish),
    Method("step_refresh", &StepRefresh),
    Method("step_number", &StepNumber),
    Method("step_mean_samples", &StepMeanSamples),
    Method("step_gradient_norm", &StepGradientNorm),
    Method("step_samples_for", &StepSamplesFor),
    Method("step_report", &StepReport),
    Method("source_open", &SourceOpen),
    Method("source_close", &Close<covey_source>),
    Method("source_take", &SourceTake),
    Method("source_finish", &SourceFinish),
    Method("source_done", &SourceDone),
    Method("source_examples_finished", &SourceExamplesFinished),
    Method("source_meet_at_end", &SourceMeetAtEnd),
    Method("source_pass", &SourcePass),
    Method("source_next_pass", &SourceNextPass),
    Method("local_rows_open", &LocalRowsOpen),
    Method("local_rows_close", &Close<covey_local_rows>),
    Method("local_rows_pull", &LocalRowsPull),
    Method("local_rows_step", &LocalRowsStep),
    Method("local_rows_finish", &LocalRowsFinish),
    Method("local_rows_width", &LocalRowsWidth),
    Method("local_rows_round", &LocalRowsRound),
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_native", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace covey::python

PyMODINIT_FUNC PyInit__native(void) { return PyModule_Create(&covey::python::module); }
