// The page of the console. Everything that is shown as text is set as text: nothing from the server becomes HTML.
"use strict";
(() => {
const REFRESH_MS = 5000;
const COLOURS = ["#3b7dd8", "#e07b39", "#3a9d6a", "#b455c8", "#c9a227", "#d64550", "#4bb3c4", "#8a8f98", "#7a6ff0", "#6b8e23"];
const byId = (id) => document.getElementById(id);
const main = byId("main");

/* An element with properties and children. */
function el(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
}

/* ---- Figures as people read them ---- */

function scaled(value, step, units) {
  let index = 0;
  while (Math.abs(value) >= step && index < units.length - 1) { value /= step; index += 1; }
  const digits = Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return [value.toFixed(digits), units[index]];
}
const known = (value) => value !== null && value !== undefined && Number.isFinite(Number(value));
const joined = ([value, unit]) => (unit ? `${value} ${unit}` : value);
const FORMATS = {
  bytes: (v) => joined(scaled(v, 1024, ["B", "KiB", "MiB", "GiB", "TiB"])),
  "bytes/s": (v) => joined(scaled(v, 1024, ["B/s", "KiB/s", "MiB/s", "GiB/s"])),
  ms: (v) => (v === 0 ? "0 ms" : v >= 1000 ? `${(v / 1000).toFixed(2)} s` : `${v.toFixed(v < 10 ? 2 : 1)} ms`),
  "%": (v) => `${v.toFixed(1)} %`,
  "dollars/month": (v) => `$${v.toFixed(2)}`,
};
function shown(value, unit) {
  if (!known(value)) return "–";
  return FORMATS[unit] ? FORMATS[unit](Number(value)) : joined(scaled(Number(value), 1000, ["", "k", "M", "G"]));
}
function duration(seconds) {
  const parts = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const at = parts.findIndex(([, size]) => seconds >= size);
  if (at < 0) return "0 s";
  const words = parts.slice(at, at + 2).map(([unit, size], n) => {
    const count = Math.floor(n === 0 ? seconds / size : (seconds % parts[at][1]) / size);
    return `${count} ${unit}`;
  });
  return words.join(" ");
}

/* ---- Requests ---- */

let session = { token: "" };

class Failure extends Error {
  constructor(status, message) { super(message); this.status = status; }
}
async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST", body: JSON.stringify(body),
    headers: { "content-type": "application/json", "x-helenus-token": session.token },
  };
  let answer;
  try {
    answer = await fetch(`/console/api/${path}`, { credentials: "same-origin", ...options });
  } catch {
    throw new Failure(0, "The node does not answer.");
  }
  const found = await answer.json().catch(() => ({}));
  if (answer.ok) return found;
  if (answer.status === 401 && path !== "login") await begin();
  throw new Failure(answer.status, found.error || `The node answered with status ${answer.status}.`);
}
const cql = (statement, keyspace) => ask("cql", { statement, keyspace });
/* Rows of a statement as objects. */
async function rowsOf(statement) {
  const found = await cql(statement);
  return found.rows.map((row) => Object.fromEntries(found.columns.map((column, n) => [column.name, row[n]])));
}
function trouble(words) {
  byId("trouble").textContent = words || "";
  byId("trouble").hidden = !words;
}

/* What needs an operator although clients are served. */
function warn(warnings) {
  byId("warnings").replaceChildren(...warnings.map((words) => el("div", {}, words)));
  byId("warnings").hidden = warnings.length === 0;
}

/* ---- Parts of sections ---- */

const panel = (title, ...children) => el("section", { className: "panel" }, el("h2", {}, title), children);
const note = (words) => el("p", { className: "note" }, words);
/* A table; columns are [title, cell of a row, is a number]. */
function table(columns, rows, empty = "None.") {
  if (rows.length === 0) return note(empty);
  const head = columns.map(([title, , number]) => el("th", { className: number ? "number" : "" }, title));
  const cell = (row, [, value, number]) => {
    const found = value(row);
    if (found === null || found === undefined) return el("td", { className: "null" }, "null");
    return el("td", { className: number ? "number" : String(found).length > 60 ? "long" : "" }, found);
  };
  const body = rows.map((row) => el("tr", {}, columns.map((column) => cell(row, column))));
  return el("div", { className: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)));
}
const resultTable = (found) => table(found.columns.map((column, n) => [column.name, (row) => row[n]]), found.rows, "No rows.");
function figure(label, value, name) {
  const made = el("div", { className: "figure" }, el("div", { className: "value" }, value), el("div", { className: "label" }, label));
  made.dataset.figure = name || "";
  return made;
}

