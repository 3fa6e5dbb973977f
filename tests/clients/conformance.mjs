// Runs MCP's conformance suite against a node: through a proxy on loopback that adds the token,
// which the suite cannot.
//
// usage: node conformance.mjs MODULES URL TOKEN REVISION EXPECTED-FAILURES OUTPUT

import { spawn } from 'node:child_process';
import http from 'node:http';
import path from 'node:path';

const [modules, url, token, revision, expected, output] = process.argv.slice(2);
const node = new URL(url);

// What the suite calls by the proxy's port, the node hears by its own: a page of another port is
// another origin.
const proxy = http.createServer((asked, answered) => {
  const own = `:${proxy.address().port}`;
  const headers = { ...asked.headers, authorization: `Bearer ${token}` };
  for (const name of ['host', 'origin']) {
    if (headers[name]) headers[name] = headers[name].replace(own, `:${node.port}`);
  }
  const { hostname, port } = node;
  const passed = http.request(
    { hostname, port, path: asked.url, method: asked.method, headers },
    (answer) => {
      answered.writeHead(answer.statusCode, answer.headers);
      answer.pipe(answered);
    },
  );
  passed.on('error', () => answered.destroy());
  answered.on('close', () => passed.destroy());
  asked.pipe(passed);
});
proxy.listen(0, '127.0.0.1', () => {
  const suite = path.join(modules, '@modelcontextprotocol', 'conformance', 'dist', 'index.js');
  const target = `http://127.0.0.1:${proxy.address().port}/mcp`;
  const wanted = ['--requirements', revision, '--expected-failures', expected, '-o', output];
  const run = spawn(process.execPath, [suite, 'server', '--url', target, ...wanted], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  run.on('exit', (code) => process.exit(code ?? 1));
});
