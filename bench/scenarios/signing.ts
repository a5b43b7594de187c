/**
 * Measures signing: certificates per CPU second of a signing thread beside a loop of the same native operations, latencies at four fifths
 * of its rate, 2,000 agents with concurrent requests over TLS, and the push path while signing runs at full load.
 */
import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type ClientHttp2Session, connect as http2Connect } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { Signing, type SigningResult } from '../../actors/discovery/authority/signing.ts'
import { readCertificate } from '../../src/ca/certificate.ts'
import { issueRoot, issueWorkload, signingKeyOf } from '../../src/ca/issue.ts'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { fingerprintOf, pemOf } from '../../src/identity/pem.ts'
import { textField } from '../../src/xds/slab/wire.ts'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import type { BareTask } from '../bare-signer.ts'
import type { Goal } from '../goals.ts'
import { Load, percentile } from '../load.ts'
import * as mesh from '../mesh.ts'
import { type Measure, progress } from '../report.ts'
import { DiscoveryServer, processUsage } from '../server.ts'
import { measureChange } from './convergence.ts'
import { signingCalls } from './signing-calls.ts'

type KeyType = 'RSA' | 'P-256'

/**
 * The number of certificates per figure, and of concurrent requests: with more, requests would exceed their time limit on a busy machine.
 */
const [perRound, atOnce] = [2000, 250]
/** The duration of a latency measurement, in milliseconds. */
const latencyMs = 4000
/** The number of agents with concurrent requests, and the numbers of sidecars and services beside which signing runs. */
const agents = 2000
const [sidecars, services] = [100, 300]
/** The number of concurrent calls when signing runs at full load. */
const flatOut = 64
const hour = 3_600_000
const path = '/mesh.v1.auth.MeshCertificateService/CreateCertificate'

const newKey = (type: KeyType): KeyObject =>
  type === 'RSA' ? generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey : generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey

const identityOf = (number: number): string => `spiffe://cluster.local/ns/ns-${number % 10}/sa/agent-${number}`

/** A root in a directory, with the files of `ROOT_CA_DIR`. */
class BenchRoot {
  readonly dir = mkdtempSync(join(tmpdir(), 'mesh-bench-root-'))
  readonly key: KeyObject
  readonly certificate: string
  readonly #encoded: Buffer

