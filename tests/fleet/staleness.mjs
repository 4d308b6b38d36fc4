// `npm run staleness:table`: lets processes open and close circuits for each other and ask, and writes how late answers were seen to be
// into docs/staleness.md. `-- 7` takes another seed than the first, which makes for another course.
import { STALENESS, stalenessRow, writeTables } from "./support/page.mjs";
import { playStaleness } from "./support/staleness.mjs";
import { dismissAll } from "./support/workers.mjs";

const STEPS = 20_000;

const modes = await playStaleness({ seed: Number(process.argv[2] ?? 1), steps: STEPS });
const rows = modes.map(stalenessRow);
for (const row of rows) console.log(row);
writeTables(STALENESS, { staleness: rows });
await dismissAll();
