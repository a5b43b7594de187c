/**
 * Measures the minimum cost of a certificate: importing the client's key, verifying its signature, and making a signature. Posts the CPU
 * seconds.
 */
import { createPrivateKey, createPublicKey, randomBytes, sign, verify } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'

/** The operation and its number of repetitions. */
export interface BareTask {
  /** The root's private key, PEM. */
  readonly root: string
  /** `SubjectPublicKeyInfo`, DER. */
  readonly publicKey: Uint8Array
  readonly signed: Uint8Array
  readonly signature: Uint8Array
  readonly times: number
}

/** The approximate size of the signed part of a certificate, in bytes. */
const certificateBytes = 700

const { root, publicKey, signed, signature, times } = workerData as BareTask
const key = createPrivateKey(root)
const body = randomBytes(certificateBytes)
const once = (): void => {
  verify('sha256', signed, createPublicKey({ key: Buffer.from(publicKey), format: 'der', type: 'spki' }), signature)
  sign('sha256', body, key)
}
for (let index = 0; index < times / 4; index++) once()
const before = process.threadCpuUsage()
for (let index = 0; index < times; index++) once()
const { user, system } = process.threadCpuUsage(before)
parentPort?.postMessage((user + system) / 1e6)
