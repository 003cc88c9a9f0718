// Runs a function of AWS Lambda by the Lambda Runtime API, for nodes whose containers are plain processes with the machine's own Node.js.
import http from 'node:http';
import path from 'node:path';
import fs from 'node:fs';
import { pathToFileURL } from 'node:url';
import { createRequire, syncBuiltinESMExports } from 'node:module';

const version = '/2018-06-01/runtime/';
const [host, port] = process.env.AWS_LAMBDA_RUNTIME_API.split(':');
const pause = ms => new Promise(done => setTimeout(done, ms));

function once(method, where, body, headers) {
  return new Promise((done, fail) => {
    const asked = http.request({ host, port: port || 80, method, path: version + where, headers, agent: false }, got => {
      const parts = [];
      got.on('data', part => parts.push(part));
      got.on('error', fail);
      got.on('end', () => done({ status: got.statusCode, headers: got.headers, body: Buffer.concat(parts) }));
    });
    asked.on('error', fail);
    if (body !== undefined) asked.write(body);
    asked.end();
  });
}

async function call(method, where, body, headers = {}) {
  for (let tries = 0; ; tries++) { // the node's agent may be restarting
    try {
      return await once(method, where, body, headers);
    } catch (e) {
      if (tries === 99) throw e;
      await pause(100);
    }
  }
}

function described(error) {
  if (!(error instanceof Error)) return { errorType: typeof error, errorMessage: String(error), trace: [] };
  return { errorType: error.kind || error.name, errorMessage: error.message, trace: (error.stack || '').split('\n') };
}

// say writes that an error ended an invocation or all of them. That's never too little to be told.
function say(what, told, done) {
  process.stdout.write(inJSON ? line('ERROR', [what], told) : `${new Date().toISOString()}\t${current}\tERROR\t${what} \t${JSON.stringify(told)}\n`, done);
}

async function tell(where, error) {
  const told = described(error);
  say(where === 'init/error' ? 'Uncaught Exception' : 'Invoke Error', told);
  await call('POST', where, JSON.stringify(told), { 'Content-Type': 'application/json', 'Lambda-Runtime-Function-Error-Type': told.errorType });
}

function problem(kind, message) {
  const e = new Error(message);
  e.kind = kind;
  e.name = kind;
  return e;
}

async function load() {
  const root = process.env.LAMBDA_TASK_ROOT;
  const [, folder, name, nested] = /^((?:[^/]*\/)*)([^.]*)\.(.*)$/.exec(process.env._HANDLER) || [];
  if (!nested) throw problem('Runtime.MalformedHandlerName', 'Bad handler');
  const base = path.resolve(root, folder, name);
  const file = ['', '.js', '.mjs', '.cjs'].map(end => base + end).find(f => fs.existsSync(f) && fs.statSync(f).isFile());
  if (!file) throw problem('Runtime.ImportModuleError', `Error: Cannot find module '${name}'`);
  let loaded;
  try {
    loaded = file.endsWith('.mjs') ? await import(pathToFileURL(file)) : createRequire(file)(file);
  } catch (e) {
    if (e.code === 'ERR_REQUIRE_ESM' || e instanceof SyntaxError && /import|export/.test(e.message)) loaded = await import(pathToFileURL(file));
    else if (e.code === 'MODULE_NOT_FOUND') throw problem('Runtime.ImportModuleError', 'Error: ' + e.message);
    else if (e instanceof SyntaxError) throw problem('Runtime.UserCodeSyntaxError', 'SyntaxError: ' + e.message);
    else throw e;
  }
  const found = nested.split('.').reduce((o, n) => o && o[n], loaded.default && !(nested.split('.')[0] in loaded) ? loaded.default : loaded);
  if (typeof found !== 'function') throw problem('Runtime.HandlerNotFound', `${process.env._HANDLER} is undefined or not exported`);
  return found;
}

let current = 'undefined';
const text = parts => parts.map(p => typeof p === 'string' ? p : p instanceof Error ? p.stack : JSON.stringify(p)).join(' ');
const levels = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL'];
const inJSON = process.env.AWS_LAMBDA_LOG_FORMAT === 'JSON';
const least = inJSON ? levels.indexOf(process.env.AWS_LAMBDA_LOG_LEVEL) : -1; // then everything is written

function line(level, parts, error) {
  const timestamp = new Date().toISOString();
  if (!inJSON) return `${timestamp}\t${current}\t${level}\t${text(parts).replaceAll('\n', '\r')}\n`;
  const [only] = parts;
  const message = parts.length === 1 && typeof only === 'object' && !(only instanceof Error) ? only : text(parts);
  const failed = parts.find(p => p instanceof Error);
  return JSON.stringify({ timestamp, level, requestId: current, message, ...(failed ? described(failed) : error) }) + '\n';
}

