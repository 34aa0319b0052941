// SPDX-License-Identifier: Apache-2.0

// Draws the answers of /api/v1/state, which it asks for once per second. Strings of the cluster
// become text by textContent, never markup.
"use strict";

const ROWS = 50;
const LOG_LINES = 200;
const POINTS_MAX = 1500;
const EVENTS_MAX = 1000;
const SHARDS_MAX = 256;
const RACK_NODES = 72;
const PARTS = [["computation", "computation"], ["input", "input"],
               ["group", "waiting for the group"], ["servers", "waiting for servers"]];

let token = location.hash.match(/^#[0-9a-f]{32}$/) ? location.hash.slice(1) : "";
try {
  if (token) sessionStorage.setItem("covey", token);
  else token = sessionStorage.getItem("covey") || "";
} catch (error) {
  // Without storage the token lives as long as the page.
}

let newest = null;
let points = [];
let events = [];
let sequence = 0;
let nodeRows = ROWS;
let failedSince = 0;
const at = (id) => document.getElementById(id);

function make(name, content, classes) {
  const element = document.createElement(name);
  if (classes) element.className = classes;
  if (Array.isArray(content)) element.append(...content);
  else if (content !== undefined) element.textContent = content;
  return element;
}

function draw(name, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  return element;
}

const count = (value) => Number(value).toLocaleString("en-US", {maximumFractionDigits: 0});
function number(value) {
  if (!isFinite(value)) return String(value);
  return Number(Number(value).toPrecision(3)).toLocaleString("en-US", {maximumFractionDigits: 6});
}
function seconds(ms) {
  const s = Math.max(0, ms / 1000);
  if (s < 10) return s.toFixed(1) + " s";
  if (s < 120) return s.toFixed(0) + " s";
  if (s < 7200) return Math.floor(s / 60) + " min";
  return Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " min";
}
function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (value = Number(value); value >= 1024 && i < 4; ++i) value /= 1024;
  return number(value) + " " + units[i];
}
const duration = (s) => s < 1e-3 ? number(s * 1e6) + " µs" : s < 1 ? number(s * 1e3) + " ms" : number(s) + " s";

// Replaces what is in an element, unless a person is selecting text there.
function put(id, ...content) {
  const selected = document.getSelection();
  if (selected && !selected.isCollapsed && at(id).contains(selected.anchorNode)) return;
  at(id).replaceChildren(...content);
}

function table(heads, rows) {
  const cell = (name, value, head) => {
    const element = value instanceof Node ? make(name, [value]) : make(name, value);
    element.className = head.startsWith(">") ? "n" : head.startsWith("~") ? "w" : "";
    return element;
  };
  const top = make("tr", heads.map((head) => {
    const element = cell("th", head.replace(/^[>~]/, ""), head);
    element.scope = "col";
    return element;
  }));
  const body = rows.map((row) => make("tr", row.map((value, i) => cell("td", value, heads[i]))));
  return make("table", [make("thead", [top]), make("tbody", body)]);
}

// A bar of the shares of a step; reads "computation 61 %, ..." to those who do not see it.
function stepBar(times) {
  const total = PARTS.reduce((sum, [key]) => sum + Math.max(0, times[key]), 0);
  if (!total) return make("span", "–", "faint");
  const words = PARTS.map(([key, name]) => name + " " + Math.round(100 * times[key] / total) + " %").join(", ");
  const svg = draw("svg", {viewBox: "0 0 170 12", preserveAspectRatio: "none", role: "img", "aria-label": words});
  svg.append(draw("title", {}, duration(total) + ": " + words));
  let x = 0;
  PARTS.forEach(([key], i) => {
    const width = 170 * Math.max(0, times[key]) / total;
    svg.append(draw("rect", {x, y: 0, width, height: 12, class: "f" + i}));
    x += width;
  });
  return svg;
}

