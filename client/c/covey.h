/* SPDX-License-Identifier: Apache-2.0 */

/* Covey for programs in C, and for bindings of other languages: the one header of libcovey.so.
 *
 * It covers the same ground as client/parameter_client.h, worker/worker.h, worker/group.h,
 * worker/hybrid_step.h, worker/data_source.h and worker/local_rows.h, which explain each operation
 * in full.
 *
 *   const char* settings[] = {"scheduler=127.0.0.1:7000", NULL};
 *   covey_error error = COVEY_ERROR_INIT;
 *   covey_client* client;
 *   if (covey_client_connect(settings, &client, &error) != COVEY_OK) return Fail(&error);
 *   covey_table* table;
 *   if (covey_client_create_table(client, "{\"name\": \"w\", ...}", &table, &error) != COVEY_OK) ...
 *   covey_handle* handle;
 *   if (covey_client_push(client, table, gradient, 4, NULL, &handle, &error) != COVEY_OK) ...
 *   if (covey_handle_wait(handle, COVEY_FOREVER, NULL, &error) != COVEY_OK) ...
 *   covey_handle_free(handle);
 *
 * Errors. A function that can fail returns a covey_code, and writes the code and a sentence for
 * users to `error`, unless it is NULL. When it fails, output arguments are unchanged.
 *
 * Settings. "name=value" strings, the last one followed by NULL; the whole array may be NULL. The
 * names and values are those of the flags of Covey's own programs, for example
 * "operation-deadline=30s". A setting that is not given comes from the environment (COVEY_SCHEDULER,
 * COVEY_OPERATION_DEADLINE), then from the YAML file that COVEY_CONFIG names, then from the default.
 * An unknown name is INVALID_ARGUMENT, and the error names the nearest known one.
 *
 * Definitions. A table is a JSON object with the fields of TableSpec in proto/table.proto:
 * {"name": "w", "shape": [4], "optimizer": {"kind": "ADAM"}, "learning_rate": {"base": 0.001},
 * "contract": {"kind": "BUFFERED"}}. The data type may be left out. An unknown field is
 * INVALID_ARGUMENT, and the error names the nearest known one.
 *
 * Memory. Objects are opaque: what a function creates is released by the function of the same kind
 * that ends in _free, _close or _leave; NULL is allowed there. Release handles, tables, steps,
 * sources and local rows before the client or worker that they come from. Floats are IEEE binary32
 * in the machine's order, which is little-endian.
 *
 * Times are in seconds; COVEY_FOREVER waits until the operation's own deadline.
 *
 * Threads. A client, its tables and all handles: any threads at once. A worker with its groups,
 * steps, sources and local rows: any thread, one call at a time; a second call waits until the
 * first one has returned. Threads that the library starts block all signals. No function calls back.
 *
 * fork. An object belongs to the process that has created it. In a child of fork, calls are
 * FAILED_PRECONDITION, and releasing an object does nothing.
 *
 * Compatibility. Structs begin with their size, which the _INIT macros set: a program that was
 * compiled with an older header works with a newer library. With an older library, a newer program
 * works as long as it leaves the new fields zero; otherwise calls are INVALID_ARGUMENT. Functions
 * and fields are only added; codes are never reused. */

#ifndef COVEY_H_
#define COVEY_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define COVEY_API __attribute__((visibility("default")))
#else
#define COVEY_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --- Library --- */

/* Of the library, in three numbers with dots between them. Static. */
COVEY_API const char* covey_version(void);
/* Counts changes of this header; a program needs a library with at least its own number. */
#define COVEY_ABI_VERSION 1
COVEY_API uint32_t covey_abi_version(void);

/* Lets freed memory stay with the process, for all code in it. Messages come and go by the
 * megabyte, and the first touch of new pages is several times slower than the network: this makes
 * large transfers faster, and the process a little larger. Call it before the first connect. */
COVEY_API void covey_keep_freed_memory(void);

/* --- Errors --- */

/* Meanings: docs/PROTOCOL.md. Numbers as in gRPC. */
typedef int32_t covey_code;
enum {
  COVEY_OK = 0,
  COVEY_CANCELLED = 1,         /* asked to leave, or closed first */
  COVEY_UNKNOWN = 2,           /* not used by this version */
  COVEY_INVALID_ARGUMENT = 3,  /* the caller's mistake; do not retry */
  COVEY_DEADLINE_EXCEEDED = 4, /* effect unknown */
  COVEY_NOT_FOUND = 5,
  COVEY_ALREADY_EXISTS = 6,
  COVEY_PERMISSION_DENIED = 7,  /* the certificate does not allow this */
  COVEY_RESOURCE_EXHAUSTED = 8, /* a limit was reached; slow down, then retry */
  COVEY_FAILED_PRECONDITION = 9,
  COVEY_ABORTED = 10,      /* this process was declared dead or replaced; stop */
  COVEY_OUT_OF_RANGE = 11, /* what has changed since is not known any more; read all rows again */
  COVEY_INTERNAL = 13,     /* a bug of Covey */
  COVEY_UNAVAILABLE = 14,
  COVEY_DATA_LOSS = 15,
  COVEY_UNAUTHENTICATED = 16 /* no certificate, or none that is valid */
};
/* "INVALID_ARGUMENT". Static. */
COVEY_API const char* covey_code_name(covey_code code);

typedef struct covey_error {
  uint32_t struct_size;
  covey_code code;
  /* One sentence in UTF-8 that names what, where and the next thing to do; ends with NUL; cut when
   * it is longer. */
  char message[1024];
} covey_error;
#define COVEY_ERROR_INIT \
  { sizeof(covey_error), COVEY_OK, "" }

#define COVEY_FOREVER (-1.0)

/* Releases a text that a function has returned. */
COVEY_API void covey_text_free(char* text);

/* --- Handles --- */

/* An operation in progress. Releasing a handle does not end its operation: the memory of the
 * operation must stay valid until it is done. */
typedef struct covey_handle covey_handle;

typedef struct covey_result {
  uint32_t struct_size;
  /* Each 0 or 1; see client/operation_result.h. */
  uint32_t duplicate;
  uint32_t discarded;
  uint32_t durable;
  /* Lowest version among the shards. */
  uint64_t version;
  /* Most updates by others between the values a gradient was computed on and its application. */
  uint64_t staleness;
  /* Longest time since a shard's last update. */
  double age_seconds;
  /* Of covey_client_pull_state: training examples behind the table. */
  uint64_t samples;
  /* Of a push to a sparse table that holds as many rows as it may: rows that its update did not
   * make, and whose gradients are lost. The operation ends with FAILED_PRECONDITION then, although
   * all other rows are updated, unless the table has SparseRows.when_full SKIP or EVICT. */
  uint64_t rows_refused;
} covey_result;
#define COVEY_RESULT_INIT \
  { sizeof(covey_result), 0, 0, 0, 0, 0, 0, 0, 0 }

