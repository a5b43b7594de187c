/** `pilot-agent wait`: blocks until the proxy is ready. */
import type { WaitSettings } from '../../../protocols/messages/agent-options.ts'
import type { LogOptions } from '../../../src/logging/levels.ts'
import { reasonOf, send, within } from '../../http/single-request.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { openLog } from '../../runtime/log.ts'
import { pause } from '../../runtime/timers.ts'

/**
 * Requests the URL until it responds with status 200. Rejects after the timeout with an Error that gives the reason of the last failure.
 */
export async function waitUntilReady({ url, periodMs, requestTimeoutMs, timeoutMs }: WaitSettings, options: LogOptions): Promise<void> {
  const opened = openLog(options)
  const log = opened.log('default')
  const seconds = timeoutMs / 1000
  log.info(`waiting for the proxy to be ready, at most ${seconds} s`)
  const deadline = monotonicMs() + timeoutMs
  let failure: string | undefined = 'no request was made'
  while (failure !== undefined && monotonicMs() < deadline) {
    failure = await attempt(url, requestTimeoutMs)
    if (failure === undefined) break
    log.debug(`not ready yet: ${failure}`)
    await pause(Math.min(periodMs, deadline - monotonicMs()))
  }
  if (failure === undefined) log.info('the proxy is ready')
  await opened.flush()
  if (failure !== undefined) throw new Error(`the proxy is not ready after ${seconds} s: ${failure}`)
}

/** Loads the client for TLS, which commands without it do not need. */
async function secureClient(url: URL) {
  const { addressOf, httpsClient } = await import('../../http/tls-client.ts')
  return httpsClient(addressOf(url))
}

/** Sends one request. Resolves with the reason when it does not respond with status 200, and with undefined when it does. */
async function attempt(url: string, timeoutMs: number): Promise<string | undefined> {
  try {
    const to = new URL(url)
    const client = to.protocol === 'https:' ? await secureClient(to) : {}
    const response = await within(timeoutMs, undefined, (signal) => send({ url: to, ...client }, signal))
    response.destroy()
    return response.statusCode === 200 ? undefined : `${url} answered with status ${response.statusCode}`
  } catch (error) {
    return `${url}: ${reasonOf(error)}`
  }
}
