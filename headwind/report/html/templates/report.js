// Everything on the page can be read without this script. It filters, opens what a link points to, shows the facts of
// the trial under the pointer, and hands out the data as files. It fetches nothing.
"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const form = document.getElementById("filter");
  const FILTERS = ["profile", "workload", "comparison"];

  // --- The filter lives in the address: #profile=loss&comparison=h3:h1 ---------------------------------------------
  // What the page does not have is no filter: an address with a stale name shows everything, and says so.
  function applyFilter() {
    if (!form) return;
    const asked = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
    const notes = [], filter = {};
    for (const name of FILTERS.filter((name) => form.elements[name])) {
      const value = asked.get(name) ?? "";
      form.elements[name].value = value;
      if (form.elements[name].value !== value) {
        form.elements[name].value = "";
        notes.push(`there is no ${name} ${value}`);
      } else if (value) {
        filter[name] = value;
      }
    }
    let shown = 0, total = 0;
    for (const item of all("[data-profile], [data-comparison]")) {
      item.hidden = FILTERS.some((name) => name in filter && name in item.dataset && item.dataset[name] !== filter[name]);
      if (item.matches("#comparisons h3 + .scroll tbody")) { total += 1; shown += item.hidden ? 0 : 1; }
    }
    if (shown < total) notes.push(`${shown} of ${total} conditions`);
    if (filter.comparison) notes.push(`only ${filter.comparison}`);
    document.getElementById("filtered").textContent = notes.join("; ");
  }

  if (form) {
    form.hidden = false;
    form.addEventListener("change", () => {
      const filter = new URLSearchParams();
      for (const name of FILTERS) if (form.elements[name]?.value) filter.set(name, form.elements[name].value);
      const text = filter.toString().replaceAll("%3A", ":");
      history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
      applyFilter();
    });
  }

  // --- A link opens what it points into ----------------------------------------------------------------------------
  function reveal() {
    if (location.hash.includes("=") || !location.hash) return applyFilter();
    const target = document.getElementById(location.hash.slice(1));
    if (!target) return;
    for (let item = target; item; item = item.parentElement) {
      if (item.tagName === "DETAILS") item.open = true;
      item.hidden = false;
    }
    target.closest("details")?.scrollIntoView();
    if (target.tagName === "TR") target.scrollIntoView({ block: "center" });
  }
  addEventListener("hashchange", reveal);

  const unfold = document.getElementById("unfold");
  if (unfold) {
    unfold.hidden = false;
    unfold.addEventListener("click", () => {
      const conditions = all("details.condition");
      const open = conditions.some((item) => !item.open);
      for (const item of conditions) item.open = open;
      unfold.textContent = open ? "Close all" : "Open all";
    });
  }
  addEventListener("beforeprint", () => { for (const item of all("details")) item.open = true; });

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
  const seconds = (value) => value === null ? "–" : value < 1 ? `${(value * 1000).toPrecision(3)} ms` : `${value.toPrecision(3)} s`;
  const UNITS = { per_s: "/s", bps: "bit/s" };
  const text = (metric, value) => metric.unit === "s" ? seconds(value) : value === null ? "–" : `${value.toPrecision(3)} ${UNITS[metric.unit] ?? metric.unit}`.trim();

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
    if (trial.outcome === "timeout") return [`stopped after ${seconds(trial.timeout_s)}`];
    if (trial.outcome !== "ok") return ["no completion time"];
    const [first, ...others] = metrics.map((metric) => `${metric.heading} ${text(metric, trial[metric.key])}`);
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
      if (trial && anchor) location.hash = `${anchor}b${trial.block}`;
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

  applyFilter();
  if (location.hash) reveal();
})();
