/** Light or dark: what the system says, until somebody chooses. Loaded before anything is painted. */

const KEY = "switchgear-theme";
const THEMES = ["light", "dark"];

apply(stored());

document.addEventListener("DOMContentLoaded", () => {
  const press = document.getElementById("theme");
  press?.addEventListener("click", () => {
    const next = current() === "dark" ? "light" : "dark";
    apply(next);
    store(next);
    label(press);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => press && label(press));
  if (press) label(press);
});

function current(): string {
  return (
    document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")
  );
}

function apply(theme: string | null): void {
  if (theme !== null && THEMES.includes(theme)) document.documentElement.dataset.theme = theme;
}

function label(press: HTMLElement): void {
  press.textContent = current() === "dark" ? "Light" : "Dark";
}

/** A page may be forbidden to keep anything. Then the choice lasts as long as the page. */
function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function store(theme: string): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // As above.
  }
}

export {};
