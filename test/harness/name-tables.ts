/** Name tables as discovery sends them, encoded with the message library. */
import { create, toBinary } from '@bufbuild/protobuf'
import { NameTableSchema } from '../../protocols/gen/mesh/networking/nds/v1/nds_pb.js'

/** A host of a table. `shortname` and `namespace` are set for services of an orchestrator. */
export interface TestHost {
  readonly ips: readonly string[]
  readonly registry?: string
  readonly shortname?: string
  readonly namespace?: string
}

/** Encodes a table. */
export function nameTableOf(hosts: Readonly<Record<string, TestHost>>): Uint8Array {
  const table = Object.fromEntries(
    Object.entries(hosts).map(([host, { ips, registry = 'ServiceEntry', shortname = '', namespace = '' }]) => [
      host,
      { ips: [...ips], registry, shortname, namespace },
    ]),
  )
  return toBinary(NameTableSchema, create(NameTableSchema, { table }))
}

/** A host that is a service of an orchestrator. */
export const orchestrated = (shortname: string, namespace: string, ...ips: string[]): TestHost => ({
  ips,
  registry: 'Orchestrator',
  shortname,
  namespace,
})
