/** Serves the stored configuration to a starting proxy while discovery is unreachable (docs/agent.md, X9). */

import { status } from '../../../src/model/status-codes.ts'
import { KeptAnswers, readFirst } from '../../../src/relay/kept-answers.ts'
import { WireError } from '../../../src/xds/slab/wire.ts'
import { BadFrame, FrameBuffers, FrameReader, messageFrame } from '../../../src/xds/stream/frames.ts'
import { requestFault } from '../../../src/xds/stream/request.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import type { ConfigurationFile } from './configuration-file.ts'
import type { ProxyStream } from './proxy-stream.ts'

/** The maximum size of a request, in bytes. */
const requestBytes = 4_194_304

/** Serves one stream. */
export class StandIn {
  readonly #proxy: ProxyStream
  readonly #log: ScopedLogger
  readonly #reader = new FrameReader(requestBytes, new FrameBuffers())
  readonly #mayServe: () => boolean
  #answers: KeptAnswers | undefined
  /** Requests that arrived before the stored configuration was read. Undefined afterwards, and when none is served. */
  #waiting: Buffer[] | undefined

  /**
   * `requests` are the request bytes received so far. Serves when a configuration is stored for this proxy and the proxy has none yet:
   * `mayServe` is called when the configuration has been read, and says whether it is still the stand-in's turn.
   */
  constructor(proxy: ProxyStream, file: ConfigurationFile, log: ScopedLogger, requests: Buffer, mayServe: () => boolean) {
    this.#proxy = proxy
    this.#log = log
    this.#mayServe = mayServe
    const first = readFirst(proxy.isDelta, requests)
    if (!first?.isFresh) return
    this.#waiting = [requests]
    void this.#begin(file, first.nodeId)
  }

  /** Processes bytes of requests. */
  request(bytes: Buffer): void {
    if (this.#answers) this.#answer(this.#answers, bytes)
    else this.#waiting?.push(bytes)
  }

  async #begin(file: ConfigurationFile, nodeId: string): Promise<void> {
    const found = await file.read(nodeId)
    const waiting = this.#waiting ?? []
    this.#waiting = undefined
    if (!found || !this.#mayServe()) return
    file.resume(found.kept)
    this.#log.warn(`discovery cannot be reached: the proxy starts with the configuration saved at ${new Date(found.writtenAt).toISOString()}`)
    const answers = new KeptAnswers(this.#proxy.isDelta, found.kept)
    this.#answers = answers
    for (const bytes of waiting) this.#answer(answers, bytes)
  }

  #answer(answers: KeptAnswers, bytes: Buffer): void {
    try {
      this.#reader.take(bytes, (message) => {
        const response = answers.answer(message)
        if (response) this.#proxy.write(messageFrame(response))
      })
    } catch (error) {
      if (!(error instanceof BadFrame || error instanceof WireError)) throw error
      this.#proxy.finish(status.invalidArgument, requestFault(error))
    }
  }
}
