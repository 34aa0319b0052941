// SPDX-License-Identifier: Apache-2.0
#include "client/cli/report/page.h"

#include "absl/strings/str_cat.h"
#include "client/cli/report/markup.h"
#include "client/cli/report/plot.h"

namespace covey::cli {
namespace {

constexpr char kStyle[] = R"css(
:root { color-scheme: light dark; --page: #f6f7f9; --card: #ffffff; --text: #1c2430;
  --faint: #66707f; --edge: #dde1e7; --good: #15803d; --bad: #b91c1c;
  --c0: #2563eb; --c1: #ea580c; --c2: #16a34a; --c3: #9333ea;
  --c4: #0891b2; --c5: #dc2626; --c6: #a16207; --c7: #db2777; }
@media (prefers-color-scheme: dark) { :root { --page: #12161c; --card: #1b212a; --text: #e6e9ee;
  --faint: #98a2b1; --edge: #2e3743; --good: #4ade80; --bad: #f87171;
  --c0: #60a5fa; --c1: #fb923c; --c2: #4ade80; --c3: #c084fc;
  --c4: #22d3ee; --c5: #f87171; --c6: #facc15; --c7: #f472b6; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 2rem 1rem 4rem; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 1180px; margin: 0 auto; }
h1 { font-size: 1.6rem; margin: 0; }
h2 { font-size: 1.05rem; margin: 2.2rem 0 .7rem; }
.outcome { margin: .3rem 0 1.5rem; color: var(--good); }
.outcome.failed { color: var(--bad); font-weight: 600; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(170px, 1fr)); gap: .8rem; }
.tile, figure, .card { background: var(--card); border: 1px solid var(--edge); border-radius: 10px; }
.tile { padding: .8rem 1rem; overflow-wrap: anywhere; }
.tile b { display: block; font-size: 1.35rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.tile span { color: var(--faint); font-size: .85rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(460px, 100%), 1fr)); gap: .8rem; }
figure { margin: 0; padding: 1rem; }
figcaption { font-weight: 600; }
svg { display: block; width: 100%; height: auto; }
.card { padding: .4rem 1rem; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
td { padding: .35rem 0; border-top: 1px solid var(--edge); vertical-align: top; overflow-wrap: anywhere; }
tr:first-child td { border-top: 0; }
td:first-child { color: var(--faint); white-space: nowrap; padding-right: 2rem; width: 1%;
  font-variant-numeric: tabular-nums; }
.plot-text { fill: var(--faint); font-size: 12px; font-variant-numeric: tabular-nums; }
.plot-grid { stroke: var(--edge); stroke-width: 1; }
.plot-axis { stroke: var(--faint); stroke-width: 1; }
.plot-mark { stroke: var(--faint); stroke-width: 1; stroke-dasharray: 3 3; }
polyline { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
@media print { body { padding: 0; } figure, .tile, .card { break-inside: avoid; } }
)css";

std::string ColorRules() {
  std::string rules;
  for (size_t i = 0; i < kPlotColors; ++i) {
    absl::StrAppend(&rules, ".plot-line-", i, " { stroke: var(--c", i, "); } .plot-dot-", i,
                    " { fill: var(--c", i, "); }\n");
  }
  return rules;
}

}  // namespace

std::string RenderTiles(const PageRows& rows) {
  std::string html = "<div class=\"tiles\">\n";
  for (const auto& [name, value] : rows) {
    absl::StrAppend(&html, "<div class=\"tile\"><b>", EscapeMarkup(value), "</b><span>",
                    EscapeMarkup(name), "</span></div>\n");
  }
  return html + "</div>\n";
}

std::string RenderRows(const PageRows& rows) {
  std::string html = "<div class=\"card\"><table>\n";
  for (const auto& [name, value] : rows) {
    absl::StrAppend(&html, "<tr><td>", EscapeMarkup(name), "</td><td>", EscapeMarkup(value),
                    "</td></tr>\n");
  }
  return html + "</table></div>\n";
}

std::string RenderPage(const Page& page) {
  const std::string title = EscapeMarkup(page.title);
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      title, "</title>\n<style>", kStyle, ColorRules(), "</style>\n</head>\n<body>\n<main>\n<h1>",
      title, "</h1>\n<p class=\"outcome", page.failed ? " failed" : "", "\">",
      EscapeMarkup(page.outcome), "</p>\n", page.content, "</main>\n</body>\n</html>\n");
}

}  // namespace covey::cli
