// A worker and a producer of the queue `embeddings` by the other official library of BullMQ.
//
//   node peer.mjs produce PORT    adds the jobs {data, opts} of stdin's lines, and says what became of each
//   node peer.mjs consume PORT N  takes N jobs, and says what they are

import { createInterface } from "node:readline";
import { Queue, QueueEvents, Worker } from "bullmq";

const [action, port, count] = process.argv.slice(2);
const connection = { host: "127.0.0.1", port: Number(port), maxRetriesPerRequest: null };
const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

async function produce() {
  const queue = new Queue("embeddings", { connection });
  const events = new QueueEvents("embeddings", { connection });
  await events.waitUntilReady();
  for await (const line of createInterface({ input: process.stdin })) {
    const { data, opts } = JSON.parse(line);
    const job = await queue.add("embed", data, opts);
    try {
      say({ returned: await job.waitUntilFinished(events, 30_000) });
    } catch (error) {
      say({ failed: error.message });
    }
  }
  await events.close();
  await queue.close();
}

async function consume() {
  let left = Number(count);
  const ended = new Promise((resolve) => {
    const worker = new Worker(
      "embeddings",
      async (job) => {
        say({ id: job.id, name: job.name, data: job.data, attempts: job.opts.attempts });
        return { outcome: "embedded" };
      },
      { connection },
    );
    worker.on("completed", () => {
      left -= 1;
      if (left === 0) resolve(worker.close());
    });
  });
  say("ready");
  await ended;
}

await (action === "produce" ? produce() : consume());
