// camunda-external-task-client-js. Its events say what the server accepted; that is what is told.

import { appendFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import path from "node:path";

const script = JSON.parse(process.argv[2]);
const entry = path.join(script.modules, "camunda-external-task-client-js", "index.js");
const { Client, Variables, BasicAuthInterceptor } = await import(pathToFileURL(entry));

const wayOf = Object.fromEntries(Object.entries(script.topics).map(([way, topic]) => [topic, way]));
const tell = (did, task, more = {}) =>
  appendFileSync(script.told, JSON.stringify({ did, task: task?.id ?? task ?? null, ...more }) + "\n");
const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

const client = new Client({
  baseUrl: script.url,
  workerId: script.worker,
  maxTasks: 10,
  interval: 20,
  lockDuration: 60000,
  asyncResponseTimeout: script.poll_ms,
  interceptors: new BasicAuthInterceptor({ username: script.user, password: script.password }),
});

const events = {
  complete: "completed",
  handleFailure: "failed",
  handleBpmnError: "error",
  extendLock: "extended",
  unlock: "unlocked",
  lock: "locked",
};
for (const [event, did] of Object.entries(events)) {
  client.on(`${event}:success`, (task) => tell(did, task));
  client.on(`${event}:error`, (task, error) => tell("refused", task, { says: `${event}: ${error.message}` }));
}
client.on("poll:error", (error) => tell("refused", null, { says: `poll: ${error.message}` }));
client.on("handler:error", (error) => tell("refused", null, { says: `handler: ${error.stack}` }));

function answer(given) {
  const number = given.get("number");
  if (!Number.isInteger(number)) throw new Error(`number: expected a whole one, found ${number}`);
  if (!(given.get("at") instanceof Date)) throw new Error(`at: expected a date, found ${given.get("at")}`);
  return new Variables()
    .set("square", number * number)
    .set("said", `${given.get("text")}!`)
    .setTyped("half", { type: "double", value: number / 2 })
    .set("not_flag", !given.get("flag"))
    .set("back", given.get("doc"))
    .set("at_back", given.get("at"));
}

const unlocked = new Set();

async function work({ task, taskService }) {
  tell("took", task, { retries: task.retries });
  switch (wayOf[task.topicName]) {
    case "failure":
      if (task.retries === null || task.retries > 1) {
        const retries = task.retries === null ? 2 : task.retries - 1;
        const said = { errorMessage: "no paper", errorDetails: "the printer\nhas none", retries, retryTimeout: 0 };
        return taskService.handleFailure(task, said);
      }
      break;
    case "error":
      return taskService.handleBpmnError(task, "LATE", "too late", new Variables().set("why", "a strike"));
    case "extend":
      await taskService.extendLock(task, 60000);
      await taskService.lock(task, 60000);
      await sleep(script.hold_seconds);
      break;
    case "unlock":
      if (!unlocked.has(task.id)) {
        unlocked.add(task.id);
        return taskService.unlock(task);
      }
      break;
  }
  return taskService.complete(task, answer(task.variables));
}

for (const [way, topic] of Object.entries(script.topics)) {
  client.subscribe(topic, { lockDuration: way === "extend" ? script.lock_ms : 60000 }, work);
}