  constructor(type: KeyType) {
    this.key = newKey(type)
    const now = Date.now()
    this.#encoded = issueRoot('bench', { serial: randomBytes(16), notBefore: now - hour, notAfter: now + 1000 * hour }, this.key)
    this.certificate = pemOf('CERTIFICATE', this.#encoded)
    for (const name of ['ca-cert.pem', 'root-cert.pem']) writeFileSync(join(this.dir, name), this.certificate)
    writeFileSync(this.keyFile, this.key.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  }

  get keyFile(): string {
    return join(this.dir, 'ca-key.pem')
  }

  /** Issues the certificate of an agent. PEM. */
  issue(request: string, identity: string): string {
    const now = Date.now()
    const grant = { serial: randomBytes(16), notBefore: now - hour, notAfter: now + hour }
    return pemOf('CERTIFICATE', issueWorkload(request, identity, grant, signingKeyOf(readCertificate(this.#encoded), this.key)))
  }

  dispose(): void {
    rmSync(this.dir, { recursive: true, force: true })
  }
}

/** Runs all measurements of signing. */
export async function signing(writers: number, rounds: number, tls: { cert: string; key: string }): Promise<Measure[]> {
  const measures: Measure[] = []
  for (const root of ['RSA', 'P-256'] as const) for (const client of ['RSA', 'P-256'] as const) measures.push(await rate(root, client, rounds))
  measures.push(await twoThreads())
  measures.push(await calls(rounds, tls))
  measures.push(await manyAgents(writers, tls))
  measures.push(...(await besidePushes(writers, rounds, tls)))
  return measures
}

/** Measures the CPU seconds of one thread per 1,000 certificates, and the latencies at four fifths of its rate. */
async function rate(rootType: KeyType, clientType: KeyType, rounds: number): Promise<Measure> {
  const variant = `${rootType} root, ${clientType} request`
  progress(`signing: ${variant}`)
  const root = new BenchRoot(rootType)
  const pool = new Signing(1)
  try {
    const key = newKey(clientType)
    const body = randomBytes(clientType === 'RSA' ? 400 : 200)
    const task: BareTask = {
      root: root.key.export({ type: 'pkcs8', format: 'pem' }) as string,
      publicKey: createPublicKey(key).export({ type: 'spki', format: 'der' }),
      signed: body,
      signature: sign('sha256', body, key),
      times: perRound,
    }
    const ask = asker(pool, root, key)
    await many(ask)
    let [ours, bare, wall] = [0, 0, 0]
    for (let round = 0; round < rounds; round++) {
      bare += await bareCpu(task)
      const [before, began] = [otherThreadsCpu(), performance.now()]
      const lost = await many(ask)
      wall += performance.now() - began
      ours += otherThreadsCpu() - before
      if (lost > 0) throw new Error(`${lost} certificates were not made`)
    }
    const perSecond = (rounds * perRound * 1000) / wall
    const waits = await waitsAt(0.8 * perSecond, ask)
    const thousands = (rounds * perRound) / 1000
    const [cpu, limitCpu] = [ours / thousands, bare / thousands]
    const most = rootType === 'RSA' ? 1 / 0.8 : 1 / 0.6
    const goals: Goal[] = [{ what: `signing, ${variant}`, seen: cpu / limitCpu, most, unit: 'times bare' }]
    return {
      scenario: '1,000 certificates',
      variant,
      p50: percentile(waits, 0.5),
      p99: percentile(waits, 0.99),
      cpu,
      limit: { last: Number.NaN, cpu: limitCpu, rss: Number.NaN },
      mib: 0,
      rss: processUsage(process.pid).rss,
      threads: {},
      notes: `${Math.round(1000 / cpu)} a CPU second, ${((100 * limitCpu) / cpu).toFixed(0)} % of the bare loop; ${Math.round(perSecond)} a second; times at 80 % of that`,
      goals,
    }
  } finally {
    await pool.close()
    root.dispose()
  }
}

/** Returns a function that requests a certificate, with an identity per caller. */
function asker(pool: Signing, root: BenchRoot, key: KeyObject): (caller: number) => Promise<SigningResult> {
  const by = { id: fingerprintOf(root.certificate), certificate: root.certificate, key: { kind: 'file', path: root.keyFile } } as const
  const identities = Array.from({ length: atOnce }, (_, index) => identityOf(index))
  const grant = () => ({ by, notBefore: Date.now(), notAfter: Date.now() + hour })
  const csr = makeSigningRequest(key, [])
  return (caller) => pool.sign({ caller: identities[caller] as string, csr, identity: identities[caller] as string, grant })
}

/** Requests the certificates of a round. Resolves with the number of failures. */
async function many(ask: (caller: number) => Promise<SigningResult>): Promise<number> {
  let lost = 0
  for (let asked = 0; asked < perRound; asked += atOnce) {
    const results = await Promise.all(Array.from({ length: atOnce }, (_, index) => ask(index)))
    lost += results.filter((result) => !('serial' in result)).length
  }
  return lost
}

const otherThreadsCpu = (): number => {
  const [all, own] = [process.cpuUsage(), process.threadCpuUsage()]
  return (all.user + all.system - own.user - own.system) / 1e6
}

/** Resolves with the CPU seconds of a thread that executes the bare operations. */
function bareCpu(task: BareTask): Promise<number> {
  const worker = new Worker(new URL('../bare-signer.ts', import.meta.url), { workerData: task })
  return new Promise((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
  })
}

/** Sends `perSecond` requests per second. Resolves with their latencies in milliseconds, ascending. */
async function waitsAt(perSecond: number, ask: (caller: number) => Promise<SigningResult>): Promise<number[]> {
  const waits: Promise<number>[] = []
  const began = performance.now()
  for (let next = began; next < began + latencyMs; ) {
    while (next <= performance.now()) {
      const at = performance.now()
      waits.push(ask(waits.length % atOnce).then(() => performance.now() - at))
      // Exponentially distributed intervals, as of many independent callers.
      next += (-Math.log(1 - Math.random()) * 1000) / perSecond
    }
    await pause(1)
  }
  return (await Promise.all(waits)).sort((one, other) => one - other)
}

/** Measures the speed-up from one thread to two. */
async function twoThreads(): Promise<Measure> {
  progress('signing: one thread and two')
  const root = new BenchRoot('RSA')
  const walls: number[] = []
  try {
    for (const threads of [1, 2]) {
      const pool = new Signing(threads)
      const ask = asker(pool, root, newKey('P-256'))
      await many(ask)
      const began = performance.now()
      await many(ask)
      walls.push(performance.now() - began)
      await pool.close()
    }
  } finally {
    root.dispose()
  }
  const [one = Number.NaN, two = Number.NaN] = walls
  const notes = `${(one / two).toFixed(2)} times the certificates of one thread`
  return {
    scenario: `${perRound} certificates`,
    variant: 'RSA root, two threads',
    last: two,
    cpu: Number.NaN,
    mib: 0,
    rss: Number.NaN,
    threads: {},
    notes,
  }
}

/** Calls the certificate service. Resolves with the gRPC status. */
function createCertificate(session: ClientHttp2Session, request: Buffer): Promise<string> {
  return new Promise((resolve) => {
    const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' })
    let status = 'none'
    const note = (headers: Record<string, unknown>) => {
      if (headers['grpc-status'] !== undefined) status = String(headers['grpc-status'])
    }
    stream.on('response', note)
    stream.on('trailers', note)
    stream.on('error', (error) => (status = error.message))
    stream.on('close', () => resolve(status))
    stream.resume()
    stream.end(request)
  })
}

/** Connects an agent with a certificate of its own. */
function agent(port: number, root: BenchRoot, number: number, key: KeyObject, request: string): Promise<ClientHttp2Session> {
  const credentials = { key: key.export({ type: 'pkcs8', format: 'pem' }), cert: root.issue(request, identityOf(number)) }
  const session = http2Connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false, ...credentials })
  return new Promise((resolve, reject) => {
    session.once('connect', () => resolve(session))
    session.once('error', reject)
  })
}

const requestOf = (csr: string): Buffer => messageFrame(textField(1, csr))

function startServer(writers: number, root: BenchRoot, tls: { cert: string; key: string }, files: readonly (readonly [string, string])[]) {
  return DiscoveryServer.start({ writers, files, certificates: tls, env: { ROOT_CA_DIR: root.dir } })
}

/** Measures the call itself, with the messages of an ordinary request and its answer. */
async function calls(rounds: number, tls: { cert: string; key: string }): Promise<Measure> {
  const root = new BenchRoot('RSA')
  try {
    const csr = makeSigningRequest(newKey('P-256'), [])
    return await signingCalls(rounds, tls, csr, [root.issue(csr, identityOf(0)), root.certificate])
  } finally {
    root.dispose()
  }
}

/** Measures concurrent requests of many connected agents. */
async function manyAgents(writers: number, tls: { cert: string; key: string }): Promise<Measure> {
  progress(`signing: ${agents} agents at once`)
  const root = new BenchRoot('RSA')
  const server = await startServer(writers, root, tls, [])
  const sessions: ClientHttp2Session[] = []
  try {
    const key = newKey('P-256')
    const csr = makeSigningRequest(key, [])
    while (sessions.length < agents) {
      const batch = Array.from({ length: 50 }, (_, index) => agent(server.securePort, root, sessions.length + index, key, csr))
      sessions.push(...(await Promise.all(batch)))
    }
    const request = requestOf(csr)
    const before = await server.usage()
    const began = performance.now()
    const took = await Promise.all(
      sessions.map(async (session) => ({ status: await createCertificate(session, request), ms: performance.now() - began })),
    )
    const after = await server.usage()
    const times = took.map(({ ms }) => ms).sort((one, other) => one - other)
    const lost = took.filter(({ status }) => status !== '0').map(({ status }) => status)
    return {
      scenario: `${agents} agents at once`,
      variant: 'RSA root, P-256 request, over TLS',
      p50: percentile(times, 0.5),
      p99: percentile(times, 0.99),
      last: times.at(-1) ?? Number.NaN,
      cpu: after.cpu - before.cpu,
      mib: 0,
      rss: after.rss,
      threads: {},
      notes: `${lost.length} not served${lost.length > 0 ? ` (${[...new Set(lost)].join(', ')})` : ''}; ${Math.round(after.rss - before.rss)} MiB more than before`,
      goals: [{ what: `${agents} agents, not served`, seen: lost.length, most: 0, unit: 'times bare' }],
    }
  } finally {
    for (const session of sessions) session.destroy()
    await server.kill()
    root.dispose()
  }
}

/** Measures the push path while the signers are idle, and while they sign at full load. */
async function besidePushes(writers: number, rounds: number, tls: { cert: string; key: string }): Promise<Measure[]> {
  progress('signing: beside pushes')
  const root = new BenchRoot('RSA')
  const server = await startServer(writers, root, tls, mesh.files(services, 10))
  const load = new Load()
  const measures: Measure[] = []
  let session: ClientHttp2Session | undefined
  try {
    await load.connect(sidecars, {
      port: server.port,
      tls: false,
      delta: false,
      hosts: false,
      namespaces: 10,
      reads: 'all',
      own: false,
      misbehaving: 0,
    })
    await pause(1000)
    const key = newKey('P-256')
    const csr = makeSigningRequest(key, [])
    const request = requestOf(csr)
    session = await agent(server.securePort, root, 0, key, csr)
    for (const isSigning of [false, true]) {
      let [goesOn, made] = [isSigning, 0]
      const open = session
      const flood = Array.from({ length: isSigning ? flatOut : 0 }, async () => {
        while (goesOn) if ((await createCertificate(open, request)) === '0') made++
      })
      const began = performance.now()
      for (const kind of ['endpoint change', 'route change'] as const) {
        const variant = isSigning ? 'sotw, while signing' : 'sotw, at rest of signers'
        measures.push(await measureChange(kind, variant, rounds, server, load, undefined, { services, from: isSigning ? 1000 : 0 }))
      }
      goesOn = false
      await Promise.all(flood)
      const last = measures.pop() as Measure
      measures.push({ ...last, notes: `${Math.round((made * 1000) / (performance.now() - began))} certificates a second meanwhile` })
    }
    return measures
  } finally {
    session?.destroy()
    load.end()
    await server.kill()
    root.dispose()
  }
}
