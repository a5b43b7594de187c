import { createServer, connect as dial, type Socket } from 'node:net'
import { connect as dialTls } from 'node:tls'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { policyDocument } from '../harness/policies.ts'
import { describeAttacks, namespace } from '../harness/red-team.ts'
import { until } from '../harness/until.ts'

const tokens = policyDocument(
  'RequestAuthentication',
  'tokens',
  '{jwtRules: [{issuer: issuer.example, jwks: \'{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}\'}]}',
)
const custom = policyDocument('AuthorizationPolicy', 'asked', '{action: CUSTOM, provider: {name: gone}, rules: [{}]}')
const allow = policyDocument('AuthorizationPolicy', 'public', "{rules: [{to: [{operation: {paths: ['/public']}}]}]}")

/** A workload that answers any bytes as a request, records them, and sends a greeting first if `greets` is set. */
async function lenientBackend() {
  const seen: string[] = []
  const state = { greets: false }
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    if (state.greets) socket.write('hello ')
    socket.on('data', (bytes) => {
      seen.push(bytes.toString('latin1'))
      socket.end(`HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\ntaken`)
    })
  })
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return { port, seen, state, stop: () => new Promise((resolve) => server.close(resolve)) }
}

const request = (line: string, end = '\r\n') => [line, 'Host: app', 'Authorization: Bearer forged', '', ''].join(end)

/** Malformed requests that lenient servers accept, all with an invalid token. */
const sloppy: Readonly<Record<string, string>> = {
  plain: request('GET /secret HTTP/1.1'),
  'a small method': request('get /secret HTTP/1.1'),
  'a method of their own': request('FETCH /secret HTTP/1.1'),
  'HTTP/1.0': request('GET /secret HTTP/1.0'),
  'HTTP/1.0 and an odd method': request('GEt /secret HTTP/1.0'),
  'HTTP/0.9': 'GET /secret\r\n',
  'a later version': request('GET /secret HTTP/1.9'),
  'a line before': `\r\n${request('GET /secret HTTP/1.1')}`,
  'many lines before': `${'\r\n'.repeat(200)}${request('GET /secret HTTP/1.1')}`,
  'a blank before': ` ${request('GET /secret HTTP/1.1')}`,
  'a null byte before': `\0${request('GET /secret HTTP/1.1')}`,
  'short line ends': request('GET /secret HTTP/1.1', '\n'),
  'two blanks': request('GET  /secret  HTTP/1.1'),
  'a tab': request('GET\t/secret\tHTTP/1.1'),
  'the start of HTTP/2': `PRI * HTTP/2.0\r\n\r\n${request('GET /secret HTTP/1.1')}`,
  'half of the start of HTTP/2': `PRI${request('GET /secret HTTP/1.1')}`,
  'HTTP/2 without TLS': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0',
  'bytes of another protocol': '\x05\x01\0',
  'a start of TLS': '\x16\x03\x01',
}