/* ---- Overview ---- */

let heatBy = "operations_per_second";

const lastOf = (history, name) => (history.columns[name] || []).at(-1);
function sumOf(history, prefix) {
  const values = Object.keys(history.columns).filter((name) => name.startsWith(prefix)).map((name) => lastOf(history, name)).filter(known);
  return values.length ? values.reduce((sum, value) => sum + value, 0) : null;
}
const REQUESTS = "rate.helenus_request_duration_seconds.";

function overviewFigures({ node, cluster }, history) {
  const alive = cluster.nodes.filter((one) => one.alive).length;
  const moving = cluster.tablets.filter((tablet) => !["stable", "open"].includes(tablet.state)).length;
  return el("div", { className: "figures" },
    figure("Nodes alive", `${alive} of ${cluster.nodes.length}`, "nodes"),
    figure("Tablets of the cluster", cluster.tablets.length, "tablets"),
    figure("Moves, splits, merges", moving, "moving"),
    figure("Requests/s at this node", shown(sumOf(history, REQUESTS)), "requests"),
    figure("Errors/s", shown(sumOf(history, "rate.helenus_request_errors_total.") ?? 0), "errors"),
    figure("Connections", shown(lastOf(history, "gauge.helenus_connections")), "connections"),
    figure("Files of this node's tablets", shown(node.data_bytes, "bytes"), "data"),
    figure("Log that is not in files yet", shown(lastOf(history, "gauge.helenus_log_bytes"), "bytes"), "log"),
    figure("Rows in memory, not in files", shown(lastOf(history, "gauge.helenus_store_memtable_bytes"), "bytes"), "memtables"),
    figure("Memory in use", shown(node.memory_bytes, "bytes"), "memory"),
    figure("Uptime", duration(node.uptime_s), "uptime"),
    node.bucket && figure(known(node.bucket.dollars_per_month) ? "Bucket requests a month: this node, at the present rate"
      : "Bucket requests a month: known after five minutes", shown(node.bucket.dollars_per_month, "dollars/month"), "dollars"));
}
/* A node's name, with its address where nodes share a name, as they do on one machine. */
function nameOf(node, cluster) {
  const name = node.name || node.host_id;
  const isShared = cluster.nodes.filter((other) => other.name === node.name).length > 1;
  return node.name && isShared ? `${name} ${node.cql_address}` : name;
}
function nodesTable(cluster) {
  const state = (node) => el("span", { className: node.alive ? "good" : "bad" }, node.alive ? node.state : "no lease");
  return table([
    ["Node", (n) => nameOf(n, cluster) + (n.here ? " (this one)" : "")],
    ["State", state], ["CQL address", (n) => n.cql_address],
    ["Data center", (n) => n.data_center], ["Rack", (n) => n.rack],
    ["Tablets", (n) => n.tablets, true], ["Share of the ring", (n) => shown(100 * n.owns, "%"), true],
    ["Version", (n) => n.software_version],
  ], cluster.nodes);
}
function tabletCell(tablet, most) {
  const value = tablet[heatBy];
  const unit = heatBy === "bytes" ? "bytes" : "";
  const made = el("div", { className: "tablet" }, el("div", {}, `#${tablet.id}`));
  if ("bytes" in tablet) {
    made.append(el("div", {}, heatBy === "bytes" ? shown(value, unit) : `${shown(value)}/s`));
    made.style.setProperty("--share", most > 0 && known(value) ? value / most : 0);
  } else {
    made.classList.add("elsewhere");
  }
  if (!["stable", "open"].includes(tablet.state)) {
    made.classList.add("moving");
    made.append(el("div", {}, tablet.state.split(" ")[0]));
  }
  made.title = `Tablet ${tablet.id}: tokens ${tablet.first_token} to ${tablet.last_token}\n${tablet.state}`
    + ("bytes" in tablet ? `\n${shown(tablet.bytes, "bytes")}, ${shown(tablet.operations_per_second)} operations/s` : "");
  return made;
}
function heatmap(cluster) {
  const most = Math.max(0, ...cluster.tablets.map((tablet) => tablet[heatBy]).filter(known));
  const nodes = [...cluster.nodes].sort((a, b) => b.here - a.here);
  const owners = [...nodes.map((node) => [node.host_id, nameOf(node, cluster) + (node.here ? " (this one)" : "")]), [null, "No owner"]];
  return owners.map(([owner, name]) => {
    const tablets = cluster.tablets.filter((tablet) => tablet.owner === owner);
    if (tablets.length === 0) return null;
    return el("div", {}, el("div", { className: "owner" }, `${name}: ${tablets.length} tablets`),
      el("div", { className: "heatmap" }, tablets.map((tablet) => tabletCell(tablet, most))));
  });
}
async function overview(show) {
  const [report, history] = await Promise.all([ask("cluster"), ask("history?seconds=60")]);
  header(report);
  const choose = (by, words) => {
    const button = el("button", { type: "button", onclick: () => { heatBy = by; refresh(); } }, words);
    button.setAttribute("aria-pressed", String(heatBy === by));
    return button;
  };
  const heat = panel("Tablets", el("div", { className: "row" }, choose("operations_per_second", "By load"), choose("bytes", "By size")),
    note("Load (operations/s) and size are those of the tablets of this node; hatched tablets are served by other nodes, whose consoles show theirs."),
    heatmap(report.cluster));
  show(overviewFigures(report, history), panel("Nodes", nodesTable(report.cluster)), heat);
}
function header({ node, cluster, troubles }) {
  // The default name of a cluster is that of the product.
  const ownName = cluster.cluster_name === "Helenus" ? "" : cluster.cluster_name;
  byId("cluster-name").textContent = ownName;
  byId("node-state").textContent = cluster.state;
  byId("node-state").className = `badge ${troubles.length ? "bad" : "good"}`;
  trouble(troubles.join("; "));
  warn(node.warnings || []);
  document.title = ownName ? `${ownName} – Helenus console` : "Helenus console";
  return node;
}

