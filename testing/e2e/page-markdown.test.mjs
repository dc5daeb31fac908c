// Rendering of what models write: Markdown, code, maths, and content that must not become markup.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stage } from './support/stage.mjs';

const on = stage();
const { open, begin, sealed, until } = on;

/** The answer to a prompt as HTML, without the frames of code. */
async function answer(text) {
  const turn = await begin();
  turn.say(text);
  turn.end();
  await sealed();
  return html();
}

const html = () =>
  on.page.locator('.answer').last().evaluate((node) => {
    node.querySelectorAll('.code-label').forEach((label) => label.remove());
    node.querySelectorAll('[tabindex]').forEach((each) => each.removeAttribute('tabindex'));
    return node.innerHTML.replaceAll(/<span class="hljs-[\w-]+">|<\/span>/g, '').replaceAll(/\n+(?=<)|(?<=>)\n+/g, '');
  });

const link = (url, text) => `<a href="${url}" target="_blank" rel="noopener noreferrer">${text}</a>`;

test('Markdown is rendered', async () => {
  await open();
  const shown = await answer(
    '# Title\n\nA **bold *and slanted* word**, `<b>code</b>`, snake_case_name, 2 * 3 * 4, ~~gone~~ &copy;&nbsp;&lt;.\n' +
      '[good](https://example.org/a_(b)) https://example.org/c.\n\n' +
      '1. one\n   - nested\n   ```html\n   <p>\n     kept\n   ```\n2. two\n\n- [x] done\n- [ ] to do\n\n> said\n> twice\n\n' +
      '| a | b | c |\n|---|:-:|--:|\n| 1 | **2**<br>x | 3 |\n\n***\n\nH<sub>2</sub>O, unclosed **mark',
  );
  const box = (label, checked) => `<input type="checkbox" disabled="" aria-label="${label}"${checked ? ' checked=""' : ''}>`;
  assert.equal(
    shown,
    '<h2>Title</h2>' +
      '<p>A <strong>bold <em>and slanted</em> word</strong>, <code>&lt;b&gt;code&lt;/b&gt;</code>, snake_case_name, ' +
      '2 * 3 * 4, <del>gone</del> ©&nbsp;&lt;.<br>' +
      `${link('https://example.org/a_(b)', 'good')} ${link('https://example.org/c', 'https://example.org/c')}.</p>` +
      '<ol><li>one<ul><li>nested</li></ul>' +
      '<div class="code"><pre><code data-language="html">&lt;p&gt;\n  kept</code></pre></div></li>' +
      '<li>two</li></ol>' +
      `<ul><li>${box('Done', true)} done</li><li>${box('To do', false)} to do</li></ul>` +
      '<blockquote><p>said<br>twice</p></blockquote>' +
      '<div class="table"><table><thead><tr><th scope="col">a</th><th scope="col" align="center">b</th>' +
      '<th scope="col" align="right">c</th></tr></thead>' +
      '<tbody><tr><td>1</td><td align="center"><strong>2</strong><br>x</td><td align="right">3</td></tr></tbody></table></div>' +
      '<hr><p>H<sub>2</sub>O, unclosed **mark</p>',
  );
  assert.deepEqual(on.page.wrongs, []);
});

