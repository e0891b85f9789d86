// Runs proper-lockfile for the driver, with the commands in ../../README.md.
//
//     node worker.js DIR
'use strict';

const fs = require('fs');
const path = require('path');
const readline = require('readline');
const lockfile = require('proper-lockfile');

const file = path.join(process.argv[2], 'lock');

// By default it does not wait. This is the polling interval of filelock.
const options = { realpath: false, retries: { forever: true, factor: 1, minTimeout: 50, maxTimeout: 50 } };

let unlock;

async function acquire() {
    unlock = await lockfile.lock(file, options);
    return { at: now() };
}

async function release() {
    const before = now();
    await unlock();
    return { at: before };
}

async function cycles(seconds) {
    const start = now();
    let done = 0;
    while (now() - start < Number(seconds) * 1e9) {
        await acquire();
        await release();
        done++;
    }
    return { cycles: done, seconds: (now() - start) / 1e9 };
}

async function count(times, counter) {
    let longest = 0;
    for (let n = 0; n < Number(times); n++) {
        const start = now();
        await acquire();
        longest = Math.max(longest, now() - start);
        fs.writeFileSync(counter, String(Number(fs.readFileSync(counter, 'utf8')) + 1));
        await release();
    }
    return { at: now(), longest: longest / 1e9 };
}

// CLOCK_MONOTONIC in nanoseconds; a double is exact up to 104 days of uptime, and good to a microsecond far beyond.
function now() {
    return Number(process.hrtime.bigint());
}

function reply(answer) {
    process.stdout.write(JSON.stringify(answer) + '\n');
}

async function main() {
    const commands = { acquire, release, cycles, count };
    reply({});
    for await (const line of readline.createInterface({ input: process.stdin })) {
        const [verb, first, ...rest] = line.split(' ');
        reply(await commands[verb](first, rest.join(' ')));
    }
}

main();