COVEY_API int32_t covey_handle_done(const covey_handle* handle);
/* Waits until the operation has ended, or for `seconds`; returns its status, and its result unless
 * `result` is NULL. DEADLINE_EXCEEDED while covey_handle_done is 0: it continues. */
COVEY_API covey_code covey_handle_wait(const covey_handle* handle, double seconds,
                                       covey_result* result, covey_error* error);
COVEY_API void covey_handle_free(covey_handle* handle);

/* Lets an event loop wait for any number of operations: its descriptor becomes readable when one
 * has ended. It is one of eventfd(2) that does not block: read 8 bytes of it, then ask
 * covey_handle_done. RESOURCE_EXHAUSTED: the process has too many open descriptors. */
typedef struct covey_notifier covey_notifier;
COVEY_API covey_code covey_notifier_new(covey_notifier** notifier, covey_error* error);
/* Open until covey_notifier_free; not to be closed by the program. */
COVEY_API int32_t covey_notifier_descriptor(const covey_notifier* notifier);
/* Makes the descriptor readable when the operation ends, or now if it has. */
COVEY_API covey_code covey_notifier_add(const covey_notifier* notifier, const covey_handle* handle,
                                        covey_error* error);
/* Also while operations are in progress; they continue. */
COVEY_API void covey_notifier_free(covey_notifier* notifier);

/* --- Client: reads and changes parameters; belongs to no group --- */

typedef struct covey_client covey_client;
typedef struct covey_table covey_table;

/* Wire formats of gradients and collectives (common/tensor/wire_format.h). COVEY_TOPK is for tables
 * that a step trains, which sends later what it leaves out. */
enum {
  COVEY_FLOAT32 = 0,
  COVEY_FLOAT16 = 1,
  COVEY_BFLOAT16 = 2,
  COVEY_INT8 = 3,
  COVEY_SCALED_FLOAT16 = 4,
  COVEY_FLOAT8 = 5,
  COVEY_TOPK = 6
};

typedef struct covey_push_options {
  uint32_t struct_size;
  int32_t format;
  /* Training examples behind the gradient, which is their SUM. */
  uint64_t samples;
  /* 0 = the setting operation-deadline. */
  double deadline_seconds;
} covey_push_options;
#define COVEY_PUSH_OPTIONS_INIT \
  { sizeof(covey_push_options), COVEY_FLOAT32, 1, 0 }

typedef struct covey_pull_options {
  uint32_t struct_size;
  /* 1 = `staleness` counts; 0 = the table's contract decides. */
  uint32_t has_staleness;
  uint64_t staleness;
  uint64_t min_version;
  /* Longest time since a shard's last update; 0 = any. */
  double max_age_seconds;
  /* As in covey_push_options. */
  double deadline_seconds;
  /* Wire format of a dense table's values; the servers keep float32. Not COVEY_TOPK. For rows, an
   * optimizer's state and answers another one than COVEY_FLOAT32 is an INVALID_ARGUMENT. */
  int32_t format;
  uint32_t reserved;
} covey_pull_options;
#define COVEY_PULL_OPTIONS_INIT \
  { sizeof(covey_pull_options), 0, 0, 0, 0, 0, COVEY_FLOAT32, 0 }

/* Settings: scheduler, job, tls, labels, join-deadline, operation-deadline, spin. Blocks up to
 * join-deadline. UNAVAILABLE: no scheduler at this address. */
COVEY_API covey_code covey_client_connect(const char* const* settings, covey_client** client,
                                          covey_error* error);
/* Leaves the cluster; takes up to two seconds. Operations in progress end with CANCELLED. */
COVEY_API void covey_client_close(covey_client* client);

/* Returns an existing table if its definition is equal. ALREADY_EXISTS: it exists with another. */
COVEY_API covey_code covey_client_create_table(covey_client* client, const char* definition,
                                               covey_table** table, covey_error* error);
COVEY_API covey_code covey_client_find_table(covey_client* client, const char* name,
                                             covey_table** table, covey_error* error);
/* The definitions of all tables as a JSON array; release it with covey_text_free. */
COVEY_API covey_code covey_client_list_tables(covey_client* client, char** definitions,
                                              covey_error* error);
COVEY_API covey_code covey_client_drop_table(covey_client* client, const char* name,
                                             covey_error* error);
/* Changes a table's contract from now on: "bsp", "ssp:2", "async", "buffered", "local:16". */
COVEY_API covey_code covey_client_set_contract(covey_client* client, const char* name,
                                               const char* contract, covey_error* error);
/* The data behind `covey status` as JSON; release it with covey_text_free. */
COVEY_API covey_code covey_client_status(covey_client* client, char** status, covey_error* error);

/* 0 for a sparse table. */
COVEY_API uint64_t covey_table_elements(const covey_table* table);
/* Elements of a row of a sparse table; 0 for a dense one. */
COVEY_API uint64_t covey_table_width(const covey_table* table);
/* Arrays of state that the optimizer keeps on the servers, each as large as the table. */
COVEY_API uint64_t covey_table_slots(const covey_table* table);
/* Valid as long as the table. */
COVEY_API const char* covey_table_name(const covey_table* table);
COVEY_API void covey_table_free(covey_table* table);

/* The values with which a table is to begin. */
typedef struct covey_initial_values {
  uint32_t struct_size;
  uint32_t reserved;
  const covey_table* table;
  const float* values;
  uint64_t elements; /* The table's number. */
  /* The optimizer's state, as covey_client_pull_state reads it: its slots one after the other,
   * covey_table_slots times the table; the updates that have made the values (`version`), and the
   * training examples in them (`samples`), at most 2^61 each. NULL and zeros: the optimizer begins
   * empty. */
  const float* slots;
  uint64_t slot_elements;
  uint64_t updates;
  uint64_t samples;
} covey_initial_values;
#define COVEY_INITIAL_VALUES_INIT \
  { sizeof(covey_initial_values), 0, 0, 0, 0, 0, 0, 0, 0 }

