// What a provider does before it answers, and how long that may take.

import { always, cut, full, html, limited, outage, overloaded, refused, silent, window } from "./provider.mjs";

const times = (count, failure) => Array(count).fill(failure);

// A schedule for a scenario that is about the number of refusals: the usual one gives up after 21 of them, eight hours later.
const QUICK = '[retry]\nschedule = "exponential"\nbase_ms = 1000\nmax_delay_ms = 10000\nmax_retries = 40\n';

// `plan`: see `start` in provider.mjs. `serve`: by a running server with this configuration, instead of
// one of `everturn with`'s own, which asks for `token`. `kill`: the server is killed during the wait after this many refusals, and started again.
// `writes`: the first answer asks for a file with this text. `fails`: it never answers, and the agent has to fail as it does
// without Everturn. `minutes`: how long it may take, 50 without it. `asked`: it is run only if it is named. Scenarios that take
// long come first.
export const SCENARIOS = {
  "hours: an outage of 90 min": { plan: () => outage(90 * 60), minutes: 160, asked: true },
  "an outage of 20 min": { plan: () => outage(20 * 60) },
  "silent once, until the idle timer": { plan: () => [silent] },
  "529, 30 times (waits of 1 to 10 s)": { plan: () => times(30, overloaded), serve: QUICK },
  "a plan's window that ends in 3 min": { plan: () => [window(180)] },
  "401, always": { plan: () => always(refused), fails: true },
  "429, retry-after 90": { plan: () => [limited(90)] },
  "the server killed in the third wait, after 529": { plan: () => times(3, overloaded), serve: "", kill: 3 },
  "529, 3 times, then a tool call": { plan: () => times(3, overloaded), writes: "written by the agent" },
  "529, 3 times, a server with a token": { plan: () => times(3, overloaded), serve: "", token: "the-token-of-the-server" },
  "529, 3 times": { plan: () => times(3, overloaded) },
  "cut before content, 3 times": { plan: () => times(3, cut) },
  "503 in HTML, twice": { plan: () => times(2, html) },
  "a full context, always": { plan: () => always(full), fails: true },
  "answers at once": { plan: () => [] },
};
