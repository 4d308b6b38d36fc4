// Finds the examples in a Markdown text.

/**
 * Each fenced block of `text` as `{ language, code, setup, line }`. `setup` is what an HTML comment right before the
 * block says the reader is assumed to have, as code that runs ahead of the example:
 *
 *     <!-- setup
 *     const fetchInvoice = async (id) => ({ id });
 *     -->
 */
export function examplesIn(text) {
  const fence =
    /(?:<!-- setup\n(?<setup>(?:(?!-->)[\s\S])*?)-->\n+)?^(?<indent> *)```(?<language>\S*)\n(?<code>[\s\S]*?)^ *```$/gm;
  return [...text.matchAll(fence)].map(({ index, 0: whole, groups: { setup = "", indent, language, code } }) => ({
    language,
    code: code.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
    setup,
    line: text.slice(0, index + whole.indexOf("```")).split("\n").length,
  }));
}

/** What an example says it prints, line by line: its comments `// prints ...`. */
export function promisedOutput(code) {
  return [...code.matchAll(/\/\/ prints (.*)$/gm)].map(([, line]) => line.trim());
}

/** A text with what differs from run to run taken out: numbers, process names, and repeated lines of one shape. */
export function shapeOf(text) {
  return text
    .split("\n")
    .map((line) =>
      line
        .trim()
        .replaceAll(/\d+(?:\.\d+)?/g, "N")
        .replaceAll(/\bprocess [ABCD]\b/g, "process X"),
    )
    .map((line) => line.replaceAll(/ +/g, " "))
    .filter((line, i, lines) => line !== "" && line !== lines[i - 1]);
}
