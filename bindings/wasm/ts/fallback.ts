/** What Node takes where the native file is missing: both halves. */

export { loadLocal } from "./local";
export { loadShared } from "./shared";
