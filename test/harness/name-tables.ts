/** Name tables as discovery sends them, by the message library. */
import { create, toBinary } from '@bufbuild/protobuf'
import { NameTableSchema } from '../../protocols/gen/mesh/networking/nds/v1/nds_pb.js'

/** What is told of a host; of a service of an orchestrator its name and namespace. */
export interface TestHost {
  readonly ips: readonly string[]
  readonly registry?: string
  readonly shortname?: string
  readonly namespace?: string
}

/** The bytes of a table. */
export function nameTableOf(hosts: Readonly<Record<string, TestHost>>): Uint8Array {
  const table = Object.fromEntries(
    Object.entries(hosts).map(([host, { ips, registry = 'ServiceEntry', shortname = '', namespace = '' }]) => [
      host,
      { ips: [...ips], registry, shortname, namespace },
    ]),
  )
  return toBinary(NameTableSchema, create(NameTableSchema, { table }))
}

/** A service of an orchestrator. */
export const orchestrated = (shortname: string, namespace: string, ...ips: string[]): TestHost => ({
  ips,
  registry: 'Orchestrator',
  shortname,
  namespace,
})