/* ---- Charts ---- */

const DURATION = "helenus_request_duration_seconds.";
/* `prefix` takes all figures that begin so, `series` those named. */
const CHARTS = [
  { title: "Requests", unit: "requests/s", prefix: `rate.${DURATION}` },
  { title: "Latency, 99th percentile", unit: "ms", prefix: `latency.${DURATION}`, suffix: ".p99" },
  { title: "Latency, median", unit: "ms", prefix: `latency.${DURATION}`, suffix: ".p50" },
  { title: "Latency, 99.9th percentile", unit: "ms", prefix: `latency.${DURATION}`, suffix: ".p999" },
  { title: "Errors", unit: "errors/s", prefix: "rate.helenus_request_errors_total." },
  { title: "Overload", unit: "events/s", series: { "refused after waiting": "rate.helenus_requests_shed_total",
    "connections refused": "rate.helenus_connections_refused_total", "store's back pressure": "rate.helenus_store_back_pressure_total" } },
  { title: "Requests under way", unit: "requests", series: { running: "gauge.helenus_requests_running", waiting: "gauge.helenus_requests_waiting" } },
  { title: "Connections", unit: "connections", series: { connections: "gauge.helenus_connections" } },
  { title: "Client traffic", unit: "bytes/s", series: { received: "rate.helenus_received_bytes_total", sent: "rate.helenus_sent_bytes_total" } },
  { title: "Log", unit: "bytes/s", series: { written: "rate.helenus_log_written_bytes_total" } },
  { title: "Log syncs", unit: "syncs/s", series: { syncs: "rate.helenus_log_syncs_total", failures: "rate.helenus_log_failures_total" } },
  { title: "Flushes", unit: "flushes/s", series: { flushes: "rate.helenus_store_flushes_total" } },
  { title: "Compaction", unit: "bytes/s", series: { compacted: "rate.helenus_store_compacted_bytes_total" } },
  { title: "Data by place", unit: "bytes", series: { files: "gauge.helenus_store_data_bytes", log: "gauge.helenus_log_bytes", memory: "gauge.helenus_store_memtable_bytes" } },
  { title: "Cache hits", unit: "%", prefix: "hits." },
  { title: "Rows read", unit: "rows/s", series: { live: "rate.helenus_slice_live_rows_total", dead: "rate.helenus_slice_dead_rows_total" } },
  { title: "Bucket requests", unit: "requests/s", prefix: "rate.helenus_bucket_requests_total." },
  { title: "Bucket traffic", unit: "bytes/s", series: { read: "rate.helenus_bucket_read_bytes_total", written: "rate.helenus_bucket_written_bytes_total" } },
  { title: "Cost of bucket requests", unit: "dollars/month", series: { dollars: "gauge.helenus_bucket_dollars_per_month" } },
  { title: "Time by stage, 99th percentile", unit: "ms", prefix: "latency.helenus_request_stage_seconds.", suffix: ".p99" },
];
let chartSeconds = 900;
let plots = [];