test('nothing that a model writes is executed', async () => {
  await open();
  const shown = await answer(
    [
      '<img src=x onerror=alert(1)>',
      'in line <img src=x onerror="document.title=1"> and <kbd onclick=alert(1)>key</kbd> <script>document.title=2</script>',
      '<script>alert(1)</script>',
      '<svg><animate onbegin=alert(1) attributeName=x></svg>',
      '<iframe srcdoc="<script>parent.document.title=3</script>"></iframe>',
      '<style>* { display: none }</style>',
      '<a href="javascript:alert(1)">raw</a> <form action="/chat"><input name=a></form>',
      '[bad](javascript:alert(1)) [bad](JaVaScRiPt:alert`1`) [bad](&#106;avascript:alert(1)) [bad](data:text/html,<script>alert(1)</script>)',
      '[bad](vbscript:x) [bad](//example.org) [bad](/conversations) [bad][ref] <javascript:alert(1)>',
      '![alt](javascript:alert(1)) ![svg](data:image/svg+xml;base64,PHN2Zz4=) ![far](https://example.org/track.png?x=1)',
      '[quote](https://example.org/"onmouseover="alert(1)) [x](https://example.org "title\\" onclick=alert(1) ")',
      '[![inside](https://example.org/in.png)](https://example.org/out)',
      '`<img src=x onerror=alert(1)>`',
      '```"><img src=x onerror=alert(1)>\n<img src=x onerror=alert(1)>\n```',
      '| <script>alert(1)</script> | <img src=x onerror=alert(1)> |\n|---|---|\n| <b onclick=alert(1)>x</b> | y |',
      '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">',
      '[ref]: javascript:alert(1)',
    ].join('\n\n'),
  );
  const allowed = 'A BLOCKQUOTE BR BUTTON CODE DEL DIV EM H2 H3 H4 H5 H6 HR INPUT KBD LI OL P PRE SPAN STRONG SUB SUP TABLE TBODY TD TH THEAD TR UL';
  const found = await on.page.locator('.answer').evaluate((root, tags) => {
    const all = [...root.querySelectorAll('*')];
    return {
      others: all.filter(({ nodeName }) => !tags.includes(nodeName)).map(({ outerHTML }) => outerHTML),
      handlers: all.flatMap((each) => each.getAttributeNames()).filter((name) => name.startsWith('on') || name === 'style' || name === 'title'),
      links: all.filter(({ nodeName }) => nodeName === 'A').map((each) => each.getAttribute('href')),
    };
  }, allowed.split(' '));
  assert.deepEqual(found.others, []);
  assert.deepEqual(found.handlers, []);
  assert.deepEqual(found.links, [
    'https://example.org/track.png?x=1',
    'https://example.org/"onmouseover="alert(1)',
    'https://example.org',
    'https://example.org/out',
  ]);
  assert.ok(shown.includes('&lt;script&gt;alert(1)&lt;/script&gt;'), 'it is shown as it was written');
  assert.ok(shown.includes('[bad](javascript:alert(1))'));
  assert.doesNotMatch(await on.page.title(), /^\d/);
  assert.deepEqual(on.page.wrongs, [], 'nothing was fetched, and nothing ran into the policy');
});

test('the sanitizer alone would suffice', async () => {
  await open();
  const left = await on.page.evaluate(async () => {
    const { clean } = await import('/page/clean.js');
    const root = document.createElement('div');
    for (const html of [
      '<img src=x onerror=alert(1)>',
      '<a href="javascript:alert(1)" onclick=alert(1) style="color:red" title=t>a</a>',
      '<a href="/chat">b</a><img src="https://example.org/x.png"><img src="data:image/svg+xml;base64,PHN2Zz4=">',
      '<svg><script>alert(1)</script></svg><iframe src=x></iframe><form><input name=x formaction=y></form><style>*{}</style>',
      '<p id=prompt data-x=1 aria-hidden=true>c</p>',
    ]) root.append(clean(html));
    return root.innerHTML;
  });
  assert.equal(left, '<img><a>a</a><a>b</a><img><img><input><p>c</p>');
  const refused = await on.page.evaluate(() => {
    try {
      document.createElement('div').innerHTML = '<b>x</b>';
      return false;
    } catch (error) {
      return error.name;
    }
  });
  assert.equal(refused, 'TypeError', 'no other code makes markup of text');
});

/** The TeX of the formulas that are typeset, as screen readers get it. */
const formulas = () => on.page.locator('.katex annotation').allTextContents();

test('maths is typeset', async () => {
  await open();
  const aligned = '\\begin{align*}\na &= b_1 \\\\\n*c* &= d\n\\end{align*}';
  const line = '\\(a_1 * b_1 * c\\) and \\[x_{i}^*\\] and $a_1 + b_1 * c*$ and $$\\sum_i *x*$$';
  await answer(`${line}\n\nIt costs $5 and *not* $10.\n\nThus\n$$\na_1 * b\n$$\n\n${aligned}\n`);
  await until(() => document.querySelectorAll('.katex').length === 6);
  const tex = await formulas();
  assert.deepEqual(tex.map((each) => each.trim()), ['a_1 * b_1 * c', 'x_{i}^*', 'a_1 + b_1 * c*', '\\sum_i *x*', 'a_1 * b', aligned]);
  assert.equal(await on.page.locator('.katex-display').count(), 4);
  assert.ok((await on.page.locator('.answer').innerText()).includes('It costs $5 and not $10.'));
  await on.page.evaluate(() => document.fonts.ready);
  assert.ok(await on.page.evaluate(() => [...document.fonts].some(({ family, status }) => family.startsWith('KaTeX') && status === 'loaded')));
  assert.deepEqual(on.page.wrongs, [], 'everything comes from the server, and nothing breaks its policy');
});

