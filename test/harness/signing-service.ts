/** A certificate authority for tests of its clients: `CreateCertificate` over TLS or in plaintext, with generated roots. */
import { generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import { GrpcServer } from '../../actors/grpc/grpc-server.ts'
import { StandstillTimer } from '../../actors/grpc/standstill-timer.ts'
import type { Call, CallStatus } from '../../actors/rpc/call.ts'
import { callOf, connectHandlers, errorOf } from '../../actors/rpc/connect-handlers.ts'
import { lazyRpcs } from '../../actors/rpc/rpc-methods.ts'
import { createLogger } from '../../actors/runtime/logger.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import { freePort } from '../../bench/ports.ts'
import { type MeshCertificateRequest, MeshCertificateService } from '../../protocols/gen/mesh/v1/auth/ca_pb.js'
import type { ServerAddress } from '../../protocols/messages/credentials.ts'
import { type Certificate, readCertificate, type SigningKey } from '../../src/ca/certificate.ts'
import { issueRoot, issueServing, issueWorkload, signingKeyOf } from '../../src/ca/issue.ts'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { ClientTrust } from '../../src/identity/client-trust.ts'
import { pemOf } from '../../src/identity/pem.ts'

const off = { fallback: 'none', scopes: {} } as const
const certificate = (der: Buffer) => pemOf('CERTIFICATE', der)

interface Root {
  readonly certificate: Certificate
  readonly key: KeyObject
  readonly signer: SigningKey
  readonly pem: string
}

/** The contents and credentials of a received call. */
export interface SeenCall {
  readonly csr: string
  readonly seconds: number
  readonly headers: Call['headers']
  /** The identity of the client certificate. */
  readonly presented: string | undefined
}

/** The authority. It signs every request, for one identity. */
export class SigningService {
  identity: string
  readonly calls: SeenCall[] = []
  /** The lifetime of issued certificates, in milliseconds. */
  lifeMs = 3_600_000
  /** Returns a response in place of a certificate; undefined for the default. */
  answer: ((csr: string) => CallStatus | readonly string[] | undefined | Promise<never>) | undefined
  /** When certificates become valid, in milliseconds from now. */
  validInMs = -60_000
  /** The roots in responses. The first one signs. */
  roots: Root[] = [newRoot('first')]
  port = 0
  readonly #isPlain: boolean
  #server: GrpcServer | undefined

  constructor(identity: string, options: { isPlain?: boolean } = {}) {
    this.identity = identity
    this.#isPlain = options.isPlain ?? false
  }

  /** The roots in PEM. */
  get bundle(): string {
    return this.roots.map(({ pem }) => pem).join('')
  }

  /** Adds a new root before or after the existing ones. */
  addRoot(name: string, isFirst: boolean): void {
    this.roots = isFirst ? [newRoot(name), ...this.roots] : [...this.roots, newRoot(name)]
  }

  get address(): ServerAddress {
    return { host: '127.0.0.1', port: this.port, isPlain: this.#isPlain, serverName: 'authority.test' }
  }

  /** Issues a chain for a request, in the form of a response. */
  chain(csr: string, identity = this.identity): string[] {
    const [{ signer }] = this.roots as [Root]
    const now = Date.now()
    const grant = { serial: randomBytes(16), notBefore: now + this.validInMs, notAfter: now + this.lifeMs }
    return [certificate(issueWorkload(csr, identity, grant, signer)), this.bundle]
  }

  /** Starts the server. The port stays the same over restarts. */
  async start(): Promise<this> {
    this.port ||= await freePort()
    const at = { host: '127.0.0.1', port: this.port }
    const never = Number.POSITIVE_INFINITY
    const trust = new ClientTrust()
    trust.set('own', { '': this.bundle })
    trust.rename({ trustDomain: 'cluster.local', trustDomainAliases: [], rootNamespace: 'mesh-system' })
    const log = createLogger({ output: off, stackTrace: off, callers: [] }, () => {})
    const bounds = { timeLimit: 10_000, requestBytes: 65_536, concurrent: 1000 }
    const server = new GrpcServer(
      {
        plain: this.#isPlain ? at : undefined,
        secure: this.#isPlain ? undefined : at,
        sharers: 1,
        maxConnections: 1000,
        maxStreams: 100,
        messageBytes: 65_536,
        sendTimeout: 5000,
        connections: { keepaliveInterval: never, keepaliveTimeout: never, maxConnectionAge: never, credentialGrace: never },
      },
      {
        log: log('ca'),
        metrics: new MetricRegistry(),
        standstillTimer: new StandstillTimer(),
        trust,
        refused: () => undefined,
        methods: lazyRpcs({ '/mesh.v1.auth.MeshCertificateService/CreateCertificate': { type: 'unary', bounds } }, async () =>
          connectHandlers({
            failed: () => undefined,
            routes: (router) =>
              router.service(MeshCertificateService, { createCertificate: (request, context) => this.#answer(request, callOf(context)) }),
          }),
        ),
      },
    )
    this.#server = server
    if (!this.#isPlain) {
      const { key, cert } = this.#serving()
      server.trustChanged()
      server.useCertificate({ key, cert })
    }
    await server.open()
    return this
  }

  async stop(): Promise<void> {
    await this.#server?.close()
    this.#server = undefined
  }

  #serving(): { key: string; cert: string } {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const now = Date.now()
    const [{ signer }] = this.roots as [Root]
    const grant = { serial: randomBytes(16), notBefore: now - 60_000, notAfter: now + 3_600_000 }
    const cert = certificate(issueServing(makeSigningRequest(privateKey, [{ dns: 'authority.test' }]), grant, signer))
    return { key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), cert }
  }

  async #answer({ csr, validityDuration }: MeshCertificateRequest, { headers, certificateCaller }: Call): Promise<{ certChain: string[] }> {
    this.calls.push({ csr, seconds: Number(validityDuration), headers, presented: certificateCaller?.identities[0] })
    const answer = (await this.answer?.(csr)) ?? this.chain(csr)
    if ('code' in answer) throw errorOf(answer)
    return { certChain: [...answer] }
  }
}

function newRoot(name: string): Root {
  const { privateKey: key } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const now = Date.now()
  const der = issueRoot(name, { serial: randomBytes(16), notBefore: now - 60_000, notAfter: now + 86_400_000 }, key)
  const certificate = readCertificate(der)
  return { certificate, key, signer: signingKeyOf(certificate, key), pem: pemOf('CERTIFICATE', der) }
}
