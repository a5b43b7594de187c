/**
 * Asks webhooks as an API server does: over TLS, on connections that stay open, at a steady rate, whatever the answers take. Waits for a line on
 * standard input, `<seconds>`, asks for so long, and prints the milliseconds of each answer from the moment at which it was due, as JSON. A
 * pod without a patch, and a status other than 200, end the process.
 */
import { Agent, request } from 'node:https'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { type Admission, admissions } from './admissions.ts'

const [port = 0, perSecond = 50] = process.argv.slice(2).map(Number)
const agent = new Agent({ keepAlive: true, maxSockets: 25, rejectUnauthorized: false })
const intervalMs = 1000 / perSecond
/** So many that no two of a second are the same. */
const reviews = admissions(200)

/** Resolves with the size of the answer. */
function ask({ path, body }: Admission): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), accept: 'application/json' }
    const outgoing = request({ host: '127.0.0.1', port, path, method: 'POST', agent, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (text += chunk))
      response.on('error', reject)
      response.on('end', () => {
        const isWhole = response.statusCode === 200 && text.includes('"allowed":true') && (!path.startsWith('/inject') || text.includes('"patch":'))
        if (isWhole) resolve(text.length)
        else reject(new Error(`${path}: ${response.statusCode} ${text.slice(0, 500)}`))
      })
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

async function run(seconds: number): Promise<void> {
  const times: number[] = []
  const asked: Promise<void>[] = []
  let bytes = 0
  let began = performance.now()
  for (let index = 0; index < seconds * perSecond; index++) {
    const due = began + index * intervalMs
    const wait = due - performance.now()
    if (wait > 0) await pause(wait)
    // A timer that fires late is the client's delay, not that of the answer. After a long one, reviews are due as much later, and not many at once.
    const from = Math.max(due, performance.now())
    if (from - due > intervalMs) began += from - due
    asked.push(
      ask(reviews[index % reviews.length] as Admission).then((size) => {
        times.push(performance.now() - from)
        bytes += size
      }),
    )
  }
  await Promise.all(asked)
  process.stdout.write(`${JSON.stringify({ times: times.sort((one, other) => one - other), bytes })}\n`)
}

for await (const line of createInterface({ input: process.stdin })) await run(Number(line))
