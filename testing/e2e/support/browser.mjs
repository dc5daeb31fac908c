// A browser page that records errors.
import { chromium } from 'playwright-core';

const ARGUMENTS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export const launch = (more = []) =>
  chromium.launch({ executablePath: process.env.EVERTURN_CHROMIUM ?? '/usr/bin/chromium', args: [...ARGUMENTS, ...more] });

/** A new page in its own profile. `page.wrongs` lists console errors, exceptions and failed requests. */
export async function openPage(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1100, height: 760 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000); // a busy disk may hold up a save for seconds, a busy machine the start of an MCP server for longer
  page.wrongs = [];
  page.on('console', (message) => message.type() === 'error' && page.wrongs.push(message.text()));
  page.on('pageerror', (error) => page.wrongs.push(error.stack));
  page.on('request', (request) => {
    const origin = new URL(url).origin;
    if (new URL(request.url()).origin !== origin) page.wrongs.push(`a request to elsewhere: ${request.url()}`);
  });
  await page.goto(url);
  return page;
}

/** Writes a message and sends it. */
export async function send(page, text) {
  await page.locator('#prompt').fill(text);
  await page.locator('#send').click();
}

/** The model's text, as displayed. */
export const answerText = (page) =>
  page.locator('.answer').evaluateAll((nodes) => nodes.map((node) => node.innerText).join('\n'));
