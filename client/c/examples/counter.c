/* SPDX-License-Identifier: Apache-2.0 */

/* Counts across runs: every run of this program adds one to each element of a shared table.
 *   covey run --servers 1 -- counter        (or with COVEY_SCHEDULER set) */

#include <stdio.h>

#include "client/c/covey.h"

static const char kTable[] =
    "{\"name\": \"counters\", \"shape\": [4], \"optimizer\": {\"kind\": \"SGD\"},"
    " \"learning_rate\": {\"base\": 1}, \"contract\": {\"kind\": \"ASYNC\"}}";

static covey_code Count(covey_client* client, covey_error* error) {
  covey_table* table;
  covey_code code = covey_client_create_table(client, kTable, &table, error);
  if (code != COVEY_OK) return code;

  /* SGD subtracts the gradient, so -1 adds one; applied exactly once however often it is sent. */
  const float gradient[4] = {-1, -1, -1, -1};
  float values[4];
  covey_handle* handle;
  code = covey_client_push_pull(client, table, gradient, values, 4, NULL, NULL, &handle, error);
  if (code == COVEY_OK) {
    code = covey_handle_wait(handle, COVEY_FOREVER, NULL, error);
    covey_handle_free(handle);
  }
  if (code == COVEY_OK) printf("counted %g times\n", values[0]);
  covey_table_free(table);
  return code;
}

int main(void) {
  covey_error error = COVEY_ERROR_INIT;
  covey_client* client;
  covey_code code = covey_client_connect(NULL, &client, &error);
  if (code == COVEY_OK) {
    code = Count(client, &error);
    covey_client_close(client);
  }
  if (code != COVEY_OK) fprintf(stderr, "counter: %s\n", error.message);
  return code == COVEY_OK ? 0 : 1;
}
