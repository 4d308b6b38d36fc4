import { native } from "./native";

/** The version of this package, as its native module has it. */
export const version: string = native().version();
