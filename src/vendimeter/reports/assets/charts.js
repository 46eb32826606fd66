// Charts: a Vega-Lite specification each, drawn when its place is first seen, and as wide as that.

// Colours are variables of the style sheet, so that charts follow the page into the dark and onto paper.
const ink = "var(--ink)";
const muted = "var(--muted)";
const series = Array.from({ length: 8 }, (_, i) => `var(--series-${i + 1})`);
const font = getComputedStyle(document.body).fontFamily;

// The encodings of one channel, such as "x", in all layers.
function channels(spec, name) {
  const own = spec.encoding?.[name];
  return [...(own ? [own] : []), ...(spec.layer ?? []).flatMap((layer) => channels(layer, name))];
}

// The names that a channel has; none where it has numbers.
function namesOf(spec, name, values) {
  const named = channels(spec, name).find((channel) => channel.type === "nominal" || channel.type === "ordinal");
  return named ? [...new Set(values.map((row) => String(row[named.field] ?? "")))] : [];
}

function chartConfig(width, spec, values) {
  const across = namesOf(spec, "x", values);
  const down = namesOf(spec, "y", values);
  const longest = Math.max(0, ...across.map((name) => name.length));
  const longestSeries = Math.max(4, ...namesOf(spec, "color", values).map((name) => name.length));
  const slanted = across.length && longest * 7 + 6 > (width - 60) / across.length;
  return {
    background: null,
    font,
    padding: { left: 2, right: 6, top: 4, bottom: 2 },
    tooltipFormat: { numberFormat: ".6~g" },
    view: { stroke: null },
    mark: { color: series[0], tooltip: { content: "encoding" } },
    line: { strokeWidth: 2 },
    point: { filled: true, size: 48 },
    area: { opacity: 0.2, line: false },
    bar: { cornerRadiusEnd: 1.5 },
    rule: { color: muted },
    text: { color: ink, fontSize: 12 },
    errorband: { band: { opacity: 0.18 } },
    axis: {
      labelColor: muted,
      titleColor: muted,
      gridColor: "var(--rule)",
      domainColor: "var(--edge)",
      tickColor: "var(--edge)",
      labelFontSize: 12,
      titleFontSize: 12.5,
      titleFontWeight: "normal",
      titlePadding: 10,
      labelPadding: 5,
      tickSize: 4,
      labelLimit: Math.min(200, width / 3),
      labelOverlap: "parity",
    },
    // Lines lead from marks to the axis of numbers.
    axisX: { grid: down.length > 0 && across.length === 0, titleAnchor: "end", tickCount: Math.max(3, Math.round(width / 110)) },
    axisY: { domain: false, ticks: false, titleAngle: 0, titleAnchor: "start", titleAlign: "left", titleY: -14, titleX: 0 },
    // Slanted names need no more room than their height: all of them are there, as long as that is.
    axisXDiscrete: { labelAngle: slanted && longest > 3 ? -40 : 0, labelOverlap: across.length * 15 > width - 60 ? "parity" : false },
    axisBand: { grid: false },
    legend: {
      orient: "top",
      title: null,
      labelColor: ink,
      titleColor: muted,
      labelFontSize: 12.5,
      titleFontSize: 12.5,
      titleFontWeight: "normal",
      symbolSize: 90,
      symbolOpacity: 1,
      columns: Math.max(1, Math.floor(width / Math.min(longestSeries * 7.5 + 40, 280))),
      labelLimit: Math.min(240, width - 40),
      columnPadding: 18,
      offset: 34, // room for the title of the axis
    },
    header: { labelColor: ink, titleColor: muted, labelFontSize: 12.5, titleFontWeight: "normal" },
    title: { color: ink, anchor: "start", fontSize: 14 },
    range: {
      category: series,
      ramp: { scheme: "cividis" },
      heatmap: { scheme: "cividis" },
      ordinal: { scheme: "cividis" },
    },
  };
}

