/**
 * Access to gateway secrets through the real command, with certificates of an authority that `--caCertFile` names (docs/resources.md, K6
 * to K9).
 */

import { X509Certificate } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fromBinary } from '@bufbuild/protobuf'
import { credentials, Metadata } from '@grpc/grpc-js'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { SecretSchema } from '../../protocols/gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js'
import { clusterType, listenerType, secretType } from '../../src/xds/type-urls.ts'
import { type Pair, pairValues, SiteCertificates, secretDocument } from '../harness/gateway-secrets.ts'
import { runCommand, Service } from '../harness/service.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'
import { type ClientNode, XdsClient } from '../harness/xds-client.ts'

const node = (type: string, namespace: string): ClientNode => ({
  id: `${type}~10.7.0.9~gateway.${namespace}~${namespace}.svc.cluster.local`,
  metadata: { NAMESPACE: namespace, LABELS: { app: 'gateway' } },
})

/** A service with a secured port that verifies clients with an authority of the test. */
class SecuredService {
  readonly service: Service
  readonly made: ServingCertificates
  readonly clients: XdsClient[] = []
  #port = 0

  constructor(env: Record<string, string> = {}) {
    this.service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '10ms', ENABLE_DEBUG_ON_LOOPBACK: 'true', ...env } })
    this.made = new ServingCertificates(this.service.dir)
  }

  async start(): Promise<void> {
    const { service, made } = this
    made.authority('ca')
    made.issue('server', 'ca')
    for (const namespace of ['edge', 'other']) made.workload(namespace, 'ca', [`spiffe://cluster.local/ns/${namespace}/sa/gateway`])
    made.workload('edge-app', 'ca', ['spiffe://cluster.local/ns/edge/sa/app'])
    this.#port = await freePort()
    service.flags.push('--writers', '2', '--secureGRPCAddr', `127.0.0.1:${this.#port}`)
    service.flags.push(...made.servingFlags())
    await service.start()
  }

  /** Connects with a token of the local issuer. */
  async connectByToken(who: ClientNode, delta: boolean, namespace: string): Promise<XdsClient> {
    const issued = await runCommand(['token', '--namespace', namespace, '--service-account', 'gateway'], this.service.env)
    const bearer = credentials.createFromMetadataGenerator((_, give) => {
      const metadata = new Metadata()
      metadata.set('authorization', `Bearer ${issued.stdout.trim()}`)
      give(null, metadata)
    })
    const tls = credentials.createSsl(Buffer.from(this.made.text('ca.pem')), null, null, { checkServerIdentity: () => undefined })
    const client = new XdsClient(this.#port, who, delta, credentials.combineChannelCredentials(tls, bearer))
    this.clients.push(client.connect())
    return client
  }

  /** Connects with the certificate of a namespace, or in plaintext without one. */
  connect(who: ClientNode, delta: boolean, identity?: string): XdsClient {
    const text = (name: string) => Buffer.from(this.made.text(name))
    const client =
      identity === undefined
        ? new XdsClient(this.service.grpcPort, who, delta)
        : new XdsClient(
            this.#port,
            who,
            delta,
            credentials.createSsl(text('ca.pem'), text(`${identity}-key.pem`), text(`${identity}.pem`), { checkServerIdentity: () => undefined }),
          )
    this.clients.push(client.connect())
    return client
  }

  async dispose(): Promise<void> {
    for (const client of this.clients) client.close()
    await this.service.dispose()
  }
}

/** Returns the private key that a client has under a name, or its CA certificates. */
function held(client: XdsClient, name: string): string {
  const value = client.resources.get(secretType)?.get(name)
  const { type } = value ? fromBinary(SecretSchema, value) : { type: undefined }
  const source = type?.case === 'tlsCertificate' ? type.value.privateKey : type?.case === 'validationContext' ? type.value.trustedCa : undefined
  return Buffer.from((source?.specifier.value as Uint8Array | undefined) ?? []).toString()
}

/** Subscribes after the first configuration. A response of a later type then implies that subscribed secrets were answered. */
async function settled(client: XdsClient, ask: () => void): Promise<XdsClient> {
  await until('the first configuration', () => client.responses.has(clusterType) && client.responses.has(listenerType))
  ask()
  return client
}

