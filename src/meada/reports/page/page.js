"use strict";
// Draws the charts from the JSON in the page, sorts tables, writes CSV files, shows values.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const tip = document.getElementById("tip");

  const add = (parent, name, attributes = {}, text = null) => {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== null) node.textContent = text;
    parent.append(node);
    return node;
  };
  const known = (value) => value !== null && value !== undefined;
  const colour = (series) => `var(--c${series.colour % 8})`;
  const short = (value) => {
    const size = Math.abs(value);
    if (Number.isInteger(value)) return value.toLocaleString("en-GB");
    return size >= 10 ? value.toFixed(1) : size >= 1 ? value.toFixed(2) : value.toPrecision(3);
  };
  const span = (series, i) =>
    known(series.low[i]) && known(series.high[i])
      ? ` (${short(series.low[i])} to ${short(series.high[i])})` : "";
  const cut = (text, room) => {
    const most = Math.max(4, Math.floor(room / 7.2));
    return text.length > most ? text.slice(0, most - 1) + "\u2026" : text;
  };

  // Round numbers, about `count` of them, from below `low` to above `high`.
  const ticks = (low, high, count) => {
    const rough = (high - low) / count || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough);
    const found = [];
    for (let k = Math.floor(low / step); k <= Math.ceil(high / step); k++) {
      found.push(Number((k * step).toPrecision(10)));
    }
    return found;
  };

  // With as many places as tell one tick from the next.
  const written = (all) => {
    const step = all.length > 1 ? Math.abs(all[1] - all[0]) : 1;
    const places = Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9)));
    return (v) => v.toLocaleString("en-GB", { minimumFractionDigits: places, maximumFractionDigits: places });
  };

  const SHAPES = [
    (x, y, r) => `M${x - r},${y}a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0`,
    (x, y, r) => `M${x - r},${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
    (x, y, r) => `M${x},${y - 1.2 * r}L${x + 1.2 * r},${y + r}H${x - 1.2 * r}z`,
    (x, y, r) => `M${x},${y - 1.4 * r}L${x + 1.4 * r},${y}L${x},${y + 1.4 * r}L${x - 1.4 * r},${y}z`,
  ];
  const shape = (series, x, y, r) => SHAPES[series.colour % SHAPES.length](x, y, r);

  const legend = (plot, chart) => {
    if (chart.kind === "heat") return;
    const box = document.createElement("div");
    box.className = "legend";
    box.setAttribute("aria-hidden", "true");
    for (const series of chart.series) {
      const entry = document.createElement("span");
      const key = add(entry, "svg", { viewBox: "0 0 18 12" });
      if (chart.kind === "bars") {
        bar(key, series, { x: 1, y: 1, width: 16, height: 10 });
      } else {
        add(key, "path", { d: "M0,6H18", style: stroke(series) });
        add(key, "path", { d: shape(series, 9, 6, 3.5), style: `fill:${colour(series)}` });
      }
      entry.append(series.name);
      box.append(entry);
    }
    plot.append(box);
  };
  const stroke = (series) =>
    `fill:none;stroke:${colour(series)};stroke-width:2;` + (series.dashed ? "stroke-dasharray:6 4" : "");
  const bar = (parent, series, place, text = "") => {
    const style = series.dashed
      ? `fill:${colour(series)};fill-opacity:.35;stroke:${colour(series)};stroke-dasharray:3 2`
      : `fill:${colour(series)}`;
    return add(parent, "rect", { ...place, style, ...(text ? { "data-tip": text } : {}) });
  };

  const canvas = (plot, width, height) => {
    const svg = add(plot, "svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    return svg;
  };

  // Lying bars: names of any length have room, also on a phone.
  const bars = (plot, chart, width) => {
    const longest = Math.max(...chart.categories.map((name) => name.length));
    const left = Math.min(7.4 * longest + 14, 0.36 * width), right = 44;
    const thick = 14, gap = 12, each = chart.series.length * (thick + 2) + gap;
    const height = chart.categories.length * each + 34;
    const values = chart.series.flatMap((s) => [...s.y, ...s.high]).filter(known);
    const most = chart.y_range ? chart.y_range[1] : Math.max(...values);
    const marks = ticks(0, most, width < 480 ? 4 : 8);
    const end = marks[marks.length - 1];
    const at = (value) => left + (value / end) * (width - left - right);
    const svg = canvas(plot, width, height);
    for (const value of marks) {
      add(svg, "path", { d: `M${at(value)},0V${height - 32}`, class: "axis" });
      add(svg, "text", { x: at(value), y: height - 18, "text-anchor": "middle", class: "soft" }, written(marks)(value));
    }
    add(svg, "text", { x: (left + width - right) / 2, y: height - 3, "text-anchor": "middle", class: "soft" }, chart.y_label);
    chart.categories.forEach((name, i) => {
      const top = i * each + gap / 2;
      const middle = top + (each - gap) / 2 + 4;
      const label = add(svg, "text", { x: left - 8, y: middle, "text-anchor": "end" }, cut(name, left - 8));
      label.setAttribute("data-tip", name);
      chart.series.forEach((series, k) => {
        const value = series.y[i];
        if (!known(value)) return;
        const y = top + k * (thick + 2);
        const text = `${series.name}, ${name}: ${short(value)}${span(series, i)}`;
        bar(svg, series, { x: left, y, width: Math.max(0, at(value) - left), height: thick, class: "drawn" }, text);
        let far = at(value);
        if (span(series, i)) {
          const [a, b] = [at(series.low[i]), at(series.high[i])];
          const m = y + thick / 2;
          add(svg, "path", { d: `M${a},${m - 4}v8M${a},${m}H${b}M${b},${m - 4}v8`, class: "whisker" });
          far = Math.max(far, b);
        }
        add(svg, "text", { x: far + 4, y: y + thick - 3, "font-size": 11 }, short(value));
      });
    });
  };

  const lines = (plot, chart, width) => {
    const height = Math.max(220, Math.min(340, 0.62 * width));
    const box = { left: 52, right: width - 14, top: 20, bottom: height - 42 };
    const all = (name) => chart.series.flatMap((s) => s[name]).filter(known);
    const xs = chart.diagonal ? [0, 100] : [...all("x"), ...chart.marks.map((m) => m[0])];
    const ys = chart.y_range || [...all("y"), ...all("low"), ...all("high")];
    if (!xs.length || !ys.length) return;
    const low = Math.min(...ys);
    const down = ticks(chart.y_range ? low : Math.min(low, low > 0 && low < 0.3 * Math.max(...ys) ? 0 : low), Math.max(...ys), 5);
    const whole = xs.every(Number.isInteger) && Math.max(...xs) - Math.min(...xs) < 8;
    const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
    const along = whole
      ? Array.from({ length: x1 - x0 + 1 }, (_, k) => x0 + k)
      : ticks(x0, x1, width < 480 ? 4 : 7).filter((v) => v >= x0 && v <= x1);
    const [y0, y1] = [down[0], down[down.length - 1]];
    const pad = x1 > x0 ? 0 : 0.5;
    const X = (v) => box.left + 8 + ((v - x0 + pad) / (x1 - x0 + 2 * pad || 1)) * (box.right - box.left - 16);
    const Y = (v) => box.bottom - ((v - y0) / (y1 - y0 || 1)) * (box.bottom - box.top);
    const svg = canvas(plot, width, height);
    for (const v of down) {
      add(svg, "path", { d: `M${box.left},${Y(v)}H${box.right}`, class: "axis" });
      add(svg, "text", { x: box.left - 6, y: Y(v) + 4, "text-anchor": "end", class: "soft" }, written(down)(v));
    }
    for (const v of along) {
      add(svg, "text", { x: X(v), y: box.bottom + 16, "text-anchor": "middle", class: "soft" }, written(along)(v));
    }
    add(svg, "text", { x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle", class: "soft" }, chart.x_label);
    add(svg, "text", { x: 2, y: 11, class: "soft" }, chart.y_label);
    if (chart.diagonal) {
      add(svg, "path", { d: `M${X(0)},${Y(0)}L${X(100)},${Y(100)}`, class: "mark", "data-tip": "as sure as it is right" });
    }
    for (const [v, name] of chart.marks) {
      add(svg, "path", { d: `M${X(v)},${box.top}V${box.bottom}`, class: "mark" });
      add(svg, "text", { x: X(v) + 2, y: box.top + 8, "font-size": 10, class: "soft" }, name.replace(/^\D+/, ""));
      const hit = { x: X(v) - 5, y: box.top, width: 10, height: box.bottom - box.top, class: "hit" };
      add(svg, "rect", { ...hit, "data-tip": `${name}, ${chart.x_label} ${short(v)}` });
    }
    for (const series of chart.series) one(svg, series, chart, X, Y);
  };

  const one = (svg, series, chart, X, Y) => {
    const points = series.x.map((x, i) => [x, series.y[i], i]).filter(([, y]) => known(y));
    if (!points.length) return;
    const many = points.length > 12;
    const ranged = points.filter(([, , i]) => span(series, i));
    if (many && ranged.length) {
      const up = ranged.map(([x, , i]) => `${X(x)},${Y(series.high[i])}`);
      const back = ranged.map(([x, , i]) => `${X(x)},${Y(series.low[i])}`).reverse();
      add(svg, "path", { d: `M${[...up, ...back].join("L")}z`, style: `fill:${colour(series)};opacity:.18` });
    } else {
      for (const [x, , i] of ranged) {
        const [a, b, m] = [Y(series.low[i]), Y(series.high[i]), X(x)];
        add(svg, "path", { d: `M${m - 4},${a}h8M${m},${a}V${b}M${m - 4},${b}h8`, style: stroke({ ...series, dashed: false }) + "stroke-width:1.3" });
      }
    }
    add(svg, "path", { d: "M" + points.map(([x, y]) => `${X(x)},${Y(y)}`).join("L"), style: stroke(series), class: "drawn" });
    for (const [x, y, i] of points) {
      add(svg, "path", { d: shape(series, X(x), Y(y), many ? 2 : 3.5), style: `fill:${colour(series)}` });
      const text = `${series.name}, ${chart.x_label} ${short(x)}: ${short(y)}${span(series, i)}`;
      add(svg, "circle", { cx: X(x), cy: Y(y), r: many ? 6 : 10, class: "hit", "data-tip": text });
    }
  };

  // One hue from pale to dark; the ink on each cell is chosen for contrast, in both themes.
  const heat = (plot, chart, width) => {
    const longest = Math.max(...chart.series.map((s) => s.name.length));
    const left = Math.min(7.4 * longest + 12, 0.42 * width), tall = 24;
    const wide = (width - left) / chart.categories.length;
    const height = chart.series.length * tall + 40;
    const values = chart.y_range || chart.series.flatMap((s) => s.y).filter(known);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const svg = canvas(plot, width, height);
    chart.series.forEach((series, row) => {
      const y = row * tall;
      add(svg, "text", { x: left - 6, y: y + 16, "text-anchor": "end", "data-tip": series.name }, cut(series.name, left - 6));
      series.y.forEach((value, i) => {
        if (!known(value)) return;
        const light = 94 - 66 * ((value - low) / (high - low || 1));
        const text = `${series.name}, ${chart.x_label} ${chart.categories[i]}: ${short(value)}`;
        add(svg, "rect", { x: left + i * wide, y, width: wide - 1, height: tall - 1, style: `fill:hsl(215 60% ${light}%)`, class: "drawn cell", "data-tip": text });
        const ink = { x: left + (i + 0.5) * wide, y: y + 16, "text-anchor": "middle", "pointer-events": "none" };
        add(svg, "text", { ...ink, style: `fill:${light > 52 ? "#000" : "#fff"}` }, value.toFixed(0));
      });
    });
    const foot = chart.series.length * tall;
    chart.categories.forEach((name, i) => {
      add(svg, "text", { x: left + (i + 0.5) * wide, y: foot + 15, "text-anchor": "middle", class: "soft" }, name);
    });
    add(svg, "text", { x: left + (width - left) / 2, y: foot + 32, "text-anchor": "middle", class: "soft" }, chart.x_label);
  };

  const KINDS = { bars, lines, heat };
  const draw = (plot) => {
    const chart = charts[Number(plot.dataset.chart)];
    const width = Math.max(200, Math.round(plot.clientWidth));
    if (plot.dataset.width === String(width)) return;
    plot.dataset.width = String(width);
    plot.replaceChildren();
    legend(plot, chart);
    KINDS[chart.kind](plot, chart, width);
  };
  const observer = new ResizeObserver((entries) => entries.forEach((entry) => draw(entry.target)));
  for (const plot of document.querySelectorAll(".plot")) {
    draw(plot);
    observer.observe(plot);
  }

  const show = (event) => {
    const target = event.target.closest ? event.target.closest("[data-tip]") : null;
    tip.hidden = !target;
    if (!target) return;
    tip.textContent = target.dataset.tip;
    const x = Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8);
    const y = event.clientY + 16 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 16;
    tip.style.left = `${Math.max(4, x)}px`;
    tip.style.top = `${y}px`;
  };
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);

  const worth = (cell) => {
    const value = cell.dataset.value ?? cell.textContent;
    const number = value === "" ? NaN : Number(value);
    return Number.isNaN(number) ? parseFloat(value) : number;
  };
  const order = (a, b) => {
    const [x, y] = [worth(a), worth(b)];
    if (!Number.isNaN(x) && !Number.isNaN(y)) return x - y;
    return a.textContent.localeCompare(b.textContent, "en", { numeric: true });
  };
  const sort = (button) => {
    const head = button.closest("th");
    const table = button.closest("table");
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const empty = (row) => row.cells[head.cellIndex].dataset.value === "";
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      if (empty(a) !== empty(b)) return empty(a) ? 1 : -1; // what is not known comes last
      const sign = order(a.cells[head.cellIndex], b.cells[head.cellIndex]);
      return up ? sign : -sign;
    });
    table.tBodies[0].append(...rows);
  };

  // A cell of text that begins like a formula would be run by a spreadsheet.
  const quoted = (text, number) => {
    const safe = !number && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const csv = (table) =>
    [...table.rows].map((row) => [...row.cells].map((cell) => {
      const value = cell.dataset.value;
      return value === undefined ? quoted(cell.textContent, false) : quoted(value, true);
    }).join(",")).join("\r\n") + "\r\n";
  const save = (button) => {
    const table = button.closest("figure").querySelector("table");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv(table)], { type: "text/csv" }));
    link.download = button.dataset.name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.classList.contains("csv")) save(button);
    else if (button.closest("th")) sort(button);
  });
})();
