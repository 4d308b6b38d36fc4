/** What is wrong with input, as the facade turns it into the error class of its code. */
export function problem(code, message, field, value) {
  return { code, message, field, value };
}
