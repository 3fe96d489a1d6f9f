// node-redlock on the servers whose URLs are the arguments, driven by the lines of its standard input;
// one lock at a time.
//   acquire RESOURCE MS  says "held VALUE", and before it once "busy" if it has to try again
//   release              says "released", or "refused" and why
"use strict";

const readline = require("node:readline");
const { default: Client } = require("ioredis");
const { default: Redlock } = require("redlock");

const clients = process.argv.slice(2).map((url) => new Client(url));
const redlock = new Redlock(clients, { retryCount: -1, retryDelay: 25, retryJitter: 5 });
let busy = false;
redlock.on("error", () => { // of each attempt
  if (!busy) console.log("busy");
  busy = true;
});

async function main() {
  let lock;
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [command, resource, ms] = line.split(" ");
    if (command === "acquire") {
      busy = false;
      lock = await redlock.acquire([resource], Number(ms));
      console.log(`held ${lock.value}`);
    } else {
      busy = true; // a failed release is told below
      await redlock.release(lock, { retryCount: 0 }).then(
        () => console.log("released"),
        (error) => console.log(`refused ${error.message}`)
      );
    }
  }
  for (const client of clients) client.disconnect();
}

main();