/* Gives tables whose initializer is {"kind": "GIVEN"} the values with which they begin, and their
 * optimizers' state where the program has it; until then pushes and pulls of them wait, and fail with
 * DEADLINE_EXCEEDED when their own time is over. Of all calls for the same tables, in all programs,
 * one gives the values of all of them, and the others wait until it has finished; when it fails,
 * another one gives all values. `given`, which may be NULL, becomes 1 in that one, and 0 where all
 * tables had their values. Blocks, at most for `seconds` (0 = operation-deadline), which covers the
 * transfer of all values. FAILED_PRECONDITION: another initializer. INVALID_ARGUMENT: values or state
 * do not fit the table and its optimizer, are not finite, or a table is named twice. UNAVAILABLE:
 * another call has not finished in time; names its program. */
COVEY_API covey_code covey_client_initialize_tables(covey_client* client,
                                                    const covey_initial_values* tables,
                                                    size_t count, double seconds, int32_t* given,
                                                    covey_error* error);

/* Start an operation. `elements` is the table's number. Gradients must stay unchanged, and values
 * untouched, until the handle is done. `options` may be NULL. A push is applied at most once; after
 * DEADLINE_EXCEEDED or UNAVAILABLE it is unknown whether it was applied. */
COVEY_API covey_code covey_client_push(covey_client* client, const covey_table* table,
                                       const float* gradient, uint64_t elements,
                                       const covey_push_options* options, covey_handle** handle,
                                       covey_error* error);
COVEY_API covey_code covey_client_pull(covey_client* client, const covey_table* table,
                                       float* values, uint64_t elements,
                                       const covey_pull_options* options, covey_handle** handle,
                                       covey_error* error);
/* Reads values and optimizer state: `arrays` takes (1 + covey_table_slots) times the table, the
 * values first. Of each shard they are of one version; `version` of the result counts its updates.
 * For Adam the slots are the running mean and the mean square. */
COVEY_API covey_code covey_client_pull_state(covey_client* client, const covey_table* table,
                                             float* arrays, uint64_t elements,
                                             const covey_pull_options* options,
                                             covey_handle** handle, covey_error* error);
/* One round trip: applies the gradient, then reads the values. */
COVEY_API covey_code covey_client_push_pull(covey_client* client, const covey_table* table,
                                            const float* gradient, float* values, uint64_t elements,
                                            const covey_push_options* push,
                                            const covey_pull_options* pull, covey_handle** handle,
                                            covey_error* error);

/* --- Gradients in factors --- */

/* A gradient of a dense table of two dimensions or more, which is taken as a matrix of as many rows
 * as its first dimension: the sum over the terms, in their order, of left[row] * right[column]. The
 * elements of a term follow those of the term before. */
typedef struct covey_outer_products {
  uint32_t struct_size;
  uint32_t reserved;
  const float* left;
  uint64_t left_elements; /* terms times the rows */
  const float* right;
  uint64_t right_elements; /* terms times the columns */
  uint64_t terms;          /* at least 1 */
} covey_outer_products;
#define COVEY_OUTER_PRODUCTS_INIT \
  { sizeof(covey_outer_products), 0, NULL, 0, NULL, 0, 0 }

/* As covey_client_push and push_pull. Each shard is sent the factors or its elements of the gradient,
 * whichever are fewer bytes (client/parameter_client.h). The factors must stay unchanged until the
 * handle is done. The handle ends with INVALID_ARGUMENT where the lengths do not fit, and for a table
 * of one dimension or of vectors. */
COVEY_API covey_code covey_client_push_outer_products(covey_client* client,
                                                      const covey_table* table,
                                                      const covey_outer_products* gradient,
                                                      const covey_push_options* options,
                                                      covey_handle** handle, covey_error* error);
COVEY_API covey_code covey_client_push_pull_outer_products(
    covey_client* client, const covey_table* table, const covey_outer_products* gradient,
    float* values, uint64_t elements, const covey_push_options* push,
    const covey_pull_options* pull, covey_handle** handle, covey_error* error);

/* --- Tables of vectors: what servers compute (common/vectors/vector_function.h) --- */

/* Of a table with {"kind": "VECTORS", "vectors": N} as optimizer: 1 + N, the values among them, which
 * are vector 0. 0 for other tables. A push adds its gradient, times the learning rate and divided by
 * the samples, to vector 1. */
COVEY_API uint64_t covey_table_vectors(const covey_table* table);

enum {
  COVEY_FUNCTION_SET = 0,   /* target = scalar */
  COVEY_FUNCTION_SCALE = 1, /* target *= scalar */
  COVEY_FUNCTION_COPY = 2,  /* target = source */
  COVEY_FUNCTION_AXPY = 3   /* target += scalar * source */
};
typedef struct covey_vector_function {
  uint32_t struct_size;
  int32_t kind;
  uint32_t target;
  uint32_t source;
  double scalar; /* finite in float32 */
} covey_vector_function;
#define COVEY_VECTOR_FUNCTION_INIT \
  { sizeof(covey_vector_function), COVEY_FUNCTION_SET, 0, 0, 0 }

/* One update of each shard, by `count` functions in their order, 1 to 256: on arrival, exactly once,
 * and as durable as a push. They see what earlier operations have applied that were waited for.
 * `seconds`: deadline; 0 = the client's. INVALID_ARGUMENT, perhaps of the handle: the table is not one
 * of vectors, or has none of that number, or its contract is neither async nor ssp. */
COVEY_API covey_code covey_client_call(covey_client* client, const covey_table* table,
                                       const covey_vector_function* functions, size_t count,
                                       double seconds, covey_handle** handle, covey_error* error);

enum {
  COVEY_QUERY_DOT = 0, /* sum of vector * other */
  COVEY_QUERY_NORM1 = 1,
  COVEY_QUERY_NORM2 = 2,
  COVEY_QUERY_NORM_MAX = 3,
  COVEY_QUERY_SUM = 4,
  COVEY_QUERY_MIN = 5,
  COVEY_QUERY_MAX = 6,
  COVEY_QUERY_NON_ZERO = 7, /* number of elements other than 0 */
  COVEY_QUERY_TOP = 8       /* the `count` elements of largest magnitude, at most 1024 */
};
typedef struct covey_vector_query {
  uint32_t struct_size;
  int32_t kind;
  uint32_t vector;
  uint32_t other;
  uint32_t count;
  uint32_t reserved;
} covey_vector_query;
#define COVEY_VECTOR_QUERY_INIT \
  { sizeof(covey_vector_query), COVEY_QUERY_DOT, 0, 0, 0, 0 }

