// Everybody can use it: by keyboard, on a narrow screen, in light and in dark, and with what reads pages out.
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import axe from "axe-core";
import { startBrowser } from "../../../tests/support/browser.mjs";
import { frameOf } from "../../frame.mjs";
import { open, openVectors, startPlayground } from "./support.mjs";

const SCHEMES = ["light", "dark"];
const WIDTHS = [360, 1280];
/** What text and its ground must be apart at least. */
const CONTRAST = 4.5;

let browser;
let site;
let context;
before(async () => {
  [browser, site] = await Promise.all([startBrowser(), startPlayground()]);
});
after(async () => {
  await browser?.close();
  await site?.close();
});
beforeEach(() => {
  context = undefined;
});
afterEach(() => context?.close());

async function openAs(colorScheme, width, hash) {
  context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
  return open(context, site, hash);
}

/** What there is to look at, and how one gets there. */
const SCENES = {
  "the simulation": async () => {},
  "the simulation, with everything open, wrong and done by hand": async (page) => {
    await page.$$eval("details", (all) => {
      for (const details of all) details.open = true;
    });
    await page.click("#hand-hang");
    await page.click("#hand-forceOpen");
    await page.click("#copy");
    await page.fill("#policy-failureThreshold", "0");
    await page.fill("#load-latencyMs", "-1");
    await page.fill("#outages input", "x".repeat(80));
    await page.evaluate((long) => (location.hash = `v=1&${long}=1`), "x".repeat(300));
    await page.waitForSelector("#problem:not([hidden])");
    await page.focus("#policy-windowMs");
  },
  "a closed window with failures in it": async (page) => {
    await page.evaluate(() => (location.hash = "v=1&load.failureShare=0.3&policy.failureThreshold=300&at=9000"));
    await page.waitForFunction(() => document.querySelector("#card-window circle") !== null);
  },
  "a rate, half-open": async (page) => {
    await page.selectOption("#preset", "rate");
    await page.click("#next-change");
  },
  "the vectors": openVectors,
  "a vector file with what differs, and one that is none": async (page) => {
    await openVectors(page);
    const steps = [{ at: 0, do: "canRequest", expect: { allowed: false, state: "open" } }];
    const file = (name, text) => ({ name, mimeType: "application/json", buffer: Buffer.from(text) });
    await page.setInputFiles("#vector-file", file("wrong.json", JSON.stringify({ name: "x".repeat(200), steps })));
    await page.waitForSelector(".verdict.bad");
  },
  "a file that is no vector file": async (page) => {
    await openVectors(page);
    const file = { name: "none.json", mimeType: "application/json", buffer: Buffer.from("x".repeat(500)) };
    await page.setInputFiles("#vector-file", file);
    await page.waitForSelector("#vector-problem:not([hidden])");
  },
};

