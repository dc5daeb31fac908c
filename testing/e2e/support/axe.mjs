// The accessibility checker, run in a page.
import axe from 'axe-core';

/** The problems that it finds on the page, one line per element. */
export async function findings(page) {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return violations.flatMap(({ id, help, nodes }) => nodes.map(({ target, any }) => `${id} (${help}): ${target.join(' ')} ${any[0]?.message ?? ''}`));
}