/* Answers to 1 to 256 queries, of one durable version of each shard, as a pull reads it. */
COVEY_API covey_code covey_client_ask(covey_client* client, const covey_table* table,
                                      const covey_vector_query* queries, size_t count,
                                      const covey_pull_options* options, covey_handle** handle,
                                      covey_error* error);

typedef struct covey_vector_answer {
  uint32_t struct_size;
  uint32_t reserved;
  double value; /* 0 of COVEY_QUERY_TOP */
  uint64_t
      top_count; /* elements that COVEY_QUERY_TOP has found; fewer than asked for in small tables */
} covey_vector_answer;
#define COVEY_VECTOR_ANSWER_INIT \
  { sizeof(covey_vector_answer), 0, 0, 0 }

/* Once the handle of covey_client_ask is done: the answer to the query of this number, from 0 on.
 * FAILED_PRECONDITION: it is in progress. */
COVEY_API covey_code covey_handle_answer(const covey_handle* handle, size_t query,
                                         covey_vector_answer* answer, covey_error* error);
/* The same of COVEY_QUERY_TOP: the places in the table, in row-major order, and the values of its
 * `count` elements, the largest magnitude first. `count` is the answer's top_count. */
COVEY_API covey_code covey_handle_top(const covey_handle* handle, size_t query, uint64_t* places,
                                      float* values, size_t count, covey_error* error);

/* --- Rows of a sparse table --- */

/* The keys of a mini-batch, for the rows of one table: sorted, rid of repeats, and divided among the
 * table's shards once, for the pull of the rows and the push of their gradients. Never changes, so
 * any thread may use it. INVALID_ARGUMENT: the table is dense. */
typedef struct covey_batch covey_batch;
COVEY_API covey_code covey_batch_new(const covey_table* table, const uint64_t* keys, uint64_t count,
                                     covey_batch** batch, covey_error* error);
/* Also while operations that use it are in progress. */
COVEY_API void covey_batch_free(covey_batch* batch);

/* As covey_client_push, pull and push_pull, of rows: `gradient` and `rows` have
 * covey_table_width elements for each of the keys, in their order; `elements` is that product.
 * Gradients of a key that comes more than once are added up. A row that no push has made yet reads
 * as its first values, and no pull makes one. `gradient` is the caller's again when the call
 * returns; `rows` when the handle is done, and after an error it may have some of the rows.
 * INVALID_ARGUMENT: the batch was made for another table, or one shard gets more than 2^20 of its
 * keys or 16 MiB of rows. */
COVEY_API covey_code covey_client_push_rows(covey_client* client, const covey_table* table,
                                            const covey_batch* batch, const float* gradient,
                                            uint64_t elements, const covey_push_options* options,
                                            covey_handle** handle, covey_error* error);
COVEY_API covey_code covey_client_pull_rows(covey_client* client, const covey_table* table,
                                            const covey_batch* batch, float* rows,
                                            uint64_t elements, const covey_pull_options* options,
                                            covey_handle** handle, covey_error* error);
COVEY_API covey_code covey_client_push_pull_rows(covey_client* client, const covey_table* table,
                                                 const covey_batch* batch, const float* gradient,
                                                 float* rows, uint64_t elements,
                                                 const covey_push_options* push,
                                                 const covey_pull_options* pull,
                                                 covey_handle** handle, covey_error* error);

/* The rows of one of several tables; table, batch, memory and `elements` as for
 * covey_client_pull_rows and covey_client_push_rows. */
typedef struct covey_rows_to_pull {
  uint32_t struct_size;
  uint32_t reserved;
  const covey_table* table;
  const covey_batch* batch;
  float* rows;
  uint64_t elements;
} covey_rows_to_pull;
#define COVEY_ROWS_TO_PULL_INIT \
  { sizeof(covey_rows_to_pull), 0, 0, 0, 0, 0 }
typedef struct covey_rows_to_push {
  uint32_t struct_size;
  uint32_t reserved;
  const covey_table* table;
  const covey_batch* batch;
  const float* gradient;
  uint64_t elements;
} covey_rows_to_push;
#define COVEY_ROWS_TO_PUSH_INIT \
  { sizeof(covey_rows_to_push), 0, 0, 0, 0, 0 }

/* The same of `count` tables at once, as of the embeddings of a model: their requests are in flight
 * together, under one deadline, and the handle is done when all have ended. It is not one update, nor
 * one instant: each table is pushed and read for itself, one version of each of its shards. The
 * error is that of the first table that failed, in their order, and names it; other tables may have
 * been pushed and read then. The result is over all tables; rows_refused is their sum. */
COVEY_API covey_code covey_client_push_rows_many(covey_client* client,
                                                 const covey_rows_to_push* tables, size_t count,
                                                 const covey_push_options* options,
                                                 covey_handle** handle, covey_error* error);
COVEY_API covey_code covey_client_pull_rows_many(covey_client* client,
                                                 const covey_rows_to_pull* tables, size_t count,
                                                 const covey_pull_options* options,
                                                 covey_handle** handle, covey_error* error);

/* Rows that were read before, for reads that tolerate stale rows (client/row_cache.h). Any thread may
 * use it. After covey_client_close only covey_row_cache_free may be called. */
typedef struct covey_row_cache covey_row_cache;
typedef struct covey_row_cache_options {
  uint32_t struct_size;
  uint32_t reserved;
  /* Rows that are kept, at least 1. */
  uint64_t rows_max;
  /* A row that was read longer ago than these seconds is read again; more than 0. */
  double max_age;
  /* A row whose shard has had more updates since is read again, as far as earlier pulls of this
   * cache have seen; 2^64 - 1 = any number. */
  uint64_t max_updates;
} covey_row_cache_options;
#define COVEY_ROW_CACHE_OPTIONS_INIT \
  { sizeof(covey_row_cache_options), 0, 100000, 1.0, UINT64_MAX }
typedef struct covey_row_cache_counts {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t hits; /* of all pulls' keys */
  uint64_t misses;
  uint64_t stale; /* of the misses: kept, but too old */
  uint64_t rows;  /* kept now */
} covey_row_cache_counts;
#define COVEY_ROW_CACHE_COUNTS_INIT \
  { sizeof(covey_row_cache_counts), 0, 0, 0, 0, 0 }
/* INVALID_ARGUMENT: the table is dense, or an option is out of its range. RESOURCE_EXHAUSTED: the
 * memory for rows_max rows cannot be had. */
