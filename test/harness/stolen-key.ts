/**
 * A program that has the key of a root and makes itself a certificate of a workload: `stolen-key.ts FILE`, where the file has an {@link Attempt}. It
 * opens a stream to each writer of discovery and calls each workload all the time, and writes a line of JSON for each of them when it is
 * first served, and when it is then refused. It ends when nobody serves it any more.
 */
import { createPrivateKey, generateKeyPairSync, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { connect } from 'node:tls'
import { credentials } from '@grpc/grpc-js'
import { readCertificate } from '../../src/ca/certificate.ts'
import { issueWorkload, signingKeyOf } from '../../src/ca/issue.ts'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { pemOf } from '../../src/identity/pem.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { sidecarNode, XdsClient } from './xds-client.ts'

/** What it has, PEM, and whom it tries, as `<address>:<port>`. */
export interface Attempt {
  readonly rootKey: string
  readonly root: string
  /** Whom it claims to be: the service account `client` of `shop` has the identity `spiffe://cluster.local/ns/shop/sa/client`. */
  readonly account: string
  readonly writers: readonly string[]
  readonly workloads: readonly string[]
}

/** A line of its output. */
export interface AttemptLine {
  readonly target: string
  readonly state: 'served' | 'refused'
}

/** The pause between two calls of a workload, in ms. */
const pauseMs = 50
/** A call that fails may have other reasons; after so many in a row it is refused. */
const refusals = 3

/** Calls a workload. Returns whether it answered. */
function isAnswered(target: string, key: string, cert: string): Promise<boolean> {
  const [host = '', port] = target.split(':')
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port), key, cert, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'], timeout: 5000 })
    socket.on('secureConnect', () => socket.write('GET / HTTP/1.1\r\nhost: web.shop\r\nconnection: close\r\n\r\n'))
    socket.on('data', (bytes) => {
      resolve(bytes.toString('latin1').startsWith('HTTP/1.1 200'))
      socket.destroy()
    })
    socket.on('timeout', () => socket.destroy())
    socket.on('error', () => resolve(false))
    socket.on('close', () => resolve(false))
  })
}

const tell = (line: AttemptLine) => process.stdout.write(`${JSON.stringify(line)}\n`)

async function callWorkload(target: string, key: string, cert: string): Promise<void> {
  while (!(await isAnswered(target, key, cert))) await pause(pauseMs)
  tell({ target, state: 'served' })
  for (let failed = 0; failed < refusals; ) {
    await pause(pauseMs)
    failed = (await isAnswered(target, key, cert)) ? 0 : failed + 1
  }
  tell({ target, state: 'refused' })
}

async function holdStream(target: string, account: string, key: string, cert: string): Promise<void> {
  const tls = credentials.createSsl(null, Buffer.from(key), Buffer.from(cert), { rejectUnauthorized: false })
  const node = sidecarNode('10.99.0.1', account, 'shop', { SERVICE_ACCOUNT: account })
  const client = new XdsClient(target, node, false, tls).connect()
  while (!client.responses.has(clusterType)) {
    if (client.closed) throw new Error(`${target}: ${client.closed.code} ${client.closed.details}`)
    await pause(pauseMs)
  }
  tell({ target, state: 'served' })
  while (!client.closed) await pause(pauseMs)
  tell({ target, state: 'refused' })
  client.close()
}

if (process.argv[2] !== undefined) {
  const { rootKey, root, account, writers, workloads } = JSON.parse(readFileSync(process.argv[2], 'utf8')) as Attempt
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const grant = { serial: randomBytes(16), notBefore: Date.now() - 60_000, notAfter: Date.now() + 3_600_000 }
  const der = Buffer.from(root.replace(/-----[^-]+-----|\s/g, ''), 'base64')
  const signer = signingKeyOf(readCertificate(der), createPrivateKey(rootKey))
  const cert = pemOf('CERTIFICATE', issueWorkload(makeSigningRequest(privateKey, []), `spiffe://cluster.local/ns/shop/sa/${account}`, grant, signer))
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
  await Promise.all([
    ...writers.map((target) => holdStream(target, account, key, cert)),
    ...workloads.map((target) => callWorkload(target, key, cert)),
  ])
}