// Lines over time: [{name, style, points: [[ms, value]]}].
function lineChart(id, lines, now, what) {
  const all = lines.flatMap((line) => line.points);
  if (all.length < 2) return put(id, make("p", "no training yet", "empty"));
  const [width, height, left, bottom] = [560, 210, 52, 24];
  const from = Math.min(...all.map((p) => p[0]));
  const to = Math.max(...all.map((p) => p[0]), from + 1);
  let low = Math.min(0, ...all.map((p) => p[1]));
  let high = Math.max(...all.map((p) => p[1]));
  if (!(high > low)) high = low + 1;
  const step = 10 ** Math.floor(Math.log10((high - low) / 4));
  const tick = [1, 2, 5, 10].map((k) => k * step).find((k) => (high - low) / k <= 5) || step;
  high = Math.ceil(high / tick) * tick;
  low = Math.floor(low / tick) * tick;
  const x = (ms) => left + (width - left - 8) * (ms - from) / (to - from);
  const y = (value) => 8 + (height - bottom - 8) * (high - value) / (high - low);
  const label = what + ", newest: " + lines.slice(0, 4).map((line) => line.name + " " +
      number(line.points[line.points.length - 1][1])).join(", ");
  const svg = draw("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label});
  for (let value = low; value <= high + tick / 2; value += tick) {
    svg.append(draw("line", {x1: left, x2: width - 8, y1: y(value), y2: y(value), class: "g"}),
               draw("text", {x: left - 6, y: y(value) + 4, "text-anchor": "end", class: "t"}, number(value)));
  }
  svg.append(draw("text", {x: left, y: height - 6, class: "t"}, seconds(now - from) + " ago"),
             draw("text", {x: width - 8, y: height - 6, "text-anchor": "end", class: "t"}, "now"));
  for (const line of lines) {
    const path = line.points.map((p) => x(p[0]).toFixed(1) + "," + y(p[1]).toFixed(1)).join(" ");
    svg.append(draw("polyline", {points: path, class: line.style}));
  }
  put(id, svg);
}

function showProgress(now) {
  const ids = new Set();
  for (const point of points) for (const id in point.groups) ids.add(id);
  const groups = [...ids].sort((a, b) => a - b).slice(0, 12);
  const series = (index) => groups.map((id) => ({
    name: "group " + id, style: "l" + id % 8,
    points: points.filter((p) => p.groups[id]).map((p) => [p.at, p.groups[id][index]]),
  }));
  const speed = series(0);
  if (groups.length > 1) speed.push({name: "all groups", style: "ls", points: points.map((p) => [p.at, p.sum])});
  lineChart("throughput", speed, now, "Samples per second");
  lineChart("loss", series(1), now, "Loss");
  const keys = groups.flatMap((id) => [make("i", "", "k b" + id % 8), "group " + id]);
  if (groups.length > 1) keys.push(make("i", "", "k bs"), "all groups");
  if (newest.groups.length > groups.length && groups.length === 12) keys.push(` (lines of 12 of ${newest.groups.length} groups)`);
  put("legend", ...keys);
}

function showHealth(answer) {
  const {state, contact, now} = answer;
  at("contact").hidden = contact.connected;
  if (!contact.connected) {
    at("contact").textContent = `No scheduler answers since ${seconds(now - contact.since)}: ${contact.error}` +
        (state ? ` What follows is ${seconds(now - contact.last)} old.` : "");
  }
  if (!state) return;
  at("job").textContent = state.job;
  document.title = (state.healthy ? "" : "! ") + state.job + " – Covey";
  at("health").textContent = !contact.connected ? "unknown" : state.healthy ? "healthy" : "unhealthy";
  at("health").className = !contact.connected ? "" : state.healthy ? "good" : "bad";
  at("facts").textContent = `epoch ${count(state.epoch)} · scheduler up ${seconds(state.uptime_ms)}` +
      (contact.restarts ? ` · restarted or failed over ${contact.restarts} ×, newest ${seconds(now - contact.since)} ago` : "");
  at("insecure").hidden = !state.insecure;
  const notes = [...state.quarantined];
  if (state.waiting_for) notes.push("waiting for " + state.waiting_for);
  const many = state.problems.length - 20;
  put("problems", ...state.problems.slice(0, 20).map((text) => make("li", text)),
      ...(many > 0 ? [make("li", `and ${count(many)} more, see covey status`)] : []),
      ...notes.slice(0, 20).map((text) => make("li", text, "note")));
  const alive = (role) => state.nodes.filter((node) => node.role === role && node.state === "alive").length;
  const speed = state.groups.filter((g) => g.state === "active").reduce((sum, g) => sum + g.samples_per_second, 0);
  const tile = (value, name) => {
    const element = make("div", [make("b", value), make("span", name)], "tile");
    element.title = name;
    return element;
  };
  put("tiles", tile(count(alive("server")), "servers"), tile(count(alive("worker")), "workers"),
      tile(count(state.groups.filter((g) => g.state === "active").length), "active groups"),
      tile(number(speed), "samples per second"), tile(count(state.at_risk), "updates at risk"),
      tile(count(state.tables.length), "tables"));
  if (state.durability) {
    at("tiles").append(make("p", state.durability, "legend"));
    at("tiles").lastChild.style.gridColumn = "1 / -1";
  }
}

function showGroups(state, byId) {
  put("parts", "Where the time of a step goes: ", ...PARTS.flatMap(([, name], i) => [make("i", "", "k p" + i), name]));
  const rows = state.groups.slice(0, ROWS * 2).map((group) => {
    const members = group.members.map((id) => byId.get(id)).filter(Boolean);
    const sum = group.shares.reduce((a, b) => a + b, 0);
    const names = members.slice(0, 8).map((node, i) => node.name +
        (sum ? ` ${Math.round(100 * group.shares[i] / sum)} %` : "")).join(", ") +
        (members.length > 8 ? `, and ${members.length - 8} more` : "");
    const labels = [...new Set(members.map((node) => node.labels).filter(Boolean))];
    const places = labels.slice(0, 4).join(", ") + (labels.length > 4 ? `, and ${labels.length - 4} more` : "");
    const tone = {active: "good", broken: "bad"}[group.state] || "faint";
    const told = (text) => group.started ? text : "–";
    return [String(group.id), make("span", group.state + (group.reason ? ": " + group.reason : ""), tone),
            count(group.generation), names, places || "–", told(count(group.step)),
            told(number(group.samples_per_second)), told(number(group.loss)), told(number(group.staleness)),
            stepBar(group.times)];
  });
  put("group-list", rows.length ? table(["Group", "State", ">Generation", "~Members and shares", "~Topology", ">Step",
      ">Samples/s", ">Loss", ">Staleness", "Step"], rows) : make("p", "no groups yet", "empty"));
}

// "zone/rack" of a node; "" where its labels name neither.
const rackOf = (node) => node.labels.split("/").slice(0, 2).filter(Boolean).join("/");

// A square for a server, and for a worker a disk in the color of its group.
function nodeCell(node, group) {
  const tone = node.state === "dead" ? " dead" : node.role === "server" ? " head" : group >= 0 ? " b" + group % 8 : "";
  const cell = make("i", "", "cell" + (node.role === "worker" ? " worker" : "") + tone);
  cell.title = `${node.name} ${node.state}` + (group >= 0 ? `, group ${group}` : "");
  return cell;
}

function showRacks(state, byId) {
  const groupOf = new Map();
  const sizes = new Map();
  for (const group of state.groups.filter((each) => each.state === "active")) {
    sizes.set(group.id, group.members.length);
    for (const id of group.members) groupOf.set(id, group.id);
  }
  const racks = new Map();
  for (const node of state.nodes) {
    if (node.role === "client" || node.state === "left") continue;
    const name = rackOf(node);
    if (!racks.has(name)) {
      racks.set(name, {cells: [], dead: 0, groups: new Map(), speed: 0, bytes: 0, heads: 0, others: 0, alone: 0});
    }
    const rack = racks.get(name);
    const group = groupOf.get(node.id);
    rack.cells.push(nodeCell(node, group));
    if (node.state === "dead") ++rack.dead;
    if (group >= 0) rack.groups.set(group, (rack.groups.get(group) || 0) + 1);
    rack.speed += node.samples_per_second || 0;
    rack.bytes += node.bytes || 0;
  }
  for (const chain of state.tables.flatMap((t) => t.shards)) {
    const full = chain.filter(([, joining]) => !joining).map(([id]) => byId.get(id)).filter(Boolean);
    full.forEach((node, i) => {
      const rack = racks.get(rackOf(node));
      if (rack) ++rack[i ? "others" : "heads"];
    });
    const places = new Set(full.map(rackOf));
    if (places.size === 1 && racks.has(rackOf(full[0]))) ++racks.get(rackOf(full[0])).alone;
  }
  const rows = [...racks].sort(([a], [b]) => a.localeCompare(b, "en", {numeric: true})).slice(0, ROWS * 2).map(([name, rack]) => {
    const cells = rack.cells.slice(0, RACK_NODES);
    if (rack.cells.length > RACK_NODES) cells.push(make("span", `and ${count(rack.cells.length - RACK_NODES)} more`, "faint"));
    const groups = [...rack.groups].sort(([a], [b]) => a - b);
    const words = groups.slice(0, 8).map(([id, members]) => `group ${id}: ${members} of ${sizes.get(id)}`).join(", ") +
        (groups.length > 8 ? `, and ${groups.length - 8} more` : "");
    const map = make("div", cells, "shards");
    map.setAttribute("role", "img");
    map.setAttribute("aria-label", `${count(rack.cells.length)} nodes, ${count(rack.dead)} dead`);
    return [name || "no rack", map, words || "–", number(rack.speed),
            rack.bytes ? bytes(rack.bytes) : "–", `${count(rack.heads)} + ${count(rack.others)}`,
            make("span", count(rack.alone), rack.alone && racks.size > 1 ? "warn" : "")];
  });
  put("rack-list", rows.length ? table(["Rack", "~Nodes", "~Groups", ">Samples/s", ">Tables", ">Heads + other replicas",
      ">Shards here alone"], rows) : make("p", "no nodes yet", "empty"));
}

function showStragglers(state) {
  const paced = state.nodes.filter((node) => node.state === "alive" && node.slowness > 0);
  paced.sort((a, b) => b.slowness - a.slowness);
  const rows = paced.slice(0, 20).map((node) => [
    node.name, make("span", node.pace, node.pace === "steady" ? "good" : node.pace === "learning" ? "faint" : "warn"),
    number(node.slowness) + " ×", duration(node.seconds_per_sample), count(node.aside || 0),
    node.times ? stepBar(node.times) : "–"]);
  put("straggler-list", rows.length ? table(["Worker", "Pace", ">Time of its group's median", ">Per sample",
      ">Steps aside", "Step"], rows) : make("p", "no worker has been measured yet", "empty"));
  if (paced.length > 20) at("straggler-list").append(make("p", `the slowest 20 of ${count(paced.length)}`, "empty"));
}

function logLines(id, list, now, nothing) {
  put(id, ...(list.length ? list.slice(0, LOG_LINES).map((event) =>
      make("li", [make("time", seconds(now - event.at) + " ago"), make("span", event.text)]))
      : [make("li", nothing, "faint")]));
}

function showEvents(now) {
  const wanted = at("event-filter").value.toLowerCase();
  const found = events.filter((event) => event.text.toLowerCase().includes(wanted)).reverse();
  at("event-count").textContent = wanted ? `${count(found.length)} of ${count(events.length)}` : count(events.length);
  logLines("event-list", found, now, "no events");
  logLines("ladder", events.filter((event) => event.kinds.includes("straggler")).reverse(), now, "no measure has been taken");
}

function showTables(state) {
  const rows = state.tables.slice(0, ROWS * 2).map((t) => {
    let staleness = t.updates ? number(t.staleness) : "–";
    if (t.bound !== undefined) staleness += ` (bound ${t.bound})`;
    let momentum = t.updates ? `${number(t.implicit_momentum)} implicit + ${number(t.explicit_momentum)}` : "–";
    if (t.updates && t.target_momentum) momentum += ` of ${number(t.target_momentum)}`;
    return [t.name, t.shape, t.contract + (t.contract_epoch ? ` since epoch ${t.contract_epoch}` : ""), staleness,
            momentum, t.optimizer, t.durability, make("span", t.replication, t.whole ? "good" : "bad"),
            count(t.updates), count(t.discarded)];
  });
  put("table-list", rows.length ? table(["~Table", "Shape", "Contract", ">Staleness", "Momentum", "Optimizer",
      "Durability", "~Replication", ">Updates", ">Discarded"], rows) : make("p", "no tables yet", "empty"));
}

function showReplicas(state, byId) {
  let left = 4 * SHARDS_MAX;
  const rows = state.tables.slice(0, ROWS * 2).map((t) => {
    const shown = Math.min(t.shards.length, SHARDS_MAX, Math.max(0, left));
    left -= shown;
    const chains = t.shards.slice(0, shown).map((chain, shard) => {
      const cells = [];
      const words = [];
      let full = 0;
      for (const [id, joining] of chain) {
        const kind = joining ? "joining" : full++ ? "full" : "head";
        cells.push(make("i", "", "cell " + kind));
        const node = byId.get(id);
        words.push((node ? node.name : "node " + id) + (node && rackOf(node) ? ` (${rackOf(node)})` : "") + " " + kind);
      }
      for (let i = chain.length; i < t.replicas; ++i) {
        cells.push(make("i", "", "cell short"));
        words.push("short");
      }
      const element = make("span", cells, "chain");
      element.title = `shard ${shard}: ${words.join(", ")}`;
      element.setAttribute("role", "img");
      element.setAttribute("aria-label", element.title);
      return element;
    });
    if (t.shards.length > shown) chains.push(make("span", `and ${count(t.shards.length - shown)} more`, "faint"));
    return [t.name, make("div", chains, "shards")];
  });
  put("replica-map", rows.length ? table(["Table", "Shards"], rows) : make("p", "no tables yet", "empty"));
}

function showNodes(state) {
  const wanted = at("node-filter").value.toLowerCase();
  const order = {server: 0, worker: 1, client: 2};
  const found = state.nodes.filter((node) => !wanted || [node.name, node.state, node.labels, node.host, node.note]
      .some((text) => text.toLowerCase().includes(wanted)));
  // Those that need attention come first.
  const rank = (node) => [node.state === "dead" ? 0 : 1, order[node.role], node.id];
  found.sort((a, b) => {
    const [x, y] = [rank(a), rank(b)];
    return x[0] - y[0] || x[1] - y[1] || x[2] - y[2];
  });
  at("node-count").textContent = `${count(Math.min(found.length, nodeRows))} of ${count(state.nodes.length)}`;
  at("node-more").hidden = found.length <= nodeRows;
  const rows = found.slice(0, nodeRows).map((node) => [
    node.name, make("span", node.state, {alive: "good", dead: "bad"}[node.state] || "faint"),
    node.state === "alive" ? seconds(node.silent_ms) : "–", node.labels || "–",
    node.host + (node.process ? ` (${node.process})` : ""), node.bytes ? bytes(node.bytes) : "–",
    node.step ? count(node.step) : "–", node.note]);
  put("node-list", rows.length ? table(["Node", "State", ">Silent", "~Topology", "Host (process)", ">Tables", ">Step",
      "~Note"], rows) : make("p", "no node matches", "empty"));
}

function showSnapshots(state) {
  const rows = [...state.snapshots].reverse().slice(0, 20).map((s) => [
    s.folder, make("span", s.state.replace("_", " ") + (s.reason ? ": " + s.reason : ""),
    {complete: "good", failed: "bad"}[s.state] || "warn"), `${s.shards_written} of ${s.shards}`, bytes(s.bytes),
    bytes(s.reused_bytes), seconds(s.took_ms)]);
  put("snapshot-list", rows.length ? table(["~Snapshot", "State", ">Shards", ">Bytes", ">Reused", ">Took"], rows)
      : make("p", "no snapshots", "empty"));
}

function show(answer) {
  newest = answer.state;
  showHealth(answer);
  showEvents(answer.now);
  if (!newest) return;
  const byId = new Map(newest.nodes.map((node) => [node.id, node]));
  showProgress(answer.now);
  showGroups(newest, byId);
  showRacks(newest, byId);
  showStragglers(newest);
  showTables(newest);
  showReplicas(newest, byId);
  showNodes(newest);
  showSnapshots(newest);
}

function fail(text) {
  failedSince = failedSince || performance.now();
  at("contact").hidden = false;
  at("contact").textContent = `${text} (since ${seconds(performance.now() - failedSince)})` + (newest ? "; what follows is old" : "");
  at("health").textContent = "unknown";
  at("health").className = "";
}

let last = null;
async function ask() {
  try {
    const reply = await fetch("/api/v1/state?since=" + sequence, {headers: {"Covey-Token": token}});
    if (reply.status === 403) return fail("This page has no valid token: open the URL that covey dashboard printed");
    if (!reply.ok) throw new Error(reply.status);
    const answer = await reply.json();
    failedSince = 0;
    sequence = answer.sequence;
    points = points.concat(answer.points).slice(-POINTS_MAX);
    events = events.concat(answer.events).slice(-EVENTS_MAX);
    last = answer;
    show(answer);
  } catch (error) {
    fail("covey dashboard does not answer: is it still running?");
  } finally {
    setTimeout(ask, 1000);
  }
}

at("node-more").addEventListener("click", () => { nodeRows += ROWS; if (newest) showNodes(newest); });
at("node-filter").addEventListener("input", () => { nodeRows = ROWS; if (newest) showNodes(newest); });
at("event-filter").addEventListener("input", () => { if (last) showEvents(last.now); });
// The links of the views leave the token in the URL.
for (const link of document.querySelectorAll("nav a, .skip")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const target = document.querySelector(link.getAttribute("href"));
    target.scrollIntoView();
    target.tabIndex = -1;
    target.focus({preventScroll: true});
  });
}
for (const card of document.querySelectorAll(".card")) card.tabIndex = 0;
ask();
