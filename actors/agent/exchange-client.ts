/** Sends the requests of a token exchange, with limits on time, size and attempts. */
import { type Pauses, pauseAfter } from '../../src/model/back-off.ts'
import type { ExchangeRequest } from '../../src/sts/cloud-exchange.ts'
import { boundedBody } from '../http/bounded-body.ts'
import type { OutgoingRequests } from '../http/outgoing-metrics.ts'
import { send, within } from '../http/single-request.ts'
import { addressOf, httpsClient } from '../http/tls-client.ts'
import type { ScopedLogger } from '../runtime/logger.ts'
import { pause } from '../runtime/timers.ts'

/** The limits of one exchange: timeout of an attempt in milliseconds, attempts, bytes of a response. */
const limits = { ms: 5000, tries: 5, answerBytes: 65_536 }
/** The delays between attempts. */
const pauses: Pauses = { firstMs: 10, longestMs: 10 }

/** A response with a 4xx status. It is not retried, because the server would refuse again. */
class Refusal extends Error {}

/**
 * Sends a request, with retries; each attempt is a debug line. Resolves with the body of the response. Rejects with a reason that contains
 * neither tokens nor text of the server, and when `unwanted` is aborted.
 */
export async function exchange(request: ExchangeRequest, calls: OutgoingRequests, log: ScopedLogger, unwanted: AbortSignal): Promise<string> {
  const { host } = new URL(request.url)
  for (let attempt = 1; ; attempt++) {
    const ended = calls.started(attempt > 1)
    try {
      const body = await post(request, unwanted)
      ended(true)
      log.debug(`${host} answered attempt ${attempt} of ${limits.tries}`)
      return body
    } catch (error) {
      ended(false)
      const { message } = error as Error
      log.debug(`attempt ${attempt} of ${limits.tries} at ${host} failed: ${message}`)
      if (error instanceof Refusal || attempt === limits.tries || unwanted.aborted) throw new Error(`${host}: ${message}`)
      await pause(pauseAfter(attempt, pauses))
    }
  }
}

function post({ url, bearer, body }: ExchangeRequest, unwanted: AbortSignal): Promise<string> {
  const to = new URL(url)
  const headers = { 'content-type': 'application/json', ...(bearer === '' ? {} : { authorization: `Bearer ${bearer}` }) }
  return within(limits.ms, unwanted, async (signal) => {
    const client = to.protocol === 'https:' ? await httpsClient(addressOf(to)) : {}
    const response = await send({ url: to, method: 'POST', headers, body, ...client }, signal)
    const status = response.statusCode ?? 0
    if (status === 200) return boundedBody(response, limits.answerBytes)
    response.destroy()
    throw status >= 400 && status < 500 ? new Refusal(`HTTP status ${status}`) : new Error(`HTTP status ${status}`)
  })
}