// On a log scale a line for every tick would be a wall: those at powers of ten are enough, the rest faint or not at all.
function thinGrid(compiled) {
  const logs = new Set((compiled.scales ?? []).filter((scale) => scale.type === "log").map((scale) => scale.name));
  for (const axis of compiled.axes ?? []) {
    if (!axis.grid || !logs.has(axis.scale)) continue;
    const decades = "log(datum.value) / LN10";
    const ends = `domain("${axis.scale}")`;
    const rest = `log(${ends}[1] / ${ends}[0]) / LN10 > 2 ? 0 : 0.5`;
    const opacity = { signal: `abs(${decades} - round(${decades})) < 1e-6 ? 1 : ${rest}` };
    axis.encode = { ...axis.encode, grid: { update: { strokeOpacity: opacity } } };
  }
  return compiled;
}

// Vega groups rows by their names in plain objects, where "__proto__" is no name: a mark without width makes it one.
function harmless(_, value) {
  return typeof value === "string" && value in Object.prototype ? `${value}\u200b` : value;
}

class ChartPlace {
  constructor(figure) {
    this.figure = figure;
    this.plot = figure.querySelector(".plot");
    const given = JSON.parse(figure.querySelector("script").textContent, harmless);
    this.height = given.height;
    this.spec = given.spec;
    this.values = given.rows.map((row) => Object.fromEntries(given.names.map((name, i) => [name, row[i]])));
    // Several charts in one keep the sizes they have; one takes the width of its place.
    this.single = ["facet", "concat", "hconcat", "vconcat", "repeat", "columns"].every((key) => !(key in given.spec));
  }

  async draw(width) {
    if (this.view) {
      if (this.single && Math.abs(width - this.width) > 1) {
        this.width = width;
        await this.view.width(width).runAsync();
      }
      return;
    }
    this.width = width;
    const spec = { ...this.spec, data: { values: this.values } };
    if (this.single) {
      Object.assign(spec, { width, height: spec.height ?? this.height, autosize: { type: "fit-x", contains: "padding" } });
    }
    const config = chartConfig(width, this.spec, this.values);
    const compiled = thinGrid(vegaLite.compile(spec, { config }).spec);
    const canvas = element("div", "drawn-live");
    canvas.hidden = true;
    canvas.setAttribute("aria-hidden", "true"); // the place of the chart has the description
    this.plot.append(canvas);
    this.view = new vega.View(vega.parse(compiled, null, { ast: true }), {
      expr: vega.expressionInterpreter,
      renderer: "svg",
      container: canvas,
      hover: true,
      tooltip: (handler, event, item, value) => showChartTip(event, value),
    });
    await this.view.runAsync();
    canvas.hidden = false;
    this.figure.classList.add("live");
    const numbers = this.figure.querySelector("details.numbers");
    if (numbers && !this.figure.querySelector(".drawn")) numbers.open = false; // it was open in place of a drawing
  }
}

function showChartTip(event, value) {
  if (value === null || value === undefined || value === "") return hideTip();
  const rows = typeof value === "object" ? Object.entries(value) : [["", value]];
  showTip(rows.map(([name, text]) => [name, String(text)]), event.clientX, event.clientY);
}

const places = new Map();
if (globalThis.vega) {
  for (const figure of document.querySelectorAll("figure.chart")) {
    const place = new ChartPlace(figure);
    place.plot.classList.add("expects");
    places.set(place.plot, place);
  }
}

// One after the other, so that the page can be used while charts are drawn.
let drawing = Promise.resolve();
const seen = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const width = Math.floor(contentRect.width);
    if (width < 40) continue;
    drawing = drawing.then(() => places.get(target).draw(width)).catch((error) => {
      // The drawing without script stays, or the numbers do.
      console.error(error);
      target.closest("figure").classList.remove("live");
    });
  }
});
places.forEach((_, plot) => seen.observe(plot));
