// What of the playground the picture in the README shows.

/** In what gap below the cards of the moment the picture ends, in pixels. */
const MARGIN = 7;

/**
 * Lays the page out for the picture: down to what the moment shows, for the lists below say the same in words. What is set stands
 * beside it; the load is folded, so that the last card ends with the picture.
 *
 * @returns how high the picture is, in pixels
 * @throws Error naming the cards that it would cut
 */
export async function frameOf(page) {
  const { height, cut } = await page.evaluate((margin) => {
    document.querySelector("details:has(#load)").open = false;
    const bottom = Math.ceil(document.querySelector(".cards").getBoundingClientRect().bottom);
    const cards = [...document.querySelectorAll(".card")].map((card) => [
      card.querySelector("h2").textContent,
      card.getBoundingClientRect(),
    ]);
    const across = cards.filter(([, box]) => box.top < bottom + margin && box.bottom > bottom + margin);
    return { height: bottom + margin, cut: across.map(([name]) => name) };
  }, MARGIN);
  if (cut.length > 0) throw new Error(`the picture would cut through: ${cut.join(", ")}`);
  return height;
}
