/**
 * An application of a pod that calls services all the time: `steady-client.ts URL...`. It writes a line of JSON for each failed call, and one
 * each half second with its counts: calls under way are in neither, and calls before the first one that succeeds are not counted. SIGTERM ends it.
 */
import { request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'

/** The counts of the calls of a URL. `last`: what the last one that succeeded had as its answer. */
export interface CallCounts {
  readonly url: string
  succeeded: number
  failed: number
  last: unknown
}

/** A call that failed. */
export interface FailedCall {
  readonly failed: string
  readonly at: string
  readonly afterMs: number
  readonly status: number
  readonly text: string
}

/** The pause between two calls, and how long one may take, in ms. */
const [pauseMs, longestMs] = [20, 15_000]

/** Calls a URL on a connection of its own. Never rejects. */
function call(url: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve) => {
    const sent = request(url, { agent: false, timeout: longestMs }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part) => (text += part))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
      response.on('error', (error) => resolve({ status: 0, text: `the answer broke: ${error.message}` }))
    })
    sent.on('timeout', () => sent.destroy(new Error(`no answer within ${longestMs} ms`)))
    sent.on('error', (error) => resolve({ status: 0, text: error.message }))
    sent.end()
  })
}

async function callForEver(counts: CallCounts): Promise<never> {
  for (;;) {
    const began = performance.now()
    const { status, text } = await call(counts.url)
    if (status === 200) {
      counts.succeeded++
      counts.last = JSON.parse(text)
    } else if (counts.succeeded > 0) {
      counts.failed++
      const afterMs = Math.round(performance.now() - began)
      const failure: FailedCall = { failed: counts.url, at: new Date().toISOString(), afterMs, status, text: text.slice(0, 300) }
      console.log(JSON.stringify(failure))
    }
    await pause(pauseMs)
  }
}

const all = process.argv.slice(2).map((url): CallCounts => ({ url, succeeded: 0, failed: 0, last: undefined }))
process.on('SIGTERM', () => process.exit(0))
for (const counts of all) void callForEver(counts)
setInterval(() => console.log(JSON.stringify({ counts: all })), 500)
