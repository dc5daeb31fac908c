// The accessibility checker, run in a page.
import axe from 'axe-core';

/** The problems that it finds on the page by all rules, or by these, one line per element. */
export async function findings(page, rules) {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe.source);
  const options = { resultTypes: ['violations'], ...(rules && { runOnly: rules }) };
  const { violations } = await page.evaluate((given) => window.axe.run(document, given), options);
  return violations.flatMap(({ id, help, nodes }) => nodes.map(({ target, any }) => `${id} (${help}): ${target.join(' ')} ${any[0]?.message ?? ''}`));
}
