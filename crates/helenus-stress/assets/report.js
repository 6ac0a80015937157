// Draws the charts. What is drawn, and every word around it, was decided when the page was written.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const plots = [];

  // ---- figures with their units

  const digits = (value) => {
    const size = Math.abs(value);
    if (size >= 100) return Math.round(value).toLocaleString("en-US");
    return String(Number(value.toPrecision(3)));
  };
  const scaled = (steps) => (value) => {
    let [size, unit] = steps[0];
    for (const step of steps) if (Math.abs(value) >= step[0] * 0.9995) [size, unit] = step;
    return digits(value / size) + unit;
  };
  const short = scaled([[1, ""], [1e3, "k"], [1e6, "M"], [1e9, "G"]]);
  const micros = scaled([[1, " µs"], [1e3, " ms"], [1e6, " s"]]);
  const bytes = scaled([[1, " B"], [2 ** 10, " KiB"], [2 ** 20, " MiB"], [2 ** 30, " GiB"], [2 ** 40, " TiB"]]);
  // On an axis and in the tip.
  const UNITS = {
    micros: [micros, micros],
    rate: [short, (value) => digits(value) + "/s"],
    bytes: [bytes, bytes],
    cores: [digits, digits],
    plain: [short, digits],
  };
  // Where bytes are split, so that their labels are whole.
  const BYTE_STEPS = Array.from({ length: 50 }, (_, power) => 2 ** power);

  const two = (n) => String(n).padStart(2, "0");
  const clock = (seconds) => {
    const whole = Math.floor(seconds + 1e-9);
    const part = seconds - whole > 0.0005 ? (seconds - whole).toFixed(1).slice(1) : "";
    const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
    return (h ? h + ":" + two(m) : m) + ":" + two(s) + part;
  };
  const SECONDS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

  // Nines to percent: 1 is 90%, 2 is 99%.
  const percent = (nines) => {
    const decimals = Math.max(0, Math.ceil(nines - 2 + 1e-9) + (Number.isInteger(nines) ? 0 : 1));
    return Number((100 - 100 * 10 ** -nines).toFixed(decimals)) + "%";
  };
  const NINES = [0, Math.log10(2), 1, Math.log10(20), 2, 3, 4, 5, 6, 7, 8, 9, 10];

  // ---- axes

  const AXES = {
    time: {
      x: data.time,
      label: clock,
      axis: { incrs: SECONDS, space: 60, values: (_, splits) => splits.map(clock) },
    },
    percentile: {
      x: data.percentile,
      label: percent,
      axis: {
        splits: (u, _, min, max) => {
          const room = u.bbox.width / devicePixelRatio / (max - min);
          const fine = room > 260 ? NINES : NINES.filter((n) => Number.isInteger(n) || (n < 1 && room > 110));
          // A label of many nines is long.
          const step = Math.max(1, Math.ceil((7.5 * (Math.ceil(max) + 3)) / room));
          const coarse = step === 1 ? fine : fine.filter((n) => n % step === 0);
          return coarse.filter((n) => n >= min && n <= max);
        },
        values: (_, splits) => splits.map(percent),
      },
    },
  };

  // The first interval ends at its time but began at zero.
  const xRange = (u, min, max) => {
    const [first, last] = [u.data[0][0], u.data[0][u.data[0].length - 1]];
    return [min <= first ? 0 : min, max < last ? max : last || 1];
  };
  const linearRange = (_, min, max) => [Math.min(0, min ?? 0), max > 0 ? max * 1.08 : 1];
  const logRange = (_, min, max) => {
    if (min == null || max == null) return [1, 1000];
    const floor = (value) => {
      const decade = 10 ** Math.floor(Math.log10(value));
      return decade * [5, 2, 1].find((step) => step * decade <= value * 1.0001);
    };
    const ceil = (value) => {
      const decade = 10 ** Math.floor(Math.log10(value));
      return decade * [1, 2, 5, 10].find((step) => step * decade >= value * 0.9999);
    };
    const [low, high] = [floor(min), ceil(max)];
    return low < high ? [low, high] : [low / 2, high * 2];
  };

  // ---- one chart

  const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";

  // So many pixels a point are enough; what is denser is drawn as medians in a band from the least to the greatest.
  const PIXELS_PER_POINT = 2.5;

  const merged = (values, size, pick) => {
    const out = [];
    for (let i = 0; i < values.length; i += size) {
      const known = values.slice(i, i + size).filter((value) => value != null);
      out.push(known.length ? pick(known) : null);
    }
    return out;
  };
  const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
  const least = (values) => Math.min(...values);
  const greatest = (values) => Math.max(...values);

  // The lines, then the edges of their bands, with `size` places of the axis made one.
  const columns = (chart, variant, banded, size) => {
    const x = AXES[chart.axis].x;
    const lines = chart.series.map((series) => series.variants[Math.min(variant, series.variants.length - 1)]);
    if (size === 1) {
      const none = x.map(() => null);
      const edges = lines.flatMap((line) => line.band ?? [none, none]);
      return [x, ...lines.map((line) => line.middle), ...(banded ? edges : [])];
    }
    return [
      merged(x, size, (values) => values[values.length - 1]),
      ...lines.map((line) => merged(line.middle, size, median)),
      ...lines.flatMap(({ middle, band: [low, high] = [middle, middle] }) => [
        merged(low, size, least),
        merged(high, size, greatest),
      ]),
    ];
  };

  // A point is drawn where a line can't be: alone between two gaps.
  const alone = (u, index) => {
    const values = u.data[index];
    const found = [];
    for (let i = 0; i < values.length; i++) {
      if (values[i] != null && values[i - 1] == null && values[i + 1] == null) found.push(i);
    }
    return found.length ? found : null;
  };

  const drawMarks = (chart, style) => (u) => {
    const { ctx, bbox } = u;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.font = `${11 * ratio}px ${FONT.slice(5)}`;
    ctx.fillStyle = ctx.strokeStyle = style.color;
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    ctx.setLineDash([3 * ratio, 3 * ratio]);
    ctx.lineWidth = ratio;
    let free = -Infinity;
    for (const mark of chart.marks) {
      const x = Math.round(u.valToPos(mark.at, "x", true));
      if (x < bbox.left - 1 || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const width = ctx.measureText(mark.label).width;
      if (x < free || x + width > bbox.left + bbox.width) continue;
      ctx.fillText(mark.label, x + 5 * ratio, bbox.top + 11 * ratio);
      free = x + width + 12 * ratio;
    }
    ctx.restore();
  };

  const mount = (figure) => {
    const chart = data.charts[Number(figure.dataset.chart)];
    const holder = figure.querySelector(".plot");
    const keys = [...figure.querySelectorAll(".key")];
    const inks = keys.map((key) => getComputedStyle(key.querySelector(".ink")));
    const style = getComputedStyle(holder);
    const [onAxis, inTip] = UNITS[chart.unit];
    const axis = AXES[chart.axis];
    const banded = chart.axis === "time" && (axis.x.length > 100 || chart.series.some((line) => line.variants[0].band));
    const view = { variant: chosenVariant(figure), size: 1 };
    // How many places are one, for the part of the axis that is seen: a power of two.
    const sizeFor = (min, max) => {
      if (!banded) return 1;
      const seen = axis.x.filter((at) => at >= min && at <= max).length;
      const most = Math.max(50, holder.clientWidth / PIXELS_PER_POINT);
      return 2 ** Math.max(0, Math.ceil(Math.log2(seen / most)));
    };
    view.size = sizeFor(-Infinity, Infinity);
    const show = (u) => {
      const { min, max } = u.scales.x;
      u.batch(() => {
        u.setData(columns(chart, view.variant, banded, view.size), false);
        u.setScale("x", { min, max });
      });
    };
    const adapt = (u) => {
      const size = sizeFor(u.scales.x.min, u.scales.x.max);
      if (size === view.size) return;
      view.size = size;
      requestAnimationFrame(() => show(u));
    };
    const ruled = { stroke: () => style.borderTopColor, width: 1 };

    const series = chart.series.map((_, index) => ({
      stroke: () => inks[index].borderTopColor,
      fill: chart.fill && chart.series.length === 1 ? () => inks[index].backgroundColor : undefined,
      width: 1.75,
      dash: inks[index].borderTopStyle === "dashed" ? [6, 4] : undefined,
      spanGaps: chart.span,
      points: { show: false, filter: alone, size: 5, width: 0, fill: () => inks[index].borderTopColor },
    }));
    // The places of a line's lower and upper edge among the columns.
    const edgesOf = (index) => [0, 1].map((edge) => 1 + chart.series.length + 2 * index + edge);
    const edge = { stroke: "transparent", width: 0, spanGaps: chart.span, points: { show: false } };
    const edges = banded ? chart.series.flatMap(() => [{ ...edge }, { ...edge }]) : [];
    const bands = !banded ? [] : chart.series.map((_, index) => ({
      series: edgesOf(index).reverse(),
      fill: () => inks[index].outlineColor,
    }));

    const tip = document.createElement("div");
    tip.className = "tip";
    let hovered = false;
    const showTip = (u) => {
      const { idx, left, top } = u.cursor;
      if (!hovered || idx == null || left < 0) return tip.classList.remove("shown");
      const rows = chart.series.flatMap((line, index) => {
        if (!u.series[index + 1].show) return [];
        const value = u.data[index + 1][idx];
        const [low, high] = edgesOf(index).map((edge) => u.data[edge]?.[idx]);
        const range = low != null && low !== high ? ` (${inTip(low)} – ${inTip(high)})` : "";
        const text = value == null ? "–" : inTip(value) + range;
        const row = document.createElement("tr");
        const name = row.insertCell();
        name.append(keys[index].querySelector(".ink").cloneNode(), line.label);
        row.insertCell().textContent = text;
        return [row];
      });
      const head = document.createElement("b");
      const first = axis.label(axis.x[idx * view.size]);
      head.textContent = view.size === 1 ? first : first + " – " + axis.label(u.data[0][idx]);
      const table = document.createElement("table");
      table.append(...rows);
      tip.replaceChildren(head, table);
      tip.classList.add("shown");
      const { offsetLeft, offsetTop, clientWidth, clientHeight } = u.over;
      const right = left + 16 + tip.offsetWidth <= clientWidth;
      const x = right ? left + 16 : Math.max(-offsetLeft, left - 16 - tip.offsetWidth);
      const y = Math.max(0, Math.min(top - tip.offsetHeight / 2, clientHeight - tip.offsetHeight));
      tip.style.transform = `translate(${Math.round(offsetLeft + x)}px, ${Math.round(offsetTop + y)}px)`;
    };

    const u = new uPlot(
      {
        width: holder.clientWidth,
        height: holder.clientHeight,
        padding: [10, 26, 0, 0],
        legend: { show: false },
        scales: {
          x: { time: false, range: xRange },
          y: chart.log ? { distr: 3, range: logRange } : { range: linearRange },
        },
        axes: [
          { ...axis.axis, font: FONT, stroke: () => style.color, grid: ruled, ticks: { show: false }, size: 28, gap: 6 },
          {
            font: FONT,
            stroke: () => style.color,
            grid: ruled,
            ticks: { show: false },
            size: 66,
            gap: 6,
            space: chart.log ? 24 : 36,
            incrs: chart.unit === "bytes" ? BYTE_STEPS : undefined,
            values: (_, splits) => splits.map((value) => (value == null ? "" : onAxis(value))),
          },
        ],
        series: [{}, ...series, ...edges],
        bands,
        cursor: {
          points: { size: 7, width: 0, fill: (_, index) => inks[index - 1]?.borderTopColor ?? "transparent" },
          sync: { key: chart.axis, setSeries: false },
          drag: { x: true, y: false, dist: 5 },
          y: false,
        },
        hooks: {
          setCursor: [showTip],
          setScale: [(u, key) => key === "x" && adapt(u)],
          draw: chart.marks.length ? [drawMarks(chart, style)] : [],
        },
      },
      columns(chart, view.variant, banded, view.size),
      holder,
    );
    holder.append(tip);
    u.over.addEventListener("mouseenter", () => { hovered = true; });
    u.over.addEventListener("mouseleave", () => { hovered = false; tip.classList.remove("shown"); });
    keys.forEach((key, index) => key.addEventListener("click", () => {
      const shown = key.getAttribute("aria-pressed") !== "true";
      key.setAttribute("aria-pressed", shown);
      u.batch(() => {
        for (const each of [index + 1, ...(banded ? edgesOf(index) : [])]) u.setSeries(each, { show: shown });
      });
    }));
    new ResizeObserver(() => {
      const { clientWidth: width, clientHeight: height } = holder;
      if (!width || !height || (width === u.width && height === u.height)) return;
      u.setSize({ width, height });
      adapt(u);
    }).observe(holder);
    plots.push(u);
    return { figure, choose: (variant) => { view.variant = variant; show(u); } };
  };

  // ---- switches

  const choices = (section) => [...section.querySelectorAll(".switch button")];
  const chosenVariant = (figure) => {
    const pressed = choices(figure.closest("section")).findIndex((b) => b.getAttribute("aria-pressed") === "true");
    return Math.max(0, pressed);
  };
  const mounted = [...document.querySelectorAll("[data-chart]")].map(mount);
  for (const section of document.querySelectorAll("section")) {
    choices(section).forEach((button, variant, all) => button.addEventListener("click", () => {
      for (const other of all) other.setAttribute("aria-pressed", other === button);
      for (const { figure, choose } of mounted) {
        if (figure.closest("section") === section) choose(variant);
      }
    }));
  }

  // ---- light and dark

  const root = document.documentElement;
  const button = document.getElementById("theme");
  const THEMES = ["auto", "light", "dark"];
  const theme = () => root.dataset.theme ?? "auto";
  const repaint = () => {
    const name = theme();
    button.textContent = name[0].toUpperCase() + name.slice(1);
    for (const u of plots) u.redraw(false);
  };
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length];
    if (next === "auto") delete root.dataset.theme;
    else root.dataset.theme = next;
    try {
      if (next === "auto") localStorage.removeItem("helenus-stress-theme");
      else localStorage.setItem("helenus-stress-theme", next);
    } catch {
      // A page opened from a file may have no storage; the choice then lasts as long as the page.
    }
    repaint();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  repaint();
  root.dataset.drawn = plots.length;
})();
