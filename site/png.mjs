// A PNG as small as it gets without losing anything: browsers write them fast, not small.
import { crc32, deflateSync, inflateSync } from "node:zlib";

const HEAD = 8;
/** Bytes of a pixel, by the color type: RGB and RGBA. */
const PIXEL = { 2: 3, 6: 4 };

/**
 * The same picture, its lines stored as they are: in flat colors and letters deflate finds more that way than behind filters.
 * @param texts - what else the file says, by keyword
 */
export function smaller(png, texts = {}) {
  const chunks = chunksOf(png);
  const head = chunks.find(({ type }) => type === "IHDR").data;
  const [width, height, color] = [head.readUInt32BE(0), head.readUInt32BE(4), head[9]];
  const bytes = PIXEL[color];
  if (head[8] !== 8 || bytes === undefined || head[12] !== 0) throw new Error("not a PNG as a browser writes it");
  const packed = Buffer.concat(chunks.filter(({ type }) => type === "IDAT").map(({ data }) => data));
  const plain = unfiltered(inflateSync(packed), width * bytes, height, bytes);
  const body = deflateSync(plain, { level: 9, memLevel: 9 });
  return Buffer.concat([
    png.subarray(0, HEAD),
    chunk("IHDR", head),
    ...Object.entries(texts).map(([keyword, text]) => chunk(TEXT, Buffer.from(`${keyword}\0${text}`, "latin1"))),
    chunk("IDAT", body),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

/** What the file says under a keyword; undefined if it says nothing. */
export function textIn(png, keyword) {
  const texts = chunksOf(png).flatMap(({ type, data }) => (type === TEXT ? [data.toString("latin1").split("\0")] : []));
  return texts.find(([name]) => name === keyword)?.[1];
}

const TEXT = "tEXt";

function chunksOf(png) {
  const chunks = [];
  for (let at = HEAD; at < png.length; ) {
    const length = png.readUInt32BE(at);
    chunks.push({ type: png.toString("latin1", at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) });
    at += length + 12;
  }
  return chunks;
}

/** The lines without their filters, each behind a 0, which says that it has none. */
function unfiltered(lines, width, height, bytes) {
  const plain = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y++) {
    const start = y * (width + 1);
    const filter = lines[start];
    for (let x = 1; x <= width; x++) {
      const left = x > bytes ? plain[start + x - bytes] : 0;
      const up = y > 0 ? plain[start + x - width - 1] : 0;
      const corner = x > bytes && y > 0 ? plain[start + x - width - 1 - bytes] : 0;
      plain[start + x] = lines[start + x] + [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
    }
  }
  return plain;
}

function paeth(left, up, corner) {
  const guess = left + up - corner;
  const [a, b, c] = [left, up, corner].map((each) => Math.abs(guess - each));
  if (a <= b && a <= c) return left;
  return b <= c ? up : corner;
}

function chunk(type, data) {
  const named = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const whole = Buffer.alloc(named.length + 8);
  whole.writeUInt32BE(data.length, 0);
  named.copy(whole, 4);
  whole.writeUInt32BE(crc32(named), named.length + 4);
  return whole;
}
