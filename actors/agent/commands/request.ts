/** `pilot-agent request`: one request to the admin port of the proxy. */
import type { ProxyRequest } from '../../../protocols/messages/agent-options.ts'
import { proxyFlags } from '../../../src/cli/agent-flags.ts'
import { callLocal, type LocalAnswer } from '../../http/local-call.ts'
import { proxyAdminPort } from '../bootstrap/prepare-proxy.ts'

/** Longest time for an answer, in milliseconds. */
const timeoutMs = 60_000
/** The agent itself has told what is wrong with its settings; standard output is for the answer. */
const silent = { debug() {}, info() {}, warn() {}, error() {} }

/** Asks the proxy. Rejects with an Error that names the port when there is no answer. */
export async function askProxy(request: ProxyRequest): Promise<LocalAnswer> {
  const port = await proxyAdminPort(proxyFlags.meshConfig.default, process.env, silent)
  return callLocal({ ...request, port }, timeoutMs)
}
