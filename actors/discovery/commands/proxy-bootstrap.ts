/** `pilot-discovery proxy-config bootstrap`: what the Envoy of a proxy was started with. */
import { stringify } from 'yaml'
import { print, printJson } from '../../../src/cli/print.ts'
import { printable } from '../../../src/logging/layout.ts'
import { redacted } from '../../../src/logging/redaction.ts'
import { nameOfNode } from '../../../src/model/proxy.ts'
import { nodeType } from '../../../src/xds/type-urls.ts'
import type { ServerFlags } from './asked-server.ts'
import { envoyBootstrap } from './envoy-admin.ts'
import { checkEnvoy } from './envoy-comparison.ts'
import { sentResources } from './proxy-config.ts'

/** The flags of the command. */
interface Flags extends ServerFlags {
  /** The admin interface of the proxy's Envoy; empty: it is not asked. */
  readonly envoy: string
}

/** Prints the bootstrap that an Envoy has, or the node in it, which is what the control plane was told. */
export async function proxyBootstrap(flags: Flags, proxy: string): Promise<void> {
  const { nodeId, resources } = await sentResources(flags, proxy, [nodeType])
  const name = nameOfNode(nodeId)
  const isWhole = flags.envoy !== ''
  const bootstrap = redacted(isWhole ? await heldBootstrap(flags.envoy, nodeId) : { node: toldNode(resources[0]?.resource) })
  if (flags.json) return printJson({ proxy: name, isWhole, bootstrap })
  const about = isWhole
    ? [`The bootstrap of ${name}, as its Envoy has it.`]
    : [
        `The node of ${name}, as it told the control plane, which knows no other part of its bootstrap.`,
        'Its agent made the rest, or whoever started it: --envoy <host>:<port> shows all that its Envoy has,',
        '`pilot-discovery bootstrap` prints what an Envoy without an agent is started with.',
      ]
  print(printable(`${about.map((line) => `# ${line}\n`).join('')}${stringify(bootstrap, { lineWidth: 0 }).trimEnd()}`))
}

async function heldBootstrap(address: string, nodeId: string): Promise<object> {
  const held = await envoyBootstrap(address)
  checkEnvoy(address, held.nodeId, nodeId)
  return held.bootstrap
}

function toldNode(resource: object | undefined): object {
  if (!resource) throw new Error('the server does not tell the nodes of proxies: it is of an older release, or the proxy has just left')
  return Object.fromEntries(Object.entries(resource).filter(([field]) => field !== '@type'))
}