for (const [scene, arrange] of Object.entries(SCENES)) {
  test(`${scene}: legible, without scrolling sideways, and nothing that axe finds`, async () => {
    const page = await openAs("light", 1280);
    await arrange(page);
    await page.evaluate(axe.source);
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      // The page hears of its new width with its next frame, and draws the timeline anew to it.
      await page.waitForFunction((width) => {
        const graph = document.querySelector(".graph");
        const isDrawn = graph.clientWidth === 0 || graph.viewBox.baseVal.width === graph.parentElement.clientWidth;
        return innerWidth === width && isDrawn;
      }, width);
      for (const colorScheme of SCHEMES) {
        await page.emulateMedia({ colorScheme });
        await page.waitForFunction((scheme) => matchMedia(`(prefers-color-scheme: ${scheme})`).matches, colorScheme);
        const here = `${colorScheme}, ${width} px wide`;
        const { scrolls, sticking } = await page.evaluate(sideways);
        assert.ok(!scrolls, `${here}: scrolls sideways, for ${sticking}`);
        const pale = (await page.evaluate(contrasts)).filter(({ ratio }) => ratio < CONTRAST);
        assert.deepEqual(pale, [], here);
        const { violations, passes } = await page.evaluate(() =>
          window.axe.run(document, { resultTypes: ["violations"] }),
        );
        assert.deepEqual(
          violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(" ")).join(", ")}`),
          [],
          here,
        );
        assert.ok(passes.length > 20, "axe has looked at hardly anything");
      }
    }
    assert.deepEqual(page.faults, []);
  });
}

test("on a narrow screen what is set steps back behind what is shown", async () => {
  const page = await openAs("light", 360);
  assert.equal(await page.isVisible("#policy-tripOn"), false);
  assert.deepEqual(await page.evaluate(sideways), { scrolls: false, sticking: "" });
  await page.click("summary");
  assert.equal(await page.isVisible("#policy-tripOn"), true);
  assert.deepEqual(await page.evaluate(sideways), { scrolls: false, sticking: "" });
});

/** In the page: whether it scrolls sideways, and what sticks out. */
function sideways() {
  const { scrollWidth, clientWidth } = document.documentElement;
  const sticking = [...document.querySelectorAll("body *")].filter(
    (each) => each.getBoundingClientRect().right > clientWidth + 1,
  );
  const name = ({ tagName, id, className }) => `${tagName}#${id}.${className?.baseVal ?? className}`;
  return { scrolls: scrollWidth > clientWidth, sticking: sticking.slice(0, 5).map(name).join(", ") };
}

/**
 * In the page: of each text that is seen, how far it is from its ground, by WCAG's formula. In the timeline the ground is the shape
 * below, veiled where it is yet to come.
 */
function contrasts() {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return { r, g, b, a: a / 255 };
  };
  const over = (top, below) => {
    const mixed = (one, other) => one * top.a + other * (1 - top.a);
    return { r: mixed(top.r, below.r), g: mixed(top.g, below.g), b: mixed(top.b, below.b), a: 1 };
  };
  const luminance = ({ r, g, b }) => {
    const [x, y, z] = [r, g, b].map((n) => (n / 255 <= 0.03928 ? n / 255 / 12.92 : ((n / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ratio = (one, other) => {
    const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  };
  const groundOf = (element) => {
    const layers = [];
    for (let each = element; each !== null; each = each.parentElement) {
      const color = rgb(getComputedStyle(each).backgroundColor);
      layers.push(color);
      if (color.a === 1) break;
    }
    return layers.reduceRight((below, color) => over(color, below), rgb("white"));
  };
  const shapesAt = (text) => {
    const { left, right, top, bottom } = text.getBoundingClientRect();
    const [x, y] = [(left + right) / 2, (top + bottom) / 2];
    const within = (shape) => {
      const box = shape.getBoundingClientRect();
      return box.left <= x && x <= box.right && box.top <= y && y <= box.bottom;
    };
    return [...text.ownerSVGElement.querySelectorAll("rect.state, rect.veil, rect.outage")].filter(within);
  };
  const drawnOn = (text) =>
    shapesAt(text).reduce(
      (below, shape) => {
        const { fill, fillOpacity } = getComputedStyle(shape);
        // A hatched state's own label has a halo in the colour of the hatching's ground.
        const color = fill.startsWith("url") ? rgb(getComputedStyle(text).stroke) : rgb(fill);
        return over({ ...color, a: color.a * Number(fillOpacity) }, below);
      },
      groundOf(text.closest("div")),
    );
  const found = [];
  const add = (element, color, ground, text) =>
    found.push({
      text: text.trim().slice(0, 40),
      of: element.className?.baseVal ?? element.className,
      ratio: ratio(over(rgb(color), ground), ground),
    });
  const seen = (element) =>
    element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { parentElement: parent, textContent } = walker.currentNode;
    if (textContent.trim() === "" || ["SCRIPT", "NOSCRIPT", "OPTION"].includes(parent.tagName) || !seen(parent))
      continue;
    const style = getComputedStyle(parent);
    if (parent instanceof SVGElement) add(parent, style.fill, drawnOn(parent), textContent);
    else add(parent, style.color, groundOf(parent), textContent);
  }
  for (const input of document.querySelectorAll("input:not([type=range]), select")) {
    if (!seen(input)) continue;
    add(input, getComputedStyle(input).color, groundOf(input), input.value || "empty");
    if (input.placeholder)
      add(input, getComputedStyle(input, "::placeholder").color, groundOf(input), input.placeholder);
  }
  return found;
}

test("the picture in the README ends between cards, and a picture that would not is none", async () => {
  const page = await openAs("light", 1280);
  assert.ok((await frameOf(page)) > 900);
  for (let i = 0; i < 4; i++) await page.click("#add-outage");
  await assert.rejects(frameOf(page), /^Error: the picture would cut through: Outages$/);
});

test("the first link of the page skips to what is shown, and is no set-up", async () => {
  const page = await openAs("light", 1280);
  const skipsTo = async (id) => {
    await page.evaluate(() => document.activeElement.blur());
    await page.focus(".skip");
    await page.keyboard.press("Enter");
    // A browser that follows a link to a place moves the focus there with its next frame.
    await page.waitForFunction((id) => document.activeElement.id === id, id);
  };
  await skipsTo("timeline");
  await page.waitForFunction(() => location.hash.startsWith("#v=1&"));
  assert.equal(await page.isVisible("#problem"), false);
  await openVectors(page);
  await skipsTo("vector-body");
  await page.waitForFunction(() => location.hash.startsWith("#v=1&"));
  assert.equal(await page.isVisible("#problem"), false);
  assert.deepEqual(page.faults, []);
});

test("what is measured is what is seen: a pale text is found, in a page and in the timeline", async () => {
  const page = await openAs("light", 1280);
  const all = await page.evaluate(contrasts);
  assert.ok(all.length > 120, `${all.length}`);
  for (const text of ["closed", "open", "hangs", "Circuit", "succeeded"])
    assert.ok(
      all.some((each) => each.text === text),
      text,
    );
  await page.evaluate(() => {
    const set = (selector, property) => document.querySelector(selector).style.setProperty(property, "#b0b0b0");
    set(".brand strong", "color");
    set(".graph .title", "fill");
    set(".graph .on.outage", "fill");
  });
  const pale = (await page.evaluate(contrasts)).filter(({ ratio }) => ratio < CONTRAST).map(({ text }) => text);
  assert.deepEqual(pale.sort(), ["Circuit", "Switchgear", "hangs"].sort());
});

test("light or dark: the system's, until one is chosen, which lasts", async () => {
  const page = await openAs("dark", 1280);
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  // The page hears of the system's new taste with its next frame.
  const offers = (theme) =>
    page.waitForFunction((theme) => document.getElementById("theme").textContent === theme, theme);
  await offers("Light");
  const dark = await ground();
  await page.emulateMedia({ colorScheme: "light" });
  await offers("Dark");
  const light = await ground();
  assert.notEqual(light, dark);
  await page.click("#theme");
  await offers("Light");
  assert.equal(await ground(), dark);
  await page.reload();
  await offers("Light");
  assert.equal(await ground(), dark);
  await page.click("#theme");
  await offers("Dark");
  assert.equal(await ground(), light);
  assert.deepEqual(page.faults, []);
});

/** Goes through the page with the Tab key until it comes to an end; what had the focus, and whether one could see that. */
async function walk(page) {
  const stops = [];
  for (let i = 0; i < 400; i++) {
    await page.keyboard.press("Tab");
    const stop = await page.evaluate(() => {
      const focused = document.activeElement;
      if (focused === null || focused === document.body || focused.dataset.walked === "yes") return null;
      focused.dataset.walked = "yes";
      const { outlineStyle, outlineWidth } = getComputedStyle(focused);
      const { width, height, top, bottom } = focused.getBoundingClientRect();
      return {
        name: focused.id || focused.textContent.trim().slice(0, 30),
        ring: outlineStyle !== "none" && Number.parseFloat(outlineWidth) >= 2,
        there: width > 0 && height > 0 && bottom > 0 && top < innerHeight,
      };
    });
    if (stop === null) return stops;
    stops.push(stop);
  }
  throw new Error("there is no end to it");
}

/** All that can be used, but for tabs that are reached by the arrow keys. */
const usable = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll("a, button, input, select, summary, [tabindex='0']")]
      .filter(
        (each) => each.checkVisibility() && each.getClientRects().length > 0 && !each.disabled && each.tabIndex >= 0,
      )
      .map((each) => ({
        name: each.id || each.textContent.trim().slice(0, 30),
        walked: each.dataset.walked === "yes",
      })),
  );

const WALKED = ["the simulation, with everything open, wrong and done by hand", "the vectors"];

for (const width of WIDTHS) {
  for (const [scene, arrange] of Object.entries(SCENES).filter(([name]) => WALKED.includes(name))) {
    test(`by keyboard, ${width} px wide: every control is reached, and is seen to be; ${scene}`, async () => {
      const page = await openAs("light", width);
      await arrange(page);
      await page.evaluate(() => {
        // From the beginning of the page, wherever the focus was.
        document.body.tabIndex = -1;
        document.body.focus();
        document.body.removeAttribute("tabindex");
      });
      const stops = await walk(page);
      assert.deepEqual(
        stops.filter(({ ring, there }) => !ring || !there),
        [],
      );
      const controls = await usable(page);
      assert.deepEqual(
        controls.filter(({ walked }) => !walked),
        [],
      );
      assert.ok(stops.length >= 15, `${stops.length}`);
    });
  }
}

test("by keyboard alone: a set-up is made, played through, shared, and a vector watched", async () => {
  const page = await openAs("light", 1280);
  const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  const focused = () => page.evaluate(() => document.activeElement.id);
  /** Tab by Tab to the control with this id, as one who sees the page would. */
  const to = async (id) => {
    for (let i = 0; i < 200; i++) {
      if ((await focused()) === id) return;
      await press("Tab");
    }
    throw new Error(`${id} is not reached`);
  };
  await to("tab-simulation");
  await to("preset");
  await press("ArrowDown");
  assert.equal(await page.inputValue("#preset"), "backoff");
  await to("policy-failureThreshold");
  await page.keyboard.type("2");
  assert.equal(await page.inputValue("#preset"), "");
  await to("add-outage");
  await press("Enter");
  assert.equal(await page.locator("#outages .outage").count(), 2);
  assert.match(await focused(), /^outage-\d+-at$/);
  await page.keyboard.type("0");
  await to("slider");
  await press("Home");
  assert.equal(await page.textContent("#where"), "0.000 s");
  await press("ArrowRight");
  assert.notEqual(await page.textContent("#where"), "0.000 s");
  assert.match(await page.getAttribute("#slider", "aria-valuetext"), /^[\d.]+ s, closed$/);
  await press("PageUp", "PageUp");
  assert.notEqual(await page.textContent(".lamp"), "");
  await press("End");
  assert.equal(await page.textContent("#where"), "120.000 s");
  await to("last-change");
  await press("Enter", " ");
  await to("on");
  await press("Enter");
  await to("hand-trip");
  await press("Enter");
  assert.equal(await page.textContent(".lamp"), "open");
  await press("Tab", "Tab", "Tab", "Tab");
  assert.match(await page.evaluate(() => document.activeElement.textContent), / trip$/);
  await press("Enter");
  assert.equal(await page.locator(".chip").count(), 0);
  assert.equal(await focused(), "hand-succeed");
  await page.evaluate(() => document.activeElement.blur());
  await to("copy");
  await press("Enter");
  await page.waitForFunction(() => document.getElementById("said").textContent !== "");
  await page.evaluate(() => {
    document.activeElement.blur();
    document.querySelector(".skip").focus();
  });
  await to("tab-simulation");
  await press("ArrowRight");
  assert.equal(await focused(), "tab-vectors");
  await page.waitForSelector("#vector-body:not([hidden])");
  await to("vector-own");
  await press("Home");
  await page.waitForFunction(() => document.getElementById("vector-sum").textContent.startsWith("backoff.json"));
  await to("vector-on");
  await press("Enter", "Enter");
  assert.match(await page.textContent("#vector-where"), /^step 3 of /);
  assert.deepEqual(page.faults, []);
});
