// Draws the charts of a page with uPlot. The figures are in the attribute `data-chart` of each chart.
"use strict";
(() => {
  const drawn = new Map();
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const LINES = ["--c1", "--c2", "--c3"];

  function translucent(hex, alpha) {
    const part = (at) => parseInt(hex.slice(at, at + 2), 16);
    return `rgba(${part(1)}, ${part(3)}, ${part(5)}, ${alpha})`;
  }

  function marks(data) {
    return {
      hooks: {
        drawClear: [
          (plot) => {
            // Steps in which nothing at all was scored: an outage, or no traffic.
            const { ctx, bbox } = plot;
            ctx.save();
            ctx.fillStyle = translucent(color("--bad"), 0.07);
            const shade = (from, to) => {
              const left = Math.max(bbox.left, plot.valToPos(from, "x", true)), right = Math.min(bbox.left + bbox.width, plot.valToPos(to, "x", true));
              if (right > left) ctx.fillRect(left, bbox.top, right - left, bbox.height);
            };
            for (const at of data.empty) shade(at, at + data.step);
            // Times in which a metric had results and no value, such as an outage of its judge.
            ctx.fillStyle = translucent(color("--none"), 0.22);
            for (const each of data.without_values) shade(...each);
            // When the change of an alert was.
            ctx.fillStyle = translucent(color("--bad"), 0.16);
            for (const mark of data.marks) if (mark.interval) shade(...mark.interval);
            ctx.restore();
          },
        ],
        draw: [
          (plot) => {
            const { ctx, bbox } = plot;
            ctx.save();
            ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
            ctx.setLineDash([4, 4]);
            ctx.textAlign = "left";
            ctx.textBaseline = "alphabetic";
            let lastRow = [];
            for (const mark of data.marks) {
              const x = plot.valToPos(mark.x, "x", true);
              if (x < bbox.left || x > bbox.left + bbox.width) continue;
              ctx.strokeStyle = ctx.fillStyle = color(mark.interval ? "--bad" : "--dim");
              ctx.beginPath();
              ctx.moveTo(x, bbox.top);
              ctx.lineTo(x, bbox.top + bbox.height);
              ctx.stroke();
              const label = mark.label.length > 28 ? mark.label.slice(0, 27) + "…" : mark.label;
              const width = ctx.measureText(label).width;
              const left = Math.min(x + 4, bbox.left + bbox.width - width);
              const row = lastRow.findIndex((end) => end < left);
              const at = row < 0 ? lastRow.length : row;
              lastRow[at] = left + width + 8;
              if (at < 3) ctx.fillText(label, left, bbox.top + bbox.height - (6 + 14 * at) * devicePixelRatio);
            }
            ctx.restore();
          },
        ],
      },
    };
  }

  function axes(data) {
    const look = { stroke: color("--dim"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const day = 86400, names = [[365 * day, "{YYYY}"], [28 * day, "{YYYY}-{MM}"], [day, "{MM}-{DD}"], [60, "{HH}:{mm}"], [1, "{HH}:{mm}:{ss}"]];
    const times = data.lines ? { values: names.map(([step, text]) => [step, text, step < day ? "\n{YYYY}-{MM}-{DD}" : null, null, step < day ? "\n{YYYY}-{MM}-{DD}" : null, null, null, null, 1]) } : {};
    return [{ ...look, ...times }, { ...look, size: 56, values: (plot, ticks) => ticks.map((tick) => `${tick}${data.unit ?? ""}`) }];
  }

  // The legend has the figures under the pointer, and the last ones without it.
  const lastOf = (values) => values.findLastIndex((value) => value != null);
  const twoDigits = (number) => String(number).padStart(2, "0");

  function timeOf(seconds) {
    const time = new Date(seconds * 1000), local = `${time.getFullYear()}-${twoDigits(time.getMonth() + 1)}-${twoDigits(time.getDate())} ${twoDigits(time.getHours())}:${twoDigits(time.getMinutes())}`;
    const utc = time.toISOString().slice(0, 16).replace("T", " ");
    return utc === local ? `${utc} UTC` : `${utc} UTC (${local} local)`;
  }

  // A value without neighbours has no line: it is drawn as a point.
  function pointsToDraw(plot, row, show) {
    const values = plot.data[row];
    if (show) return null;
    const alone = [];
    for (let at = 0; at < values.length; at++) if (values[at] != null && values[at - 1] == null && values[at + 1] == null) alone.push(at);
    return alone.length ? alone : null;
  }

  function columnsOf(data) {
    return [data.x, ...data.lines.flatMap((line) => line.low ? [line.values, line.high, line.low] : [line.values])];
  }

  function lines(data, element, size) {
    const whole = (plot, seconds, row, index) => timeOf(index == null ? data.x[Math.max(0, ...data.lines.map((line) => lastOf(line.values)))] : seconds);
    const series = [{ label: "from", value: whole }], bands = [];
    data.lines.forEach((line, order) => {
      const stroke = color(LINES[order % LINES.length]);
      const shown = (plot, value, row, index) => {
        // The lines can have got new figures since.
        const now = data.lines[order], at = index ?? lastOf(now.values), found = now.values[at];
        return found == null ? "–" : `${Number(found.toPrecision(4))}${data.unit}${now.counts[at] != null ? ` of ${now.counts[at]}` : ""}`;
      };
      series.push({ label: line.label, stroke, width: 1.75, spanGaps: false, points: { show: data.x.length < 40, size: 5, filter: pointsToDraw }, value: shown });
      if (line.low) {
        const hidden = { label: "bound", class: "bound", stroke: "transparent", width: 0, points: { show: false }, spanGaps: false };
        series.push({ ...hidden }, { ...hidden });
        bands.push({ series: [series.length - 2, series.length - 1], fill: translucent(stroke, 0.14) });
      }
    });
    const options = {
      ...size, series, bands, axes: axes(data), plugins: [marks(data)],
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      scales: { x: { time: true, range: () => data.span }, y: data.unit === " %" ? { range: (plot, low, high) => [Math.max(0, Math.floor((low ?? 0) / 10) * 10 - 5), 101] } : { range: (plot, low, high) => [Math.min(0, low ?? 0), high > (low ?? 0) || high > 0 ? high + Math.abs(high) * 0.05 : 1] } },
      cursor: { drag: { x: Boolean(element.dataset.brush), y: false, setScale: false } },
      legend: { live: true },
      hooks: {
        setSelect: [(plot) => {
          if (!element.dataset.brush || plot.select.width < 4) return;
          const at = (pixel) => new Date(Math.round(plot.posToVal(pixel, "x")) * 1000).toISOString().replace(".000", "");
          const since = at(plot.select.left), until = at(plot.select.left + plot.select.width);
          location.assign(element.dataset.brush.replace("SINCE", encodeURIComponent(since)).replace("UNTIL", encodeURIComponent(until)));
        }],
      },
    };
    return new uPlot(options, columnsOf(data), element);
  }

  function bars(data, element, size) {
    const stroke = color("--c1");
    const range = (plot, index) => index == null ? "–" : `${data.lows[index].toPrecision(3)} to ${data.highs[index].toPrecision(3)}`;
    return new uPlot({
      ...size,
      series: [
        { label: "value", value: (plot, value, row, index) => range(plot, index) },
        { label: "results", stroke, fill: translucent(stroke, 0.5), paths: uPlot.paths.bars({ size: [0.9, 100] }), points: { show: false } },
      ],
      axes: axes({ unit: "" }),
      scales: { x: { time: false, range: (plot, low, high) => { const half = data.x.length > 1 ? (data.x[1] - data.x[0]) / 2 : 0.5; return [low - half, high + half]; } }, y: { range: (plot, low, high) => [0, Math.max(1, high * 1.05)] } },
      cursor: { drag: { x: false, y: false } },
    }, [data.x, data.values], element);
  }

  function spark(data, element, size) {
    return new uPlot({
      ...size,
      series: [{}, { stroke: color("--c1"), width: 1.5, spanGaps: false, points: { show: false, size: 3, filter: pointsToDraw } }],
      axes: [{ show: false }, { show: false }], legend: { show: false }, cursor: { show: false },
      scales: { x: { time: true, range: () => data.span }, y: { range: (plot, low, high) => [low - data.margin, high + data.margin] } },
    }, [data.x, data.values], element);
  }

  const KINDS = { lines, bars, spark };

  // New figures of the same lines take the place of the old ones: the plot, its zoom and its legend stay.
  function refresh(element, data) {
    const plot = drawn.get(element);
    if (!plot || data.kind !== "lines" || plot.figures.lines.length !== data.lines.length) return false;
    if (plot.figures.lines.some((line, at) => line.label !== data.lines[at].label)) return false;
    Object.assign(plot.figures, data);
    plot.setData(columnsOf(data));
    return true;
  }

  function draw(element) {
    const data = JSON.parse(element.dataset.chart);
    if (element.dataset.drawn === element.dataset.chart) return;
    if (element.dataset.drawn && refresh(element, data)) { element.dataset.drawn = element.dataset.chart; return; }
    const size = { width: Math.max(element.clientWidth, 60), height: Number(element.dataset.height) };
    drawn.get(element)?.destroy();
    const plot = KINDS[data.kind](data, element, size);
    plot.figures = data;
    drawn.set(element, plot);
    element.dataset.drawn = element.dataset.chart;
  }

  function redraw() {
    document.querySelectorAll(".chart").forEach((element) => { delete element.dataset.drawn; });
    drawAll();
  }

  function drawAll() {
    for (const [element, plot] of drawn) if (!element.isConnected) { plot.destroy(); drawn.delete(element); }
    document.querySelectorAll(".chart").forEach(draw);
  }

  // Times are in UTC; a pointer on one shows it in the zone of the browser.
  document.addEventListener("mouseover", (event) => {
    const time = event.target.closest?.("time[datetime]");
    if (time && !time.title) time.title = `${new Date(time.dateTime).toLocaleString()} (${Intl.DateTimeFormat().resolvedOptions().timeZone})`;
  });

  let waiting;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(redraw, 150); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  document.addEventListener("traceweir:replaced", drawAll);
  drawAll();
})();