test('maths that is incomplete, too much, or no TeX stays as typed', async () => {
  await open();
  const bomb = '\\def\\a{xxxxxxxxxx}\\def\\b{\\a\\a\\a\\a\\a\\a\\a\\a}\\def\\c{\\b\\b\\b\\b\\b\\b\\b\\b}\\c\\c\\c\\c\\c\\c';
  const odd = ['$\\frac{1$', '$\\nonsense x$', '$\\href{javascript:alert(1)}{x}$', '$\\includegraphics{https://evil.example/x.png}$', `$${bomb}$`];
  await answer(`Good: $x^2$\n\n${odd.join('\n\n')}`);
  await until(() => document.querySelectorAll('.katex').length > 0);
  const shown = await on.page.locator('.answer').innerText();
  for (const each of [odd[0], odd[1], odd[4]]) assert.ok(shown.includes(each), each);
  assert.equal(await on.page.locator('.answer a, .answer img').count(), 0);
  assert.deepEqual(on.page.wrongs, []);
});

test('maths is typeset while it streams in', async () => {
  await open();
  const turn = await begin();
  for (const part of 'The sum $$\\sum_{i=1}^n i$$ is \\(n(n+1)/2\\), always.'.match(/[^]{1,3}/g)) turn.say(part);
  turn.end();
  await sealed();
  await until(() => document.querySelectorAll('.katex').length === 2);
  assert.deepEqual(await formulas(), ['\\sum_{i=1}^n i', 'n(n+1)/2']);
  assert.ok((await on.page.locator('.answer').innerText()).endsWith('always.'));
  assert.deepEqual(on.page.wrongs, []);
});

test('code is highlighted, and copied as it was written', async () => {
  await on.open('/', { permissions: ['clipboard-read', 'clipboard-write'] });
  const turn = await begin();
  turn.say('```rust\nfn main() {\n    println!("{}", 1 < 2);\n');
  await on.page.locator('.hljs-keyword', { hasText: 'fn' }).waitFor();
  turn.say('}\n```\n\n```nonsense\nfn <b>\n```\n');
  turn.end();
  await sealed();
  const blocks = on.page.locator('.code');
  assert.deepEqual(await blocks.locator('.code-label').allTextContents(), ['rustCopy', 'nonsenseCopy']);
  assert.equal(await blocks.nth(1).locator('code').innerHTML(), 'fn &lt;b&gt;');
  await blocks.first().locator('.copy').click();
  await blocks.first().locator('.copy', { hasText: 'Copied' }).waitFor();
  const copied = await on.page.evaluate(() => navigator.clipboard.readText());
  assert.equal(copied, 'fn main() {\n    println!("{}", 1 < 2);\n}');
  assert.deepEqual(on.page.wrongs, []);
});

const SAMPLE =
  '[used][far] early\n\n# Head\npara **bold** `code` *it* **a `b` c** [l](https://x.org/y) https://z.org/?q=1, end\nnext line\n\n' +
  '- a\n  - b **c\n- d**\n\n  more of d\n  ~~~\n  x\n  ``` not the end\n  ~~~\n10. ten\n11. eleven\n\n' +
  '> q\n>\n> r\n\n| h | i |\n|:-|-:|\n| `a|` | b |\n\n```text\nfn main() {\n\n}\n```\nafter ** and __x__ *\n\n' +
  'Under\n---\n\n$$\na_1\n- b\n$$\n\n    indented\n\n<div>\nraw\n</div>\n\n- [ ] task\n* * *\n[used][ref] &amp; ~~x~~\n\n[ref]: https://r.org\n[far]: https://far.org\n\n[used][ref] late\n\n**';

test('rendering does not depend on how the text is split', async () => {
  await open();
  const different = await on.page.evaluate(async (text) => {
    const { Markdown } = await import('/page/markdown.js');
    const { lex, render } = await import('/page/render.js');
    const shown = (parts) => {
      const root = document.createElement('div');
      const markdown = new Markdown(root);
      for (const part of parts) {
        markdown.push(part);
        markdown.flush();
      }
      markdown.end();
      return root.innerHTML;
    };
    const root = document.createElement('div');
    root.append(render(lex(text)));
    const whole = root.innerHTML;
    const cuts = [[text], [...text]];
    for (let at = 1; at < text.length; at += 1) cuts.push([text.slice(0, at), text.slice(at)]);
    for (let size = 2; size < 12; size += 1) cuts.push(text.match(new RegExp(`[^]{1,${size}}`, 'g')));
    return cuts.map(shown).filter((html) => html !== whole).map((html) => `${html}\n is not \n${whole}`)[0];
  }, SAMPLE);
  assert.equal(different, undefined);
});