describeAttacks(
  'ports without a declared protocol',
  (place) => {
    let backend: Awaited<ReturnType<typeof lenientBackend>>
    let port = 0

    before(async () => {
      backend = await lenientBackend()
      port = await freePort()
      const ingress = (number: number, protocol: string, endpoint: number) =>
        `{port: {number: ${number}, protocol: '${protocol}', name: p${number}}, bind: ${place.address}, captureMode: NONE, defaultEndpoint: '127.0.0.1:${endpoint}'}`
      place.service.write(
        `${place.id}.yaml`,
        `apiVersion: networking.mesh.io/v1\nkind: Sidecar\nmetadata: {name: ${place.id}, namespace: ${namespace}}\nspec: {workloadSelector: {labels: {place: ${place.id}}}, ingress: [${ingress(place.port, 'HTTP', place.backend.port)}, ${ingress(port, '', backend.port)}], egress: [{hosts: ['./*']}]}\n`,
      )
      await until('the port to answer', async () => (await answerTo(request('GET / HTTP/1.1'))).includes('taken'))
    })
    after(() => backend?.stop())
    beforeEach(() => void (backend && (backend.seen.length = 0)))

    /** Applies a policy and waits until the port enforces it. Worker threads of Envoy apply a listener after its admin page shows it. */
    async function enforce(document: string, text: string, isTaken: boolean): Promise<void> {
      await place.enforce(document)
      await until('the port to go by it', async () => (await answerTo(text)).includes('taken') === isTaken)
      backend.seen.length = 0
    }

    /** Returns the answer to a text that is sent at once, byte by byte, or after the proxy's protocol detection timeout. */
    async function answerTo(text: string, sending: 'at once' | 'trickled' | 'late' = 'at once'): Promise<string> {
      const before = sending === 'late' ? await connections() : 0
      const socket = dial({ host: place.address, port, noDelay: true }).on('error', () => undefined)
      if (sending === 'late') await until('the proxy to wait no longer', async () => (await connections()) > before)
      return exchange(socket, sending === 'trickled' ? text.split('') : [text])
    }

    /** Sends texts one after another. Returns the first chunk of the answer, since the proxy sends a rejection at once. */
    async function exchange(socket: Socket, parts: readonly string[]): Promise<string> {
      const answered = new Promise<string>((resolve) => {
        for (const event of ['close', 'end', 'timeout']) socket.once(event, () => resolve(''))
        socket.once('data', (bytes) => resolve(bytes.toString('latin1')))
      })
      socket.setTimeout(30_000)
      for (const part of parts) await new Promise((sent) => (socket.destroyed ? sent(undefined) : socket.write(part, 'latin1', sent)))
      const answer = await answered
      socket.destroy()
      return answer
    }

    /** Returns the number of connections whose protocol detection has ended. */
    const connections = () => place.envoy.stat(`${place.address}_${port}.downstream_cx_total`)

    for (const [name, policy] of Object.entries({
      RequestAuthentication: tokens,
      'a CUSTOM policy with an HTTP authorizer': custom,
      'an ALLOW policy for paths': allow,
    })) {
      it(`forward no request denied by ${name}, however malformed, fragmented or late it is`, async () => {
        await enforce(policy, sloppy.plain as string, false)
        for (const [form, text] of Object.entries(sloppy)) {
          expect(await answerTo(text), form).not.to.include('taken')
          expect(await answerTo(text, 'trickled'), `${form}, byte by byte`).not.to.include('taken')
        }
        for (const form of ['plain', 'a small method', 'HTTP/2 without TLS', 'bytes of another protocol'])
          expect(await answerTo(sloppy[form] as string, 'late'), `${form}, late`).not.to.include('taken')
        const socket = dialTls({ host: place.address, port, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] }).on('error', () => undefined)
        expect(await exchange(socket, [request('GET /secret HTTP/1.1')]), 'within TLS').to.equal('')
        expect(backend.seen).to.deep.equal([])
      })
    }

    it('forward a request that a RequestAuthentication allows, also after the protocol detection timeout', async () => {
      await enforce(tokens, 'GET / HTTP/1.1\r\nHost: app\r\nConnection: close\r\n\r\n', true)
      expect(await answerTo('GET / HTTP/1.1\r\nHost: app\r\nConnection: close\r\n\r\n', 'late')).to.include('taken')
    })

    it('forward bytes of either side without HTTP policies, even if the server sends first', async () => {
      await enforce(policyDocument('AuthorizationPolicy', 'all', '{rules: [{}]}'), '\x05\x01\0', true)
      backend.state.greets = true
      expect(await answerTo('', 'late')).to.equal('hello ')
      backend.state.greets = false
      expect(await answerTo('\x05\x01\0')).to.include('taken')
      expect(backend.seen).to.deep.equal(['\x05\x01\0'])
    })
  },
  {
    // The protocol of a gateway server is always declared.
    side: 'sidecar',
    env: { PILOT_INBOUND_PROTOCOL_DETECTION_TIMEOUT: '100ms' },
    mesh: 'extensionProviders: [{name: gone, envoyExtAuthzHttp: {service: shop/gone.example, port: 80}}]\n',
    files: {
      'gone.yaml': `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: gone, namespace: ${namespace}}\nspec: {hosts: [gone.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 127.0.0.1, ports: {http: 1}}]}\n`,
    },
  },
)