for (const [name, level] of [['trace', 'TRACE'], ['debug', 'DEBUG'], ['log', 'INFO'], ['info', 'INFO'], ['warn', 'WARN'], ['error', 'ERROR']]) {
  if (name === 'trace' && !inJSON) continue;
  console[name] = (...parts) => { if (levels.indexOf(level) >= least) process.stdout.write(line(level, parts)); };
}

// run calls a handler, which answers by a promise or by a callback. With a callback, the answer waits until there is nothing left to do, unless
// the handler says otherwise.
function run(handler, event, context) {
  return new Promise((done, fail) => {
    const finish = (error, result) => error ? fail(error) : done(result);
    const callback = (error, result) => {
      if (!context.callbackWaitsForEmptyEventLoop) return setImmediate(() => finish(error, result));
      process.removeAllListeners('beforeExit');
      process.once('beforeExit', () => finish(error, result));
    };
    context.done = callback;
    context.succeed = result => finish(null, result);
    context.fail = error => finish(error || new Error('handled'));
    process.removeAllListeners('beforeExit');
    process.once('beforeExit', () => finish(null, undefined)); // there is nothing left that could call back
    const result = handler(event, context, callback);
    if (result && typeof result.then === 'function') result.then(done, fail);
  });
}

// Programs answer CloudFormation by HTTPS, whatever the URL says that they were given: on AWS it's always that. The control plane's URLs may be
// others, and their hosts and paths tell them.
function patchHTTPS() {
  const endpoint = process.env.AWS_ENDPOINT_URL && new URL(process.env.AWS_ENDPOINT_URL);
  if (!endpoint || endpoint.protocol !== 'http:') return;
  const https = createRequire(import.meta.url)('node:https');
  const original = https.request;
  https.request = function (...given) {
    const asked = given.find(g => typeof g === 'object' && g !== null) || {};
    const where = typeof given[0] === 'string' ? new URL(given[0]).pathname : asked.path || asked.pathname || '';
    if (!where.startsWith('/pintle/customresource/')) return original.apply(this, given);
    const at = typeof given[0] === 'string' || given[0] instanceof URL ? new URL(given[0]) : null;
    const options = { ...(at ? given.find((g, i) => i > 0 && typeof g === 'object') : asked) };
    for (const name of ['protocol', 'agent', 'port', 'host', 'hostname', 'href']) delete options[name];
    return http.request({ path: at ? at.pathname + at.search : undefined, ...options, hostname: endpoint.hostname, port: endpoint.port || 80 },
      given.find(g => typeof g === 'function'));
  };
  syncBuiltinESMExports();
}
patchHTTPS();

let handler;
try {
  handler = await load();
} catch (e) {
  await tell('init/error', e);
  process.exit(1);
}
process.on('uncaughtException', e => { say('Uncaught Exception', described(e), () => process.exit(129)); });
process.on('unhandledRejection', e => { say('Unhandled Promise Rejection', described(e), () => process.exit(128)); });

for (;;) {
  const got = await call('GET', 'invocation/next');
  if (got.status !== 200) process.exit(1);
  const h = got.headers;
  current = h['lambda-runtime-aws-request-id'];
  const deadline = Number(h['lambda-runtime-deadline-ms']);
  if (h['lambda-runtime-trace-id']) process.env._X_AMZN_TRACE_ID = h['lambda-runtime-trace-id'];
  const context = {
    callbackWaitsForEmptyEventLoop: true,
    awsRequestId: current,
    invokedFunctionArn: h['lambda-runtime-invoked-function-arn'],
    functionName: process.env.AWS_LAMBDA_FUNCTION_NAME,
    functionVersion: process.env.AWS_LAMBDA_FUNCTION_VERSION,
    memoryLimitInMB: process.env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
    logGroupName: process.env.AWS_LAMBDA_LOG_GROUP_NAME,
    logStreamName: process.env.AWS_LAMBDA_LOG_STREAM_NAME,
    clientContext: h['lambda-runtime-client-context'] ? JSON.parse(h['lambda-runtime-client-context']) : undefined,
    identity: undefined,
    getRemainingTimeInMillis: () => Math.max(0, deadline - Date.now()),
  };
  try {
    const result = await run(handler, JSON.parse(got.body.toString()), context);
    const body = JSON.stringify(result === undefined ? null : result);
    await call('POST', `invocation/${current}/response`, body, { 'Content-Type': 'application/json' });
  } catch (e) {
    await tell(`invocation/${current}/error`, e);
  }
}
