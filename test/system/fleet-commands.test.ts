/** The commands that ask a running server about its proxies. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import type { Proxy as ShownProxy } from '../../protocols/gen/mesh/admin/v1/admin_pb.js'
import { AdminClient } from '../../src/cli/admin-client.ts'
import { nodeType, shortType } from '../../src/xds/type-urls.ts'
import { runCommand, Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { startInTerminal } from '../harness/terminal.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const route = (timeout: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: VirtualService\nmetadata: {name: a, namespace: ns}\nspec: {hosts: [a], http: [{timeout: ${timeout}, route: [{destination: {host: a}}]}]}\n`

/** A patch that changes the clusters of one host. */
const patch = `apiVersion: networking.mesh.io/v1
kind: EnvoyFilter
metadata: {name: slow, namespace: ns}
spec: {configPatches: [{applyTo: CLUSTER, match: {cluster: {service: a.ns.svc.cluster.local}}, patch: {operation: MERGE, value: {connect_timeout: 7s}}}]}
`

describe('commands that ask a running server', () => {
  const service = new Service({ flags: ['--writers', '1'] })
  const clients: XdsClient[] = []
  const connect = async (name: string, address: string) => {
    const client = await new XdsClient(
      service.grpcPort,
      sidecarNode(address, name, 'ns', { MESH_VERSION: '0.1.0', DB_PASSWORD: 'hush', NOTE: 'a\u202eb' }),
      true,
    )
      .connect()
      .ready()
    clients.push(client)
    return client
  }
  const run = (...args: string[]) => runCommand(args, service.env)
  /** The lines of a table by their first cell, without the colours that no pipe gets. */
  const cells = (stdout: string) => stdout.split('\n').map((line) => line.split(/ {2,}/))
  /** Waits until what the server says of a proxy is as expected. */
  const becomes = (what: string, proxy: string, is: (row: ShownProxy) => boolean) =>
    until(what, async () => {
      const client = new AdminClient({ socket: service.env.MESHD_ADMIN_SOCKET as string })
      const { proxies } = await client.asked(client.rpcs.listProxies({ proxy }))
      return proxies.length === 1 && is(proxies[0] as ShownProxy)
    })
  const isSynced = ({ types, refusals }: ShownProxy) => refusals.length === 0 && types.every(({ current }) => current)
  before(async () => {
    service.write('entry.yaml', serviceEntry('a'))
    service.write('route.yaml', route('1s'))
    await service.start()
    await connect('web-0', '10.1.0.1')
    await connect('cart-0', '10.1.0.2')
  })
  after(async () => {
    for (const client of clients) client.close()
    await service.dispose()
  })

  it('proxy-status shows the proxies and each of their types', async () => {
    for (const name of ['web-0.ns', 'cart-0.ns']) await becomes(`${name} to be synced`, name, isSynced)
    const { stdout, stderr, code } = await run('proxy-status')
    expect([code, stderr]).to.deep.equal([0, '2 proxies: 2 SYNCED\n'])
    const [head, ...rows] = cells(stdout.trimEnd())
    expect(head).to.deep.equal(['PROXY', 'STATUS', 'CDS', 'EDS', 'LDS', 'RDS', 'CONNECTED', 'AGENT'])
    expect(rows.map((row) => [...row.slice(0, 6), row[7]])).to.deep.equal(
      ['cart-0.ns', 'web-0.ns'].map((name) => [name, 'SYNCED', 'SYNCED', 'SYNCED', 'SYNCED', 'SYNCED', '0.1.0']),
    )
    expect(rows[0]?.[6]).to.match(/^\d+ (ms|s|min)$/)
  })

  it('proxy-status shows one proxy in detail, by any unambiguous part of its name', async () => {
    const { stdout } = await run('proxy-status', 'web')
    expect(stdout).to.match(/^Proxy: +web-0\.ns\nStatus: +SYNCED\nNode: +sidecar~10\.1\.0\.1~web-0\.ns~/)
    expect(stdout).to.match(/\nTYPE +STATUS +ACKNOWLEDGED VERSION +UNANSWERED FOR +SUBSCRIBED\ncds +SYNCED +\S+ +- +all\n/)
    const several = await run('proxy-status', '-0.')
    expect([several.code, several.stderr]).to.deep.equal([
      255,
      'Error: the server answered: proxy: "-0." may be any of cart-0.ns, web-0.ns: give more of the name\n',
    ])
    expect((await run('proxy-status', 'nobody')).stderr).to.contain('proxy "nobody" is not connected to this instance')
    expect((await run('proxy-status', 'crat')).stderr).to.contain('proxy "crat" is not connected to this instance; did you mean "cart"?')
  })

  it('proxy-status names what a proxy owes, and what it refused with resource, object, place and reason', async () => {
    const [web, cart] = clients as [XdsClient, XdsClient]
    web.silent = true
    service.write('route.yaml', route('2s'))
    await becomes('web-0 to owe an answer', 'web-0.ns', ({ types }) => types.some(({ waitingMs }) => waitingMs !== undefined))
    expect((await run('proxy-status')).stdout).to.match(/\nweb-0\.ns has not answered rds for \d+ m?s\n/)
    cart.refuseNext = 'Error adding/updating cluster(s) outbound|80||a.ns.svc.cluster.local: timeout is \u001b[31mtoo long'
    service.write('patch.yaml', patch)
    await becomes('the refusal', 'cart-0.ns', ({ refusals }) => refusals.length > 0)
    const { stdout, stderr } = await run('proxy-status', 'cart-0')
    expect(stdout).to.contain(
      [
        'cart-0.ns refused Cluster outbound|80||a.ns.svc.cluster.local: timeout is \\u001b[31mtoo long',
        '  made from: EnvoyFilter ns/slow (patch.yaml, document 1)',
        '  consequence: patches (CLUSTER MERGE) are withdrawn from proxies that refuse them, until they change',
      ].join('\n'),
    )
    expect(stderr).to.equal('1 proxy: 1 REJECTED\n')
    service.remove('patch.yaml')
    await becomes('the refusal to end', 'cart-0.ns', isSynced)
  })

  it('without --cluster nothing of the client library of clusters is loaded', async () => {
    const tell =
      "import { registerHooks } from 'node:module'; registerHooks({ resolve(name, context, next) { const found = next(name, context); if (found.url.includes('@kubernetes')) process.stderr.write('LOADED '); return found } })"
    const from = fileURLToPath(new URL('../../bin/pilot-discovery.js', import.meta.url))
    const env = { ...service.env, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(tell)}` }
    const near = await runCommand(['proxy-status'], env, from)
    expect(near.code).to.equal(0)
    expect(near.stderr).to.match(/^2 proxies: [^:]*\n$/)
    const clusters = join(service.dir, 'clusters')
    const named = '{name: x, context: {cluster: x, user: x}}'
    writeFileSync(
      clusters,
      `current-context: x\ncontexts: [${named}]\nclusters: [{name: x, cluster: {server: "https://127.0.0.1:1"}}]\nusers: [{name: x, user: {token: a}}]\n`,
    )
    const away = await runCommand(['proxy-status', '--kubeconfig', clusters], env, from)
    expect(away.stderr).to.match(/^LOADED .*Error: the cluster https:\/\/127\.0\.0\.1:1 cannot be reached: connect ECONNREFUSED/)
  })

  it('proxy-config shows what a proxy is sent', async () => {
    const shown = async (kind: string, ...args: string[]) =>
      cells((await run('proxy-config', kind, 'cart-0', '--name', 'a', ...args)).stdout.trimEnd())
    expect(await shown('clusters', '--name', '||a')).to.deep.equal([
      ['HOST', 'PORT', 'SUBSET', 'DIRECTION', 'TYPE', 'CLUSTER'],
      ['a.ns.svc.cluster.local', '80', '-', 'outbound', 'EDS', 'outbound|80||a.ns.svc.cluster.local'],
    ])
    expect((await shown('endpoints'))[1]?.at(-1)).to.equal('outbound|80||a.ns.svc.cluster.local')
    expect((await shown('routes', '--name', '80')).map((row) => row.at(-1))).to.include('outbound|80||a.ns.svc.cluster.local')
    expect((await shown('listeners', '--name', '0.0.0.0')).map((row) => row[3])).to.include('routes 80')
    expect((await run('proxy-config', 'secrets', 'cart')).stdout).to.contain('cart-0.ns asks this server for no secrets')
    const json = JSON.parse((await run('proxy-config', 'clusters', 'cart', '--name', '||a', '--json')).stdout)
    expect(json.proxy).to.equal('cart-0.ns')
    expect(json.clusters[0].resource).to.include({ name: 'outbound|80||a.ns.svc.cluster.local', type: 'EDS' })
    expect((await run('proxy-config', 'clusters', 'cart', '--name', 'nothing')).stdout).to.equal(
      'cart-0.ns is sent no clusters with "nothing" in the name.\n',
    )
  })

  it('proxy-config bootstrap shows the node that a proxy told of itself, without secrets, and says where the rest is', async () => {
    const { stdout, code } = await run('proxy-config', 'bootstrap', 'cart')
    expect(code).to.equal(0)
    expect(stdout)
      .to.match(/^# The node of cart-0\.ns, as it told the control plane, .*--envoy <host>:<port>.*`pilot-discovery bootstrap`/s)
      .and.to.contain('\nnode:\n  id: sidecar~10.1.0.2~cart-0.ns~')
      .and.to.contain('DB_PASSWORD: "[redacted]"')
      .and.to.contain('a\\u202eb')
    const { proxy, isWhole, bootstrap } = JSON.parse((await run('proxy-config', 'bootstrap', 'cart', '--json')).stdout)
    expect([proxy, isWhole, Object.keys(bootstrap)]).to.deep.equal(['cart-0.ns', false, ['node']])
    expect(bootstrap.node.metadata).to.include({ MESH_VERSION: '0.1.0', DB_PASSWORD: '[redacted]' })
    const client = new AdminClient({ socket: service.env.MESHD_ADMIN_SOCKET as string })
    const told = await client.asked(client.rpcs.getProxyConfig({ proxy: 'cart-0.ns', typeUrls: [nodeType] }))
    expect(told.resources.map(({ name }) => name.split('~')[2])).to.deep.equal(['cart-0.ns'])
    expect(Buffer.from(told.resources[0]?.resource?.value ?? []).includes('hush')).to.equal(false)
    const all = await client.asked(client.rpcs.getProxyConfig({ proxy: 'cart-0.ns' }))
    expect(all.resources.some(({ typeUrl }) => typeUrl === nodeType)).to.equal(false)
  })

  it('authz says whether a request is allowed, which rule decides and why others do not match', async () => {
    service.write(
      'policy.yaml',
      'apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: read, namespace: ns}\nspec: {rules: [{to: [{operation: {methods: [GET]}}]}]}\n',
    )
    await until('the policy', async () => (await run('authz', 'cart-0', '--method', 'POST')).code === 1)
    const denied = await run('authz', 'cart-0', '--method', 'POST')
    expect(denied.stdout).to.match(/^DENIED: the client receives 403\n/)
    expect(denied.stdout).to.match(/\nns\/read +0 +ALLOW +does not match +\S/)
    const allowed = await run('authz', 'cart-0', '--json')
    expect([allowed.code, JSON.parse(allowed.stdout).decision, JSON.parse(allowed.stdout).policy.name]).to.deep.equal([0, 'ALLOWED', 'read'])
    expect((await run('authz', 'cart-0', '--header', 'x')).stderr).to.equal('Error: --header: "x" is not <name>:<value>\n')
    service.write(
      'policy.yaml',
      "apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: read, namespace: ns}\nspec: {rules: [{when: [{key: 'request.headers[x-list]', values: ['a,b:c']}]}]}\n",
    )
    await until('a header whose value has a comma', async () => (await run('authz', 'cart-0', '--header', 'x-list:a,b:c')).code === 0)
    service.remove('policy.yaml')
    await until('the policy to be gone', async () => (await run('authz', 'cart-0')).code === 0)
  })

  it('explain says where a request goes, by which objects and fields, and why other routes do not take it', async () => {
    service.write(
      'reviews.yaml',
      [
        serviceEntry('reviews'),
        'apiVersion: networking.mesh.io/v1\nkind: VirtualService\nmetadata: {name: reviews, namespace: ns}\nspec: {hosts: [reviews], http: [{name: tester, match: [{headers: {user: {exact: anna}}}], fault: {abort: {httpStatus: 503, percentage: {value: 0}}}, route: [{destination: {host: reviews, subset: v9}}]}, {name: all, route: [{destination: {host: reviews}}]}, {name: never, route: [{destination: {host: a}}]}]}\n',
        'apiVersion: networking.mesh.io/v1\nkind: DestinationRule\nmetadata: {name: reviews, namespace: ns}\nspec: {host: reviews, subsets: [{name: v9, labels: {v: v9}}]}\n',
      ].join('---\n'),
    )
    await until('the routes', async () => (await run('explain', 'cart-0', 'reviews/x')).stdout.includes('takes it'))
    const { stdout, code } = await run('explain', 'cart-0', 'reviews/x')
    expect([code, stdout.split('\n').slice(0, 2)]).to.deep.equal([
      0,
      [
        'GET http://reviews/x from cart-0.ns',
        'ROUTED: it is sent to reviews.ns.svc.cluster.local; no proxy of the destination is connected here, so its policies are not judged',
      ],
    ])
    const rows = cells(stdout)
    expect(rows).to.deep.include(['listener:', '0.0.0.0_80'])
    expect(rows).to.deep.include(['virtual host: reviews.ns.svc.cluster.local:80 (domain reviews)'])
    const object = 'VirtualService ns/reviews (reviews.yaml, document 2)'
    expect(rows).to.deep.include(['1', 'tester', 'does not', 'header user is missing', `${object}, http[0].match[0]`])
    expect(rows).to.deep.include(['2', 'all', 'takes it', '-', `${object}, http[1]`])
    expect(stdout).to.contain(`${object} http[2] is in no route: http[1] matches every request before it`)
    expect(rows).to.deep.include([
      'cds',
      'outbound|80||reviews.ns.svc.cluster.local',
      'makes it',
      'ServiceEntry ns/reviews (reviews.yaml, document 1)',
    ])
    for (const width of [60, 80])
      for (const args of [['explain', 'cart-0', 'reviews/x'], ['proxy-status'], ['proxy-status', 'cart-0'], ['proxy-config', 'clusters', 'cart-0']]) {
        const { output, ended } = startInTerminal(args, service.env, width)
        expect(await ended, args.join(' ')).to.equal(0)
        output.lacks(new RegExp(`[^\\r\\n]{${width + 1}}`))
      }
    const failing = await run('explain', 'cart-0', 'reviews/x', '--header', 'user:anna', '--json')
    const { status, reason, routing } = JSON.parse(failing.stdout)
    expect([failing.code, status, reason]).to.deep.equal([
      1,
      503,
      'subset v9 selects none of the 1 endpoint of reviews.ns.svc.cluster.local: no endpoint with its labels is ready and reached from the network of the proxy',
    ])
    expect(routing.tried[1].because).to.equal('route 1 (tester) takes the request before it')
    service.remove('reviews.yaml')
  })

  it('explain judges the proxies of the destination as authz does, and says where they differ', async () => {
    const third = await new XdsClient(service.grpcPort, sidecarNode('10.1.0.3', 'shut-0', 'ns', { LABELS: { app: 'shut' } }), true).connect().ready()
    const rule = (name: string, spec: string) =>
      `apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: ${name}, namespace: ns}\nspec: {action: DENY, ${spec}}\n`
    service.write(
      'judged.yaml',
      [
        serviceEntry('one', '10.1.0.1'),
        serviceEntry('both', '10.1.0.1').replace('address: 10.1.0.1', 'address: 10.1.0.1}, {address: 10.1.0.3'),
        rule('no-put', "rules: [{to: [{operation: {methods: [PUT], paths: ['/b*']}}]}]"),
        rule('shut', 'selector: {matchLabels: {app: shut}}, rules: [{}]'),
        'apiVersion: networking.mesh.io/v1\nkind: VirtualService\nmetadata: {name: one, namespace: ns}\nspec: {hosts: [one], http: [{match: [{uri: {prefix: /a}}], rewrite: {uri: /b}, route: [{destination: {host: one}}]}, {route: [{destination: {host: one}}]}]}\n',
      ].join('---\n'),
    )
    const explained = (...args: string[]) => run('explain', 'cart-0', ...args)
    const second = (stdout: string) => stdout.split('\n')[1]
    await until('the policies', async () => (await explained('one/b', '--method', 'PUT')).code === 1)
    await until('the routes', async () => (await explained('one/a')).stdout.includes('the path is sent as /b'))
    const letIn = await explained('one/b')
    expect([letIn.code, second(letIn.stdout)]).to.deep.equal([0, 'ROUTED: it is sent to one.ns.svc.cluster.local; the proxy there lets it in'])
    // The destination sees the path that the route writes.
    const denied = await explained('one/a', '--method', 'PUT')
    expect(`${denied.code} ${second(denied.stdout)}`).to.match(/^1 DENIED: the client receives 403: web-0\.ns refuses it: \S/)
    expect(denied.stdout).to.contain('\npolicy:       AuthorizationPolicy ns/no-put (judged.yaml, document 3), rule 0\n')
    const differing = await explained('both/')
    expect([differing.code, second(differing.stdout)]).to.deep.equal([
      0,
      'ROUTED: it is sent to both.ns.svc.cluster.local; 1 of 2 judged proxies there refuses it',
    ])
    expect(
      cells(differing.stdout)
        .filter(([name]) => /^(shut|web)-0\.ns$/.test(name ?? ''))
        .map((row) => row.slice(0, 3)),
    ).to.deep.equal([
      ['shut-0.ns', '10.1.0.3:80', 'client receives 403'],
      ['web-0.ns', '10.1.0.1:80', 'lets it in'],
    ])
    third.close()
    service.remove('judged.yaml')
    await until('the proxy to be gone', async () => !(await run('proxy-status')).stdout.includes('shut-0'))
  })

  it('explain says why a proxy does not know a host: a Sidecar, exportTo, a mistake in writing; and which ports there are', async () => {
    const entry = serviceEntry('far').replace('namespace: ns', 'namespace: other').replaceAll('far.ns', 'far.other')
    service.write('far.yaml', entry.replace('resolution:', "exportTo: ['.'], resolution:"))
    const explained = async (target: string) => (await run('explain', 'cart-0', target)).stdout
    const hiddenBy = (reason: string) => `ServiceEntry other/far (far.yaml, document 1)  ${reason}`
    await until('the entry', async () => (await explained('far.other')).includes(hiddenBy('exportTo does not make it visible in namespace ns')))
    service.write('far.yaml', entry)
    service.write(
      'scope.yaml',
      'apiVersion: networking.mesh.io/v1\nkind: Sidecar\nmetadata: {name: own, namespace: ns}\nspec: {egress: [{hosts: [./*]}]}\n',
    )
    await until('the Sidecar', async () =>
      (await explained('far.other')).includes(hiddenBy('Sidecar/ns/own does not import far.other.svc.cluster.local')),
    )
    service.remove('scope.yaml')
    service.remove('far.yaml')
    expect(await explained('a.ns.svc.cluster.locl')).to.contain('did you mean "a.ns.svc.cluster.local"?')
    expect(await explained('http://a:81')).to.contain('no listener has port 81; there are listeners for 80')
    expect((await run('explain', 'cart-0', 'ftp://a')).stderr).to.contain('is neither a host, nor a URL of http or https, nor a resource')
  })

  it('explain of a request that a gateway answers does not list what its other ports have', async () => {
    const gateway = (name: string, port: number) =>
      `apiVersion: networking.mesh.io/v1\nkind: Gateway\nmetadata: {name: ${name}, namespace: ns}\nspec: {selector: {app: gate}, servers: [{port: {number: ${port}, name: http, protocol: HTTP}, hosts: ['*']}]}\n`
    const routed = (name: string) =>
      `apiVersion: networking.mesh.io/v1\nkind: VirtualService\nmetadata: {name: ${name}, namespace: ns}\nspec: {hosts: [gate.example], gateways: [${name}], http: [{directResponse: {status: 204}}]}\n`
    service.write('gates.yaml', [gateway('one', 8000), gateway('two', 9000), routed('one'), routed('two')].join('---\n'))
    const node = { id: 'router~10.1.0.9~gate-0.ns~ns.svc.cluster.local', metadata: { NAMESPACE: 'ns', LABELS: { app: 'gate' } } }
    const client = await new XdsClient(service.grpcPort, node, true).connect().ready()
    const answered = await run('explain', 'gate-0', 'http://gate.example:8000/')
    expect([answered.code, answered.stdout]).to.satisfy(
      ([code, text]: [number, string]) => code === 0 && text.includes('\nANSWERED: the client receives 204'),
    )
    expect(answered.stdout).not.to.contain('HAS NO PART IN IT')
    const failing = await run('explain', 'gate-0', 'http://gate.example:7000/')
    expect(failing.code).to.equal(1)
    expect(failing.stdout)
      .to.match(/\nOBJECT +HAS NO PART IN IT, BECAUSE\n/)
      .and.to.contain('its gateways are Gateway/ns/two, with port 9000: port 7000 is of another')
    client.close()
    service.remove('gates.yaml')
  })

  it('explain says which objects made a resource', async () => {
    const { stdout } = await run('explain', 'cart-0', 'outbound|80||a.ns.svc.cluster.local')
    expect(stdout).to.match(
      /^cart-0\.ns has outbound\|80\|\|a\.ns\.svc\.cluster\.local\n\nPART +OBJECT +REASON\nmakes it +ServiceEntry ns\/a \(entry\.yaml, document 1\)/,
    )
    expect((await run('explain', 'cart-0', '80', '--type', 'rds')).stdout).to.contain('cart-0.ns has 80\n')
  })

  it('answers in JSON, errors too', async () => {
    const { proxies } = JSON.parse((await run('proxy-status', '--json')).stdout)
    const { stdout: shown } = await run('proxy-status')
    // Below the table are the proxies that have not answered for some time.
    const [head = [], ...rows] = cells(shown.trimEnd().split('\n\n')[0] ?? '').filter((row) => row.length > 1)
    const states = (types: { status: string; typeUrl: string }[]) => types.map(({ status, typeUrl }) => [shortType(typeUrl), status])
    expect(proxies.map(({ name, status, types }: { name: string; status: string; types: never[] }) => [name, status, states(types)])).to.deep.equal(
      rows.map(([name, status, ...cell]) => [name, status, head.slice(2, 6).map((type, at) => [type.toLowerCase(), cell[at]])]),
    )
    const failed = await run('proxy-status', 'nobody', '--json')
    expect([failed.code, failed.stderr, Object.keys(JSON.parse(failed.stdout))]).to.deep.equal([255, '', ['error']])
    const none = await runCommand(['proxy-status', '--json'])
    expect(JSON.parse(none.stdout).error).to.contain('no server listens on the admin socket')
  })

  it('asks at an address, with a token where one is needed', async () => {
    const address = `127.0.0.1:${service.httpPort}`
    expect((await run('proxy-status', '--address', address)).stdout).to.contain('cart-0.ns')
    const file = join(service.authorityDir, 'token')
    writeFileSync(file, 'no-token\n')
    expect((await run('proxy-status', '--address', address, '--token-file', file)).stderr).to.equal(
      'Error: the server answered: the token is not accepted\n',
    )
    writeFileSync(file, JSON.parse((await run('token', '-n', 'mesh-system', '--json')).stdout).token)
    expect((await run('proxy-status', '--address', address, '--token-file', file)).stdout).to.contain('cart-0.ns')
    expect(JSON.parse((await run('token', '-n', 'elsewhere', '-o', file, '--json')).stdout)).to.deep.equal({ file })
    expect((await run('proxy-status', '--address', address, '--token-file', file)).stdout).to.equal('No proxy is connected.\n')
    expect((await run('proxy-status', '--address', 'a/b')).stderr).to.contain('--address: "a/b" is not an address')
    expect((await run('proxy-status', '--token-file', file)).stderr).to.equal('Error: --token-file needs --address\n')
    expect((await run('proxy-status', '--address', '127.0.0.1:1')).stderr).to.match(/^Error: http:\/\/127\.0\.0\.1:1: .*ECONNREFUSED/)
  })

  it('asks at the secured port over TLS, whose certificate has to come from given roots', async () => {
    const secured = new Service()
    const made = new ServingCertificates(secured.dir)
    for (const authority of ['ca', 'other']) made.authority(authority)
    made.issue('server', 'ca', 1, 'subjectAltName=DNS:localhost\n')
    const port = await freePort()
    secured.flags.push('--secureGRPCAddr', `127.0.0.1:${port}`, ...made.servingFlags())
    try {
      await secured.start()
      const token = join(secured.authorityDir, 'token')
      writeFileSync(token, (await runCommand(['token', '-n', 'mesh-system'], secured.env)).stdout)
      const asked = (...flags: string[]) =>
        runCommand(['proxy-status', '--address', `https://localhost:${port}`, '--token-file', token, ...flags], secured.env)
      expect((await asked('--ca-file', made.file('ca.pem'))).stdout).to.equal('No proxy is connected.\n')
      for (const flags of [['--ca-file', made.file('other.pem')], []]) expect((await asked(...flags)).stderr).to.match(/^Error: https:.*certificate/)
      expect((await asked('--ca-file', made.file('none'))).stderr).to.match(/^Error: --ca-file: .*none/)
    } finally {
      await secured.dispose()
    }
  })
})
