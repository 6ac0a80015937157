'use strict';
// Does what it is told on standard input, against several nodes: see tests/cluster_drivers/programs.py.
// usage: node cluster.js HOST PORT KEYSPACE
const readline = require('readline');
const cassandra = require('cassandra-driver');

const WORKERS = 8;
const [host, port, keyspace] = process.argv.slice(2);
const client = new cassandra.Client({
  contactPoints: [`${host}:${port}`],
  localDataCenter: 'datacenter1',
  keyspace,
  protocolOptions: { port: Number(port) },
  queryOptions: { consistency: cassandra.types.consistencies.quorum, prepare: true, isIdempotent: true },
});
const write = k => client.execute('INSERT INTO t (k, v) VALUES (?, ?)', [k, k]);
const read = async k => {
  const v = (await client.execute('SELECT v FROM t WHERE k = ?', [k])).first().v;
  if (v !== k) {
    throw new Error(`${v} was read for ${k}`);
  }
};
let [operations, failures, worstMs, first, stopped] = [0, 0, 0, '', false];
let workers = [];

async function timed(run, k) {
  const began = Date.now();
  try {
    await run(k);
  } catch (e) {
    failures += 1;
    first = first || String(e);
  }
  operations += 1;
  worstMs = Math.max(worstMs, Date.now() - began);
}

async function work(start) {
  for (let k = start; !stopped; k += WORKERS) {
    await timed(write, k);
    await timed(read, k);
  }
}

const commands = {
  nodes: () => client.hosts.values().filter(h => h.isUp()).length,
  route: async (from, count) => {
    for (const run of [write, read]) {
      for (let k = from; k < from + count; k += 1) {
        await run(k);
      }
    }
    return 'done';
  },
  load: () => {
    workers = Array.from({ length: WORKERS }, (_, n) => work(1000000 + n));
    return 'done';
  },
  stop: async () => {
    stopped = true;
    await Promise.all(workers);
    return `${operations} ${failures} ${worstMs} ${first.replace(/\n/g, ' ')}`;
  },
};

(async () => {
  await client.connect();
  console.log('ready');
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [name, ...numbers] = line.split(' ');
    console.log(await commands[name](...numbers.map(Number)));
  }
  process.exit(0);
})();
