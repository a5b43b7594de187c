/** `pilot-agent request`: sends one request to the proxy's admin port. */
import type { ProxyRequest } from '../../../protocols/messages/agent-options.ts'
import type { Candidate } from '../../../src/cli/completion/typed-line.ts'
import { meshConfigPath } from '../../../src/cli/defaults.ts'
import { callLocal, type LocalAnswer } from '../../http/local-call.ts'
import { proxyAdminPort } from '../bootstrap/prepare-proxy.ts'

/** The timeout of the request, in milliseconds. */
const timeoutMs = 60_000
/**
 * A logger that discards everything: the agent itself has logged faults of the settings, and standard output is reserved for the response.
 */
const silent = { debug() {}, info() {}, warn() {}, error() {} }

/** Sends the request and resolves with the response. Rejects with an Error that names the port when there is no response. */
export async function askProxy(request: ProxyRequest): Promise<LocalAnswer> {
  const port = await proxyAdminPort(meshConfigPath, process.env, silent)
  return callLocal({ ...request, port }, timeoutMs)
}

/** Returns the pages of the proxy's admin port, from its list of them. Rejects when there is no response. */
export async function pagesOfProxy(): Promise<Candidate[]> {
  const { body } = await askProxy({ method: 'GET', path: '/help', body: undefined })
  return [...body.matchAll(/^ {2}(\/\w+)(?:\([^)]*\))?: (.*)$/gm)].map(([, word = '', about = '']) => ({ word, about }))
}
