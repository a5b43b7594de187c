/** Discovery follows a real cluster: what happens there reaches the streams of proxies (docs/resources.md, O6 to O9; docs/operation.md, C1 to C6). */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { fromBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { ApiSession } from '../../actors/discovery/cluster/api-session.ts'
import { ClusterConnection } from '../../actors/discovery/cluster/cluster-connection.ts'
import { registryResources } from '../../actors/discovery/sources/orchestrator/registry-part.ts'
import type { ScopedLogger } from '../../actors/runtime/logger.ts'
import { ClusterLoadAssignmentSchema } from '../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { meshNames } from '../../src/names/mesh-names.ts'
import { acceptedTypes, formatOf } from '../../src/orchestrator/object-format.ts'
import { cut, type FollowedKind } from '../../src/orchestrator/objects.ts'
import type { MessageFields } from '../../src/orchestrator/protobuf-messages.ts'
import { clusterType, endpointType } from '../../src/xds/type-urls.ts'
import { TestCluster } from '../harness/cluster.ts'
import { discoveryScript } from '../harness/commands.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { HostileRelay } from '../harness/hostile-relay.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const deployment = (name: string, replicas: number) => `apiVersion: apps/v1
kind: Deployment
metadata: {name: ${name}, namespace: shop}
spec:
  replicas: ${replicas}
  selector: {matchLabels: {app: ${name}}}
  template:
    metadata: {labels: {app: ${name}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: echo, image: echo, ports: [{name: web, containerPort: 8080}], readinessProbe: {httpGet: {path: /, port: web}, periodSeconds: 1}}]`
const service = (name: string, port = 80) => `apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: shop}
spec: {selector: {app: ${name}}, ports: [{name: http, port: ${port}, targetPort: web}]}`
/** Objects with all that is read of them. */
const shapes = [
  'apiVersion: v1\nkind: Namespace\nmetadata: {name: shapes, labels: {team: a}, annotations: {networking.mesh.io/traffic-distribution: PreferClose}}',
  `apiVersion: v1
kind: Service
metadata: {name: balanced, namespace: shapes, annotations: {networking.mesh.io/exportTo: ".", alpha.mesh.io/kubernetes-serviceaccounts: a}}
spec:
  type: LoadBalancer
  externalIPs: [192.0.2.7]
  trafficDistribution: PreferClose
  selector: {app: a, version: v1}
  ports: [{name: http, port: 80, targetPort: web, appProtocol: kubernetes.io/h2c}, {name: dns, port: 53, protocol: UDP, targetPort: 5353}]`,
  'apiVersion: v1\nkind: Service\nmetadata: {name: headless, namespace: shapes}\nspec: {clusterIP: None, ports: [{port: 80}]}',
  'apiVersion: v1\nkind: Service\nmetadata: {name: elsewhere, namespace: shapes}\nspec: {type: ExternalName, externalName: example.com}',
  `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: made, namespace: shapes, labels: {kubernetes.io/service-name: headless}}
addressType: IPv6
ports: [{name: http, port: 8080}, {name: every}]
endpoints:
- {addresses: ["2001:db8::1"], conditions: {ready: false, serving: true, terminating: true}, nodeName: n1}
- {addresses: ["2001:db8::2"], targetRef: {kind: Pod, namespace: shapes, name: many}}`,
  `apiVersion: v1
kind: Pod
metadata:
  name: many
  namespace: shapes
  labels: {app: a, pod-template-hash: "12"}
  annotations: {long: text}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: a-12, uid: "1", controller: true}]
spec:
  hostNetwork: true
  nodeName: n2
  initContainers: [{name: beside, image: idle, restartPolicy: Always, ports: [{name: metrics, containerPort: 9090}]}]
  containers: [{name: one, image: idle, ports: [{name: web, containerPort: 8080}, {name: dns, containerPort: 53, protocol: UDP}]}]`,
]
const balancedStatus = '{"status":{"loadBalancer":{"ingress":[{"ip":"203.0.113.1"},{"hostname":"lb.example.com"}]}}}'
/** A Service whose endpoints are those that are written here, whatever the controllers of the cluster do. */
const written = (count: number) => `apiVersion: v1
kind: Service
metadata: {name: written, namespace: shop}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: written, namespace: shop, labels: {kubernetes.io/service-name: written}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [${Array.from({ length: count }, (_, index) => `{addresses: [10.88.0.${index + 1}], conditions: {ready: true}}`).join(', ')}]`
const namespace = 'apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}'

describe('discovery beside a real cluster', () => {
  let cluster: TestCluster
  /** Connects with the role of `manifests/access.yaml`. */
  let permitted: string
  const services: Service[] = []
  const clients: XdsClient[] = []

  const discovery = (kubeconfig: string, ...flags: readonly string[]): Service => {
    const made = new Service({ env: { PILOT_DEBOUNCE_AFTER: '10ms' }, flags: ['--registries', 'Orchestrator', '--orchconfig', kubeconfig, ...flags] })
    services.push(made)
    return made
  }
  const connect = (to: Service, name: string, delta = false): Promise<XdsClient> => {
    const client = new XdsClient(to.grpcPort, sidecarNode('10.99.0.1', name, 'shop'), delta)
    clients.push(client.connect())
    return client.ready()
  }
  /** The endpoints of a Service as a proxy has them: address, port and zone of each, sorted; undefined without its cluster. */
  const endpoints = (client: XdsClient, name: string, port = 80): string[] | undefined => {
    const cluster = `outbound|${port}||${name}.shop.svc.cluster.local`
    const bytes = client.resources.get(endpointType)?.get(cluster)
    if (!client.resources.get(clusterType)?.has(cluster) || !bytes) return undefined
    return fromBinary(ClusterLoadAssignmentSchema, bytes)
      .endpoints.flatMap(({ locality, lbEndpoints }) =>
        lbEndpoints.map(({ hostIdentifier }) => {
          const at = hostIdentifier.case === 'endpoint' ? hostIdentifier.value.address?.address : undefined
          const socket = at?.case === 'socketAddress' ? at.value : undefined
          return `${socket?.address}:${socket?.portSpecifier.value} ${locality?.zone}`
        }),
      )
      .sort()
  }
  /** What the cluster itself says of the same Service. */
  const ready = (name: string): string[] => {
    const json = cluster.kubectl(['get', 'pods', '-n', 'shop', '-l', `app=${name}`, '-o', 'json'])
    const { items } = JSON.parse(json) as {
      items: {
        metadata: { deletionTimestamp?: string }
        spec: { nodeName: string }
        status: { podIP?: string; conditions?: { type: string; status: string }[] }
      }[]
    }
    const isReady = ({ metadata, status }: (typeof items)[number]) =>
      !metadata.deletionTimestamp && status.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True')
    return items
      .filter(isReady)
      .map(({ spec, status }) => `${status.podIP}:8080 ${spec.nodeName === 'n1' ? 'zone1' : 'zone2'}`)
      .sort()
  }
  const seesAll = (client: XdsClient, name: string, count: number) =>
    until(`${count} endpoints of ${name}`, () => {
      const [seen, there] = [endpoints(client, name), ready(name)]
      return there.length === count && JSON.stringify(seen ?? []) === JSON.stringify(there)
    })
  const all = ['namespaces', 'nodes', 'services', 'pods', 'configmaps', 'endpointslices', 'customresourcedefinitions']
  const role = (name: string, ...permitted: readonly string[]) =>
    `apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: ${name}}\nrules: [{apiGroups: ["", discovery.k8s.io, apiextensions.k8s.io], resources: [${permitted}], verbs: [list, watch]}]`
  /** Makes a service account that may follow the cluster. Returns a token of it. */
  const account = (name: string): string => {
    cluster.apply(
      `apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: ${name}, namespace: shop}`,
      role(name, ...all),
      `apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: ${name}}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ${name}}\nsubjects: [{kind: ServiceAccount, name: ${name}, namespace: shop}]`,
    )
    return cluster.kubectl(['create', 'token', '-n', 'shop', name]).trim()
  }
  const metric = async (of: Service, series: string) =>
    Number(
      (await of.metrics())
        .split('\n')
        .find((line) => line.startsWith(`${series} `))
        ?.slice(series.length + 1) ?? Number.NaN,
    )

  before(async () => {
    cluster = await TestCluster.start('n1=region1/zone1,n2=region1/zone2')
    permitted = cluster.roleConfig()
    cluster.apply(namespace, deployment('web', 2), service('web'))
  })
  after(async () => {
    for (const client of clients) client.close()
    for (const each of services) await each.dispose()
    await cluster?.dispose()
  })

  it('serves the endpoints of a Service, live, as the cluster has them', async () => {
    const running = discovery(permitted)
    await running.start()
    const client = await connect(running, 'a-1')
    await seesAll(client, 'web', 2)
    cluster.kubectl(['scale', 'deployment', 'web', '-n', 'shop', '--replicas', '4'])
    await seesAll(client, 'web', 4)
    cluster.kubectl(['delete', 'pod', '-n', 'shop', '-l', 'app=web', '--wait=false'])
    await until('other pods', () => ready('web').length === 4)
    await seesAll(client, 'web', 4)
    cluster.apply(service('late', 90), deployment('late', 1))
    await until('the new Service', () => endpoints(client, 'late', 90)?.length === 1)
    cluster.kubectl(['delete', 'service', '-n', 'shop', 'late'])
    await until('its end', () => endpoints(client, 'late', 90) === undefined)
    expect(await metric(running, 'endpoint_no_pod')).to.equal(0)
    const page = await running.metrics()
    for (const kind of ['Service', 'EndpointSlice', 'Pod', 'Node', 'Namespace'])
      expect(page).to.contain(`pilot_orch_watch_age_seconds{kind="${kind}"}`)
    // The role of the manifests suffices. (A server that has just started may refuse what it permits later.)
    running.output.lacks('does not permit')
  })

  it('takes the labels of the pods of proxies, and of namespaces, from the cluster', async () => {
    const [running] = services as [Service]
    const sidecar = (label: string) =>
      `apiVersion: networking.mesh.io/v1\nkind: Sidecar\nmetadata: {name: s, namespace: shop}\nspec: {workloadSelector: {labels: {lane: ${label}}}, egress: [{hosts: ["kube-system/*"]}]}\n`
    running.write('sidecar.yaml', sidecar('narrow'))
    cluster.apply('apiVersion: v1\nkind: Pod\nmetadata: {name: caller, namespace: shop}\nspec: {containers: [{name: idle, image: idle}]}')
    const client = await connect(running, 'caller')
    await until('all services', () => endpoints(client, 'web') !== undefined)
    cluster.kubectl(['label', 'pod', '-n', 'shop', 'caller', 'lane=narrow'])
    await until('the services of the Sidecar alone', () => endpoints(client, 'web') === undefined)
    cluster.kubectl(['label', 'pod', '-n', 'shop', 'caller', 'lane-'])
    await until('all services again', () => endpoints(client, 'web') !== undefined)
    running.remove('sidecar.yaml')
    running.write('mesh-config', 'discoverySelectors: [{matchLabels: {lane: open}}]\n')
    await until('no service of the namespace', () => endpoints(client, 'web') === undefined)
    cluster.kubectl(['label', 'namespace', 'shop', 'lane=open'])
    await until('its services', () => endpoints(client, 'web') !== undefined)
    cluster.kubectl(['label', 'namespace', 'shop', 'lane-'])
    await until('none again', () => endpoints(client, 'web') === undefined)
    running.write('mesh-config', '')
    await until('all without selectors', () => endpoints(client, 'web') !== undefined)
  })

  // Before the API server is killed for the first time: what else runs in the cluster comes back to it after up to a minute then.
  it('runs as a pod of the cluster, with its service account', async () => {
    account('pilot')
    cluster.image('discovery', [process.execPath, discoveryScript, 'discovery', '--secureGRPCAddr', '', '--ctrlz_port', '0', '--writers', '1'])
    cluster.apply(`apiVersion: v1
kind: Pod
metadata: {name: pilot, namespace: shop}
spec:
  serviceAccountName: pilot
  containers:
  - {name: discovery, image: discovery, workingDir: /var/tmp, env: [{name: HOME, value: /var/tmp}], readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1}}`)
    await until(
      'the pod to be ready',
      () => cluster.kubectl(['get', 'pod', '-n', 'shop', 'pilot', '-o', 'jsonpath={.status.conditions[?(@.type=="Ready")].status}']) === 'True',
    )
    expect(cluster.kubectl(['logs', '-n', 'shop', 'pilot'])).to.match(/cluster Orchestrator: namespaces \d+, nodes 2, services \d+, pods \d+/)
  })

  it('loses nothing when the watcher, or the push queue, ends and is started again', async () => {
    const local = new LocalDiscovery({})
    try {
      await local.start({ registries: ['Orchestrator'], orchconfig: permitted })
      await until('the service to be ready', async () => (await local.ready()).status === 200)
      const client = new XdsClient(local.grpcPort, sidecarNode('10.99.0.1', 'c', 'shop'), true)
      clients.push(client.connect())
      await client.ready()
      for (const [actor, replicas] of [
        ['source/orchestrator', 3],
        ['push-queue', 2],
        ['source/orchestrator', 4],
      ] as const) {
        const before = local.state(actor).restarts
        local.service.supervisor.kill(actor)
        cluster.kubectl(['scale', 'deployment', 'web', '-n', 'shop', '--replicas', `${replicas}`])
        await until('the actor to run again', () => local.state(actor).restarts > before && local.state(actor).state === 'running')
        await seesAll(client, 'web', replicas)
      }
      expect(client.removed).to.deep.equal([])
    } finally {
      await local.dispose()
    }
  })

  it('keeps serving what it has while the API server is away, silent or starts again, and has what is there afterwards', async () => {
    const [running] = services as [Service]
    const client = await connect(running, 'a-2', true)
    await seesAll(client, 'web', 4)
    const before = client.responses.get(endpointType)
    cluster.signalServer('SIGKILL')
    await running.output.says(/failed: .*the last state stays/)
    expect(endpoints(client, 'web')).to.have.length(4)
    await until('the API server to be there again', () => cluster.kubectl(['get', '--raw', '/readyz']) === 'ok')
    await running.output.says(/pods\b.* are followed again/)
    expect([endpoints(client, 'web')?.length, client.responses.get(endpointType)]).to.deep.equal([4, before])
    cluster.kubectl(['scale', 'deployment', 'web', '-n', 'shop', '--replicas', '1'])
    await seesAll(client, 'web', 1)
    expect(client.closed).to.equal(undefined)
  })

  it('notices a connection that stays silent', async () => {
    const [running] = services as [Service]
    cluster.signalServer('SIGSTOP')
    try {
      await running.output.says(/the connection is silent: a ping was not answered within 15 s/)
    } finally {
      cluster.signalServer('SIGCONT')
    }
    const client = await connect(running, 'a-3')
    cluster.kubectl(['scale', 'deployment', 'web', '-n', 'shop', '--replicas', '2'])
    await seesAll(client, 'web', 2)
  })

  it('names the verb and the resource that a role does not permit, and goes on when it does', async () => {
    const token = account('limited')
    cluster.apply(role('limited', ...all.filter((each) => each !== 'pods')))
    const running = discovery(cluster.tokenConfig('limited', token))
    const started = running.start()
    await running.output.says('the role of this service account does not permit "watch" of "pods"')
    const body = await (await fetch(`http://127.0.0.1:${running.httpPort}/ready`)).text()
    expect(body).to.contain('source/orchestrator has not delivered its complete state yet').and.contain('does not permit "watch" of "pods"')
    cluster.apply(role('limited', ...all))
    await started
    const client = await connect(running, 'a-4')
    await seesAll(client, 'web', 2)
    cluster.apply(written(2))
    await until('written endpoints', () => endpoints(client, 'written')?.length === 2)
    // The role is taken away: the last state stays, and what changes meanwhile comes when it is given back.
    cluster.apply(role('limited', ...all.filter((each) => each !== 'endpointslices')))
    cluster.signalServer('SIGKILL')
    await running.output.says('does not permit "watch" of "endpointslices.discovery.k8s.io"')
    for (const name of ['web', 'written']) expect(endpoints(client, name)).to.have.length(2)
    cluster.apply(written(3))
    cluster.apply(role('limited', ...all))
    await until('what changed meanwhile', () => endpoints(client, 'written')?.length === 3)
    expect(endpoints(client, 'web')).to.have.length(2)
    client.close()
    await running.dispose()
  })

  for (const [where, user] of [
    ['a file', (dir: string) => `{tokenFile: ${dir}/file.token}`],
    [
      'a plugin',
      (dir: string) => `{exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, args: [${dir}/plugin.sh], interactiveMode: Never}}`,
    ],
  ] as const)
    it(`takes another token from ${where} when the server refuses the one that it has`, async () => {
      const name = where.slice(2)
      const token = join(cluster.dir, `${name}.token`)
      writeFileSync(token, account(`${name}-one`))
      cluster.apply(written(1))
      const credential = '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}'
      writeFileSync(join(cluster.dir, 'plugin.sh'), `printf '${credential}' "$(cat ${token})"\n`)
      const running = discovery(cluster.userConfig(name, user(cluster.dir)))
      await running.start()
      const client = await connect(running, `b-${name}`)
      cluster.kubectl(['delete', 'serviceaccount', '-n', 'shop', `${name}-one`])
      cluster.signalServer('SIGKILL')
      await running.output.says('Unauthorized')
      writeFileSync(token, account(`${name}-two`))
      await running.output.says(/pods\b.* are followed again/)
      cluster.apply(written(4))
      await until('what changed', () => endpoints(client, 'written')?.length === 4)
      client.close()
      await running.dispose()
    })

  it('reads objects in protobuf as it reads them in JSON', async () => {
    // A pod needs the account of its namespace, which a controller makes.
    await until('the objects', () => {
      cluster.apply(...shapes)
      return true
    })
    cluster.kubectl(['patch', 'service', 'balanced', '-n', 'shapes', '--subresource=status', '--type=merge', '-p', balancedStatus])
    const access = await new ClusterConnection({ from: 'file', path: cluster.adminConfig }).access(false)
    const context = { names: meshNames('mesh.io'), source: 'test', cluster: 'c' }
    const session = new ApiSession({
      ...{ perSecond: 100, burst: 100, userAgent: 'test' },
      access: async () => access,
      log: { ...console, isOn: () => false, debug: () => undefined } as unknown as ScopedLogger,
    })
    /** The objects of a list as they are cut, and the media type in which they came. */
    const listed = (kind: FollowedKind, path: string, fields: MessageFields | undefined) =>
      new Promise<{ readonly type: string; readonly objects: unknown[] }>((resolve, reject) => {
        let [type, reader] = ['', formatOf('', undefined).list(0)]
        const objects: unknown[] = []
        session.send(
          { method: 'GET', path, accept: acceptedTypes(fields, false) },
          {
            answered: (_, headers) => {
              type = String(headers['content-type'])
              reader = formatOf(type, fields).list(1_000_000)
            },
            received: (bytes) => void objects.push(...[...reader.take(bytes)].map((object) => cut(kind, object, context))),
            ended: () => resolve({ type, objects }),
            broken: (reason) => reject(new Error(reason)),
          },
        )
      })
    try {
      for (const { kind, path, fields } of Object.values(registryResources))
        await until(`the same ${kind} objects`, async () => {
          const [binary, text] = [await listed(kind as FollowedKind, path, fields), await listed(kind as FollowedKind, path, undefined)]
          expect(text.type).to.equal('application/json')
          if (fields) expect(binary.type).to.equal('application/vnd.kubernetes.protobuf')
          // Between the two lists an object may change.
          return binary.objects.length > 0 && isDeepStrictEqual(binary.objects, text.objects)
        })
    } finally {
      session.close()
    }
  })

  it('compares what it knows with lists of the server, and finds nothing that it has missed', async () => {
    const running = discovery(permitted, '--resync', '1s')
    await running.start()
    const client = await connect(running, 'a-5')
    for (const replicas of [4, 1, 3]) {
      cluster.kubectl(['scale', 'deployment', 'web', '-n', 'shop', '--replicas', `${replicas}`])
      await seesAll(client, 'web', replicas)
    }
    const audits = () => metric(running, 'pilot_orch_audits_total{kind="Pod"}')
    await until('audits', async () => (await audits()) >= 2)
    for (const kind of ['Service', 'EndpointSlice', 'Pod', 'Node', 'Namespace'])
      expect(await metric(running, `pilot_orch_audit_repairs_total{kind="${kind}"}`), kind).to.equal(0)
  })

  it('has what the cluster has in the end, behind a relay that loses, repeats and reorders events, and counts what it repaired', async () => {
    const relay = await HostileRelay.start(cluster.server, cluster.dir)
    try {
      const running = discovery(cluster.tokenConfig('relayed', account('relayed'), relay.address), '--resync', '2s')
      await running.start()
      const client = await connect(running, 'a-6')
      await until('the endpoints', () => JSON.stringify(endpoints(client, 'web')) === JSON.stringify(ready('web')))
      relay.harm = 0.6
      const repairs = async () => {
        const lines = (await running.metrics()).split('\n').filter((line) => line.startsWith('pilot_orch_audit_repairs_total{'))
        return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
      }
      let replicas = 1
      await until('repairs', async () => {
        replicas = (replicas % 4) + 1
        cluster.kubectl(['scale', 'deployment', 'web', '-n', 'shop', '--replicas', `${replicas}`])
        return (await repairs()) > 0 && Object.values(relay.done).every((times) => times > 0)
      })
      relay.harm = 0
      await seesAll(client, 'web', replicas)
    } finally {
      relay.close()
    }
  })
})
