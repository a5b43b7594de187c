/** Values that a running server knows, for completion of shells. */
import { homedir } from 'node:os'
import { AdminClient } from '../../../src/cli/admin-client.ts'
import type { Candidate } from '../../../src/cli/completion/typed-line.ts'
import { nameOfNode } from '../../../src/model/proxy.ts'
import { connectionFiles, contextNames } from '../cluster/connection-files.ts'
import { askedPage } from './asked-page.ts'
import { meansCluster, type ServerFlags, serverOf } from './asked-server.ts'

/** How long a person waits for an answer, in milliseconds: of a server, and of one in a cluster, whose connection comes before. */
const limits = { serverMs: 2000, clusterMs: 5000 }

const noFlags: ServerFlags = {
  ...{ address: '', 'token-file': '', 'ca-file': '', json: false },
  ...{ cluster: false, kubeconfig: '', context: '', meshNamespace: 'mesh-system', revision: '', replica: '' },
}

/**
 * Returns the values of a flag or argument of `pilot-discovery` (`Sought.value`) that the server knows which the flags of the line name, or the files
 * of the user. Rejects as {@link AdminClient.asked} does.
 */
export async function valuesOfServer(value: string, given: Readonly<Record<string, string>>): Promise<Candidate[]> {
  if (value === 'context') return contexts(given.kubeconfig ?? given.orchconfig ?? '')
  const flags: ServerFlags = { ...noFlags, ...given, json: false, cluster: 'cluster' in given && given.cluster !== 'false' }
  if (value === 'request path') return pages(flags)
  if (value !== 'namespace' && !value.endsWith(' proxy')) return []
  const place = await serverOf(flags)
  const client = new AdminClient(place, { limitMs: 'forwarded' in place ? limits.clusterMs : limits.serverMs })
  const { proxies } = await client.asked(client.rpcs.listProxies({ namespace: value === 'namespace' ? '' : (given.namespace ?? '') }))
  const words = value === 'namespace' ? proxies.map(({ namespace }) => namespace) : proxies.map(({ nodeId }) => nameOfNode(nodeId))
  return [...new Set(words)].sort().map((word) => ({ word, about: '' }))
}

/** The contexts of the file that is named, or of those that the orchestrator's command line uses. */
async function contexts(file: string): Promise<Candidate[]> {
  const paths = connectionFiles(file, process.env, homedir()) ?? []
  return (await contextNames(paths)).map((word) => ({ word, about: '' }))
}

/** The pages of the server of this machine, or of a replica in a cluster, from the lists of them. */
async function pages(flags: ServerFlags): Promise<Candidate[]> {
  const paths = meansCluster(flags) ? ['/debug'] : ['/', '/debug']
  const lists = await Promise.all(paths.map((path) => askedPage(flags, { method: 'GET', path })))
  const listed = lists.flatMap(({ body }) => [...body.matchAll(/^(\/\S+) +(.*)$/gm)])
  return listed.map(([, word = '', about = '']) => ({ word, about }))
}