COVEY_API covey_code covey_row_cache_new(covey_client* client, const covey_table* table,
                                         const covey_row_cache_options* options,
                                         covey_row_cache** cache, covey_error* error);
/* Also while pulls are in progress. */
COVEY_API void covey_row_cache_free(covey_row_cache* cache);
/* `keys` is the caller's again when the call returns, `rows` when the handle is done; after an error
 * its contents are undefined. `elements` is `count` times covey_table_width. `seconds`: deadline; 0 =
 * the client's. Errors are those of covey_client_pull_rows. The result's version and age are those of
 * rows that this pull has read from servers. */
COVEY_API covey_code covey_row_cache_pull(covey_row_cache* cache, const uint64_t* keys,
                                          uint64_t count, float* rows, uint64_t elements,
                                          double seconds, covey_handle** handle,
                                          covey_error* error);
/* The next pull of these keys reads them from the servers: after a push, for example. */
COVEY_API covey_code covey_row_cache_invalidate(covey_row_cache* cache, const uint64_t* keys,
                                                uint64_t count, covey_error* error);
COVEY_API covey_code covey_row_cache_count(covey_row_cache* cache, covey_row_cache_counts* counts,
                                           covey_error* error);

/* Pushes that hold back the rows whose gradients are small, until they are larger
 * (client/row_filter.h). Any thread may use it. After covey_client_close only covey_row_filter_free may
 * be called. */
typedef struct covey_row_filter covey_row_filter;
enum {
  /* Rows of zeros wait while all elements of their gradients are below the threshold: for FTRL,
   * whose l1 it is, divided by the number of programs that push. */
  COVEY_FILTER_KKT = 0,
  /* Rows wait while the norm of their gradients is below the threshold times their own norm; the
   * threshold falls with 1 / sqrt(pushes). */
  COVEY_FILTER_SIGNIFICANCE = 1
};
typedef struct covey_row_filter_options {
  uint32_t struct_size;
  int32_t rule;
  double threshold; /* at least 0 */
  /* Rows that are held back at most, at least 1; beyond it the oldest go. */
  uint64_t rows_max;
  /* Pushes over which a gradient that has waited goes, 1 to 16; 1 suits SGD. */
  uint32_t pieces_max;
  uint32_t reserved;
} covey_row_filter_options;
#define COVEY_ROW_FILTER_OPTIONS_INIT \
  { sizeof(covey_row_filter_options), COVEY_FILTER_KKT, 0, 1000000, 4, 0 }
typedef struct covey_row_filter_counts {
  uint32_t struct_size;
  uint32_t reserved;
  /* Rows of all pushes, equal keys of a push once: those that went with their push, and those that
   * did not; and of both those that were zero. */
  uint64_t pushed;
  uint64_t held_back;
  uint64_t zero_pushed;
  uint64_t zero_held_back;
  uint64_t pushed_later; /* rows that had waited, and went without a gradient of their own */
  uint64_t held;         /* rows that wait now */
} covey_row_filter_counts;
#define COVEY_ROW_FILTER_COUNTS_INIT \
  { sizeof(covey_row_filter_counts), 0, 0, 0, 0, 0, 0, 0 }
/* INVALID_ARGUMENT: the table is dense, or an option is out of its range. */
COVEY_API covey_code covey_row_filter_new(covey_client* client, const covey_table* table,
                                          const covey_row_filter_options* options,
                                          covey_row_filter** filter, covey_error* error);
/* Drops what is held back. */
COVEY_API void covey_row_filter_free(covey_row_filter* filter);
/* As covey_client_push_rows; `rows` are those on which the gradient was computed, as many elements,
 * and also the caller's again when the call returns. */
COVEY_API covey_code covey_row_filter_push(covey_row_filter* filter, const covey_batch* batch,
                                           const float* rows, const float* gradient,
                                           uint64_t elements, const covey_push_options* options,
                                           covey_handle** handle, covey_error* error);
/* Pushes all that is held back, and returns when these pushes are done; counts one sample for each
 * push. Call it before the table is evaluated, and at the end. `seconds`: deadline of each push; 0 =
 * the client's. */
COVEY_API covey_code covey_row_filter_flush(covey_row_filter* filter, double seconds,
                                            covey_error* error);
COVEY_API covey_code covey_row_filter_count(covey_row_filter* filter,
                                            covey_row_filter_counts* counts, covey_error* error);

/* Reads all rows of a sparse table, whatever their keys, or what has changed since an earlier
 * reading (client/row_reader.h). One call at a time; others wait. After covey_client_close only
 * covey_row_reader_free may be called. */
typedef struct covey_row_reader covey_row_reader;
typedef struct covey_row_reader_options {
  uint32_t struct_size;
  uint32_t reserved;
  /* Of each piece, as in covey_pull_options: deadline in seconds, 0 = the client's; longest time in
   * seconds since the last update, 0 = any. */
  double seconds;
  double max_age;
  /* The text of covey_row_reader_token: reads what has changed since. Null = all rows. */
  const char* since;
} covey_row_reader_options;
#define COVEY_ROW_READER_OPTIONS_INIT \
  { sizeof(covey_row_reader_options), 0, 0, 0, 0 }
