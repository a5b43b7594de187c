/** Finds ServiceEntries whose connections cannot be told apart, and ports whose protocol is not known. */
import type { ConfigObject } from '../../protocols/data.ts'
import type { ServiceEntrySpec } from '../config/kinds/service-entry.ts'
import { suggestion } from '../model/edit-distance.ts'
import { isHttp, isOpaqueTls, selectProtocol } from '../model/protocol.ts'
import type { Tell } from './finding.ts'

const protocols = ['HTTP', 'HTTPS', 'HTTP2', 'GRPC', 'GRPC-Web', 'TLS', 'TCP', 'UDP', 'MONGO', 'REDIS', 'MYSQL']

/** Tells what is wrong with a ServiceEntry. */
export function analyzeServiceEntry({ spec }: ConfigObject<ServiceEntrySpec>, tell: Tell): void {
  for (const [index, { number, name, protocol }] of (spec.ports ?? []).entries()) {
    const at = `spec.ports[${index}]`
    if (protocol && selectProtocol(protocol, '', 0) === 'unknown')
      tell(
        'IST0133',
        `${at}.protocol`,
        `${JSON.stringify(protocol)} is no protocol, so that of the port's name counts${suggestion(protocol.toUpperCase(), protocols)}`,
      )
    const effective = selectProtocol(protocol, name, number)
    if (!spec.addresses?.length && !isHttp(effective) && !isOpaqueTls(effective) && effective !== 'unknown' && effective !== 'udp')
      tell(
        'IST0134',
        'spec.addresses',
        `connections to port ${number} (${effective}) name no host: without addresses those of all such services are one`,
      )
  }
}
