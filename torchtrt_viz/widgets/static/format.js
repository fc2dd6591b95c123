// @ts-check
// Numbers as people read them. Times are nanoseconds everywhere.

/** @type {[number, string][]} */
const UNITS = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

const SHORT = [
  { from: 1e9, size: 1e9, unit: "G" },
  { from: 1e6, size: 1e6, unit: "M" },
  { from: 1e4, size: 1e3, unit: "k" },
];
const BINARY = [
  { size: 2 ** 30, unit: "GiB" },
  { size: 2 ** 20, unit: "MiB" },
  { size: 2 ** 10, unit: "KiB" },
];

/** A duration with four significant digits: 950 ns, 12.35 µs, 1.204 ms, 2 min 05 s. @param {number} ns @returns {string} */
export function duration(ns) {
  if (ns < 0) return "-" + duration(-ns);
  if (ns >= 60e9) {
    const minutes = Math.floor(ns / 60e9);
    const seconds = (ns - minutes * 60e9) / 1e9;
    return `${minutes} min ${seconds < 9.95 ? "0" : ""}${seconds.toFixed(1)} s`;
  }
  for (const [size, unit] of UNITS) {
    if (ns >= size || size === 1) {
      const value = ns / size;
      return `${size === 1 ? Math.round(value) : trim(value.toPrecision(4))} ${unit}`;
    }
  }
  return "";
}

/** @param {string} text */
function trim(text) {
  return text.includes(".") && !text.includes("e") ? text.replace(/\.?0+$/, "") : text;
}

/** The largest "round" step (1, 2 or 5 times a power of ten) that is at least `least`. @param {number} least */
export function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-9)));
  const step = [1, 2, 5].find((step) => step * power >= least * 0.999) ?? 10;
  return step * power;
}

/**
 * A point in time on a ruler whose ticks are `step` apart, in one unit for the whole ruler.
 * @param {number} ns
 * @param {number} step
 * @param {number} span
 */
export function tick(ns, step, span) {
  const [size, unit] = UNITS.find(([limit]) => span >= limit * 2) ?? UNITS[3];
  const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(size / step) - 1e-9)));
  return `${grouped((ns / size).toFixed(digits))} ${unit}`;
}

/** 1234567 -> 1,234,567 @param {number} n */
export function count(n) {
  return grouped(String(Math.round(n)));
}

/** @param {string} text */
function grouped(text) {
  const [whole, rest] = text.split(".");
  const spaced = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  return rest === undefined ? spaced : `${spaced}.${rest}`;
}

/** 1234567 -> 1.23 M @param {number} n */
export function short(n) {
  for (const { from, size, unit } of SHORT) {
    if (n >= from) return `${trim((n / size).toPrecision(3))} ${unit}`;
  }
  return count(n);
}

/**
 * A counter's value with its unit; bytes in binary steps.
 * @param {number} value
 * @param {string} unit
 */
export function quantity(value, unit) {
  if (!Number.isFinite(value)) return "–";
  if (unit === "bytes" || unit === "B") {
    for (const { size, unit } of BINARY) {
      if (Math.abs(value) >= size) return `${trim((value / size).toPrecision(4))} ${unit}`;
    }
    return `${Math.round(value)} B`;
  }
  if (unit === "ns") return duration(value);
  const text = Math.abs(value) >= 1e6 ? short(value) : trim(value.toPrecision(5));
  return unit ? `${text} ${unit}` : text;
}

/** @param {number} share */
export function percent(share) {
  const value = share * 100;
  return `${value >= 10 || value === 0 ? value.toFixed(0) : value.toPrecision(2)} %`;
}

/** Where a duration was spent is never left open. @param {string} domain */
export function spentOn(domain) {
  return domain === "gpu" ? "GPU time" : "host time";
}
