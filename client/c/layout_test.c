/* SPDX-License-Identifier: Apache-2.0 */

/* Programs that were compiled with an earlier header depend on these places; only new fields at the
 * ends may be added. */

#include "client/c/covey.h"

#define AT(type, field, offset) \
  _Static_assert(offsetof(type, field) == (offset), #type "." #field " has moved")
#define SIZE(type, bytes) _Static_assert(sizeof(type) >= (bytes), #type " has lost fields")

AT(covey_error, struct_size, 0);
AT(covey_error, code, 4);
AT(covey_error, message, 8);
SIZE(covey_error, 8 + 1024);

AT(covey_result, duplicate, 4);
AT(covey_result, discarded, 8);
AT(covey_result, durable, 12);
AT(covey_result, version, 16);
AT(covey_result, staleness, 24);
AT(covey_result, age_seconds, 32);
AT(covey_result, samples, 40);
AT(covey_result, rows_refused, 48);
SIZE(covey_result, 56);

AT(covey_push_options, format, 4);
AT(covey_push_options, samples, 8);
AT(covey_push_options, deadline_seconds, 16);
SIZE(covey_push_options, 24);

AT(covey_pull_options, has_staleness, 4);
AT(covey_pull_options, staleness, 8);
AT(covey_pull_options, min_version, 16);
AT(covey_pull_options, max_age_seconds, 24);
AT(covey_pull_options, deadline_seconds, 32);
AT(covey_pull_options, format, 40);
AT(covey_pull_options, reserved, 44);
SIZE(covey_pull_options, 48);

AT(covey_outer_products, reserved, 4);
AT(covey_outer_products, left, 8);
AT(covey_outer_products, left_elements, 16);
AT(covey_outer_products, right, 24);
AT(covey_outer_products, right_elements, 32);
AT(covey_outer_products, terms, 40);
SIZE(covey_outer_products, 48);

AT(covey_rows_to_pull, reserved, 4);
AT(covey_rows_to_pull, table, 8);
AT(covey_rows_to_pull, batch, 16);
AT(covey_rows_to_pull, rows, 24);
AT(covey_rows_to_pull, elements, 32);
SIZE(covey_rows_to_pull, 40);

AT(covey_rows_to_push, reserved, 4);
AT(covey_rows_to_push, table, 8);
AT(covey_rows_to_push, batch, 16);
AT(covey_rows_to_push, gradient, 24);
AT(covey_rows_to_push, elements, 32);
SIZE(covey_rows_to_push, 40);

AT(covey_vector_function, kind, 4);
AT(covey_vector_function, target, 8);
AT(covey_vector_function, source, 12);
AT(covey_vector_function, scalar, 16);
SIZE(covey_vector_function, 24);

AT(covey_vector_query, kind, 4);
AT(covey_vector_query, vector, 8);
AT(covey_vector_query, other, 12);
AT(covey_vector_query, count, 16);
AT(covey_vector_query, reserved, 20);
SIZE(covey_vector_query, 24);

AT(covey_vector_answer, reserved, 4);
AT(covey_vector_answer, value, 8);
AT(covey_vector_answer, top_count, 16);
SIZE(covey_vector_answer, 24);

AT(covey_row_cache_options, reserved, 4);
AT(covey_row_cache_options, rows_max, 8);
AT(covey_row_cache_options, max_age, 16);
AT(covey_row_cache_options, max_updates, 24);
SIZE(covey_row_cache_options, 32);

AT(covey_row_cache_counts, reserved, 4);
AT(covey_row_cache_counts, hits, 8);
AT(covey_row_cache_counts, misses, 16);
AT(covey_row_cache_counts, stale, 24);
AT(covey_row_cache_counts, rows, 32);
SIZE(covey_row_cache_counts, 40);

AT(covey_row_filter_options, rule, 4);
AT(covey_row_filter_options, threshold, 8);
AT(covey_row_filter_options, rows_max, 16);
AT(covey_row_filter_options, pieces_max, 24);
AT(covey_row_filter_options, reserved, 28);
SIZE(covey_row_filter_options, 32);

AT(covey_row_filter_counts, reserved, 4);
AT(covey_row_filter_counts, pushed, 8);
AT(covey_row_filter_counts, held_back, 16);
AT(covey_row_filter_counts, zero_pushed, 24);
AT(covey_row_filter_counts, zero_held_back, 32);
AT(covey_row_filter_counts, pushed_later, 40);
AT(covey_row_filter_counts, held, 48);
SIZE(covey_row_filter_counts, 56);

AT(covey_place, rank, 4);
AT(covey_place, group, 8);
AT(covey_place, group_rank, 12);
AT(covey_place, size, 16);
AT(covey_place, groups, 20);
AT(covey_place, group_size, 24);
AT(covey_place, initial_groups, 28);
SIZE(covey_place, 32);

AT(covey_collective_options, format, 4);
AT(covey_collective_options, priority, 8);
AT(covey_collective_options, reserved, 12);
AT(covey_collective_options, input, 16);
SIZE(covey_collective_options, 24);

AT(covey_step_options, update, 4);
AT(covey_step_options, lag, 8);
AT(covey_step_options, error_feedback, 12);
AT(covey_step_options, max_gradient_norm, 16);
AT(covey_step_options, combine, 24);
AT(covey_step_options, autotune, 28);
SIZE(covey_step_options, 32);

AT(covey_initial_values, reserved, 4);
AT(covey_initial_values, table, 8);
AT(covey_initial_values, values, 16);
AT(covey_initial_values, elements, 24);
AT(covey_initial_values, slots, 32);
AT(covey_initial_values, slot_elements, 40);
AT(covey_initial_values, updates, 48);
AT(covey_initial_values, samples, 56);
SIZE(covey_initial_values, 64);

AT(covey_step_tensor, reserved, 4);
AT(covey_step_tensor, table, 8);
AT(covey_step_tensor, values, 16);
AT(covey_step_tensor, elements, 24);
AT(covey_step_tensor, rate_factor, 32);
SIZE(covey_step_tensor, 40);

AT(covey_source_options, reserved, 4);
AT(covey_source_options, name, 8);
AT(covey_source_options, examples, 16);
AT(covey_source_options, item_examples, 24);
AT(covey_source_options, passes, 32);
AT(covey_source_options, seed, 40);
AT(covey_source_options, at_pass_end, 48);
AT(covey_source_options, reserved2, 52);
SIZE(covey_source_options, 56);

AT(covey_local_rows_options, reserved, 4);
AT(covey_local_rows_options, rows_max, 8);
SIZE(covey_local_rows_options, 16);

/* Codes and formats are numbers in compiled programs. */
_Static_assert(COVEY_CANCELLED == 1 && COVEY_INVALID_ARGUMENT == 3 &&
                   COVEY_DEADLINE_EXCEEDED == 4 && COVEY_NOT_FOUND == 5 &&
                   COVEY_ALREADY_EXISTS == 6 && COVEY_RESOURCE_EXHAUSTED == 8 &&
                   COVEY_FAILED_PRECONDITION == 9 && COVEY_ABORTED == 10 && COVEY_INTERNAL == 13 &&
                   COVEY_UNAVAILABLE == 14 && COVEY_DATA_LOSS == 15 &&
                       COVEY_PERMISSION_DENIED == 7 && COVEY_UNAUTHENTICATED == 16,
               "a code has changed");
_Static_assert(COVEY_FLOAT32 == 0 && COVEY_FLOAT16 == 1 && COVEY_BFLOAT16 == 2 && COVEY_INT8 == 3 &&
                   COVEY_SCALED_FLOAT16 == 4 && COVEY_FLOAT8 == 5 && COVEY_TOPK == 6,
               "a format has changed");
_Static_assert(COVEY_ELEMENT_FLOAT32 == 0 && COVEY_ELEMENT_FLOAT64 == 1 &&
                   COVEY_ELEMENT_INT32 == 2 && COVEY_ELEMENT_INT64 == 3 && COVEY_ELEMENT_BYTE == 4,
               "a type of elements has changed");
_Static_assert(COVEY_SUM == 0 && COVEY_PRODUCT == 1 && COVEY_MIN == 2 && COVEY_MAX == 3,
               "an operation has changed");
_Static_assert(COVEY_UPDATE_ON_SERVERS == 0 && COVEY_UPDATE_ON_MEMBERS == 1 &&
                   COVEY_UPDATE_BY_PROGRAM == 2 && COVEY_FEEDBACK_NEVER == 0 && COVEY_FEEDBACK_8BIT == 1 &&
                   COVEY_FEEDBACK_INT8 == 1 &&
                   COVEY_FEEDBACK_ALWAYS == 2 && COVEY_COMBINE_MEAN == 0 && COVEY_COMBINE_ADASUM == 1,
               "a choice of covey_step_options has changed");
_Static_assert(COVEY_PASS_GO_ON == 0 && COVEY_PASS_MEET == 1,
               "a choice of covey_source_options has changed");

int main(void) { return 0; }
