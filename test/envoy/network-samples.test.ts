/**
 * Samples of what services, rules and gateways of two networks may say of each other (docs/resources.md, E4, G6, V1, V3), with stock Envoys: each network has a
 * workload, which calls and is called, and a gateway. Every endpoint that a caller is sent has to be one that answers.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import fc from 'fast-check'
import { stringify } from 'yaml'
import { freePort } from '../../bench/ports.ts'
import { Agent } from '../harness/agent.ts'
import { call, HttpBackend } from '../harness/backend.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { runs, seed } from '../harness/seed.ts'
import { runCommand, Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const networks = ['n1', 'n2'] as const
type Network = (typeof networks)[number]
const versions = ['v1', 'v2'] as const
type Version = (typeof versions)[number]
/** The namespaces of the services; callers are in the first, gateways in `edge`. */
const namespaceOf = { a: 'shop', b: 'bank' } as const
type Name = keyof typeof namespaceOf
const names = Object.keys(namespaceOf) as Name[]
const hostOf = (name: Name) => `${name}.${namespaceOf[name]}.svc.cluster.local`

interface SampleService {
  readonly exportTo: readonly string[]
  /** Whether its rule, which has the subsets, is for its own namespace alone. */
  readonly hasOwnRule: boolean
  readonly pods: Readonly<Record<Network, readonly Version[]>>
}
interface Sample {
  /** The hosts of the servers of both gateways. */
  readonly served: string
  readonly services: Readonly<Record<Name, SampleService>>
}

const pods = fc.subarray([...versions], { minLength: 0 })
const sampleService = fc.record<SampleService>({
  exportTo: fc.constantFrom<readonly string[]>(['*'], ['*'], ['.'], ['.', 'edge'], ['shop', 'bank']),
  hasOwnRule: fc.boolean(),
  pods: fc.record({ n1: pods, n2: pods }),
})
const samples = fc.record<Sample>({
  served: fc.constantFrom('*.local', 'shop/*', './*', hostOf('a')),
  services: fc.record({ a: sampleService, b: sampleService }),
})

const isSeen = ({ services }: Sample, name: Name, viewer: string) =>
  namespaceOf[name] === viewer || services[name].exportTo.some((each) => each === '*' || each === viewer)
const isRuled = ({ services }: Sample, name: Name, viewer: string) => !services[name].hasOwnRule || namespaceOf[name] === viewer
const isPassedOn = (sample: Sample, name: Name, version: Version | '') =>
  isSeen(sample, name, 'edge') &&
  (sample.served === '*.local' || sample.served === hostOf(name) || (sample.served === 'shop/*' && name === 'a')) &&
  (version === '' || isRuled(sample, name, 'edge'))

/** The workloads that answer calls of a network, as `<network> <version>`. */
function answering(sample: Sample, name: Name, version: Version | '', caller: Network): string[] {
  const reached = networks.filter((network) => network === caller || isPassedOn(sample, name, version))
  return reached.flatMap((network) =>
    sample.services[name].pods[network].flatMap((each) => (version === '' || each === version ? [`${network} ${each}`] : [])),
  )
}

const { version: release, path: binary } = envoyBinaries().at(-1) ?? { version: 'none', path: '' }
const addresses = { n1: { workload: '127.0.0.41', gateway: '127.0.0.42' }, n2: { workload: '127.0.0.43', gateway: '127.0.0.44' } } as const

