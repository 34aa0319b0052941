/* SPDX-License-Identifier: Apache-2.0 */

/* Solves A x = b by conjugate gradients, with the solution, the residual and the direction on the
 * servers: the program multiplies by A, and gets only numbers of the other vectors.
 *   covey run --servers 2 -- conjugate_gradient        (or with COVEY_SCHEDULER set) */

#include <math.h>
#include <stdio.h>

#include "client/c/covey.h"

#define N 256
#define STEPS 60
#define TRY(call)                         \
  do {                                    \
    const covey_code code = (call);       \
    if (code != COVEY_OK) return code;    \
  } while (0)

/* The values, which are pulled, are the direction. Pushes add to the image, A times that. */
enum { DIRECTION = 0, IMAGE = 1, SOLUTION = 2, RESIDUAL = 3 };

static const char kTable[] =
    "{\"name\": \"conjugate_gradient\", \"shape\": [256],"
    " \"optimizer\": {\"kind\": \"VECTORS\", \"vectors\": 3},"
    " \"learning_rate\": {\"base\": 1}, \"contract\": {\"kind\": \"ASYNC\"}}";

typedef struct {
  covey_client* client;
  covey_table* table;
  covey_error* error;
} problem;

static void Multiply(const float* x, float* image) {
  for (int i = 0; i < N; ++i) {
    image[i] = 2.5f * x[i] - (i > 0 ? x[i - 1] : 0) - (i + 1 < N ? x[i + 1] : 0);
  }
}

static covey_code Wait(problem* p, covey_handle* handle) {
  const covey_code code = covey_handle_wait(handle, COVEY_FOREVER, NULL, p->error);
  covey_handle_free(handle);
  return code;
}

static covey_code Call(problem* p, const covey_vector_function* functions, size_t count) {
  covey_handle* handle;
  TRY(covey_client_call(p->client, p->table, functions, count, 0, &handle, p->error));
  return Wait(p, handle);
}

static covey_vector_function Function(int32_t kind, uint32_t target, uint32_t source,
                                      double scalar) {
  covey_vector_function function = COVEY_VECTOR_FUNCTION_INIT;
  function.kind = kind;
  function.target = target;
  function.source = source;
  function.scalar = scalar;
  return function;
}

static covey_code Dot(problem* p, uint32_t vector, uint32_t other, double* dot) {
  covey_vector_query query = COVEY_VECTOR_QUERY_INIT;
  query.kind = COVEY_QUERY_DOT;
  query.vector = vector;
  query.other = other;
  covey_handle* handle;
  TRY(covey_client_ask(p->client, p->table, &query, 1, NULL, &handle, p->error));
  covey_vector_answer answer = COVEY_VECTOR_ANSWER_INIT;
  covey_code code = covey_handle_wait(handle, COVEY_FOREVER, NULL, p->error);
  if (code == COVEY_OK) code = covey_handle_answer(handle, 0, &answer, p->error);
  covey_handle_free(handle);
  *dot = answer.value;
  return code;
}

/* IMAGE = `image`. */
static covey_code PushImage(problem* p, const float* image) {
  const covey_vector_function clear = Function(COVEY_FUNCTION_SET, IMAGE, 0, 0);
  TRY(Call(p, &clear, 1));
  covey_handle* handle;
  TRY(covey_client_push(p->client, p->table, image, N, NULL, &handle, p->error));
  return Wait(p, handle);
}

static covey_code Pull(problem* p, float* values) {
  covey_handle* handle;
  TRY(covey_client_pull(p->client, p->table, values, N, NULL, &handle, p->error));
  return Wait(p, handle);
}

static covey_code Step(problem* p, double* squares) {
  float direction[N];
  float image[N];
  TRY(Pull(p, direction));
  Multiply(direction, image);
  TRY(PushImage(p, image));
  double curvature = 0;
  TRY(Dot(p, DIRECTION, IMAGE, &curvature));
  const double length = *squares / curvature;
  const covey_vector_function move[] = {
      Function(COVEY_FUNCTION_AXPY, SOLUTION, DIRECTION, length),
      Function(COVEY_FUNCTION_AXPY, RESIDUAL, IMAGE, -length)};
  TRY(Call(p, move, 2));
  const double before = *squares;
  TRY(Dot(p, RESIDUAL, RESIDUAL, squares));
  const covey_vector_function turn[] = {
      Function(COVEY_FUNCTION_SCALE, DIRECTION, 0, *squares / before),
      Function(COVEY_FUNCTION_AXPY, DIRECTION, RESIDUAL, 1)};
  return Call(p, turn, 2);
}

static covey_code Solve(problem* p) {
  TRY(covey_client_create_table(p->client, kTable, &p->table, p->error));
  /* b = A (1, 2, ..., 7, 1, ...). */
  float wanted[N];
  float b[N];
  for (int i = 0; i < N; ++i) wanted[i] = (float)(i % 7 + 1);
  Multiply(wanted, b);
  TRY(PushImage(p, b));
  const covey_vector_function begin[] = {Function(COVEY_FUNCTION_SET, SOLUTION, 0, 0),
                                         Function(COVEY_FUNCTION_COPY, RESIDUAL, IMAGE, 0),
                                         Function(COVEY_FUNCTION_COPY, DIRECTION, IMAGE, 0)};
  TRY(Call(p, begin, 3));
  double squares = 0;
  TRY(Dot(p, RESIDUAL, RESIDUAL, &squares));
  int steps = 0;
  for (; steps < STEPS && squares > 1e-8; ++steps) TRY(Step(p, &squares));
  const covey_vector_function show = Function(COVEY_FUNCTION_COPY, DIRECTION, SOLUTION, 0);
  TRY(Call(p, &show, 1));
  float solution[N];
  TRY(Pull(p, solution));
  double error = 0;
  for (int i = 0; i < N; ++i) error = fmax(error, fabs(solution[i] - wanted[i]));
  printf("of %d vectors: %d steps, largest error %s 1e-3\n", (int)covey_table_vectors(p->table),
         steps, error < 1e-3 ? "below" : "above");
  /* The largest elements, where they are. */
  covey_vector_query top = COVEY_VECTOR_QUERY_INIT;
  top.kind = COVEY_QUERY_TOP;
  top.vector = SOLUTION;
  top.count = 2;
  covey_handle* handle;
  TRY(covey_client_ask(p->client, p->table, &top, 1, NULL, &handle, p->error));
  uint64_t places[2] = {0, 0};
  float values[2] = {0, 0};
  covey_code code = covey_handle_wait(handle, COVEY_FOREVER, NULL, p->error);
  if (code == COVEY_OK) code = covey_handle_top(handle, 0, places, values, 2, p->error);
  covey_handle_free(handle);
  if (code != COVEY_OK) return code;
  printf("largest: %.1f, in place %d of 7\n", values[0], (int)(places[0] % 7));
  return COVEY_OK;
}

int main(void) {
  covey_error error = COVEY_ERROR_INIT;
  problem p = {NULL, NULL, &error};
  covey_code code = covey_client_connect(NULL, &p.client, &error);
  if (code == COVEY_OK) {
    code = Solve(&p);
    covey_table_free(p.table);
    covey_client_close(p.client);
  }
  if (code != COVEY_OK) fprintf(stderr, "conjugate_gradient: %s\n", error.message);
  return code == COVEY_OK ? 0 : 1;
}
