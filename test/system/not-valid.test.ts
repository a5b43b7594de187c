/** Roots, chains and serving certificates that are not valid at present, through the real command: configuration goes on being served. */

import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { readCertificate } from '../../src/ca/certificate.ts'
import { issueRoot, issueServing, signingKeyOf } from '../../src/ca/issue.ts'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { pemOf } from '../../src/identity/pem.ts'
import { textOf } from '../harness/page-text.ts'
import { runCommand, Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const day = 86_400_000

/** An authority that is valid for the days from `from` to `to`, counted from now. */
function authority(name: string, from: number, to: number) {
  const { privateKey: key } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const now = Math.floor(Date.now() / 1000) * 1000
  const grant = { serial: randomBytes(16), notBefore: now + from * day, notAfter: now + to * day }
  const encoded = issueRoot(name, grant, key)
  const pem = (one: typeof key) => one.export({ type: 'pkcs8', format: 'pem' }) as string
  return {
    certificate: pemOf('CERTIFICATE', encoded),
    key: pem(key),
    /** A serving certificate of the same validity, and its key. */
    serving() {
      const own = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
      const request = makeSigningRequest(own, [{ dns: 'discovery.test' }])
      return {
        cert: pemOf('CERTIFICATE', issueServing(request, { ...grant, serial: randomBytes(16) }, signingKeyOf(readCertificate(encoded), key))),
        key: pem(own),
      }
    },
  }
}

describe('certificates that are not valid at present', () => {
  let service: Service
  let port: number
  beforeEach(async () => {
    service = new Service()
    port = await freePort()
    service.flags.push('--writers', '2', '--secureGRPCAddr', `127.0.0.1:${port}`)
    service.env.ROOT_CA_DIR = join(service.dir, '.plugged')
  })
  afterEach(() => service.dispose())

  const ready = async () => {
    const answer = await fetch(`http://127.0.0.1:${service.httpPort}/ready`)
    return { status: answer.status, text: await textOf(answer) }
  }
  const plug = ({ certificate, key }: ReturnType<typeof authority>) => {
    mkdirSync(service.env.ROOT_CA_DIR as string, { recursive: true })
    for (const [name, content] of Object.entries({ 'root-cert.pem': certificate, 'ca-cert.pem': certificate, 'ca-key.pem': key }))
      writeFileSync(join(service.env.ROOT_CA_DIR as string, name), content, { mode: 0o600 })
  }
  const metric = async (certificate: string) =>
    new RegExp(`^mesh_certificates_not_valid{certificate="${certificate}"} (.*)$`, 'm').exec(await service.metrics())?.[1]
  const isServed = async () => {
    const client = new XdsClient(service.grpcPort, sidecarNode('10.0.0.2', 'a', 'shop'), false).connect()
    await client.ready()
    client.close()
  }

  for (const [name, from, to, fault] of [
    ['that has expired', -20, -10, 'has expired on'],
    ['that is not valid yet', 10, 20, 'is not valid before'],
  ] as const)
    it(`a plugged-in root ${name} signs nothing, and the secured port waits for one that is valid`, async () => {
      plug(authority('plugged', from, to))
      await service.start()
      await isServed()
      await until('the whole of /ready', async () => (await ready()).text.includes('the secured port is not open'))
      const { status, text } = await ready()
      expect(status).to.equal(200)
      expect(text).to.match(new RegExp(`^root [0-9a-f]{16} \\(O=plugged\\) ${fault} `, 'm'))
      expect(text).to.match(/^the secured port is not open: its certificate was not signed: /m)
      await service.output.says(new RegExp(`error.*root [0-9a-f]{16} \\(O=plugged\\) ${fault} `))
      expect(await metric('root')).to.equal('1')
      expect((await runCommand(['ca', 'show'], service.env)).stdout).to.match(
        new RegExp(`^Not valid: root [0-9a-f]{16} \\(O=plugged\\) ${fault} `, 'm'),
      )
      plug(authority('good', -1, 10))
      await until('all to be well', async () => (await ready()).text === '')
      await service.output.says('all certificates in use are valid again')
      expect([await metric('root'), await metric('serving')]).to.deep.equal(['0', '0'])
      plug(authority('plugged', from, to))
      const stays = new RegExp(`"O=plugged" ${fault} .*; the authority in force stays`)
      await service.output.says(stays)
      // What is in force is valid: that alone is told.
      await until('the fault of the files', async () => stays.test((await ready()).text))
      expect((await ready()).text.split('\n')).to.have.length(1)
    }).timeout(400_000)

  it('a serving certificate in files is said once, and is served until there is a better one', async () => {
    const put = ({ cert, key }: { cert: string; key: string }) => {
      writeFileSync(join(service.dir, '.serving-key.pem'), key)
      writeFileSync(join(service.dir, '.serving.pem'), cert)
    }
    put(authority('files', -20, -10).serving())
    service.flags.push('--tlsCertFile', join(service.dir, '.serving.pem'), '--tlsKeyFile', join(service.dir, '.serving-key.pem'))
    await service.start()
    await until('the line', async () => (await ready()).text !== '')
    const { status, text } = await ready()
    expect(status).to.equal(200)
    expect(text).to.match(/^the serving certificate of the secured port has expired on \S+$/)
    expect(await metric('serving')).to.equal('2')
    await service.output.says('the serving certificate of the secured port has expired on', 1, 1)
    put(authority('files', -1, 10).serving())
    await until('all to be well', async () => (await ready()).text === '')
    expect(await metric('serving')).to.equal('0')
  })
})