/* About 1 MiB of rows. The arrays are valid until the next call of this reader. */
typedef struct covey_row_piece {
  uint32_t struct_size;
  uint32_t shard;
  uint64_t generation; /* of the shard, and the version of the piece */
  uint64_t version;
  const uint64_t* keys;
  uint64_t count;
  const float* rows;       /* a row for each key */
  uint64_t elements;       /* count times covey_table_width */
  const uint64_t* removed; /* keys that have no row any more */
  uint64_t removed_count;
} covey_row_piece;
#define COVEY_ROW_PIECE_INIT \
  { sizeof(covey_row_piece), 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* INVALID_ARGUMENT: the table is dense, or `since` is no token. OUT_OF_RANGE: it is of another run
 * of the job, or of another table. */
COVEY_API covey_code covey_row_reader_new(covey_client* client, const covey_table* table,
                                          const covey_row_reader_options* options,
                                          covey_row_reader** reader, covey_error* error);
/* Also while it reads. */
COVEY_API void covey_row_reader_free(covey_row_reader* reader);
/* 1: covey_row_reader_next would not wait now. */
COVEY_API int32_t covey_row_reader_ready(covey_row_reader* reader);
/* The next piece; `has_piece` is 0 after the last one. `seconds`: negative = waits as long as the
 * piece may take; otherwise DEADLINE_EXCEEDED when it is over, and the reading goes on.
 * OUT_OF_RANGE: changes since then are not known any more; read all rows again, into an empty
 * copy. After an error the reader is of no use. */
COVEY_API covey_code covey_row_reader_next(covey_row_reader* reader, double seconds,
                                           covey_row_piece* piece, int32_t* has_piece,
                                           covey_error* error);
/* After the last piece: where a later reader goes on. Release the text with covey_text_free.
 * FAILED_PRECONDITION: there are more pieces. */
COVEY_API covey_code covey_row_reader_token(covey_row_reader* reader, char** token,
                                            covey_error* error);

/* Waits until every push started before is as durable as its table requires. */
COVEY_API covey_code covey_client_flush(covey_client* client, double seconds, covey_error* error);
/* Returns when `participants` nodes wait under this name. */
COVEY_API covey_code covey_client_barrier(covey_client* client, const char* name,
                                          uint32_t participants, double seconds,
                                          covey_error* error);

/* --- Worker: trains as one of many --- */

typedef struct covey_worker covey_worker;

/* Settings: those of a client, and rank, data-host, insecure, transport, metrics, priority,
 * form-deadline, collective, collective-wire. Blocks until the scheduler has formed the groups.
 * DEADLINE_EXCEEDED: names the missing members. */
COVEY_API covey_code covey_worker_join(const char* const* settings, covey_worker** worker,
                                       covey_error* error);
/* Leaves the cluster: ends pending operations, and waits up to two seconds (ten if the worker
 * drains) until received pushes are durable, and up to two more for the scheduler. */
COVEY_API void covey_worker_leave(covey_worker* worker);

typedef struct covey_place {
  uint32_t struct_size;
  /* Among all workers; of the group; and of this worker within its group. */
  uint32_t rank;
  uint32_t group;
  uint32_t group_rank;
  /* Workers in all groups, and groups, when this worker joined. */
  uint32_t size;
  uint32_t groups;
  /* Members of the group, as of the last covey_group_refresh. */
  uint32_t group_size;
  /* The groups that the job began with: the same number on all workers. */
  uint32_t initial_groups;
} covey_place;
#define COVEY_PLACE_INIT \
  { sizeof(covey_place), 0, 0, 0, 0, 0, 0, 0 }
COVEY_API covey_code covey_worker_place(covey_worker* worker, covey_place* place,
                                        covey_error* error);

/* Returns when all workers have called it with this name as often as this one. */
COVEY_API covey_code covey_worker_barrier(covey_worker* worker, const char* name, double seconds,
                                          covey_error* error);
/* Asks the scheduler to drain this worker: its calls end with CANCELLED after the group's next step,
 * and the program should end with success. Does not block; any thread, also while another call of
 * the worker is in progress. */
COVEY_API covey_code covey_worker_request_drain(covey_worker* worker, covey_error* error);

/* The program takes no step for a while, for example because it evaluates, saves or compiles. Until
 * it is back, and for `seconds` at the most (above 0, at most 3600), the other members wait for it
 * without errors, and it does not count as slow. It is back at covey_worker_set_back, when it
 * submits a gradient or starts a collective. A second call replaces the first. `reason`: 1 to 256
 * printable characters of ASCII, for people. Others learn of it within a second, so deadlines below
 * that may pass before. Neither call blocks; set_back has no effect when the program is not away. */
COVEY_API covey_code covey_worker_set_away(covey_worker* worker, const char* reason, double seconds,
                                           covey_error* error);
COVEY_API covey_code covey_worker_set_back(covey_worker* worker, covey_error* error);

/* --- Group: collectives among the workers that synchronize every step (worker/group.h) --- */

typedef struct covey_collective_options {
  uint32_t struct_size;
  /* A wire format, or -1 = the setting collective-wire. */
  int32_t format;
  /* The order on a busy link; smaller goes first. */
  int32_t priority;
  int32_t reserved;
  /* Of all_reduce and reduce_scatter: this member's values, of the type and number of `data`, which
   * need hold nothing then, and does not overlap them. They are read before the call returns, and
   * stay as they are, so that a call that failed can be repeated. NULL = the values are in `data`. */
  const void* input;
} covey_collective_options;
#define COVEY_COLLECTIVE_OPTIONS_INIT \
  { sizeof(covey_collective_options), -1, 0, 0, NULL }

/* In place; the memory belongs to the collective until its handle is done. All members make the same
 * calls in the same order. Parts of reduce_scatter and all_gather are in the order of ranks, and
 * differ by at most one element, the larger ones first. */
COVEY_API covey_code covey_group_all_reduce(covey_worker* worker, float* data, uint64_t elements,
                                            const covey_collective_options* options,
                                            covey_handle** handle, covey_error* error);
/* Many tensors as one; `options->input` must be NULL. */
COVEY_API covey_code covey_group_all_reduce_many(covey_worker* worker, float* const* tensors,
                                                 const uint64_t* elements, size_t count,
                                                 const covey_collective_options* options,
                                                 covey_handle** handle, covey_error* error);
COVEY_API covey_code covey_group_reduce_scatter(covey_worker* worker, float* data,
                                                uint64_t elements,
                                                const covey_collective_options* options,
                                                covey_handle** handle, covey_error* error);
COVEY_API covey_code covey_group_all_gather(covey_worker* worker, float* data, uint64_t elements,
                                            const covey_collective_options* options,
                                            covey_handle** handle, covey_error* error);
COVEY_API covey_code covey_group_broadcast(covey_worker* worker, float* data, uint64_t elements,
                                           uint32_t root, const covey_collective_options* options,
                                           covey_handle** handle, covey_error* error);
/* The same for elements of another type, in place of float: the address of `data` is a multiple of
 * their size. */
enum {
  COVEY_ELEMENT_FLOAT32 = 0,
  COVEY_ELEMENT_FLOAT64 = 1, /* IEEE binary64 */
  COVEY_ELEMENT_INT32 = 2,   /* sums and products wrap around */
  COVEY_ELEMENT_INT64 = 3,
  COVEY_ELEMENT_BYTE = 4 /* of anything; all_gather and broadcast only */
};
/* How values are combined. The minimum and the maximum of NaN and anything are NaN. */
enum { COVEY_SUM = 0, COVEY_PRODUCT = 1, COVEY_MIN = 2, COVEY_MAX = 3 };
/* The format of `options` counts for sums and copies of float32. INVALID_ARGUMENT: another format is
 * given for anything else; all members must pass the same type and operation. */
COVEY_API covey_code covey_group_all_reduce_typed(covey_worker* worker, void* data,
                                                  uint64_t elements, int32_t type,
                                                  int32_t operation,
                                                  const covey_collective_options* options,
                                                  covey_handle** handle, covey_error* error);
COVEY_API covey_code covey_group_reduce_scatter_typed(covey_worker* worker, void* data,
                                                      uint64_t elements, int32_t type,
                                                      int32_t operation,
                                                      const covey_collective_options* options,
                                                      covey_handle** handle, covey_error* error);
COVEY_API covey_code covey_group_all_gather_typed(covey_worker* worker, void* data,
                                                  uint64_t elements, int32_t type,
                                                  const covey_collective_options* options,
                                                  covey_handle** handle, covey_error* error);
COVEY_API covey_code covey_group_broadcast_typed(covey_worker* worker, void* data,
                                                 uint64_t elements, int32_t type, uint32_t root,
                                                 const covey_collective_options* options,
                                                 covey_handle** handle, covey_error* error);
COVEY_API covey_code covey_group_barrier(covey_worker* worker, covey_handle** handle,
                                         covey_error* error);
/* Adopts a change of members. UNAVAILABLE: this worker is no longer in a group. */
COVEY_API covey_code covey_group_refresh(covey_worker* worker, covey_error* error);

/* --- Step: trains a model, synchronous in the group, under each table's contract between groups
 * (worker/hybrid_step.h) --- */

typedef struct covey_step covey_step;

/* BY_PROGRAM: the values of a step are the group's mean gradient, weighted by samples, and the program
 * updates its own parameters with it (worker/hybrid_options.h, Synchronization::kProgram). */
enum { COVEY_UPDATE_ON_SERVERS = 0, COVEY_UPDATE_ON_MEMBERS = 1, COVEY_UPDATE_BY_PROGRAM = 2 };
/* 8BIT: for COVEY_INT8, COVEY_FLOAT8 and COVEY_TOPK. INT8 is a second name of it. */
enum {
  COVEY_FEEDBACK_NEVER = 0,
  COVEY_FEEDBACK_8BIT = 1,
  COVEY_FEEDBACK_INT8 = COVEY_FEEDBACK_8BIT,
  COVEY_FEEDBACK_ALWAYS = 2
};
/* ADASUM: gradients that have nothing in common are added, and equal ones averaged
 * (worker/hybrid_options.h, Combine). */
enum { COVEY_COMBINE_MEAN = 0, COVEY_COMBINE_ADASUM = 1 };

typedef struct covey_step_options {
  uint32_t struct_size;
  /* Where the optimizer runs. */
  int32_t update;
  /* 0, or 1: a step computes with the values of the step before last. */
  uint32_t lag;
  /* For which formats rounding errors are kept and added to the next gradient. */
  int32_t error_feedback;
  /* The group's mean gradient of each step is scaled down to this norm over all tensors when it is
   * larger; all tensors of a step are then submitted before one is waited for. 0 = not clipped. */
  double max_gradient_norm;
  /* How the gradients of the group's members become one; the same on all members. */
  int32_t combine;
  /* 1: the group tries settings while it trains, and stays with the fastest
   * (worker/hybrid_options.h, autotune); the same on all members. 0: it does not. */
  uint32_t autotune;
} covey_step_options;
#define COVEY_STEP_OPTIONS_INIT                                                     \
  {                                                                                 \
    sizeof(covey_step_options), COVEY_UPDATE_ON_SERVERS, 0, COVEY_FEEDBACK_8BIT, 0, \
        COVEY_COMBINE_MEAN, 0                                                       \
  }

typedef struct covey_step_tensor {
  uint32_t struct_size;
  uint32_t reserved;
  /* JSON; equal on all members. */
  const char* table;
  /* Values: valid as long as the step. They belong to the library from covey_step_submit until
   * covey_step_wait returns. If the table's initializer is {"kind": "GIVEN"}, they hold the values
   * with which it begins; those of the first member that comes count, for all tables. */
  float* values;
  uint64_t elements;
  /* Multiplies the learning rate of the table's schedule; covey_step_set_rate_factor changes it. */
  double rate_factor;
} covey_step_tensor;
#define COVEY_STEP_TENSOR_INIT \
  { sizeof(covey_step_tensor), 0, 0, 0, 0, 1.0 }

/* Creates the tables and gets the first values. All members call it with equal arguments. One step
 * at a time per worker. */
COVEY_API covey_code covey_step_create(covey_worker* worker, const covey_step_tensor* tensors,
                                       size_t count, const covey_step_options* options,
                                       covey_step** step, covey_error* error);
/* Waits for what is in flight. */
COVEY_API void covey_step_free(covey_step* step);

/* Begins the next step; gradients will be means over `samples` examples, possibly 0. A step in which
 * no member has examples changes nothing. */
COVEY_API covey_code covey_step_begin(covey_step* step, uint64_t samples, covey_error* error);
/* The gradient of a tensor is final: once per tensor and step, in any order. Its memory must stay
 * unchanged until the tensor has been waited for. Does not block. */
COVEY_API covey_code covey_step_submit(covey_step* step, size_t tensor, const float* gradient,
                                       uint64_t elements, covey_error* error);
/* Multiplies the learning rate of the tensor's table, from the next covey_step_submit on: at least 0,
 * at most 1e9. All members of a group give the same one. */
COVEY_API covey_code covey_step_set_rate_factor(covey_step* step, size_t tensor, double factor,
                                                covey_error* error);
/* Waits until the tensor has its new values; at once when it is not in flight. DEADLINE_EXCEEDED
 * with `seconds`: the step continues, wait again. */
COVEY_API covey_code covey_step_wait(covey_step* step, size_t tensor, double seconds,
                                     covey_error* error);
/* 1 while the tensor was submitted and its new values are not there yet; else 0. */
COVEY_API int32_t covey_step_in_flight(covey_step* step, size_t tensor);
/* COVEY_UPDATE_BY_PROGRAM: the examples of all members behind the mean gradient that the tensor got
 * last; call it after covey_step_wait. 0: there were none, the mean is zero, and the program should
 * update nothing. */
COVEY_API covey_code covey_step_mean_samples(covey_step* step, size_t tensor, uint64_t* samples,
                                             covey_error* error);
/* Waits for all tensors. */
COVEY_API covey_code covey_step_finish(covey_step* step, covey_error* error);
/* Gets the newest values of all tensors. All members call it, between steps. INVALID_ARGUMENT: with
 * COVEY_UPDATE_BY_PROGRAM. */
COVEY_API covey_code covey_step_refresh(covey_step* step, covey_error* error);
/* The step that began last, as counted by the group. */
COVEY_API covey_code covey_step_number(covey_step* step, uint64_t* number, covey_error* error);
/* The norm of the group's mean gradient in the newest step, before it was clipped; NaN without
 * max_gradient_norm, and before the first step. */
COVEY_API covey_code covey_step_gradient_norm(covey_step* step, double* norm, covey_error* error);
/* This member's examples of the next step, when the group's are `group_batch`. */
COVEY_API covey_code covey_step_samples_for(covey_step* step, uint64_t group_batch,
                                            uint64_t* samples, covey_error* error);
/* Reports the last step's mean loss; NaN = it has none. */
COVEY_API covey_code covey_step_report(covey_step* step, double loss, covey_error* error);

/* --- Source: gives out the examples of a data set, each once per pass (worker/data_source.h) --- */

typedef struct covey_source covey_source;

enum { COVEY_PASS_GO_ON = 0, COVEY_PASS_MEET = 1 };

typedef struct covey_source_options {
  uint32_t struct_size;
  uint32_t reserved;
  /* Unique in the job for each run over the data set. */
  const char* name;
  uint64_t examples;
  uint64_t item_examples;
  uint64_t passes;
  /* 0 = the data set's own order. */
  uint64_t seed;
  /* COVEY_PASS_GO_ON: a pass follows the one before without a break. COVEY_PASS_MEET: all members
   * of a group meet at the end of each pass, after the same step; the source begins in the pass in
   * which its group is, or else the job. */
  int32_t at_pass_end;
  int32_t reserved2;
} covey_source_options;
#define COVEY_SOURCE_OPTIONS_INIT \
  { sizeof(covey_source_options), 0, 0, 0, 1, 1, 0, COVEY_PASS_GO_ON, 0 }

COVEY_API covey_code covey_source_open(covey_worker* worker, const covey_source_options* options,
                                       covey_source** source, covey_error* error);
/* Reports the trained examples, and returns the rest. */
COVEY_API void covey_source_close(covey_source* source);
/* The next examples by their position in the data set: `samples` or fewer, possibly none. Valid
 * until the next call. */
COVEY_API covey_code covey_source_take(covey_source* source, uint64_t samples,
                                       const uint32_t** positions, size_t* count,
                                       covey_error* error);
/* All batches that were taken are trained, except the newest `in_progress`. */
COVEY_API covey_code covey_source_finish(covey_source* source, size_t in_progress,
                                         covey_error* error);
/* 1 when all passes are finished, on all workers together; with COVEY_PASS_MEET the present one. */
COVEY_API int32_t covey_source_done(covey_source* source);
/* With COVEY_PASS_MEET: the present pass, from 0; `passes` = all are over. */
COVEY_API uint64_t covey_source_pass(covey_source* source);
COVEY_API uint64_t covey_source_examples_finished(covey_source* source);
/* Once done, instead of the next step. `over` = 1: no step follows, in this pass. 0: make one more
 * step, without samples. */
COVEY_API covey_code covey_source_meet_at_end(covey_source* source, covey_step* step, int32_t* over,
                                              covey_error* error);
/* With COVEY_PASS_MEET, once it is over: begins the next pass. `goes_on` = 0: that was the last. */
COVEY_API covey_code covey_source_next_pass(covey_source* source, int32_t* goes_on,
                                            covey_error* error);

/* --- Local rows: the rows of a sparse table under local:H, with which a worker takes H steps of
 * its own before its group pushes how far they have moved (worker/local_rows.h) --- */

typedef struct covey_local_rows covey_local_rows;

typedef struct covey_local_rows_options {
  uint32_t struct_size;
  uint32_t reserved;
  /* Rows of a round at most, those that are only read included; at least 1. */
  uint64_t rows_max;
} covey_local_rows_options;
#define COVEY_LOCAL_ROWS_OPTIONS_INIT \
  { sizeof(covey_local_rows_options), 0, 1000000 }

/* Creates the table, or takes an equal one. INVALID_ARGUMENT: it is dense, or its contract is not
 * local. FAILED_PRECONDITION: the group has other members; start as many groups as workers. */
COVEY_API covey_code covey_local_rows_open(covey_worker* worker, const char* definition,
                                           const covey_local_rows_options* options,
                                           covey_local_rows** rows, covey_error* error);
/* Waits for the push in flight. */
COVEY_API void covey_local_rows_close(covey_local_rows* rows);
/* Fills `values`, of the table's width for each key, with the rows as this worker's steps have left
 * them. Keys may repeat. A row that the round does not have yet is read from the servers, which
 * answer when the last round has become an update.
 *
 * `seconds`, here and below: the longest wait; when it is over, DEADLINE_EXCEEDED, and
 * covey_local_rows_in_flight is 1. The same call can be repeated then, and goes on; also after any
 * other error. */
COVEY_API covey_code covey_local_rows_pull(covey_local_rows* rows, const uint64_t* keys,
                                           uint64_t count, float* values, uint64_t elements,
                                           double seconds, covey_error* error);
/* One step of the inner optimizer; after H of them the round ends, and its push starts. `gradient`:
 * a row for each key of the last pull, the SUM over `samples` examples; those of equal keys are
 * added up. With 0 samples the step counts and changes no row. INVALID_ARGUMENT: the sizes differ;
 * or NaN or infinity, and no row has changed. */
COVEY_API covey_code covey_local_rows_step(covey_local_rows* rows, const float* gradient,
                                           uint64_t elements, uint64_t samples, double seconds,
                                           covey_error* error);
/* Ends the round early, if it has begun, and waits until the servers have its push. */
COVEY_API covey_code covey_local_rows_finish(covey_local_rows* rows, double seconds,
                                             covey_error* error);
/* 1 while a read or a push has begun, and no call has returned how it has ended; else 0. */
COVEY_API int32_t covey_local_rows_in_flight(covey_local_rows* rows);
/* Elements of a row. */
COVEY_API uint64_t covey_local_rows_width(const covey_local_rows* rows);
/* The round of the next step, from 1. */
COVEY_API covey_code covey_local_rows_round(covey_local_rows* rows, uint64_t* round,
                                            covey_error* error);

#ifdef __cplusplus
}
#endif

#endif /* COVEY_H_ */
