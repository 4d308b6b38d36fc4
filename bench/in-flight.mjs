// Many calls at once.

/** Makes `calls` calls, `width` of them in flight: each that ends makes room for another. */
export async function inFlight(call, { width, calls }) {
  let left = calls;
  const caller = async () => {
    while (left-- > 0) await call();
  };
  await Promise.all(Array.from({ length: width }, caller));
}

/** How many are in flight where the promise is about many. */
export const MANY = 200;
