/** Values that a running server knows, for completion of shells. */
import { AdminClient } from '../../../src/cli/admin-client.ts'
import type { Candidate } from '../../../src/cli/completion.ts'
import { nameOfNode } from '../../../src/model/proxy.ts'
import { askServer } from '../../http/admin-request.ts'
import { type ServerFlags, serverOf } from './asked-server.ts'

/** How long a person waits for an answer, in milliseconds. */
const limitMs = 2000

const noFlags: ServerFlags = {
  ...{ address: '', 'token-file': '', 'ca-file': '', json: false },
  ...{ cluster: false, kubeconfig: '', context: '', meshNamespace: 'mesh-system', revision: '', replica: '' },
}

/**
 * Returns the values of a flag or argument of `pilot-discovery` (`Sought.value`) that the server knows which the flags of the line name. Rejects as
 * {@link AdminClient.asked} does.
 */
export async function valuesOfServer(value: string, given: Readonly<Record<string, string>>): Promise<Candidate[]> {
  if (value === 'request path') return pages()
  if (value !== 'namespace' && !value.endsWith(' proxy')) return []
  const client = new AdminClient(await serverOf({ ...noFlags, ...given, json: false }), { limitMs })
  const { proxies } = await client.asked(client.rpcs.listProxies({ namespace: value === 'namespace' ? '' : (given.namespace ?? '') }))
  const words = value === 'namespace' ? proxies.map(({ namespace }) => namespace) : proxies.map(({ nodeId }) => nameOfNode(nodeId))
  return [...new Set(words)].sort().map((word) => ({ word, about: '' }))
}

/** The pages of the server of this machine, from the lists of them. */
async function pages(): Promise<Candidate[]> {
  const [front, debug] = await Promise.all(['/', '/debug'].map((path) => askServer({ method: 'GET', path })))
  const listed = [
    ...(front?.body ?? '').matchAll(/^(\/\S+) +(.*)$/gm),
    ...(debug?.body ?? '').matchAll(/<a href="(\/debug\/[^"]+)">[^<]*<\/a><\/td><td>([^<]*)/g),
  ]
  return listed.map(([, word = '', about = '']) => ({ word, about }))
}
