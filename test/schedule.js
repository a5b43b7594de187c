// Which test files run together and in which order: batches, each for a process of its own, the longest first.

/** Seconds after which a batch is full. Files that take longer are a batch of their own. */
const full = 30
/** The layer whose files start a cluster each. */
const withClusters = 'orchestrator'
/** Seconds of a file without a measured time. */
const assumed = { unit: 1, default: 5 }

/**
 * Divides the files of each layer into batches of about 30 seconds, and returns them with the longest first, so that no process has a long one left when the
 * others are through. Those of the layer with clusters take turns with the others: a cluster is ten processes. `times` are the seconds that files took.
 *
 * @param {readonly { readonly layer: string, readonly files: readonly string[] }[]} layers
 * @param {Readonly<Record<string, number>>} times
 * @returns {{ layer: string, files: string[], seconds: number }[]}
 */
export function batchesOf(layers, times) {
  const sorted = layers.flatMap(({ layer, files }) => batchesOfLayer(layer, files, times)).sort((one, other) => other.seconds - one.seconds)
  const [costly, others] = [true, false].map((isCostly) => sorted.filter(({ layer }) => (layer === withClusters) === isCostly))
  return Array.from({ length: Math.max(costly.length, others.length) }, (_, index) => [costly[index], others[index]])
    .flat()
    .filter((batch) => batch !== undefined)
}

function batchesOfLayer(layer, files, times) {
  const batches = []
  const timed = files.map((file) => ({ file, seconds: times[file] ?? assumed[layer] ?? assumed.default }))
  for (const { file, seconds } of timed.sort((one, other) => other.seconds - one.seconds)) {
    let batch = batches.find((known) => known.seconds + seconds <= full)
    if (!batch) batches.push((batch = { layer, files: [], seconds: 0 }))
    batch.files.push(file)
    batch.seconds += seconds
  }
  return batches
}

/**
 * Runs `work` for each item in the order of the items, `slots` at a time, and more while there is room for them: every `everyMs` milliseconds one more is
 * begun if `hasRoom`, up to `most` at a time. It gives its place back at its end.
 *
 * @template T
 * @param {number} slots
 * @param {Iterable<T>} items
 * @param {(item: T) => Promise<void>} work
 * @param {{ most: number, everyMs: number, hasRoom: () => boolean }} [more]
 */
export async function inSlots(slots, items, work, more = { most: slots, everyMs: 1000, hasRoom: () => false }) {
  const queue = [...items]
  let running = 0
  const one = async () => {
    const item = /** @type {T} */ (queue.shift())
    running++
    await work(item).finally(() => running--)
  }
  const slot = async () => {
    while (queue.length > 0) await one()
  }
  /** @type {Promise<void>[]} */
  const added = []
  const timer = setInterval(() => {
    // Asked each time, since the answer is about the time since it was asked last.
    if (!more.hasRoom() || queue.length === 0 || running >= more.most) return
    added.push(one())
    // Awaited below; until then a failure is no unhandled one.
    added.at(-1)?.catch(() => undefined)
  }, more.everyMs)
  try {
    await Promise.all(Array.from({ length: slots }, slot))
    await Promise.all(added)
  } finally {
    clearInterval(timer)
  }
}

/**
 * Returns a function that says whether at least `share` of the processors' time has been idle since it was called last.
 *
 * @param {number} share
 * @param {() => readonly { readonly times: Readonly<Record<string, number>> }[]} processors
 */
export function idleFor(share, processors) {
  const sum = () => {
    let [idle, all] = [0, 0]
    for (const { times } of processors()) {
      idle += times.idle ?? 0
      for (const time of Object.values(times)) all += time
    }
    return { idle, all }
  }
  let before = sum()
  return () => {
    const now = sum()
    const [idle, all] = [now.idle - before.idle, now.all - before.all]
    before = now
    return all > 0 && idle >= share * all
  }
}
