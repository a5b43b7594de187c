/**
 * Runs the agent's DNS server in a process of its own, with a table of as many hosts as its argument says. Driven by
 * bench/scenarios/names.ts.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create, toBinary } from '@bufbuild/protobuf'
import { actor } from '../actors/agent/dns/dns-server.ts'
import { createLogger } from '../actors/runtime/logger.ts'
import { MetricRegistry } from '../actors/runtime/metrics.ts'
import { NameTableSchema } from '../protocols/gen/mesh/networking/nds/v1/nds_pb.js'
import { freePort } from './ports.ts'

const dir = mkdtempSync(join(tmpdir(), 'mesh-bench-dns-'))
const resolvConf = join(dir, 'resolv.conf')
writeFileSync(resolvConf, 'search ns-0.svc.cluster.local\n')
process.on('exit', () => rmSync(dir, { recursive: true, force: true }))
const off = { fallback: 'none', scopes: {} } as const
const server = await actor.start({
  name: 'dns',
  config: {
    address: `127.0.0.1:${await freePort()}`,
    resolvConf,
    serverPort: 53,
    domain: 'ns-0.svc.cluster.local',
    namespace: 'ns-0',
    keptIn: undefined,
  },
  log: createLogger({ output: off, stackTrace: off, callers: [] }, () => undefined),
  metrics: new MetricRegistry(),
  note: () => undefined,
  ask: () => Promise.reject(new Error('nobody answers')),
  askFor: () => Promise.reject(new Error('nobody answers')),
})
const hosts = Number(process.argv[2])
const entry = (index: number) => ({
  ips: [`10.0.${index >> 8}.${index & 255}`],
  registry: 'Orchestrator',
  shortname: `svc-${index}`,
  namespace: 'ns-0',
})
const table = Object.fromEntries(Array.from({ length: hosts }, (_, index) => [`svc-${index}.ns-0.svc.cluster.local`, entry(index)]))
const relay = { name: 'relay', kind: 'relay', tell: () => undefined, replay: () => ({ finish: () => undefined }) }
server.receive({ type: 'NameTableChanged', table: toBinary(NameTableSchema, create(NameTableSchema, { table })) }, relay)
const { addresses } = (server.asks as { state: () => { addresses: string[] } }).state()
process.send?.({ type: 'port', port: Number(addresses[0]?.split(':').at(-1)) })
process.on('disconnect', () => process.exit(0))