function seriesOf(chart, columns) {
  if (chart.series) return Object.entries(chart.series).filter(([, name]) => name in columns);
  const suffix = chart.suffix || "";
  return Object.keys(columns).filter((name) => name.startsWith(chart.prefix) && name.endsWith(suffix))
    .map((name) => [name.slice(chart.prefix.length, name.length - suffix.length).replaceAll("_", " "), name]);
}
/* Latencies that this page knows no title for. */
function furtherCharts(columns) {
  const metrics = new Set(Object.keys(columns).filter((name) => name.startsWith("latency.") && name.endsWith(".p99"))
    .map((name) => name.split(".")[1]));
  const isKnown = (metric) => CHARTS.some((chart) => chart.prefix === `latency.${metric}.`);
  return [...metrics].filter((metric) => !isKnown(metric)).map((metric) => ({
    title: `${metric.replace(/^helenus_|_seconds$/g, "").replaceAll("_", " ")}, 99th percentile`, unit: "ms", prefix: `latency.${metric}`, suffix: ".p99",
  }));
}
/* A kind has one colour in all charts. */
const colours = new Map();
function colourOf(label) {
  if (!colours.has(label)) colours.set(label, COLOURS[colours.size % COLOURS.length]);
  return colours.get(label);
}
/* All times of the page are UTC, as those of the log are. */
const ZONE = { timeZone: "UTC", hourCycle: "h23" };
const timeOf = (seconds, options) => new Date(seconds * 1000).toLocaleTimeString([], { ...ZONE, ...options });
/* Points whose neighbours are unknown: no line shows them. */
function lonePoints(values) {
  const isKnown = (n) => known(values[n]);
  return values.map((_, n) => n).filter((n) => isKnown(n) && !isKnown(n - 1) && !isKnown(n + 1));
}
/* The times and columns with an unknown point wherever the node has taken no samples for a while, so that lines end there. */
function withGaps(history) {
  const { times, columns, interval_s: interval } = history;
  const isGap = (n) => n > 0 && times[n] - times[n - 1] > 2.5 * interval;
  const spread = (values, between) => values.flatMap((value, n) => (isGap(n) ? [between(n), value] : [value]));
  return { ...history, times: spread(times, (n) => times[n - 1] + interval),
    columns: Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, spread(values, () => null)])) };
}
/* Shows the values of the last sample in the legend while the pointer is elsewhere. */
function showLast(u) {
  if (u.cursor.idx !== null && u.cursor.idx !== undefined) return;
  u.setLegend({ idxs: u.data.map(() => u.data[0].length - 1) }, false);
}
/* Distances of grid lines that are round in bytes. */
const POWERS_OF_TWO = Array.from({ length: 45 }, (_, n) => 2 ** n);
function style(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
function plot(chart, history, width, place) {
  const series = seriesOf(chart, history.columns);
  const axis = { stroke: style("--quiet"), grid: { stroke: style("--line"), width: 1 }, ticks: { stroke: style("--line"), width: 1 }, font: "11px system-ui" };
  const value = (_, v) => shown(v, chart.unit);
  const options = {
    width, height: 190,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    cursor: { sync: { key: "charts" }, points: { size: 6 } },
    hooks: { ready: [showLast], setCursor: [showLast] },
    scales: { y: { range: (_, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
    axes: [{ ...axis, values: (_, times) => times.map((at) => timeOf(at, { hour: "2-digit", minute: "2-digit", second: chartSeconds > 900 ? undefined : "2-digit" })), space: 70 },
      { ...axis, size: 72, ...(chart.unit.startsWith("bytes") ? { incrs: POWERS_OF_TWO } : {}), values: (_, values) => values.map((v) => shown(v, chart.unit)) }],
    series: [{ label: "UTC", value: (_, at) => (at ? timeOf(at) : "–") },
      ...series.map(([label], n) => ({ label, stroke: chart.prefix ? colourOf(label) : COLOURS[n % COLOURS.length], width: 1.5, value, spanGaps: false,
        points: { show: true, size: 4, filter: (u, index) => lonePoints(u.data[index]) } }))],
  };
  return new uPlot(options, [history.times, ...series.map(([, name]) => history.columns[name])], place);
}
async function charts(show) {
  const history = withGaps(await ask(`history?seconds=${chartSeconds}`));
  const choices = [[900, "15 min"], [3600, "1 h"], [21600, "6 h"]].map(([seconds, words]) => {
    const button = el("button", { type: "button", onclick: () => { chartSeconds = seconds; refresh(); } }, words);
    button.setAttribute("aria-pressed", String(chartSeconds === seconds));
    return button;
  });
  const wanted = [...CHARTS, ...furtherCharts(history.columns)].filter((chart) => seriesOf(chart, history.columns).length > 0);
  const places = wanted.map((chart) => {
    const place = el("section", { className: "panel chart" }, el("h2", {}, chart.title, " ", el("span", { className: "unit" }, chart.unit)));
    place.dataset.chart = chart.title;
    return place;
  });
  plots.forEach((old) => old.destroy());
  plots = [];
  const words = history.interval_s === 5 ? "This node, times in UTC; a point is 5 s."
    : `This node, times in UTC; a point is the mean of ${history.interval_s} s, of latencies the highest.`;
  show(el("div", { className: "row" }, choices, el("span", { className: "unit" }, words)), el("div", { className: "charts" }, places));
  wanted.forEach((chart, n) => plots.push(plot(chart, history, Math.max(200, places[n].clientWidth - 32), places[n])));
}

/* ---- Tables of system_views ---- */

async function viewsThere() {
  const found = await rowsOf("SELECT table_name FROM system_virtual_schema.tables WHERE keyspace_name = 'system_views'");
  return new Set(found.map((row) => row.table_name));
}
/* View, its column, title and unit. */
const TABLE_FIGURES = [
  ["disk_usage", "mebibytes", "Data, MiB"], ["max_partition_size", "mebibytes", "Largest partition, MiB"],
  ["local_read_latency", "per_second", "Reads/s"], ["local_read_latency", "p99th_ms", "Reads, 99 %, ms"],
  ["local_write_latency", "per_second", "Writes/s"], ["local_write_latency", "p99th_ms", "Writes, 99 %, ms"],
  ["rows_per_read", "p99th", "Rows a read, 99 %"], ["tombstones_per_read", "p99th", "Tombstones a read, 99 %"],
];
async function tables(show) {
  const there = await viewsThere();
  const views = [...new Set(TABLE_FIGURES.map(([view]) => view))].filter((view) => there.has(view));
  const [all, ...found] = await Promise.all([rowsOf("SELECT keyspace_name, table_name FROM system_schema.tables"),
    ...views.map((view) => rowsOf(`SELECT * FROM system_views.${view}`).catch(() => []))]);
  const key = (row) => `${row.keyspace_name}.${row.table_name}`;
  const byView = new Map(views.map((view, n) => [view, new Map(found[n].map((row) => [key(row), row]))]));
  // A figure that is 0 for every table is one that the node does not have.
  const isTold = ([view, column]) => [...(byView.get(view)?.values() || [])].some((row) => Number(row[column]) > 0);
  const figures = TABLE_FIGURES.filter(isTold).map(([view, column, title]) => [title, (row) => shown(byView.get(view).get(key(row))?.[column]), true]);
  const own = all.filter((row) => !row.keyspace_name.startsWith("system"));
  show(panel("Tables", note(figures.length ? "As the tables of system_views report for this node." : "This node keeps no figures of single tables."),
    table([["Keyspace", (row) => row.keyspace_name], ["Table", (row) => row.table_name], ...figures], own, "There are no tables yet.")));
}
/* A table of system_views as it is; false while people type into the filter. */
function view(name, title, missing, filter) {
  return async (show) => {
    if (!(await viewsThere()).has(name)) return show(panel(title, note(missing)));
    const found = await cql(`SELECT * FROM system_views.${name}`);
    const place = el("div", {});
    const draw = (text) => {
      const rows = found.rows.filter((row) => row.some((cell) => (cell || "").toLowerCase().includes(text.toLowerCase())));
      place.replaceChildren(resultTable({ columns: found.columns, rows }));
    };
    const input = el("input", { placeholder: "Filter", ariaLabel: "Filter", oninput: (event) => draw(event.target.value) });
    draw("");
    return show(panel(title, filter ? el("div", { className: "row" }, input) : null, place));
  };
}

/* ---- Partitions ---- */

const PARTITION = [["Table", (one) => `${one.keyspace}.${one.table}`], ["Partition", (one) => el("div", { className: "key" }, one.partition)]];

/* How active partitions are, of all requests that were counted. */
function activityPanel(title, { top, total }, seconds) {
  const share = (one) => (total > 0 ? Math.min(1, one.count / total) : 0);
  const bar = (one) => {
    const part = el("div", { className: "share" });
    part.style.width = `${100 * share(one)}%`;
    return el("div", { className: "shares" }, part);
  };
  const found = panel(title, table([...PARTITION, ["Per second", (one) => shown(one.count / Math.max(1, seconds)), true],
    ["Share", (one) => shown(100 * share(one), "%"), true], ["", bar]], top, "None were counted."));
  found.dataset.partitions = title;
  return found;
}
async function partitions(show) {
  const { interval, span_s: seconds, reads, writes, largest } = await ask("partitions");
  const words = interval === 0 ? "Reads and writes are not counted: partition_sampling_interval is 0."
    : `Reads and writes of the last ${duration(Math.max(1, seconds))} by this node, estimated from one in ${interval}. nodetool toppartitions counts each for a while.`;
  const large = panel("Largest on disk", note("Of the tablets of this node, as far as they have been flushed; exact to 4 KiB."),
    table([...PARTITION, ["Size", (one) => shown(one.count, "bytes"), true]], largest, "No partition is in a file yet."));
  large.dataset.partitions = "Largest on disk";
  show(note(words), el("div", { className: "pair" }, activityPanel("Most reads", reads, seconds), activityPanel("Most writes", writes, seconds)), large);
}

/* ---- Slow statements ---- */

let slowBy = "at";

/* Where the time went: a bar, and the stages that took the longest in words. */
function stagesCell(stages) {
  const found = Object.entries(stages).sort(([, a], [, b]) => b - a);
  const bar = el("div", { className: "stages" }, found.map(([name, took]) => {
    const part = el("span", { title: `${name}: ${shown(took, "ms")}` });
    part.style.flexGrow = took;
    part.style.background = colourOf(name);
    return part;
  }));
  const words = found.slice(0, 3).map(([name, took]) => `${name} ${shown(took, "ms")}`).join(", ");
  return el("div", {}, bar, words);
}
async function slowStatements(show) {
  const found = await ask("slow_statements");
  const sorted = slowBy === "at" ? found : [...found].sort((a, b) => b.total_ms - a.total_ms);
  const choose = (by, words) => {
    const button = el("button", { type: "button", onclick: () => { slowBy = by; refresh(); } }, words);
    button.setAttribute("aria-pressed", String(slowBy === by));
    return button;
  };
  const passedOn = found.some((one) => one.owner) ? [["Passed on to", (one) => one.owner || ""]] : [];
  const rows = table([
    ["Time (UTC)", (one) => one.at.slice(0, 19)], ["Took", (one) => shown(one.total_ms, "ms"), true], ["Where the time went", (one) => stagesCell(one.stages_ms)],
    ["Table", (one) => (one.table ? `${one.keyspace}.${one.table}` : "")], ["Statement", (one) => el("div", { className: "statement" }, one.statement)],
    ["Rows", (one) => shown(one.live_rows), true], ["Tombstones", (one) => shown(one.tombstones), true], ["Client", (one) => one.client], ...passedOn,
  ], sorted, "None was slow, or slow_requests_kept is 0.");
  show(panel("Slow statements", el("div", { className: "row" }, choose("at", "Newest first"), choose("total_ms", "Longest first")),
    note("The last requests of this node that took longer than slow_request_log_timeout. wait: for its turn; lock: for other writes of the partition; admission: for room among writes; "
      + "log: until it is on disk; read: for blocks of files; owner: for the node that owns the partition; run: computing, and waiting for a core."), rows));
}

/* ---- Replication ---- */

const STATE = "helenus_replication";
/* Seconds after which a report is old: its process has died, or one of the clusters is away. */
const REPORT_AGE_MAX_S = 30;

const hasReplication = async () =>
  (await rowsOf(`SELECT table_name FROM system_schema.tables WHERE keyspace_name = '${STATE}'`)).some((row) => row.table_name === "streams");
/* Streams of the newest generation, in one text. */
async function currentStreams() {
  const found = await rowsOf("SELECT time, streams FROM system_distributed.cdc_streams_descriptions_v2");
  return found.reduce((newest, row) => (row.time > newest.time ? row : newest), { time: "", streams: "" }).streams;
}
/* The seconds and rows by which a stream is behind. */
function lagOf(stream, nowMs) {
  const age = nowMs / 1000 - Number(stream.reported_us) / 1e6;
  const seconds = Number(stream.lag_s) + (age > REPORT_AGE_MAX_S ? age : 0);
  return { seconds, rows: seconds * Number(stream.rows_per_s) };
}
/* The streams of a replicated table that have not ended. */
async function streamsOf(row, current) {
  const text = (value) => `'${value.replaceAll("'", "''")}'`;
  const found = await rowsOf(`SELECT stream, sent_until_us, lag_s, rows_per_s, writetime(lag_s) AS reported_us FROM ${STATE}.streams `
    + `WHERE name = ${text(row.name)} AND table_name = ${text(row.table_name)}`);
  return found.filter((stream) => current.includes(stream.stream));
}
function stateOf(row) {
  if (row.stopped) return `stopped: ${row.stopped}`;
  if (row.copied < row.ranges) return "copying";
  return row.isFollowed ? "following" : "beginning";
}
/* A replicated table with the figures of its streams. */
function withFigures(row, streams, nowMs) {
  const lags = streams.map((stream) => lagOf(stream, nowMs));
  const untilMs = Math.min(...streams.map((stream) => Number(stream.sent_until_us) / 1000));
  return {
    ...row, ranges: Number(row.ranges), copied: JSON.parse(row.copied || "[]").length, isFollowed: streams.length > 0 && !row.stopped,
    until: streams.length > 0 ? new Date(untilMs).toISOString().slice(0, 19).replace("T", " ") : "–",
    seconds: Math.max(0, ...lags.map((lag) => lag.seconds)), waiting: lags.reduce((sum, lag) => sum + lag.rows, 0),
  };
}
async function replication(show) {
  if (!(await hasReplication())) {
    return show(panel("Replication", note("Nothing is replicated from this cluster. helenus replicate sends tables and their changes to another one.")));
  }
  const [tables, workers, current, now] = await Promise.all([
    rowsOf(`SELECT name, table_name, ranges, copied, stopped FROM ${STATE}.tables`), rowsOf(`SELECT name, worker FROM ${STATE}.workers`),
    currentStreams(), rowsOf("SELECT toUnixTimestamp(now()) AS ms FROM system.local"),
  ]);
  const nowMs = Date.parse(now[0].ms);
  const rows = await Promise.all(tables.map(async (row) => withFigures(row, await streamsOf(row, current), nowMs)));
  const ifFollowed = (value) => (row) => (row.isFollowed ? value(row) : "–");
  return show(panel("Replication", note("The tables that helenus replicate sends from this cluster. Everything up to the time in “Sent up to” was sent for certain; that time trails by the settle time. "
    + "Lag is the greatest of the last seconds. Rows that wait are estimated from the rate of the last changes."),
  table([["To", (row) => row.name], ["Table", (row) => row.table_name], ["State", stateOf],
    ["Copied", (row) => (row.ranges > 0 ? `${row.copied} of ${row.ranges}` : "not wanted"), true], ["Sent up to (UTC)", (row) => row.until],
    ["Lag", ifFollowed((row) => shown(1000 * row.seconds, "ms")), true], ["Rows that wait", ifFollowed((row) => shown(Math.round(row.waiting))), true],
    ["Processes", (row) => workers.filter((worker) => worker.name === row.name).length, true]], rows, "No table is replicated.")));
}

/* ---- Schema ---- */

async function schema(show) {
  const all = await rowsOf("SELECT keyspace_name, table_name FROM system_schema.tables");
  const place = el("div", {}, note("Choose a table."));
  const describe = (row) => async () => {
    const quoted = (name) => `"${name.replaceAll('"', '""')}"`;
    try {
      const found = await rowsOf(`DESCRIBE TABLE ${quoted(row.keyspace_name)}.${quoted(row.table_name)}`);
      place.replaceChildren(el("pre", {}, found.map((one) => one.create_statement).join("\n\n")));
    } catch (failure) {
      place.replaceChildren(el("p", { className: "error" }, failure.message));
    }
  };
  const list = el("div", {});
  const isSystem = (name) => name.startsWith("system");
  const ofUsersFirst = (a, b) => isSystem(a) - isSystem(b) || a.localeCompare(b);
  for (const keyspace of [...new Set(all.map((row) => row.keyspace_name))].sort(ofUsersFirst)) {
    list.append(el("h2", {}, keyspace));
    const own = all.filter((row) => row.keyspace_name === keyspace);
    own.forEach((row) => list.append(el("button", { type: "button", onclick: describe(row) }, row.table_name)));
  }
  show(el("section", { className: "panel browser" }, list, place));
}

/* ---- CQL ---- */

let keyspace = "";
let draft = "";
async function prompt(show) {
  const input = el("textarea", { id: "statement", value: draft, spellcheck: false, ariaLabel: "CQL statement", placeholder: "SELECT * FROM keyspace.table LIMIT 20" });
  const used = el("span", { className: "unit" }, keyspace ? `in keyspace ${keyspace}` : "");
  const result = el("div", { id: "result" });
  const button = el("button", { type: "button", id: "run" }, "Run");
  const run = async () => {
    button.disabled = true;
    result.replaceChildren(note("Running…"));
    try {
      const found = await cql(input.value.trim().replace(/;$/, ""), keyspace);
      if (found.kind === "keyspace") { keyspace = found.keyspace; used.textContent = `in keyspace ${keyspace}`; }
      const count = found.kind === "rows" ? `${found.rows.length} ${found.rows.length === 1 ? "row" : "rows"}${found.has_more ? ", there are more" : ""}, ` : "Done, ";
      result.replaceChildren(note(`${count}${shown(found.took_ms, "ms")}`), ...found.warnings.map((words) => el("p", { className: "bad" }, words)),
        ...(found.kind === "rows" ? [resultTable(found)] : []));
    } catch (failure) {
      result.replaceChildren(el("p", { className: "error" }, failure.message));
    }
    button.disabled = false;
  };
  button.onclick = run;
  input.oninput = () => { draft = input.value; };
  input.onkeydown = (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run(); };
  show(panel("CQL", note("One statement at a time, as the role that has logged in. An answer has 1,000 rows and takes 30 s at most. Ctrl-Enter runs it."),
    input, el("div", { className: "row" }, button, used), result));
}

/* ---- The frame ---- */

/* Name, title, function that draws the view, and whether the view is refreshed continuously. */
const SECTIONS = [
  ["overview", "Overview", overview, true], ["charts", "Charts", charts, true], ["tables", "Tables", tables, true],
  ["partitions", "Partitions", partitions, true], ["slow", "Slow statements", slowStatements, true],
  ["replication", "Replication", replication, true],
  ["clients", "Clients", view("clients", "Connected clients", "This node does not report its clients."), true],
  ["schema", "Schema", schema, false],
  ["settings", "Settings", view("settings", "Settings", "This node does not report its settings.", true), false],
  ["cql", "CQL", prompt, false],
];
let drawn = 0;
const current = () => SECTIONS.find(([name]) => `#${name}` === location.hash) || SECTIONS[0];
async function refresh() {
  const [name, , draw] = current();
  const turn = ++drawn;
  const show = (...parts) => {
    if (turn !== drawn) return;
    const at = window.scrollY;
    main.replaceChildren(...parts);
    main.dataset.section = name;
    window.scrollTo(0, at);
  };
  try {
    await draw(show);
    if (name !== "overview") await ask("cluster").then(header);
  } catch (failure) {
    if (failure.status !== 401) trouble(failure.message);
  }
}
function tabs() {
  byId("tabs").replaceChildren(...SECTIONS.map(([name, title]) => {
    const link = el("a", { href: `#${name}` }, title);
    if (current()[0] === name) link.setAttribute("aria-current", "page");
    return link;
  }));
}
async function begin() {
  session = await ask("session");
  byId("login").hidden = !session.login_needed;
  main.hidden = byId("tabs").hidden = session.login_needed;
  byId("logout").hidden = !session.user;
  byId("user").textContent = session.user || "";
  if (session.login_needed) { trouble(""); return; }
  tabs();
  await refresh();
}
byId("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  byId("login-error").textContent = "";
  try {
    await ask("login", { user: form.user.value, password: form.password.value });
    form.reset();
    await begin();
  } catch (failure) {
    byId("login-error").textContent = failure.message;
  }
});
byId("logout").addEventListener("click", async () => {
  await ask("logout", {});
  main.replaceChildren();
  await begin();
});

/* As the system has it, unless chosen. */
const dark = matchMedia("(prefers-color-scheme: dark)");
function theme() {
  document.documentElement.dataset.theme = localStorage.getItem("theme") || (dark.matches ? "dark" : "light");
}
byId("theme").addEventListener("click", () => {
  localStorage.setItem("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  theme();
  refresh();
});
dark.addEventListener("change", () => { theme(); refresh(); });
window.addEventListener("hashchange", () => { window.scrollTo(0, 0); tabs(); refresh(); });
window.addEventListener("resize", () => { if (current()[0] === "charts") refresh(); });
setInterval(() => { if (!session.login_needed && session.token && !document.hidden && current()[3]) refresh(); }, REFRESH_MS);
theme();
begin().catch((failure) => trouble(failure.message));
})();
