/** Finds Gateways whose certificates are not there. */
import type { ConfigObject } from '../../protocols/data.ts'
import type { GatewaySpec } from '../config/kinds/gateway.ts'
import { suggestion } from '../model/edit-distance.ts'
import type { Tell } from './finding.ts'
import type { World } from './world.ts'

/** Tells what is wrong with a Gateway. */
export function analyzeGateway({ namespace, spec }: ConfigObject<GatewaySpec>, { secrets }: World, tell: Tell): void {
  if (!secrets) return
  const own = [...secrets].filter((path) => path.startsWith(`${namespace}/`)).map((path) => path.slice(namespace.length + 1))
  const check = (at: string, name: string) => {
    if (secrets.has(`${namespace}/${name}`)) return
    tell('IST0101', at, `there is no Secret ${name} in the namespace ${namespace}, so the server takes no connections${suggestion(name, own)}`)
  }
  for (const [index, { tls }] of spec.servers.entries()) {
    const at = `spec.servers[${index}].tls`
    if (tls?.credentialName) check(`${at}.credentialName`, tls.credentialName)
    for (const [number, name] of (tls?.credentialNames ?? []).entries()) check(`${at}.credentialNames[${number}]`, name)
  }
}
