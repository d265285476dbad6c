// Everything on the page can be read without this script. It filters, opens what a link points to, shows the facts of
// the trial under the pointer, and hands out the data as files. It fetches nothing.
"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const form = document.getElementById("filter");
  const FILTERS = ["profile", "workload", "comparison"];

  // --- The filter and the place of a link live in the address: #profile=loss&comparison=h3:h1&at=c3 ----------------
  // What the page does not have is no filter: an address with a stale name shows everything, and says so.
  let filter = {}; // the current one
  const hides = (name, item) => name in filter && name in item.dataset && item.dataset[name] !== filter[name];

  function applyFilter(notes = []) {
    if (!form) return;
    for (const name of FILTERS) if (form.elements[name]) form.elements[name].value = filter[name] ?? "";
    for (const item of all("[data-profile], [data-comparison]")) {
      item.hidden = FILTERS.some((name) => hides(name, item));
    }
    for (const group of all(".forest tbody")) { // the name of its network stands in the first row that is shown
      const first = [...group.rows].find((row) => !row.hidden);
      if (first) first.prepend(group.querySelector("th.name"));
      group.hidden ||= !first;
    }
    const conditions = all("details.condition"), shown = conditions.filter((item) => !item.hidden);
    if (shown.length < conditions.length) notes.push(`${shown.length} of ${conditions.length} conditions`);
    if (filter.comparison) notes.push(`only ${filter.comparison}`);
    document.getElementById("filtered").textContent = notes.join("; ");
    labelUnfold();
  }

  function setAddress(at = "") {
    const parts = new URLSearchParams({ ...filter, ...(at && { at }) });
    const text = Object.keys(filter).length ? parts.toString().replaceAll("%3A", ":") : at;
    history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  }

  function readFilter(asked) { // Returns a note for each name that the page does not have.
    const notes = [];
    filter = {};
    for (const name of FILTERS.filter((name) => form?.elements[name] && asked.get(name))) {
      const value = asked.get(name);
      if ([...form.elements[name].options].some((option) => option.value === value)) filter[name] = value;
      else notes.push(`there is no ${name} ${value}`);
    }
    return notes;
  }

  if (form) {
    form.hidden = false;
    form.addEventListener("change", () => {
      filter = Object.fromEntries([...new FormData(form)].filter(([, value]) => value));
      setAddress();
      applyFilter();
    });
  }

  // --- A link opens what it points into, and keeps the filter except for the part that hides it --------------------
  function follow() {
    const text = location.hash.slice(1), isFilter = !text || text.includes("=");
    const asked = new URLSearchParams(isFilter ? text : { at: text });
    const notes = isFilter ? readFilter(asked) : [];
    const target = document.getElementById(asked.get("at") ?? "");
    for (let item = target; item; item = item.parentElement) {
      for (const name of FILTERS) if (hides(name, item)) delete filter[name];
      if (item.tagName === "DETAILS") item.open = true;
    }
    applyFilter(notes);
    if (asked.get("at")) setAddress(asked.get("at"));
    for (const item of all(".reached")) item.classList.remove("reached");
    if (!target) return;
    target.classList.add("reached");
    (target.closest("details") ?? target).scrollIntoView();
    if (target.tagName === "TR") target.scrollIntoView({ block: "center" });
  }
  addEventListener("hashchange", follow);

  function goTo(anchor) { // also to where the address points already, which changes nothing in it
    if (location.hash === `#${anchor}`) follow(); else location.hash = anchor;
  }
  addEventListener("click", (event) => {
    if (event.target.closest?.('a[href^="#"]')?.hash === location.hash) setTimeout(follow);
  });

  // --- All conditions open or closed at once, and everything open on paper -----------------------------------------
  const unfold = document.getElementById("unfold");
  const shownConditions = () => all("details.condition").filter((item) => !item.hidden);
  function labelUnfold() {
    if (unfold) unfold.textContent = shownConditions().some((item) => !item.open) ? "Open all" : "Close all";
  }
  if (unfold) {
    unfold.hidden = false;
    unfold.addEventListener("click", () => {
      const conditions = shownConditions(), open = conditions.some((item) => !item.open);
      for (const item of conditions) item.open = open;
      labelUnfold();
    });
    for (const item of all("details.condition")) item.addEventListener("toggle", labelUnfold);
    labelUnfold();
  }
  const opened = []; // for the paper
  addEventListener("beforeprint", () => {
    for (const item of all("details:not([open])")) { item.open = true; opened.push(item); }
  });
  addEventListener("afterprint", () => { for (const item of opened.splice(0)) item.open = false; });

  // --- The trials that travel in the page --------------------------------------------------------------------------
  let loading;
  function load() {
    loading ??= (async () => {
      const packed = atob(document.getElementById("trials-data").textContent.trim());
      const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      const data = await new Response(stream).json();
      const columns = Object.entries(data.trials);
      data.rows = data.trials.block.map((_, at) => Object.fromEntries(columns.map(([name, values]) => [name, values[at]])));
      return data;
    })();
    return loading;
  }

  // --- The facts of the trial under the pointer --------------------------------------------------------------------
  const facts = document.getElementById("facts");
  const UNITS = { // from the largest; as headwind/format.py has them
    s: [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]],
    ratio: [[1e-2, "%"]],
    bps: [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]],
    per_s: [[1, "/s"]],
    bytes: [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]],
  };
  const DIGITS = { minimumSignificantDigits: 3, maximumSignificantDigits: 3 };

  function measured(unit, value) { // three significant digits, in the largest unit of which there is at least one
    if (value === null) return "—";
    const rounded = Number(value.toPrecision(3)); // first: 0.9996 s is 1.00 s, not 1,000 ms
    const units = UNITS[unit] ?? [[1, ""]];
    const [size, name] = units.find(([size]) => (rounded || 1) >= size * (1 - 1e-12)) ?? units.at(-1);
    return `${rounded ? (rounded / size).toLocaleString("en-US", DIGITS) : "0"} ${name}`.trim();
  }

  function axis(text) { // "log LOW HIGH PIXEL_LOW PIXEL_HIGH"
    const [kind, ...numbers] = text.split(" ");
    const [low, high, start, end] = numbers.map(Number);
    const scale = kind === "log" ? Math.log : (value) => value;
    return (value) => start + (end - start) * (scale(value) - scale(low)) / (scale(high) - scale(low));
  }

  function height(svg, trial, primary) { // of its mark; undefined for a trial that is in no figure
    if (trial.outcome === "ok" && trial[primary] !== null) return svg.dataset.y && axis(svg.dataset.y)(trial[primary]);
    const kind = { timeout: "above", failed: "failed", "wrong-protocol": "failed", "wrong-content": "failed",
      "wrong-session": "failed" }[trial.outcome];
    const row = (svg.dataset.rows ?? "").split(" ").find((text) => text.startsWith(`${kind}:${trial.arm}:`));
    return row && Number(row.split(":")[2]);
  }

  function nearest(svg, data, condition, event) {
    const trials = data.rows.filter((row) => row.condition === condition && row.latest);
    const primary = data.metrics[condition][0].key;
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const x = axis(svg.dataset.x);
    let best = null, distance = 24 ** 2;
    for (const trial of trials) {
      const y = height(svg, trial, primary);
      if (y === undefined) continue;
      const away = (x(trial.block) - point.x) ** 2 + (y - point.y) ** 2;
      if (away < distance) { distance = away; best = trial; }
    }
    return best;
  }

  function took(trial, metrics) { // what a trial measured that did not finish is of the requests that succeeded: not its time
    if (trial.outcome === "timeout") return [`stopped after ${measured("s", trial.timeout_s)}`];
    if (trial.outcome !== "ok") return ["no completion time"];
    const [first, ...others] = metrics.map((metric) => `${metric.heading} ${measured(metric.unit, trial[metric.key])}`);
    return [first, others.join(", ")];
  }

  function tell(trial, data, event) {
    const lines = [
      `${trial.arm}, block ${trial.block}, place ${trial.position + 1}: ${trial.outcome}`,
      ...took(trial, data.metrics[trial.condition]),
      data.commands[trial.command],
    ];
    facts.replaceChildren(...lines.map((line) => Object.assign(document.createElement("div"), { textContent: line })));
    facts.hidden = false;
    const box = facts.getBoundingClientRect();
    facts.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
    facts.style.top = `${event.clientY + box.height + 24 > innerHeight ? event.clientY - box.height - 14 : event.clientY + 14}px`;
  }

  for (const figure of all("figure[data-condition]")) {
    const svg = figure.querySelector("svg[data-x]");
    if (!svg) continue;
    const condition = Number(figure.dataset.condition);
    let inside = false;
    svg.addEventListener("pointermove", async (event) => {
      inside = true;
      const data = await load();
      const trial = inside && nearest(svg, data, condition, event);
      if (trial) tell(trial, data, event); else facts.hidden = true;
    });
    svg.addEventListener("pointerleave", () => { inside = false; facts.hidden = true; });
    svg.addEventListener("click", async (event) => {
      const trial = nearest(svg, await load(), condition, event);
      const anchor = figure.closest("[id^=c]")?.id;
      if (trial && anchor) goTo(`${anchor}b${trial.block}`);
    });
  }

  // --- The data as files -------------------------------------------------------------------------------------------
  const quoted = (value) => /[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? "");
  function csv(data) {
    const texts = data.rows.map((row) => ({ ...row, condition: data.conditions[row.condition], command: data.commands[row.command] }));
    const columns = Object.keys(data.trials);
    return [columns, ...texts.map((row) => columns.map((name) => row[name]))]
      .map((row) => row.map(quoted).join(",")).join("\n") + "\n";
  }
  for (const button of typeof DecompressionStream === "undefined" ? [] : all("button.download")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const data = await load();
      const { rows, ...plain } = data;
      const text = button.dataset.format === "csv" ? csv(data) : JSON.stringify(plain);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "application/octet-stream" }));
      link.download = `${data.run}.${button.dataset.format}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  follow();
})();
