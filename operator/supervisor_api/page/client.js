// The management API in the name of whoever signed in. The token lives here, in memory, and nowhere else.
import { setClock } from "./dom.js";
import { readFrames } from "./words.js";

const SILENCE = 40_000;

/** A refusal in the API's own words. */
export class Refusal extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `status ${status}`);
    this.status = status;
    this.fix = problem.fix || "";
  }
}

export class Client {
  #token;

  constructor(token) {
    this.#token = token;
  }

  async get(path) {
    return (await this.#ask("GET", path)).json();
  }

  async text(path) {
    return (await this.#ask("GET", path)).text();
  }

  async post(path) {
    return (await this.#ask("POST", path)).json();
  }

  /** Hand over each message until the stream ends; silence is an end too. */
  async stream(path, after, take, signal) {
    const ending = new AbortController();
    const end = () => ending.abort();
    signal.addEventListener("abort", end);
    let patience = setTimeout(end, SILENCE);
    try {
      const answer = await this.#ask("GET", path, { "Last-Event-ID": after }, ending.signal);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ""; ;) {
        const { value, done } = await reader.read();
        if (done) return;
        clearTimeout(patience);
        patience = setTimeout(end, SILENCE);
        const { frames, rest } = readFrames(text + value);
        text = rest;
        for (const frame of frames) take(frame.event, frame.id, JSON.parse(frame.data));
      }
    } finally {
      clearTimeout(patience);
      signal.removeEventListener("abort", end);
      ending.abort();
    }
  }

  async #ask(method, path, headers = {}, signal = undefined) {
    const answer = await fetch(`/api/v1${path}`, {
      method,
      signal,
      headers: { Authorization: `Bearer ${this.#token}`, ...headers },
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
    });
    setClock(Date.parse(answer.headers.get("Date")));
    if (answer.ok) return answer;
    const words = await answer.json().catch(() => ({}));
    throw new Refusal(answer.status, words);
  }
}

const REST = [500, 1000, 2000, 4000, 8000];
const pause = (time, signal) => new Promise((resolve) => {
  const timer = setTimeout(resolve, time);
  signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); });
});

/** Keep the fleet as it is: a snapshot, then what changes; after a gap a snapshot again. */
export async function follow(client, namespace, fleet, tell, signal) {
  const scope = namespace ? `?namespace=${encodeURIComponent(namespace)}` : "";
  let place = null;
  let tries = 0;
  while (!signal.aborted) {
    try {
      if (place === null) {
        const snapshot = await client.get(`/snapshot${scope}`);
        if (signal.aborted) return;
        fleet.replace(snapshot);
        place = snapshot.eventId;
        tell.filled();
      }
      await client.stream(`/events${scope}`, place, (kind, id, data) => {
        if (signal.aborted) return;
        tries = 0;
        if (kind === "gap") place = null;
        else place = id;
        if (kind === "ready") tell.live();
        if (data.supervisor) tell.changed(fleet.apply(data));
      }, signal);
      if (place === null) continue;
      throw new Error("the stream ended");
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refusal && [401, 403, 422].includes(error.status)) {
        tell.refused(error);
        return;
      }
      tell.lost(error);
      await pause(REST[Math.min(tries++, REST.length - 1)], signal);
    }
  }
}