test('while streaming, open marks are closed and ambiguous text is held back', async () => {
  await open();
  const shown = await on.page.evaluate(async (texts) => {
    const { Markdown } = await import('/page/markdown.js');
    return texts.map((text) => {
      const root = document.createElement('div');
      const markdown = new Markdown(root);
      for (const character of text) {
        markdown.push(character);
        markdown.flush();
      }
      return root.innerHTML.replaceAll(/\n+/g, '');
    });
  }, ['so **bold te', 'so **bold*', 'run `ls -l', 'a ** b', 'para\n--', 'para\n- ', 'para\n\n| a | b |', '| a |\n|--', '# ', 'x\n``', '```\na\n``', '**`x', '- one\n-', '2 * 3']);
  assert.deepEqual(shown, [
    '<p>so <strong>bold te</strong></p>',
    '<p>so <strong>bold</strong></p>',
    '<p>run <code>ls -l</code></p>',
    '<p>a ** b</p>',
    '<p>para</p>',
    '<p>para</p>',
    '<p>para</p>',
    '',
    '',
    '<p>x</p>',
    '<div class="code"><div class="code-label"><button type="button" class="copy quiet">Copy</button></div><pre tabindex="0"><code>a</code></pre></div>',
    '<p><strong><code>x</code></strong></p>',
    '<ul><li>one</li></ul>',
    '<p>2 * 3</p>',
  ]);
});

test('the cost of a long answer is linear in its length', async () => {
  await open();
  const costs = await on.page.evaluate(async () => {
    const { Lexer } = await import('/page/vendor/marked/marked.esm.js');
    const { Markdown } = await import('/page/markdown.js');
    const { lex } = Lexer.prototype;
    let read = 0;
    Lexer.prototype.lex = function (text) {
      read += text.length;
      if (read > 20_000_000) throw new Error('it reads everything again and again');
      return lex.call(this, text);
    };
    const cost = (line, length) => {
      read = 0;
      const markdown = new Markdown(document.createElement('div'));
      for (let at = 0; at < length; at += line.length) {
        markdown.push(line);
        markdown.flush();
      }
      markdown.end();
      return read / length;
    };
    const lines = ['a paragraph of some words.\n\n', 'one long paragraph of words, ', '- an item of one list\n', '| a | row |\n'];
    const code = (length) => {
      read = 0;
      const markdown = new Markdown(document.createElement('div'));
      markdown.push('```\n');
      for (let at = 0; at < length; at += 20) {
        markdown.push('let x = some(code);\n');
        markdown.flush();
      }
      markdown.end();
      return read / length;
    };
    const costs = lines.map((line) => [cost(line, 40_000), cost(line, 80_000)]);
    costs.push([code(40_000), code(80_000)]);
    Lexer.prototype.lex = lex;
    return costs;
  });
  for (const [short, long] of costs) assert.ok(long < short * 1.2, `${short} and ${long} characters read for each written`);
  console.log(`# characters read for each written: ${costs.map(([, long]) => long.toFixed(1)).join(', ')}`);
});

test('a long block is complete while streaming, and a selection in it stays', async () => {
  await open();
  const turn = await begin();
  const row = (index) => `line ${index} of it\n`;
  turn.say(`\`\`\`\n${row(0)}`);
  await until(() => document.querySelector('.code code'));
  await on.page.locator('.code code').evaluate((code) => getSelection().setBaseAndExtent(code.firstChild, 0, code.firstChild, 4));
  const rows = Array.from({ length: 2000 }, (_, index) => row(index + 1));
  for (let at = 0; at < rows.length; at += 100) {
    turn.say(...rows.slice(at, at + 100));
    await until((last) => document.querySelector('.code code').textContent.includes(last), rows[at + 99].trim());
  }
  assert.equal(await on.page.evaluate(() => getSelection().toString()), 'line');
  turn.say('```\n');
  turn.end();
  await sealed();
  assert.equal(await on.page.locator('.code code').textContent(), [row(0), ...rows].join('').trimEnd());
});
