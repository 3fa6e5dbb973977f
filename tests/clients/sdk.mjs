// The official TypeScript SDK as a client of nexus: does what its test wants of every client, and
// prints what it saw as one line of JSON.
//
// usage: node sdk.mjs MODULES WIRE TARGET    (TARGET: {"url", "token"} or {"command", "args", "env"})

import { pathToFileURL } from 'node:url';
import path from 'node:path';

const [modules, wire, given] = process.argv.slice(2);
const target = JSON.parse(given);
const sdk = path.join(modules, '@modelcontextprotocol', 'client', 'dist');
const load = (name) => import(pathToFileURL(path.join(sdk, name)).href);
const { Client, StreamableHTTPClientTransport } = await load('index.mjs');
const { StdioClientTransport } = await load('stdio.mjs');

const transport = target.url
  ? new StreamableHTTPClientTransport(new URL(target.url), {
      requestInit: { headers: { authorization: `Bearer ${target.token}` } },
    })
  : new StdioClientTransport({ ...target, stderr: 'inherit' });
const mode = wire === '2025-11-25' ? 'legacy' : { pin: wire };
const client = new Client(
  { name: 'typescript-sdk', version: '1' },
  { versionNegotiation: { mode } },
);
await client.connect(transport);
const call = (name, args) => client.callTool({ name, arguments: args });

const saw = {};
saw.wire = client.getNegotiatedProtocolVersion();
saw.server = client.getServerVersion().name;
saw.tools = (await client.listTools()).tools.map((tool) => tool.name);
saw.sent = await call('send_message', { message: `from typescript, ${wire}` });
saw.read = await call('read_messages', { latest: true, count: 1 });
saw.refused = await call('send_message', { message: '' });
saw.document = await call('sync_global_doc', { docId: 'sdk', title: 'SDK', content: '# text' });
saw.resources = (await client.listResources()).resources.map((resource) => resource.uri);
saw.templates = (await client.listResourceTemplates()).resourceTemplates.map((it) => it.uriTemplate);
saw.text = (await client.readResource({ uri: 'nexus://documents/sdk' })).contents[0].text;
saw.missing = await client.readResource({ uri: 'nexus://documents/none' }).catch((it) => it.code);
saw.prompts = (await client.listPrompts()).prompts.map((prompt) => prompt.name);
saw.prompt = (await client.getPrompt({ name: 'use-nexus' })).messages[0].content.text;
console.log(JSON.stringify(saw));
await client.close();
