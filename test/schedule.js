// Which test files run together and in which order: batches, each for a process of its own, the longest first.

/** Seconds after which a batch is full. Files that take longer are a batch of their own. */
const full = 20
/** Seconds of a file without a measured time. */
const assumed = { unit: 1, default: 5 }

/**
 * Divides the files of each layer into batches of about 20 seconds, and returns them with the longest first, so that no process has a long one left when the
 * others are through. `times` are the seconds that files took.
 *
 * @param {readonly { readonly layer: string, readonly files: readonly string[] }[]} layers
 * @param {Readonly<Record<string, number>>} times
 * @returns {{ layer: string, files: string[], seconds: number }[]}
 */
export function batchesOf(layers, times) {
  return layers.flatMap(({ layer, files }) => batchesOfLayer(layer, files, times)).sort((one, other) => other.seconds - one.seconds)
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
 * Runs `work` for each item in the order of the items, at most `slots` at a time.
 *
 * @template T
 * @param {number} slots
 * @param {Iterable<T>} items
 * @param {(item: T) => Promise<void>} work
 */
export async function inSlots(slots, items, work) {
  const queue = [...items]
  const slot = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await work(next)
  }
  await Promise.all(Array.from({ length: slots }, slot))
}
