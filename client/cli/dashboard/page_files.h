// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// The files of the page, as they are in this folder; page_files_generated in BUILD makes them
// constants.
extern const char kPageHtml[];
extern const char kPageCss[];
extern const char kPageJs[];
extern const char kPageIcon[];

}  // namespace covey::cli
