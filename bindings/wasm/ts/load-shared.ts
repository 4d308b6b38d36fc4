/** The same where circuits are shared through Redis: another module, so that who does not need it does not load it. */

import "./load-local";
import { provideNative } from "../../node/ts/native";
import { loadShared } from "./shared";

provideNative(loadShared);