describe('gateway secrets', () => {
  const control = new SecuredService()
  const { service } = control
  const made = new SiteCertificates()
  const sources = mkdtempSync(join(tmpdir(), 'mesh-secret-sources-'))
  let root: Pair
  let sites: Pair[]
  const write = (name: string, values: Record<string, string>) => service.write(`${name.replace('/', '-')}.json`, secretDocument(name, values))

  before(async () => {
    root = made.authority('sites')
    sites = ['a', 'b', 'c', 'd'].map((name) => made.issue(`${name}.example`, root))
    write('edge/site', pairValues(sites[0] as Pair, root))
    write('edge/second', pairValues(sites[1] as Pair))
    write('other/site', pairValues(sites[2] as Pair))
    await control.start()
  })
  after(async () => {
    await control.dispose()
    made.dispose()
    rmSync(sources, { recursive: true, force: true })
  })
  const keyOf = (site: number) => (sites[site] as Pair).key

  it('that do not exist for a gateway are told by explain and proxy-status, until they do', async () => {
    const server = (name: string, port: number) =>
      `{port: {number: ${port}, name: ${name}, protocol: HTTPS}, hosts: [${name}.example], tls: {mode: SIMPLE, credentialName: ${name}}}`
    service.write(
      'gateway.yaml',
      `apiVersion: networking.mesh.io/v1\nkind: Gateway\nmetadata: {name: lacking, namespace: edge}\nspec: {selector: {app: gateway}, servers: [${server('site', 8443)}, ${server('lacking', 9443)}]}\n`,
    )
    const client = await settled(control.connect(node('router', 'edge'), true, 'edge'), () => undefined)
    await until('the listeners', () => client.resources.get(listenerType)?.size === 2)
    client.watch(secretType, ['kubernetes://site', 'kubernetes://lacking'])
    await until('what is not there', () => client.removed.includes('kubernetes://lacking'))
    const failing = await runCommand(['explain', 'gateway.edge', 'https://lacking.example:9443/'], service.env)
    expect([failing.code, failing.stdout.split('\n')[1]]).to.deep.equal([
      1,
      'FAILS: the connection is closed: the TLS handshake fails: kubernetes://lacking does not exist, or lacks what is needed, or the gateway may not read it (tls.credentialName of the Gateway); one that was sent to the proxy before it was removed stays in use there',
    ])
    expect(failing.stdout).to.contain('makes it  Gateway edge/lacking (gateway.yaml, document 1)')
    const status = await runCommand(['proxy-status'], service.env)
    expect(status.stdout).to.contain(
      'gateway.edge asks for kubernetes://lacking, which does not exist for it: listeners and clusters that need it refuse connections, or go on with what it was sent before\n',
    )
    expect(status.stderr).to.equal('1 proxy: 1 SYNCED; 1 without a secret that it needs\n')
    expect((await runCommand(['explain', 'gateway.edge', 'https://site.example:8443/'], service.env)).stdout).not.to.contain('TLS handshake')
    write('edge/lacking', pairValues(sites[0] as Pair))
    await until('the secret', () => held(client, 'kubernetes://lacking') === keyOf(0))
    expect((await runCommand(['explain', 'gateway.edge', 'https://lacking.example:9443/'], service.env)).stdout).not.to.contain('TLS handshake')
    client.close()
    for (const file of ['gateway.yaml', 'edge-lacking.json']) service.remove(file)
  })

  it('that nothing names any more are not told, though the Envoy asks for them until the listener is drained', async () => {
    const server = '{port: {number: 9443, name: https, protocol: HTTPS}, hosts: ["*"], tls: {mode: SIMPLE, credentialName: gone}}'
    service.write(
      'gateway.yaml',
      `apiVersion: networking.mesh.io/v1\nkind: Gateway\nmetadata: {name: gone, namespace: edge}\nspec: {selector: {app: gateway}, servers: [${server}]}\n`,
    )
    const client = await settled(control.connect(node('router', 'edge'), true, 'edge'), () => undefined)
    await until('the listener', () => client.resources.get(listenerType)?.size === 1)
    client.watch(secretType, ['kubernetes://gone', 'kubernetes://go'])
    await until('what is not there', () => client.removed.includes('kubernetes://gone'))
    const status = async () => await runCommand(['proxy-status'], service.env)
    const told = await status()
    expect(told.stdout).to.contain('gateway.edge asks for kubernetes://gone, which')
    expect(told.stdout).not.to.contain('kubernetes://go,')
    service.remove('gateway.yaml')
    await until('no listener', () => client.resources.get(listenerType)?.size === 0)
    const { stdout, stderr } = await status()
    expect([stdout.includes('asks for'), stderr]).to.deep.equal([false, '1 proxy: 1 SYNCED\n'])
    client.close()
  })

  for (const delta of [false, true]) {
    const variant = delta ? 'delta' : 'state of the world'

    it(`${variant}: are served to a router of the same namespace, under either name`, async () => {
      const names = ['kubernetes://site', 'kubernetes://edge/site', 'kubernetes://site-cacert', 'kubernetes://second']
      const client = await settled(control.connect(node('router', 'edge'), delta, 'edge'), () => undefined)
      client.watch(secretType, names)
      await until('all of them', () => client.resources.get(secretType)?.size === 4)
      expect(names.map((name) => held(client, name))).to.deep.equal([keyOf(0), keyOf(0), root.chain, keyOf(1)])
    })

    it(`${variant}: do not exist for a router of another namespace, and delay none of its own`, async () => {
      const client = await settled(control.connect(node('router', 'other'), delta, 'other'), () => undefined)
      const refused = ['kubernetes://edge/site', 'kubernetes://second', 'kubernetes://none', 'kubernetes://site-cacert']
      client.watch(secretType, ['kubernetes://site', ...refused])
      await until('its own', () => held(client, 'kubernetes://site') === keyOf(2))
      if (delta) await until('what is not there', () => refused.every((name) => client.removed.includes(name)))
      expect([...(client.resources.get(secretType)?.keys() ?? [])]).to.deep.equal(['kubernetes://site'])
    })

    it(`${variant}: are served neither in plaintext nor to sidecars`, async () => {
      for (const client of [control.connect(node('router', 'edge'), delta), control.connect(node('sidecar', 'edge'), delta, 'edge')]) {
        await settled(client, () => client.watch(secretType, ['kubernetes://site']))
        // Responses come in the order of requests: a response for the secret would precede this one.
        client.watch('type.googleapis.com/envoy.config.route.v3.RouteConfiguration', ['unknown'])
        await until('the answer after it', () => client.responses.has('type.googleapis.com/envoy.config.route.v3.RouteConfiguration'))
        expect(client.resources.get(secretType)?.size).to.equal(0)
        expect(client.removed.includes('kubernetes://site')).to.equal(delta)
      }
    })

    it(`${variant}: go to the service accounts that the annotation names, and are withdrawn when it changes`, async () => {
      const name = `accounts-${delta}`
      const annotate = (accounts: string | null) =>
        service.write(`edge-${name}.json`, secretDocument(`edge/${name}`, pairValues(sites[0] as Pair), undefined, accounts))
      const row = async () =>
        (await service.debug<{ metadata: { name: string }; serviceAccounts: string[]; refused: string[] }[]>('configz')).find(
          ({ metadata }) => metadata.name === name,
        )
      // A source that has no such Secret says so before or after the one that refuses it.
      const empty = join(sources, `empty-${delta}`)
      mkdirSync(empty)
      service.write('mesh-config', `configSources: ${JSON.stringify([{ address: `fs://${empty}` }])}\n`)
      await until('the other source', async () =>
        (await service.debug<{ sources: { source: string }[] }>('filez')).sources.some(({ source }) => source === `fs://${empty}`),
      )
      annotate('gateway')
      // Whoever asks before the Secret is read is told that it does not exist.
      await until('the Secret', async () => (await row()) !== undefined)
      const [gateway, app] = ['edge', 'edge-app'].map((identity) => control.connect(node('router', 'edge'), delta, identity)) as [
        XdsClient,
        XdsClient,
      ]
      for (const client of [gateway, app]) await settled(client, () => client.watch(secretType, [`kubernetes://${name}`]))
      await until('the secret', () => held(gateway, `kubernetes://${name}`) === keyOf(0))
      const refused = (account: string, why: string) =>
        `Secret/edge/${name} in edge-${name}.json, document 1 is not for the service account ${account} of gateways that request it: its annotation security.mesh.io/service-accounts ${why}`
      await service.output.says(refused('app', 'names gateway only'), 1, 1)
      expect(held(app, `kubernetes://${name}`)).to.equal('')
      const shown = await row()
      expect([shown?.serviceAccounts, shown?.refused]).to.deep.equal([['gateway'], ['app']])
      annotate('app')
      await until('the other to have it', () => held(app, `kubernetes://${name}`) === keyOf(0))
      await service.output.says(refused('gateway', 'names app only'), 1, 1)
      if (delta) await until('the first to lose it', () => gateway.removed.includes(`kubernetes://${name}`))
      annotate('app,Not One')
      await service.output.says(
        `Secret/edge/${name}, field metadata.annotations[security.mesh.io/service-accounts]: "Not One" is not the name of a service account; expected names separated by commas, and nobody gets the Secret`,
      )
      if (delta) await until('both to have lost it', () => app.removed.includes(`kubernetes://${name}`))
      annotate(null)
      await service.output.says(refused('app', 'is missing'))
      service.output.lacks(`request kubernetes://${name}, which does not exist`)
      service.write('mesh-config', '')
    })

    it(`${variant}: of the first source that has one counts, and a withdrawn one brings that of the next`, async () => {
      const name = `moved-${delta}`
      const [first, second] = ['first', 'second'].map((source) => join(sources, `${source}-${delta}`)) as [string, string]
      for (const directory of [first, second]) mkdirSync(directory)
      const put = (directory: string, site: number) =>
        writeFileSync(join(directory, `${name}.json`), secretDocument(`edge/${name}`, pairValues(sites[site] as Pair)))
      const order = (...directories: string[]) =>
        service.write('mesh-config', `configSources: ${JSON.stringify(directories.map((directory) => ({ address: `fs://${directory}` })))}\n`)
      put(first, 0)
      put(second, 1)
      order(first, second)
      const client = await settled(control.connect(node('router', 'edge'), delta, 'edge'), () => undefined)
      client.watch(secretType, [`kubernetes://${name}`])
      const has = (what: string, site: number) => until(what, () => held(client, `kubernetes://${name}`) === keyOf(site))
      await has('that of the first source', 0)
      order(second, first)
      await has('that of the other after a change of order', 1)
      put(second, 3)
      await has('its change', 3)
      rmSync(join(second, `${name}.json`))
      await has('that of the next where the first withdraws it', 0)
      write(`edge/${name}`, pairValues(sites[2] as Pair))
      await has('that of --configDir, which comes first', 2)
      service.remove(`edge-${name}.json`)
      await has('that of the source again', 0)
      order(second)
      if (delta) await until('it to go with its source', () => client.removed.includes(`kubernetes://${name}`))
      else await service.output.says(`the actor source/fs${first}: its objects are removed`)
      put(second, 1)
      await has('that of the source that is left', 1)
      service.write('mesh-config', '')
      // Waited for, since its push would be counted in the next test.
      const timesGone = () => client.removed.filter((removed) => removed === `kubernetes://${name}`).length
      if (delta) await until('it to go with the last source', () => timesGone() >= 2)
      else await service.output.says(`the actor source/fs${second}: its objects are removed`)
    })

    it(`${variant}: are pushed on change to their subscribers, and nothing else to anybody`, async () => {
      const name = `turn-${delta}`
      write(`edge/${name}`, pairValues(sites[0] as Pair))
      const [one, two, stranger] = await Promise.all(
        [
          ['edge', `kubernetes://${name}`],
          ['edge', 'kubernetes://second'],
          ['other', `kubernetes://${name}`],
        ].map(([namespace = '', wanted = '']) => {
          const client = control.connect(node('router', namespace), delta, namespace)
          return settled(client, () => client.watch(secretType, [wanted]))
        }),
      )
      if (!one || !two || !stranger) throw new Error('no clients')
      await until('the first', () => held(one, `kubernetes://${name}`) === keyOf(0) && held(two, 'kubernetes://second') === keyOf(1))
      if (delta) await until('that the stranger has none', () => stranger.removed.includes(`kubernetes://${name}`))
      const responses = () => [one, two, stranger].map((client) => [...client.responses].map(([type, count]) => `${type} ${count}`))
      const before = responses()
      const pushes = async () =>
        (await service.metrics())
          .split('\n')
          .filter((line) => /^pilot_(xds_pushes|push_triggers)\{/.test(line) && !/"sds"|"secret"|"unknown"/.test(line))
      const others = await pushes()
      const count = async (metric: string) => Number(new RegExp(`^${metric} (\\d+)$`, 'm').exec(await service.metrics())?.[1] ?? 0)
      const triggered = await count('pilot_push_triggers{type="secret"}')
      // A response is counted after it has been sent: those before the change, the last of an earlier test too, are waited for.
      const sent = control.clients.reduce((sum, client) => sum + (client.responses.get(secretType) ?? 0), 0)
      await until('the responses so far to be counted', async () => (await count('pilot_xds_pushes{type="sds"}')) >= sent)
      write(`edge/${name}`, pairValues(sites[3] as Pair))
      await until('the change', () => held(one, `kubernetes://${name}`) === keyOf(3))
      expect(responses().slice(1)).to.deep.equal(before.slice(1))
      expect(responses()[0]?.filter((line) => !line.startsWith(secretType))).to.deep.equal(before[0]?.filter((line) => !line.startsWith(secretType)))
      expect(await pushes()).to.deep.equal(others)
      expect(await count('pilot_push_triggers{type="secret"}')).to.equal(triggered + 1)
      await until('the push to be counted', async () => (await count('pilot_xds_pushes{type="sds"}')) > sent)
      expect(await count('pilot_xds_pushes{type="sds"}')).to.equal(sent + 1)
    })
  }

  it('are served to a router with a token of its namespace', async () => {
    const client = await control.connectByToken(node('router', 'edge'), true, 'edge')
    await settled(client, () => client.watch(secretType, ['kubernetes://site', 'kubernetes://other/site']))
    await until('its own', () => held(client, 'kubernetes://site') === keyOf(0))
    await until('that of another namespace', () => client.removed.includes('kubernetes://other/site'))
  })

  it('keep their last good state while the document is invalid, and are pushed once it is valid', async () => {
    write('edge/mended', pairValues(sites[0] as Pair))
    const client = control.connect(node('router', 'edge'), true, 'edge')
    await settled(client, () => client.watch(secretType, ['kubernetes://mended']))
    await until('the first', () => held(client, 'kubernetes://mended') === keyOf(0))
    write('edge/mended', { 'tls.crt': (sites[1] as Pair).chain, 'tls.key': keyOf(2) })
    const fault = 'Secret/edge/mended, field data.tls.key: not the key of the first certificate of tls.crt; its last good state stays'
    await service.output.says(fault)
    expect(held(client, 'kubernetes://mended')).to.equal(keyOf(0))
    write('edge/mended', pairValues(sites[1] as Pair))
    await until('the right one', () => held(client, 'kubernetes://mended') === keyOf(1))
  })

  it('are pushed to waiting subscribers when they are created', async () => {
    const clients = [false, true].map((delta) => control.connect(node('router', 'edge'), delta, 'edge'))
    for (const client of clients) await settled(client, () => client.watch(secretType, ['kubernetes://late']))
    await until('the answer that there is none', () => clients[1]?.removed.includes('kubernetes://late') ?? false)
    const line = 'gateways of service account gateway in namespace edge request kubernetes://late, which does not exist'
    await service.output.says(line)
    write('edge/late', pairValues(sites[2] as Pair))
    for (const client of clients) await until('the secret', () => held(client, 'kubernetes://late') === keyOf(2))
  })

  it('are listed on debug pages with certificate dates and without their content', async () => {
    write('edge/shown', pairValues(sites[0] as Pair, root))
    interface Row {
      readonly kind: string
      readonly metadata: { readonly name: string; readonly namespace: string }
    }
    const row = async () => (await service.debug<Row[]>('configz')).find(({ metadata }) => metadata.name === 'shown')
    await until('the row', async () => (await row()) !== undefined)
    const dates = ({ chain }: Pair) => {
      const { validFromDate, validToDate } = new X509Certificate(chain)
      return { notBefore: validFromDate.toISOString(), notAfter: validToDate.toISOString() }
    }
    expect(await row()).to.deep.equal({
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/tls',
      metadata: { namespace: 'edge', name: 'shown' },
      certificate: dates(sites[0] as Pair),
      authorities: dates(root),
      serviceAccounts: ['gateway'],
      refused: [],
      place: 'edge-shown.json, document 1',
    })
    const namespaces = async (namespace: string) =>
      new Set((await service.debug<Row[]>(`configz?namespace=${namespace}`)).map(({ metadata }) => metadata.namespace))
    expect([...(await namespaces('edge'))]).to.deep.equal(['edge'])
    expect([...(await namespaces('none'))]).to.deep.equal([])
  })

  it('cause a warning if their certificate has expired', async () => {
    write('edge/old', pairValues(made.issue('old.example', root, { days: -1 })))
    await service.output.says(/Secret\/edge\/old in edge-old.json, document 1: its certificate has expired on 20/)
  })

  it('are removed from NACK messages that quote them', async () => {
    const client = control.connect(node('router', 'edge'), false, 'edge')
    await settled(client, () => undefined)
    client.refuseNext = `cannot be used: inline_bytes: "${keyOf(0).replaceAll('\n', '\\n')}"`
    client.watch(secretType, ['kubernetes://site'])
    await until('the refusal', async () =>
      (await service.rejections()).some((text) => text.endsWith('the reason is left out: it quotes a certificate or a key')),
    )
  })

  it('appear on no page, in no metric and in no log line', async () => {
    const index = await (await fetch(`http://127.0.0.1:${service.httpPort}/debug`)).text()
    const pages = [...index.matchAll(/^\/debug\/(\S+)/gm)].map(([, page]) => page as string)
    expect(pages).to.include.members(['configz', 'config_dump', 'adsz', 'cachez'])
    const texts = [service.output.soFar(), await service.metrics()]
    for (const page of pages)
      for (const query of ['', '?proxyID=gateway.edge'])
        texts.push(await (await fetch(`http://127.0.0.1:${service.httpPort}/debug/${page}${query}`)).text())
    const pieces = sites.flatMap(({ key }) => key.split('\n').slice(1, 3))
    expect(pieces[0]).to.have.length.above(50)
    for (const text of texts)
      for (const piece of pieces)
        for (const form of [piece, Buffer.from(piece).toString('base64').slice(4, -8)]) expect(text.includes(form)).to.equal(false)
  })
})

describe('gateway secrets without the identity check', () => {
  const control = new SecuredService({ PILOT_ENABLE_XDS_IDENTITY_CHECK: 'false' })
  const made = new SiteCertificates()
  before(async () => {
    control.service.write('site.json', secretDocument('edge/site', pairValues(made.issue('a.example', made.authority('sites')))))
    await control.start()
  })
  after(async () => {
    await control.dispose()
    made.dispose()
  })

  it('are served to nobody, with a log line at start', async () => {
    const client = control.connect(node('router', 'edge'), true, 'edge')
    await settled(client, () => client.watch(secretType, ['kubernetes://site']))
    await until('the answer', () => client.removed.includes('kubernetes://site'))
    expect(client.resources.get(secretType)?.size).to.equal(0)
    await control.service.output.says('gateway secrets (credentialName) are not served: PILOT_ENABLE_XDS_IDENTITY_CHECK=false')
  })
})

describe('gateway secrets without an annotation', () => {
  const made = new SiteCertificates()
  after(() => made.dispose())
  for (const [optOut, isServed] of [
    ['', false],
    ['secret-accounts', true],
  ] as const)
    it(
      isServed ? 'go to all routers of the namespace with the opt-out, which is said at start' : 'go to nobody, which is said at start',
      async () => {
        const secured = new SecuredService({ MESH_POLICY_OPT_OUTS: optOut })
        const { service } = secured
        try {
          const site = made.issue('a.example', made.authority('sites'))
          service.write('site.json', secretDocument('edge/site', pairValues(site), undefined, null))
          await secured.start()
          await service.output.says(
            isServed
              ? 'policy check secret-accounts is disabled (MESH_POLICY_OPT_OUTS), so this does not hold: a Secret with a private key goes to'
              : 'Secret/edge/site, field metadata.annotations[security.mesh.io/service-accounts]: required, but missing',
          )
          const client = secured.connect(node('router', 'edge'), true, 'edge-app')
          await settled(client, () => client.watch(secretType, ['kubernetes://site']))
          if (isServed) await until('the secret', () => held(client, 'kubernetes://site') === site.key)
          else await until('the answer that there is none', () => client.removed.includes('kubernetes://site'))
          const rows = await service.debug<{ check: string; optedOut: boolean; objects: { kind: string; name: string }[] }[]>('policyz')
          const row = rows.find(({ check }) => check === 'secret-accounts')
          expect([row?.optedOut, row?.objects.map(({ kind, name }) => `${kind}/${name}`)]).to.deep.equal([isServed, ['Secret/site']])
        } finally {
          await secured.dispose()
        }
      },
    )
})