describe(`samples of two networks, Envoy ${release}`, () => {
  const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '10ms' } })
  const backends = new Map<string, HttpBackend>()
  const agents: Agent[] = []
  const ports: Record<'secure' | 'calls' | 'gateway' | Version, number> = { secure: 0, calls: 0, gateway: 0, v1: 0, v2: 0 }

  before(async () => {
    for (const name of Object.keys(ports) as (keyof typeof ports)[]) ports[name] = await freePort()
    for (const network of networks)
      for (const version of versions) backends.set(`${network} ${version}`, await new HttpBackend(`${network} ${version}`).start())
    const given = Object.fromEntries(
      networks.map((network) => [network, { gateways: [{ registryServiceName: `${network}.edge.svc.cluster.local` }] }]),
    )
    const file = join(service.dir, 'networks')
    writeFileSync(file, stringify({ networks: given }))
    service.flags.push('--secureGRPCAddr', `127.0.0.1:${ports.secure}`)
    service.write('workloads.yaml', workloads())
    write({ served: '*.local', services: { a: nothing, b: nothing } })
    await service.start()
    for (const network of networks) {
      agents.push(agentOf(network, 'sidecar', 'shop', network, addresses[network].workload))
      agents.push(agentOf(network, 'router', 'edge', `gateway-${network}`, addresses[network].gateway))
    }
    await Promise.all(agents.map((agent) => agent.start()))
  })
  after(async () => {
    await Promise.all(agents.map((agent) => agent.dispose()))
    await Promise.all([service.dispose(), ...[...backends.values()].map((backend) => backend.stop())])
  })

  const nothing: SampleService = { exportTo: ['*'], hasOwnRule: false, pods: { n1: [], n2: [] } }

  function agentOf(network: Network, role: 'sidecar' | 'router', namespace: string, name: string, address: string): Agent {
    const proxyMetadata = {
      ...{ POD_NAME: name, POD_NAMESPACE: namespace, SERVICE_ACCOUNT: name, INSTANCE_IP: address, MESH_META_NETWORK: network },
      ...{ MESH_META_INTERCEPTION_MODE: 'NONE', CREDENTIAL_FETCHER_TYPE: 'meshd' },
    }
    const env = { MESHD_ADMIN_SOCKET: service.env.MESHD_ADMIN_SOCKET as string, TERMINATION_DRAIN_DURATION_SECONDS: '1' }
    const agent = new Agent({ binary, role, proxyConfig: { discoveryAddress: `localhost:${ports.secure}`, proxyMetadata }, env })
    agent.write('etc/mesh/pod/labels', `app="${name}"\nrole="${role}"`)
    return agent
  }

  const networking = (kind: string, namespace: string, name: string, spec: object) =>
    stringify({ apiVersion: 'networking.mesh.io/v1', kind, metadata: { namespace, name }, spec })

  /** The Sidecars of the workloads, which listen for calls of their own application and of others. */
  function workloads(): string {
    return networks
      .flatMap((network) => {
        const { workload, gateway } = addresses[network]
        const ingress = versions.map((version) => ({
          ...{ port: { number: ports[version], protocol: 'HTTP', name: version }, bind: workload, captureMode: 'NONE' },
          defaultEndpoint: `127.0.0.1:${backends.get(`${network} ${version}`)?.port}`,
        }))
        const egress = [{ port: { number: ports.calls, protocol: 'HTTP', name: 'http' }, bind: workload, captureMode: 'NONE', hosts: ['*/*'] }]
        const port = { number: 15_443, name: 'tls', protocol: 'TLS' }
        return [
          networking('Sidecar', 'shop', network, { workloadSelector: { labels: { app: network } }, ingress, egress }),
          networking('ServiceEntry', 'edge', network, {
            ...{ hosts: [`${network}.edge.svc.cluster.local`], exportTo: ['.'], location: 'MESH_INTERNAL', resolution: 'STATIC', ports: [port] },
            endpoints: [{ address: gateway, ports: { tls: ports.gateway }, labels: { app: `gateway-${network}`, role: 'router' } }],
          }),
        ]
      })
      .join('---\n')
  }

  /** Writes a sample: services with their rules and routes, and what the gateways serve. */
  function write({ served, services }: Sample): void {
    const gateways = networks.map((network) =>
      networking('Gateway', 'edge', network, {
        selector: { app: `gateway-${network}` },
        servers: [
          {
            port: { number: 15_443, targetPort: ports.gateway, name: 'tls', protocol: 'TLS' },
            ...{ bind: addresses[network].gateway, hosts: [served], tls: { mode: 'AUTO_PASSTHROUGH' } },
          },
        ],
      }),
    )
    const documents = names.flatMap((name) => {
      const { exportTo, hasOwnRule, pods: there } = services[name]
      const host = hostOf(name)
      const endpoints = networks.flatMap((network) =>
        there[network].map((version) => ({
          ...{ address: addresses[network].workload, network, ports: { http: ports[version] } },
          labels: { version, 'security.mesh.io/tlsMode': 'mesh' },
        })),
      )
      const to = (version: Version | '') => [{ destination: { host, ...(version && { subset: version }) } }]
      const http = [
        ...versions.map((version) => ({ match: [{ headers: { v: { exact: version } } }], route: to(version), retries: { attempts: 0 } })),
        { route: to(''), retries: { attempts: 0 } },
      ]
      return [
        networking('ServiceEntry', namespaceOf[name], name, {
          ...{ hosts: [host], exportTo, location: 'MESH_INTERNAL', resolution: 'STATIC', endpoints },
          ports: [{ number: ports.calls, name: 'http', protocol: 'HTTP' }],
        }),
        networking('DestinationRule', namespaceOf[name], name, {
          ...{ host, exportTo: [hasOwnRule ? '.' : '*'] },
          subsets: versions.map((version) => ({ name: version, labels: { version } })),
        }),
        networking('VirtualService', 'shop', name, { hosts: [host], http }),
      ]
    })
    service.write('sample.yaml', [...gateways, ...documents].join('---\n'))
  }

  /** Asks a service so many times that each of its endpoints has its turn. Returns the answers: who it was, or the status. */
  async function asked(caller: Network, name: Name, version: Version | ''): Promise<string[]> {
    const options = { host: hostOf(name), ...(version && { headers: { v: version } }) }
    const answers: string[] = []
    for (let at = 0; at < 8; at++) {
      const { status, body } = await call(addresses[caller].workload, ports.calls, '/', options)
      answers.push(status === 200 ? body : String(status))
    }
    return answers
  }

  /** What is wrong with the answers to the calls of a service; undefined: each network that has to answer does, and nobody else. */
  async function fault(sample: Sample, caller: Network, name: Name, version: Version | ''): Promise<string | undefined> {
    const wanted = answering(sample, name, version, caller)
    const seen = [...new Set(await asked(caller, name, version))].sort()
    // A connection through a gateway stays with the workload that it was led to.
    const isWhole = wanted.every((each) => seen.some((answer) => answer.slice(0, 2) === each.slice(0, 2)))
    const isRight = wanted.length === 0 ? seen.join() === '503' : isWhole && seen.every((answer) => wanted.includes(answer))
    return isRight ? undefined : `${caller} ${name} ${version}: ${seen.join(', ')} instead of ${wanted.join(', ')}`
  }

  it('lead every call to an endpoint that answers it, and to all networks that it may go to', async () => {
    for (const sample of fc.sample(samples, { seed, numRuns: runs(40) })) {
      write(sample)
      for (const caller of networks)
        for (const name of names) {
          if (!isSeen(sample, name, 'shop')) continue
          for (const version of isRuled(sample, name, 'shop') ? (['', ...versions] as const) : ([''] as const)) {
            let found: string | undefined
            const isRight = async () => (found = await fault(sample, caller, name, version)) === undefined
            await until(`the answers, and not ${JSON.stringify(sample)}`, isRight).catch((error: Error) => {
              throw new Error(`${found}: ${error.message}`)
            })
          }
        }
    }
    expect(await service.rejections()).to.deep.equal([])
  })

  it('are explained where there is no endpoint: which service, and why its network is not reached', async () => {
    const far: SampleService = { exportTo: ['.'], hasOwnRule: false, pods: { n1: ['v1'], n2: [] } }
    write({ served: '*.local', services: { a: far, b: nothing } })
    await until('the change', async () => (await asked('n2', 'a', '')).every((answer) => answer === '503'))
    const { stdout } = await runCommand(['explain', 'n2.shop', `http://${hostOf('a')}:${ports.calls}/`], service.env)
    expect(stdout.split('\n')[1]).to.match(/^FAILS: .*their namespace edge does not see it \(exportTo\)/)
  })
})
