/** The flags of `pilot-discovery bootstrap`, and what it prints. */
import { string } from '@oclif/core/args'
import { stringify } from 'yaml'
import { bareBootstrap } from '../bootstrap/bare.ts'
import { type FlagValues, list, text, toggle, uint16 } from './flags.ts'
import { print, printJson } from './print.ts'

/** The flags. */
export const bootstrapFlags = {
  role: text({ value: 'sidecar|router', default: 'sidecar', description: 'router for a gateway, or sidecar' }),
  ip: text({ default: '127.0.0.1', description: 'address of the proxy' }),
  domain: text({ default: 'cluster.local', description: 'DNS domain of the mesh' }),
  label: list({ default: [], description: 'label of the proxy that selectors see, <key>=<value>; may be repeated' }),
  discovery: text({ default: '127.0.0.1:15010', description: '<host>:<port> of --grpcAddr of the control plane, which is asked in plain text' }),
  'admin-port': uint16({ default: 15_000, range: [1, 65_535], description: "port of Envoy's admin interface on 127.0.0.1" }),
  json: toggle({ description: 'prints JSON in place of YAML, and errors too' }),
}

/** The argument that names the proxy. */
export const bareProxyArgument = string({ description: '<name>.<namespace> of the proxy', required: true, ignoreStdin: true })

/** Prints the bootstrap of a proxy. */
export function printBootstrap(flags: FlagValues<typeof bootstrapFlags>, name: string): void {
  const { role, ip: address, domain, label: labels, discovery, 'admin-port': adminPort } = flags
  const bootstrap = bareBootstrap({ role, address, name, domain, labels, discovery, adminPort })
  if (flags.json) printJson(bootstrap)
  else print(stringify(bootstrap).trimEnd())
}
