/** Stands for bindings/node/ts/load.ts where a page imports what runs alone. Importing runs no WebAssembly: first use does. */

import { provideNative } from "../../node/ts/native";
import { loadLocal } from "./local";

provideNative(loadLocal);
