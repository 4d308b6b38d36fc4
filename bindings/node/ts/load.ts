import { type Native, setNative } from "./native";

/** Loads the native module of this platform; the only file that knows it is a file. */
function load(): Native {
  const file = `./switchgear.${process.platform}-${process.arch}.node`;
  try {
    return require(file);
  } catch (error) {
    throw new Error(
      `switchgear: no native module for ${process.platform}-${process.arch} that this Node ${process.version} can load`,
      { cause: error },
    );
  }
}

setNative(load());
