// Pictures of the page, for people.
import { join } from 'node:path';

/** Saves a picture of a page or element in the directory that EVERTURN_SHOTS names, if it names one. */
export async function picture(shown, name) {
  const directory = process.env.EVERTURN_SHOTS;
  if (directory) await shown.screenshot({ path: join(directory, `${name.replaceAll(/[^\w.-]+/g, '-')}.png`) });
}
